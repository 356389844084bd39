package ast

import (
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
)

// TestQuotedCalls calls functions by all words that the grammar knows, in quotes: each call is
// refused or has a canonical text that means the same.
func TestQuotedCalls(t *testing.T) {
	words := strings.Fields("adddate bit_and cast count curdate curtime date_add date_sub extract group_concat json_memberof " +
		"max mid min now position session_user std subdate substr substring sum sysdate system_user trim var_samp char_func " +
		"get_format timestampadd timestampdiff weight_string convert translate nextval dateliteral no_such_function 1 1e5 0x1 a.b .a _utf8mb4")
	for _, k := range parser.Keywords {
		words = append(words, lower(k.Word))
	}
	for _, w := range words {
		for _, args := range []string{"", "1", "99", "a", "NULL", "'x'", "1,2", "a,b", "1,'binary'", "1,'x y'", "1,2,3", "1,'CHAR',3", "a,b,c,d"} {
			sql := "select `" + w + "`(" + args + ")"
			list, err := Parse(sql, 0)
			if err != nil && !isSQLError(err) {
				t.Errorf("%s: %v", sql, err)
			}
			for _, s := range list {
				if err := roundTrip(s, Format(s)); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
		}
	}
}
