package expr

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

// The tables in testdata/functions hold lines
//
//	expression => result [!warning number ...]
//
// where the result is the value's text, NULL, or error and its number. A line that begins with "set mode" or "set zone"
// changes the context of the lines after it.

// fnEnv is what the tables' expressions run in.
type fnEnv struct {
	scope NoScope
	x     Context
	warns []sqlerr.Code
	info  *fakeSession
}

func newFnEnv(tb testing.TB) *fnEnv {
	tb.Helper()
	e := &fnEnv{info: &fakeSession{locks: map[string]uint64{}}}
	mode := types.Mode(types.ModeDefault)
	e.scope.Opt = Options{Mode: mode, SQLMode: ModeErrorForDivisionByZero}
	e.x = Context{
		SQLMode: ModeErrorForDivisionByZero, Session: e.info, Collation: types.CollationUTF8MB40900AI,
		Now: time.Date(2024, 2, 29, 13, 14, 15, 678_901_000, time.UTC), DivPrecisionIncrement: 4, MaxAllowedPacket: 1 << 20,
		GroupConcatMaxLen: 1024,
	}
	e.x.Env = simenv.New(1)
	e.x.Mode = mode
	e.x.Warn = func(w *sqlerr.Error) { e.warns = append(e.warns, w.Number) }
	return e
}

// bind parses and binds one expression.
func (e *fnEnv) bind(text string) (Node, error) {
	list, err := ast.Parse("SELECT "+text, 0)
	if err != nil {
		return nil, err
	}
	return Bind(&e.scope, list[0].(*ast.Select).Items[0].Expr)
}

// eval gives the text that a table would have, evaluating one row and a batch of three.
func (e *fnEnv) eval(text string) string {
	e.warns = e.warns[:0]
	n, err := e.bind(text)
	if err != nil {
		return describeError(err)
	}
	e.x.ResetStatement()
	v, err := n.Value(&e.x, nil, 0)
	result := ""
	if err != nil {
		result = describeError(err)
	} else if result, err = describeValue(v, n.Type()); err != nil {
		return err.Error()
	}
	for _, w := range e.warns {
		result += fmt.Sprintf(" !%d", w)
	}
	if again := e.evalVector(n); again != "" && VolatilityOf(n) < PerRow && !strings.HasPrefix(result, again) {
		return fmt.Sprintf("%s, but as vector %s", result, again)
	}
	return result
}

// evalVector evaluates for the selected rows of a batch, which all give the same.
func (e *fnEnv) evalVector(n Node) string {
	e.warns = e.warns[:0]
	e.x.ResetStatement()
	in := types.NewBatch(nil)
	in.SetLen(3)
	out := types.NewVector(n.Type(), 3)
	if err := n.Vector(&e.x, in, []uint32{0, 2}, out); err != nil {
		return describeError(err)
	}
	if out.Len() != 2 {
		return fmt.Sprintf("%d values", out.Len())
	}
	first, err := describeValue(out.Value(0), n.Type())
	if err != nil {
		return err.Error()
	}
	if second, _ := describeValue(out.Value(1), n.Type()); second != first {
		return first + ", then " + second
	}
	return first
}

func describeError(err error) string {
	var e *sqlerr.Error
	if !errors.As(err, &e) {
		return "ERROR " + err.Error()
	}
	if len(e.State) != 5 || e.Message == "" {
		return "bad error " + e.Error()
	}
	return fmt.Sprintf("error %d", e.Number)
}

func describeValue(v types.Value, t *types.Type) (string, error) {
	if v.IsNull() {
		if t.NotNull {
			return "", fmt.Errorf("NULL of a type that is never NULL")
		}
		return "NULL", nil
	}
	if v.Class() != t.Class() {
		return "", fmt.Errorf("value of class %s for type %s", v.Class(), t.Kind)
	}
	s := types.AppendText(nil, v, t, time.UTC)
	if t.IsText() && t.Charset() == types.CharsetLatin1 {
		s, _ = types.Convert(nil, s, types.CharsetLatin1, types.CharsetUTF8MB4)
	}
	for _, c := range s {
		if c < ' ' || c >= 0x7f && t.IsBlob() {
			return fmt.Sprintf("x'%X'", s), nil
		}
	}
	return string(s), nil
}

