package main

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

// An eastAsian is what testdata/eastasian_weights.txt says of one collation.
type eastAsian struct {
	name  string
	bytes []byte // pairs of a byte and its weight
	order []byte // codes in their order
}

// encodeEastAsian packs the lists into three blocks: all but orders, the order of gbk, and the code points that weigh as others in
// gb18030.
func encodeEastAsian(dir string) ([]byte, error) {
	var all []*eastAsian
	err := eachLine(filepath.Join(dir, "eastasian_weights.txt"), func(line string) error {
		f := strings.Fields(line)
		if f[0] == "collation" {
			all = append(all, &eastAsian{name: f[1]})
			return nil
		}
		return all[len(all)-1].line(f)
	})
	if err != nil {
		return nil, err
	}
	var tables, orders []byte
	for _, c := range all {
		tables = append(append(tables, byte(len(c.name))), c.name...)
		tables = append(append(tables, byte(len(c.bytes)/2)), c.bytes...)
		orders = append(orders, c.order...)
	}
	folds, err := encodeGeneral(filepath.Join(dir, "gb18030_folds.txt"))
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, block := range [][]byte{tables, orders, folds} {
		if out, err = appendBlock(out, block); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *eastAsian) line(f []string) error {
	codes := make([]uint16, len(f)-1)
	for i, s := range f[1:] {
		w, err := parseHex(s, 16)
		if err != nil {
			return err
		}
		codes[i] = uint16(w)
	}
	switch f[0] {
	case "byte":
		c.bytes = append(c.bytes, byte(codes[0]), byte(codes[1]))
	case "order":
		for _, code := range codes {
			c.order = binary.BigEndian.AppendUint16(c.order, code)
		}
	default:
		return fmt.Errorf("what is %s?", f[0])
	}
	return nil
}
