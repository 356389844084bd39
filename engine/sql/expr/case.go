package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// Case is CASE and IF: the result of the first condition that is true. Only that one
// is evaluated.
type Case struct {
	conds   []Node // truth values
	results []Node // one more than conditions: ELSE
	t       types.Type
	co      Coercibility
}

func (n *Case) Type() *types.Type          { return &n.t }
func (n *Case) Volatility() Volatility     { return Pure }
func (n *Case) Coercibility() Coercibility { return n.co }

func (n *Case) isBoolean() bool {
	for _, r := range n.results {
		if !IsBoolean(r) {
			return false
		}
	}
	return true
}

// Children returns the conditions, then the results.
func (n *Case) Children() []Node {
	return append(append(make([]Node, 0, len(n.conds)+len(n.results)), n.conds...), n.results...)
}

// WithChildren returns a copy with other operands of the same types.
func (n *Case) WithChildren(c []Node) Node {
	m := *n
	m.conds, m.results = c[:len(n.conds)], c[len(n.conds):]
	return &m
}

// NewCase makes a CASE of conditions and one more result.
func (b *Binder) NewCase(what string, conds, results []Node) (Node, error) {
	n := &Case{}
	co, err := b.unifyAll(what, results, &n.t)
	if err != nil {
		return nil, err
	}
	n.co = co
	for i, c := range conds {
		if c.Type().Kind == types.KindJSON { // a document is a number here, and only here
			c = NewCast(c, types.Type{Kind: types.KindDouble})
		}
		cond := toBool(c)
		if v, ok := Literal(cond); ok {
			if v.IsNull() || v.Int() == 0 {
				continue
			}
			n.results = append(n.results, NewResult(results[i], n.t))
			return n.simple(b), nil
		}
		n.conds = append(n.conds, cond)
		n.results = append(n.results, NewCast(results[i], n.t))
	}
	last := NewCast
	if len(n.conds) == 0 { // it is the whole of the CASE
		last = NewResult
	}
	n.results = append(n.results, last(results[len(conds)], n.t))
	for _, r := range n.results {
		n.t.NotNull = n.t.NotNull && r.Type().NotNull
	}
	return n.simple(b), nil
}

// simple leaves out a CASE without conditions.
func (n *Case) simple(b *Binder) Node {
	if len(n.conds) > 0 {
		return n
	}
	return b.fold(n.results[0])
}

// unifyAll sets t to the type in which nodes meet, and returns their coercibility.
func (b *Binder) unifyAll(what string, nodes []Node, t *types.Type) (Coercibility, error) {
	r, err := b.Unify(what, nodes...)
	if err != nil {
		return 0, err
	}
	*t = r
	if !isString(t) {
		return Numeric, nil
	}
	agg, err := b.mix(what, nodes)
	return agg.co, err
}

func (n *Case) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	for i, c := range n.conds {
		v, err := c.Value(x, in, row)
		if err != nil {
			return types.Null, err
		}
		if !v.IsNull() && v.Int() != 0 {
			return n.results[i].Value(x, in, row)
		}
	}
	return n.results[len(n.conds)].Value(x, in, row)
}

func (n *Case) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	if in == nil {
		return vectorByValue(n, x, in, sel, out)
	}
	return lazyVector(x, in, sel, out, n.results, func(i int, rows, hits []uint32) ([]uint32, error) {
		if i == len(n.conds) {
			return append(hits, rows...), nil
		}
		return Filter(x, n.conds[i], in, rows, hits)
	})
}

// lazyVector evaluates each of several results for the rows that choose picks for it
// among those left, and puts the values in the rows' order.
func lazyVector(x *Context, in *types.Batch, sel []uint32, out *types.Vector, results []Node,
	choose func(i int, rows, hits []uint32) ([]uint32, error)) error {
	count := rowCount(in, sel)
	rest, hits := x.selection(), x.selection()
	for i := range count {
		rest = append(rest, uint32(rowAt(sel, i)))
	}
	source := x.selection()[:0] // of each row: the vector that it takes its value from
	for range in.Len() {
		source = append(source, 0)
	}
	vectors := x.vectorList(min(len(results), count))[:0]
	var err error
	for i, r := range results {
		if len(rest) == 0 {
			break
		}
		if hits, err = choose(i, rest, hits[:0]); err != nil {
			break
		}
		if len(hits) == 0 {
			continue // no vector either: there may be many results
		}
		for _, row := range hits {
			source[row] = uint32(len(vectors))
		}
		v := x.vector(out.Type())
		vectors = append(vectors, v)
		if err = r.Vector(x, in, hits, v); err != nil {
			break
		}
		rest = without(rest, hits)
	}
	if err == nil {
		next := x.selection() // of each vector: the value that is taken next
		for range vectors {
			next = append(next, 0)
		}
		for i := range count {
			k := source[rowAt(sel, i)]
			out.AppendFrom(vectors[k], int(next[k]))
			next[k]++
		}
		x.putSelection(next)
	}
	releaseVectors(x, vectors, nil)
	x.putSelection(rest)
	x.putSelection(hits)
	x.putSelection(source)
	return err
}

