package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// CharacterSet is a character set as SHOW CHARACTER SET has it.
type CharacterSet struct {
	Name        string
	Charset     types.Charset
	Default     types.CollationID
	Binary      types.CollationID // its _bin collation
	Description string
}

// descriptions say what the character sets are.
var descriptions = map[string]string{
	"armscii8": "ARMSCII-8 Armenian",
	"ascii":    "US ASCII",
	"big5":     "Big5 Traditional Chinese",
	"binary":   "Binary pseudo charset",
	"cp1250":   "Windows Central European",
	"cp1251":   "Windows Cyrillic",
	"cp1256":   "Windows Arabic",
	"cp1257":   "Windows Baltic",
	"cp850":    "DOS West European",
	"cp852":    "DOS Central European",
	"cp866":    "DOS Russian",
	"cp932":    "SJIS for Windows Japanese",
	"dec8":     "DEC West European",
	"eucjpms":  "UJIS for Windows Japanese",
	"euckr":    "EUC-KR Korean",
	"gb18030":  "China National Standard GB18030",
	"gb2312":   "GB2312 Simplified Chinese",
	"gbk":      "GBK Simplified Chinese",
	"geostd8":  "GEOSTD8 Georgian",
	"greek":    "ISO 8859-7 Greek",
	"hebrew":   "ISO 8859-8 Hebrew",
	"hp8":      "HP West European",
	"keybcs2":  "DOS Kamenicky Czech-Slovak",
	"koi8r":    "KOI8-R Relcom Russian",
	"koi8u":    "KOI8-U Ukrainian",
	"latin1":   "cp1252 West European",
	"latin2":   "ISO 8859-2 Central European",
	"latin5":   "ISO 8859-9 Turkish",
	"latin7":   "ISO 8859-13 Baltic",
	"macce":    "Mac Central European",
	"macroman": "Mac West European",
	"sjis":     "Shift-JIS Japanese",
	"swe7":     "7bit Swedish",
	"tis620":   "TIS620 Thai",
	"ucs2":     "UCS-2 Unicode",
	"ujis":     "EUC-JP Japanese",
	"utf16":    "UTF-16 Unicode",
	"utf16le":  "UTF-16LE Unicode",
	"utf32":    "UTF-32 Unicode",
	"utf8mb3":  "UTF-8 Unicode",
	"utf8mb4":  "UTF-8 Unicode",
}

// charsets are the character sets by their numbers.
var charsets = func() (all []CharacterSet) {
	for _, cs := range types.Charsets() {
		all = append(all, CharacterSet{cs.String(), cs, cs.DefaultCollation(), cs.BinaryCollation(), descriptions[cs.String()]})
	}
	return all
}()

// CharacterSets lists the character sets, by name.
func CharacterSets() []CharacterSet {
	all := slices.Clone(charsets)
	slices.SortFunc(all, func(a, b CharacterSet) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Collations lists the collations in the order of their names.
func Collations() []types.Collation {
	var all []types.Collation
	for id := types.CollationID(1); id < 2048; id++ {
		if c := types.CollationByID(id); c != nil {
			all = append(all, c)
		}
	}
	// Names are ordered as in utf8mb3_general_ci, in which a letter is less than an underscore.
	slices.SortFunc(all, func(a, b types.Collation) int {
		return cmp.Compare(strings.ToUpper(a.Name()), strings.ToUpper(b.Name()))
	})
	return all
}

// CharsetNamed returns the character set of a name. Error: 1115.
func CharsetNamed(name string) (CharacterSet, error) {
	if cs, ok := types.CharsetByName(name); ok {
		return charsets[cs], nil
	}
	return CharacterSet{}, sqlerr.New(sqlerr.UnknownCharacterSet, name)
}

// CharsetOf returns the character set of a collation.
func CharsetOf(id types.CollationID) CharacterSet {
	if c := types.CollationByID(id); c != nil {
		return charsets[c.Charset()]
	}
	return charsets[types.CharsetBinary]
}

// mariaNames are names of MariaDB's collations that dumps have, and what comes closest.
var mariaNames = map[string]string{
	"uca1400_ai_ci": "utf8mb4_unicode_520_ci", "utf8mb4_uca1400_ai_ci": "utf8mb4_unicode_520_ci", "utf8mb3_uca1400_ai_ci": "utf8mb3_unicode_ci",
	"utf8mb4_uca1400_nopad_ai_ci": "utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_as_cs": "utf8mb4_0900_as_cs", "utf8mb4_uca1400_as_cs": "utf8mb4_0900_as_cs",
	"utf8mb4_nopad_bin": "utf8mb4_0900_bin",
}

// CollationNamed returns the collation of a name. Error: 1273.
func CollationNamed(name string) (types.Collation, error) {
	c := types.CollationByName(name)
	if like := mariaNames[strings.ToLower(name)]; c == nil && like != "" {
		c = types.CollationByName(like)
	}
	if c == nil {
		return nil, sqlerr.New(sqlerr.UnknownCollation, name)
	}
	return c, nil
}

// Collation resolves CHARACTER SET and COLLATE, each of which may be empty, over what is
// inherited. Errors: 1115, 1253, 1273.
func Collation(charset, collate string, inherited types.CollationID) (types.CollationID, error) {
	id := inherited
	if charset != "" && !strings.EqualFold(charset, "default") {
		cs, err := CharsetNamed(charset)
		if err != nil {
			return 0, err
		}
		id = cs.Default
		if collate != "" {
			c, err := CollationNamed(collate)
			if err != nil {
				return 0, err
			}
			if c.Charset() != cs.Charset {
				return 0, sqlerr.New(sqlerr.CollationCharsetMismatch, c.Name(), cs.Name)
			}
		}
	}
	if collate != "" {
		c, err := CollationNamed(collate)
		if err != nil {
			return 0, err
		}
		id = c.ID()
	}
	return id, nil
}

// binaryOf returns the _bin collation of the same character set.
func binaryOf(id types.CollationID) types.CollationID { return CharsetOf(id).Binary }

// IsDefaultCollation reports whether a collation is its character set's default.
func IsDefaultCollation(id types.CollationID) bool { return CharsetOf(id).Default == id }
