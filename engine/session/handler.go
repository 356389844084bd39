package session

import (
	"context"
	"math"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// handler is a table that HANDLER has open: a name and a place in an index of it. It holds nothing between two statements. Each READ opens
// the table as a query does, sees what a query would see, and goes on by key from where the last one was. Where the definition is
// another one by then the handler is closed.
type handler struct {
	alias        string
	schema, name string
	temporary    bool
	keys         *record.Schema
	columns      []ResultColumn
	sent         []int // positions of columns
	fetch        []int // positions that a read needs: sent ones and those of keys
	at           []int // by position: where it is in fetch, or -1
	place        handlerPlace
}

// handlerPlace is where a handler stands: at, or between, the entries of an index.
type handlerPlace struct {
	index int // -1: nowhere yet
	scan  bool
	// key is the entry last read, or that which was looked for; what comes after it is next, what comes before it previous.
	key []byte
	// past is 1 behind the last entry, -1 before the first one.
	past int
}

// maxHandlers bounds how many tables a session may have open by HANDLER.
const maxHandlers = 4096

// runHandler is HANDLER.
func (s *Session) runHandler(ctx context.Context, st *ast.Handler) (Outcome, error) {
	if st.Action != ast.HandlerClose && s.trx.tables.held {
		return Outcome{}, sqlerr.New(sqlerr.LockOrActiveTransaction)
	}
	switch st.Action {
	case ast.HandlerOpen:
		var out Outcome
		err := s.openHandler(st)
		return out, s.finishWork(ctx, nil, &out, err)
	case ast.HandlerClose:
		h, err := s.handlerNamed(st.Table.Name)
		if err == nil {
			s.closeHandler(h)
		}
		return Outcome{}, err
	}
	h, err := s.handlerNamed(st.Table.Name)
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	err = s.readHandler(h, st.Read)
	return out, s.finishWork(ctx, nil, &out, err)
}

// handlerNamed finds an open table. Error: 1109.
func (s *Session) handlerNamed(name string) (*handler, error) {
	if h := s.handlers[dict.Fold(name)]; h != nil {
		return h, nil
	}
	return nil, sqlerr.New(sqlerr.UnknownTable, name, "HANDLER")
}

func (s *Session) closeHandler(h *handler) { delete(s.handlers, dict.Fold(h.alias)) }

// openHandler is HANDLER .. OPEN. Errors: 1066, 1347, and those of a query of the table.
func (s *Session) openHandler(st *ast.Handler) error {
	alias := st.Alias
	if alias == "" {
		alias = st.Table.Name
	}
	if s.handlers[dict.Fold(alias)] != nil {
		return sqlerr.New(sqlerr.NonUniqTable, alias)
	}
	if len(s.handlers) >= maxHandlers {
		return sqlerr.Newf(sqlerr.UnknownError, "Too many tables are open by HANDLER (more than %d)", maxHandlers)
	}
	schema, err := s.schemaOf(st.Table)
	if err != nil {
		return err
	}
	if known, ok := virtualSchema(schema); ok {
		return sqlerr.New(sqlerr.WrongObject, known, strings.ToUpper(st.Table.Name), "BASE TABLE")
	}
	c, err := s.compile(&ast.Select{Items: []ast.SelectItem{{Star: true}}, From: &ast.TableRef{TableName: st.Table, Alias: alias}}, nil)
	if err != nil {
		return err
	}
	if c.tables[0].view {
		return sqlerr.New(sqlerr.WrongObject, schema, st.Table.Name, "BASE TABLE")
	}
	h := &handler{alias: strings.Clone(alias), schema: c.tables[0].schema, name: c.tables[0].name, temporary: c.temporary, keys: c.tables[0].keys,
		columns: c.columns, place: handlerPlace{index: -1}}
	h.at = make([]int, len(h.keys.Columns))
	for p := range h.keys.Columns {
		h.at[p] = -1
		col := &h.keys.Columns[p]
		if col.DroppedIn != 0 {
			continue
		}
		h.at[p] = len(h.fetch)
		h.fetch = append(h.fetch, p)
		if !col.Hidden && !col.Invisible {
			h.sent = append(h.sent, p)
		}
	}
	if s.handlers == nil {
		s.handlers = map[string]*handler{}
	}
	s.handlers[dict.Fold(h.alias)] = h
	return nil
}

// readHandler is HANDLER .. READ.
func (s *Session) readHandler(h *handler, read *ast.HandlerRead) error {
	use := plan.Use{Schema: h.schema, Table: h.name}
	for _, c := range h.columns {
		use.Columns = append(use.Columns, c.OrgName)
	}
	if err := s.mayRun([]plan.Use{use}, "SELECT", nil); err != nil {
		return err
	}
	s.work.reads = true
	if err := s.pointQuery(); err != nil {
		return err
	}
	o, err := s.openTable(h.schema, h.name, !h.temporary)
	if err != nil || o.Table().Schema != h.keys {
		if err == nil || errorNumber(err) == sqlerr.NoSuchTable || errorNumber(err) == sqlerr.BadDBError {
			s.closeHandler(h)
			err = sqlerr.New(sqlerr.UnknownTable, h.alias, "HANDLER")
		}
		return err
	}
	s.out.locked = s.trx.active && s.trx.level == trx.Serializable
	if err := s.readPoint(); err != nil {
		return err
	}
	r := &handlerReader{s: s, h: h, limit: 1}
	if read.Limit != nil {
		if r.limit, r.offset, err = s.handlerLimit(read.Limit); err != nil {
			return err
		}
	}
	scope := &handlerScope{h: h}
	scope.Opt = s.bindOptions(nil)
	if read.Where != nil {
		n, err := expr.Bind(scope, read.Where)
		if err != nil {
			return err
		}
		r.where = expr.Condition(n)
	}
	rng, any, err := r.rangeOf(scope, read)
	if err != nil {
		return err
	}
	if err := s.out.columns(h.columns); err != nil {
		return err
	}
	if any && r.limit > 0 {
		err = r.run(o, rng)
	}
	if err == nil && s.out.locked && s.out.rows == 0 {
		err = s.afterLocked()
	}
	return err
}

// handlerLimit is the number of rows that LIMIT allows, and how many it passes over.
func (s *Session) handlerLimit(l *ast.Limit) (limit, offset uint64, err error) {
	for _, x := range []struct {
		e  ast.Expr
		to *uint64
	}{{l.Count, &limit}, {l.Offset, &offset}} {
		if x.e == nil {
			continue
		}
		v, _, err := s.evaluate(x.e)
		if err != nil {
			return 0, 0, err
		}
		*x.to = v.Uint()
	}
	return limit, offset, nil
}

// handlerScope gives the columns of an open table, in the batches of its reads.
type handlerScope struct {
	columnScope
	h *handler
}

func (c *handlerScope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	own := columnScope{keys: c.h.keys}
	if ref.Table != "" && ref.Table != c.h.alias || ref.Schema != "" && ref.Schema != c.h.schema {
		return nil, unknownColumn(ref, "field list")
	}
	n, err := own.Column(&ast.ColumnRef{Name: ref.Name})
	if err != nil {
		return nil, unknownColumn(ref, "field list")
	}
	p := n.(*expr.Column).Position()
	return expr.NewColumn(c.h.at[p], &c.h.keys.Columns[p].Type, ref.Name), nil
}

func (c *handlerScope) Default(d *ast.Default) (expr.Node, error) {
	if d.Column == nil {
		return c.columnScope.Default(d)
	}
	n, err := c.Column(d.Column)
	if err != nil {
		return nil, err
	}
	return plan.ColumnDefault(&c.h.keys.Columns[c.h.fetch[n.(*expr.Column).Position()]], d.Column.Name)
}

// handlerReader is one READ.
type handlerReader struct {
	s      *Session
	h      *handler
	where  expr.Node
	limit  uint64
	offset uint64
	key    []byte // of the entry last read
}

// rangeOf is what a READ goes through, with the place to stand at if that is empty. any is false if there can be nothing.
func (r *handlerReader) rangeOf(scope *handlerScope, read *ast.HandlerRead) (rng table.Range, any bool, err error) {
	h, place := r.h, &r.h.place
	scan := read.Index == ""
	index := 0
	if !scan {
		if index = h.index(read.Index); index < 0 {
			return rng, false, sqlerr.New(sqlerr.KeyDoesNotExits, read.Index, h.alias)
		}
	}
	rng = table.Range{Index: index, Columns: h.fetch, Keys: true}
	here := place.index == index && place.scan == scan // else NEXT and PREV begin anew
	was := *place
	place.index, place.scan = index, scan
	rng.Backward = read.Move == "PREV" || read.Move == "LAST" || read.Move == "" && (read.Op == ast.OpLt || read.Op == ast.OpLe)
	switch {
	case read.Move == "":
		key, err := r.keyOf(scope, read, index)
		if err != nil {
			*place = was
			return rng, false, err
		}
		place.key, place.past = key, 0
		switch read.Op {
		case ast.OpEq:
			rng.Low, rng.High = key, key
		case ast.OpGe, ast.OpGt:
			rng.Low, rng.LowOpen = key, read.Op == ast.OpGt
		default:
			rng.High, rng.HighOpen = key, read.Op == ast.OpLt
		}
	case here && read.Move == "NEXT":
		if place.past >= 0 {
			rng.Low, rng.LowOpen = place.key, place.key != nil
		}
		return rng, place.past <= 0, nil
	case here && read.Move == "PREV":
		if place.past <= 0 {
			rng.High, rng.HighOpen = place.key, place.key != nil
		}
		return rng, place.past >= 0, nil
	default:
		place.key, place.past = nil, 0
	}
	return rng, true, nil
}

// index finds an index by name: its position, or -1.
func (h *handler) index(name string) int {
	for i := range h.keys.Indexes {
		if n := h.keys.Indexes[i].Name; dict.Fold(n) == dict.Fold(name) && n != dict.HiddenIndex {
			return i
		}
	}
	return -1
}

// keyOf is the key that a READ looks for. Errors: 1070, more values than parts; 1210, one is no constant; 1048.
func (r *handlerReader) keyOf(scope *handlerScope, read *ast.HandlerRead, index int) ([]byte, error) {
	k := r.h.keys.Keys[index]
	if len(read.Values) > len(k.Index.Parts) {
		return nil, sqlerr.New(sqlerr.TooManyKeyParts, len(k.Index.Parts))
	}
	key := []byte{}
	for i, e := range read.Values {
		p := &k.Parts[i]
		var n expr.Node
		var err error
		if d, ok := e.(*ast.Default); ok && d.Column == nil {
			if n, err = plan.ColumnDefault(&r.h.keys.Columns[p.Column], ""); err != nil {
				return nil, sqlerr.New(sqlerr.WrongArguments, "HANDLER ... READ")
			}
		} else {
			n, err = expr.Bind(scope, e)
		}
		if err != nil {
			return nil, err
		}
		if _, ok := n.(*expr.Const); !ok {
			return nil, sqlerr.New(sqlerr.WrongArguments, "HANDLER ... READ")
		}
		v, err := n.Value(&r.s.x, nil, 0)
		if err != nil {
			return nil, err
		}
		if v.IsNull() {
			if p.Type.NotNull {
				return nil, sqlerr.New(sqlerr.BadNullError, read.Index)
			}
		} else {
			quiet := types.Context{Warn: func(*sqlerr.Error) {}, Mode: types.ModeAllowInvalidDates}
			if v, err = quiet.Store(v, n.Type(), p.Type); err != nil {
				return nil, err
			}
		}
		key = types.AppendKey(key, v, p.Type, p.Desc, p.Prefix)
	}
	return key, nil
}

// run reads the range until the limit is reached, and stands where it has stopped.
func (r *handlerReader) run(o *txn.Table, rng table.Range) error {
	s, h := r.s, r.h
	kinds := make([]*types.Type, len(h.fetch))
	for i, p := range h.fetch {
		kinds[i] = &h.keys.Columns[p].Type
	}
	b, out := types.NewRow(kinds), types.NewRow(columnTypes(h.columns))
	most := uint64(types.BatchRows)
	if r.where == nil && r.offset < most && r.limit < most-r.offset {
		most = r.limit + r.offset
	}
	b.SetMost(int(most)) //nolint:gosec // at most BatchRows
	scan := s.scan()
	defer s.giveScan(scan)
	if err := scan.Start(o, rng); err != nil {
		return err
	}
	for more := true; more; {
		if err := s.interrupted(); err != nil {
			return err
		}
		var err error
		b.Reset()
		if more, err = scan.Next(b); err != nil {
			return err
		}
		s.work.note(b)
		s.meter.examined += uint64(b.Len())
		out.Reset()
		done, err := r.take(scan, rng.Index, b, out)
		if err != nil {
			return err
		}
		if err := s.out.batch(out); err != nil {
			return err
		}
		if done {
			return nil
		}
	}
	// The end of a range of equal keys is no end of the index.
	if rng.Low == nil || rng.High == nil {
		h.place.past = 1
		if rng.Backward {
			h.place.past = -1
		}
		h.place.key = nil
	}
	return nil
}

// take puts the rows of a batch that are wanted into out, stands at the last one that it has looked at, and reports whether there are to be no more.
func (r *handlerReader) take(scan *txn.Scan, index int, b, out *types.Batch) (done bool, err error) {
	h, last := r.h, b.Len()-1
	defer func() {
		if last >= 0 {
			r.stand(scan, index, b, last)
		}
	}()
	for i := range b.Len() {
		if r.where != nil {
			m := r.s.x.Mark()
			ok, err := expr.True(&r.s.x, r.where, b, i)
			r.s.x.Release(m)
			if err != nil {
				last = i
				return false, err
			}
			if !ok {
				continue
			}
		}
		if r.offset > 0 {
			r.offset--
			continue
		}
		for c, p := range h.sent {
			out.Vecs[c].AppendFrom(&b.Vecs[h.at[p]], i)
		}
		out.EndRow()
		if r.limit != math.MaxUint64 {
			if r.limit--; r.limit == 0 {
				last = i
				return true, nil
			}
		}
	}
	return false, nil
}

// stand is at the entry of a row from now on. Entries of secondary indexes end with the clustered key.
func (r *handlerReader) stand(scan *txn.Scan, index int, b *types.Batch, row int) {
	h := r.h
	key := r.key[:0]
	if index > 0 {
		for i := range h.keys.Keys[index].Index.Parts {
			p := &h.keys.Keys[index].Parts[i]
			key = types.AppendKey(key, b.Vecs[h.at[p.Column]].Value(row), p.Type, p.Desc, p.Prefix)
		}
	}
	r.key = append(key, scan.Key(row)...)
	h.place.key, h.place.past = r.key, 0
}
