package expr

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// The function library is made of files fn_*.go: algorithms over bytes, integers and dates, and tables that register them.

// The categories under which documentation lists functions.
const (
	catString  = "String"
	catNumeric = "Numeric"
	catTime    = "Date and time"
	catJSON    = "JSON"
	catHash    = "Hashing, encryption and compression"
	catNet     = "Network addresses and UUIDs"
	catInfo    = "Information"
	catMisc    = "Miscellaneous"
	catControl = "Control flow and comparison"
)

// FunctionInfo describes a function for documentation.
type FunctionInfo struct {
	Name     string // upper case
	Aliases  []string
	Usage    []string // forms of the call
	MinArgs  int
	MaxArgs  int // -1: any number
	Category string
	Note     string // what differs from MySQL
}

// usages are what the library's tables say of each function, by name.
var usages = map[string]*FunctionInfo{}

// Functions describes all functions, sorted by category and name.
func Functions() []FunctionInfo {
	seen := map[string]bool{}
	var list []FunctionInfo
	for _, name := range FuncNames() {
		f := LookupFunc(name)
		if f != nil {
			name = f.Name
		}
		if seen[name] || !isWord(name) {
			continue
		}
		seen[name] = true
		info := FunctionInfo{Category: catControl}
		if u := usages[name]; u != nil {
			info = *u
			if info.alias(name) {
				continue
			}
		}
		if f != nil {
			info.Aliases, info.MinArgs, info.MaxArgs = upperAll(f.Aliases), f.Min, f.Max
		} else {
			info.MinArgs, info.MaxArgs = arityOf(info.Usage)
		}
		info.Name = strings.ToUpper(name)
		info.Note = notes[name]
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b FunctionInfo) int {
		if c := strings.Compare(a.Category, b.Category); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// isWord reports whether a name is one that a statement can call, not that of an operator.
func isWord(name string) bool {
	return name == "member of" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// notes are the differences from MySQL that a user may meet.
var notes = map[string]string{
	"regexp_like":                   "no `\\N{name}`, blocks and numeric properties in `\\p`, `\\b` with `(?w)`; see regular expressions",
	"regexp_replace":                "as REGEXP_LIKE",
	"regexp_instr":                  "as REGEXP_LIKE",
	"regexp_substr":                 "as REGEXP_LIKE",
	"statement_digest":              "the digest of `events_statements_summary_by_digest`, another number than MySQL's",
	"load_file":                     "a file of `secure_file_priv` of the node that runs it, for accounts that hold `FILE`; NULL for others",
	"uuid_short":                    "error 1235 where the server gives no numbers",
	"random_bytes":                  "not for keys: the bytes are those of the server's general generator",
	"aes_encrypt":                   "block_encryption_mode: aes-128, -192 or -256 with ecb, cbc, cfb128 or ofb",
	"aes_decrypt":                   "as AES_ENCRYPT",
	"dayname":                       "English, whatever lc_time_names says",
	"monthname":                     "English, whatever lc_time_names says",
	"date_format":                   "names in English",
	"json_value":                    "digits of seconds that the type lacks are cut off; numbers that do not fit FLOAT, or DECIMAL once they are rounded, are errors; text with an offset is brought to the session's time zone; `?` may be the document, as text",
	"json_schema_valid":             "draft 4; a `CHECK` that it fails says 3819 alone, not 3934 before; references in a circle ask for nothing more, instead of error 3157; in patterns no look-around and back references",
	"json_schema_validation_report": "as JSON_SCHEMA_VALID",
	"convert_tz":                    "names of the IANA database, without a table to load; SYSTEM is UTC",
}

func init() {
	d := definer(catControl)
	for _, usage := range []string{
		"IF(condition, x, y)", "IFNULL(x, y)", "NULLIF(x, y)", "COALESCE(x, ...)", "GREATEST(x, y, ...)", "LEAST(x, y, ...)",
		"ISNULL(x)",
	} {
		d.note(usage)
	}
}

func (i *FunctionInfo) alias(name string) bool {
	return slices.Contains(i.Aliases, strings.ToUpper(name))
}

// arityOf counts the arguments of the forms of a call.
func arityOf(usage []string) (low, high int) {
	for i, u := range usage {
		list := u[strings.IndexByte(u, '(')+1 : strings.LastIndexByte(u, ')')]
		n := 0
		if list != "" {
			n = strings.Count(list, ",") + 1
		}
		if strings.Contains(list, "...") {
			n--
			high = -1
		}
		if i == 0 || n < low {
			low = n
		}
		if high >= 0 {
			high = max(high, n)
		}
	}
	return low, high
}

func upperAll(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToUpper(n)
	}
	return out
}

// A definer registers the functions of one category. Usages are separated by semicolons; the name stands before the
// first parenthesis.
type definer string

// note keeps a function's usage and returns its name.
func (d definer) note(usage string) string {
	name, _, _ := strings.Cut(usage, "(")
	key := strings.ToLower(name)
	usages[key] = &FunctionInfo{Usage: strings.Split(usage, "; "), Category: string(d)}
	return key
}

// def registers a function.
func (d definer) def(usage string, f Func) {
	f.Name = d.note(usage)
	Register(&f)
}

// overloads registers a name whose calls choose among variants by their arguments, which choose may rewrite.
func (d definer) overloads(usage string, choose func(b *Binder, args []Node) (*Func, []Node, error)) {
	name := d.note(usage)
	builtins[name] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.arguments(list)
		if err != nil {
			return nil, err
		}
		f, args, err := choose(b, args)
		if err != nil {
			return nil, err
		}
		if f.Min == 0 && f.Max == 0 && len(f.Args) > 0 {
			fixed := *f
			fixed.Min, fixed.Max = len(f.Args), len(f.Args)
			f = &fixed
		}
		return b.Call(f, name, args)
	}
}

// alias lets another name stand for one of overloads.
func (d definer) alias(name, of string) {
	builtins[name] = builtins[of]
	usages[of].Aliases = append(usages[of].Aliases, strings.ToUpper(name))
	usages[name] = usages[of]
}

// textFunc makes a kernel of a function that appends its result; ok false is NULL.
func textFunc(f func(x *Context, c *Call, dst []byte, a []types.Value) (out []byte, ok bool, err error)) func(*Context, *Call, []types.Value) (types.Value, error) {
	return func(x *Context, c *Call, a []types.Value) (types.Value, error) {
		out, ok, err := f(x, c, x.Scratch(), a)
		if err != nil || !ok {
			return types.Null, err
		}
		return types.NewBytes(x.Keep(out)), nil
	}
}

// appendFunc is textFunc for functions that always have a result.
func appendFunc(f func(c *Call, dst []byte, a []types.Value) []byte) func(*Context, *Call, []types.Value) (types.Value, error) {
	return func(x *Context, c *Call, a []types.Value) (types.Value, error) {
		return types.NewBytes(x.Keep(f(c, x.Scratch(), a))), nil
	}
}

// partFunc makes a kernel of a function whose result is a part of an argument.
func partFunc(f func(c *Call, a []types.Value) []byte) func(*Context, *Call, []types.Value) (types.Value, error) {
	return func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
		return types.NewBytes(f(c, a)), nil
	}
}

