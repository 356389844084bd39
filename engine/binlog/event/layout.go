package event

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/triremedb/trireme/engine/storage/record"
)

// RowImage is which columns events of rows hold, MySQL's binlog_row_image; the
// package comment has the table.
type RowImage uint8

const (
	ImageMinimal RowImage = iota
	ImageNoBlob
	ImageFull
)

var imageNames = [...]string{"MINIMAL", "NOBLOB", "FULL"}

// String returns the value of binlog_row_image.
func (i RowImage) String() string {
	if int(i) < len(imageNames) {
		return imageNames[i]
	}
	return fmt.Sprintf("RowImage(%d)", uint8(i))
}

// ParseRowImage is the inverse of String; it ignores case.
func ParseRowImage(s string) (i RowImage, ok bool) {
	for i, name := range imageNames {
		if strings.EqualFold(s, name) {
			return RowImage(i), true
		}
	}
	return 0, false
}

// Options are settings of the group that events depend on.
type Options struct {
	Image RowImage
	// FullMetadata is binlog_row_metadata=FULL: table maps hold names and more.
	FullMetadata bool
}

// maxTableID is the greatest table id that an event has room for.
const maxTableID = 1<<48 - 1

// Layout is a table's definition prepared for its events. It is immutable and safe
// for concurrent use.
type Layout struct {
	def     *record.Table
	opt     Options
	columns []column // in the order of events
	at      []int    // by position in record.Table.Columns: the event's column, or -1

	tableMap []byte // body of the TABLE_MAP event
	fixedMap int    // how much of it every member makes alike, whatever its options

	// Bitmaps of images, of width bytes each.
	width       int
	all         bitmap
	key         bitmap
	withoutLong bitmap // all but long columns that are not in the key
	before      bitmap // of updates and deletes
}

// NewLayout prepares a table's definition. It fails for a definition that is not
// valid and for a table number that events have no room for.
func NewLayout(def *record.Table, opt Options) (*Layout, error) {
	if err := def.Validate(); err != nil {
		return nil, err
	}
	switch {
	case int(opt.Image) >= len(imageNames):
		return nil, fmt.Errorf("binlog event: row image %v", opt.Image)
	case def.ID > maxTableID:
		return nil, fmt.Errorf("binlog event: table %s.%s has number %d, at most %d is possible", def.Schema, def.Name, def.ID, uint64(maxTableID))
	}
	l := &Layout{def: def, opt: opt, at: make([]int, len(def.Columns))}
	for i := range l.at {
		l.at[i] = -1
	}
	rowID := rowIDColumn(def)
	for pass := range 3 {
		for i := range def.Columns {
			c := &def.Columns[i]
			if c.DroppedIn == 0 && pass == placeOf(c, i == rowID) {
				if err := l.addColumn(i); err != nil {
					return nil, err
				}
			}
		}
	}
	l.prepareImages()
	l.prepareTableMap()
	return l, nil
}

// placeOf orders a table's columns: seen ones, hidden ones, the row id.
func placeOf(c *record.Column, rowID bool) int {
	switch {
	case rowID:
		return 2
	case c.Hidden:
		return 1
	}
	return 0
}

// rowIDColumn is the position of the row id of a table without a primary key, or -1.
func rowIDColumn(def *record.Table) int {
	if len(def.Indexes[0].Parts) != 1 {
		return -1
	}
	for i := range def.Columns {
		if c := &def.Columns[i]; c.ID == def.Indexes[0].Parts[0].Column && c.Hidden {
			return i
		}
	}
	return -1
}

func (l *Layout) addColumn(position int) error {
	def := &l.def.Columns[position]
	c, err := newColumn(&def.Type)
	if err != nil {
		return err
	}
	c.position, c.name, c.hidden = position, def.Name, def.Hidden || def.Invisible
	l.at[position] = len(l.columns)
	l.columns = append(l.columns, c)
	return nil
}

func (l *Layout) prepareImages() {
	n := len(l.columns)
	l.width = (n + 7) / 8
	l.all, l.key, l.withoutLong = newBitmap(n), newBitmap(n), newBitmap(n)
	for _, p := range l.def.Indexes[0].Parts {
		for i := range l.columns {
			if l.def.Columns[l.columns[i].position].ID == p.Column {
				l.key.set(i)
			}
		}
	}
	for i := range l.columns {
		l.all.set(i)
		if !l.columns[i].long || l.key.has(i) {
			l.withoutLong.set(i)
		}
	}
	l.before = [...]bitmap{l.key, l.withoutLong, l.all}[l.opt.Image]
}

// Table returns the definition that the layout is of.
func (l *Layout) Table() *record.Table { return l.def }

// Options returns the options that the layout was made with.
func (l *Layout) Options() Options { return l.opt }

