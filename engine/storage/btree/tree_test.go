package btree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/redo"
	"pgregory.net/rapid"
)

// TestOrders fills and empties a tree in several orders.
func TestOrders(t *testing.T) {
	const n = 1800
	orders := map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n - 1 - i },
		"random":     func(i int) int { return i * 1777 % n },
	}
	for _, name := range slices.Sorted(maps.Keys(orders)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, env.Real(), 256, 64<<20)
			defer w.close()
			a := w.self()
			model := map[string]string{}
			for i := range n {
				k := fmt.Sprintf("key%06d", orders[name](i))
				v := strings.Repeat("v", 180) + k
				w.must(a.put(k, 0, v))
				model[k] = v
			}
			w.same(model)
			sum := w.check()
			t.Logf("%+v, fill %.0f %%", sum, float64(sum.Bytes)*100/float64(sum.Leaves*capacity))
			if fill := float64(sum.Bytes) / float64(sum.Leaves*capacity); name != "random" && fill < 0.95 || fill < 0.5 {
				t.Errorf("leaves are %.0f %% full", fill*100)
			}
			for i := range n {
				k := fmt.Sprintf("key%06d", orders["random"](i))
				found, err := a.del(k)
				w.must(err)
				if !found {
					t.Fatalf("%s is gone", k)
				}
				delete(model, k)
				if i%500 == 0 {
					w.same(model)
					w.check()
				}
			}
			if sum := w.check(); sum.Leaves != 1 || sum.Inner != 0 {
				t.Errorf("an empty tree should be one page: %+v", sum)
			}
			w.compareWithRedo(64 << 20)
		})
	}
}

// TestLargeKeys uses the longest keys and entries.
func TestLargeKeys(t *testing.T) {
	w := newWorld(t, env.Real(), 512, 128<<20)
	defer w.close()
	a := w.self()
	rng := rand.New(rand.NewPCG(1, 1))
	model := map[string]string{}
	long := strings.Repeat("k", MaxKey-8)
	for i := range 600 {
		k := long + fmt.Sprintf("%08d", rng.IntN(1e8))
		if i%3 == 0 {
			k = fmt.Sprintf("%04d", rng.IntN(1e4)) + long[:rng.IntN(len(long))]
		}
		v := strings.Repeat("v", rng.IntN(MaxEntry-len(k)+1))
		if i%5 == 0 {
			v = strings.Repeat("w", MaxEntry-len(k))
		}
		w.must(a.put(k, 1, v))
		model[k] = v
		if i%100 == 0 {
			w.check()
		}
	}
	w.same(model)
	t.Logf("%+v", w.check())
	if err := w.tree.MakeRoom(make([]byte, MaxKey+1), 0); err != ErrTooLarge {
		t.Errorf("a key that is too long: %v", err)
	}
	if err := w.tree.MakeRoom(make([]byte, 10), MaxEntry); err != ErrTooLarge {
		t.Errorf("an entry that is too large: %v", err)
	}
	for i, k := range slices.Sorted(maps.Keys(model)) {
		_, err := a.del(k)
		w.must(err)
		delete(model, k)
		if i%100 == 0 {
			w.check()
			w.same(model)
		}
	}
	w.check()
	w.compareWithRedo(128 << 20)
}

