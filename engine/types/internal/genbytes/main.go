// Command genbytes writes the tables of character sets of one byte a character that packages types and collation embed.
//
// It reads the list of code points, cases and weights kept in the testdata of package types. It is run by hand through go
// generate.
//
// Usage:
//
//	go run ./internal/genbytes -from testdata/bytesets.txt -sets bytesets.bin -weights collation/byteweights.bin
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
)

func main() {
	from := flag.String("from", "testdata/bytesets.txt", "the list")
	sets := flag.String("sets", "bytesets.bin", "the table of code points and cases to write")
	weights := flag.String("weights", "collation/byteweights.bin", "the table of weights to write")
	flag.Parse()
	if err := run(*from, *sets, *weights); err != nil {
		log.Fatal("genbytes: ", err)
	}
}

// table is a set or a collation: its name and numbers, and its blocks of 256 values.
type table struct {
	name   string
	ids    []uint16
	blocks map[string][]uint16
}

const noRune = 0xffff

func run(from, sets, weights string) error {
	charsets, collations, err := read(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sets, encodeSets(charsets), 0o644); err != nil {
		return err
	}
	return os.WriteFile(weights, encodeWeights(collations), 0o644)
}

// read returns the sets, and the collations.
func read(path string) (charsets, collations []*table, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	var t *table
	block := ""
	sc := bufio.NewScanner(file)
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#":
			continue
		case f[0] == "charset" || f[0] == "collation":
			t = &table{name: f[1], blocks: map[string][]uint16{}}
			for _, s := range f[2:] {
				id, err := strconv.ParseUint(s, 10, 16)
				if err != nil {
					return nil, nil, fmt.Errorf("%s:%d: %w", path, n, err)
				}
				t.ids = append(t.ids, uint16(id))
			}
			if f[0] == "charset" {
				charsets = append(charsets, t)
			} else {
				collations = append(collations, t)
			}
			continue
		case len(f) < 16:
			block = line
			continue
		}
		for _, s := range f {
			v := uint64(noRune)
			if s != "----" {
				if v, err = strconv.ParseUint(s, 16, 16); err != nil {
					return nil, nil, fmt.Errorf("%s:%d: %w", path, n, err)
				}
			}
			t.blocks[block] = append(t.blocks[block], uint16(v))
		}
	}
	return charsets, collations, sc.Err()
}

// builtin is the set whose code points are in the code.
const builtin = "latin1"

// encodeSets writes each set as its name and numbers, the bytes from 80 on, and what of the others is not as in ASCII.
func encodeSets(charsets []*table) []byte {
	out := []byte{0}
	for _, t := range charsets {
		if t.name == builtin {
			continue
		}
		out[0]++
		out = append(append(out, byte(len(t.name))), t.name...)
		for _, id := range t.ids {
			out = binary.LittleEndian.AppendUint16(out, id)
		}
		runes, upper, lower := t.blocks["unicode"], t.blocks["upper"], t.blocks["lower"]
		for _, r := range runes[0x80:] {
			out = binary.LittleEndian.AppendUint16(out, r)
		}
		out = appendBytes(appendBytes(out, upper[0x80:]), lower[0x80:])
		at := len(out)
		out = append(out, 0)
		for c := range uint16(0x80) {
			s := string(rune(c))
			if runes[c] == c && upper[c] == uint16(strings.ToUpper(s)[0]) && lower[c] == uint16(strings.ToLower(s)[0]) {
				continue
			}
			out[at]++
			out = binary.LittleEndian.AppendUint16(append(out, byte(c)), runes[c])
			out = append(out, byte(upper[c]), byte(lower[c]))
		}
	}
	return out
}

// encodeWeights writes each collation as its number, name, and number of levels, and the levels: of each the bytes whose
// weights are not their own numbers, as runs. One with cases of its own has two levels more for them.
func encodeWeights(collations []*table) []byte {
	out := []byte{byte(len(collations))}
	for _, t := range collations {
		var levels [][]uint16
		for i := 1; t.blocks["level "+strconv.Itoa(i)] != nil; i++ {
			levels = append(levels, t.blocks["level "+strconv.Itoa(i)])
		}
		for _, name := range []string{"upper", "lower"} {
			if b := t.blocks[name]; b != nil {
				levels = append(levels, b)
			}
		}
		out = binary.LittleEndian.AppendUint16(out, t.ids[0])
		out = append(append(out, byte(len(t.name))), t.name...)
		out = append(out, byte(len(levels)))
		for _, l := range levels {
			out = appendLevel(out, l)
		}
	}
	return out
}

// appendLevel appends the number of runs, and each run as its first byte, its length less one, and its weights.
func appendLevel(out []byte, weights []uint16) []byte {
	at := len(out)
	out = append(out, 0)
	for c := 0; c < 256; {
		if weights[c] == uint16(c) {
			c++
			continue
		}
		end := c + 1 // of the run: a few equal ones in between cost less than a new run
		for i := end; i < 256 && i < end+3; i++ {
			if weights[i] != uint16(i) {
				end = i + 1
			}
		}
		out[at]++
		out = append(out, byte(c), byte(end-c-1))
		out = appendBytes(out, weights[c:end])
		c = end
	}
	return out
}

func appendBytes(out []byte, values []uint16) []byte {
	for _, v := range values {
		out = append(out, byte(v))
	}
	return out
}
