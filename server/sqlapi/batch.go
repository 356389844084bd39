package sqlapi

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// layout is in which of a vector's arrays a column's values are.
type layout uint8

const (
	asInts layout = iota
	asUints
	asDoubles
	asFloats
	asBytes     // as they are
	asText      // types.AppendText
	asConverted // the same, then to UTF-8
	asNothing   // always NULL
)

// encoder gathers rows of a result in the arrays of a batch. Its memory is used again.
type encoder struct {
	layouts  []layout
	batch    pb.SqlBatch
	vectors  []*pb.SqlVector
	location *time.Location
	size     int // bytes, about
	scratch  []byte

	session holder
	most    int   // bytes of a row
	held    int64 // bytes that the session has accounted for
	wide    bool  // rows may be long though they have no long string
}

// holder is the session that accounts for a long result.
type holder interface{ Hold(delta int64) error }

// begin prepares for rows of the columns, of at most so many bytes each.
func (e *encoder) begin(cols []session.ResultColumn, loc *time.Location, s holder, most int) {
	e.session, e.most, e.wide = s, most, mayBeLong(cols)
	e.layouts = e.layouts[:0]
	for i := range cols {
		e.layouts = append(e.layouts, layoutOf(cols[i].Type))
	}
	for len(e.vectors) < len(cols) {
		e.vectors = append(e.vectors, &pb.SqlVector{})
	}
	e.location = loc
	e.batch.Columns = e.vectors[:len(cols)]
	e.clear()
}

// clear forgets the rows.
func (e *encoder) clear() {
	e.batch.Rows, e.batch.WindowBytes, e.size = 0, 0, 0
	for _, v := range e.batch.Columns {
		v.Nulls, v.Ints, v.Uints, v.Doubles, v.Floats = v.Nulls[:0], v.Ints[:0], v.Uints[:0], v.Doubles[:0], v.Floats[:0]
		v.Lengths, v.Bytes = v.Lengths[:0], v.Bytes[:0]
	}
}

const (
	// keptBytes is how much memory a result takes that is not large, and keptInVectors what a session keeps in vectors for the next one.
	keptBytes     = 64 << 10
	keptInVectors = 4 * keptBytes
	// keptVectors is how many vectors it keeps.
	keptVectors = 64
	// vectorBytes is about what a vector takes itself.
	vectorBytes = 256
)

// isWide reports whether there are so many columns that their vectors alone take more than is kept.
func (e *encoder) isWide() bool { return len(e.vectors)*vectorBytes > keptInVectors }

// shrink gives up memory that only a large result needs.
func (e *encoder) shrink() {
	all := len(e.vectors) * vectorBytes
	for _, v := range e.vectors {
		all += cap(v.Bytes) + 8*(cap(v.Ints)+cap(v.Uints)+cap(v.Doubles)) + 4*(cap(v.Floats)+cap(v.Lengths)) + cap(v.Nulls)
	}
	if all > keptInVectors {
		for _, v := range e.vectors {
			v.Reset()
		}
		e.vectors = slices.Clone(e.vectors[:min(len(e.vectors), keptVectors)])
		e.batch.Columns = nil
	}
	if cap(e.scratch) > keptBytes {
		e.scratch = nil
	}
}

