package expr

import (
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// ArgKind says what a function's kernel wants an argument to be. The binder wraps
// an argument of another type in the cast that MySQL makes implicitly there.
type ArgKind uint8

const (
	ArgAny          ArgKind = iota // as it is; see Call.Args[i].Type()
	ArgText                        // text or bytes, all such arguments in one character set: Call.Collation
	ArgString                      // text or bytes in a character set of its own
	ArgUTF8                        // text as utf8mb4
	ArgBytes                       // ClassBytes without conversion of the character set
	ArgInt                         // ClassInt or, from unsigned types, ClassUint
	ArgSigned                      // ClassInt; unsigned values beyond it wrap around
	ArgDouble                      // ClassDouble
	ArgDecimal                     // ClassDecimal
	ArgNumber                      // ClassInt, ClassUint, ClassDecimal or ClassDouble; text becomes a double
	ArgDate                        // ClassDate; what is none is NULL with a warning
	ArgDateTime                    // ClassDateTime, likewise; TIMESTAMPs in the session's zone
	ArgTime                        // ClassTime, likewise
	ArgDatePart                    // ClassDate, also without month or day, whatever sql_mode says
	ArgDateTimePart                // ClassDateTime, likewise
	ArgJSON                        // ClassJSON: text is parsed
	ArgJSONMaybe                   // likewise; NULL and a warning for what cannot be parsed
	ArgJSONValue                   // ClassJSON: SQL values become scalars, text a JSON string
	ArgBool                        // ClassInt 0 or 1
)

// Func is a scalar function. Its kernels are pure code: what they remember goes into
// [Context.State], what is known when the statement is bound into [Call.Data].
//
//	Register(&Func{
//		Name: "repeat", Args: []ArgKind{ArgText, ArgInt}, Result: TextOf(maxText),
//		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) { .. },
//	})
type Func struct {
	Name    string // lower case
	Aliases []string

	// Args are the kinds of the arguments; the last one stands for all further.
	Args []ArgKind
	// Min and Max bound the number of arguments; both zero: len(Args). Max -1 is
	// any number.
	Min, Max int

	// Result infers the result's type; c.Args have their casts.
	Result func(b *Binder, c *Call) (types.Type, error)
	// NotNull: the result is not NULL if no argument is.
	NotNull bool
	// KeepNulls: the kernel sees NULL arguments. Without it they make NULL, and
	// the kernel is not called.
	KeepNulls bool
	// Boolean: the result is a truth value.
	Boolean bool
	// Compares: text arguments whose collations disagree are an error.
	Compares bool
	// Dated: the result is the text of a date or time, which among numbers is the number of its digits.
	Dated bool
	// Volatility is Pure for functions of their arguments alone. Those that depend
	// on the time zone, lc_time_names or the session's state are Stable.
	Volatility Volatility

	// Prepare, if set, runs once at bind time, after Result: it may check
	// arguments, compile constant ones (see Literal) and set c.Data.
	Prepare func(b *Binder, c *Call) error

	// Row computes one value; it is NULL or of the class of the result's type.
	// The arguments are valid during the call and the result may alias them.
	// New bytes are made by x.Scratch and x.Keep.
	Row func(x *Context, c *Call, a []types.Value) (types.Value, error)

	// Vector, optional, computes all values at once: args have the same length n,
	// and it appends n values to out. NULL arguments are its own affair.
	Vector func(x *Context, c *Call, args []*types.Vector, n int, out *types.Vector) error
}

var functions = map[string]*Func{}

// Register adds a function. It is called from init functions only and panics on a
// name that is taken.
func Register(f *Func) {
	if f.Min == 0 && f.Max == 0 {
		f.Min, f.Max = len(f.Args), len(f.Args)
	}
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		if functions[name] != nil {
			panic(fmt.Sprintf("expr: function %s registered twice", name))
		}
		functions[name] = f
	}
}

// LookupFunc returns the function of a lower-case name, or nil.
func LookupFunc(name string) *Func { return functions[name] }

// FuncNames returns all names, aliases included, and those of the built-in forms
// that are no entries of the table. The order is not defined.
func FuncNames() []string {
	names := make([]string, 0, len(functions)+len(builtins))
	for name := range functions {
		names = append(names, name)
	}
	for name := range builtins {
		names = append(names, name)
	}
	return names
}

// Call is a bound call of a registered function.
type Call struct {
	Func  *Func
	Args  []Node // with implicit casts
	Given []Node // as they were written
	// Collation is that of the ArgText arguments together, or the connection's.
	Collation types.CollationID
	Data      any // from Func.Prepare; immutable

	t  types.Type
	co Coercibility
	// long says that results may be long, works that results or arguments may be.
	long, works bool
	times       float64 // how many times as long as the arguments a result may be
}

func (c *Call) Type() *types.Type          { return &c.t }
func (c *Call) Children() []Node           { return c.Args }
func (c *Call) Volatility() Volatility     { return c.Func.Volatility }
func (c *Call) Coercibility() Coercibility { return c.co }
func (c *Call) isBoolean() bool            { return c.Func.Boolean }