// TestAgainstMap is a model test of all cursor operations on a tree with few
// entries a page.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, env.Real(), 128, 16<<20)
		defer w.close()
		a := w.self()
		model := map[string]string{}
		keys := rapid.Custom(func(t *rapid.T) string {
			k := fmt.Sprintf("%03d", rapid.IntRange(0, 400).Draw(t, "number"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return k + strings.Repeat("x", rapid.IntRange(0, 2500).Draw(t, "long"))
			case 1:
				return "prefix/" + k
			default:
				return k
			}
		})
		value := func(t *rapid.T) string {
			return strings.Repeat("v", rapid.IntRange(0, 5000).Draw(t, "size"))
		}
		sorted := func() []string { return slices.Sorted(maps.Keys(model)) }
		expect := func(want string, ok bool) {
			if a.c.Valid() != ok {
				t.Fatalf("Valid is %v, want %v (%q)", a.c.Valid(), ok, want)
			}
			if ok && (string(a.c.Key()) != want || string(a.c.Value()) != model[want]) {
				t.Fatalf("cursor on %q, want %q", a.c.Key(), want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "puts") {
					k, v := keys.Draw(t, "key"), value(t)
					w.must(a.put(k, 0, v))
					model[k] = v
				}
			},
			"delete": func(t *rapid.T) {
				all := sorted()
				if len(all) == 0 {
					return
				}
				from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
				for _, k := range all[from:min(len(all), from+rapid.IntRange(1, 25).Draw(t, "count"))] {
					_, err := a.del(k)
					w.must(err)
					delete(model, k)
				}
			},
			"seek": func(t *rapid.T) {
				k, all := keys.Draw(t, "key"), sorted()
				a.m.BeginRead()
				defer a.m.Commit()
				defer a.c.Reset()
				exact, err := a.c.Seek([]byte(k), mtr.S)
				w.must(err)
				i, found := slices.BinarySearch(all, k)
				if exact != found {
					t.Fatalf("Seek %q: exact %v", k, exact)
				}
				for range 5 {
					if i == len(all) {
						expect("", false)
						break
					}
					expect(all[i], true)
					w.must(a.c.Next())
					i++
				}
			},
			"seek before": func(t *rapid.T) {
				k, all := keys.Draw(t, "key"), sorted()
				inclusive := rapid.Bool().Draw(t, "inclusive")
				a.m.BeginRead()
				defer a.m.Commit()
				defer a.c.Reset()
				w.must(a.c.SeekBefore([]byte(k), mtr.S, inclusive))
				i, found := slices.BinarySearch(all, k)
				if !found || !inclusive {
					i--
				}
				for range 5 {
					if i < 0 {
						expect("", false)
						break
					}
					expect(all[i], true)
					w.must(a.c.Prev())
					i--
				}
			},
			"both ends": func(t *rapid.T) {
				all := sorted()
				a.m.BeginRead()
				defer a.m.Commit()
				defer a.c.Reset()
				w.must(a.c.Last(mtr.S))
				for i := len(all) - 1; i >= 0; i-- {
					expect(all[i], true)
					w.must(a.c.Prev())
				}
				expect("", false)
				w.must(a.c.First(mtr.S))
				for _, k := range all {
					expect(k, true)
					w.must(a.c.Next())
				}
				expect("", false)
			},
			"leave and return": func(t *rapid.T) {
				other := w.actor()
				other.m.BeginRead()
				defer other.m.Commit()
				defer other.c.Reset()
				_, err := other.c.Seek([]byte(keys.Draw(t, "key")), mtr.S)
				w.must(err)
				valid := other.c.Valid()
				at := ""
				if valid {
					at = string(other.c.Key())
				}
				other.c.Leave()
				for range rapid.IntRange(0, 8).Draw(t, "changes") {
					k := keys.Draw(t, "changed")
					if all := sorted(); len(all) > 0 && rapid.Bool().Draw(t, "near") {
						i, _ := slices.BinarySearch(all, at)
						k = all[min(i, len(all)-1)]
					}
					if rapid.Bool().Draw(t, "del") {
						_, err := a.del(k)
						w.must(err)
						delete(model, k)
					} else {
						v := value(t)
						w.must(a.put(k, 0, v))
						model[k] = v
					}
				}
				same, err := other.c.Return(mtr.S)
				w.must(err)
				_, there := model[at]
				if valid && same != there {
					t.Fatalf("Return to %q: same %v", at, same)
				}
				if valid {
					all := sorted()
					if i, _ := slices.BinarySearch(all, at); i < len(all) != other.c.Valid() || other.c.Valid() && string(other.c.Key()) != all[i] {
						t.Fatalf("Return to %q is elsewhere", at)
					}
				}
			},
			"estimate": func(t *rapid.T) {
				lo, hi := keys.Draw(t, "lo"), keys.Draw(t, "hi")
				rows, exact, err := w.tree.Estimate([]byte(lo), []byte(hi))
				w.must(err)
				want := 0
				for k := range model {
					if k >= lo && k < hi {
						want++
					}
				}
				if exact && int(rows) != want {
					t.Fatalf("%d rows from %q to %q, want %d", rows, lo, hi, want)
				}
			},
			"": func(t *rapid.T) {
				w.check()
				w.same(model)
			},
		})
		w.compareWithRedo(16 << 20)
	})
}

