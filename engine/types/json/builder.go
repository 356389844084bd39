package json

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// A Builder makes a document from a sequence of calls, one for each value:
//
//	b.BeginObject()
//	b.Key(name)
//	b.Int(7)
//	b.EndObject()
//	doc, err := b.Finish(nil)
//
// Members may come in any order; of members with one name the last stays. The first error sticks and Finish returns it. The
// zero Builder is ready for use, and after Finish again, keeping its memory. Calls that do not form one value (a member
// without a name, an End without its Begin) are mistakes of the program and panic.
type Builder struct {
	buf     []byte // payloads of strings, opaque values and finished containers among items
	keys    []byte // names of the open objects' members
	items   []item // members of the open containers, innermost last; at the end, the document
	frames  []frame
	scratch []byte
	err     error

	// Stop is asked now and then while much is parsed or encoded, and ends it with its error; nil: nothing does. It stays after Finish.
	Stop func() error
	work int // bytes since it was asked
}

// stopEvery is after how much work, in bytes, Stop is asked: some milliseconds.
const stopEvery = 1 << 20

// worked counts work, and reports whether all is to end.
func (b *Builder) worked(bytes int) (stopped bool) {
	if b.work += bytes; b.work < stopEvery || b.Stop == nil {
		return false
	}
	b.work = 0
	if err := b.Stop(); err != nil {
		b.fail(err)
		return true
	}
	return false
}

// An item is a value whose container is not finished.
type item struct {
	tag              byte
	field            FieldType
	number           uint64 // bits of a scalar without payload in buf
	start, end       int    // in buf
	keyStart, keyEnd int    // in keys
}

// A frame is an open container: where its parts begin.
type frame struct {
	items, buf, keys int
	object, named    bool // named: the member's name has been given
	keyStart         int
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// add appends a value to the open container.
func (b *Builder) add(it item) {
	if n := len(b.frames); n > 0 && b.frames[n-1].object {
		f := &b.frames[n-1]
		if !f.named {
			panic("json: member without a name")
		}
		it.keyStart, it.keyEnd = f.keyStart, len(b.keys)
		f.named = false
	} else if n == 0 && len(b.items) > 0 {
		panic("json: second value in a document")
	}
	b.items = append(b.items, it)
}

// Null adds null.
func (b *Builder) Null() { b.add(item{tag: tagLiteral, number: literalNull}) }

// Bool adds true or false.
func (b *Builder) Bool(v bool) {
	literal := uint64(literalFalse)
	if v {
		literal = literalTrue
	}
	b.add(item{tag: tagLiteral, number: literal})
}

// Int adds an Integer.
func (b *Builder) Int(v int64) {
	tag := byte(tagInt64)
	switch {
	case v == int64(int16(v)):
		tag = tagInt16
	case v == int64(int32(v)):
		tag = tagInt32
	}
	b.add(item{tag: tag, number: uint64(v)})
}

// Uint adds an Unsigned.
func (b *Builder) Uint(v uint64) {
	tag := byte(tagUint64)
	switch {
	case v <= math.MaxUint16:
		tag = tagUint16
	case v <= math.MaxUint32:
		tag = tagUint32
	}
	b.add(item{tag: tag, number: v})
}

// Double adds a Double. REQUIRES: v is finite.
func (b *Builder) Double(v float64) {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		panic("json: number that is not finite")
	}
	b.add(item{tag: tagDouble, number: math.Float64bits(v)})
}

// Decimal adds a decimal with the precision and scale it needs.
func (b *Builder) Decimal(d decimal.Decimal) {
	scale := d.Scale()
	precision := max(d.IntegerDigits()+scale, 1)
	data := d.AppendPacked([]byte{byte(precision), byte(scale)}, precision, scale)
	b.Opaque(FieldDecimal, data)
}

// DateTime adds a temporal value of the type FieldDate, FieldDateTime or FieldTimestamp.
func (b *Builder) DateTime(f FieldType, d types.DateTime) { b.temporal(f, uint64(d)) }

// Time adds a TIME.
func (b *Builder) Time(d types.Duration) { b.temporal(FieldTime, uint64(d)) }

