package client

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Decimal is an exact number as text, for parameters.
type Decimal string

func itoa(n int) string { return strconv.Itoa(n) }

const datetimeForm = "2006-01-02 15:04:05.999999"

// setValue turns a Go value into a parameter.
func (db *DB) setValue(p *pb.SqlValue, a any) error {
	switch v := a.(type) {
	case nil:
	case int:
		p.Kind = &pb.SqlValue_Int{Int: int64(v)}
	case int64:
		p.Kind = &pb.SqlValue_Int{Int: v}
	case uint64:
		p.Kind = &pb.SqlValue_Uint{Uint: v}
	case string:
		p.Kind = &pb.SqlValue_Text{Text: v}
	case []byte:
		if v != nil {
			p.Kind = &pb.SqlValue_Blob{Blob: v}
		}
	case float64:
		p.Kind = &pb.SqlValue_Double{Double: v}
	case bool:
		p.Kind = &pb.SqlValue_Bool{Bool: v}
	case Decimal:
		p.Kind = &pb.SqlValue_Decimal{Decimal: string(v)}
	case json.RawMessage:
		if v != nil {
			p.Kind = &pb.SqlValue_Text{Text: string(v)}
		}
	case time.Time:
		p.Kind = &pb.SqlValue_Datetime{Datetime: v.In(db.location()).Truncate(time.Microsecond).Format(datetimeForm)}
	case time.Duration:
		p.Kind = &pb.SqlValue_Time{Time: durationText(v)}
	case driver.Valuer:
		if rv := reflect.ValueOf(a); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return nil
		}
		inner, err := v.Value()
		if err != nil {
			return err
		}
		if _, again := inner.(driver.Valuer); again {
			return fmt.Errorf("a driver.Valuer of type %T has given another", a)
		}
		return db.setValue(p, inner)
	default:
		return db.setReflected(p, a)
	}
	return nil
}

func (db *DB) setReflected(p *pb.SqlValue, a any) error {
	v := reflect.ValueOf(a)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return db.setValue(p, v.Elem().Interface())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.Kind = &pb.SqlValue_Int{Int: v.Int()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.Kind = &pb.SqlValue_Uint{Uint: v.Uint()}
	case reflect.Float32, reflect.Float64:
		p.Kind = &pb.SqlValue_Double{Double: v.Float()}
	case reflect.Bool:
		p.Kind = &pb.SqlValue_Bool{Bool: v.Bool()}
	case reflect.String:
		p.Kind = &pb.SqlValue_Text{Text: v.String()}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if !v.IsNil() {
				p.Kind = &pb.SqlValue_Blob{Blob: v.Bytes()}
			}
			return nil
		}
		fallthrough
	default:
		return fmt.Errorf("a value of type %T cannot be a parameter", a)
	}
	return nil
}

func (db *DB) location() *time.Location {
	if db.opt.Location == nil {
		return time.UTC
	}
	return db.opt.Location
}

// durationText is a span as a TIME.
func durationText(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	us := d.Microseconds()
	return fmt.Sprintf("%s%02d:%02d:%02d.%06d", sign, us/3600_000_000, us/60_000_000%60, us/1_000_000%60, us%1_000_000)
}

// layout is in which array a column's values are.
type layout uint8

const (
	bytes layout = iota
	ints
	uints
	doubles
	floats
	nothing
)

func layoutOf(c *pb.SqlColumn) layout {
	switch t := c.Type; {
	case t >= pb.SqlType_SQL_TYPE_TINYINT && t <= pb.SqlType_SQL_TYPE_BIGINT:
		if c.Unsigned {
			return uints
		}
		return ints
	case t == pb.SqlType_SQL_TYPE_YEAR:
		return uints
	case t == pb.SqlType_SQL_TYPE_DOUBLE:
		return doubles
	case t == pb.SqlType_SQL_TYPE_FLOAT:
		return floats
	case t == pb.SqlType_SQL_TYPE_NULL:
		return nothing
	}
	return bytes
}

// IsNull reports whether a value of the present row is NULL.
func (r *Rows) IsNull(column int) bool {
	n := r.batch.Columns[column].Nulls
	return layoutOf(r.columns[column]) == nothing || r.row/8 < len(n) && n[r.row/8]&(1<<(r.row%8)) != 0
}

// Bytes returns a value that is text or bytes; it is valid until Next. nil: NULL, or a number.
func (r *Rows) Bytes(column int) []byte {
	if layoutOf(r.columns[column]) != bytes || r.IsNull(column) {
		return nil
	}
	at := r.starts[column]
	return r.batch.Columns[column].Bytes[at[r.row]:at[r.row+1]:at[r.row+1]]
}

// Int64 returns a value that is a whole number; 0: NULL, or something else.
func (r *Rows) Int64(column int) int64 {
	v := r.batch.Columns[column]
	switch layoutOf(r.columns[column]) {
	case ints:
		return v.Ints[r.row]
	case uints:
		return int64(v.Uints[r.row])
	}
	return 0
}

