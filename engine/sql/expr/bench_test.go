package expr

import (
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// filled is a rig over 1,024 rows of numbers and words.
func filled(b testing.TB) *rig {
	r := newRig(b)
	r.x.Session = testSession{r}
	rows := make([][]string, types.BatchRows)
	for i := range rows {
		rows[i] = []string{fmt.Sprint(i % 37), fmt.Sprint(i % 11), fmt.Sprintf("%d.%02d", i%50, i%100), fmt.Sprintf("word%d", i%100),
			fmt.Sprintf("2024-01-%02d", i%28+1), fmt.Sprint(float64(i) / 7)}
	}
	r.table("a BIGINT, b BIGINT, c DECIMAL(10,2), s VARCHAR(20), f DATE, d DOUBLE", rows)
	return r
}

var benchmarks = []string{
	"a * 2 + b > 10", "c * 2 > 30.5", "d * 2e0 + 1e0 > 5e0", "s = 'word5'", "s LIKE 'word1%'",
	"f BETWEEN '2024-01-05' AND '2024-01-10'", "a IN (1, 5, 9, 22)", "a > 5 AND b < 7 AND c > 3",
	"CASE WHEN a > 10 THEN b ELSE a END", "c / 3", "s IN ('word1', 'word7')", "a + c", "CONCAT(s, 'x') = 'word5x'", "IFNULL(a, 0) + 1", "CAST(a AS CHAR) = '5'", "UPPER(s) LIKE 'WORD1_'",
}

func BenchmarkFilter(b *testing.B) {
	r := filled(b)
	for _, text := range benchmarks {
		n, err := r.bind(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			out := make([]uint32, 0, types.BatchRows)
			for range b.N {
				if out, err = Filter(r.x, n, r.rows, nil, out[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/types.BatchRows, "ns/row")
		})
	}
}

// TestSteadyStateAllocatesNothing runs each of the benchmarks' expressions often.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := filled(t)
	out := make([]uint32, 0, types.BatchRows)
	for _, text := range benchmarks {
		n, err := r.bind(text)
		if err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(20, func() {
			if out, err = Filter(r.x, n, r.rows, nil, out[:0]); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", text, allocs)
		}
		allocs = testing.AllocsPerRun(20, func() {
			m := r.x.Mark()
			if _, err = n.Value(r.x, r.rows, 7); err != nil {
				t.Fatal(err)
			}
			r.x.Release(m)
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations by row", text, allocs)
		}
	}
}
