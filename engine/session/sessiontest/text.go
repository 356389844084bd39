package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Format says how results are written.
type Format struct {
	Sort  bool // rows in the order of their text
	Types bool // the columns' types in the header
}

// Text runs a text and writes what came of it:
//
//	id | name          header and rows of a row set
//	1 | one
//	ok                 a statement without rows; more is told if there is more to tell
//	error 1146 (42S02): Table 'shop.t' doesn't exist
func (r *Rig) Text(s *session.Session, sql string) string { return r.Formatted(s, sql, Format{}) }

// Formatted is Text in another format.
func (r *Rig) Formatted(s *session.Session, sql string, f Format) string {
	w := &writer{s: s, format: f}
	if err := s.Query(context.Background(), sql, w); err != nil {
		w.fail(err)
	}
	return w.out.String()
}

// Prepared prepares a statement, runs it with the arguments and writes what came of it.
func (r *Rig) Prepared(s *session.Session, sql string, args ...any) string {
	w := &writer{s: s}
	p, err := s.Prepare(context.Background(), sql)
	if err != nil {
		w.fail(err)
		return w.out.String()
	}
	defer p.Close()
	if err := s.ExecutePrepared(context.Background(), p, Args(args...), w); err != nil {
		w.fail(err)
	}
	return w.out.String()
}

// Args makes arguments of Go values: nil, int, uint64, float64, string, []byte.
func Args(values ...any) []session.Arg {
	var list []session.Arg
	for _, v := range values {
		var a session.Arg
		switch v := v.(type) {
		case int:
			a.Value, a.Type = types.NewInt(int64(v)), &types.Type{Kind: types.KindBigInt}
		case uint64:
			a.Value, a.Type = types.NewUint(v), &types.Type{Kind: types.KindBigInt, Unsigned: true}
		case float64:
			a.Value, a.Type = types.NewDouble(v), &types.Type{Kind: types.KindDouble}
		case string:
			a.Value, a.Type = types.NewString(v), &types.Type{Kind: types.KindVarChar, Collation: types.CollationUTF8MB40900AI}
		case []byte:
			a.Value, a.Type = types.NewBytes(v), &types.Type{Kind: types.KindVarBinary, Collation: types.CollationBinary}
		}
		list = append(list, a)
	}
	return list
}

// discard is a ResultWriter for statements whose results do not matter.
type discard struct{}

func (discard) Columns([]session.ResultColumn) error { return nil }
func (discard) Rows(*types.Batch) error              { return nil }
func (discard) Done(session.Outcome) error           { return nil }

// Discard is a ResultWriter that drops everything.
var Discard session.ResultWriter = discard{}

// writer writes results as text.
type writer struct {
	s      *session.Session
	format Format
	out    strings.Builder
	cols   []session.ResultColumn
	rows   []string
	hasSet bool
}

func (w *writer) Columns(cols []session.ResultColumn) error {
	w.cols, w.rows, w.hasSet = append([]session.ResultColumn(nil), cols...), nil, true
	return nil
}

func (w *writer) Rows(b *types.Batch) error {
	for i := range b.Len() {
		var cells []string
		for c := range w.cols {
			cells = append(cells, w.cell(b.Vecs[c].Value(i), b.Vecs[c].Type()))
		}
		w.rows = append(w.rows, strings.Join(cells, " | "))
	}
	return nil
}

func (w *writer) cell(v types.Value, t *types.Type) string {
	if v.IsNull() {
		return "NULL"
	}
	b := types.AppendText(nil, v, t, w.s.Location())
	if !utf8.Valid(b) || t.Kind == types.KindBit {
		return fmt.Sprintf("0x%X", b)
	}
	return strings.ReplaceAll(string(b), "\n", "\\n")
}

func (w *writer) Done(o session.Outcome) error {
	if w.hasSet {
		w.set()
		w.hasSet = false
		if o.Warnings > 0 {
			fmt.Fprintf(&w.out, "(%d warnings)\n", o.Warnings)
		}
		return nil
	}
	var more []string
	if o.AffectedRows > 0 {
		more = append(more, fmt.Sprintf("%d affected", o.AffectedRows))
	}
	if o.LastInsertID > 0 {
		more = append(more, fmt.Sprintf("id %d", o.LastInsertID))
	}
	if o.Info != "" {
		more = append(more, o.Info)
	} else if o.Warnings > 0 {
		more = append(more, fmt.Sprintf("%d warnings", o.Warnings))
	}
	w.out.WriteString("ok")
	if len(more) > 0 {
		w.out.WriteString(": " + strings.Join(more, ", "))
	}
	w.out.WriteByte('\n')
	return nil
}

// set writes a row set.
func (w *writer) set() {
	var names []string
	for _, c := range w.cols {
		name := c.Name
		if w.format.Types {
			name += " " + TypeText(c.Type)
		}
		names = append(names, name)
	}
	w.out.WriteString(strings.Join(names, " | ") + "\n")
	if w.format.Sort {
		sort.Strings(w.rows)
	}
	for _, r := range w.rows {
		w.out.WriteString(r + "\n")
	}
}

// TypeText writes a type for people.
func TypeText(t *types.Type) string {
	text := t.Kind.String()
	switch {
	case t.Kind == types.KindDecimal:
		text += fmt.Sprintf("(%d,%d)", t.Precision, t.Scale)
	case t.Length > 0 && !t.IsInteger():
		text += fmt.Sprintf("(%d)", t.Length)
	case t.FSP > 0:
		text += fmt.Sprintf("(%d)", t.FSP)
	}
	if t.Unsigned {
		text += " unsigned"
	}
	if t.NotNull {
		text += " not null"
	}
	if c := types.CollationByID(t.Collation); c != nil && t.IsText() {
		text += " " + c.Name()
	}
	return text
}

func (w *writer) fail(err error) {
	if w.hasSet && len(w.rows) > 0 {
		w.set()
	}
	w.hasSet = false
	var e *sqlerr.Error
	if errors.As(err, &e) {
		fmt.Fprintf(&w.out, "error %d (%s): %s\n", e.Number, e.State, e.Message)
		return
	}
	fmt.Fprintf(&w.out, "error without a number: %v\n", err)
}
