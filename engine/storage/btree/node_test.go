package btree

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"pgregory.net/rapid"
)

// recorder changes a page and logs the changes as redo.
type recorder struct {
	p   []byte
	log []byte
}

var testID = page.ID{Space: 1, No: 7}

func (r *recorder) Write(off int, b []byte) {
	copy(r.p[off:off+len(b)], b)
	r.log = redo.AppendWrite(r.log, testID, off, b)
}

func (r *recorder) Move(dst, src, n int) {
	copy(r.p[dst:dst+n], r.p[src:src+n])
	r.log = redo.AppendMove(r.log, testID, dst, src, n)
}

// newNode makes an empty node on a page of its own.
func newNode(level int, prefix string) (*editor, *recorder) {
	r := &recorder{p: make([]byte, page.Size)}
	page.Init(r.p, testID, page.TypeIndex)
	r.log = redo.AppendInit(r.log, testID, page.TypeIndex)
	e := &editor{node: nodeOf(r.p), c: r}
	b := new(builder)
	b.start(level, []byte(prefix))
	if level > 0 {
		b.add(nil, nil, 0, []byte{9, 0, 0, 0})
	}
	b.finish(maxSkip)
	b.store(r)
	return e, r
}

func checkNode(n node, lo, hi string, report func(string)) {
	if err := ValidateNode(n.p[:]); err != nil {
		report(err.Error())
		return
	}
	n.checkKeys([]byte(lo), []byte(hi), hi == "", report)
}

// replay applies logged ops to a page of garbage.
func replay(t interface{ Fatalf(string, ...any) }, log []byte) []byte {
	p := bytes.Repeat([]byte{0xa5}, page.Size)
	for len(log) > 0 {
		op, rest, err := redo.Decode(log)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if err := redo.Apply(op, p); err != nil {
			t.Fatalf("apply %v: %v", op, err)
		}
		log = rest
	}
	return p
}

// keyGen draws keys that collide in hints and share prefixes.
func keyGen(prefix string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return prefix + string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes"))
		case 1:
			return prefix + strings.Repeat("\x00", rapid.IntRange(0, 9).Draw(t, "zeros"))
		case 2:
			return prefix + fmt.Sprintf("%08d", rapid.IntRange(0, 300).Draw(t, "number"))
		case 3:
			return prefix + fmt.Sprintf("common%02d", rapid.IntRange(0, 99).Draw(t, "number"))
		default:
			return prefix + strings.Repeat("x", rapid.IntRange(0, 700).Draw(t, "length"))
		}
	})
}

