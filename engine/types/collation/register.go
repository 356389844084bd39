package collation

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

func init() {
	for _, c := range All() {
		types.RegisterCollation(c)
	}
}

// meta is what a collation is called.
type meta struct {
	id      types.CollationID
	name    string
	charset types.Charset
}

func (m meta) ID() types.CollationID  { return m.id }
func (m meta) Name() string           { return m.name }
func (m meta) Charset() types.Charset { return m.charset }

// All returns the collations of this package in the order of their ids.
func All() []types.Collation {
	utf8mb4 := func(id types.CollationID, name string) meta { return meta{id, name, types.CharsetUTF8MB4} }
	latin1 := func(id types.CollationID, name string) meta { return meta{id, name, types.CharsetLatin1} }
	utf8mb3 := func(id types.CollationID, name string) meta { return meta{id, name, types.CharsetUTF8MB3} }
	ascii := func(id types.CollationID, name string) meta { return meta{id, name, types.CharsetASCII} }
	all := []types.Collation{
		padBytes{latin1(types.CollationLatin1Swedish, "latin1_swedish_ci"), &latin1Swedish},
		padBytes{ascii(types.CollationASCIIGeneral, "ascii_general_ci"), &asciiGeneral},
		general{utf8mb3(33, "utf8mb3_general_ci"), generalWeights},
		general{utf8mb4(types.CollationUTF8MB4Gen, "utf8mb4_general_ci"), generalWeights},
		padBytes{utf8mb4(types.CollationUTF8MB4Bin, "utf8mb4_bin"), nil},
		padBytes{latin1(types.CollationLatin1Bin, "latin1_bin"), nil},
		padBytes{ascii(types.CollationASCIIBin, "ascii_bin"), nil},
		general{utf8mb3(76, "utf8mb3_tolower_ci"), toLowerWeights},
		padBytes{utf8mb3(83, "utf8mb3_bin"), nil},
		general{utf8mb3(223, "utf8mb3_general_mysql500_ci"), mysql500Weights},
		ucaAI{utf8mb4(types.CollationUTF8MB40900AI, "utf8mb4_0900_ai_ci")},
		ucaCS{utf8mb4(types.CollationUTF8MB40900AS, "utf8mb4_0900_as_cs")},
		byteOrder{utf8mb4(types.CollationUTF8MB40900B, "utf8mb4_0900_bin")},
	}
	all = append(append(all, byteCollations...), languageCollations...)
	all = append(append(all, earlierCollations(types.CharsetUTF8MB3, 192)...), earlierCollations(types.CharsetUTF8MB4, 224)...)
	all = append(all, wideCollations(all)...)
	all = append(all, eastAsianCollations(earlier{utf8mb4(246, "utf8mb4_unicode_520_ci"), earlierSourceOf("unicode_520")})...)
	keepKeys(all)
	slices.SortFunc(all, func(a, b types.Collation) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// byteOrder is utf8mb4_0900_bin: bytes, which in UTF-8 is the order of code points.
type byteOrder struct{ meta }

func (c byteOrder) Compare(a, b []byte) int            { return bytes.Compare(a, b) }
func (c byteOrder) AppendSortKey(dst, s []byte) []byte { return append(dst, s...) }
func (c byteOrder) Hash(seed uint64, s []byte) uint64  { return types.HashBytes(seed, s) }
func (c byteOrder) PadSpace() bool                     { return false }
func (c byteOrder) Lossless() bool                     { return true }
func (c byteOrder) MaxKeyLen(n int) int                { return n }

var (
	asciiGeneral  = foldTable("")
	latin1Swedish = foldTable(latin1Fold)
)

// latin1Fold lists the bytes from 0xC0 that latin1_swedish_ci takes for others, in pairs of byte and weight: Å, Ä and Ö come
// after Z, with the weights of [, \ and ], whose places they took in the Swedish variant of ASCII; most other accents are
// dropped.
const latin1Fold = "\xC0A\xC1A\xC2A\xC3A\xC4\\\xC5[\xC6\\\xC7C\xC8E\xC9E\xCAE\xCBE\xCCI\xCDI\xCEI\xCFI\xD0D\xD1N" +
	"\xD2O\xD3O\xD4O\xD5O\xD6]\xD9U\xDAU\xDBU\xDCY\xDDY\xE0A\xE1A\xE2A\xE3A\xE4\\\xE5[\xE6\\\xE7C\xE8E\xE9E\xEAE\xEBE" +
	"\xECI\xEDI\xEEI\xEFI\xF0D\xF1N\xF2O\xF3O\xF4O\xF5O\xF6]\xF8\xD8\xF9U\xFAU\xFBU\xFCY\xFDY\xFE\xDE"

// foldTable returns a table that maps small ASCII letters to capitals, the bytes of the given pairs to their partners, and
// others to themselves.
func foldTable(pairs string) [256]uint8 {
	var t [256]uint8
	for i := range t {
		t[i] = uint8(i)
	}
	for b := 'a'; b <= 'z'; b++ {
		t[b] = uint8(b) - 'a' + 'A'
	}
	for i := 0; i < len(pairs); i += 2 {
		t[pairs[i]] = pairs[i+1]
	}
	return t
}
