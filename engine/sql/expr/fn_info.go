package expr

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Functions that tell of the session and of their arguments' types, and those that wait.

func init() {
	registerSession()
	registerTypes()
	registerLocks()
	registerGTIDs()
	registerMisc()
}

// errNoSession is for expressions that are evaluated without one, such as those of generated columns.
var errNoSession = sqlerr.Newf(sqlerr.WrongArguments, "Function needs a session")

// sessionFunc makes a function without arguments of what a session says.
func sessionFunc(usage string, result func(*Binder, *Call) (types.Type, error), v Volatility, f func(x *Context, s SessionInfo) types.Value, aliases ...string) {
	definer(catInfo).def(usage, Func{
		Aliases: aliases, Result: result, Volatility: v, Prepare: sysConst,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			return f(x, x.Session), nil
		},
	})
}

// sysConst gives a call the coercibility of system information.
func sysConst(_ *Binder, c *Call) error {
	if isString(&c.t) {
		c.co = SysConst
	}
	return nil
}

func registerSession() {
	text := func(f func(SessionInfo) string) func(*Context, SessionInfo) types.Value {
		return func(_ *Context, s SessionInfo) types.Value { return types.NewString(f(s)) }
	}
	sessionFunc("VERSION()", ResultUTF8(60), Stable, text(SessionInfo.Version))
	sessionFunc("USER()", ResultUTF8(288), Stable, text(SessionInfo.User), "session_user", "system_user")
	sessionFunc("CURRENT_USER()", ResultUTF8(288), Stable, text(SessionInfo.CurrentUser))
	sessionFunc("CURRENT_ROLE()", ResultUTF8(1024), Stable, text(SessionInfo.CurrentRole))
	sessionFunc("DATABASE()", ResultUTF8(64), Stable, func(_ *Context, s SessionInfo) types.Value {
		if name := s.Schema(); name != "" {
			return types.NewString(name)
		}
		return types.Null
	}, "schema")
	sessionFunc("CONNECTION_ID()", ResultUint, Stable, func(_ *Context, s SessionInfo) types.Value {
		return types.NewUint(s.ConnectionID())
	})
	sessionFunc("ROW_COUNT()", ResultInt, Stable, func(_ *Context, s SessionInfo) types.Value {
		return types.NewInt(s.RowCount())
	})
	sessionFunc("FOUND_ROWS()", ResultInt, Stable, func(_ *Context, s SessionInfo) types.Value {
		return types.NewInt(int64(s.FoundRows()))
	})
	definer(catInfo).overloads("LAST_INSERT_ID(); LAST_INSERT_ID(n)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 0 {
			return lastInsertID, args, nil
		}
		return setLastInsertID, args, nil
	})
}

var (
	lastInsertID = &Func{
		Name: "last_insert_id", Result: ResultUint, NotNull: true, Volatility: Stable,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			return types.NewUint(x.Session.LastInsertID()), nil
		},
	}
	setLastInsertID = &Func{
		Name: "last_insert_id", Args: []ArgKind{ArgInt}, Result: ResultUint, Volatility: Volatile,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			x.Session.SetLastInsertID(a[0].Uint())
			return types.NewUint(a[0].Uint()), nil
		},
	}
)

func registerTypes() {
	d := definer(catInfo)
	static := func(usage string, result func(*Binder, *Call) (types.Type, error), f func(b *Binder, n Node) types.Value) {
		d.def(usage, Func{
			Args: []ArgKind{ArgAny}, KeepNulls: true, NotNull: true, Result: result,
			Prepare: func(b *Binder, c *Call) error {
				c.Data = f(b, c.Given[0])
				return nil
			},
			Row: func(_ *Context, c *Call, _ []types.Value) (types.Value, error) { return c.Data.(types.Value), nil },
		})
	}
	collationOf := func(n Node) types.Collation {
		t := n.Type()
		id := types.CollationBinary
		if t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet {
			id = t.Collation
		}
		if t.Kind == types.KindJSON {
			id = types.CollationUTF8MB4Bin
		}
		return types.CollationByID(id)
	}
	static("CHARSET(x)", ResultASCII(64), func(_ *Binder, n Node) types.Value {
		return types.NewString(collationOf(n).Charset().String())
	})
	static("COLLATION(x)", ResultASCII(64), func(_ *Binder, n Node) types.Value {
		return types.NewString(collationOf(n).Name())
	})
	static("COERCIBILITY(x)", ResultInt, func(_ *Binder, n Node) types.Value {
		return types.NewInt(int64(CoercibilityOf(n)))
	})
}