// Float64 returns a value that is a DOUBLE or FLOAT; 0: NULL, or something else.
func (r *Rows) Float64(column int) float64 {
	v := r.batch.Columns[column]
	switch layoutOf(r.columns[column]) {
	case doubles:
		return v.Doubles[r.row]
	case floats:
		return widen(v.Floats[r.row])
	}
	return 0
}

// widen gives a FLOAT the digits that it has as a float32.
func widen(f float32) float64 {
	d, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return d
}

// Value returns a value of the present row: nil, int64, uint64, float64, []byte of binary columns,
// time.Time of dates and times of day with a date, or string. Zero dates are strings.
func (r *Rows) Value(column int) any {
	if r.IsNull(column) {
		return nil
	}
	c, v := r.columns[column], r.batch.Columns[column]
	switch layoutOf(c) {
	case ints:
		return v.Ints[r.row]
	case uints:
		return v.Uints[r.row]
	case doubles, floats:
		return r.Float64(column)
	}
	b := r.Bytes(column)
	switch c.Type {
	case pb.SqlType_SQL_TYPE_BINARY, pb.SqlType_SQL_TYPE_VARBINARY, pb.SqlType_SQL_TYPE_BLOB, pb.SqlType_SQL_TYPE_BIT:
		return append([]byte{}, b...)
	case pb.SqlType_SQL_TYPE_DATE, pb.SqlType_SQL_TYPE_DATETIME, pb.SqlType_SQL_TYPE_TIMESTAMP:
		if t, err := parseTime(string(b), r.s.db.location()); err == nil {
			return t
		}
	}
	return string(b)
}

func parseTime(s string, loc *time.Location) (time.Time, error) {
	if len(s) == len("2006-01-02") {
		return time.ParseInLocation("2006-01-02", s, loc)
	}
	return time.ParseInLocation("2006-01-02 15:04:05", s, loc)
}

// Scan stores the values of the present row where dest points to: numbers, strings, bytes, bool,
// time.Time, any, pointers of these for columns with NULL, and sql.Scanner.
func (r *Rows) Scan(dest ...any) error {
	if r.batch == nil || r.row < 0 {
		return errors.New("client: Scan without a row: Next comes first")
	}
	if len(dest) != len(r.columns) {
		return fmt.Errorf("client: %d places for %d columns", len(dest), len(r.columns))
	}
	for i, d := range dest {
		if err := r.scan(i, d); err != nil {
			return fmt.Errorf("client: column %d (%s): %w", i+1, r.columns[i].Name, err)
		}
	}
	return nil
}

func (r *Rows) scan(i int, dest any) error {
	switch d := dest.(type) {
	case *any:
		*d = r.Value(i)
		return nil
	case sql.Scanner:
		v := r.Value(i)
		if u, ok := v.(uint64); ok && u <= math.MaxInt64 {
			v = int64(u)
		}
		return d.Scan(v)
	case *[]byte:
		*d = nil
		if !r.IsNull(i) {
			*d = r.appendText([]byte{}, i)
		}
		return nil
	case *json.RawMessage:
		*d = nil
		if !r.IsNull(i) {
			*d = r.appendText([]byte{}, i)
		}
		return nil
	}
	v := reflect.ValueOf(dest)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("%T is no place for a value", dest)
	}
	if v = v.Elem(); v.Kind() == reflect.Pointer {
		if r.IsNull(i) {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.scan(i, v.Interface())
	}
	if r.IsNull(i) {
		return fmt.Errorf("NULL has no place in %s", v.Type())
	}
	switch d := dest.(type) {
	case *int64:
		if layoutOf(r.columns[i]) == ints {
			*d = r.batch.Columns[i].Ints[r.row]
			return nil
		}
	case *string:
		if layoutOf(r.columns[i]) == bytes {
			*d = string(r.Bytes(i))
			return nil
		}
	case *time.Time:
		t, err := parseTime(string(r.Bytes(i)), r.s.db.location())
		*d = t
		return err
	}
	return r.scanReflected(i, v)
}

// appendText appends a value's text.
func (r *Rows) appendText(b []byte, i int) []byte {
	switch v := r.batch.Columns[i]; layoutOf(r.columns[i]) {
	case ints:
		return strconv.AppendInt(b, v.Ints[r.row], 10)
	case uints:
		return strconv.AppendUint(b, v.Uints[r.row], 10)
	case doubles:
		return strconv.AppendFloat(b, v.Doubles[r.row], 'g', -1, 64)
	case floats:
		return strconv.AppendFloat(b, float64(v.Floats[r.row]), 'g', -1, 32)
	}
	return append(b, r.Bytes(i)...)
}

func (r *Rows) scanReflected(i int, v reflect.Value) error {
	text := string(r.appendText(nil, i))
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch b := r.Bytes(i); {
		case layoutOf(r.columns[i]) != bytes:
			v.SetBool(text != "0")
		case len(b) == 1 && b[0] <= 1: // BIT(1)
			v.SetBool(b[0] == 1)
		default:
			t, err := strconv.ParseBool(text)
			if err != nil {
				return err
			}
			v.SetBool(t)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetFloat(f)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return nil
		}
		fallthrough
	default:
		return fmt.Errorf("%s is no place for a value", v.Type())
	}
	return nil
}
