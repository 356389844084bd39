package expr

import (
	"bytes"
	"iter"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// JSONRows gives the rows that a JSON_TABLE makes of documents, one after the other. It belongs to one task and is used again and again.
// Of a document it holds the binary form; rows are made when they are asked for.
type JSONRows struct {
	table *JSONTable
	x     *Context
	root  *jsonCursor
	row   []types.Value
	doc   []byte // memory of its own
	held  int64  // of it that is accounted for
	isUp  bool
}

// NewRows returns rows without a document.
func (t *JSONTable) NewRows() *JSONRows {
	r := &JSONRows{table: t, row: make([]types.Value, len(t.cols))}
	r.root = r.cursor(t.root)
	return r
}

func (r *JSONRows) cursor(n *jsonNest) *jsonCursor {
	c := &jsonCursor{rows: r, nest: n}
	for _, k := range n.nests {
		c.below = append(c.below, r.cursor(k))
	}
	return c
}

// Open begins with the document that a node gives. Rows are closed then, or there are none.
func (r *JSONRows) Open(x *Context, doc Node) error {
	r.Close()
	m := x.Mark()
	v, err := doc.Value(x, nil, 0)
	if err == nil && !v.IsNull() {
		err = r.take(x, v, doc.Type())
	}
	x.Release(m)
	return err
}

// take makes the document the rows' own: what gives it may be evaluated again before they are read.
func (r *JSONRows) take(x *Context, v types.Value, from *types.Type) error {
	r.x = x
	n := int64(len(v.Bytes()))
	if err := r.hold(n); err != nil {
		return err
	}
	if v.Class() == types.ClassJSON {
		r.doc = append(r.doc[:0], v.Bytes()...)
	} else {
		parsed, err := x.jsonParse(v, from, inJSONTable)
		if err != nil {
			return err
		}
		if err := r.hold(int64(len(parsed.Bytes()))); err != nil {
			return err
		}
		r.doc = append(r.doc[:0], parsed.Bytes()...)
	}
	clear(r.row)
	r.isUp = true
	r.root.open(json.Open(r.doc))
	return nil
}

// hold accounts for a large document.
func (r *JSONRows) hold(n int64) error {
	if n < largeValue || n <= r.held {
		return nil
	}
	if err := r.x.Account(n - r.held); err != nil {
		return err
	}
	r.held = n
	return nil
}

// Close gives up the document.
func (r *JSONRows) Close() {
	if r.isUp {
		r.isUp = false
		r.root.close()
	}
	if r.held > 0 {
		_ = r.x.Account(-r.held) // what is given back is never refused
		r.held = 0
	}
	if cap(r.doc) > keepBytes {
		r.doc = nil
	}
	r.x = nil
}

// rowWork is what making a row counts for between two checks for an interrupt.
const rowWork = 1 << 10

// Fill appends rows to a batch until it is full or there are no more.
func (r *JSONRows) Fill(out *types.Batch) error {
	for r.isUp && !out.Full() {
		if err := r.x.Worked(rowWork); err != nil {
			return err
		}
		more, err := r.root.step()
		if err != nil {
			return err
		}
		if !more {
			r.isUp = false
			r.root.close()
			break
		}
		for i, v := range r.row {
			if err := r.x.AppendTo(&out.Vecs[i], v); err != nil {
				return err
			}
		}
		out.EndRow()
	}
	return nil
}

// jsonCursor goes through the matches of a nest's path, and for each through the rows of the nests in it.
type jsonCursor struct {
	rows  *JSONRows
	nest  *jsonNest
	below []*jsonCursor

	one   json.Value // the only match, if the path has no more
	ahead bool       // it is still to come
	next  func() (json.Value, bool)
	stop  func()
	ended error // why there are no more
	count int64 // matches so far

	value  json.Value // the match at hand
	live   bool       // there is one
	child  int        // the nest in it whose rows are given
	opened bool       // it is open
	given  bool       // a row was given for the match

	store types.Context
	buf   []byte // values of the match at hand
	held  int64  // of it that is accounted for
}

// open begins with the matches in a value.
func (c *jsonCursor) open(v json.Value) {
	c.live, c.count, c.ahead = false, 0, false
	c.next, c.stop = nil, nil
	if c.nest.path.MultiMatch() {
		c.ended = nil
		c.next, c.stop = iter.Pull(c.nest.path.All(v, c.rows.x.pathLimits(), &c.ended))
	} else {
		c.one, c.ahead = c.nest.path.Get(v)
	}
}

// close ends the matches, at whatever point they are; the columns are NULL from then on.
func (c *jsonCursor) close() {
	if c.opened {
		c.below[c.child].close()
		c.opened = false
	}
	if c.stop != nil {
		c.stop()
	}
	c.next, c.stop, c.live, c.ahead = nil, nil, false, false
	for i := range c.nest.cells {
		c.rows.row[c.nest.cells[i].pos] = types.Null
	}
	if cap(c.buf) > keepBytes {
		c.buf = nil
	}
	if c.held > 0 {
		_ = c.rows.x.Account(-c.held) // what is given back is never refused
		c.held = 0
	}
}

// step makes the next row, and reports whether there is one.
func (c *jsonCursor) step() (bool, error) {
	for {
		if c.live {
			more, err := c.inner()
			if more || err != nil {
				return more, err
			}
			if c.live = false; !c.given {
				return true, nil
			}
		}
		if more, err := c.advance(); !more || err != nil {
			return false, err
		}
	}
}

// inner makes the next row of the nests in the match at hand.
func (c *jsonCursor) inner() (bool, error) {
	for ; c.child < len(c.below); c.child++ {
		k := c.below[c.child]
		if !c.opened {
			k.open(c.value)
			c.opened = true
		}
		more, err := k.step()
		if more {
			c.given = true
		}
		if more || err != nil {
			return more, err
		}
		k.close()
		c.opened = false
	}
	return false, nil
}

// advance goes to the next match and computes its columns.
func (c *jsonCursor) advance() (bool, error) {
	switch {
	case c.next != nil:
		v, ok := c.next()
		if !ok {
			return false, c.ended
		}
		c.value = v
	case c.ahead:
		c.value, c.ahead = c.one, false
	default:
		return false, nil
	}
	c.count++
	c.live, c.child, c.given = true, 0, false
	c.buf = c.buf[:0]
	c.store.Reset()
	x := c.rows.x
	c.store.Mode, c.store.Location, c.store.Today, c.store.Row = x.Mode&^types.ModeStrict, x.Location, x.Today, 1
	for i := range c.nest.cells {
		k := &c.nest.cells[i]
		v, err := c.cell(k)
		if err == nil {
			err = c.account()
		}
		if err != nil {
			return false, err
		}
		c.rows.row[k.pos] = v
	}
	return true, nil
}

// cell is the value of a column for the match at hand.
func (c *jsonCursor) cell(k *jsonCell) (types.Value, error) {
	col := &c.rows.table.cols[k.pos]
	switch k.kind {
	case ast.JSONColumnOrdinality:
		return types.NewInt(c.count), nil
	case ast.JSONColumnExists:
		_, ok, err := k.path.First(c.value, c.rows.x.pathLimits())
		if err != nil {
			return types.Null, err
		}
		n := int64(0)
		if ok {
			n = 1
		}
		return c.exists(col, n)
	}
	v, n, err := c.find(k.path)
	switch {
	case err != nil:
		return types.Null, err
	case n == 0 && k.onEmpty.fails:
		return types.Null, sqlerr.New(sqlerr.MissingJSONTableValue, col.Name)
	case n == 0:
		return c.instead(col, k.onEmpty)
	}
	out, err := c.convert(v, col)
	if _, wrong := err.(*sqlerr.Error); wrong && !k.onError.fails {
		return c.instead(col, k.onError)
	}
	return out, err
}

// find is what a path matches, an array of it if it is several values.
func (c *jsonCursor) find(p *json.Path) (found json.Value, n int, err error) {
	if !p.MultiMatch() {
		v, ok := p.Get(c.value)
		if ok {
			n = 1
		}
		return v, n, nil
	}
	x := c.rows.x
	err = p.Each(c.value, x.pathLimits(), func(v json.Value) bool {
		found = v
		n++
		return n < 2
	})
	if n < 2 || err != nil {
		return found, n, err
	}
	held := holding{x: x}
	defer held.done()
	b := json.Builder{Stop: x.Check}
	b.BeginArray()
	_, err = x.collect(&b, p, c.value, &held)
	start := len(c.buf)
	if err == nil {
		b.EndArray()
		c.buf, err = b.Finish(c.buf)
	}
	if err != nil {
		return found, 0, err
	}
	return json.Open(c.buf[start:]), n, nil
}

// account counts the memory of the values that the match at hand has made, if they are large: of each column there may be one as long as the document.
func (c *jsonCursor) account() error {
	n := int64(cap(c.buf))
	if n < largeValue || n <= c.held {
		return nil
	}
	if err := c.rows.x.Account(n - c.held); err != nil {
		return err
	}
	c.held = n
	return nil
}

func (c *jsonCursor) instead(col *JSONTableColumn, a jsonCellAnswer) (types.Value, error) {
	if a.doc == nil {
		return types.Null, nil
	}
	return c.convert(json.Open(a.doc), col)
}

func errJSONColumn(name string) error {
	return sqlerr.New(sqlerr.JTValueOutOfRange, name)
}

func errJSONColumnCast(to, name string) error {
	return sqlerr.New(sqlerr.InvalidJSONValueForCast, to, name, 1)
}

// exists stores 1 or 0.
func (c *jsonCursor) exists(col *JSONTableColumn, n int64) (types.Value, error) {
	if col.Type.Kind == types.KindJSON {
		return types.Null, sqlerr.New(sqlerr.InvalidJSONText, "not a JSON text, may need CAST", 0,
			c.rows.table.name+"."+col.Name)
	}
	v, err := c.assign(types.NewInt(n), nil, col)
	if err != nil {
		return types.Null, nil
	}
	return v, nil
}

// convert makes a value of the column of one that was found.
func (c *jsonCursor) convert(v json.Value, col *JSONTableColumn) (types.Value, error) {
	t := &col.Type
	switch {
	case v.IsNull():
		return types.Null, nil
	case t.Kind == types.KindJSON:
		start := len(c.buf)
		c.buf = v.AppendDocument(c.buf)
		return types.NewJSON(c.buf[start:len(c.buf):len(c.buf)]), nil
	case v.IsContainer():
		return types.Null, sqlerr.New(sqlerr.WrongJSONTableValue, col.Name)
	}
	switch {
	case t.IsInteger() || t.Kind == types.KindBit || t.Kind == types.KindYear:
		n, ok := strictInt(v, false)
		if ok {
			return c.assign(types.NewInt(n), nil, col)
		}
		if n, ok = strictInt(v, true); ok {
			return c.assign(types.NewUint(uint64(n)), nil, col)
		}
		return types.Null, errJSONColumnCast("INTEGER", col.Name)
	case t.Kind == types.KindDecimal:
		d, ok := strictDecimal(v)
		if !ok {
			return types.Null, errJSONColumnCast("DECIMAL", col.Name)
		}
		return c.assign(types.NewDecimal(d), nil, col)
	case t.Kind == types.KindFloat || t.Kind == types.KindDouble:
		f, ok := strictDouble(v)
		if !ok {
			return types.Null, errJSONColumnCast("DOUBLE", col.Name)
		}
		return c.assign(types.NewDouble(f), nil, col)
	}
	if t.IsTemporal() {
		if m, from, ok := scalarTemporal(v); ok {
			return c.assign(m, from, col)
		}
	}
	text := v.Str()
	if v.Type() != json.TypeString {
		start := len(c.buf)
		c.buf = v.AppendUnquoted(c.buf)
		text = c.buf[start:len(c.buf):len(c.buf)]
	}
	return c.assign(types.NewBytes(text), nil, col)
}

// scalarTemporal is the date or time that a value is.
func scalarTemporal(v json.Value) (types.Value, *types.Type, bool) {
	switch v.Type() {
	case json.TypeDate:
		return types.NewDate(v.DateTime().Truncate()), &classTypes[types.ClassDate], true
	case json.TypeDateTime:
		return types.NewDateTime(v.DateTime()), &classTypes[types.ClassDateTime], true
	case json.TypeTime:
		return types.NewTime(v.Time()), &classTypes[types.ClassTime], true
	}
	return types.Null, nil, false
}

// assign stores a value in the column as an INSERT does. What would be cut or out of range is an error, but for digits, and for what
// follows a date.
func (c *jsonCursor) assign(v types.Value, from *types.Type, col *JSONTableColumn) (types.Value, error) {
	t := &col.Type
	cut, lost := false, false
	c.store.Column = col.Name
	c.store.Warn = func(e *sqlerr.Error) {
		cut = cut || e.Number == sqlerr.WarnDataTruncated
		lost = lost || e.Number != sqlerr.WarnDataTruncated
	}
	out, err := c.store.Store(v, from, t)
	c.store.Warn = nil
	if err != nil {
		return types.Null, err
	}
	switch {
	case !cut:
	case t.IsTemporal():
		lost = lost || out.Uint() == 0
	case isString(t):
		text := bytes.TrimRight(v.Bytes(), " ")
		lost = lost || t.Charset().Count(out.Bytes()) < types.CharsetUTF8MB4.Count(text)
	default:
		lost = lost || hasMembers(t)
	}
	if lost || out.IsNull() {
		return types.Null, errJSONColumn(col.Name)
	}
	return out, nil
}