// errRow is the error of a row that is too long, before it has been made.
var errRow = sqlerr.Newf(sqlerr.NetPacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes: a row is longer than that")

// account accounts for so many bytes of a result, from longAnswer on. Errors: as of Session.Hold.
func (e *encoder) account(n int64) error {
	const step = 256 << 10
	if n <= longAnswer || n <= e.held {
		return nil
	}
	more := max(n-e.held, step)
	if err := e.session.Hold(more); err != nil {
		return err
	}
	e.held += more
	return nil
}

// free gives back what is accounted for.
func (e *encoder) free() {
	if e.held > 0 {
		_ = e.session.Hold(-e.held) // what is given back is never refused
		e.held = 0
	}
}

// before asks for room for a value of n bytes in a row that begins at a size, if it is long. Errors: errRow, as of account.
func (e *encoder) before(row, n int, l layout) error {
	if n <= keptBytes {
		return nil
	}
	if l == asBytes {
		if e.size-row+n > e.most {
			return errRow
		}
	} else {
		n *= 2 // a document's text, or that of another character set: about this
	}
	return e.account(2*int64(e.size) + int64(n))
}

// after looks at a row with one value more. Errors: as of before.
func (e *encoder) after(row int) error {
	if e.size-row > e.most {
		return errRow
	}
	return e.account(2*int64(e.size) + int64(cap(e.scratch)))
}

// mayBeLong reports whether rows without a long string may be long: enumerations and sets have their members' names.
func mayBeLong(cols []session.ResultColumn) bool {
	n := 0
	for i := range cols {
		if n += cols[i].Type.LongestText(); n > keptBytes {
			return true
		}
	}
	return false
}

func layoutOf(t *types.Type) layout {
	switch t.Kind {
	case types.KindNull:
		return asNothing
	case types.KindBit, types.KindEnum, types.KindSet:
		return asTextOf(t)
	}
	switch t.Class() {
	case types.ClassInt:
		return asInts
	case types.ClassUint:
		return asUints
	case types.ClassDouble:
		return asDoubles
	case types.ClassFloat:
		return asFloats
	case types.ClassBytes:
		if asTextOf(t) == asText {
			return asBytes
		}
		return asConverted
	}
	return asText
}

// asTextOf says whether a type's text has to be made UTF-8.
func asTextOf(t *types.Type) layout {
	if t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet {
		if cs := t.Charset(); !cs.IsUTF8() && cs != types.CharsetBinary {
			return asConverted
		}
	}
	return asText
}

// append adds row i of the batch. large says that it may be long. Errors: of one that is too long, or that there is no memory for; it is
// there in part then.
func (e *encoder) append(b *types.Batch, i int, large bool) error {
	row, began := int(e.batch.Rows), e.size
	for k, v := range e.batch.Columns {
		from := &b.Vecs[k]
		if from.IsNull(i) {
			for len(v.Nulls) <= row/8 {
				v.Nulls = append(v.Nulls, 0)
				e.size++
			}
			v.Nulls[row/8] |= 1 << (row % 8)
			e.appendNothing(v, e.layouts[k])
			continue
		}
		if large {
			if err := e.before(began, from.Bytes(i), e.layouts[k]); err != nil {
				return err
			}
		}
		switch e.layouts[k] {
		case asInts:
			v.Ints = append(v.Ints, from.Int64s()[i])
			e.size += 4
		case asUints:
			v.Uints = append(v.Uints, from.Uint64s()[i])
			e.size += 4
		case asDoubles:
			v.Doubles = append(v.Doubles, from.Float64s()[i])
			e.size += 8
		case asFloats:
			v.Floats = append(v.Floats, float32(from.Float64s()[i]))
			e.size += 4
		case asBytes:
			e.appended(v, append(v.Bytes, from.BytesAt(i)...))
		case asText:
			e.appended(v, types.AppendText(v.Bytes, from.Value(i), from.Type(), e.location))
		case asConverted:
			e.scratch = types.AppendText(e.scratch[:0], from.Value(i), from.Type(), e.location)
			converted, _ := types.Convert(v.Bytes, e.scratch, from.Type().Charset(), types.CharsetUTF8MB4)
			e.appended(v, converted)
		}
		if large {
			if err := e.after(began); err != nil {
				return err
			}
		}
	}
	e.batch.Rows++
	return e.account(2 * int64(e.size)) // it is encoded once more to be sent
}

// isLarge reports whether rows of a batch may be long.
func (e *encoder) isLarge(b *types.Batch) bool { return e.wide || b.MemoryBytes() > keptBytes }

// appended takes over the bytes of a column with a value more.
func (e *encoder) appended(v *pb.SqlVector, b []byte) {
	n := len(b) - len(v.Bytes)
	v.Bytes = b
	v.Lengths = append(v.Lengths, uint32(n))
	e.size += n + 2
}

// appendNothing is the entry of a NULL.
func (e *encoder) appendNothing(v *pb.SqlVector, l layout) {
	e.size++
	switch l {
	case asInts:
		v.Ints = append(v.Ints, 0)
	case asUints:
		v.Uints = append(v.Uints, 0)
	case asDoubles:
		v.Doubles = append(v.Doubles, 0)
	case asFloats:
		v.Floats = append(v.Floats, 0)
	default:
		v.Lengths = append(v.Lengths, 0)
	}
}

var columnTypes = [...]pb.SqlType{
	types.KindNull:       pb.SqlType_SQL_TYPE_NULL,
	types.KindTinyInt:    pb.SqlType_SQL_TYPE_TINYINT,
	types.KindSmallInt:   pb.SqlType_SQL_TYPE_SMALLINT,
	types.KindMediumInt:  pb.SqlType_SQL_TYPE_MEDIUMINT,
	types.KindInt:        pb.SqlType_SQL_TYPE_INT,
	types.KindBigInt:     pb.SqlType_SQL_TYPE_BIGINT,
	types.KindDecimal:    pb.SqlType_SQL_TYPE_DECIMAL,
	types.KindFloat:      pb.SqlType_SQL_TYPE_FLOAT,
	types.KindDouble:     pb.SqlType_SQL_TYPE_DOUBLE,
	types.KindBit:        pb.SqlType_SQL_TYPE_BIT,
	types.KindDate:       pb.SqlType_SQL_TYPE_DATE,
	types.KindTime:       pb.SqlType_SQL_TYPE_TIME,
	types.KindDateTime:   pb.SqlType_SQL_TYPE_DATETIME,
	types.KindTimestamp:  pb.SqlType_SQL_TYPE_TIMESTAMP,
	types.KindYear:       pb.SqlType_SQL_TYPE_YEAR,
	types.KindChar:       pb.SqlType_SQL_TYPE_CHAR,
	types.KindVarChar:    pb.SqlType_SQL_TYPE_VARCHAR,
	types.KindTinyText:   pb.SqlType_SQL_TYPE_TEXT,
	types.KindText:       pb.SqlType_SQL_TYPE_TEXT,
	types.KindMediumText: pb.SqlType_SQL_TYPE_TEXT,
	types.KindLongText:   pb.SqlType_SQL_TYPE_TEXT,
	types.KindBinary:     pb.SqlType_SQL_TYPE_BINARY,
	types.KindVarBinary:  pb.SqlType_SQL_TYPE_VARBINARY,
	types.KindTinyBlob:   pb.SqlType_SQL_TYPE_BLOB,
	types.KindBlob:       pb.SqlType_SQL_TYPE_BLOB,
	types.KindMediumBlob: pb.SqlType_SQL_TYPE_BLOB,
	types.KindLongBlob:   pb.SqlType_SQL_TYPE_BLOB,
	types.KindEnum:       pb.SqlType_SQL_TYPE_ENUM,
	types.KindSet:        pb.SqlType_SQL_TYPE_SET,
	types.KindJSON:       pb.SqlType_SQL_TYPE_JSON,
}

// describe turns columns into those of the contract.
func describe(cols []session.ResultColumn) []*pb.SqlColumn {
	all := make([]pb.SqlColumn, len(cols))
	list := make([]*pb.SqlColumn, len(cols))
	for i := range cols {
		from, c := &cols[i], &all[i]
		t := from.Type
		c.Name, c.Schema, c.Table = utf8(cutName(from.Name)), cutName(from.Schema), cutName(from.Table)
		c.OriginalTable, c.OriginalName = cutName(from.OrgTable), cutName(from.OrgName)
		c.Type, c.Unsigned, c.NotNull = columnTypes[t.Kind], t.Unsigned, t.NotNull
		switch {
		case t.Kind == types.KindDecimal:
			c.Precision, c.Scale = uint32(t.Precision), uint32(t.Scale)
		case t.IsTemporal():
			c.Scale = uint32(t.FSP)
		case !t.IsInteger():
			c.Length = t.Length
		}
		c.PrimaryKey, c.UniqueKey = from.Flags&session.PrimaryKey != 0, from.Flags&session.UniqueKey != 0
		c.MultipleKey, c.AutoIncrement = from.Flags&session.MultipleKey != 0, from.Flags&session.AutoIncrement != 0
		list[i] = c
	}
	return list
}

// maxColumnName is the length to which the names of a column are cut, as MySQL does: that of an expression is its text, and each
// of thousands of columns tells that of its table.
const maxColumnName = 256

func cutName(name string) string { return types.CutUTF8(name, maxColumnName) }

// sameColumns reports whether columns are those that were described.
func sameColumns(known []*pb.SqlColumn, cols []session.ResultColumn) bool {
	if len(known) != len(cols) {
		return false
	}
	for i, c := range known {
		from := &cols[i]
		t := from.Type
		if c.Name != cutName(from.Name) || c.Type != columnTypes[t.Kind] || c.Unsigned != t.Unsigned || c.NotNull != t.NotNull ||
			c.Table != cutName(from.Table) || c.Schema != cutName(from.Schema) || c.OriginalTable != cutName(from.OrgTable) ||
			c.OriginalName != cutName(from.OrgName) ||
			c.PrimaryKey != (from.Flags&session.PrimaryKey != 0) || c.UniqueKey != (from.Flags&session.UniqueKey != 0) ||
			c.MultipleKey != (from.Flags&session.MultipleKey != 0) || c.AutoIncrement != (from.Flags&session.AutoIncrement != 0) {
			return false
		}
		switch {
		case t.Kind == types.KindDecimal:
			if c.Precision != uint32(t.Precision) || c.Scale != uint32(t.Scale) {
				return false
			}
		case t.IsTemporal():
			if c.Scale != uint32(t.FSP) {
				return false
			}
		case !t.IsInteger() && c.Length != t.Length:
			return false
		}
	}
	return true
}