// lockName checks the name of a user's lock.
func lockName(v types.Value) (string, error) {
	s := v.Bytes()
	if v.IsNull() || len(s) == 0 || utf8.RuneCount(s) > 64 {
		return "", sqlerr.Newf(sqlerr.UserLockWrongName, "Incorrect user-level lock name '%s'.", printable(s))
	}
	return string(appendCased(nil, types.CollationByID(types.CollationUTF8MB40900AI), s, false)), nil
}

func registerLocks() {
	d := definer(catMisc)
	d.def("VALIDATE_PASSWORD_STRENGTH(text)", Func{
		Args: []ArgKind{ArgUTF8}, Volatility: Stable, Result: ResultInt,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			return types.NewInt(x.Session.Strength(string(a[0].Bytes()))), nil
		},
	})
	lock := func(usage string, args []ArgKind, f func(s SessionInfo, name string, a []types.Value) (types.Value, error)) {
		d.def(usage, Func{
			Args: args, KeepNulls: true, Volatility: Volatile, Result: ResultInt,
			Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
				name, err := lockName(a[0])
				switch {
				case err != nil:
					return types.Null, err
				case x.Session == nil:
					return types.Null, errNoSession
				}
				return f(x.Session, name, a)
			},
		})
	}
	lock("GET_LOCK(name, timeout)", []ArgKind{ArgUTF8, ArgInt}, func(s SessionInfo, name string, a []types.Value) (types.Value, error) {
		if a[1].IsNull() {
			return types.Null, errWrongArguments("get_lock")
		}
		n, err := s.GetLock(name, time.Duration(min(max(argInt(a[1]), -1), 1<<31))*time.Second)
		return types.NewInt(n), err
	})
	lock("RELEASE_LOCK(name)", []ArgKind{ArgUTF8}, func(s SessionInfo, name string, _ []types.Value) (types.Value, error) {
		released, exists, err := s.ReleaseLock(name)
		if err != nil || !exists {
			return types.Null, err
		}
		return boolValue(released), nil
	})
	lock("IS_FREE_LOCK(name)", []ArgKind{ArgUTF8}, func(s SessionInfo, name string, _ []types.Value) (types.Value, error) {
		_, held, err := s.LockHolder(name)
		return boolValue(!held), err
	})
	lock("IS_USED_LOCK(name)", []ArgKind{ArgUTF8}, func(s SessionInfo, name string, _ []types.Value) (types.Value, error) {
		connection, held, err := s.LockHolder(name)
		if err != nil || !held {
			return types.Null, err
		}
		return types.NewInt(int64(connection)), nil
	})
	d.def("RELEASE_ALL_LOCKS()", Func{
		Result: ResultInt, Volatility: Volatile,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			n, err := x.Session.ReleaseAllLocks()
			return types.NewInt(n), err
		},
	})
}

func registerGTIDs() {
	d := definer(catInfo)
	d.def("GTID_SUBSET(set, of)", Func{
		Args: []ArgKind{ArgUTF8, ArgUTF8}, Boolean: true, Result: ResultBool,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			held := holding{x: x}
			left, err := subtractGTIDs(&held, a)
			held.done()
			return boolValue(len(left) == 0), err
		},
	})
	d.def("GTID_SUBTRACT(set, minus)", Func{
		Args: []ArgKind{ArgUTF8, ArgUTF8}, Result: resultGTIDs,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			held := holding{x: x}
			defer held.done()
			left, err := subtractGTIDs(&held, a)
			if err != nil {
				return types.Null, err
			}
			dst, _, err := x.reserve(x.Scratch(), left.textBound(), math.MaxInt)
			if err != nil {
				return types.Null, err
			}
			return types.NewBytes(x.Keep(left.appendText(dst))), nil
		},
	})
	d.def("WAIT_FOR_EXECUTED_GTID_SET(set); WAIT_FOR_EXECUTED_GTID_SET(set, timeout)", Func{
		Args: []ArgKind{ArgUTF8, ArgDouble}, Min: 1, Max: 2, KeepNulls: true, Volatility: Volatile, Result: ResultInt,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			timeout := 0.0
			if len(a) == 2 {
				timeout = a[1].Double()
			}
			if a[0].IsNull() || timeout < 0 || len(a) == 2 && a[1].IsNull() {
				return types.Null, errWrongArguments("WAIT_FOR_EXECUTED_GTID_SET.")
			}
			held := holding{x: x}
			_, err := parseGTIDSet(&held, a[0].Bytes())
			held.done()
			if err != nil {
				return types.Null, err
			}
			if x.Session == nil {
				return types.Null, errNoSession
			}
			n, err := x.Session.WaitForGTIDs(string(a[0].Bytes()), seconds(timeout))
			return types.NewInt(n), err
		},
	})
}

