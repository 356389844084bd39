package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// HeaderSize is the size of the fixed part of a clustered record's value:
// transaction id, roll pointer, row version.
const HeaderSize = 14

const (
	offTrx     = 0
	offRoll    = 6
	offVersion = 13
)

// MinExternal is the length that a value must exceed to be put off-page, in bytes.
const MinExternal = 255

// extFlag in a variable column's end offset says that the column is off-page.
const extFlag = 0x8000

// Schema is a table definition prepared for work on its records. It is immutable
// and safe for concurrent use.
type Schema struct {
	*Table
	Keys []*KeySchema // one for each index; Keys[0] is the clustered one
	// LocalPrefix gives for each column position how many bytes of an off-page
	// value are to stay in the row because an index is made from them. It is the type's
	// MaxBytes for a column that an index takes whole: its values are to stay in the row,
	// since to put one off-page would only make the row longer. A row for which that is too
	// much, or that was made before the index, keeps less.
	LocalPrefix []int

	// MayBeExternal tells by column position whether values can lie off-page.
	MayBeExternal []bool

	pkMax     int          // longest clustered key
	unbounded []*KeySchema // secondary indexes whose entries may exceed the limits

	layouts  []*Layout // by row version
	current  *Layout
	columnAt map[uint32]int
	// order is the column positions by column ID: the physical order, which a
	// change of the declared order does not touch.
	order []int
}

type locationKind uint8

const (
	locInitial  locationKind = iota // not stored in this version: the column's initial value
	locFixed                        // at a constant offset of the value
	locVariable                     // behind the end offsets
	locKey                          // in the clustered key
)

// location says where a column lies in a record of one row version. It is small
// because a table has one for each column and row version.
type location struct {
	kind     locationKind
	decode   decoder // fixed: how to read it without asking its type
	nullMask uint8   // bit of the column in the byte at nullAt; 0: never NULL
	nullAt   uint16
	off      uint16 // fixed: offset in the value; variable: ordinal; key: part
	size     uint16 // fixed: bytes
}

// Layout is the format of the rows of one version.
type Layout struct {
	columns  []location // by column position
	ends     int        // offset of the end offsets
	variable int        // number of variable columns
	data     int        // offset of the variable data
}

// KeyPart is a prepared part of an index.
type KeyPart struct {
	Column   int // column position
	Type     *types.Type
	Desc     bool
	Prefix   int
	Lossless bool // the key form gives the column back
	// Plain says that the key form is the stored form, with a marker before it if
	// the column may be NULL.
	Plain  bool
	size   int     // length of the key form if it is always the same, else 0
	max    int     // longest key form
	decode decoder // of a Plain part that is never NULL
}

// KeySchema is a prepared index.
type KeySchema struct {
	*Index
	Position int // in Table.Indexes
	Parts    []KeyPart
	// Kept are the column positions whose original bytes a secondary record
	// carries, in order.
	Kept []int
	// Covers tells by column position whether the index's records give the column
	// back without the row.
	Covers []bool

	offsets  []int // offset of each part in the key while all before have a fixed size, else -1
	maxParts int   // longest key form of all parts
	maxValue int   // longest value of a secondary record
	// checkSize says that maxParts and maxValue alone do not keep an entry within
	// the limits.
	checkSize bool
}

// Prepare validates the definition and works out the formats.
func Prepare(t *Table) (*Schema, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	s := &Schema{Table: t, columnAt: make(map[uint32]int, len(t.Columns)), LocalPrefix: make([]int, len(t.Columns))}
	for i := range t.Columns {
		s.columnAt[t.Columns[i].ID] = i
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(t.Columns[a].ID, t.Columns[b].ID) })
	for i := range t.Indexes {
		s.Keys = append(s.Keys, s.prepareKey(i))
	}
	s.MayBeExternal = make([]bool, len(t.Columns))
	for i := range t.Columns {
		_, fixed := types.FixedSize(&t.Columns[i].Type)
		_, inKey := s.keptInKey(i)
		s.MayBeExternal[i] = !fixed && !inKey && t.Columns[i].Type.MaxBytes() > MinExternal
	}
	if err := s.prepareLimits(); err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, err)
	}
	s.layouts = make([]*Layout, int(t.RowVersion)+1)
	for v := FirstRowVersion; v <= int(t.RowVersion); v++ {
		l, err := s.prepareLayout(uint8(v))
		if err != nil {
			return nil, fmt.Errorf("table %s.%s: row version %d: %w", t.Schema, t.Name, v, err)
		}
		s.layouts[v] = l
	}
	s.current = s.layouts[t.RowVersion]
	return s, nil
}

// Older is the schema by which rows are made in an older version; they are rows of s all the same.
//
// REQUIRES: FirstRowVersion <= version <= s.RowVersion.
func (s *Schema) Older(version uint8) *Schema {
	older, t := *s, *s.Table
	t.RowVersion = version
	older.Table, older.current = &t, s.layouts[version]
	return &older
}

// Stores reports whether rows that are made now hold a column; it may also lie in the key.
func (s *Schema) Stores(column int) bool { return s.current.columns[column].kind != locInitial }