// TestNodeAgainstMap changes one node at random beside a sorted map, and checks
// structure, lookups and that the log alone rebuilds the page.
func TestNodeAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"", "p", "a long prefix"}).Draw(t, "prefix")
		hi := ""
		if prefix != "" {
			hi = prefix + strings.Repeat("\xff", 20)
		}
		e, r := newNode(0, prefix)
		type val struct {
			flags byte
			v     string
		}
		model := map[string]val{}
		keys := keyGen(prefix)
		value := rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(string(rune('a'+rapid.IntRange(0, 25).Draw(t, "c"))), rapid.IntRange(0, 600).Draw(t, "len"))
		})
		pick := func() (string, bool) {
			if len(model) == 0 {
				return "", false
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "key"), true
		}
		find := func(k string) int {
			i, exact := e.search([]byte(k))
			if !exact {
				t.Fatalf("%q not found", k)
			}
			return i
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				k, v := keys.Draw(t, "new"), value.Draw(t, "value")
				i, exact := e.search([]byte(k))
				if _, had := model[k]; exact != had {
					t.Fatalf("search %q: exact=%v", k, exact)
				}
				if exact || !e.fits(len(k), len(v)) {
					return
				}
				e.insert(i, []byte(k), byte(len(v)), []byte(v))
				model[k] = val{byte(len(v)), v}
			},
			"update": func(t *rapid.T) {
				if k, ok := pick(); ok {
					v := value.Draw(t, "value")
					if i := find(k); e.fitsUpdate(i, len(v)) {
						e.update(i, 7, []byte(v))
						model[k] = val{7, v}
					}
				}
			},
			"patch": func(t *rapid.T) {
				if k, ok := pick(); ok && len(model[k].v) > 3 {
					e.patch(find(k), 1, []byte("XY"))
					e.setFlags(find(k), 3)
					v := model[k].v
					model[k] = val{3, v[:1] + "XY" + v[3:]}
				}
			},
			"remove": func(t *rapid.T) {
				if k, ok := pick(); ok {
					e.remove(find(k))
					delete(model, k)
				}
			},
			"": func(t *rapid.T) {
				checkNode(e.node, prefix, hi, func(s string) { t.Fatal(s) })
				if e.count() != len(model) {
					t.Fatalf("%d entries, want %d", e.count(), len(model))
				}
				for i, k := range slices.Sorted(maps.Keys(model)) {
					_, f, v := e.entry(i)
					if got := string(e.appendKey(nil, i)); got != k || f != model[k].flags || string(v) != model[k].v {
						t.Fatalf("entry %d is %q (%d) %q, want %q %v", i, got, f, v, k, model[k])
					}
				}
			},
		})
		if !bytes.Equal(replay(t, r.log), r.p) {
			t.Fatalf("the log does not rebuild the page")
		}
	})
}

// TestRouting checks an inner node's choice of children.
func TestRouting(t *testing.T) {
	e, _ := newNode(1, "")
	for i, k := range []string{"b", "bc", "m", "mmmmm", "mmmmmm", "x"} {
		e.insert(i+1, []byte(k), 0, []byte{byte(i), 0, 0, 0})
	}
	checkNode(e.node, "", "", func(s string) { t.Error(s) })
	for _, c := range []struct {
		key           string
		route, before int
	}{{"", 0, 0}, {"a", 0, 0}, {"b", 1, 0}, {"ba", 1, 1}, {"bc", 2, 1}, {"mmmm", 3, 3}, {"mmmmm", 4, 3}, {"mmmmma", 4, 4}, {"z", 6, 6}} {
		if r, b := e.route([]byte(c.key)), e.routeBefore([]byte(c.key)); r != c.route || b != c.before {
			t.Errorf("%q: route %d, before %d; want %d, %d", c.key, r, b, c.route, c.before)
		}
	}
}

// TestInsertRuns checks the run counter that recognises sequential inserts.
func TestInsertRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		at        func(i int) int
		low, high int
	}{
		{"ascending", func(i int) int { return i }, 10, 10},
		{"descending", func(int) int { return 0 }, -10, -8},
		{"middle", func(i int) int { return i / 2 }, -2, 2},
	} {
		e, _ := newNode(0, "")
		keys := []string{}
		for i := range 10 {
			at := c.at(i)
			k := strings.Repeat("m", 5)
			if at > 0 {
				k = keys[at-1] + "m"
			}
			if at < len(keys) {
				k = keys[at][:len(keys[at])-1] + "a" + "m"
			}
			keys = slices.Insert(keys, at, k)
			e.insert(at, []byte(k), 0, nil)
		}
		if v := e.vitals(); v.dir < c.low || v.dir > c.high {
			t.Errorf("%s: run of %d, want %d to %d", c.name, v.dir, c.low, c.high)
		}
	}
}

