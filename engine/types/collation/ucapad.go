package collation

// ucaPad stands for MySQL's collations of older versions of the UCA: utf8mb4_unicode_ci (4.0.0) and utf8mb4_unicode_520_ci
// (5.2.0). It has the weights of version 9.0.0, so that characters which got theirs later sort elsewhere, and ends of
// strings as PAD SPACE has them: trailing spaces do not count. A control character at the end of a string does not make it
// less than without, as it does in MySQL.
type ucaPad struct{ ucaAI }

func (c ucaPad) PadSpace() bool          { return true }
func (c ucaPad) Compare(a, b []byte) int { return c.ucaAI.Compare(trimSpaces(a), trimSpaces(b)) }

func (c ucaPad) AppendSortKey(dst, s []byte) []byte { return c.ucaAI.AppendSortKey(dst, trimSpaces(s)) }

func (c ucaPad) AppendSortKeyHead(dst, s []byte, n int) []byte {
	return c.ucaAI.AppendSortKeyHead(dst, trimSpaces(s), n)
}

func (c ucaPad) Hash(seed uint64, s []byte) uint64 { return c.ucaAI.Hash(seed, trimSpaces(s)) }
