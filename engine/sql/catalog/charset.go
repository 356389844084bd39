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

// charsets are the character sets, by name.
var charsets = []CharacterSet{
	{"ascii", types.CharsetASCII, types.CollationASCIIGeneral, types.CollationASCIIBin, "US ASCII"},
	{"binary", types.CharsetBinary, types.CollationBinary, types.CollationBinary, "Binary pseudo charset"},
	{"latin1", types.CharsetLatin1, types.CollationLatin1Swedish, types.CollationLatin1Bin, "cp1252 West European"},
	{"utf8mb3", types.CharsetUTF8MB3, 33, 83, "UTF-8 Unicode"},
	{"utf8mb4", types.CharsetUTF8MB4, types.CollationUTF8MB40900AI, types.CollationUTF8MB4Bin, "UTF-8 Unicode"},
}

// CharacterSets lists the character sets that columns can have.
func CharacterSets() []CharacterSet {
	return slices.DeleteFunc(slices.Clone(charsets), func(c CharacterSet) bool { return types.CollationByID(c.Default) == nil })
}

// Collations lists the collations in the order of their names.
func Collations() []types.Collation {
	var all []types.Collation
	for id := types.CollationID(1); id < 2048; id++ {
		if c := types.CollationByID(id); c != nil {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b types.Collation) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// CharsetNamed returns the character set of a name. Error: 1115.
func CharsetNamed(name string) (CharacterSet, error) {
	fold := strings.ToLower(name)
	if fold == "utf8" {
		fold = "utf8mb3"
	}
	for _, c := range charsets {
		if c.Name == fold && types.CollationByID(c.Default) != nil {
			return c, nil
		}
	}
	return CharacterSet{}, sqlerr.New(sqlerr.UnknownCharacterSet, name)
}

// CharsetOf returns the character set of a collation.
func CharsetOf(id types.CollationID) CharacterSet {
	if c := types.CollationByID(id); c != nil {
		for _, cs := range charsets {
			if cs.Charset == c.Charset() {
				return cs
			}
		}
	}
	return charsets[1]
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
		if rest, ok := strings.CutPrefix(strings.ToLower(name), "utf8_"); ok {
			c = types.CollationByName("utf8mb3_" + rest)
		}
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
