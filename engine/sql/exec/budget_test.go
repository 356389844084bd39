package exec

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// Results of a subquery that are kept are in the statement's memory, are the same afterwards, and give way where there is none.
func TestResultsOfSubqueriesAreBounded(t *testing.T) {
	held := int64(0)
	x := &expr.Context{Hold: func(n int64) error {
		held += n
		return nil
	}}
	const limit = 2 << 20
	memory := temptable.NewAccount(limit)
	put := func(c *resultCache, size int) {
		m := x.Mark()
		want := strings.Repeat(string(rune('a'+size%26)), size)
		v, err := c.put(types.NewString(want))
		if err != nil || string(v.Bytes()) != want {
			t.Fatalf("a result of %d bytes is another after it was kept: %v", size, err)
		}
		x.Release(m)
	}
	c := &resultCache{r: &run{x: x, memory: memory}}
	for i := range 200 {
		for _, size := range []int{10 + i, 40_000 + i, 500_000 + i} {
			put(c, size)
		}
	}
	if memory.Peak() > limit || memory.Peak() < limit/2 || held != 0 {
		t.Errorf("%d bytes were kept, %d are still held", memory.Peak(), held)
	}
	c.reset()

	one := &resultCache{r: &run{x: x, memory: memory}, one: true}
	for i := range 100 { // one that has to be found anew for each row
		one.reset()
		put(one, 300_000+i)
	}
	one.reset()
	if _, err := one.put(types.NewString(strings.Repeat("x", limit+1))); err == nil {
		t.Error("a result of more than the limit is kept")
	}
	one.reset()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are still counted", memory.Used())
	}
}
