package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// Network addresses and UUIDs.

func init() {
	registerUUID()
	registerInet()
	registerInetTests()
}

// shortUUIDs is what UUID_SHORT asks of a session: a number that no other call of any session on any server gets.
type shortUUIDs interface{ ShortUUID() uint64 }

func registerUUID() {
	d := definer(catNet)
	d.def("UUID()", Func{
		Result: ResultASCII(36), NotNull: true, Volatility: Volatile,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if x.Env == nil {
				return types.Null, errNoSession
			}
			u := newUUID(x.Env.Now(), x.Env.Uint64(), x.Env.Uint64())
			return types.NewBytes(x.Keep(u.appendText(x.Scratch()))), nil
		},
	})
	d.def("UUID_SHORT()", Func{
		Result: ResultUint, NotNull: true, Volatility: Volatile,
		Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
			if s, ok := x.Session.(shortUUIDs); ok {
				return types.NewUint(s.ShortUUID()), nil
			}
			return types.Null, errNotSupported("UUID_SHORT()")
		},
	})
	d.def("IS_UUID(s)", Func{
		Args: []ArgKind{ArgBytes}, Boolean: true, Result: ResultBool, NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			_, ok := parseUUID(a[0].Bytes())
			return boolValue(ok), nil
		},
	})
	d.def("UUID_TO_BIN(s); UUID_TO_BIN(s, swap)", Func{
		Args: []ArgKind{ArgBytes, ArgBool}, Min: 1, Max: 2, KeepNulls: true, Result: ResultBytes(16),
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if a[0].IsNull() {
				return types.Null, nil
			}
			u, ok := parseUUID(a[0].Bytes())
			if !ok {
				return types.Null, errWrongText("string", a[0].Bytes(), "uuid_to_bin")
			}
			if len(a) == 2 && a[1].Int() != 0 {
				u = u.swapped()
			}
			return types.NewBytes(x.Copy(u[:])), nil
		},
	})
	d.def("BIN_TO_UUID(b); BIN_TO_UUID(b, swap)", Func{
		Args: []ArgKind{ArgBytes, ArgBool}, Min: 1, Max: 2, KeepNulls: true, Result: ResultASCII(36),
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if a[0].IsNull() {
				return types.Null, nil
			}
			if len(a[0].Bytes()) != 16 {
				return types.Null, errWrongText("string", a[0].Bytes(), "bin_to_uuid")
			}
			u := uuid(a[0].Bytes())
			if len(a) == 2 && a[1].Int() != 0 {
				u = u.unswapped()
			}
			return types.NewBytes(x.Keep(u.appendText(x.Scratch()))), nil
		},
	})
}

func registerInet() {
	d := definer(catNet)
	d.def("INET_ATON(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultUint,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			n, ok := parseIPv4Number(a[0].Bytes())
			if !ok {
				return types.Null, x.Fault(errWrongText("string", a[0].Bytes(), "inet_aton"))
			}
			return types.NewUint(n), nil
		},
	})
	d.def("INET_NTOA(n)", Func{
		Args: []ArgKind{ArgInt}, Result: ResultASCII(15),
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if a[0].Uint() >= 1<<32 {
				return types.Null, x.Fault(errWrongText("integer", x.text(a[0], nil), "inet_ntoa"))
			}
			return types.NewBytes(x.Keep(appendIPv4(x.Scratch(), uint32(a[0].Uint())))), nil
		},
	})
	d.def("INET6_ATON(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultBytes(16),
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			s := a[0].Bytes()
			if addr, ok := parseIPv4(s); ok {
				return types.NewBytes(x.Copy(addr[:])), nil
			}
			if addr, ok := parseIPv6(s); ok {
				return types.NewBytes(x.Copy(addr[:])), nil
			}
			return types.Null, x.Fault(errWrongText("string", s, "inet6_aton"))
		},
	})
	d.def("INET6_NTOA(b)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultASCII(39),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			out, ok := appendIP(x.Scratch(), a[0].Bytes())
			if !ok || !c.Given[0].Type().IsBlob() { // text is no address, whatever its bytes
				return types.Null, x.Fault(errWrongText("string", a[0].Bytes(), "inet6_ntoa"))
			}
			return types.NewBytes(x.Keep(out)), nil
		},
	})
}

func registerInetTests() {
	d := definer(catNet)
	test := func(usage string, f func(s []byte) bool) {
		d.def(usage, Func{
			Args: []ArgKind{ArgBytes}, Boolean: true, Result: ResultBool,
			Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
				return boolValue(f(a[0].Bytes())), nil
			},
		})
	}
	address := func(f func([16]byte) bool) func([]byte) bool {
		return func(s []byte) bool { return len(s) == 16 && f([16]byte(s)) }
	}
	test("IS_IPV4(s)", func(s []byte) bool { _, ok := parseIPv4(s); return ok })
	test("IS_IPV6(s)", func(s []byte) bool { _, ok := parseIPv6(s); return ok })
	test("IS_IPV4_COMPAT(b)", address(isIPv4Compat))
	test("IS_IPV4_MAPPED(b)", address(isIPv4Mapped))
}
