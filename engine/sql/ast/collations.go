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
	for i, name := range strings.Fields(moreCollations) {
		cs, _, _ := strings.Cut(name, "_")
		charset.AddCollation(&charset.Collation{ID: ourCollations + i, CharsetName: cs, Name: name})
	}
}

// moreCollations are names of MySQL's that the grammar does not know.
const moreCollations = `
utf8mb4_nb_0900_ai_ci utf8mb4_nb_0900_as_cs utf8mb4_nn_0900_ai_ci utf8mb4_nn_0900_as_cs
utf8mb4_sr_latn_0900_ai_ci utf8mb4_sr_latn_0900_as_cs utf8mb4_bs_0900_ai_ci utf8mb4_bs_0900_as_cs
utf8mb4_bg_0900_ai_ci utf8mb4_bg_0900_as_cs utf8mb4_gl_0900_ai_ci utf8mb4_gl_0900_as_cs
utf8mb4_mn_cyrl_0900_ai_ci utf8mb4_mn_cyrl_0900_as_cs`

// mariaCollations is the first number of these collations in the grammar's table, where no
// other one has it. Nobody else sees it.
const mariaCollations = 4096

// ourCollations is the same of moreCollations.
const ourCollations = mariaCollations + 1024
