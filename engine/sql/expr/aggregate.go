package expr

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Aggregate is a bound aggregate function. It is immutable; the states of the groups
// are made by [Aggregate.NewStates].
//
// DISTINCT is the caller's work: it passes each combination of the arguments' values
// once for each group, as the collations of the arguments' types compare them.
type Aggregate struct {
	name      string
	distinct  bool
	args      []Node
	order     []AggregateOrder
	floats    []int // arguments that are text of floating-point numbers
	separator []byte
	t         types.Type
	incr      int // AVG: div_precision_increment
	make      func(a *Aggregate) States
}

// AggregateOrder is one key of GROUP_CONCAT's ORDER BY.
type AggregateOrder struct {
	Key  Node
	Desc bool
}

// Name returns the function's name as in ast.Aggregate.
func (a *Aggregate) Name() string { return a.name }

// Distinct reports whether equal arguments count once.
func (a *Aggregate) Distinct() bool { return a.distinct }

// Args returns the arguments with implicit casts. COUNT(*) has none.
func (a *Aggregate) Args() []Node { return a.args }

// Inputs returns the expressions whose vectors States.Update takes: the arguments and
// after them the keys of ORDER BY.
func (a *Aggregate) Inputs() []Node {
	if len(a.order) == 0 {
		return a.args
	}
	in := append([]Node(nil), a.args...)
	for _, o := range a.order {
		in = append(in, o.Key)
	}
	return in
}

// WithInputs returns a copy with other inputs of the same types.
func (a *Aggregate) WithInputs(in []Node) *Aggregate {
	c := *a
	c.args = in[:len(a.args)]
	c.order = append([]AggregateOrder(nil), a.order...)
	for i := range c.order {
		c.order[i].Key = in[len(a.args)+i]
	}
	return &c
}

// Type returns the type of the results.
func (a *Aggregate) Type() *types.Type { return &a.t }

// NewStates returns states for no groups yet.
func (a *Aggregate) NewStates() States { return a.make(a) }

// States holds the state of an aggregate for each of a number of groups. It is not
// safe for concurrent use.
type States interface {
	// Grow makes groups 0 to n-1 exist; new ones have seen no row.
	Grow(n int)

	// Update adds n rows: row i, whose inputs are element i of each vector, to group
	// groups[i]. Nil groups stand for group 0 for all rows.
	Update(x *Context, groups []uint32, n int, in []*types.Vector) error

	// Merge adds the states of other, which belongs to the same aggregate: group i
	// of it to groups[i] here. Rows of other count as later ones.
	Merge(x *Context, groups []uint32, other States) error

	// Append appends the results of groups from to to-1 to out.
	Append(x *Context, out *types.Vector, from, to int) error

	// MemoryBytes returns the memory that the states hold.
	MemoryBytes() int64

	// Reset removes all groups and keeps some of the memory.
	Reset()
}

// groupAt returns the group of row i.
func groupAt(groups []uint32, i int) uint32 {
	if groups == nil {
		return 0
	}
	return groups[i]
}

// Coercibility is how much the result insists on its collation: as much as the arguments that it
// is made of.
func (a *Aggregate) Coercibility() Coercibility {
	co := columnCoercibility(&a.t)
	if co != Implicit {
		return co
	}
	switch a.name {
	case "min", "max", "any_value":
		return CoercibilityOf(a.args[0])
	case "group_concat":
		co = Ignorable
		for _, arg := range a.args {
			co = min(co, CoercibilityOf(arg))
		}
		return min(co, Coercible) // of numbers too
	}
	return co
}

