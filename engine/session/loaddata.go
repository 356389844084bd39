package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// loader runs LOAD DATA LOCAL.
type loader struct {
	s      *Session
	n      *inserter
	reader loadReader
	cs     charsetInfo
	// targets say where the fields go: to a column, or with -1 to a variable.
	targets   []int
	variables []string
	sets      []assignment
	deleted   int64
}

// runLoadData is LOAD DATA INFILE. With LOCAL the file is the client's, else one of this node's.
func (s *Session) runLoadData(ctx context.Context, st *ast.LoadData) (Outcome, error) {
	var out Outcome
	files, ok := s.out.w.(LocalFiles)
	if !st.Local {
		if err := s.mayUseFiles(); err != nil {
			return out, err
		}
		files, ok = nodeFiles{s}, true
	}
	switch {
	case st.Local && !ok || st.Local && s.m.global(variables["local_infile"]).n == 0:
		return out, sqlerr.New(sqlerr.ClientLocalFilesDisabled)
	case st.Fields.Terminated == "" && st.Fields.Enclosed == "":
		return out, notSupported("LOAD DATA of fields with fixed lengths")
	}
	l, err := s.compileLoad(st)
	if err == nil {
		defer l.reader.free()
		err = files.LocalFile(st.File, func(piece []byte) error {
			if err := l.reader.feed(piece); err != nil {
				return err
			}
			return s.interrupted()
		})
	}
	if err == nil {
		err = l.reader.finish()
	}
	if err == nil {
		err = l.n.settle()
	}
	if err == nil {
		out = l.n.finish()
		skipped := l.n.skipped
		if st.Replace {
			skipped = 0 // those that displaced others are counted as deleted
		}
		out.Info = fmt.Sprintf("Records: %d  Deleted: %d  Skipped: %d  Warnings: %d", l.n.records, l.deleted, skipped, s.diag.count())
	}
	if !s.trx.begun {
		return out, err
	}
	return out, s.endWork(ctx, err, s.out.locked && out.AffectedRows == 0)
}

// nodeFiles reads files of secure_file_priv.
type nodeFiles struct{ s *Session }

