package expr

import (
	"bytes"
	"sync"

	"github.com/triremedb/trireme/engine/types"
)

// textEqual tells whether texts are equal in a collation, and decides most cases
// without weighing them.
//
// Printable ASCII characters are mostly never part of a longer unit in a collation, and never ignored: two texts are equal as
// long as their characters fold to the same ones, and differ where the first two printable ones do not. In collations with
// letters of several characters, and in character sets of several bytes but for UTF-8, all texts are weighed.
type textEqual struct {
	coll  types.Collation
	fold  *[128]byte
	pad   bool
	weigh bool
}

var textEquals sync.Map // types.CollationID -> *textEqual

// textEqualOf returns the one textEqual of a collation.
func textEqualOf(c types.Collation) *textEqual {
	if e, ok := textEquals.Load(c.ID()); ok {
		return e.(*textEqual)
	}
	e, _ := textEquals.LoadOrStore(c.ID(), &textEqual{coll: c, fold: asciiFold(c), pad: c.PadSpace(), weigh: types.Contracts(c) || !c.Charset().FindsItself()})
	return e.(*textEqual)
}

func printableASCII(c byte) bool { return c >= ' ' && c < 0x7f }

func (e *textEqual) equal(a, b []byte) bool {
	n := min(len(a), len(b))
	if e.weigh {
		return e.coll.Compare(a, b) == 0
	}
	for i := range n {
		x, y := a[i], b[i]
		switch {
		case !printableASCII(x) || !printableASCII(y):
			return e.coll.Compare(a, b) == 0
		case e.fold[x] != e.fold[y]:
			// A space may be padding: then what follows decides.
			return e.pad && (x == ' ' || y == ' ') && e.coll.Compare(a, b) == 0
		}
	}
	if len(a) == len(b) {
		return true
	}
	rest := a[n:]
	if len(rest) == 0 {
		rest = b[n:]
	}
	if !e.pad && printableASCII(rest[0]) {
		return false
	}
	return e.coll.Compare(a, b) == 0
}

// equalAt is orderAt = 0 for text.
func (c *comparator) equalAt(a, b *types.Vector, i int) bool {
	if c.by == byText {
		return c.text.equal(a.BytesAt(i), b.BytesAt(i))
	}
	return bytes.Equal(a.BytesAt(i), b.BytesAt(i))
}

// equal reports whether two values that are not NULL are equal.
func (c *comparator) equal(a, b types.Value) bool {
	if c.by == byText {
		return c.text.equal(a.Bytes(), b.Bytes())
	}
	return c.compare(a, b) == 0
}
