package console

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// results is a session.ResultWriter that gathers results as JSON, as much as may be.
type results struct {
	most     int // rows of a statement
	location *time.Location
	session  Session
	before   uint64 // the session's last GTID
	began    time.Time

	all     []*result
	current *result
	size    int // bytes of all rows
	err     *problem
	full    bool
	open    bool // a transaction was, at the end
	gtid    uint64
	notes   []warning
	// keyNames are columns whose values of the last row are wanted: last, if key has found them.
	keyNames []string
	key      []int
	last     []string
	scratch  []byte
	held     int64 // bytes that the session has accounted for
}

// result is that of a statement.
type result struct {
	Columns      []column        `json:"columns,omitempty"`
	Rows         json.RawMessage `json:"rows,omitempty"`
	Count        int             `json:"count"`
	More         bool            `json:"more,omitempty"` // there are more rows than were asked for
	Cut          []cut           `json:"cut,omitempty"`
	Affected     uint64          `json:"affected"`
	LastInsertID uint64          `json:"last_insert_id,string"`
	Warnings     int             `json:"warnings"`
	Info         string          `json:"info,omitempty"`
	MS           float64         `json:"ms"`

	types []*types.Type
	most  int // bytes of a value
	rows  []byte
	began time.Time
}

// column is one of a result.
type column struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Number bool   `json:"number,omitempty"` // it is shown to the right
	Binary bool   `json:"binary,omitempty"` // its values are hexadecimal digits
	Key    bool   `json:"key,omitempty"`    // of the primary key
}

// cut is a value of which only the beginning is there.
type cut struct {
	Row    int `json:"row"`
	Column int `json:"column"`
	Bytes  int `json:"bytes"`
}

type warning struct {
	Level   string      `json:"level"`
	Number  sqlerr.Code `json:"number"`
	Message string      `json:"message"`
}

// errFull ends a statement of whose result enough is there.
var errFull = errors.New("console: the result is large enough")

func (r *results) begin() error {
	if len(r.all) >= resultsMost {
		return errFull
	}
	r.current = &result{began: time.Now()}
	if len(r.all) == 0 {
		r.current.began = r.began
	}
	r.all = append(r.all, r.current)
	return nil
}

// Columns implements session.ResultWriter.
func (r *results) Columns(cols []session.ResultColumn) error {
	if err := r.begin(); err != nil {
		return err
	}
	for i := range cols {
		t := cols[i].Type
		r.current.types = append(r.current.types, t)
		r.current.Columns = append(r.current.Columns, column{Name: valid(cols[i].Name), Type: typeName(t), Binary: isBinary(t),
			Number: isNumber(t), Key: cols[i].Flags&session.PrimaryKey != 0})
	}
	r.current.most = cellMost(len(cols))
	for _, name := range r.keyNames {
		at := slices.IndexFunc(cols, func(c session.ResultColumn) bool { return c.OrgName == name })
		if at < 0 {
			r.key = nil // an invisible one
			break
		}
		r.key = append(r.key, at)
	}
	return nil
}

// cellMost is how many bytes of a value are shown beside others: so many that a row always fits a
// result, since a byte may become six (\u0000).
func cellMost(columns int) int {
	return min(cellBytes, ((resultBytes-2)/max(columns, 1)-3)/6)
}

// Rows implements session.ResultWriter.
func (r *results) Rows(b *types.Batch) error {
	c := r.current
	for i := range b.Len() {
		if c.Count >= r.most {
			c.More = true
			return errFull
		}
		before, cuts := len(c.rows), len(c.Cut)
		c.rows = append(c.rows, separator(c.rows)...)
		for k := range b.Vecs {
			if k > 0 {
				c.rows = append(c.rows, ',')
			}
			err := r.cell(b, i, k)
			if err == nil && r.size+len(c.rows)-before > resultBytes {
				c.More = true
				err = errFull
			}
			if err != nil {
				c.rows, c.Cut = c.rows[:before], c.Cut[:cuts]
				return err
			}
		}
		if err := r.keep(b, i); err != nil {
			c.rows, c.Cut = c.rows[:before], c.Cut[:cuts]
			return err
		}
		c.rows = append(c.rows, ']')
		r.size += len(c.rows) - before
		c.Count++
	}
	r.release()
	return nil
}

