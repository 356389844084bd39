package json

import (
	"math"
	"unicode/utf8"
)

// Validate checks a document from outside: that every offset and length stays within its container, nothing overlaps, keys
// are sorted and unique, strings are UTF-8, numbers are finite and nothing nests deeper than MaxDepth. It returns a
// *types.CorruptError. Gaps between values are allowed: edits in place leave them.
func Validate(doc []byte) error {
	if len(doc) == 0 {
		return nil // stands for null
	}
	if len(doc) > MaxSize {
		return corrupt("%d bytes", len(doc))
	}
	v, ok := makeValue(doc[0], doc[1:])
	if !ok {
		return corrupt("damaged value of tag %d", doc[0])
	}
	if size := v.payloadSize(); 1+size != len(doc) {
		return corrupt("%d bytes after the value", len(doc)-1-size)
	}
	return validate(v, 0)
}

func validate(v Value, level int) error {
	switch v.tag {
	case tagLiteral:
		if v.data[0] > literalFalse {
			return corrupt("unknown literal %d", v.data[0])
		}
	case tagDouble:
		if f := v.Double(); math.IsInf(f, 0) || math.IsNaN(f) {
			return corrupt("number is not finite")
		}
	case tagString:
		if !utf8.Valid(v.data) {
			return corrupt("string is not UTF-8")
		}
	case tagOpaque:
		return validateOpaque(v)
	case tagSmallObject, tagLargeObject, tagSmallArray, tagLargeArray:
		if level >= MaxDepth {
			return corrupt("nested deeper than %d", MaxDepth)
		}
		c := v.open()
		end := c.tablesEnd()
		if c.object {
			var err error
			if end, err = validateKeys(&c); err != nil {
				return err
			}
		}
		return validateValues(&c, end, level)
	}
	return nil
}

func validateOpaque(v Value) error {
	switch v.field {
	case FieldDecimal:
		if _, ok := v.Decimal(); !ok {
			return corrupt("damaged decimal")
		}
	case FieldDate, FieldTime, FieldDateTime, FieldTimestamp:
		if len(v.data) != 8 {
			return corrupt("temporal value of %d bytes", len(v.data))
		}
	}
	return nil
}

// validateKeys returns the end of the last key.
func validateKeys(c *container) (end int, err error) {
	end = c.tablesEnd()
	var previous []byte
	for i := range c.count {
		key, ok := c.key(i)
		switch {
		case !ok:
			return 0, corrupt("key %d outside its object", i)
		case readOffset(c.data[c.keyAt(i):], c.large) < end:
			return 0, corrupt("key %d overlaps", i)
		case i > 0 && compareKeys(previous, key) >= 0:
			return 0, corrupt("key %d out of order", i)
		case !utf8.Valid(key):
			return 0, corrupt("key %d is not UTF-8", i)
		}
		end = readOffset(c.data[c.keyAt(i):], c.large) + len(key)
		previous = key
	}
	return end, nil
}

// validateValues checks that payloads follow each other from end on.
func validateValues(c *container, end, level int) error {
	for i := range c.count {
		v, ok := c.value(i)
		if !ok {
			return corrupt("value %d is damaged", i)
		}
		if offset, ok := c.offset(i); ok {
			if offset < end {
				return corrupt("value %d overlaps", i)
			}
			end = offset + v.payloadSize()
		}
		if err := validate(v, level+1); err != nil {
			return err
		}
	}
	return nil
}

// Compact appends the canonical form of a document: equal bytes for documents whose values are identical in type and content,
// whatever edits they went through.
func Compact(dst, doc []byte) ([]byte, error) {
	var b Builder
	b.Compact(Open(doc))
	return b.Finish(dst)
}

// Compact adds a canonical copy of a value.
func (b *Builder) Compact(v Value) {
	switch v.Type() {
	case TypeInteger:
		b.Int(v.Int())
		return
	case TypeUnsigned:
		b.Uint(v.Uint())
		return
	case TypeArray, TypeObject:
	default:
		b.Value(v)
		return
	}
	c := v.open()
	if len(b.frames) >= MaxDepth {
		b.fail(ErrTooDeep)
		b.Null()
		return
	}
	b.begin(c.object)
	for i := range c.count {
		if c.object {
			key, _ := c.key(i)
			b.Key(key)
		}
		e, _ := c.value(i)
		b.Compact(e)
	}
	b.end(c.object)
}
