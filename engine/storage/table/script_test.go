package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestScripts runs testdata/locks/*.txt: statements of several sessions over the
// table t (id PRIMARY KEY, u UNIQUE, n KEY, v). Each session is a task of its own
// on a virtual clock. The blocks of a file:
//
//	table            a fresh engine; the input has a row per line, as for insert
//	run              a statement per line
//
// Statements are those of the session before the colon, or without one:
//
//	s1: begin rr|rc|ru|ser
//	s1: select [INDEX RANGE] [desc] [where COND] [for share|update] [nowait|skip locked]
//	s1: insert ID [u=N] [n=N] [v=N]       or upsert: what has a key of it will be changed
//	s1: update [INDEX RANGE] [where COND] set u=N n=N v=N v+=N id=N
//	s1: delete [INDEX RANGE] [where COND] [asking]
//	s1: commit | rollback | savepoint NAME | rollback to NAME
//	s1: lock table [for update]
//	s1: release      takes the next place in the log and releases the locks (in doubt)
//	s1: finish|fail  the group has committed the entry, or has not; failing: not yet undone
//	s1: depends      the place in the log on which the session depends
//	locks            the lock table, in the words of performance_schema.data_locks
//	index NAME       the entries of an index, "-" marks a deleted one
//	purge            purges what can be purged
//	sleep DURATION   lets the time pass
//
// INDEX is pk, u or n; RANGE is a value, or bounds: 1..5, (1..5), 1.., .. and the
// like; COND is COLUMN=N or COLUMN%N=M or COLUMN>=N. Without an index a statement goes through the
// primary key. update and delete lock with X what they go through and, at READ
// COMMITTED, unlock what does not match, as the layer above does; update, and delete
// with the word asking, do not wait for what does not match as it was last committed; select takes
// shared locks at SERIALIZABLE.
//
// The output is a line for each answer. "waits" says that the session is blocked;
// its answer comes after the statement that ends the wait.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/locks", runScript)
}

func runScript(t *testing.T, path string) {
	sim := simenv.New(1)
	sim.Run(func() {
		var s *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "table":
				s = newScript(t, sim)
				return s.fill(d.Input)
			case "run":
				return s.run(d.Input)
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

type script struct {
	t        *testing.T
	env      env.Env
	r        *rig
	tbl      *table.Table
	sessions map[string]*scripted
	events   []string
}

// scripted is a session and its task.
type scripted struct {
	*session
	s      *script
	name   string
	todo   []string
	busy   bool
	parker env.Parker
}

var (
	scriptColumns = []string{"id", "u", "n", "v"}
	scriptIndexes = []string{"pk", "u", "n"}
)

func newScript(t *testing.T, e env.Env) *script {
	r := newRig(t, e, simfile.New(e, 1), 128)
	integer := func(id uint32, name string, null bool) record.Column {
		return record.Column{ID: id, Name: name, Type: intType(null), AddedIn: 1}
	}
	s := &script{t: t, env: e, r: r, sessions: map[string]*scripted{}}
	s.tbl = r.create(&record.Table{
		ID: 20, Schema: "test", Name: "t", RowVersion: 1, NextColumn: 5,
		Columns: []record.Column{integer(1, "id", false), integer(2, "u", true), integer(3, "n", true), integer(4, "v", true)},
		Indexes: []record.Index{
			{ID: 201, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{ID: 202, Name: "u", Unique: true, Parts: []record.Part{{Column: 2}}},
			{ID: 203, Name: "n", Parts: []record.Part{{Column: 3}}},
		},
	})
	return s
}

// fill inserts rows in a transaction of their own.
func (s *script) fill(input string) string {
	out := s.run("init: begin rr")
	for line := range strings.Lines(input) {
		out += s.run("init: insert " + line)
	}
	out += s.run("init: commit\npurge")
	delete(s.sessions, "init")
	if n := strings.Count(out, "-> ok\n"); n != strings.Count(input+"\n", "\n")+1 && input != "" {
		return out
	}
	return "ok"
}

func (s *script) run(input string) string {
	var out strings.Builder
	for _, line := range strings.Split(input, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, statement, of := strings.Cut(line, ":")
		if !of {
			answer := s.global(strings.Fields(line))
			s.settle()
			out.WriteString(answer)
		} else {
			ss := s.session(name)
			if ss.busy {
				fmt.Fprintf(&out, "%s: still waits\n", name)
				continue
			}
			ss.todo, ss.busy = strings.Fields(statement), true
			ss.parker.Unpark()
			s.settle()
			if ss.busy {
				fmt.Fprintf(&out, "%s: waits\n", name)
			}
		}
		slices.SortStableFunc(s.events, func(a, b string) int { // who did it answers first
			switch own := name + ":"; {
			case strings.HasPrefix(a, own):
				return -1
			case strings.HasPrefix(b, own):
				return 1
			}
			return 0
		})
		for _, e := range s.events {
			out.WriteString(e)
		}
		s.events = nil
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

// settle lets everybody run until he waits.
func (s *script) settle() { env.Sleep(s.env, time.Nanosecond) }

func (s *script) session(name string) *scripted {
	if ss := s.sessions[name]; ss != nil {
		return ss
	}
	ss := &scripted{session: s.r.session(), s: s, name: name, parker: s.env.NewParker()}
	s.sessions[name] = ss
	s.env.Go(name, func() {
		for {
			ss.parker.Park()
			answer := ss.exec(ss.todo)
			ss.busy = false
			if answer != "" {
				s.events = append(s.events, fmt.Sprintf("%s: %s -> %s\n", name, strings.Join(ss.todo, " "), answer))
			}
		}
	})
	return ss
}

func (s *script) global(f []string) string {
	switch f[0] {
	case "locks":
		return s.locks()
	case "index":
		return s.entries(slices.Index(scriptIndexes, f[1]))
	case "purge":
		n, err := s.r.purger.Run()
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("purged %d\n", n)
	case "sleep":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			return err.Error() + "\n"
		}
		env.Sleep(s.env, d)
		return ""
	}
	s.t.Fatalf("unknown statement %q", f)
	return ""
}

func (s *script) locks() string {
	var out []string
	for _, l := range s.r.e.Locks.Snapshot(0).Locks {
		line := l.Mode
		switch {
		case l.Table:
			line += " t"
		default:
			line += " " + scriptIndexes[l.Index-201] + " " + s.keyText(int(l.Index-201), l.Key)
		}
		if !l.Granted {
			line += " waiting"
		}
		out = append(out, s.owner(l.Trx)+" "+line+"\n")
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
	if len(out) == 0 {
		return "no locks\n"
	}
	return strings.Join(out, "")
}

func (s *script) owner(id uint64) string {
	for name, ss := range s.sessions {
		if ss.Trx() != nil && ss.Trx().ID() == id && id != 0 {
			return name
		}
	}
	return fmt.Sprint("transaction ", id)
}

// keyText names an entry's key: the index's value, and the id for a secondary one.
func (s *script) keyText(index int, key []byte) string {
	if len(key) == 0 {
		return "supremum"
	}
	first, rest := s.value(index, key)
	if index == 0 {
		return first
	}
	if len(rest) == 0 {
		return first + " itself"
	}
	id, _ := s.value(0, rest)
	return first + "/" + id
}

// value finds the number whose key form the key begins with.
func (s *script) value(index int, key []byte) (string, []byte) {
	k := s.tbl.Schema.Keys[index]
	if index > 0 {
		if rest, ok := bytes.CutPrefix(key, k.AppendKey(nil, types.Null)); ok {
			return "NULL", rest
		}
	}
	for n := range int64(1000) {
		if rest, ok := bytes.CutPrefix(key, k.AppendKey(nil, types.NewInt(n))); ok {
			return fmt.Sprint(n), rest
		}
	}
	return fmt.Sprintf("%x", key), nil
}

func (s *script) entries(index int) string {
	m := mtr.New(s.r.e.Pool)
	m.BeginRead()
	defer m.Commit()
	c := s.tbl.Tree(index).NewCursor(m)
	defer c.Reset()
	var out []string
	err := c.First(mtr.S)
	for ; err == nil && c.Valid(); err = c.Next() {
		text := s.keyText(index, c.Key())
		if c.Flags()&record.FlagDeleted != 0 {
			text = "-" + text
		}
		out = append(out, text)
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return scriptIndexes[index] + ": " + strings.Join(out, " ") + "\n"
}

// exec runs a statement of the session.
func (ss *scripted) exec(f []string) string {
	defer func() {
		if t := ss.Trx(); t != nil && t.State() != trx.Active && t.State() != trx.InDoubt && t.State() != trx.RollingBack {
			ss.Use(nil) // it may be someone else's next
		}
	}()
	if f[0] != "begin" && ss.Trx() == nil {
		return "no transaction"
	}
	switch f[0] {
	case "begin":
		level := map[string]trx.Isolation{"rr": trx.RepeatableRead, "rc": trx.ReadCommitted, "ru": trx.ReadUncommitted, "ser": trx.Serializable}
		ss.begin(level[f[1]])
		if _, err := ss.Trx().EnsureID(); err != nil { // a name for the lock list
			return err.Error()
		}
		return ""
	case "commit":
		if err := ss.commit(); err != nil {
			return err.Error()
		}
		return "ok"
	case "release", "finish", "failing", "fail", "depends":
		return ss.inDoubt(f[0])
	case "savepoint":
		ss.Trx().SetSavepoint(f[1], 0)
		return ""
	case "rollback":
		if len(f) == 1 {
			ss.rollback()
			return "ok"
		}
		at, err := ss.Trx().RollbackTo(f[2])
		if err == nil {
			err = ss.RollbackTo(at.Undo)
		}
		return ss.answer("ok", err)
	}
	mark := ss.Trx().BeginStatement()
	answer, err := ss.statement(f)
	var dead *lock.DeadlockError
	switch {
	case errors.As(err, &dead):
		ss.rollback()
		return "deadlock, rolled back"
	case err != nil:
		if uerr := ss.RollbackTo(mark); uerr != nil {
			return uerr.Error()
		}
	}
	return ss.answer(answer, err)
}

// inDoubt runs the statements of early lock release.
func (ss *scripted) inDoubt(verb string) string {
	t, sys := ss.Trx(), ss.r.e.Trx
	switch verb {
	case "release":
		_, pos := sys.Applied()
		sys.InDoubt(func(d *trx.Trx) bool { pos = d.Position(); return false })
		t.StartCommit()
		sys.ReleaseLocks(t, trx.Position{Index: pos.Index + 1, Term: 1})
	case "depends":
		if d := t.DependsOn(); d != 0 {
			return fmt.Sprint(d)
		}
		return "nothing"
	case "finish":
		last, _ := sys.Applied()
		if err := sys.CommitGroup([]trx.Commit{{Trx: t, CSN: last + 1}}, t.Position()); err != nil {
			return err.Error()
		}
		sys.End(t)
	case "failing":
		t.StartRollback()
	case "fail":
		if err := ss.Rollback(); err != nil {
			return err.Error()
		}
		sys.End(t)
	}
	return "ok"
}

func (ss *scripted) answer(text string, err error) string {
	var dup *table.DuplicateError
	switch {
	case errors.As(err, &dup):
		return "duplicate in " + scriptIndexes[dup.Position]
	case errors.Is(err, lock.ErrTimeout):
		return "lock wait timeout"
	case errors.Is(err, lock.ErrNoWait):
		return "would wait"
	case err != nil:
		return err.Error()
	}
	return text
}

func (ss *scripted) statement(f []string) (string, error) {
	q, err := ss.s.parse(f)
	if err != nil {
		return "", err
	}
	switch f[0] {
	case "insert":
		return "ok", ss.Insert(ss.s.tbl, q.row)
	case "upsert":
		return "ok", ss.Upsert(ss.s.tbl, q.row)
	case "lock":
		return "ok", ss.LockTable(ss.s.tbl, map[lock.Mode]lock.Mode{lock.RecordX: lock.TableX, lock.RecordS: lock.TableS}[q.rng.Lock])
	case "select":
		if ss.Trx().LockingReads() {
			q.rng.Locking = true
		}
		rows, _, err := ss.find(q)
		return rowsText(rows), err
	}
	q.rng.Locking, q.rng.Lock = true, lock.RecordX
	if q.cond != nil && (f[0] == "update" || q.asking) {
		q.rng.Wanted = func(b *types.Batch) (bool, error) { return q.cond(b.Row(nil, 0)), nil }
	}
	rows, keys, err := ss.find(q)
	if err != nil {
		return "", err
	}
	for i := range rows {
		if f[0] == "delete" {
			err = ss.Delete(ss.s.tbl, keys[i])
		} else {
			err = ss.Update(ss.s.tbl, keys[i], q.changesOf(rows[i]))
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d rows", len(rows)), nil
}

func rowsText(rows [][]types.Value) string {
	if len(rows) == 0 {
		return "nothing"
	}
	var out []string
	for _, r := range rows {
		var b []string
		for i, v := range r[1:] {
			if !v.IsNull() {
				b = append(b, fmt.Sprintf("%s=%d", scriptColumns[i+1], v.Int()))
			}
		}
		out = append(out, fmt.Sprintf("%d(%s)", r[0].Int(), strings.Join(b, " ")))
	}
	return strings.Join(out, " ")
}

// query is a parsed statement.
type query struct {
	rng    table.Range
	row    []types.Value
	sets   []setting
	cond   func([]types.Value) bool
	asking bool
}

type setting struct {
	column int
	add    bool
	value  types.Value
}

func (q *query) changesOf(row []types.Value) []record.Change {
	var out []record.Change
	for _, s := range q.sets {
		v := s.value
		if s.add {
			v = types.NewInt(row[s.column].Int() + v.Int())
		}
		out = append(out, record.Change{Column: s.column, Value: v})
	}
	return out
}

// find scans the query's range and returns the rows that match, and their keys.
func (ss *scripted) find(q *query) (rows [][]types.Value, keys [][]byte, err error) {
	tbl := ss.s.tbl
	var cols []*types.Type
	for i := range tbl.Schema.Columns {
		q.rng.Columns = append(q.rng.Columns, i)
		cols = append(cols, &tbl.Schema.Columns[i].Type)
	}
	q.rng.Keys = true
	var snap *trx.Snapshot
	if !q.rng.Locking {
		snap = ss.Trx().Snapshot()
	}
	var sc table.Scanner
	if err := sc.Start(ss.Worker, tbl, snap, q.rng); err != nil {
		return nil, nil, err
	}
	batch := types.NewBatch(cols)
	for more := true; more; {
		if more, err = sc.Next(batch); err != nil {
			return nil, nil, err
		}
		for i := range batch.Len() {
			row := slices.Clone(batch.Row(nil, i))
			if q.cond != nil && !q.cond(row) {
				sc.Unlock(i)
				continue
			}
			rows, keys = append(rows, row), append(keys, bytes.Clone(sc.Key(i)))
		}
	}
	return rows, keys, nil
}

func number(text string) (types.Value, error) {
	if text == "NULL" {
		return types.Null, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return types.NewInt(n), err
}

// parse reads a statement of the table.
func (s *script) parse(f []string) (q *query, err error) {
	q = &query{row: make([]types.Value, len(scriptColumns))}
	for i := range q.row {
		q.row[i] = types.Null
	}
	set := false
	for i := 1; i < len(f) && err == nil; i++ {
		switch w := f[i]; w {
		case "pk", "u", "n":
			q.rng.Index = slices.Index(scriptIndexes, w)
			i++
			err = s.parseRange(&q.rng, f[i])
		case "where":
			i++
			q.cond, err = condition(f[i])
		case "desc":
			q.rng.Backward = true
		case "for":
			i++
			q.rng.Locking = true
			if f[i] == "update" {
				q.rng.Lock = lock.RecordX
			}
		case "nowait":
			q.rng.Policy = lock.NoWait
		case "skip":
			q.rng.Policy = lock.SkipLocked
		case "locked", "table":
		case "asking":
			q.asking = true
		case "set":
			set = true
		default:
			err = q.assign(w, set)
		}
	}
	if q.rng.Lock != lock.RecordX {
		q.rng.Lock = lock.RecordS
	}
	return q, err
}

// assign reads v=1, v+=1, or the id of an insert.
func (q *query) assign(w string, set bool) error {
	name, value, ok := strings.Cut(w, "=")
	if !ok {
		name, value = "id", w
	}
	name, add := strings.CutSuffix(name, "+")
	column := slices.Index(scriptColumns, name)
	v, err := number(value)
	if column < 0 || err != nil {
		return fmt.Errorf("what is %q", w)
	}
	if set {
		q.sets = append(q.sets, setting{column, add, v})
	} else {
		q.row[column] = v
	}
	return nil
}

func condition(w string) (func([]types.Value) bool, error) {
	for _, op := range []string{"%", ">=", "="} {
		name, value, ok := strings.Cut(w, op)
		column := slices.Index(scriptColumns, name)
		if !ok || column < 0 {
			continue
		}
		value, rest, _ := strings.Cut(value, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		m, _ := strconv.ParseInt(rest, 10, 64)
		return func(row []types.Value) bool {
			v := row[column].Int()
			switch {
			case row[column].IsNull():
				return false
			case op == "%":
				return v%n == m
			case op == ">=":
				return v >= n
			}
			return v == n
		}, err
	}
	return nil, fmt.Errorf("what is the condition %q", w)
}

func (s *script) parseRange(r *table.Range, w string) error {
	w, r.LowOpen = strings.CutPrefix(w, "(")
	w, r.HighOpen = strings.CutSuffix(w, ")")
	low, high, is := strings.Cut(w, "..")
	if !is {
		high = low
	}
	for _, b := range []struct {
		text string
		to   *[]byte
	}{{low, &r.Low}, {high, &r.High}} {
		if b.text == "" {
			continue
		}
		v, err := number(b.text)
		if err != nil {
			return err
		}
		*b.to = s.tbl.Schema.Keys[r.Index].AppendKey(nil, v)
	}
	return nil
}