func separator(rows []byte) string {
	if len(rows) == 0 {
		return "["
	}
	return ",["
}

// cell appends a value: a text, or null.
func (r *results) cell(b *types.Batch, i, k int) error {
	c := r.current
	if b.Vecs[k].IsNull(i) {
		c.rows = append(c.rows, "null"...)
		return nil
	}
	text, err := r.text(b, i, k)
	if err != nil {
		return err
	}
	if len(text) > c.most {
		c.Cut = append(c.Cut, cut{c.Count, k, len(text)}) // no more than there are bytes for
		end := c.most
		for !isBinary(c.types[k]) && end > 0 && text[end]&0xc0 == 0x80 {
			end--
		}
		text = text[:end]
	}
	if isBinary(c.types[k]) {
		c.rows = append(c.rows, '"')
		c.rows = hex.AppendEncode(c.rows, text)
		c.rows = append(c.rows, '"')
		return nil
	}
	q, err := json.Marshal(valid(string(text)))
	c.rows = append(c.rows, q...)
	return err
}

// text is a value as clients see it, in UTF-8; it is valid until the next one. Errors: as of Session.Hold.
func (r *results) text(b *types.Batch, i, k int) ([]byte, error) {
	r.release()
	v := &b.Vecs[k]
	t := v.Type()
	converts := false
	if t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet {
		cs := t.Charset()
		converts = !cs.IsUTF8() && cs != types.CharsetBinary
	}
	if t.Class() == types.ClassBytes && !converts {
		return v.BytesAt(i), nil // of which only the beginning is shown
	}
	if n := int64(v.Bytes(i)); n > keptCell {
		if err := r.session.Hold(3 * n); err != nil { // its text, and that in another character set
			return nil, err
		}
		r.held = 3 * n
	}
	r.scratch = types.AppendText(r.scratch[:0], v.Value(i), t, r.location)
	if converts {
		out, _ := types.Convert(nil, r.scratch, t.Charset(), types.CharsetUTF8MB4)
		return out, nil
	}
	return r.scratch, nil
}

// keptCell is how much memory for the text of a value is kept from one to the next.
const keptCell = 64 << 10

// release gives back what the last text has taken.
func (r *results) release() {
	if r.held > 0 {
		_ = r.session.Hold(-r.held) // what is given back is never refused
		r.held = 0
	}
	if cap(r.scratch) > keptCell {
		r.scratch = nil
	}
}

// keep remembers the values by which a table is read on.
func (r *results) keep(b *types.Batch, i int) error {
	if r.key == nil {
		return nil
	}
	last := make([]string, 0, len(r.key)) // not those of two rows, if there is no memory for all
	for _, k := range r.key {
		text, err := r.text(b, i, k)
		if err != nil {
			return err
		}
		if isBinary(b.Vecs[k].Type()) {
			text = hex.AppendEncode(nil, text)
		}
		last = append(last, string(text))
	}
	r.last = last
	return nil
}

// Done implements session.ResultWriter.
func (r *results) Done(o session.Outcome) error {
	if r.current == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	r.close()
	c := r.current
	c.Affected, c.LastInsertID, c.Warnings, c.Info = o.AffectedRows, o.LastInsertID, int(o.Warnings), valid(o.Info)
	r.current = nil
	return nil
}

// close notes how long the current result took.
func (r *results) close() {
	if c := r.current; c != nil {
		c.MS = float64(time.Since(c.began).Microseconds()) / 1e3
	}
}

