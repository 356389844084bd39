package types

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEastAsianSets holds the conversions of every code and of every code point of the basic plane against hashes of MySQL's.
func TestEastAsianSets(t *testing.T) {
	seen := 0
	for line := range strings.Lines(eastAsianList) {
		f := strings.Fields(line)
		if f[0] != "set" {
			continue
		}
		seen++
		cs, ok := CharsetByName(f[1])
		if !ok {
			t.Fatalf("there is no %s", f[1])
		}
		m := cs.multi()
		var decoded, encoded []string
		add := func(c []byte) {
			if r := m.decode(c); r >= 0 {
				decoded = append(decoded, fmt.Sprintf("%s %04X", hex.EncodeToString(c), r))
			}
		}
		for b := range 0x100 {
			if c := []byte{byte(b)}; m.length(c) == 1 {
				add(c)
			}
		}
		table := &eastTable{length: m.length}
		table.eachCode(add)
		slices.Sort(decoded)
		for r := rune(0); r < supplementary; r++ {
			if c, ok := m.encode(nil, r); ok && (r < surrogateMin || r > surrogateMax) {
				encoded = append(encoded, fmt.Sprintf("%04X %s", r, hex.EncodeToString(c)))
			}
		}
		for i, lines := range [][]string{decoded, encoded} {
			sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
			n, hash := strconv.Itoa(len(lines)), hex.EncodeToString(sum[:8])
			if n != f[4+2*i] || hash != f[5+2*i] {
				t.Errorf("%s: %s conversions with hash %s, expected %s with %s", f[1], n, hash, f[4+2*i], f[5+2*i])
			}
		}
	}
	if seen != 9 {
		t.Errorf("%d sets", seen)
	}
}

// TestWideSets holds the forms of Unicode against each other.
func TestWideSets(t *testing.T) {
	for _, name := range strings.Fields("ucs2 utf16 utf16le utf32 gb18030") {
		cs, _ := CharsetByName(name)
		for r := rune(0); r <= maxCodePoint; r++ {
			if r >= surrogateMin && r <= surrogateMax || r > 0x30000 && r%101 != 0 {
				continue
			}
			c, bad := Convert(nil, []byte(string(r)), CharsetUTF8MB4, cs)
			if name == "ucs2" && r >= supplementary {
				if bad != 0 || string(c) != "\x00?" {
					t.Fatalf("ucs2 has %X as % X", r, c)
				}
				continue
			}
			back, worse := Convert(nil, c, cs, CharsetUTF8MB4)
			if bad >= 0 || worse >= 0 || string(back) != string(r) || cs.CharLen(c) != len(c) || cs.InvalidAt(c) >= 0 {
				t.Fatalf("%s: U+%04X becomes % X and that %q", name, r, c, back)
			}
		}
	}
}

func TestMultiByteTexts(t *testing.T) {
	for _, c := range []struct {
		set, text      string // in hexadecimal
		count, invalid int
		last           int
	}{
		{"utf16", "0041D83DDE00", 2, -1, 4}, {"utf16", "0041D83D", 2, 2, 2}, {"utf16", "DE00D83D0041", 3, 0, 2}, {"utf16", "004100", 2, 2, 1},
		{"utf16le", "41003DD800DE", 2, -1, 4}, {"utf32", "000000410001F600", 2, -1, 4}, {"utf32", "00110000", 1, 0, 4}, {"utf32", "0000D800", 1, 0, 4},
		{"ucs2", "D83DDE00", 2, -1, 2}, {"gbk", "8140", 1, -1, 2}, {"gbk", "4140", 2, -1, 1}, {"gbk", "81404181", 3, 3, 1}, {"gbk", "8130", 2, 0, 1},
		{"gb18030", "81308130", 1, -1, 4}, {"gb18030", "813081", 3, 0, 1}, {"sjis", "B183415C", 3, -1, 1}, {"ujis", "8EB18FA2B7A4A2", 3, -1, 2},
		{"big5", "A440A4", 2, 2, 1}, {"euckr", "8141", 1, -1, 2}, {"gb2312", "8141", 2, 0, 1},
	} {
		s, _ := hex.DecodeString(c.text)
		cs, _ := CharsetByName(c.set)
		if n := cs.Count(s); n != c.count {
			t.Errorf("%s %s has %d characters, expected %d", c.set, c.text, n, c.count)
		}
		if at := cs.InvalidAt(s); at != c.invalid {
			t.Errorf("%s %s is malformed at %d, expected %d", c.set, c.text, at, c.invalid)
		}
		if n := cs.LastCharLen(s); n != c.last {
			t.Errorf("the last character of %s %s has %d bytes, expected %d", c.set, c.text, n, c.last)
		}
		if p := cs.Prefix(s, c.count-1); len(p) != len(s)-c.last {
			t.Errorf("%s %s without its last character is %x", c.set, c.text, p)
		}
	}
}
