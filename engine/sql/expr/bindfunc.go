package expr

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// builtins are the functions that are nodes of their own, because they do not
// evaluate all arguments or take their types from all of them.
var builtins = map[string]func(b *Binder, name string, args []ast.Expr) (Node, error){}

func (b *Binder) function(f *ast.Func) (Node, error) {
	if f.Schema != "" {
		return nil, errUnknownFunction(f.Schema + "." + f.Name)
	}
	name := strings.ToLower(f.Name)
	if make, ok := builtins[name]; ok {
		return make(b, name, f.Args)
	}
	fn := LookupFunc(name)
	if fn == nil {
		return nil, errUnknownFunction(name)
	}
	args, err := b.arguments(f.Args)
	if err != nil {
		return nil, err
	}
	return b.Call(fn, name, args)
}

// arguments binds the arguments of a function. INTERVAL n unit gives two: n and
// the unit; a bare word gives a constant of its text.
func (b *Binder) arguments(list []ast.Expr) ([]Node, error) {
	args := make([]Node, 0, len(list)+1)
	for _, e := range list {
		unit := ""
		switch i := e.(type) {
		case *ast.Interval:
			e, unit = i.Value, i.Unit
		case *ast.Keyword:
			args = append(args, keyword(i.Word))
			continue
		}
		n, err := b.Bind(e)
		if err != nil {
			return nil, err
		}
		args = append(args, n)
		if unit != "" {
			args = append(args, keyword(unit))
		}
	}
	return args, nil
}

func keyword(word string) Node {
	return NewConst(types.NewString(word), textType(uint64(len(word)), types.CollationUTF8MB40900AI))
}

// Call makes a call of a registered function with bound arguments. The name is
// that by which it was called.
func (b *Binder) Call(f *Func, name string, args []Node) (Node, error) {
	if len(args) < f.Min || f.Max >= 0 && len(args) > f.Max {
		return nil, errArgCount(name)
	}
	c := &Call{Func: f, Given: args, Args: make([]Node, len(args)), Collation: b.collation(), co: Coercible}
	if err := b.collateCall(c, name); err != nil {
		return nil, err
	}
	wide := narrow(&c.Collation)
	notNull := f.NotNull
	for i, a := range args {
		arg, err := b.castArg(c, i, a, name)
		if err != nil {
			return nil, err
		}
		c.Args[i] = arg
		notNull = notNull && (f.KeepNulls || arg.Type().NotNull)
	}
	t, err := f.Result(b, c)
	if err != nil {
		return nil, err
	}
	c.t = t
	c.t.NotNull = notNull
	if !isString(&c.t) {
		c.co = columnCoercibility(&c.t)
	}
	if f.Prepare != nil {
		if err := f.Prepare(b, c); err != nil {
			return nil, err
		}
	}
	c.long, c.times = IsLong(&c.t), lengthens(f.Name)
	c.works = c.long || slices.ContainsFunc(c.Args, func(a Node) bool { return IsLong(a.Type()) })
	if wide != types.CollationNone && isString(&c.t) && c.t.Collation == c.Collation {
		t := c.t
		t.Collation = wide
		return b.fold(NewCast(c, t)), nil
	}
	return b.fold(c), nil
}

// narrow replaces a collation of a wide character set by the same order of UTF-8, in which functions do their work, and returns it;
// CollationNone if it is another one.
func narrow(id *types.CollationID) (wide types.CollationID) {
	c := types.CollationByID(*id)
	r, ok := c.(types.Recoded)
	if !ok || !c.Charset().IsWide() {
		return types.CollationNone
	}
	wide, *id = *id, r.InUTF8().ID()
	return wide
}

// collateCall finds the collation in which the text arguments of a call meet.
func (b *Binder) collateCall(c *Call, name string) error {
	texts := make([]Node, 0, len(c.Given))
	for i, a := range c.Given {
		if c.arg(i) == ArgText {
			texts = append(texts, a)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	mix := b.mix
	if c.Func.Compares {
		mix = func(what string, nodes []Node) (aggregated, error) { return b.aggregate(what, nodes...) }
	}
	agg, err := mix(name, texts)
	if err != nil {
		return err
	}
	c.Collation, c.co = agg.id, min(agg.co, Coercible)
	return nil
}
