package expr

import (
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestTextEqual: equality without weights is that of the collation.
func TestTextEqual(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	alphabet := []rune("aAbB -'\"~\x00\x01\täÄßsS\u0301éeE\u200b日")
	word := func(cs types.Charset) []byte {
		var s []rune
		for range rng.IntN(5) {
			s = append(s, alphabet[rng.IntN(len(alphabet))])
		}
		out, _ := types.Convert(nil, []byte(string(s)), types.CharsetUTF8MB4, cs)
		return out
	}
	for id := range types.CollationID(400) {
		c := types.CollationByID(id)
		if c == nil || id == types.CollationBinary {
			continue
		}
		e := textEqualOf(c)
		for range 3000 {
			a, b := word(c.Charset()), word(c.Charset())
			if rng.IntN(3) == 0 {
				b = append(append([]byte(nil), a...), word(c.Charset())...)
			}
			if got, want := e.equal(a, b), c.Compare(a, b) == 0; got != want {
				t.Fatalf("%s: %q = %q: %v, want %v (seed %d)", c.Name(), a, b, got, want, seed)
			}
		}
	}
}