func (b *Builder) temporal(f FieldType, packed uint64) {
	var data [8]byte
	le.PutUint64(data[:], packed)
	b.Opaque(f, data[:])
}

// Opaque adds a value of a column type that JSON lacks.
func (b *Builder) Opaque(f FieldType, data []byte) {
	start := len(b.buf)
	b.buf = append(b.buf, data...)
	b.add(item{tag: tagOpaque, field: f, start: start, end: len(b.buf)})
}

// String adds a string. REQUIRES: s is valid UTF-8.
func (b *Builder) String(s []byte) {
	start := len(b.buf)
	b.buf = append(b.buf, s...)
	b.endString(start)
}

// endString adds the string that has been appended to buf from start on.
func (b *Builder) endString(start int) {
	b.add(item{tag: tagString, start: start, end: len(b.buf)})
}

// Value adds a copy of a value of any document. Containers are copied byte by byte. A missing value is added as null.
func (b *Builder) Value(v Value) {
	if v.nesting(len(b.frames)) > MaxDepth {
		b.fail(ErrTooDeep)
	}
	b.copyValue(v)
}

// copyValue is Value of a value that is known not to be too deep here.
func (b *Builder) copyValue(v Value) {
	if !v.Exists() {
		b.Null()
		return
	}
	it := item{tag: v.tag, field: v.field, start: len(b.buf)}
	switch v.tag {
	case tagInt16, tagInt32, tagInt64:
		it.number = uint64(v.Int())
	case tagUint16, tagUint32, tagUint64:
		it.number = v.Uint()
	case tagDouble:
		it.number = le.Uint64(v.data)
	case tagLiteral:
		it.number = uint64(v.data[0])
	default:
		b.buf = append(b.buf, v.data...)
	}
	it.end = len(b.buf)
	b.add(it)
}

// Key names the next member of the open object. REQUIRES: name is valid UTF-8.
func (b *Builder) Key(name []byte) {
	start := b.beginKey()
	b.keys = append(b.keys, name...)
	b.endKey(start)
}

func (b *Builder) beginKey() (start int) { return len(b.keys) }

// endKey ends the name that has been appended to keys from start on.
func (b *Builder) endKey(start int) {
	f := &b.frames[len(b.frames)-1]
	if !f.object || f.named {
		panic("json: name out of place")
	}
	if len(b.keys)-start > MaxKeyLength {
		b.keys = b.keys[:start+MaxKeyLength]
		b.fail(ErrKeyTooBig)
	}
	f.named, f.keyStart = true, start
}

// BeginArray opens an array; values follow until EndArray.
func (b *Builder) BeginArray() { b.begin(false) }

// BeginObject opens an object; pairs of Key and value follow until EndObject.
func (b *Builder) BeginObject() { b.begin(true) }

func (b *Builder) begin(object bool) {
	if len(b.frames) >= MaxDepth {
		b.fail(ErrTooDeep)
	}
	b.frames = append(b.frames, frame{items: len(b.items), buf: len(b.buf), keys: len(b.keys), object: object})
}

// EndArray closes the open array.
func (b *Builder) EndArray() { b.end(false) }

// EndObject closes the open object.
func (b *Builder) EndObject() { b.end(true) }

func (b *Builder) end(object bool) {
	f := b.frames[len(b.frames)-1]
	if f.object != object || f.named {
		panic("json: container closed out of place")
	}
	b.frames = b.frames[:len(b.frames)-1]
	items := b.items[f.items:]
	if object {
		items = b.sortMembers(items)
	}
	tag := b.encode(items, object)
	b.worked(len(b.scratch)) // every level copies what is in it
	b.buf = append(b.buf[:f.buf], b.scratch...)
	b.items = b.items[:f.items]
	b.keys = b.keys[:f.keys] // the container's own name stands before
	b.add(item{tag: tag, start: f.buf, end: len(b.buf)})
}