// LocalFile is part of LocalFiles.
func (n nodeFiles) LocalFile(path string, piece func([]byte) error) error {
	name, ok := n.s.m.opt.Files.Inside(path)
	if !ok {
		return sqlerr.New(sqlerr.OptionPreventsStatement, "--secure-file-priv")
	}
	f, _, err := n.s.m.opt.Files.Open(name)
	if err != nil {
		return fileError(sqlerr.EEFileNotFound, path, err)
	}
	defer func() { _ = f.Close() }()
	if err := n.s.Hold(fileBuffer); err != nil {
		return err
	}
	defer func() { _ = n.s.Hold(-fileBuffer) }()
	for buffer := make([]byte, fileBuffer); ; {
		k, err := f.Read(buffer)
		if k > 0 {
			if err := piece(buffer[:k]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError(sqlerr.EERead, path, err)
		}
	}
}

// compileLoad works out the columns and opens the table.
func (s *Session) compileLoad(st *ast.LoadData) (*loader, error) {
	schema, err := s.schemaOf(st.Table)
	if err != nil {
		return nil, err
	}
	need := priv.Insert
	if st.Replace {
		need |= priv.Delete
	}
	if err := s.mayOpen([]ask{{schema: schema, table: st.Table.Name, need: need}}); err != nil {
		return nil, err
	}
	o, err := s.openTable(schema, st.Table.Name, false)
	if err != nil {
		return nil, err
	}
	info, err := s.m.tableInfo(o.Table().Schema)
	if err != nil {
		return nil, err
	}
	ignore := st.Ignore || st.Local && !st.Replace
	p := &insertPlan{info: info, replace: st.Replace, ignore: ignore, given: make([]bool, len(info.columns))}
	l := &loader{s: s, reader: loadReader{fields: st.Fields, lines: st.Lines, skip: st.Skip, hold: s.Hold}, cs: charsetInfoOf(types.CharsetUTF8MB4)}
	if st.Charset != "" {
		if l.cs, err = charsetNamed(st.Charset); err != nil {
			return nil, err
		}
		if l.reader.set = l.cs.charset; l.reader.set.IsWide() { // separators are bytes
			return nil, sqlerr.New(sqlerr.NotSupportedYet, "LOAD DATA in character set "+l.cs.name)
		}
	}
	if err := l.columns(p, st); err != nil {
		return nil, err
	}
	scope := &loadScope{insertScope: insertScope{columnScope: columnScope{keys: info.keys}, variables: sessionVariables{s}, p: p}}
	scope.Opt = s.bindOptions(nil)
	for _, a := range st.Set {
		pos := info.position(a.Column.Name)
		if pos < 0 {
			return nil, unknownColumn(a.Column, "field list")
		}
		x := assignment{position: pos}
		if d, ok := a.Value.(*ast.Default); !ok || d.Column != nil {
			if x.node, err = expr.Bind(scope, a.Value); err != nil {
				return nil, err
			}
			x.from = x.node.Type()
		}
		p.given[pos] = true
		l.sets = append(l.sets, x)
	}
	kind, uses := "INSERT", []plan.Use{{Schema: schema, Table: st.Table.Name, Columns: p.givenNames(), Changed: true}}
	if st.Replace {
		kind = "REPLACE"
	}
	if len(p.reads) > 0 {
		uses = append(uses, plan.Use{Schema: schema, Table: st.Table.Name, Columns: p.reads})
	}
	if err := s.mayRun(uses, kind, st); err != nil {
		return nil, err
	}
	if err := s.beginChange(ignore, o.Temporary()); err != nil {
		return nil, err
	}
	t := &s.work.target
	t.set(o, p.info)
	l.n = &inserter{s: s, p: p, t: t, lenient: true, several: true}
	l.n.step.start(s, p, 0, false)
	l.reader.emit, l.reader.keep = l.record, len(l.targets)
	return l, nil
}

// givenNames are the names of the columns that fields or SET give a value.
func (p *insertPlan) givenNames() []string {
	var list []string
	for pos, given := range p.given {
		if given {
			list = append(list, p.info.columns[pos].Name)
		}
	}
	return list
}

// columns works out where fields go.
func (l *loader) columns(p *insertPlan, st *ast.LoadData) error {
	if st.Columns == nil {
		for _, pos := range p.info.visible {
			if c := &p.info.columns[pos]; !c.Invisible {
				l.targets = append(l.targets, pos)
				l.variables = append(l.variables, "")
			}
		}
	}
	for _, e := range st.Columns {
		switch e := e.(type) {
		case *ast.Variable:
			l.targets, l.variables = append(l.targets, -1), append(l.variables, e.Name)
		case *ast.ColumnRef:
			pos := p.info.position(e.Name)
			if pos < 0 {
				return unknownColumn(e, "field list")
			}
			l.targets, l.variables = append(l.targets, pos), append(l.variables, "")
		}
	}
	for _, pos := range l.targets {
		if pos >= 0 {
			p.given[pos] = true
			p.positions = append(p.positions, pos)
		}
	}
	return nil
}

// loadScope lets variables that the fields set have any type.
type loadScope struct{ insertScope }

func (c *loadScope) UserVariable(name string) *types.Type { return textType }

// record adds a row.
func (l *loader) record(fields []loadField) error {
	s, n, p := l.s, l.n, l.n.p
	m := s.x.Mark()
	defer s.x.Release(m)
	row := n.blank()
	if err := l.fill(fields, row); err != nil {
		if n.ignored(err) {
			return nil
		}
		return err
	}
	if err := n.defaults(row, false); err != nil {
		return err
	}
	for i := range l.sets {
		a := &l.sets[i]
		var v types.Value
		var err error
		if a.node == nil {
			v, err = s.rowDefault(p.info, a.position, row)
		} else if v, err = a.node.Value(&s.x, s.work.rowBatch(p.info, row), 0); err == nil {
			v, err = s.toColumn(p.info, a.position, v.Clone(), a.from, true)
		}
		if err != nil {
			return err
		}
		row[a.position] = v
	}
	before := n.out.AffectedRows
	if err := n.add(row); err != nil {
		return err
	}
	if added := n.out.AffectedRows - before; added > 1 {
		l.deleted += int64(added - 1)
	}
	return nil
}

// fill converts the fields.
func (l *loader) fill(fields []loadField, row []types.Value) error {
	s, n := l.s, l.n
	for i, pos := range l.targets {
		v := types.Null
		switch {
		case i >= len(fields):
			if pos < 0 {
				break
			}
			s.diag.warn(sqlerr.New(sqlerr.WarnTooFewRecords, n.records))
			d, err := s.rowDefault(n.p.info, pos, row)
			if err != nil {
				return err
			}
			row[pos] = d
			continue
		case !fields[i].null:
			v = types.NewBytes(l.reader.arena[fields[i].from:fields[i].to])
		}
		if pos < 0 {
			if err := s.setUserVariable(l.variables[i], v, textType); err != nil {
				return err
			}
			continue
		}
		var err error
		if row[pos], err = s.toColumn(n.p.info, pos, v, l.source(n.p.info.types[pos]), true); err != nil {
			return err
		}
	}
	if len(fields) > len(l.targets) {
		s.diag.warn(sqlerr.New(sqlerr.WarnTooManyRecords, n.records))
	}
	return nil
}

// source is the type of the file's text.
func (l *loader) source(to *types.Type) *types.Type {
	if l.cs.charset == types.CharsetUTF8MB4 || to.IsBlob() {
		return nil
	}
	return &types.Type{Kind: types.KindVarChar, Length: types.MaxVarLength, Collation: l.cs.collation}
}
