package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

const (
	pageCount  = 0x110000 >> 8
	unassigned = 0xFFFFFFFF // entry of a code point whose weights are computed
	expansion  = 1 << 7     // entry refers to a run of elements: count in bits 0-6, offset in bits 8-31
)

// An element is one collation element: three weights, most significant level first.
type element struct{ primary, secondary, tertiary uint32 }

// readAllkeys returns the elements of every single code point listed. Contractions are left out: MySQL's utf8mb4_0900
// collations weigh each character on its own.
func readAllkeys(path string) (map[uint32][]element, error) {
	table := make(map[uint32][]element)
	err := eachLine(path, func(line string) error {
		if strings.HasPrefix(line, "@") {
			return nil
		}
		left, right, ok := strings.Cut(line, ";")
		if !ok {
			return fmt.Errorf("no semicolon in %q", line)
		}
		points := strings.Fields(left)
		if len(points) != 1 {
			return nil
		}
		cp, err := parseHex(points[0], 32)
		if err != nil {
			return err
		}
		table[cp], err = parseElements(right)
		return err
	})
	return table, err
}

// parseElements parses "[.1C47.0020.0002][*0209.0020.0002]". The marker of variable elements is not used: the collations
// take the non-ignorable option.
func parseElements(s string) ([]element, error) {
	var elements []element
	for _, part := range strings.Split(s, "[") {
		part = strings.TrimRight(strings.TrimSpace(part), "]")
		if part == "" {
			continue
		}
		weights := strings.Split(part[1:], ".")
		if len(weights) < 3 {
			return nil, fmt.Errorf("element %q has fewer than three weights", part)
		}
		var w [3]uint32
		for i := range w {
			var err error
			if w[i], err = parseHex(weights[i], 16); err != nil {
				return nil, err
			}
		}
		elements = append(elements, element{w[0], w[1], w[2]})
	}
	return elements, nil
}

// encoder collects the pages and expansions of the output.
type encoder struct {
	ranks      map[uint32]uint32 // secondary weight to its rank among all secondary weights
	expansions []uint32
	offsets    map[string]uint32 // expansions already written
}

// encodeUCA packs the table: a header of three counts, an index from page to block, blocks of 256 entries, and the
// elements of expansions.
func encodeUCA(table map[uint32][]element) ([]byte, error) {
	e := &encoder{ranks: rankSecondaries(table), offsets: make(map[string]uint32)}
	if len(e.ranks) > 255 {
		return nil, fmt.Errorf("%d secondary weights do not fit a byte", len(e.ranks))
	}
	var index []uint16
	var blocks []byte
	known := make(map[string]uint16)
	for page := uint32(0); page < pageCount; page++ {
		block, err := e.block(table, page)
		if err != nil {
			return nil, err
		}
		no, ok := known[string(block)]
		if !ok {
			no = uint16(len(known))
			known[string(block)] = no
			blocks = append(blocks, block...)
		}
		index = append(index, no)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(known)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(e.expansions)))
	out = binary.LittleEndian.AppendUint32(out, e.ranks[0x20])
	for _, no := range index {
		out = binary.LittleEndian.AppendUint16(out, no)
	}
	out = append(out, blocks...)
	for _, ce := range e.expansions {
		out = binary.LittleEndian.AppendUint32(out, ce)
	}
	return out, nil
}

// rankSecondaries numbers the secondary weights in order from 1, so that each fits a byte.
func rankSecondaries(table map[uint32][]element) map[uint32]uint32 {
	seen := map[uint32]bool{0x20: true}
	for _, elements := range table {
		for _, el := range elements {
			seen[el.secondary] = true
		}
	}
	delete(seen, 0)
	var sorted []uint32
	for w := range seen {
		sorted = append(sorted, w)
	}
	slices.Sort(sorted)
	ranks := map[uint32]uint32{0: 0}
	for i, w := range sorted {
		ranks[w] = uint32(i + 1)
	}
	return ranks
}

func (e *encoder) block(table map[uint32][]element, page uint32) ([]byte, error) {
	var block []byte
	for cp := page << 8; cp < (page+1)<<8; cp++ {
		elements, ok := table[cp]
		entry := uint32(unassigned)
		if ok {
			var err error
			if entry, err = e.entry(elements); err != nil {
				return nil, fmt.Errorf("code point %04X: %w", cp, err)
			}
		}
		block = binary.LittleEndian.AppendUint32(block, entry)
	}
	return block, nil
}

// entry packs the elements of one code point: nothing and one element in place, more as a reference.
func (e *encoder) entry(elements []element) (uint32, error) {
	var packed []uint32
	var raw []byte
	for _, el := range elements {
		ce, err := e.pack(el)
		if err != nil {
			return 0, err
		}
		if ce != 0 {
			packed = append(packed, ce)
			raw = binary.LittleEndian.AppendUint32(raw, ce)
		}
	}
	switch {
	case len(packed) == 0:
		return 0, nil
	case len(packed) == 1:
		return packed[0], nil
	case len(packed) >= expansion:
		return 0, fmt.Errorf("%d elements", len(packed))
	}
	offset, ok := e.offsets[string(raw)]
	if !ok {
		offset = uint32(len(e.expansions))
		e.offsets[string(raw)] = offset
		e.expansions = append(e.expansions, packed...)
	}
	return offset<<8 | expansion | uint32(len(packed)), nil
}

// pack puts an element into 32 bits: primary in 16-31, rank of the secondary in 8-15, tertiary in 0-4. Package collation
// relies on the two properties checked here.
func (e *encoder) pack(el element) (uint32, error) {
	if (el.secondary == 0) != (el.tertiary == 0) {
		return 0, fmt.Errorf("element %04X has only one of secondary and tertiary weight", el)
	}
	if el.tertiary > 0x1F {
		return 0, fmt.Errorf("element %04X has a large tertiary weight", el)
	}
	if el.primary == 0 && el.secondary != 0 && el.secondary <= 0x20 {
		return 0, fmt.Errorf("element %04X: accent not above the common weight", el)
	}
	return el.primary<<16 | e.ranks[el.secondary]<<8 | el.tertiary, nil
}
