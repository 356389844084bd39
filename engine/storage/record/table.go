package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// Limits of a table, as InnoDB's where it has one.
const (
	MaxColumns      = 1017
	MaxIndexes      = 65 // the clustered one included
	MaxIndexParts   = 16
	MaxRowVersion   = 255  // instant column changes before a rebuild is needed
	MaxKeyBytes     = 3072 // declared bytes of an index's parts, see MaxEntryKey for those of a value
	MaxIdentifier   = 64   // characters
	NoRowVersion    = 0
	FirstRowVersion = 1
)

// Column is a column of a table.
type Column struct {
	ID            uint32 // never used again in the table
	Name          string
	Type          types.Type // Type.NotNull says whether NULL is allowed
	Hidden        bool       // not to be seen by SQL: the row id of a table without a primary key, functional key parts
	Invisible     bool       // seen only when named
	AutoIncrement bool

	// AddedIn is the first row version that stores the column; rows of older
	// versions have Initial (in stored form, nil for NULL) instead.
	AddedIn uint8
	Initial []byte
	// DroppedIn is the row version from which on the column is not stored; 0 for a
	// column that exists.
	DroppedIn uint8

	// Attributes that the storage only keeps for the layer above.
	Default    string // text of the DEFAULT clause
	HasDefault bool
	Generated  string // expression of a stored generated column
	OnUpdate   string
	Comment    string
}

// Part is a column of an index.
type Part struct {
	Column uint32 // column ID
	Desc   bool
	Prefix uint32 // characters (bytes for binary types) of the column that count; 0: all
}

// Index is an index of a table. Indexes[0] of a table is the clustered one.
type Index struct {
	ID        uint64
	Name      string
	Unique    bool
	Invisible bool
	Building  bool // being built: changes go into it, nobody reads it
	Parts     []Part
	Comment   string
}

// ForeignKey is a reference from columns of this table to another one's key. The
// storage keeps the definition; the layer above enforces it.
type ForeignKey struct {
	ID         uint64
	Name       string
	Columns    []uint32 // column IDs
	RefSchema  string
	RefTable   string
	RefColumns []string
	OnDelete   uint8
	OnUpdate   uint8
}

// Table is the definition of a table. It is immutable once in use; a change makes
// a new one with a higher Version.
type Table struct {
	ID          uint64
	Schema      string
	Name        string
	Version     uint64   // rises with each change of the definition
	RowVersion  uint8    // version of rows written now
	NextColumn  uint32   // next column ID
	Columns     []Column // in order of declaration, dropped ones last
	Indexes     []Index
	ForeignKeys []ForeignKey
	Collation   types.CollationID
	Comment     string
	Options     map[string]string // attributes kept for the layer above
}

// Clone copies a definition so that nothing is shared that an edit may change.
func (t *Table) Clone() *Table {
	c := *t
	c.Columns = slices.Clone(t.Columns)
	c.Indexes = slices.Clone(t.Indexes)
	for i := range c.Indexes {
		c.Indexes[i].Parts = slices.Clone(c.Indexes[i].Parts)
	}
	c.ForeignKeys = slices.Clone(t.ForeignKeys)
	c.Options = maps.Clone(t.Options)
	return &c
}

// Column returns the column with the ID, or nil.
func (t *Table) Column(id uint32) *Column {
	for i := range t.Columns {
		if t.Columns[i].ID == id {
			return &t.Columns[i]
		}
	}
	return nil
}

// ColumnNamed returns the existing column with the name (exact spelling), or nil.
func (t *Table) ColumnNamed(name string) *Column {
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Name == name && c.DroppedIn == 0 {
			return c
		}
	}
	return nil
}