// Coalesce is COALESCE and IFNULL.
type Coalesce struct {
	args []Node
	t    types.Type
	co   Coercibility
}

func (n *Coalesce) Type() *types.Type          { return &n.t }
func (n *Coalesce) Children() []Node           { return n.args }
func (n *Coalesce) Volatility() Volatility     { return Pure }
func (n *Coalesce) Coercibility() Coercibility { return n.co }

// WithChildren returns a copy with other operands of the same types.
func (n *Coalesce) WithChildren(c []Node) Node { return &Coalesce{args: c, t: n.t, co: n.co} }

func (b *Binder) newCoalesce(what string, args []Node) (Node, error) {
	n := &Coalesce{}
	co, err := b.unifyAll(what, args, &n.t)
	if err != nil {
		return nil, err
	}
	n.co = co
	n.t.NotNull = false
	for _, a := range args {
		arg := NewCast(a, n.t)
		n.args = append(n.args, arg)
		if arg.Type().NotNull {
			n.t.NotNull = true
			break
		}
	}
	// What is never NULL stands for all, but compares as all of them together do.
	if first := n.args[0]; len(n.args) == 1 && first.Type().Equal(&n.t) && CoercibilityOf(first) == n.co {
		return first, nil
	}
	return b.fold(n), nil
}

func (n *Coalesce) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	for _, a := range n.args {
		v, err := a.Value(x, in, row)
		if err != nil || !v.IsNull() {
			return v, err
		}
	}
	return types.Null, nil
}

func (n *Coalesce) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	if len(n.args) > maxVectorArgs {
		return vectorByValue(n, x, in, sel, out)
	}
	first := x.vector(&n.t)
	defer x.putVector(first)
	if err := n.args[0].Vector(x, in, sel, first); err != nil {
		return err
	}
	if !first.HasNulls() || len(n.args) == 1 {
		x.appendAll(out, first)
		return nil
	}
	rest := x.selection()
	defer func() { x.putSelection(rest) }()
	for i := range first.Len() {
		if first.IsNull(i) {
			rest = append(rest, uint32(rowAt(sel, i)))
		}
	}
	others := Node(&Coalesce{args: n.args[1:], t: n.t})
	if len(n.args) == 2 {
		others = n.args[1]
	}
	second := x.vector(&n.t)
	defer x.putVector(second)
	if err := others.Vector(x, in, rest, second); err != nil {
		return err
	}
	k := 0
	for i := range first.Len() {
		if first.IsNull(i) {
			out.AppendFrom(second, k)
			k++
			continue
		}
		out.AppendFrom(first, i)
	}
	return nil
}

func (x *Context) appendAll(out, src *types.Vector) { copyVector(out, src, src.Len()) }

// Extreme is GREATEST and LEAST.
type Extreme struct {
	greatest bool
	dated    bool // all are dates, and those that are none, -1, do not count
	args     []Node
	t        types.Type
	co       Coercibility
}

func (n *Extreme) Type() *types.Type          { return &n.t }
func (n *Extreme) Children() []Node           { return n.args }
func (n *Extreme) Volatility() Volatility     { return Pure }
func (n *Extreme) Coercibility() Coercibility { return n.co }

// WithChildren returns a copy with other operands of the same types.
func (n *Extreme) WithChildren(c []Node) Node {
	m := *n
	m.args = c
	return &m
}

func (b *Binder) newExtreme(name string, args []Node) (Node, error) {
	n := &Extreme{greatest: name == "greatest"}
	co, err := b.unifyAll(name, args, &n.t)
	if err != nil {
		return nil, err
	}
	n.co = co
	if t, ok := datesAmong(args); ok && isString(&n.t) {
		text := n.t
		n.t, n.dated, n.co = t, true, Numeric
		for _, a := range args {
			n.args = append(n.args, castExtreme(a, t))
		}
		return b.fold(NewCast(n, text)), nil
	}
	for _, a := range args {
		arg := NewCast(a, n.t)
		n.args = append(n.args, arg)
		n.t.NotNull = n.t.NotNull && arg.Type().NotNull
	}
	return b.fold(n), nil
}