// intFunc makes a kernel of a function that gives an integer.
func intFunc(f func(c *Call, a []types.Value) int64) func(*Context, *Call, []types.Value) (types.Value, error) {
	return func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
		return types.NewInt(f(c, a)), nil
	}
}

// measure makes the kernels of a function that gives an integer of one string.
func (f Func) measure(of func(c *Call, s []byte) int64) Func {
	f.NotNull, f.Result = true, ResultInt
	f.Row = func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
		return types.NewInt(of(c, a[0].Bytes())), nil
	}
	f.Vector = func(_ *Context, c *Call, args []*types.Vector, n int, out *types.Vector) error {
		base, nulls := out.Len(), args[0].HasNulls()
		out.Resize(base + n)
		res := out.Int64s()[base:]
		for i := range res {
			if nulls && args[0].IsNull(i) {
				out.SetNull(base + i)
			} else {
				res[i] = of(c, args[0].BytesAt(i))
			}
		}
		return nil
	}
	return f
}

// argInt returns an ArgInt as signed integer; what is too large is the largest.
func argInt(v types.Value) int64 {
	if v.Class() == types.ClassUint && v.Int() < 0 {
		return 1<<63 - 1
	}
	return v.Int()
}

// charset returns the character set of the ArgText arguments.
func (c *Call) charset() types.Charset { return c.collation().Charset() }

// collation returns the collation of the ArgText arguments.
func (c *Call) collation() types.Collation { return types.CollationByID(c.Collation) }

// argCharset returns the character set of an argument.
func (c *Call) argCharset(i int) types.Charset { return c.Args[i].Type().Charset() }

const defaultPacket = 64 << 20

// packetLimit is the largest result of a string function.
func (x *Context) packetLimit() int {
	if x.MaxAllowedPacket == 0 {
		return defaultPacket
	}
	return int(min(x.MaxAllowedPacket, 1<<30))
}

// tooLarge warns of a result beyond packetLimit.
func (x *Context) tooLarge(c *Call) error {
	return x.Fault(errPacketTooLarge(c.Func.Name, uint64(x.packetLimit())))
}

// limited hands out a result that may be too large.
func (x *Context) limited(c *Call, out []byte, ok bool) ([]byte, bool, error) {
	if !ok {
		return nil, false, x.tooLarge(c)
	}
	return out, true, nil
}

// errWrongText is MySQL's 1411.
func errWrongText(what string, s []byte, function string) *sqlerr.Error {
	return sqlerr.New(sqlerr.WrongValueForType, what, printable(s), function)
}