// Validate says what is wrong with the definition.
func (t *Table) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, fmt.Errorf(format, args...))
	}
	if len(t.Columns) == 0 || len(t.Columns) > MaxColumns {
		return bad("%d columns; 1 to %d are possible", len(t.Columns), MaxColumns)
	}
	if len(t.Indexes) == 0 || len(t.Indexes) > MaxIndexes {
		return bad("%d indexes; 1 to %d are possible", len(t.Indexes), MaxIndexes)
	}
	ids := map[uint32]bool{}
	names := map[string]bool{}
	for i := range t.Columns {
		c := &t.Columns[i]
		if err := c.Type.Validate(); err != nil {
			return bad("column %s: %w", c.Name, err)
		}
		if ids[c.ID] || c.ID >= t.NextColumn {
			return bad("column %s: number %d is taken or not below %d", c.Name, c.ID, t.NextColumn)
		}
		ids[c.ID] = true
		if c.DroppedIn == 0 && names[c.Name] {
			return bad("column %s is defined twice", c.Name)
		}
		names[c.Name] = names[c.Name] || c.DroppedIn == 0
		if err := t.validateVersions(c); err != nil {
			return bad("column %s: %w", c.Name, err)
		}
	}
	indexes := map[uint64]bool{}
	for i := range t.Indexes {
		if id := t.Indexes[i].ID; id != 0 && indexes[id] { // 0: not numbered yet
			return bad("index %s: number %d is taken", t.Indexes[i].Name, t.Indexes[i].ID)
		}
		indexes[t.Indexes[i].ID] = true
		if err := t.validateIndex(i); err != nil {
			return bad("index %s: %w", t.Indexes[i].Name, err)
		}
	}
	return nil
}

// validateVersions checks what rows of older versions have in place of the column.
func (t *Table) validateVersions(c *Column) error {
	if c.AddedIn < FirstRowVersion || c.AddedIn > t.RowVersion || c.DroppedIn > t.RowVersion ||
		c.DroppedIn != 0 && c.DroppedIn <= c.AddedIn {
		return fmt.Errorf("row versions %d to %d are not within %d", c.AddedIn, c.DroppedIn, t.RowVersion)
	}
	switch {
	case c.Initial != nil:
		if _, err := types.DecodeStored(c.Initial, &c.Type); err != nil {
			return fmt.Errorf("initial value: %w", err)
		}
	case c.AddedIn > FirstRowVersion && c.Type.NotNull:
		return errors.New("older rows would have NULL, which it does not allow")
	}
	return nil
}

func (t *Table) validateIndex(i int) error {
	ix := &t.Indexes[i]
	if len(ix.Parts) == 0 || len(ix.Parts) > MaxIndexParts {
		return fmt.Errorf("%d parts; 1 to %d are possible", len(ix.Parts), MaxIndexParts)
	}
	if i == 0 && !ix.Unique {
		return errors.New("the clustered index is not unique")
	}
	declared := int64(0)
	for _, p := range ix.Parts {
		c := t.Column(p.Column)
		switch {
		case c == nil || c.DroppedIn != 0:
			return fmt.Errorf("no column with number %d", p.Column)
		case i == 0 && !c.Type.NotNull:
			return fmt.Errorf("primary key column %s may be NULL", c.Name)
		case i == 0 && c.AddedIn != FirstRowVersion:
			return fmt.Errorf("primary key column %s was added without a rebuild", c.Name)
		case c.Type.IsLong() && p.Prefix == 0:
			return fmt.Errorf("column %s needs a key length", c.Name)
		case p.Prefix != 0 && !c.Type.IsText() && !c.Type.IsBlob():
			return fmt.Errorf("column %s cannot have a key length", c.Name)
		}
		declared += declaredBytes(&c.Type, p.Prefix)
	}
	if declared > MaxKeyBytes {
		return fmt.Errorf("%w: its parts are declared with %d bytes, at most %d are possible", ErrKeyTooLong, declared, MaxKeyBytes)
	}
	return nil
}

// declaredBytes is the length that a part counts for towards MaxKeyBytes, as in
// MySQL: that of the longest value, not of its key form.
func declaredBytes(t *types.Type, prefix uint32) int64 {
	if prefix != 0 {
		n := int64(prefix) * int64(width(t))
		if !t.IsLong() {
			n = min(n, t.MaxBytes())
		}
		return n
	}
	if size, ok := types.FixedSize(t); ok {
		return int64(size)
	}
	return t.MaxBytes()
}