// Position returns a column's position in Table.Columns, or -1.
func (s *Schema) Position(column uint32) int {
	if i, ok := s.columnAt[column]; ok {
		return i
	}
	return -1
}

func (s *Schema) prepareKey(i int) *KeySchema {
	ix := &s.Indexes[i]
	k := &KeySchema{Index: ix, Position: i, Covers: make([]bool, len(s.Columns))}
	at := 0
	for _, p := range ix.Parts {
		pos := s.columnAt[p.Column]
		t := &s.Columns[pos].Type
		part := KeyPart{Column: pos, Type: t, Desc: p.Desc, Prefix: int(p.Prefix)}
		part.Lossless = types.KeyLossless(t, part.Prefix)
		size, fixed := types.FixedSize(t)
		part.Plain = fixed && !p.Desc && part.Prefix == 0 && part.Lossless
		if fixed && t.NotNull && part.Prefix == 0 {
			part.size = size
		}
		part.max = types.MaxKeyLen(t, part.Prefix)
		if part.Plain && t.NotNull {
			part.decode = decoderOf(t)
		}
		k.offsets = append(k.offsets, at)
		if part.size == 0 || at < 0 {
			at = -1
		} else {
			at += part.size
		}
		k.Parts = append(k.Parts, part)
		if !fixed {
			s.LocalPrefix[pos] = max(s.LocalPrefix[pos], part.local(i))
		}
	}
	k.prepareCovering(s)
	return k
}

// local is how many bytes of an off-page value index i needs. The clustered index
// needs none, as its key is made when the row comes, but a column that it takes
// whole is kept by secondary records if its key form is lossy.
func (p *KeyPart) local(i int) int {
	switch {
	case p.Prefix == 0:
		return int(p.Type.MaxBytes())
	case i == 0:
		return 0
	}
	return p.Prefix * width(p.Type)
}

// width is the largest number of bytes that one unit of a key length stands for.
func width(t *types.Type) int {
	if t.IsText() {
		return t.Charset().MaxLen()
	}
	return 1
}

// prepareCovering works out which columns the index's records give back.
func (k *KeySchema) prepareCovering(s *Schema) {
	parts := k.Parts
	if k.Position > 0 {
		parts = append(append([]KeyPart(nil), parts...), s.Keys[0].Parts...)
	}
	for _, p := range parts {
		whole := p.Prefix == 0
		switch {
		case p.Lossless:
			k.Covers[p.Column] = true
		case whole && !k.Covers[p.Column] && k.Position > 0:
			k.Covers[p.Column] = true
			k.Kept = append(k.Kept, p.Column)
		}
	}
	if k.Position == 0 {
		for i := range k.Covers {
			k.Covers[i] = true
		}
	}
}

// keptInKey reports whether a row need not store the column since the clustered
// key gives it back.
func (s *Schema) keptInKey(pos int) (part int, ok bool) {
	for i := range s.Keys[0].Parts {
		if p := &s.Keys[0].Parts[i]; p.Column == pos && p.Lossless {
			return i, true
		}
	}
	return 0, false
}

func (s *Schema) prepareLayout(version uint8) (*Layout, error) {
	l := &Layout{columns: make([]location, len(s.Columns))}
	nullable, data := 0, HeaderSize
	for i := range s.Columns {
		c := &s.Columns[i]
		if _, ok := s.keptInKey(i); ok || !c.storedIn(version) {
			continue
		}
		if !c.Type.NotNull {
			nullable++
		}
		if size, ok := types.FixedSize(&c.Type); ok {
			data += size
		} else {
			data += 2
		}
	}
	l.data = data + (nullable+7)/8
	if l.data > MaxInlineRow {
		return nil, fmt.Errorf("%w: the fixed part has %d bytes", ErrRowTooLarge, l.data)
	}
	at, bit := HeaderSize+(nullable+7)/8, 0
	for _, i := range s.order {
		c, loc := &s.Columns[i], &l.columns[i]
		if !c.storedIn(version) {
			continue // locInitial
		}
		if part, ok := s.keptInKey(i); ok {
			loc.kind, loc.off = locKey, uint16(part)
			continue
		}
		if !c.Type.NotNull {
			loc.nullAt, loc.nullMask = uint16(HeaderSize+bit/8), 1<<(bit%8)
			bit++
		}
		if size, ok := types.FixedSize(&c.Type); ok {
			loc.kind, loc.off, loc.size, loc.decode = locFixed, uint16(at), uint16(size), decoderOf(&c.Type)
			at += size
		} else {
			loc.kind, loc.off = locVariable, uint16(l.variable)
			l.variable++
		}
	}
	l.ends = at
	return l, nil
}

// storedIn reports whether rows of the version hold the column.
func (c *Column) storedIn(version uint8) bool {
	return c.AddedIn <= version && (c.DroppedIn == 0 || version < c.DroppedIn)
}

// layout returns the format of rows of the version.
func (s *Schema) layout(version uint8) (*Layout, error) {
	if int(version) >= len(s.layouts) || s.layouts[version] == nil {
		return nil, fmt.Errorf("%w: table %s.%s has no row version %d", ErrCorrupt, s.Table.Schema, s.Name, version)
	}
	return s.layouts[version], nil
}