// BindAggregate binds an aggregate function's arguments and keys in b's scope.
func (b *Binder) BindAggregate(e *ast.Aggregate) (*Aggregate, error) {
	var args []Node
	for _, arg := range e.Args {
		if _, ok := arg.(*ast.Star); ok {
			continue
		}
		n, err := b.Scalar(arg)
		if err != nil {
			return nil, err
		}
		args = append(args, n)
	}
	var order []AggregateOrder
	for _, o := range e.OrderBy {
		if l, ok := o.Expr.(*ast.Literal); ok && l.Kind == ast.LiteralInt {
			// GROUP_CONCAT(a, b ORDER BY 2): the second argument.
			at := l.Value.Int()
			if l.Value.Class() != types.ClassInt || at < 1 || at > int64(len(args)) {
				return nil, sqlerr.New(sqlerr.BadFieldError, ast.Format(l), "order clause")
			}
			order = append(order, AggregateOrder{Key: args[at-1], Desc: o.Desc})
			continue
		}
		n, err := b.Scalar(o.Expr)
		if err != nil {
			return nil, err
		}
		order = append(order, AggregateOrder{Key: n, Desc: o.Desc})
	}
	return b.NewAggregate(e.Name, args, order, e.Separator, e.Distinct)
}

// NewAggregate makes an aggregate function of bound arguments.
func (b *Binder) NewAggregate(name string, args []Node, order []AggregateOrder, separator *string, distinct bool) (*Aggregate, error) {
	a := &Aggregate{name: strings.ToLower(name), args: args, order: order, distinct: distinct, separator: []byte(",")}
	if separator != nil {
		a.separator = []byte(*separator)
	}
	if a.name == "count" {
		a.t, a.make = types.Type{Kind: types.KindBigInt, NotNull: true}, newCount
		return a, nil
	}
	if len(args) == 0 || len(args) > 1 && a.name != "group_concat" && a.name != "json_objectagg" {
		return nil, errArgCount(strings.ToUpper(name))
	}
	return a, b.prepareAggregate(a)
}

// prepareAggregate sets the result's type, the casts of the arguments and the states.
func (b *Binder) prepareAggregate(a *Aggregate) error {
	arg := a.args[0]
	switch a.name {
	case "sum", "avg":
		b.prepareSum(a, arg)
	case "min", "max":
		if hasMembers(arg.Type()) {
			a.args[0] = b.castText(arg, arg.Type().Collation)
		}
		a.t, a.make = *a.args[0].Type(), newExtremes
	case "any_value":
		a.t, a.make = *arg.Type(), newFirst
	case "bit_and", "bit_or", "bit_xor":
		if byteOperand(arg) {
			return a.prepareByteBits(arg)
		}
		a.args = []Node{b.castPlain(arg, ArgInt)}
		a.t, a.make = types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}, newBits
		return nil
	case "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		a.args = []Node{b.castPlain(arg, ArgDouble)}
		a.t, a.make = types.Type{Kind: types.KindDouble}, newVariances
	case "group_concat":
		return b.prepareConcat(a)
	case "json_arrayagg", "json_objectagg":
		return b.prepareJSON(a)
	default:
		return errUnknownFunction(a.name)
	}
	a.t.NotNull = false
	return nil
}

// prepareSum: integers and decimals are summed exactly, all else as doubles.
func (b *Binder) prepareSum(a *Aggregate, arg Node) {
	given := arg.Type()
	arg = toNumber(arg)
	a.args = []Node{arg}
	if arg.Type().Class() == types.ClassDouble {
		a.t, a.make = types.Type{Kind: types.KindDouble}, newDoubleSums
		if scale, ok := shownScale(given); ok {
			if a.name == "avg" {
				scale += b.divIncrement()
			}
			a.t = shownDouble(scale)
			a.t.Precision = uint8(min(sumPrecision+int(a.t.Scale), 255))
		}
		return
	}
	precision, scale := decimalShape(arg)
	a.args[0] = rawDigits(arg)
	if _, ok := Literal(arg); !ok && arg.Type().Kind == types.KindBigInt && IsBoolean(arg) {
		precision = 1
	}
	const room = 22 // digits that MySQL adds for the number of rows
	p, s := int(precision)+room, int(scale)
	if a.name == "avg" {
		s = min(s+b.divIncrement(), types.MaxDecimalScale)
		p = int(precision) + b.divIncrement()
	}
	p = max(min(p, types.MaxDecimalPrecision), s)
	a.t = types.Type{Kind: types.KindDecimal, Precision: uint8(p), Scale: uint8(s)}
	a.incr, a.make = b.divIncrement(), newSums
}
