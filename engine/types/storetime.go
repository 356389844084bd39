package types

import "github.com/triremedb/trireme/engine/types/decimal"

// storeDateTime stores into DATE, DATETIME and TIMESTAMP.
func (c *Context) storeDateTime(v Value, from, to *Type) (Value, error) {
	if v.class == ClassTimestamp && to.Kind == KindTimestamp {
		return c.storeInstant(v.Timestamp(), from, to)
	}
	d, info, ok := c.dateTime(v, from)
	bad := !ok
	if ok && !info.Truncated {
		d, ok = c.roundDateTime(d, info.Nanos, to)
	}
	if !ok || info.Truncated && c.Mode&ModeStrict != 0 {
		return zeroOf(to), c.badTime(v, from, to, !bad || info.OutOfRange)
	}
	if info.Truncated {
		d, ok = c.roundDateTime(d, info.Nanos, to)
		if !ok {
			return zeroOf(to), c.badTime(v, from, to, true)
		}
		c.noteTruncated()
	}
	switch to.Kind {
	case KindDate:
		if d != d.Truncate() {
			c.noteTruncated()
		}
		return NewDate(d.Truncate()), nil
	case KindDateTime:
		return NewDateTime(d), nil
	}
	t, ok := c.instant(d)
	if !ok {
		return zeroOf(to), c.badTime(v, from, to, true)
	}
	return NewTimestamp(t), nil
}

// roundDateTime brings d to the column's precision. That of DATE is a second: the last one of a day may become the next day.
func (c *Context) roundDateTime(d DateTime, nanos int, to *Type) (DateTime, bool) {
	switch {
	case c.Mode&ModeTimeTruncateFraction != 0:
		return d.TruncateFraction(int(to.FSP)), true
	}
	return d.RoundFraction(nanos, int(to.FSP))
}

// storeInstant moves between TIMESTAMP columns without going through a clock
// that may show the same time twice.
func (c *Context) storeInstant(t Timestamp, from, to *Type) (Value, error) {
	unit := Timestamp(fspUnit[to.FSP])
	if c.Mode&ModeTimeTruncateFraction == 0 {
		t += unit / 2
	}
	t -= t % unit
	if t > MaxTimestamp {
		return zeroOf(to), c.badTime(NewTimestamp(t), from, to, true)
	}
	return NewTimestamp(t), nil
}

// instant converts the session's clock to a TIMESTAMP within its range. A time
// that the clock skips is refused in strict mode and moved to the jump otherwise.
func (c *Context) instant(d DateTime) (Timestamp, bool) {
	if d == 0 {
		return 0, true
	}
	if d.hasZeroPart() || !d.Check(0) {
		return 0, false
	}
	t, gap := TimestampOf(d, c.location())
	if t < MinTimestamp || t > MaxTimestamp || gap && c.Mode&ModeStrict != 0 {
		return 0, false
	}
	return t, true
}

func zeroOf(to *Type) Value {
	switch to.Kind {
	case KindDate:
		return NewDate(0)
	case KindDateTime:
		return NewDateTime(0)
	}
	return NewTimestamp(0)
}

// badTime is the error or warning for a value that is no date or time of the
// column's type. looksLike says that it is written like one.
func (c *Context) badTime(v Value, from, to *Type, looksLike bool) error {
	what := "datetime"
	switch to.Kind {
	case KindDate:
		what = "date"
	case KindTime:
		what = "time"
	}
	text, _ := c.text(v, from)
	return c.incorrectTime(what, text, looksLike)
}

// dateTime converts v to a date and time on the session's clock, checked
// against the mode.
func (c *Context) dateTime(v Value, from *Type) (d DateTime, info TimeText, ok bool) {
	switch v.class {
	case ClassDate, ClassDateTime:
		return v.DateTime(), info, v.DateTime().Check(c.Mode)
	case ClassTimestamp:
		d = c.wallClock(v)
		return d, info, d.Check(c.Mode)
	case ClassTime:
		d, ok = c.onToday(v.Time())
		return d, info, ok
	case ClassBytes, ClassJSON:
		d, info, ok = ParseDateTime(c.numberText(v, from), c.Mode)
		if ok && info.HasOffset {
			d, ok = c.fromOffset(d, info.Offset)
		}
		return d, info, ok
	}
	n, micro, nanos, ok := c.numberParts(v, from)
	if !ok || n < 0 || n == 0 && isNegative(v) {
		return 0, info, false
	}
	d, ok = DateTimeOfNumber(n, c.Mode)
	if ok && n > 0 && n < dateWithTime { // a date alone has no fraction
		return d, info, true
	}
	info.Nanos = nanos
	return d | DateTime(micro), info, ok
}

