package collation

import (
	"fmt"
	"testing"
)

func BenchmarkCollation(b *testing.B) {
	inputs := map[string][2]string{
		"ascii": {"customer-0001234@example.com", "Customer-0001235@example.com"},
		"mixed": {"Žluťoučký kůň 0001234", "žluťoučký kůň 0001235"},
	}
	for _, c := range All() {
		for _, kind := range []string{"ascii", "mixed"} {
			x, y := []byte(inputs[kind][0]), []byte(inputs[kind][1])
			dst := make([]byte, 0, 512)
			b.Run(fmt.Sprintf("compare/%s/%s", c.Name(), kind), func(b *testing.B) {
				for b.Loop() {
					c.Compare(x, y)
				}
			})
			b.Run(fmt.Sprintf("key/%s/%s", c.Name(), kind), func(b *testing.B) {
				for b.Loop() {
					dst = c.AppendSortKey(dst[:0], x)
				}
			})
			b.Run(fmt.Sprintf("hash/%s/%s", c.Name(), kind), func(b *testing.B) {
				for b.Loop() {
					c.Hash(1, x)
				}
			})
		}
	}
}
