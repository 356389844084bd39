package collation

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestPairs compares with what MySQL says of pairs of strings, and the sort keys and hashes with that.
func TestPairs(t *testing.T) {
	seen := map[string]bool{}
	testLines(t, "pairs.txt", func(line string) error {
		var name string
		var text [2]string
		var want int
		if _, err := fmt.Sscan(line, &name, &text[0], &text[1], &want); err != nil {
			return err
		}
		var s [2][]byte
		for i := range s {
			if text[i] == "-" {
				continue
			}
			var err error
			if s[i], err = hex.DecodeString(text[i]); err != nil {
				return err
			}
		}
		c := types.CollationByName(name)
		if c == nil {
			return fmt.Errorf("there is no %s", name)
		}
		if seen[name] = true; name == "utf8mb4_unicode_ci" || name == "utf8mb4_unicode_520_ci" {
			c = earlier{meta{c.ID(), name, c.Charset()}, earlierSourceOf(strings.TrimSuffix(strings.TrimPrefix(name, "utf8mb4_"), "_ci"))} // see keepKeys
		}
		if got := c.Compare(s[0], s[1]); got != want {
			t.Errorf("%s: %q and %q compare %d, expected %d", name, s[0], s[1], got, want)
		}
		var key [2][]byte
		for i := range s {
			key[i] = c.AppendSortKey(nil, s[i])
			if len(key[i]) > c.MaxKeyLen(len(s[i])) {
				t.Errorf("%s: the key of %q has %d bytes, at most %d", name, s[i], len(key[i]), c.MaxKeyLen(len(s[i])))
			}
		}
		if got := bytes.Compare(key[0], key[1]); got != want {
			t.Errorf("%s: the keys of %q and %q compare %d, expected %d", name, s[0], s[1], got, want)
		}
		if want == 0 && c.Hash(1, s[0]) != c.Hash(1, s[1]) {
			t.Errorf("%s: %q and %q are equal and hash differently", name, s[0], s[1])
		}
		return nil
	})
	for _, c := range All() {
		_, isEarlier := c.(earlier)
		_, isEast := c.(eastAsian)
		language := isEast || isEarlier && c.Charset() == types.CharsetUTF8MB4 ||
			strings.Contains(c.Name(), "_0900_") && c.ID() > types.CollationUTF8MB40900AI && c.ID() != types.CollationUTF8MB40900AS &&
				c.ID() != types.CollationUTF8MB40900B
		if cs := c.Charset(); !seen[c.Name()] && (language || cs.MaxLen() == 1 && cs > types.CharsetUTF8MB4) {
			t.Errorf("no pairs of %s", c.Name())
		}
	}
}
