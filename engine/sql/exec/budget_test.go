package exec

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// Results of a correlated subquery that are kept are few bytes, however many and long they are.
func TestResultsOfSubqueriesAreBounded(t *testing.T) {
	held, most := int64(0), int64(0)
	x := &expr.Context{Hold: func(n int64) error {
		held += n
		most = max(most, held)
		return nil
	}}
	c := &resultCache{r: &run{x: x}}
	for i := range 200 {
		for _, size := range []int{10, 40_000, 500_000} {
			m := x.Mark()
			want := strings.Repeat(string(rune('a'+i%26)), size)
			v, err := c.put(types.NewString(want))
			if err != nil || string(v.Bytes()) != want {
				t.Fatalf("a result of %d bytes is another after it was kept: %v", size, err)
			}
			x.Release(m)
		}
	}
	if n := cap(c.bytes); n > 2*cacheBytes || len(c.values) > 200 {
		t.Errorf("%d bytes are kept, %d values", n, len(c.values))
	}
	if held != 0 || most < 500_000 {
		t.Errorf("%d bytes are still counted, %d at most", held, most)
	}
}
