package types

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCutUTF8: a text ends between characters, and one that is no UTF-8 loses no more than a character's length.
func TestCutUTF8(t *testing.T) {
	for _, text := range []string{"", "abcdefgh", "aé€😀é€😀", "€€€€", "😀😀😀"} {
		for n := range len(text) + 3 {
			s := CutUTF8(text, n)
			if !utf8.ValidString(s) || !strings.HasPrefix(text, s) || len(s) > n || len(s) < min(n, len(text))-utf8.UTFMax+1 {
				t.Errorf("%q at %d: %q", text, n, s)
			}
		}
	}
	if s := CutUTF8(strings.Repeat("\x80", 100), 50); len(s) != 50-utf8.UTFMax {
		t.Errorf("%d bytes of what is no character", len(s))
	}
}

// TestLongestText: no text of a value is longer, also in UTF-8 of four bytes for each byte.
func TestLongestText(t *testing.T) {
	members := []string{strings.Repeat("a", 300), strings.Repeat("b", 400)}
	for _, c := range []struct {
		t    Type
		v    Value
		most int
	}{
		{Type{Kind: KindDouble, Precision: 255, Scale: 30}, NewDouble(-1.7976931348623157e308), 350},
		{Type{Kind: KindBigInt, Unsigned: true, ZeroFill: true, Length: 255}, NewUint(1), 350},
		{Type{Kind: KindEnum, Collation: testCI, Members: members}, NewUint(2), 4 * 400},
		{Type{Kind: KindSet, Collation: testCI, Members: members}, NewUint(3), 4 * 702},
	} {
		text := AppendText(nil, c.v, &c.t, nil)
		if most := c.t.LongestText(); most != c.most || len(text) > most || c.t.Members != nil && 4*len(text) > most {
			t.Errorf("%v: %d bytes at most, and not %d; %d are there", c.t.Kind, most, c.most, len(text))
		}
	}
}