// WithChildren returns a copy with other arguments of the same types.
func (c *Call) WithChildren(args []Node) Node {
	n := *c
	n.Args = args
	return &n
}

func (c *Call) arg(i int) ArgKind {
	if len(c.Func.Args) == 0 {
		return ArgAny
	}
	return c.Func.Args[min(i, len(c.Func.Args)-1)]
}

// Value evaluates all arguments, whatever is NULL, so that the warnings are those
// of Vector.
func (c *Call) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	base := len(x.args)
	null := false
	x.args = slices.Grow(x.args, len(c.Args))
	for _, n := range c.Args {
		v, err := n.Value(x, in, row)
		if err != nil {
			x.dropArgs(base)
			return types.Null, err
		}
		null = null || v.IsNull()
		x.args = append(x.args, v)
	}
	v, err := types.Null, error(nil)
	if !null || c.Func.KeepNulls {
		a := x.args[base:len(x.args):len(x.args)]
		v, err = c.row(x, a)
	}
	x.dropArgs(base)
	return v, err
}

// row computes one value. What is long counts as work, and is accounted for if it is large: before it is made as if it
// were as long as the arguments, as most are, or so many times as long. Functions that make any number of times as much
// account for that themselves.
func (c *Call) row(x *Context, a []types.Value) (types.Value, error) {
	if !c.works {
		return c.Func.Row(x, c, a)
	}
	n := 0
	for _, v := range a {
		n += len(v.Bytes())
	}
	if n >= workOfValue {
		if err := x.Worked(n); err != nil {
			return types.Null, err
		}
	}
	if !c.long {
		return c.Func.Row(x, c, a)
	}
	n = int(float64(n) * c.times)
	before := x.held
	if err := x.Large(n); err != nil {
		return types.Null, err
	}
	x.ahead = int(x.held - before)
	v, err := c.Func.Row(x, c, a)
	x.ahead = 0
	if made := len(v.Bytes()); err == nil && made >= workOfValue {
		if err = x.Large(made - int(x.held-before)); err == nil {
			err = x.Worked(made)
		}
	}
	return v, err
}

// workOfValue is from how many bytes on arguments and results count as work: from the least length that Large counts on, at most.
const workOfValue = 16 << 10

// maxVectorArgs is up to how many arguments get a vector each: a statement may have a
// million.
const maxVectorArgs = 64

func (c *Call) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	n := rowCount(in, sel)
	if n == 0 {
		return nil
	}
	if len(c.Args) > maxVectorArgs {
		return vectorByValue(c, x, in, sel, out)
	}
	args, err := evalVectors(x, c.Args, in, sel)
	if err == nil {
		if c.Func.Vector != nil {
			err = c.Func.Vector(x, c, args, n, out)
		} else {
			err = c.rows(x, args, n, out)
		}
	}
	releaseVectors(x, args, in)
	return err
}

// rows runs the row kernel over vectors of arguments.
func (c *Call) rows(x *Context, args []*types.Vector, n int, out *types.Vector) error {
	base := len(x.args)
	for range args {
		x.args = append(x.args, types.Null)
	}
	a := x.args[base:len(x.args):len(x.args)]
	defer x.dropArgs(base)
	for i := range n {
		if i&255 == 255 {
			if err := x.Check(); err != nil {
				return err
			}
		}
		null := false
		for k, v := range args {
			a[k] = v.Value(i)
			null = null || a[k].IsNull()
		}
		if null && !c.Func.KeepNulls {
			out.AppendNull()
			continue
		}
		m := x.Mark()
		v, err := c.row(x, a)
		if err == nil {
			err = x.AppendTo(out, v)
		}
		if err != nil {
			return err
		}
		x.Release(m)
	}
	return nil
}

// evalVectors evaluates nodes for a kernel; releaseVectors gives the vectors back.
func evalVectors(x *Context, nodes []Node, in *types.Batch, sel []uint32) ([]*types.Vector, error) {
	args := x.vectorList(len(nodes))
	for i, n := range nodes {
		v, _, err := x.operand(n, in, sel)
		if err != nil {
			clear(args[i:])
			return args, err
		}
		args[i] = v
	}
	return args, nil
}

func releaseVectors(x *Context, args []*types.Vector, in *types.Batch) {
	for _, v := range args {
		if v != nil && !ownedBy(in, v) {
			x.putVector(v)
		}
	}
	x.putVectorList(args)
}

// ownedBy reports whether a vector is a column of the batch and not on loan.
func ownedBy(in *types.Batch, v *types.Vector) bool {
	if in == nil {
		return false
	}
	for i := range in.Vecs {
		if v == &in.Vecs[i] {
			return true
		}
	}
	return false
}

// Literal returns the value of an argument that is known when the statement is
// bound.
func Literal(n Node) (types.Value, bool) {
	c, ok := n.(*Const)
	if !ok {
		return types.Null, false
	}
	return c.v, true
}
