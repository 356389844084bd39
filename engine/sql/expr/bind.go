package expr

import (
	"errors"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Binder binds expressions in one scope.
type Binder struct {
	scope Scope
	opt   *Options
	depth int
	count int
	folds folding
	part  ast.ComparisonPart // that is being bound
	// together is the collation in which all texts of an IN or CASE compare; none: each two
	// in their own.
	together types.CollationID
}

// folding is what constants are folded with: an expression may have very many.
type folding struct {
	x      *Context
	memory foldMemory
	warned bool
	work   int // of all that was folded
}

const (
	// foldWork is how much work a binder folds constants for: some tenths of a second. What is quick is folded always.
	foldWork = 64 << 20
	// A value is kept if it is no longer than foldedLeast, or foldedTimes as long as the constants that it was made of:
	// those have taken room in the statement's text, by which trees and plans are counted.
	foldedLeast = 1 << 10
	foldedTimes = 4
)

// begin returns a context in which nothing has happened, for a value of so many bytes.
func (f *folding) begin(b *Binder, most int) *Context {
	f.warned = false
	if f.x == nil {
		f.x = &Context{
			SQLMode: b.opt.SQLMode | ModeErrorForDivisionByZero, Collation: b.collation(),
			DivPrecisionIncrement: b.divIncrement(),
		}
		f.x.Mode = b.opt.Mode
		f.x.Warn = func(*sqlerr.Error) { f.warned = true }
		f.x.folding = true
		f.x.Interrupted = func() error {
			f.work += workBetweenChecks
			return errLongFold
		}
		f.x.Memory, f.x.Hold = f.memory.hold, f.memory.hold
	}
	f.x.ResetStatement()
	f.x.MaxAllowedPacket = uint64(min(most, 1<<20))
	f.memory.bytes = 0
	if f.work += f.x.work; f.work > foldWork {
		f.x.work = workBetweenChecks
	} else {
		f.x.work = 0
	}
	return f.x
}

// NewBinder returns a binder for scope.
func NewBinder(s Scope) *Binder { return &Binder{scope: s, opt: s.Options()} }

// Bind makes an evaluable expression of e, whose names s resolves.
func Bind(s Scope, e ast.Expr) (Node, error) { return NewBinder(s).Bind(e) }

// collation returns the connection's collation.
func (b *Binder) collation() types.CollationID {
	if b.opt.Collation == 0 {
		return types.CollationUTF8MB40900AI
	}
	return b.opt.Collation
}

// Count is how many nodes were bound.
func (b *Binder) Count() int { return b.count }

// Options returns what binding depends on besides the statement.
func (b *Binder) Options() *Options { return b.opt }

// maxDepth bounds the nesting of expressions; it is far above what people write and
// far below what the stack bears.
const maxDepth = 10_000

// Bind binds one expression.
func (b *Binder) Bind(e ast.Expr) (Node, error) {
	if b.depth >= maxDepth {
		return nil, sqlerr.Newf(sqlerr.StackOverrunNeedMore, "Thread stack overrun: expressions are nested more than "+
			"%d deep", maxDepth)
	}
	b.depth++
	b.count++
	n, err := b.bind(e)
	b.depth--
	return n, err
}

// errLongFold ends the folding of what takes long.
var errLongFold = errors.New("expr: not to be folded")

// fold evaluates an expression of constants, unless that raises a warning or an
// error, takes long or much memory, or makes much of little: those belong to the
// execution, which can be interrupted and counts its memory.
func (b *Binder) fold(n Node) Node {
	children, size := n.Children(), 0
	for _, c := range children {
		c, ok := c.(*Const)
		if !ok {
			return n
		}
		size += len(c.v.Bytes())
	}
	size = max(foldedTimes*size, foldedLeast)
	if _, ok := n.(*Const); ok || VolatilityOf(n) != Pure {
		return n
	}
	x := b.folds.begin(b, size)
	v, err := n.Value(x, nil, 0)
	if err != nil || b.folds.warned || len(v.Bytes()) > size {
		return n
	}
	c := NewConst(v.Clone(), *n.Type())
	c.wide = !IsNarrow(n)
	c.co = CoercibilityOf(n)
	c.bool = IsBoolean(n)
	if a, ok := n.(*Arith); ok && a.inexact && !v.IsNull() {
		if v, err := a.unrounded().Value(x, nil, 0); err == nil {
			wide := types.Type{Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: types.MaxDecimalScale}
			c.raw = NewConst(v.Clone(), wide)
		}
	}
	return c
}

func (b *Binder) divIncrement() int {
	if b.opt.DivPrecisionIncrement == 0 && !b.opt.NoDivIncrement {
		return 4
	}
	return b.opt.DivPrecisionIncrement
}