// sortMembers puts members in key order and drops those whose name comes again later.
func (b *Builder) sortMembers(items []item) []item {
	order := func(x, y item) int {
		return compareKeys(b.keys[x.keyStart:x.keyEnd], b.keys[y.keyStart:y.keyEnd])
	}
	if !slices.IsSortedFunc(items, order) {
		stopped := false
		slices.SortStableFunc(items, func(x, y item) int {
			if stopped = stopped || b.worked(stopEvery>>14); stopped {
				return 0 // in any order: the document is not made
			}
			return order(x, y)
		})
	}
	kept := items[:0]
	for i, it := range items {
		if i+1 < len(items) && order(it, items[i+1]) == 0 {
			continue
		}
		kept = append(kept, it)
	}
	return kept
}

// encode writes a container of the items to scratch, small if it fits.
func (b *Builder) encode(items []item, object bool) (tag byte) {
	tag = tagSmallArray
	if object {
		tag = tagSmallObject
	}
	size := encodedSize(items, object, false)
	large := size > math.MaxUint16
	if large {
		tag++ // the large form
		size = encodedSize(items, object, true)
	}
	b.scratch = b.scratch[:0]
	if size > MaxSize {
		b.fail(ErrTooBig)
		return tag
	}
	b.scratch = slices.Grow(b.scratch, size)
	b.encodeTables(items, object, large, size)
	if object {
		for _, it := range items {
			b.scratch = append(b.scratch, b.keys[it.keyStart:it.keyEnd]...)
		}
	}
	for _, it := range items {
		if !isInlined(it.tag, large) {
			b.scratch = b.appendItem(b.scratch, it)
		}
	}
	return tag
}

// encodeTables writes the header, the key entries and the value entries.
func (b *Builder) encodeTables(items []item, object, large bool, size int) {
	dst := appendOffset(b.scratch, len(items), large)
	dst = appendOffset(dst, size, large)
	at := tablesSize(len(items), object, large)
	if object {
		for _, it := range items {
			dst = appendOffset(dst, at, large)
			dst = le.AppendUint16(dst, uint16(it.keyEnd-it.keyStart))
			at += it.keyEnd - it.keyStart
		}
	}
	for _, it := range items {
		dst = append(dst, it.tag)
		if isInlined(it.tag, large) {
			dst = appendOffset(dst, int(int32(it.number)), large)
			continue
		}
		dst = appendOffset(dst, at, large)
		at += it.size()
	}
	b.scratch = dst
}

func tablesSize(count int, object, large bool) int {
	w := offsetWidth(large)
	size := 2*w + count*(w+1)
	if object {
		size += count * (w + 2)
	}
	return size
}

func encodedSize(items []item, object, large bool) int {
	size := tablesSize(len(items), object, large)
	for i := range items {
		size += items[i].keyEnd - items[i].keyStart
		if !isInlined(items[i].tag, large) {
			size += items[i].size()
		}
	}
	return size
}

// size is the size of the item's payload where it is not inlined.
func (it *item) size() int {
	n := it.end - it.start
	switch it.tag {
	case tagString:
		n += lengthSize(n)
	case tagOpaque:
		n += 1 + lengthSize(n)
	default:
		n += scalarSize(it.tag)
	}
	return n
}

// appendItem appends the payload.
func (b *Builder) appendItem(dst []byte, it item) []byte {
	switch n := scalarSize(it.tag); {
	case it.tag == tagString:
		dst = appendLength(dst, it.end-it.start)
	case it.tag == tagOpaque:
		dst = appendLength(append(dst, byte(it.field)), it.end-it.start)
	case n > 0:
		var number [8]byte
		le.PutUint64(number[:], it.number)
		return append(dst, number[:n]...)
	}
	return append(dst, b.buf[it.start:it.end]...)
}

// Finish appends the document to dst and makes the builder empty.
func (b *Builder) Finish(dst []byte) ([]byte, error) {
	err := b.err
	if err == nil {
		if len(b.frames) > 0 || len(b.items) != 1 {
			panic("json: document not finished")
		}
		it := b.items[0]
		if it.size() >= MaxSize {
			err = ErrTooBig
		} else {
			dst = b.appendItem(append(dst, it.tag), it)
		}
	}
	b.Reset()
	return dst, err
}

// Reset makes the builder empty.
func (b *Builder) Reset() {
	b.buf, b.keys, b.items, b.frames, b.scratch, b.err, b.work = b.buf[:0], b.keys[:0], b.items[:0], b.frames[:0], b.scratch[:0], nil, 0
}
