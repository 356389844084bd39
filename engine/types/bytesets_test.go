package types

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestByteSets compares the sets of one byte a character with MySQL's: each byte's code point, the way back, and cases.
func TestByteSets(t *testing.T) {
	file, err := os.Open("testdata/bytesets.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sets, cs, block, at := 0, CharsetBinary, "", 0
	for sc := bufio.NewScanner(file); sc.Scan(); {
		f := strings.Fields(sc.Text())
		switch {
		case len(f) == 0 || f[0] == "#":
			continue
		case f[0] == "charset":
			var ok bool
			if cs, ok = CharsetByName(f[1]); !ok || cs.String() != f[1] || cs.MaxLen() != 1 {
				t.Fatalf("%s is no set of one byte", f[1])
			}
			if id, _ := strconv.Atoi(f[2]); cs.DefaultCollation() != CollationID(id) {
				t.Errorf("%s: default collation %d", cs, cs.DefaultCollation())
			}
			if id, _ := strconv.Atoi(f[3]); cs.BinaryCollation() != CollationID(id) {
				t.Errorf("%s: _bin is %d", cs, cs.BinaryCollation())
			}
			sets++
		case f[0] == "collation":
			cs = CharsetBinary // cases of its own are the collation's
		case len(f) < 16:
			block, at = f[0], 0
		default:
			for _, s := range f {
				if cs != CharsetBinary {
					checkByte(t, cs, block, byte(at), s)
				}
				at++
			}
		}
	}
	if sets < 24 {
		t.Errorf("only %d sets", sets)
	}
}

func checkByte(t *testing.T, cs Charset, block string, b byte, want string) {
	upper, lower := cs.Cases()
	v, _ := strconv.ParseUint(want, 16, 16)
	switch block {
	case "upper":
		if upper[b] != byte(v) {
			t.Errorf("%s: upper of %02X is %02X, expected %s", cs, b, upper[b], want)
		}
	case "lower":
		if lower[b] != byte(v) {
			t.Errorf("%s: lower of %02X is %02X, expected %s", cs, b, lower[b], want)
		}
	case "unicode":
		out, bad := Convert(nil, []byte{b}, cs, CharsetUTF8MB4)
		if want == "----" {
			if bad != 0 || string(out) != "?" {
				t.Errorf("%s: %02X is %q", cs, b, out)
			}
			return
		}
		if bad >= 0 || string(out) != string(rune(v)) {
			t.Errorf("%s: %02X is %q, expected U+%s", cs, b, out, want)
		}
		// Several bytes may stand for one code point: then the way back is another one's.
		if back, bad := Convert(nil, out, CharsetUTF8MB4, cs); bad >= 0 || back[0] != b {
			again, _ := Convert(nil, back, cs, CharsetUTF8MB4)
			if string(again) != string(out) || v != 0xfffd && back[0] >= 0x80 {
				t.Errorf("%s: U+%s became %X", cs, want, back)
			}
		}
	}
}
