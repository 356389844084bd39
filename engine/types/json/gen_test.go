package json

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// mustParse returns the document that text is.
func mustParse(t testing.TB, text string) []byte {
	t.Helper()
	doc, err := Parse(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func textOf(doc []byte) string { return string(Open(doc).AppendText(nil)) }

var (
	sampleInts    = []int64{0, 1, -1, 127, 32767, 32768, -32768, -32769, 1<<31 - 1, 1 << 31, -1 << 31, 1<<53 + 1, 1<<63 - 1, -1 << 63}
	sampleUints   = []uint64{0, 1, 65535, 65536, 1<<32 - 1, 1 << 32, 1 << 53, 1 << 63, 1<<64 - 1}
	sampleDoubles = []float64{0, 1, -1, 0.1, 1.5, -2.5, 1e15, 1e14, 1e16, 1e100, -1e-7, 1 << 53, 1 << 60, 1 << 64, 9007199254740993, 5e-324, 1.7976931348623157e308}
	sampleStrings = []string{"", "a", "b", "abc", "é", "\x00", "a\x00b", "\"\\/\b\f\n\r\t\x01", "日本", "😀", strings.Repeat("x", 127), strings.Repeat("y", 128)}
	sampleDecimal = []string{"0", "1", "-1", "0.1", "1.50", "-123456789012345678901234567890.5", "9007199254740993", "0.000001"}
	sampleKeys    = []string{"", "a", "b", "c", "aa", "key", "é", "a b", "last", "\"q\""}
)

// addRandom adds a value drawn from t, containers no deeper than depth.
func addRandom(t *rapid.T, b *Builder, depth int) {
	kinds := 11
	if depth == 0 {
		kinds = 9
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		b.Null()
	case 1:
		b.Bool(rapid.Bool().Draw(t, "bool"))
	case 2:
		b.Int(rapid.SampledFrom(sampleInts).Draw(t, "int"))
	case 3:
		b.Uint(rapid.SampledFrom(sampleUints).Draw(t, "uint"))
	case 4:
		b.Double(rapid.SampledFrom(sampleDoubles).Draw(t, "double"))
	case 5, 6:
		b.String([]byte(rapid.SampledFrom(sampleStrings).Draw(t, "string")))
	case 7:
		d, _, _, err := decimal.Parse([]byte(rapid.SampledFrom(sampleDecimal).Draw(t, "decimal")))
		if err != nil {
			t.Fatal(err)
		}
		b.Decimal(d)
	case 8:
		addRandomOpaque(t, b)
	case 9:
		b.BeginArray()
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			addRandom(t, b, depth-1)
		}
		b.EndArray()
	case 10:
		b.BeginObject()
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			b.Key([]byte(rapid.SampledFrom(sampleKeys).Draw(t, "key")))
			addRandom(t, b, depth-1)
		}
		b.EndObject()
	}
}

func addRandomOpaque(t *rapid.T, b *Builder) {
	when := types.MakeDateTime(2024, rapid.IntRange(1, 3).Draw(t, "month"), 29, 12, 34, 56, 789)
	switch rapid.IntRange(0, 5).Draw(t, "opaque") {
	case 0:
		b.DateTime(FieldDate, when.Truncate())
	case 1:
		b.DateTime(FieldDateTime, when)
	case 2:
		b.DateTime(FieldTimestamp, when)
	case 3:
		b.Time(types.MakeDuration(rapid.Bool().Draw(t, "negative"), 100, 2, 3, 4))
	case 4:
		b.Opaque(FieldBlob, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "blob"))
	case 5:
		b.Opaque(FieldBit, []byte{1, 2})
	}
}

// drawDocument returns a document drawn from t.
func drawDocument(t *rapid.T) []byte {
	var b Builder
	addRandom(t, &b, 3)
	doc, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(doc); err != nil {
		t.Fatalf("built document % x: %v", doc, err)
	}
	return doc
}

// drawPath returns a path that is likely to match in documents of drawDocument; wild allows several places.
func drawPath(t *rapid.T, wild bool) *Path {
	legs := []string{".a", ".b", ".key", `."a b"`, `.""`, "[0]", "[1]", "[2]", "[last]", "[last-1]", "[7]"}
	if wild {
		legs = append(legs, ".*", "[*]", "[0 to 1]", "[last-1 to last]", "**.a", "**[0]", "**.*")
	}
	s := "$" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(legs), 0, 4).Draw(t, "path"), "")
	p, err := ParsePath([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return p
}

// bigObject has n members of which member i is named k<i>.
func bigObject(n int) []byte {
	var b Builder
	b.BeginObject()
	for i := range n {
		b.Key(fmt.Appendf(nil, "k%d", i))
		b.BeginArray()
		b.Int(int64(i))
		b.Int(int64(i) << 20)
		b.String(fmt.Appendf(nil, "value %d", i))
		b.EndArray()
	}
	b.EndObject()
	doc, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return doc
}