// TestLoad bulk-loads trees of many shapes.
func TestLoad(t *testing.T) {
	long := strings.Repeat("q", 3000)
	for _, c := range []struct {
		name     string
		n, fill  int
		key      func(i int) string
		value    int
		unlogged bool
	}{
		{"empty", 0, 90, nil, 0, false},
		{"one page", 10, 90, func(i int) string { return fmt.Sprint(i) }, 10, false},
		{"rows", 5000, 90, func(i int) string { return fmt.Sprintf("%08d", i) }, 200, false},
		{"full", 5000, 100, func(i int) string { return fmt.Sprintf("tenant/%04d/%08d", i/700, i) }, 50, true},
		{"long common prefix", 1200, 80, func(i int) string { return long + fmt.Sprintf("%08d", i) }, 2, false},
		{"prefixes that come and go", 800, 95, func(i int) string { return fmt.Sprintf("%03d%s%05d", i/20, long[:i/20*70], i) }, 3, false},
		{"largest", 60, 100, func(i int) string { return fmt.Sprintf("%04d", i) + long }, MaxEntry - 3004, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, env.Real(), 512, 32<<20)
			defer w.close()
			l := w.tree.NewLoader(c.fill)
			l.Unlogged = c.unlogged
			model := map[string]string{}
			var all []string
			for i := range c.n {
				all = append(all, c.key(i))
			}
			slices.Sort(all)
			for _, k := range all {
				model[k] = strings.Repeat("v", c.value)
				w.must(l.Add([]byte(k), 0, []byte(model[k])))
			}
			w.must(l.Finish())
			w.same(model)
			sum := w.check()
			t.Logf("%+v, leaves %.0f %% full", sum, float64(sum.Bytes)*100/float64(sum.Leaves*capacity))
			if c.n > 0 {
				if err := w.tree.NewLoader(90).Finish(); err != ErrNotEmpty {
					t.Errorf("load into a full tree: %v", err)
				}
			}
			// The tree takes changes like any other.
			a := w.self()
			for i := 0; i < c.n; i += 7 {
				k := c.key(i) + "x"
				w.must(a.put(k, 0, "new"))
				model[k] = "new"
				_, err := a.del(c.key(i))
				w.must(err)
				delete(model, c.key(i))
			}
			w.same(model)
			w.check()
			w.drop()
		})
	}
}

// drop frees the tree and checks that no page is left.
func (w *world) drop() {
	w.t.Helper()
	for done := false; !done; {
		var err error
		w.must(w.m.Begin())
		done, err = DropStep(w.m, w.sp, testIndex, w.tree.Root())
		w.must(err)
		w.m.Commit()
	}
	w.newTree()
	w.check()
}

