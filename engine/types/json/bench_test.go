package json

import "testing"

func BenchmarkGet(b *testing.B) {
	doc := bigObject(1000)
	path := MustPath("$.k500[2]")
	b.ReportAllocs()
	for b.Loop() {
		path.Get(Open(doc))
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`{"id": 12345, "name": "someone", "tags": ["a", "b", "c"], "address": {"street": "Long Road 1", "zip": "12345"}, "score": 1.5}`)
	var builder Builder
	var doc []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := builder.Parse(text); err != nil {
			b.Fatal(err)
		}
		doc, _ = builder.Finish(doc[:0])
	}
}

func BenchmarkText(b *testing.B) {
	doc := bigObject(100)
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = Open(doc).AppendText(text[:0])
	}
}

func BenchmarkReplaceInPlace(b *testing.B) {
	doc := bigObject(1000)
	path := MustPath("$.k500[0]")
	value := []byte{tagInt16, 1, 0}
	b.ReportAllocs()
	for b.Loop() {
		if e, err := Replace(doc, path, value); err != nil || !e.InPlace {
			b.Fatal(err)
		}
	}
}