func TestFunctionTables(t *testing.T) {
	files, err := filepath.Glob("testdata/functions/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no tables", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) { runTable(t, name) })
	}
}

func runTable(t *testing.T, name string) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := newFnEnv(t)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if setting, ok := strings.CutPrefix(line, "set "); ok {
			e.set(t, setting)
			continue
		}
		text, want, ok := strings.Cut(line, " => ")
		if !ok {
			if text, ok = strings.CutSuffix(line, " =>"); !ok {
				t.Fatalf("%s:%d: no result", name, n)
			}
		}
		if got := e.eval(text); got != want {
			t.Errorf("%s:%d: %s\n  gives %s\n  want  %s", name, n, text, got, want)
		}
	}
}

func (e *fnEnv) set(t *testing.T, setting string) {
	what, value, _ := strings.Cut(setting, " ")
	switch what {
	case "zone":
		loc, ok := LoadZone(value)
		if !ok {
			t.Fatalf("no zone %s", value)
		}
		e.x.Location = loc
	case "mode":
		mode := map[string]types.Mode{"default": types.ModeDefault, "none": 0, "strict": types.ModeStrict}[value]
		e.x.Mode, e.scope.Opt.Mode = mode, mode
		e.x.DataChange = value == "strict"
	case "variable":
		e.info.mode = value
	default:
		t.Fatalf("unknown setting %s", setting)
	}
}

// fakeSession is a session of one client alone.
type fakeSession struct {
	last  uint64
	locks map[string]uint64
	mode  string // block_encryption_mode
	slept time.Duration
}

func (s *fakeSession) ConnectionID() uint64     { return 7 }
func (s *fakeSession) User() string             { return "app@10.0.0.1" }
func (s *fakeSession) CurrentUser() string      { return "app@%" }
func (s *fakeSession) Strength(string) int64    { return 0 }
func (s *fakeSession) CurrentRole() string      { return "NONE" }
func (s *fakeSession) Schema() string           { return "shop" }
func (s *fakeSession) Version() string          { return "8.0.36-trireme-test" }
func (s *fakeSession) LastInsertID() uint64     { return s.last }
func (s *fakeSession) SetLastInsertID(n uint64) { s.last = n }
func (s *fakeSession) RowCount() int64          { return -1 }
func (s *fakeSession) FoundRows() uint64        { return 3 }

func (s *fakeSession) StatementDigest(text string, _ bool) (string, error) { return text, nil }

func (s *fakeSession) ThreadID(n uint64) (uint64, bool) { return n, n == 7 }

func (s *fakeSession) LoadFile(string) ([]byte, error) { return []byte("text"), nil }

func (s *fakeSession) SystemVariable(name string, _ bool) (types.Value, *types.Type, error) {
	if name == "block_encryption_mode" && s.mode != "" {
		return types.NewString(s.mode), nil, nil
	}
	return types.Null, nil, fmt.Errorf("no variable %s", name)
}

func (s *fakeSession) UserVariable(string) (types.Value, *types.Type)         { return types.Null, nil }
func (s *fakeSession) SetUserVariable(string, types.Value, *types.Type) error { return nil }
func (s *fakeSession) GetLock(name string, _ time.Duration) (int64, error) {
	s.locks[name] = 7
	return 1, nil
}
func (s *fakeSession) LockHolder(name string) (connection uint64, held bool, err error) {
	n, ok := s.locks[name]
	return n, ok, nil
}
func (s *fakeSession) Sleep(d time.Duration) (interrupted bool, err error) {
	s.slept = d
	return false, nil
}
func (s *fakeSession) WaitForGTIDs(set string, timeout time.Duration) (int64, error) { return 0, nil }

func (s *fakeSession) ReleaseLock(name string) (released, exists bool, err error) {
	_, ok := s.locks[name]
	delete(s.locks, name)
	return ok, ok, nil
}

func (s *fakeSession) ReleaseAllLocks() (int64, error) {
	n := len(s.locks)
	clear(s.locks)
	return int64(n), nil
}