// dateWithTime is the first number that is a date with a time of day.
const dateWithTime = 100_000_000

// onToday adds a time to the statement's date.
func (c *Context) onToday(t Duration) (DateTime, bool) {
	if c.Today == 0 {
		return 0, false
	}
	const day = 86_400 * microsASec
	n := t.Micros()
	days := n / day
	if n %= day; n < 0 {
		n += day
		days--
	}
	d, ok := DateOfDays(c.Today.Days() + int(days))
	return d | DateTime(DurationOfMicros(n)), ok
}

// fromOffset converts the clock of text with an offset to the session's.
func (c *Context) fromOffset(d DateTime, offset int) (DateTime, bool) {
	n := int64(d.Days())*86_400*microsASec + d.Duration().Micros() - int64(offset)*microsASec
	const epochDays = 719528
	return Timestamp(n - epochDays*86_400*microsASec).In(c.location()), n > epochDays*86_400*microsASec
}

// numberParts splits a number: digits before the point, microseconds, nanoseconds.
func (c *Context) numberParts(v Value, from *Type) (n int64, micro, nanos int, ok bool) {
	switch v.class {
	case ClassInt:
		return v.Int(), 0, 0, true
	case ClassUint:
		return v.Int(), 0, 0, v.a < 1<<63
	}
	d, err := c.decimal(v, from)
	if err != nil {
		return 0, 0, 0, false
	}
	d, _ = d.Truncate(min(d.Scale(), 9))
	whole, _ := d.Truncate(0)
	n, ok = whole.Int64()
	if !ok {
		return 0, 0, 0, false
	}
	frac, _ := decimal.Sub(d, whole)
	frac, _ = frac.Abs().Round(9)
	f, _ := frac.Unscaled()
	return n, int(f / 1000), int(f % 1000), true
}

// storeTime stores into TIME.
func (c *Context) storeTime(v Value, from, to *Type) (Value, error) {
	t, info, ok := c.time(v, from)
	if !ok {
		return NewTime(0), c.badTime(v, from, to, info.OutOfRange || v.class != ClassBytes)
	}
	if info.OutOfRange || info.Truncated {
		if err := c.badTime(v, from, to, info.OutOfRange); err != nil {
			return Null, err
		}
	}
	if info.DateLost {
		c.noteTruncated()
	}
	if c.Mode&ModeTimeTruncateFraction != 0 {
		return NewTime(t.TruncateFraction(int(to.FSP))), nil
	}
	t, ok = t.RoundFraction(info.Nanos, int(to.FSP))
	if !ok {
		return NewTime(t), c.badTime(v, from, to, true)
	}
	return NewTime(t), nil
}

// time converts v to a TIME.
func (c *Context) time(v Value, from *Type) (t Duration, info TimeText, ok bool) {
	switch v.class {
	case ClassTime:
		return v.Time(), info, true
	case ClassDate, ClassDateTime, ClassTimestamp:
		d := c.wallClock(v)
		info.DateLost = d.DateNumber() != 0
		return d.Duration(), info, true
	case ClassBytes, ClassJSON:
		return ParseTime(c.numberText(v, from))
	}
	n, micro, nanos, ok := c.numberParts(v, from)
	if !ok {
		return 0, info, false
	}
	t, info.OutOfRange, ok = TimeOfNumber(n)
	if info.OutOfRange {
		return t, info, ok
	}
	info.Nanos = nanos
	if n < 0 || n == 0 && isNegative(v) {
		return t - Duration(micro), info, ok
	}
	return t + Duration(micro), info, ok
}

func isNegative(v Value) bool {
	switch v.class {
	case ClassDecimal:
		d := v.Decimal()
		return d.Negative()
	case ClassFloat:
		return v.Float() < 0
	case ClassDouble:
		return v.Double() < 0
	}
	return false
}