// datesAmong is the type by which dates and what is none are compared: DATE, or DATETIME with all digits of seconds; ok is
// false without a date, and where everything is a date or time.
func datesAmong(args []Node) (t types.Type, ok bool) {
	t.Kind = types.KindDate
	others := false
	for _, a := range args {
		switch at := a.Type(); {
		case at.Kind == types.KindDate:
			ok = true
		case isDate(at):
			t.Kind, ok = types.KindDateTime, true
		case at.Kind == types.KindNull:
			return t, false
		case at.Kind != types.KindTime:
			others = true
		}
		t.FSP = max(t.FSP, fspOf(a))
	}
	if t.Kind == types.KindDate {
		t.FSP = 0
	}
	return t, ok && others
}

// castExtreme gives an operand of GREATEST and LEAST as a date; what is none is -1.
func castExtreme(n Node, t types.Type) Node {
	r := NewCast(n, t)
	c, ok := r.(*Cast)
	if !ok || c == n || n.Type().IsTemporal() {
		return r
	}
	whole := c.conv
	c.conv = func(x *Context, c *Cast, v types.Value) (types.Value, error) {
		v, err := whole(x, c, v)
		if err != nil || !v.IsNull() {
			return v, err
		}
		if c.t.Kind == types.KindDate {
			return types.NewDate(-1), nil
		}
		return types.NewDateTime(-1), nil
	}
	return c
}

func (n *Extreme) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	best, null := types.Null, false
	for i, a := range n.args {
		v, err := a.Value(x, in, row)
		if err != nil {
			return types.Null, err
		}
		null = null || v.IsNull()
		switch {
		case n.dated && i > 0 && !null && (v.DateTime() < 0 || best.DateTime() < 0):
			if best.DateTime() < 0 {
				best = v
			}
		case i == 0 || !null && n.better(types.Compare(v, best, &n.t)):
			best = v
		}
	}
	if null || n.dated && best.DateTime() < 0 {
		return types.Null, nil
	}
	return best, nil
}

func (n *Extreme) better(order int) bool {
	if n.greatest {
		return order > 0
	}
	return order < 0
}

func (n *Extreme) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	if len(n.args) > maxVectorArgs || n.dated {
		return vectorByValue(n, x, in, sel, out)
	}
	args, err := evalVectors(x, n.args, in, sel)
	if err == nil {
		for i := range args[0].Len() {
			best, null := 0, false
			for k, v := range args {
				null = null || v.IsNull(i)
				if k > 0 && !null && n.better(types.Compare(v.Value(i), args[best].Value(i), &n.t)) {
					best = k
				}
			}
			if null {
				out.AppendNull()
			} else {
				out.AppendFrom(args[best], i)
			}
		}
	}
	releaseVectors(x, args, in)
	return err
}

func init() {
	builtins["if"] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.exactly(name, list, 3)
		if err != nil {
			return nil, err
		}
		return b.NewCase(name, args[:1], args[1:])
	}
	builtins["ifnull"] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.exactly(name, list, 2)
		if err != nil {
			return nil, err
		}
		return b.newCoalesce(name, args)
	}
	builtins["nullif"] = bindNullIf
	builtins["coalesce"] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.atLeast(name, list, 1)
		if err != nil {
			return nil, err
		}
		return b.newCoalesce(name, args)
	}
	extreme := func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.atLeast(name, list, 2)
		if err != nil {
			return nil, err
		}
		return b.newExtreme(name, args)
	}
	builtins["greatest"], builtins["least"] = extreme, extreme
	builtins["isnull"] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.exactly(name, list, 1)
		if err != nil {
			return nil, err
		}
		return b.IsNull(args[0]), nil
	}
}

// bindNullIf makes NULLIF(a, b) a CASE WHEN a = b THEN NULL ELSE a.
func bindNullIf(b *Binder, name string, list []ast.Expr) (Node, error) {
	args, err := b.exactly(name, list, 2)
	if err != nil {
		return nil, err
	}
	equal, err := NewCompare(b, ast.OpEq, args[0], args[1])
	if err != nil {
		return nil, err
	}
	return b.NewCase(name, []Node{equal}, []Node{NewNull(), args[0]})
}

// exactly binds the arguments of a function of n arguments.
func (b *Binder) exactly(name string, list []ast.Expr, n int) ([]Node, error) {
	if len(list) != n {
		return nil, errArgCount(name)
	}
	return b.scalars(list)
}

func (b *Binder) atLeast(name string, list []ast.Expr, n int) ([]Node, error) {
	if len(list) < n {
		return nil, errArgCount(name)
	}
	return b.scalars(list)
}

// scalars binds operands none of which may be a row.
func (b *Binder) scalars(list []ast.Expr) ([]Node, error) {
	args, err := b.arguments(list)
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if isRow(a) {
			return nil, errOperandColumns(1)
		}
	}
	return args, nil
}
