package ast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/charset"

	"github.com/triremedb/trireme/engine/types"
)

// The grammar knows the names of collations and refuses others. Those of MariaDB that
// dumps have are made known to it; what they stand for is for the catalogue to say.
func init() {
	for i, name := range []string{"uca1400_ai_ci", "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs", "utf8mb4_uca1400_nopad_ai_ci",
		"utf8mb4_uca1400_nopad_as_cs", "utf8mb4_nopad_bin", "utf8mb3_uca1400_ai_ci"} {
		cs := "utf8mb4"
		if name == "utf8mb3_uca1400_ai_ci" {
			cs = "utf8"
		}
		charset.AddCollation(&charset.Collation{ID: mariaCollations + i, CharsetName: cs, Name: name})
	}
	for _, cs := range types.Charsets() {
		if name := cs.String(); charset.CharacterSetInfos[name] == nil && cs > types.CharsetUTF8MB4 {
			charset.AddCharset(&charset.Charset{Name: name, Collations: map[string]*charset.Collation{}, Maxlen: cs.MaxLen()})
		}
	}
	names := strings.Fields(moreCollations)
	for _, l := range strings.Fields(languageNames) {
		for _, cs := range []string{"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"} {
			names = append(names, cs+"_"+l+"_ci")
		}
	}
	for i, name := range names {
		cs, _, _ := strings.Cut(name, "_")
		if cs == "utf8mb3" {
			cs = charset.CharsetUTF8
		}
		if _, err := charset.GetCollationByName(name); err != nil {
			charset.AddCollation(&charset.Collation{ID: ourCollations + i, CharsetName: cs, Name: name})
		}
	}
}

// languageNames are in the names of the Unicode character sets' collations.
const languageNames = "unicode unicode_520 icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish " +
	"lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian vietnamese"

// moreCollations are names of MySQL's that the grammar does not know.
const moreCollations = `
utf8mb4_nb_0900_ai_ci utf8mb4_nb_0900_as_cs utf8mb4_nn_0900_ai_ci utf8mb4_nn_0900_as_cs
utf8mb4_sr_latn_0900_ai_ci utf8mb4_sr_latn_0900_as_cs utf8mb4_bs_0900_ai_ci utf8mb4_bs_0900_as_cs
utf8mb4_bg_0900_ai_ci utf8mb4_bg_0900_as_cs utf8mb4_gl_0900_ai_ci utf8mb4_gl_0900_as_cs
utf8mb4_mn_cyrl_0900_ai_ci utf8mb4_mn_cyrl_0900_as_cs
utf8mb3_tolower_ci utf8mb3_general_mysql500_ci ucs2_general_mysql500_ci`

// mariaCollations is the first number of these collations in the grammar's table, where no
// other one has it. Nobody else sees it.
const mariaCollations = 4096

// ourCollations is the same of moreCollations.
const ourCollations = mariaCollations + 1024