// TestDiscard: loads that do not come to their end leave pages. Discard frees them, as does the next
// load, and leaves what others have put into the root; of a tree with more levels nothing goes.
func TestDiscard(t *testing.T) {
	w := newWorld(t, env.Real(), 512, 32<<20)
	defer w.close()
	load := func(n int) *Loader {
		l := w.tree.NewLoader(90)
		l.Unlogged = n%2 == 0
		for i := range n {
			w.must(l.Add(fmt.Appendf(nil, "%08d", i), 0, make([]byte, 1000)))
		}
		return l
	}
	pages := func() (n uint32) {
		w.m.BeginRead()
		leaf, inner, err := w.tree.Segments(w.m)
		w.m.Commit()
		w.must(err)
		for _, seg := range []uint32{leaf, inner} {
			used, _, err := w.sp.SegmentPages(seg)
			w.must(err)
			n += used
		}
		return n
	}
	for _, n := range []int{20, 301, 20_000, 4001} {
		load(n)
		if pages() < uint32(n/20) {
			t.Fatalf("%d entries were to leave pages", n)
		}
		if n < 4001 {
			w.must(w.tree.Discard())
			w.check()
			if n := pages(); n != 1 {
				t.Fatalf("%d pages are left", n)
			}
		}
	}
	a, model := w.self(), map[string]string{"k": "v"}
	w.must(a.put("k", 0, "v"))
	w.must(w.tree.Discard())
	w.same(model)
	w.check()
	for i := range 200 {
		k := fmt.Sprintf("%04d", i)
		model[k] = strings.Repeat("x", 500)
		w.must(a.put(k, 0, model[k]))
	}
	w.must(w.tree.Discard())
	w.same(model)
	w.check()

	w.drop()
	load(3001)
	l := load(500)
	w.must(l.Finish())
	if sum := w.check(); sum.Leaves < 30 {
		t.Errorf("%+v", sum)
	}
	w.drop()
}

// TestIsEmpty: a tree that has lost all its entries and kept its levels is not as Create makes it.
func TestIsEmpty(t *testing.T) {
	w := newWorld(t, env.Real(), 512, 32<<20)
	defer w.close()
	expect := func(want bool) {
		t.Helper()
		if empty, err := w.tree.IsEmpty(w.m); err != nil || empty != want {
			t.Fatalf("empty: %v, %v", empty, err)
		}
	}
	expect(true)
	a := w.self()
	for i := range 100 {
		w.must(a.put(fmt.Sprintf("%04d", i), 0, strings.Repeat("x", 500)))
		expect(false)
	}
	for i := range 100 {
		w.must(w.m.Begin())
		found, err := w.c.SeekLeaf(fmt.Appendf(nil, "%04d", i), mtr.X)
		if !found || err != nil {
			t.Fatal(found, err)
		}
		w.c.Remove()
		w.c.Leave()
		w.m.Commit()
	}
	w.same(map[string]string{})
	expect(false)
	if err := w.tree.NewLoader(90).Finish(); err != ErrNotEmpty {
		t.Fatal(err)
	}
}

// TestUnsorted refuses keys out of order.
func TestUnsorted(t *testing.T) {
	w := newWorld(t, env.Real(), 64, redo.MinCapacity)
	defer w.close()
	l := w.tree.NewLoader(90)
	w.must(l.Add([]byte("b"), 0, nil))
	if err := l.Add([]byte("b"), 0, nil); err != ErrUnsorted {
		t.Fatalf("got %v", err)
	}
}

// TestEstimate compares estimates with the truth on a large uniform tree.
func TestEstimate(t *testing.T) {
	w := newWorld(t, env.Real(), 1024, 32<<20)
	defer w.close()
	const n = 100_000
	l := w.tree.NewLoader(90)
	for i := range n {
		w.must(l.Add(fmt.Appendf(nil, "%08d", i), 0, make([]byte, 50)))
	}
	w.must(l.Finish())
	for _, c := range []struct{ lo, hi int }{{0, n}, {10, 60_000}, {500, 510}, {70_000, 70_900}, {1000, 9000}, {5, 5}, {9, 3}} {
		rows, exact, err := w.tree.Estimate(fmt.Appendf(nil, "%08d", c.lo), fmt.Appendf(nil, "%08d", c.hi))
		w.must(err)
		want := max(c.hi-c.lo, 0)
		t.Logf("%d to %d: %d rows, exact %v", c.lo, c.hi, rows, exact)
		if d := int(rows) - want; exact && d != 0 || d > want/5 || -d > want/5 {
			t.Errorf("%d to %d: %d rows", c.lo, c.hi, rows)
		}
	}
	if rows, _, err := w.tree.Estimate(nil, nil); err != nil || rows < n*8/10 || rows > n*12/10 {
		t.Errorf("the whole tree: %d rows, %v", rows, err)
	}
}