// TestCompaction fragments a node and inserts a key that lacks what all others
// share, for records that are worth moving one by one and for tiny ones.
func TestCompaction(t *testing.T) {
	for _, size := range []int{200, 4} {
		e, r := newNode(0, "")
		for n := 0; ; n++ {
			k := fmt.Appendf(nil, "key%06d", n)
			if !e.fits(len(k), size) {
				break
			}
			at, _ := e.search(k)
			e.insert(at, k, 0, make([]byte, size))
		}
		before := e.count()
		for i := 0; i < e.count(); i++ {
			e.remove(i)
		}
		from := len(r.log)
		for _, k := range []string{"kez", "k", "zzz"} {
			at, _ := e.search([]byte(k))
			e.insert(at, []byte(k), 0, make([]byte, 2000))
			checkNode(e.node, "", "", func(s string) { t.Error(s) })
		}
		if want := before - before/2 - before%2 + 3; e.count() != want {
			t.Errorf("%d entries, want %d", e.count(), want)
		}
		t.Logf("records of %d bytes: %d bytes of redo", size, len(r.log)-from)
		if !bytes.Equal(replay(t, r.log), r.p) {
			t.Errorf("the log does not rebuild the page")
		}
	}
}

// TestRedoPerInsert bounds the redo of an ordinary insert.
func TestRedoPerInsert(t *testing.T) {
	for _, c := range []struct {
		name     string
		valueLen int
		sorted   bool
		beyond   int
	}{{"sequential rows of 200 bytes", 192, true, 45}, {"random rows of 200 bytes", 192, false, 60}, {"random index entries", 0, false, 60}} {
		rng := rand.New(rand.NewPCG(1, 2))
		e, r := newNode(0, "")
		n, logged := 0, 0
		for {
			key := []byte(fmt.Sprintf("%08d", n))
			if !c.sorted {
				key = []byte(fmt.Sprintf("%08d", rng.IntN(1e8)))
			}
			if !e.fits(len(key), c.valueLen) {
				break
			}
			before := len(r.log)
			i, exact := e.search(key)
			if exact {
				continue
			}
			e.insert(i, key, 0, make([]byte, c.valueLen))
			logged += len(r.log) - before
			n++
		}
		per := logged / n
		t.Logf("%s: %d entries, %d bytes of redo each, %d more than the record", c.name, n, per, per-8-c.valueLen)
		if per-8-c.valueLen > c.beyond {
			t.Errorf("%s: %d bytes of redo beside the record, limit %d", c.name, per-8-c.valueLen, c.beyond)
		}
	}
}

// FuzzNode feeds arbitrary page bytes to every reading function.
func FuzzNode(f *testing.F) {
	e, r := newNode(0, "pre")
	for i := range 30 {
		k := fmt.Sprintf("pre%04d", i*37%100)
		at, _ := e.search([]byte(k))
		e.insert(at, []byte(k), 0, []byte("value"))
	}
	f.Add(r.p[page.HeaderSize:200], r.p[page.Size-240:], []byte("pre0012"))
	f.Add([]byte{1, 200, 255, 255}, bytes.Repeat([]byte{255}, 100), []byte{})
	f.Fuzz(func(t *testing.T, head, tail, key []byte) {
		p := make([]byte, page.Size)
		page.Init(p, testID, page.TypeIndex)
		copy(p[page.HeaderSize:], head)
		copy(p[max(page.HeaderSize, page.Size-len(tail)):], tail)
		n := nodeOf(p)
		n.search(key)
		n.route(key)
		n.routeBefore(key)
		for i := range n.count() {
			n.entry(i)
			n.suffix(i)
			n.flags(i)
			n.child(i)
			n.cost(i)
		}
		n.used()
		n.prefix()
		if ValidateNode(p) != nil {
			return
		}
		// What passes validation can be changed, too.
		n.checkKeys(nil, nil, true, func(string) {})
		ed := &editor{node: n, c: &recorder{p: p}}
		if len(key) < 100 && bytes.HasPrefix(key, n.prefix()) && n.fits(len(key), 10) {
			i, _ := n.search(key)
			if i >= n.first() {
				ed.insert(i, key, 0, make([]byte, 10))
			}
		}
		if n.count() > n.first() {
			if v := n.value(n.first()); n.fitsUpdate(n.first(), len(v)+7) {
				ed.update(n.first(), 1, make([]byte, len(v)+7))
			}
			ed.remove(n.first())
		}
	})
}
