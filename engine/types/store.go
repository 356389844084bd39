package types

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Context is what conversions need to know of the statement. It belongs to one
// session at a time. Results may live in its scratch memory and are good until
// [Context.Reset].
type Context struct {
	Mode     Mode
	Location *time.Location      // the session's time zone; nil is UTC
	Today    DateTime            // the statement's date, for TIME stored as a date; zero: refused
	Column   string              // for messages
	Row      int64               // for messages, counted from 1
	Warn     func(*sqlerr.Error) // receives warnings; nil drops them
	scratch  []byte
}

// Reset gives up all results in scratch memory.
func (c *Context) Reset() { c.scratch = c.scratch[:0] }

func (c *Context) location() *time.Location {
	if c.Location == nil {
		return time.UTC
	}
	return c.Location
}

// fail is the fate of a value that the column cannot hold as it is: an error in
// strict mode, a warning otherwise.
func (c *Context) fail(e *sqlerr.Error) error {
	if c.Mode&ModeStrict != 0 {
		return e
	}
	c.warn(e)
	return nil
}

func (c *Context) warn(e *sqlerr.Error) {
	if c.Warn != nil {
		c.Warn(e)
	}
}

func (c *Context) outOfRange() error {
	return c.fail(sqlerr.New(sqlerr.WarnDataOutOfRange, c.Column, c.Row))
}

func (c *Context) truncated() error {
	return c.fail(c.truncatedError())
}

func (c *Context) truncatedError() *sqlerr.Error {
	return sqlerr.New(sqlerr.WarnDataTruncated, c.Column, c.Row)
}

// noteTruncated tells of digits, spaces or a time of day that got lost; even
// strict mode lets that pass.
func (c *Context) noteTruncated() {
	if c.Warn != nil {
		c.Warn(c.truncatedError())
	}
}

// tooLong is 1406 in strict mode and 1265 otherwise, as in MySQL.
func (c *Context) tooLong() error {
	if c.Mode&ModeStrict == 0 {
		return c.truncated()
	}
	return sqlerr.New(sqlerr.DataTooLong, c.Column, c.Row)
}

// incorrect tells that text is no what.
func (c *Context) incorrect(what string, text []byte) error {
	return c.fail(sqlerr.New(sqlerr.TruncatedWrongValueForField, what, printable(text), c.Column, c.Row))
}

// incorrectTime is incorrect for dates and times; without strict mode what looks like one
// is out of range, and other text truncated.
func (c *Context) incorrectTime(what string, text []byte, looksLike bool) error {
	switch {
	case c.Mode&ModeStrict != 0:
	case looksLike:
		return c.outOfRange()
	default:
		return c.truncated()
	}
	return sqlerr.Newf(sqlerr.TruncatedWrongValue, "Incorrect %s value: '%s' for column '%s' at row %d", what,
		printable(text), c.Column, c.Row)
}

