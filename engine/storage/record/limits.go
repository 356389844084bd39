package record

import (
	"errors"
	"fmt"
	"math"

	"github.com/triremedb/trireme/engine/types"
)

// What one entry of an index may take, in bytes. They are package btree's limits,
// which lies above.
const (
	// MaxEntryKey is the longest key: of a clustered record the primary key's form,
	// of a secondary record the index's parts and the clustered key.
	MaxEntryKey = 3900
	// MaxEntry is the largest sum of key and value: two entries fit a page.
	MaxEntry = 8000
	// MaxInlineRow is the largest value of a clustered record. Where the key takes
	// more than freeKey the value has that much less.
	MaxInlineRow = 7800

	freeKey = MaxEntry - MaxInlineRow

	// MaxUndo is the longest undo record, package undo's limit. It holds a clustered key
	// with an old row, or with an index entry, or with all of a row's references to off-page
	// values; of what a deletion leaves behind there may be several.
	MaxUndo = 15 << 10
)

// ErrRowTooLarge says that a row does not fit a page even with its long values
// off-page (MySQL's error 1118).
var ErrRowTooLarge = errors.New("record: row size too large")

// ErrKeyTooLong says that an index is declared with more than MaxKeyBytes, or that
// an entry of it would exceed MaxEntryKey or MaxEntry (MySQL's error 1071).
var ErrKeyTooLong = errors.New("record: key too long")

// prepareLimits works out which indexes can get entries beyond the limits, and
// refuses those that could have no others.
func (s *Schema) prepareLimits() error {
	least := 0
	for _, k := range s.Keys {
		k.maxParts, k.maxValue = 0, 2
		parts := 0
		for i := range k.Parts {
			p := &k.Parts[i]
			k.maxParts = addLimit(k.maxParts, p.max)
			parts += p.size
		}
		for _, c := range k.Kept {
			t := &s.Columns[c].Type
			size, fixed := types.FixedSize(t)
			if !fixed {
				size = int(t.MaxBytes())
			}
			k.maxValue = addLimit(k.maxValue, 2+size)
		}
		if least+parts > MaxEntryKey {
			return fmt.Errorf("%w: index %s has keys of %d bytes or more with the primary key, at most %d are possible",
				ErrKeyTooLong, k.Name, least+parts, MaxEntryKey)
		}
		if k.Position == 0 {
			least, s.pkMax = parts, min(k.maxParts, MaxEntryKey)
			k.checkSize = k.maxParts > freeKey
			continue
		}
		key := addLimit(k.maxParts, s.pkMax)
		k.checkSize = key > MaxEntryKey || key+k.maxValue > MaxEntry
		if k.checkSize {
			s.unbounded = append(s.unbounded, k)
		}
	}
	return nil
}

// addLimit adds lengths of which one may be math.MaxInt, for no limit.
func addLimit(a, b int) int {
	if a > math.MaxInt32 || b > math.MaxInt32 {
		return math.MaxInt32
	}
	return a + b
}

// bound is an upper bound for the part's key form of a value that has n bytes in
// stored form. The true length is often a small fraction of it.
func (p *KeyPart) bound(n int) int {
	if p.max <= freeKey {
		return p.max
	}
	if p.Prefix > 0 {
		n = min(n, p.Prefix*width(p.Type))
	}
	if p.Type.IsText() {
		n = types.CollationByID(p.Type.Collation).MaxKeyLen(n)
	}
	return min(p.max, 2*n+2)
}

// checkNewRow checks that the row dst[start:], made from values, fits its trees:
// the clustered record and every secondary one. Nearly always bounds on the lengths
// tell so; else the keys are made, behind the row in dst.
func (s *Schema) checkNewRow(dst []byte, start int, values []types.Value, external []External) ([]byte, error) {
	pk := s.pkMax
	if s.Keys[0].checkSize {
		pk = s.boundOf(s.Keys[0], values, external)
	}
	sure := len(dst)-start+pk <= MaxEntry && pk <= MaxEntryKey
	for _, k := range s.unbounded {
		if !sure {
			break
		}
		key, value := pk+s.boundOf(k, values, external), 2
		for _, c := range k.Kept {
			value += 10 + storedLen(values[c], external, c)
		}
		sure = key <= MaxEntryKey && key+value <= MaxEntry
	}
	if sure {
		return dst, nil
	}
	end := len(dst)
	dst, err := s.AppendRowKey(dst, values)
	if err != nil {
		return dst[:start], err
	}
	if err = checkRecord(end-start, dst[end:]); err != nil {
		return dst[:start], err
	}
	return s.checkEntries(dst, start, end, dst[end:], func(dst []byte, column int, _ []byte, n int) ([]byte, error) {
		b := values[column].Bytes()
		if len(b) < n {
			return dst, ErrExternal
		}
		return append(dst, b[:n]...), nil
	}, s.unbounded)
}

// boundOf bounds the key form of all parts of an index for the values.
func (s *Schema) boundOf(k *KeySchema, values []types.Value, external []External) int {
	n := 0
	for i := range k.Parts {
		p := &k.Parts[i]
		n += p.bound(storedLen(values[p.Column], external, p.Column))
	}
	return n
}

// storedLen is the length of a string in stored form; of other values it is 0.
func storedLen(v types.Value, external []External, column int) int {
	if external != nil && len(external[column]) >= LOBRefSize {
		return externalLen(external[column])
	}
	return len(v.Bytes())
}

// checkRecord checks that a clustered record fits its tree.
func checkRecord(size int, key []byte) error {
	if size+len(key) > MaxEntry {
		return fmt.Errorf("%w: %d bytes with a key of %d", ErrRowTooLarge, size, len(key))
	}
	return nil
}

// checkEntries checks that the entries of the row dst[start:end] with the key fit the indexes. It
// uses dst behind the row, and returns it as it was. prefixes is as of [Row].
func (s *Schema) checkEntries(dst []byte, start, end int, key []byte, prefixes PrefixReader, indexes []*KeySchema) ([]byte, error) {
	if len(indexes) == 0 {
		return dst[:end], nil
	}
	row, err := s.Row(key, dst[start:end:end])
	if err != nil {
		return dst[:start], err
	}
	row.Prefixes = prefixes
	at := len(dst)
	for _, k := range indexes {
		if dst, _, _, _, err = s.AppendSecondary(dst[:at], k, row, nil); err != nil {
			return dst[:start], err
		}
	}
	return dst[:end], nil
}

// checkEntry checks the lengths of a secondary record.
func (s *Schema) checkEntry(k *KeySchema, row Row, keyLen int) error {
	if keyLen > MaxEntryKey {
		return fmt.Errorf("%w: key of %d bytes in index %s, at most %d are possible", ErrKeyTooLong, keyLen, k.Name, MaxEntryKey)
	}
	size := keyLen + 2
	for _, c := range k.Kept {
		f, err := row.Field(c)
		if err != nil {
			return err
		}
		size += 2 + len(f.Bytes)
		if f.External {
			size += externalLen(f.Bytes) - len(f.Bytes)
		}
	}
	if size > MaxEntry {
		return fmt.Errorf("%w: entry of %d bytes in index %s, at most %d are possible", ErrKeyTooLong, size, k.Name, MaxEntry)
	}
	return nil
}
