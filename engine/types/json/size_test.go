package json

import (
	"errors"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	if size := unsafe.Sizeof(item{}); size != ElementBytes {
		t.Errorf("an item has %d bytes", size)
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := drawDocument(t)
		v := Open(doc)
		if text := v.AppendText(nil); len(text) > v.TextBound() {
			t.Fatalf("%d bytes are bounded by %d: %s", len(text), v.TextBound(), text)
		}
		n := 0
		count := func(Value) bool { n++; return true }
		_ = MustPath("$**.*").Each(v, nil, count)
		_ = MustPath("$**[*]").Each(v, nil, count)
		if n+1 != v.Elements() {
			t.Fatalf("%s has %d elements, not %d", textOf(doc), n+1, v.Elements())
		}
		s := rapid.String().Draw(t, "s")
		if n := len(AppendQuoted(nil, []byte(s))); n != QuotedLen([]byte(s)) {
			t.Fatalf("%q quoted has %d bytes, not %d", s, n, QuotedLen([]byte(s)))
		}
	})
}

// TestPathLimits: a path that leads to very many places stops when it is told to, and where there is no room to
// remember them, whether or not anything is found.
func TestPathLimits(t *testing.T) {
	var b Builder
	b.BeginArray()
	for range 100_000 {
		b.Int(1)
	}
	b.EndArray()
	doc, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	many := "$"
	for range 100 {
		many += "**[0]"
	}
	stop := errors.New("stop")
	for _, path := range []string{many + ".q", "$[*]" + many[1:] + ".q", "$**.q", "$**[100001]", "$[*].a"} {
		asked := 0
		l := Limits{Stop: func() error {
			if asked++; asked > 2 {
				return stop
			}
			return nil
		}}
		if _, _, err := MustPath(path).First(Open(doc), &l); !errors.Is(err, stop) {
			t.Errorf("%.20s: %v after %d questions", path, err, asked)
		}
	}
	held, most := int64(0), int64(0)
	account := func(delta int64) error {
		if held+delta > 4<<20 {
			return stop
		}
		held += delta
		most = max(most, held)
		return nil
	}
	_, _, err = MustPath(many+".q").First(Open(doc), &Limits{Account: account})
	if !errors.Is(err, stop) || held != 0 || most < 1<<20 {
		t.Errorf("without room: %v, %d bytes of %d left", err, held, most)
	}
	n := 0
	if err := MustPath("$**[*]").Each(Open(doc), &Limits{Account: func(int64) error { return stop }}, func(Value) bool {
		n++
		return true
	}); err != nil || n != 100_000 {
		t.Errorf("what needs no memory: %d matches, %v", n, err)
	}
}

// byLegs is what a path matches as it is defined: each leg leads from all places that the one before has led to.
func byLegs(p *Path, v Value) []Value {
	list := []Value{v}
	for i := range p.legs {
		var next []Value
		seen := map[Place]bool{}
		for _, at := range list {
			one := walker{firstDeep: -1, err: new(error), visit: func(m Value) bool {
				if !seen[m.Place()] {
					seen[m.Place()] = true
					next = append(next, m)
				}
				return true
			}}
			one.walk(at, p.legs[i:i+1])
		}
		list = next
	}
	return list
}

func TestEachGoesByLegs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, p := drawDocument(t), drawPath(t, true)
		if rapid.Bool().Draw(t, "deep") {
			p = MustPath(rapid.SampledFrom([]string{"$**[0]", "$**.a[0]", "$**[last]**[0]", "$[0]**[0]",
				"$**[0 to 2]", "$**.*", "$**[*][0]", "$[*]**[0]**.a", "$.a**[*]"}).Draw(t, "path"))
		}
		want := byLegs(p, Open(doc))
		i := 0
		if err := p.Each(Open(doc), nil, func(v Value) bool {
			if i >= len(want) || want[i].Place() != v.Place() {
				t.Fatalf("%s in %s: match %d is %s", p, textOf(doc), i, v.AppendText(nil))
			}
			i++
			return true
		}); err != nil || i < len(want) {
			t.Fatalf("%s in %s: %d matches of %d, %v", p, textOf(doc), i, len(want), err)
		}
	})
}
