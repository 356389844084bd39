package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A language is what testdata/tailorings.txt says of one.
type language struct {
	name   string
	ids    [2]uint16
	upper  []byte
	shifts []byte
	after  [3]uint16 // the range that is sorted behind others, and the weight before it
	han    uint16    // the weight of the first ideograph, 0: as in the default table
	within bool      // ideographs within other characters have these weights too
	lift   bool      // there are secondary weights below the common one
	chars  []byte
	count  int
}

// encodeTailorings packs the list: for each language its name, the numbers of its two collations, the tertiary weights that come
// first, the shifts, and the characters with their elements as package collation has them. ranks are those of the secondary
// weights; greater ones, which only languages have, follow.
func encodeTailorings(path string, ranks map[uint32]uint32) ([]byte, error) {
	var all []*language
	next := uint32(len(ranks)) // 0 is among them
	rank := func(w uint32) uint32 {
		if _, ok := ranks[w]; !ok {
			ranks[w] = next
			next++
		}
		return ranks[w]
	}
	for w := uint32(0x116); w <= 0x11d; w++ {
		rank(w)
	}
	err := eachLine(path, func(line string) error {
		f := strings.Fields(line)
		if f[0] == "language" {
			l := &language{name: f[1]}
			for i := range l.ids {
				id, err := strconv.ParseUint(f[2+i], 10, 16)
				if err != nil {
					return err
				}
				l.ids[i] = uint16(id)
			}
			all = append(all, l)
			return nil
		}
		return all[len(all)-1].line(f, ranks)
	})
	if err != nil {
		return nil, err
	}
	out := []byte{byte(len(all))}
	for _, l := range all {
		out = append(append(out, byte(len(l.name))), l.name...)
		out = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(out, l.ids[0]), l.ids[1])
		out = append(append(out, byte(len(l.upper))), l.upper...)
		out = append(append(out, byte(len(l.shifts)/6)), l.shifts...)
		for _, w := range append(l.after[:], l.han, bit(l.within)|bit(l.lift)<<1) {
			out = binary.LittleEndian.AppendUint16(out, w)
		}
		out = append(binary.LittleEndian.AppendUint16(out, uint16(l.count)), l.chars...)
	}
	return out, nil
}

func (l *language) line(f []string, ranks map[uint32]uint32) error {
	switch f[0] {
	case "upper":
		for _, s := range f[1:] {
			w, err := parseHex(s, 8)
			if err != nil {
				return err
			}
			l.upper = append(l.upper, byte(w))
		}
		return nil
	case "lift":
		l.lift = true
		return nil
	case "after", "han":
		var w [3]uint16
		for i, s := range f[1:] {
			v, err := parseHex(s, 16)
			if err != nil {
				return err
			}
			w[i] = uint16(v)
		}
		if f[0] == "after" {
			l.after = w
		} else {
			l.han, l.within = w[0], w[1] != 0
		}
		return nil
	case "shift":
		for _, s := range f[1:3] {
			w, err := parseHex(s, 16)
			if err != nil {
				return err
			}
			l.shifts = binary.LittleEndian.AppendUint16(l.shifts, uint16(w))
		}
		by, err := strconv.Atoi(f[3])
		l.shifts = binary.LittleEndian.AppendUint16(l.shifts, uint16(by))
		return err
	}
	var text []byte
	for _, s := range strings.Split(f[0], "+") {
		r, err := parseHex(s, 32)
		if err != nil {
			return err
		}
		text = utf8.AppendRune(text, rune(r))
	}
	l.count++
	l.chars = append(append(l.chars, byte(len(text)), byte(len(f)-1)), text...)
	for _, s := range f[1:] {
		var w [3]uint32
		for i, part := range strings.Split(s, ".") {
			var err error
			if w[i], err = parseHex(part, 16); err != nil {
				return err
			}
		}
		rank, ok := ranks[w[1]]
		if l.lift && w[1] != 0 {
			if rank++; w[1] < 0x20 {
				rank, ok = 1, true
			}
		}
		if !ok {
			return fmt.Errorf("secondary weight %04X", w[1])
		}
		l.chars = binary.LittleEndian.AppendUint32(l.chars, w[0]<<16|rank<<8|packTertiary(w[2]))
	}
	return nil
}

func bit(set bool) uint16 {
	if set {
		return 1
	}
	return 0
}

// encodeHan packs the orders of ideographs: UTF-16 of each, FFFF for none, compressed.
func encodeHan(paths ...string) ([]byte, error) {
	var out []byte
	for _, path := range paths {
		var order []byte
		list := func(line string) error {
			for _, r := range line {
				if r == '-' {
					r = 0xffff
				}
				for _, u := range utf16.AppendRune(nil, r) {
					order = binary.BigEndian.AppendUint16(order, u)
				}
			}
			return nil
		}
		err := eachLine(path, list)
		if err == nil {
			out, err = appendBlock(out, order)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// packTertiary puts the tertiary weights of collations in which capitals come first into a byte: 1xx stays below 40, 3xx is above 80.
func packTertiary(w uint32) uint32 {
	if w >= 0x300 {
		return 0x80 | w&0x3f
	}
	return w & 0x3f
}
