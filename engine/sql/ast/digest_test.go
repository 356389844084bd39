package ast

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestDigest runs testdata/digest: texts, parted by lines of --, and their digests.
func TestDigest(t *testing.T) {
	datadriven.Walk(t, "testdata/digest", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			var mode Mode
			if d.HasArg("mode") {
				mode = ModeANSIQuotes
			}
			most := 1024
			d.MaybeScanArgs(t, "max", &most)
			for _, text := range strings.Split(strings.TrimSuffix(d.Input, "\n"), "\n--\n") {
				fmt.Fprintf(&out, "%s\n", AppendDigest(nil, text, mode, most))
			}
			return out.String()
		})
	})
}

// TestDigestOfManyRows: however many rows, and wherever they are cut off, the digest is one.
func TestDigestOfManyRows(t *testing.T) {
	const want = "INSERT INTO `t` VALUES (...) /* , ... */"
	for _, rows := range []int{2, 3, 100, 5000} {
		for _, value := range []string{"1", "'a longer value, of which there are few'", "NULL_AND_SO_ON"[:0] + "-1.5"} {
			text := "INSERT INTO t VALUES " + strings.Repeat("("+value+", 'x'), ", rows-1) + "(" + value + ", 'y')"
			got := string(AppendDigest(nil, text, 0, 1024))
			if strings.TrimSuffix(got, " ...") != want {
				t.Errorf("%d rows: %s", rows, got)
			}
		}
	}
	for _, text := range []string{"SELECT " + strings.Repeat("a_column, ", 10_000) + "1", strings.Repeat("é", 20_000), strings.Repeat("(", 20_000)} {
		if got := AppendDigest(nil, text, 0, 100); len(got) > 100 {
			t.Errorf("%d bytes", len(got))
		}
	}
	var dst []byte
	if n := testing.AllocsPerRun(100, func() { dst = AppendDigest(dst[:0], "SELECT * FROM t WHERE id IN (1, 2, 3) AND b = 'x'", 0, 1024) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
