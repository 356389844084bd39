package session

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/types"
)

// sessionInfo is the session as expressions see it.
type sessionInfo Session

func (i *sessionInfo) s() *Session { return (*Session)(i) }

func (i *sessionInfo) ConnectionID() uint64 { return i.id }
func (i *sessionInfo) User() string         { return i.info.User + "@" + i.info.Host }

func (i *sessionInfo) CurrentUser() string {
	if i.info.AccountUser == "" && i.info.AccountHost == "" {
		return i.User()
	}
	return i.info.AccountUser + "@" + i.info.AccountHost
}

func (i *sessionInfo) CurrentRole() string            { return i.s().currentRole() }
func (i *sessionInfo) Strength(password string) int64 { return i.s().strength(password) }
func (i *sessionInfo) Schema() string                 { return i.schema }
func (i *sessionInfo) Version() string                { return VersionString(i.m.opt.Backend.Server().Version) }
func (i *sessionInfo) LastInsertID() uint64           { return i.lastInsertID }
func (i *sessionInfo) SetLastInsertID(n uint64)       { i.lastInsertID = n; i.work.setInsertID = true }
func (i *sessionInfo) RowCount() int64                { return i.rowCount }
func (i *sessionInfo) FoundRows() uint64              { return i.foundRows }

func (i *sessionInfo) SystemVariable(name string, global bool) (types.Value, *types.Type, error) {
	v, err := findVariable(name)
	if err == nil {
		err = i.s().seeVariable(v)
	}
	if err != nil {
		return types.Null, nil, err
	}
	if global {
		if v.scope&inGlobal == 0 {
			return types.Null, nil, sqlerr.New(sqlerr.IncorrectGlobalLocalVar, v.name, "SESSION")
		}
		return v.value(i.s().globalValue(v)), v.sqlType(), nil
	}
	return v.value(i.s().value(v)), v.sqlType(), nil
}

func (i *sessionInfo) UserVariable(name string) (types.Value, *types.Type) {
	v := i.user[foldName(name)]
	return v.value, v.typ
}

func (i *sessionInfo) SetUserVariable(name string, v types.Value, t *types.Type) error {
	if t == nil {
		i.s().forgetUserVariable(foldName(name))
		return nil
	}
	return i.s().setUserVariable(name, v, t)
}

func (i *sessionInfo) Sleep(d time.Duration) (bool, error) { return i.s().sleep(d) }

// WaitForGTIDs waits for the node's data in slices, so that KILL is heard.
func (i *sessionInfo) WaitForGTIDs(set string, timeout time.Duration) (int64, error) {
	s := i.s()
	number, err := s.gtidNumber(set)
	if err != nil {
		return 0, err
	}
	deadline := s.env.Monotonic() + timeout
	for {
		eng, err := s.m.opt.Backend.Engine()
		if err != nil {
			return 0, err
		}
		if eng.Trx.LastCommitted() >= number {
			return 0, nil
		}
		wait := time.Second
		if timeout > 0 {
			left := deadline - s.env.Monotonic()
			if left <= 0 {
				return 1, nil
			}
			wait = min(wait, left)
		}
		if err := s.waitEnded(); err != nil {
			return 0, err
		}
		// An error is that the time was up, or that the node is busy becoming something
		// else: the loop finds out.
		if err := s.readAt(ReadOptions{Consistency: AtLeast, Number: number, Wait: wait}); err != nil {
			if interrupted, _ := s.sleep(min(wait, 10*time.Millisecond)); interrupted {
				return 0, s.whyReadEnded()
			}
		}
	}
}

// StatementDigest is STATEMENT_DIGEST() and STATEMENT_DIGEST_TEXT(): what performance_schema gives the statement.
func (i *sessionInfo) StatementDigest(text string, asText bool) (string, error) {
	s := (*Session)(i)
	statements, err := ast.ParseWithin(text, s.mode, s.holdsText)
	if err == nil && len(statements) != 1 {
		err = sqlerr.Syntax(statements[1].Text(), 1)
	}
	if err != nil {
		return "", sqlerr.New(sqlerr.ParseErrorInDigestFn, errorText(err))
	}
	digest := ast.AppendDigest(nil, text, s.mode, digestText)
	if asText {
		return string(digest), nil
	}
	sum := sha256.Sum256(digest)
	return hex.EncodeToString(sum[:]), nil
}

// ThreadID is PS_THREAD_ID(): threads have the numbers of their connections.
func (i *sessionInfo) ThreadID(connection uint64) (uint64, bool) {
	m := (*Session)(i).m
	m.mu.Lock()
	defer m.mu.Unlock()
	return connection, m.sessions[connection] != nil
}

// LoadFile is LOAD_FILE().
func (i *sessionInfo) LoadFile(name string) ([]byte, error) { return (*Session)(i).readFile(name) }

// foldName gives names of user variables that are equal the same form.
func foldName(name string) string { return dict.Fold(name) }

// sessionScope gives expressions that stand outside of queries their names: those of
// variables.
type sessionScope struct {
	expr.NoScope
	s *Session
}

