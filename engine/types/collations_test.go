package types_test

import (
	"bytes"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
	"pgregory.net/rapid"
)

// TestRealCollations checks the key contract with every collation registered.
func TestRealCollations(t *testing.T) {
	ids := []types.CollationID{types.CollationLatin1Swedish, types.CollationASCIIGeneral, types.CollationUTF8MB4Gen,
		types.CollationUTF8MB4Bin, types.CollationLatin1Bin, types.CollationASCIIBin, types.CollationUTF8MB40900AI,
		types.CollationUTF8MB40900AS, types.CollationUTF8MB40900B}
	for _, id := range ids {
		c := types.CollationByID(id)
		if c == nil {
			t.Errorf("collation %d is missing", id)
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkCollation(t, c) })
		})
	}
}

func checkCollation(t *rapid.T, c types.Collation) {
	ty := &types.Type{Kind: types.KindVarChar, Length: 40, Collation: c.ID()}
	piece := rapid.SampledFrom([]string{"a", "A", " ", "  ", "\t", "\x00", "\x01", "b", "ß", "ss", "ä", "a\u0308", "字", "😀", "é", "\xff"})
	draw := func(label string) types.Value {
		var s []byte
		for _, p := range rapid.SliceOfN(piece, 0, 8).Draw(t, label) {
			s, _ = types.Convert(s, []byte(p), types.CharsetUTF8MB4, c.Charset())
		}
		return types.NewBytes(s)
	}
	a, b := draw("a"), draw("b")
	desc := rapid.Bool().Draw(t, "desc")
	prefix := rapid.SampledFrom([]int{0, 2}).Draw(t, "prefix")
	want := types.Compare(a, b, ty)
	if prefix > 0 {
		want = c.Compare(c.Charset().Prefix(a.Bytes(), prefix), c.Charset().Prefix(b.Bytes(), prefix))
	}
	if desc {
		want = -want
	}
	ka, kb := types.AppendKey(nil, a, ty, desc, prefix), types.AppendKey(nil, b, ty, desc, prefix)
	if got := bytes.Compare(ka, kb); got != want {
		t.Fatalf("%q and %q: keys %x and %x compare %d, values %d", a.Bytes(), b.Bytes(), ka, kb, got, want)
	}
	if n, err := types.SkipKey(append(ka, 'x'), ty, desc, prefix); err != nil || n != len(ka) {
		t.Fatalf("SkipKey = %d, %v, want %d", n, err, len(ka))
	}
	if len(ka) > types.MaxKeyLen(ty, prefix) {
		t.Fatalf("key of %d bytes, at most %d", len(ka), types.MaxKeyLen(ty, prefix))
	}
	if prefix == 0 && want == 0 && types.Hash(3, a, ty) != types.Hash(3, b, ty) {
		t.Fatalf("%q and %q are equal and hash differently", a.Bytes(), b.Bytes())
	}
	if types.KeyLossless(ty, prefix) {
		back, _, _, err := types.DecodeKey(ka, ty, desc, prefix, nil)
		if err != nil || !bytes.Equal(back.Bytes(), a.Bytes()) {
			t.Fatalf("%q came back as %q, %v", a.Bytes(), back.Bytes(), err)
		}
	}
}

// TestStoreJSON goes through the registered codec.
func TestStoreJSON(t *testing.T) {
	ty := &types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}
	ctx := types.Context{Mode: types.ModeDefault, Column: "j", Row: 1}
	v, err := ctx.Store(types.NewString(`{"b": 1, "a": [true, null, "x"]}`), nil, ty)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(types.AppendText(nil, v, ty, nil)); got != `{"a": [true, null, "x"], "b": 1}` {
		t.Error(got)
	}
	if back, err := types.DecodeStored(types.AppendStored(nil, v, ty), ty); err != nil || types.Compare(back, v, ty) != 0 {
		t.Error("round trip:", err)
	}
	number, err := ctx.Store(types.NewString("12"), nil, ty)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ctx.Store(number, ty, &types.Type{Kind: types.KindInt}); err != nil || n.Int() != 12 {
		t.Error("JSON number to INT:", n.Int(), err)
	}
	want := bytes.Compare(types.AppendKey(nil, number, ty, false, 0), types.AppendKey(nil, v, ty, false, 0))
	if got := types.Compare(number, v, ty); got != want {
		t.Error("sort keys compare", want, "documents", got)
	}
	var e *sqlerr.Error
	_, err = ctx.Store(types.NewString("{"), nil, ty)
	if e, _ = err.(*sqlerr.Error); e == nil || e.Number != sqlerr.InvalidJSONText {
		t.Error("malformed:", err)
	}
}