// resultGTIDs is text as long as argument 0 may be; ranges that are split take more room.
func resultGTIDs(b *Binder, c *Call) (types.Type, error) {
	return textType(min(4*textLength(c.Args[0].Type()), maxText), b.collation()), nil
}

func subtractGTIDs(held *holding, a []types.Value) (gtidSet, error) {
	l, err := parseGTIDSet(held, a[0].Bytes())
	if err != nil {
		return nil, err
	}
	r, err := parseGTIDSet(held, a[1].Bytes())
	if err != nil {
		return nil, err
	}
	return l.subtract(r), nil
}

// seconds is a time to wait, at most some years.
func seconds(f float64) time.Duration {
	return time.Duration(min(f, 1e8) * float64(time.Second))
}

func registerMisc() {
	d := definer(catMisc)
	d.def("SLEEP(seconds)", Func{
		Args: []ArgKind{ArgDouble}, KeepNulls: true, Volatility: Volatile, Result: ResultInt,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			f := a[0].Double()
			if a[0].IsNull() || f < 0 {
				err := errWrongArguments("sleep.")
				if x.Mode&types.ModeStrict != 0 {
					return types.Null, err
				}
				x.Warning(err)
				return types.NewInt(0), nil
			}
			if x.Session == nil {
				return types.Null, errNoSession
			}
			interrupted, err := x.Session.Sleep(seconds(f))
			return boolValue(interrupted), err
		},
	})
	d.def("LOAD_FILE(path)", Func{
		Args: []ArgKind{ArgUTF8}, Result: ResultBytes(maxText), Volatility: Volatile,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			text, err := x.Session.LoadFile(string(a[0].Bytes()))
			if err != nil || text == nil {
				return types.Null, err
			}
			return types.NewBytes(text), nil
		},
	})
	digest := func(usage string, result func(*Binder, *Call) (types.Type, error), asText bool) {
		d.def(usage, Func{
			Args: []ArgKind{ArgUTF8}, Result: result, Volatility: Stable,
			Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
				if x.Session == nil {
					return types.Null, errNoSession
				}
				text, err := x.Session.StatementDigest(string(a[0].Bytes()), asText)
				return types.NewString(text), err
			},
		})
	}
	digest("STATEMENT_DIGEST(statement)", ResultASCII(64), false)
	digest("STATEMENT_DIGEST_TEXT(statement)", ResultASCII(maxText), true)
	thread := func(x *Context, connection uint64) (types.Value, error) {
		if x.Session == nil {
			return types.Null, errNoSession
		}
		if id, ok := x.Session.ThreadID(connection); ok {
			return types.NewUint(id), nil
		}
		return types.Null, nil
	}
	d.def("PS_CURRENT_THREAD_ID()", Func{
		Result: ResultUint, Volatility: Stable,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if x.Session == nil {
				return types.Null, errNoSession
			}
			return thread(x, x.Session.ConnectionID())
		},
	})
	d.def("PS_THREAD_ID(connection)", Func{
		Args: []ArgKind{ArgInt}, Result: ResultUint, Volatility: Stable,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) { return thread(x, a[0].Uint()) },
	})
	d.def("NAME_CONST(name, value)", Func{
		Args: []ArgKind{ArgAny, ArgAny}, KeepNulls: true, Result: ResultLike(1),
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) { return a[1], nil },
	})
	name := d.note("BENCHMARK(count, x)")
	builtins[name] = bindBenchmark
	// Of grouped queries the planner takes it for an aggregate.
	name = d.note("ANY_VALUE(x)")
	builtins[name] = func(b *Binder, name string, list []ast.Expr) (Node, error) {
		args, err := b.exactly(name, list, 1)
		if err != nil {
			return nil, err
		}
		return args[0], nil
	}
}
