package event

import "github.com/triremedb/trireme/engine/types"

// Fields of a table map's optional metadata: type, length, value. MySQL writes the
// first group always and the second with binlog_row_metadata=FULL.
const (
	metaSignedness     = 1 // a bit for each number, YEAR included, the highest bit first: unsigned
	metaDefaultCharset = 2 // the usual collation, then pairs of string column and collation
	metaColumnCharset  = 3 // a collation for each string column

	metaColumnName       = 4
	metaSetMembers       = 5
	metaEnumMembers      = 6
	metaPrimaryKey       = 8 // columns
	metaPrimaryKeyPrefix = 9 // pairs of column and key length in characters, 0: all of it
	metaEnumSetDefault   = 10
	metaEnumSetCharset   = 11
	metaColumnVisibility = 12 // a bit for each column, the highest bit first: visible
)

func (l *Layout) appendMetadata(dst []byte) []byte {
	var numbers, strings []*column
	for i := range l.columns {
		switch c := &l.columns[i]; {
		case c.t.IsInteger() || c.t.Kind >= types.KindDecimal && c.t.Kind <= types.KindDouble || c.t.Kind == types.KindYear:
			numbers = append(numbers, c)
		case c.t.IsText() || c.t.IsBlob():
			strings = append(strings, c)
		}
	}
	dst = appendBits(dst, metaSignedness, numbers, func(c *column) bool { return c.t.Unsigned || c.t.Kind == types.KindYear })
	dst = appendCharsets(dst, metaDefaultCharset, metaColumnCharset, strings)
	if !l.opt.FullMetadata {
		return dst
	}
	return l.appendFullMetadata(dst)
}

func (l *Layout) appendFullMetadata(dst []byte) []byte {
	var value []byte
	var all, enumSet []*column
	for i := range l.columns {
		c := &l.columns[i]
		all = append(all, c)
		value = appendPackedString(value, c.name)
		if c.t.Kind == types.KindEnum || c.t.Kind == types.KindSet {
			enumSet = append(enumSet, c)
		}
	}
	dst = appendField(dst, metaColumnName, value)
	dst = appendMembers(dst, metaSetMembers, enumSet, types.KindSet)
	dst = appendMembers(dst, metaEnumMembers, enumSet, types.KindEnum)
	dst = appendCharsets(dst, metaEnumSetDefault, metaEnumSetCharset, enumSet)
	dst = l.appendPrimaryKey(dst)
	return appendBits(dst, metaColumnVisibility, all, func(c *column) bool { return !c.hidden })
}

// appendField appends a field unless it is empty.
func appendField(dst []byte, field byte, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(appendPacked(append(dst, field), uint64(len(value))), value...)
}

func appendBits(dst []byte, field byte, columns []*column, is func(*column) bool) []byte {
	value := make([]byte, (len(columns)+7)/8)
	for i, c := range columns {
		if is(c) {
			value[i/8] |= 0x80 >> (i % 8)
		}
	}
	return appendField(dst, field, value)
}

// appendCharsets writes the columns' collations as MySQL does: with the one that most
// have as the default and the others by number, unless a list of all is shorter.
func appendCharsets(dst []byte, withDefault, each byte, columns []*column) []byte {
	if len(columns) == 0 {
		return dst
	}
	count := map[types.CollationID]int{}
	usual := collationOf(columns[0])
	for _, c := range columns {
		id := collationOf(c)
		count[id]++
		if count[id] > count[usual] || count[id] == count[usual] && id < usual {
			usual = id
		}
	}
	list, pairs := []byte(nil), appendPacked(nil, uint64(usual))
	for i, c := range columns {
		id := collationOf(c)
		list = appendPacked(list, uint64(id))
		if id != usual {
			pairs = appendPacked(appendPacked(pairs, uint64(i)), uint64(id))
		}
	}
	if len(list) < len(pairs) {
		return appendField(dst, each, list)
	}
	return appendField(dst, withDefault, pairs)
}

// collationOf is a column's collation as external readers know it: binary strings
// have one too.
func collationOf(c *column) types.CollationID {
	if c.t.IsBlob() {
		return types.CollationBinary
	}
	return c.t.Collation
}

func appendMembers(dst []byte, field byte, columns []*column, kind types.Kind) []byte {
	var value []byte
	for _, c := range columns {
		if c.t.Kind != kind {
			continue
		}
		value = appendPacked(value, uint64(len(c.t.Members)))
		for _, m := range c.t.Members {
			value = appendPackedString(value, m)
		}
	}
	return appendField(dst, field, value)
}

func (l *Layout) appendPrimaryKey(dst []byte) []byte {
	var plain, prefixed []byte
	field := byte(metaPrimaryKey)
	for _, p := range l.def.Indexes[0].Parts {
		for i := range l.columns {
			if l.def.Columns[l.columns[i].position].ID != p.Column {
				continue
			}
			plain = appendPacked(plain, uint64(i))
			prefixed = appendPacked(appendPacked(prefixed, uint64(i)), uint64(p.Prefix))
			if p.Prefix != 0 {
				field = metaPrimaryKeyPrefix
			}
		}
	}
	if field == metaPrimaryKeyPrefix {
		return appendField(dst, field, prefixed)
	}
	return appendField(dst, field, plain)
}
