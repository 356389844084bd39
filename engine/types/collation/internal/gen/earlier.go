package main

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An earlierVersion is what testdata/uca_earlier.txt says of one version: in the order of code points the number of weights of
// each, and the weights.
type earlierVersion struct {
	limit   uint32 // the number of code points that have weights
	runs    []byte // the first code point, and how many are listed without a gap, four bytes and two
	last    uint32 // the end of the last run
	counts  []byte
	weights []byte
}

// encodeEarlier packs the list into three blocks, each compressed and with its length before it: the two versions, and the
// languages.
func encodeEarlier(path string) ([]byte, error) {
	var versions []*earlierVersion
	var languages []byte
	inLanguage, count := false, 0 // where the number of the language's entries is
	err := eachLine(path, func(line string) error {
		f := strings.Fields(line)
		switch {
		case f[0] == "version":
			limit, err := parseHex(f[2], 32)
			versions = append(versions, &earlierVersion{limit: limit})
			return err
		case f[0] == "language":
			inLanguage = true
			languages = append(append(languages, byte(len(f[1]))), f[1]...)
			count = len(languages)
			languages = append(languages, 0)
			return nil
		case inLanguage:
			languages[count]++
			var text []byte
			for _, s := range strings.Split(f[0], "+") {
				r, err := parseHex(s, 32)
				if err != nil {
					return err
				}
				text = utf8.AppendRune(text, rune(r))
			}
			w, err := earlierWeights(f[1])
			languages = append(append(languages, byte(len(text)), byte(len(w)/2)), text...)
			languages = append(languages, w...)
			return err
		}
		return versions[len(versions)-1].line(f)
	})
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, v := range versions {
		block := binary.BigEndian.AppendUint32(nil, v.limit)
		block = binary.BigEndian.AppendUint16(block, uint16(len(v.runs)/earlierRun))
		block = append(append(append(block, v.runs...), v.counts...), v.weights...)
		if out, err = appendBlock(out, block); err != nil {
			return nil, err
		}
	}
	return appendBlock(out, languages)
}

// earlierRun is the length of a run's description.
const earlierRun = 6

func (v *earlierVersion) line(f []string) error {
	first, err := parseHex(f[0], 32)
	if err != nil {
		return err
	}
	if first != v.last || len(v.runs) == 0 {
		v.runs = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(v.runs, first), 0)
		v.last = first
	}
	n := v.runs[len(v.runs)-2:]
	binary.BigEndian.PutUint16(n, binary.BigEndian.Uint16(n)+uint16(len(f)-1))
	v.last += uint32(len(f) - 1)
	for _, s := range f[1:] {
		w, err := earlierWeights(s)
		if err != nil {
			return err
		}
		v.counts = append(v.counts, byte(len(w)/2))
		v.weights = append(v.weights, w...)
	}
	return nil
}

// earlierWeights reads weights with points between them, - for none.
func earlierWeights(s string) (out []byte, err error) {
	if s == "-" {
		return nil, nil
	}
	for _, part := range strings.Split(s, ".") {
		w, err := parseHex(part, 16)
		if err != nil {
			return nil, fmt.Errorf("weights %s: %w", s, err)
		}
		out = binary.BigEndian.AppendUint16(out, uint16(w))
	}
	return out, nil
}

// appendBlock appends a compressed block with its length before it.
func appendBlock(out, block []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(block); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint32(out, uint32(packed.Len())), packed.Bytes()...), nil
}