// finish notes how it ended.
func (r *results) finish(err error, stopped *sqlerr.Error) {
	r.release()
	r.close()
	r.open = r.session.Status()&session.StatusInTransaction != 0
	if g := r.session.LastGTID(); g != r.before {
		r.gtid = g
	}
	var known *sqlerr.Error
	switch {
	case err == nil:
	case errors.Is(err, errFull):
		r.full = true
	case stopped != nil && (!errors.As(err, &known) || known.Number == errInterrupted.Number):
		r.err = explain(stopped)
	default:
		r.err = explain(err)
	}
	if r.err != nil && r.current != nil {
		// What came before the error stays, as far as it is.
		r.current.More = true
	}
	for _, one := range r.session.Conditions() {
		if len(r.notes) == warningsMost {
			break
		}
		if one.Level != "Error" || r.err == nil {
			r.notes = append(r.notes, warning{one.Level, one.Error.Number, valid(one.Error.Message)})
		}
	}
}

// texts are the rows of the first result; NULL is empty.
func (r *results) texts() (rows [][]string, err error) {
	if len(r.all) > 0 {
		err = json.Unmarshal(rowsJSON(r.all[0].rows), &rows)
	}
	return rows, err
}

// encode is the answer.
func (r *results) encode() []byte {
	for _, c := range r.all {
		if c.Columns != nil {
			c.Rows = rowsJSON(c.rows)
		}
	}
	return mustJSON(struct {
		Results     []*result `json:"results"`
		Error       *problem  `json:"error,omitempty"`
		Full        bool      `json:"full,omitempty"` // it ended early, since enough was there
		Transaction bool      `json:"rolled_back,omitempty"`
		GTID        uint64    `json:"gtid,string,omitempty"`
		Warnings    []warning `json:"warnings,omitempty"`
	}{r.all, r.err, r.full, r.open, r.gtid, r.notes})
}

// rowsJSON completes rows that are gathered as [..],[..].
func rowsJSON(rows []byte) json.RawMessage {
	out := make([]byte, 0, len(rows)+2)
	return append(append(append(out, '['), rows...), ']')
}

func isNumber(t *types.Type) bool {
	switch t.Kind {
	case types.KindDecimal, types.KindFloat, types.KindDouble:
		return true
	}
	return t.IsInteger()
}

func isBinary(t *types.Type) bool {
	switch t.Kind {
	case types.KindBit, types.KindBinary, types.KindVarBinary, types.KindTinyBlob, types.KindBlob, types.KindMediumBlob, types.KindLongBlob:
		return true
	}
	return false
}

var kindNames = map[types.Kind]string{types.KindNull: "null", types.KindTinyInt: "tinyint", types.KindSmallInt: "smallint", types.KindMediumInt: "mediumint",
	types.KindInt: "int", types.KindBigInt: "bigint", types.KindDecimal: "decimal", types.KindFloat: "float", types.KindDouble: "double",
	types.KindBit: "bit", types.KindDate: "date", types.KindTime: "time", types.KindDateTime: "datetime", types.KindTimestamp: "timestamp",
	types.KindYear: "year", types.KindChar: "char", types.KindVarChar: "varchar", types.KindTinyText: "tinytext", types.KindText: "text",
	types.KindMediumText: "mediumtext", types.KindLongText: "longtext", types.KindBinary: "binary", types.KindVarBinary: "varbinary",
	types.KindTinyBlob: "tinyblob", types.KindBlob: "blob", types.KindMediumBlob: "mediumblob", types.KindLongBlob: "longblob",
	types.KindEnum: "enum", types.KindSet: "set", types.KindJSON: "json"}

// typeName is a type as a column's head shows it.
func typeName(t *types.Type) string {
	name := kindNames[t.Kind]
	switch {
	case t.Kind == types.KindDecimal:
		name += "(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case (t.Kind == types.KindChar || t.Kind == types.KindVarChar || t.Kind == types.KindBinary || t.Kind == types.KindVarBinary || t.Kind == types.KindBit) && t.Length > 0:
		name += "(" + strconv.FormatUint(uint64(t.Length), 10) + ")"
	case t.IsTemporal() && t.FSP > 0:
		name += "(" + strconv.Itoa(int(t.FSP)) + ")"
	}
	if t.Unsigned {
		name += " unsigned"
	}
	return name
}
