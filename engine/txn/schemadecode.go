package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

var (
	errShort = errors.New("encoding is cut short or malformed")
	errTail  = errors.New("bytes behind the end of the encoding")
)

const (
	maxUint   = 1<<64 - 1
	maxUint32 = 1<<32 - 1
)

// decoder reads until the first error, which sticks.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) uint(limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 || v > limit {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.b)) {
		d.fail(errShort)
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

// byte reads one byte that has only the given bits.
func (d *decoder) byte(mask byte) byte {
	b := d.bytes(1)
	if b == nil {
		return 0
	}
	if b[0]&^mask != 0 {
		d.fail(fmt.Errorf("unknown flags %#x", b[0]))
	}
	return b[0]
}

func (d *decoder) string() string { return string(d.bytes(d.uint(maxUint))) }

// count reads the length of a list with at most so many elements.
func (d *decoder) count(most int) int {
	n := d.uint(maxUint)
	if n > uint64(most) || n > uint64(len(d.b)) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

func (d *decoder) collation() types.CollationID {
	id := types.CollationID(d.uint(1<<16 - 1))
	if d.err == nil && id != types.CollationNone && types.CollationByID(id) == nil {
		d.fail(fmt.Errorf("unknown collation %d", id))
	}
	return id
}

func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errTail
	}
	return d.err
}

// maxOptions bounds the attributes that a definition keeps for the layer above.
const maxOptions = 4096

func (d *decoder) options() map[string]string {
	n := d.count(maxOptions)
	if n == 0 {
		return nil
	}
	options := make(map[string]string)
	last := ""
	for i := 0; i < n && d.err == nil; i++ {
		name, value := d.string(), d.string()
		if i > 0 && name <= last {
			d.fail(errShort)
		}
		last = name
		options[name] = value
	}
	return options
}

func (d *decoder) table() *record.Table {
	t := &record.Table{ID: d.uint(maxUint), Schema: d.string(), Name: d.string(), Version: d.uint(maxUint), RowVersion: d.byte(0xff),
		NextColumn: uint32(d.uint(maxUint32)), Collation: d.collation(), Comment: d.string(), Options: d.options()}
	for n := d.count(record.MaxColumns); n > 0 && d.err == nil; n-- {
		t.Columns = append(t.Columns, d.column())
	}
	for n := d.count(record.MaxIndexes); n > 0 && d.err == nil; n-- {
		t.Indexes = append(t.Indexes, d.index())
	}
	for n := d.count(maxForeignKeys); n > 0 && d.err == nil; n-- {
		t.ForeignKeys = append(t.ForeignKeys, d.foreignKey())
	}
	return t
}

// maxForeignKeys bounds the foreign keys of a table.
const maxForeignKeys = 1 << 16

func (d *decoder) column() record.Column {
	c := record.Column{ID: uint32(d.uint(maxUint32)), Name: d.string(), Type: d.columnType()}
	flags := d.byte(colFlags)
	c.Hidden, c.Invisible = flags&colHidden != 0, flags&colInvisible != 0
	c.AutoIncrement, c.HasDefault = flags&colAutoIncrement != 0, flags&colHasDefault != 0
	c.AddedIn, c.DroppedIn = d.byte(0xff), d.byte(0xff)
	if flags&colInitial != 0 {
		c.Initial = append([]byte{}, d.bytes(d.uint(maxUint))...)
	}
	c.Default, c.Generated, c.OnUpdate, c.Comment = d.string(), d.string(), d.string(), d.string()
	return c
}

func (d *decoder) columnType() types.Type {
	if d.err != nil {
		return types.Type{}
	}
	t, rest, err := types.DecodeType(d.b)
	if err != nil {
		d.fail(err)
	}
	d.b = rest
	return t
}

func (d *decoder) index() record.Index {
	ix := record.Index{ID: d.uint(maxUint), Name: d.string()}
	flags := d.byte(indexFlags)
	ix.Unique, ix.Invisible, ix.Building = flags&indexUnique != 0, flags&indexInvisible != 0, flags&indexBuilding != 0
	for n := d.count(record.MaxIndexParts); n > 0 && d.err == nil; n-- {
		ix.Parts = append(ix.Parts, record.Part{Column: uint32(d.uint(maxUint32)), Desc: d.byte(1) == 1, Prefix: uint32(d.uint(maxUint32))})
	}
	ix.Comment = d.string()
	return ix
}

func (d *decoder) foreignKey() record.ForeignKey {
	fk := record.ForeignKey{ID: d.uint(maxUint), Name: d.string()}
	for n := d.count(record.MaxIndexParts); n > 0 && d.err == nil; n-- {
		fk.Columns = append(fk.Columns, uint32(d.uint(maxUint32)))
	}
	fk.RefSchema, fk.RefTable = d.string(), d.string()
	for n := d.count(record.MaxIndexParts); n > 0 && d.err == nil; n-- {
		fk.RefColumns = append(fk.RefColumns, d.string())
	}
	fk.OnDelete, fk.OnUpdate = d.byte(0xff), d.byte(0xff)
	return fk
}
