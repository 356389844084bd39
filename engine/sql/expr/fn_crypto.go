package expr

import (
	"crypto/aes"
	"encoding/binary"
	"math"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Hashing, encryption and compression.

func init() {
	registerHashes()
	registerAES()
	registerCompression()
}

func registerHashes() {
	d := definer(catHash)
	hash := func(usage string, length uint64, f func(dst, s []byte) []byte, aliases ...string) {
		d.def(usage, Func{
			Aliases: aliases, Args: []ArgKind{ArgBytes}, Result: ResultASCII(length), NotNull: true,
			Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte { return f(dst, a[0].Bytes()) }),
		})
	}
	hash("MD5(s)", 32, appendMD5)
	hash("SHA1(s)", 40, appendSHA1, "sha")
	d.def("SHA2(s, bits)", Func{
		Args: []ArgKind{ArgBytes, ArgInt}, Result: ResultASCII(128),
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			out, ok := appendSHA2(dst, a[0].Bytes(), argInt(a[1]))
			if !ok {
				x.Warning(sqlerr.New(sqlerr.WrongParametersToNativeFct, "sha2"))
			}
			return out, ok, nil
		}),
	})
	d.def("RANDOM_BYTES(n)", Func{
		Args: []ArgKind{ArgInt}, Result: ResultBytes(1024), Volatility: Volatile,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			n := argInt(a[0])
			if n < 1 || n > 1024 {
				return types.Null, errOutOfRange("length", "random_bytes")
			}
			if x.Env == nil {
				return types.Null, errNoSession
			}
			out := x.Scratch()
			for len(out) < int(n) {
				out = binary.LittleEndian.AppendUint64(out, x.Env.Uint64())
			}
			return types.NewBytes(x.Keep(out[:n])), nil
		},
	})
}

// aesMode returns the mode that block_encryption_mode asks for.
func (x *Context) aesMode() (aesMode, error) {
	name := "aes-128-ecb"
	if x.Session != nil {
		v, _, err := x.Session.SystemVariable("block_encryption_mode", false)
		if err == nil && v.Class() == types.ClassBytes {
			name = string(v.Bytes())
		}
	}
	m, ok := parseAESMode(name)
	if !ok {
		return m, errNotSupported("block_encryption_mode %s", name)
	}
	return m, nil
}

func registerAES() {
	d := definer(catHash)
	def := func(usage string, grow uint64, f func(m aesMode, dst, s, key, iv []byte) ([]byte, bool)) {
		d.def(usage, Func{
			Args: []ArgKind{ArgBytes, ArgBytes, ArgBytes}, Min: 2, Max: 3, KeepNulls: true, Volatility: Stable,
			Result: func(_ *Binder, c *Call) (types.Type, error) {
				n := textLength(c.Args[0].Type())
				return textType(min(n+grow, maxText), types.CollationBinary), nil
			},
			Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
				m, err := x.aesMode()
				if err != nil {
					return nil, false, err
				}
				iv, err := m.vector(c, a)
				if err != nil || a[0].IsNull() || a[1].IsNull() {
					return nil, false, err
				}
				out, ok := f(m, dst, a[0].Bytes(), a[1].Bytes(), iv)
				return out, ok, nil
			}),
		})
	}
	def("AES_ENCRYPT(s, key); AES_ENCRYPT(s, key, iv)", aes.BlockSize, func(m aesMode, dst, s, key, iv []byte) ([]byte, bool) {
		return m.encrypt(dst, s, key, iv), true
	})
	def("AES_DECRYPT(s, key); AES_DECRYPT(s, key, iv)", 0, aesMode.decrypt)
}

// vector returns the initialization vector that the mode takes.
func (m aesMode) vector(c *Call, a []types.Value) ([]byte, error) {
	switch {
	case !m.needsIV():
		return nil, nil
	case len(a) < 3:
		return nil, errArgCount(c.Func.Name)
	case len(a[2].Bytes()) < aes.BlockSize:
		return nil, sqlerr.New(sqlerr.AESInvalidIV, c.Func.Name, aes.BlockSize)
	}
	return a[2].Bytes()[:aes.BlockSize], nil
}

func registerCompression() {
	d := definer(catHash)
	d.def("COMPRESS(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultBytes(maxText), NotNull: true,
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			s := a[0].Bytes()
			dst, _, err := x.reserve(dst, compressedBound(len(s)), math.MaxInt)
			if err != nil {
				return nil, false, err
			}
			out, err := appendCompressed(x, dst, s)
			return out, err == nil, err
		}),
	})
	d.def("UNCOMPRESS(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultBytes(maxText),
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			s := a[0].Bytes()
			if len(s) == 0 {
				return dst, true, nil
			}
			n, ok := uncompressedLen(s)
			if ok && n > int64(x.packetLimit()) {
				x.Warning(sqlerr.New(sqlerr.TooBigForUncompress, x.packetLimit()))
				return nil, false, nil
			}
			if ok {
				if err := x.Large(2 * int(n)); err != nil {
					return nil, false, err
				}
			}
			out, ok := appendUncompressed(nil, s)
			if !ok {
				x.Warning(sqlerr.New(sqlerr.ZLIBZDataError))
				return nil, false, nil
			}
			return append(dst, out...), true, nil
		}),
	})
	d.def("UNCOMPRESSED_LENGTH(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultInt, NotNull: true,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			n, ok := uncompressedLen(a[0].Bytes())
			if !ok {
				x.Warning(sqlerr.New(sqlerr.ZLIBZDataError))
			}
			return types.NewInt(n), nil
		},
	})
}