// printable returns text for a message: at most 128 bytes, bytes that are not
// UTF-8 as \xNN.
func printable(text []byte) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, min(len(text), 128))
	for i := 0; i < len(text) && len(out) < 128; {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			out = append(out, '\\', 'x', hex[text[i]>>4], hex[text[i]&15])
		} else {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// defaultSource gives the type of a value whose source has none: a literal.
var defaultSource = [classEnd]Type{
	ClassNull:      {Kind: KindNull},
	ClassInt:       {Kind: KindBigInt},
	ClassUint:      {Kind: KindBigInt, Unsigned: true},
	ClassFloat:     {Kind: KindFloat},
	ClassDouble:    {Kind: KindDouble},
	ClassDecimal:   {Kind: KindDecimal, Precision: MaxDecimalPrecision, Scale: MaxDecimalScale},
	ClassBytes:     {Kind: KindVarChar, Length: MaxVarLength, Collation: CollationUTF8MB40900AI},
	ClassDate:      {Kind: KindDate},
	ClassDateTime:  {Kind: KindDateTime, FSP: MaxFSP},
	ClassTimestamp: {Kind: KindTimestamp, FSP: MaxFSP},
	ClassTime:      {Kind: KindTime, FSP: MaxFSP},
	ClassJSON:      {Kind: KindJSON, Collation: CollationBinary},
}

// Store converts v to a column of type to, by MySQL's rules of assignment. from
// is the type v comes from; nil stands for a literal of v's class, text being
// utf8mb4. In strict mode a value that does not fit is an [sqlerr.Error]; otherwise it
// is adjusted and the error goes to Warn. NULL passes unless to is NOT NULL. The
// result aliases v or the context's scratch memory.
func (c *Context) Store(v Value, from, to *Type) (Value, error) {
	if v.class == ClassNull {
		if to.NotNull {
			return Null, sqlerr.New(sqlerr.BadNullError, c.Column)
		}
		return Null, nil
	}
	if from == nil {
		from = &defaultSource[v.class]
	}
	if v.class == ClassBytes && from.IsText() && from.Charset().IsWide() && !to.IsText() && !to.IsBlob() {
		start := len(c.scratch) // digits are bytes in UTF-8
		c.scratch, _ = Convert(c.scratch, v.Bytes(), from.Charset(), CharsetUTF8MB4)
		v, from = NewBytes(c.scratch[start:]), &defaultSource[ClassBytes]
	}
	switch to.Kind {
	case KindTinyInt, KindSmallInt, KindMediumInt, KindInt, KindBigInt:
		return c.storeInteger(v, from, to)
	case KindDecimal:
		return c.storeDecimal(v, from, to)
	case KindFloat, KindDouble:
		return c.storeFloat(v, from, to)
	case KindBit:
		return c.storeBit(v, from, to)
	case KindYear:
		return c.storeYear(v, from)
	case KindDate, KindDateTime, KindTimestamp:
		return c.storeDateTime(v, from, to)
	case KindTime:
		return c.storeTime(v, from, to)
	case KindEnum:
		return c.storeEnum(v, from, to)
	case KindSet:
		return c.storeSet(v, from, to)
	case KindJSON:
		return c.storeJSON(v, from)
	case KindNull:
		return Null, nil
	}
	return c.storeString(v, from, to)
}

// text returns v as text in scratch memory, or its own bytes; charset says in
// which character set.
func (c *Context) text(v Value, from *Type) (text []byte, cs Charset) {
	switch {
	case v.class == ClassBytes && from.Kind == KindVarChar && from == &defaultSource[ClassBytes]:
		return v.Bytes(), CharsetUTF8MB4
	case v.class == ClassBytes:
		return v.Bytes(), from.Charset()
	case v.class == ClassJSON:
		cs = CharsetUTF8MB4
	case from.Kind == KindEnum || from.Kind == KindSet:
		cs = from.Charset()
	case from.Kind == KindBit:
		cs = CharsetBinary
	default:
		cs = CharsetASCII
	}
	start := len(c.scratch)
	c.scratch = AppendText(c.scratch, v, from, c.Location)
	return c.scratch[start:], cs
}

// numberText is text for a number to be read from. JSON strings lose their
// quotes, booleans are 1 and 0.
func (c *Context) numberText(v Value, from *Type) []byte {
	text, _ := c.text(v, from)
	if v.class != ClassJSON {
		return text
	}
	switch {
	case string(text) == "true":
		return []byte("1")
	case string(text) == "false":
		return []byte("0")
	case len(text) >= 2 && text[0] == '"':
		return text[1 : len(text)-1]
	}
	return text
}

func (c *Context) storeJSON(v Value, from *Type) (Value, error) {
	if v.class == ClassJSON {
		return v, nil
	}
	if v.class != ClassBytes && from.Kind != KindEnum && from.Kind != KindSet && from.Kind != KindBit {
		return Null, sqlerr.Newf(sqlerr.InvalidJSONText,
			"Invalid JSON text: \"not a JSON text, may need CAST\" at position 0 in value for column '%s'.", c.Column)
	}
	text, cs := c.text(v, from)
	if cs == CharsetBinary {
		return Null, sqlerr.New(sqlerr.InvalidJSONCharset, "binary")
	}
	if jsonCodec == nil {
		return Null, sqlerr.Newf(sqlerr.InvalidJSONText, "Invalid JSON text in value for column '%s'.", c.Column)
	}
	start := len(c.scratch)
	out, err := jsonCodec.Parse(c.scratch, text)
	if err != nil {
		var known *sqlerr.Error
		if errors.As(err, &known) && known.Number != sqlerr.InvalidJSONText {
			return Null, known // too deep, too big
		}
		return Null, sqlerr.Newf(sqlerr.InvalidJSONText, "%s in value for column '%s'.",
			strings.TrimSuffix(err.Error(), "."), c.Column)
	}
	c.scratch = out
	return NewJSON(out[start:]), nil
}