// Columns returns the number of columns of the table's events.
func (l *Layout) Columns() int { return len(l.columns) }

// Position returns where the event's column i is in record.Table.Columns.
func (l *Layout) Position(i int) int { return l.columns[i].position }

// Column returns the event's column of a position in record.Table.Columns, or -1.
func (l *Layout) Column(position int) int { return l.at[position] }

// BeforeNeeds reports whether the images before updates and deletes hold the column at
// a position in record.Table.Columns.
func (l *Layout) BeforeNeeds(position int) bool {
	i := l.at[position]
	return i >= 0 && l.before.has(i)
}

// AfterNeeds reports whether the image after an update holds the column at a position
// in record.Table.Columns even if it is not changed.
func (l *Layout) AfterNeeds(position int) bool {
	i := l.at[position]
	return i >= 0 && (l.opt.Image == ImageFull || l.opt.Image == ImageNoBlob && l.withoutLong.has(i))
}

// AppendTableMap appends a TABLE_MAP event.
func (l *Layout) AppendTableMap(dst []byte, timestamp uint32) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeTableMap, timestamp, 0)
	return endEvent(append(dst, l.tableMap...), start)
}

// Matches reports whether a TABLE_MAP event is of the layout's table in its
// definition, so that the layout decodes the rows that follow.
func (l *Layout) Matches(e *Event) bool {
	return e.Type == TypeTableMap && len(e.Body) >= l.fixedMap && string(e.Body[:l.fixedMap]) == string(l.tableMap[:l.fixedMap])
}

// TableID returns the table's number in a TABLE_MAP or rows event. Error: ErrCorrupt.
func (e *Event) TableID() (uint64, error) {
	if e.Type != TypeTableMap && !e.Type.IsRows() || len(e.Body) < 8 {
		return 0, corrupt("%v event of %d bytes names no table", e.Type, e.Length)
	}
	return readLE(e.Body[:6]), nil
}

// TableMap is what a TABLE_MAP event says to those that have no layout.
type TableMap struct {
	ID           uint64
	Schema, Name string
	Columns      int
}

// ParseTableMap reads the beginning of a TABLE_MAP event. Error: ErrCorrupt.
func ParseTableMap(e *Event) (m TableMap, err error) {
	if e.Type != TypeTableMap || len(e.Body) < 8 {
		return m, corrupt("%v event of %d bytes describes no table", e.Type, e.Length)
	}
	m.ID = readLE(e.Body[:6])
	b := e.Body[8:]
	for _, name := range [...]*string{&m.Schema, &m.Name} {
		n, rest, ok := cutPacked(b)
		if !ok || n >= uint64(len(rest)) || rest[n] != 0 {
			return m, corrupt("%v event: name", e.Type)
		}
		*name, b = string(rest[:n]), rest[n+1:]
	}
	n, rest, ok := cutPacked(b)
	if !ok || n > uint64(len(rest)) {
		return m, corrupt("%v event: columns", e.Type)
	}
	m.Columns = int(n)
	return m, nil
}

// tableMapBitLengthExact says that BIT columns are as long as their metadata says.
const tableMapBitLengthExact = 1

// prepareTableMap makes the body of the table's TABLE_MAP event:
//
//	6, 2   table id, flags
//	       schema and table, each its length, itself and a 0
//	       number of columns; a type a column; metadata of the types, with its length
//	       bitmap of the columns that may be NULL
//	       optional metadata, see metadata.go
func (l *Layout) prepareTableMap() {
	b := appendLE(nil, l.def.ID, 6)
	b = binary.LittleEndian.AppendUint16(b, tableMapBitLengthExact)
	b = append(appendPackedString(b, l.def.Schema), 0)
	b = append(appendPackedString(b, l.def.Name), 0)
	b = appendPacked(b, uint64(len(l.columns)))
	var meta []byte
	nullable := newBitmap(len(l.columns))
	for i := range l.columns {
		c := &l.columns[i]
		b = append(b, c.code)
		meta = append(meta, c.meta[:c.metaSize]...)
		if !c.t.NotNull {
			nullable.set(i)
		}
	}
	b = appendPackedString(b, string(meta))
	b = append(b, nullable...)
	l.fixedMap = len(b)
	l.tableMap = l.appendMetadata(b)
}

// bitmap is a set of columns, the lowest bit of the first byte first.
type bitmap []byte

func newBitmap(n int) bitmap         { return make(bitmap, (n+7)/8) }
func (m bitmap) set(i int)           { m[i>>3] |= 1 << (i & 7) }
func (m bitmap) has(i int) bool      { return m[i>>3]&(1<<(i&7)) != 0 }
func (m bitmap) equal(o bitmap) bool { return string(m) == string(o) }