func (s *Session) scope() *sessionScope {
	return &sessionScope{NoScope: expr.NoScope{Opt: s.bindOptions(s.work.params)}, s: s}
}

// bindOptions are what binding depends on.
func (s *Session) bindOptions(params []*types.Type) expr.Options {
	o := expr.Options{Mode: s.x.Mode, SQLMode: s.x.SQLMode, Collation: s.x.Collation, DivPrecisionIncrement: s.x.DivPrecisionIncrement,
		ParamTypes: params}
	o.NoDivIncrement = o.DivPrecisionIncrement == 0
	return o
}

func (c *sessionScope) SystemVariable(v *ast.Variable) (expr.Node, error) { return c.s.bindVariable(v) }

// Default is DEFAULT(column) where there is no table. Error: 1054.
func (c *sessionScope) Default(d *ast.Default) (expr.Node, error) {
	if d.Column == nil {
		return c.NoScope.Default(d)
	}
	return c.Column(d.Column)
}

func (c *sessionScope) UserVariable(name string) *types.Type { return c.s.user[foldName(name)].typ }

// sessionVariables is the same for planning.
type sessionVariables struct{ s *Session }

func (v sessionVariables) SystemVariable(a *ast.Variable) (expr.Node, error) {
	return v.s.bindVariable(a)
}

func (v sessionVariables) UserVariable(name string) *types.Type { return v.s.user[foldName(name)].typ }

// bindVariable checks @@name and returns a node that reads it when it runs.
func (s *Session) bindVariable(a *ast.Variable) (expr.Node, error) {
	v, err := findVariable(a.Name)
	if err != nil {
		return nil, err
	}
	global := a.Scope == ast.ScopeGlobal
	switch {
	case global && v.scope&inGlobal == 0:
		return nil, sqlerr.New(sqlerr.IncorrectGlobalLocalVar, v.name, "SESSION")
	case a.Scope == ast.ScopeSession && v.scope&inSession == 0:
		return nil, sqlerr.New(sqlerr.IncorrectGlobalLocalVar, v.name, "GLOBAL")
	}
	return &variableNode{v: v, global: global || v.scope&inSession == 0}, nil
}

func astMode(m uint64) ast.Mode {
	var out ast.Mode
	for bit, to := range map[uint64]ast.Mode{modeANSIQuotes: ast.ModeANSIQuotes, modeNoBackslashEscapes: ast.ModeNoBackslashEscapes,
		modePipesAsConcat: ast.ModePipesAsConcat, modeIgnoreSpace: ast.ModeIgnoreSpace, modeHighNotPrecedence: ast.ModeHighNotPrecedence,
		modeRealAsFloat: ast.ModeRealAsFloat, modeNoZeroDate: ast.ModeNoZeroDate, modeNoZeroInDate: ast.ModeNoZeroInDate,
		modeAllowInvalidDates: ast.ModeAllowInvalidDates} {
		if m&bit != 0 {
			out |= to
		}
	}
	return out
}

func conversionMode(m uint64) types.Mode {
	var out types.Mode
	for bit, to := range map[uint64]types.Mode{modeStrictTransTables: types.ModeStrict, modeStrictAllTables: types.ModeStrict,
		modeNoZeroDate: types.ModeNoZeroDate, modeNoZeroInDate: types.ModeNoZeroInDate, modeAllowInvalidDates: types.ModeAllowInvalidDates,
		modeTruncateFraction: types.ModeTimeTruncateFraction} {
		if m&bit != 0 {
			out |= to
		}
	}
	return out
}

func expressionMode(m uint64) expr.SQLMode {
	var out expr.SQLMode
	for bit, to := range map[uint64]expr.SQLMode{modeErrorForDivision: expr.ModeErrorForDivisionByZero,
		modeNoUnsignedSubtract: expr.ModeNoUnsignedSubtraction, modeNoBackslashEscapes: expr.ModeNoBackslashEscapes,
		modePadChar: expr.ModePadCharToFullLength} {
		if m&bit != 0 {
			out |= to
		}
	}
	return out
}

// variableNode reads a system variable when it runs.
type variableNode struct {
	v      *variable
	global bool
}

func (n *variableNode) Type() *types.Type           { return n.v.sqlType() }
func (n *variableNode) Children() []expr.Node       { return nil }
func (n *variableNode) Volatility() expr.Volatility { return expr.Stable }

// Coercibility is that of system constants.
func (n *variableNode) Coercibility() expr.Coercibility { return expr.SysConst }

func (n *variableNode) Value(x *expr.Context, _ *types.Batch, _ int) (types.Value, error) {
	if x.Session == nil {
		return types.Null, sqlerr.New(sqlerr.UnknownSystemVariable, n.v.name)
	}
	v, _, err := x.Session.SystemVariable(n.v.name, n.global)
	return v, err
}

func (n *variableNode) Vector(x *expr.Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, err := n.Value(x, nil, 0)
	if err != nil {
		return err
	}
	count := 1
	if sel != nil {
		count = len(sel)
	} else if in != nil {
		count = in.Len()
	}
	for range count {
		out.Append(v)
	}
	return nil
}
