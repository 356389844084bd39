package txn

import (
	"slices"
	"strings"
	"testing"
)

func newWatch(limit int64) *Watch {
	return &Watch{m: &Manager{watches: map[Name]*Watch{}}, limit: limit,
		under: map[string]int{}, ended: map[string]struct{}{}, aside: map[string]struct{}{}}
}

// A key is in every round from the one in which it may be visible to the first that
// begins after its transaction has ended.
func TestWatchRounds(t *testing.T) {
	w := newWatch(1 << 20)
	round := func(want string) {
		t.Helper()
		keys, err := w.Changed()
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
	w.wrote("ended before")
	w.end("ended before")
	w.wrote("open")
	w.wrote("open") // twice
	w.Cut()
	w.wrote("late")
	w.end("late")
	w.wrote("new")
	round("ended before late new open")
	w.end("open")
	w.Cut()
	w.end("new") // after the cut: its snapshot may not have it
	round("late new open")
	w.Cut()
	round("new open") // open has written twice
	w.end("open")
	w.Cut()
	round("open")
	w.Cut()
	round("")
	if w.bytes != 0 || w.Waiting() != 0 {
		t.Errorf("%d bytes and %d keys are left", w.bytes, w.Waiting())
	}
}

// Memory is bounded, by the keys that there are.
func TestWatchLimit(t *testing.T) {
	w := newWatch(10 * (watchEntry + 4))
	for range 100 { // the same ones again and again
		for _, k := range []string{"row1", "row2", "row3"} {
			w.wrote(k)
			w.end(k)
		}
		w.Cut()
	}
	if keys, err := w.Changed(); err != nil || !slices.Equal(keys, []string{"row1", "row2", "row3"}) {
		t.Errorf("%q %v", keys, err)
	}
	for i := range 11 {
		w.wrote("row" + string(rune('a'+i)))
	}
	if _, err := w.Changed(); err == nil || !strings.Contains(err.Error(), "innodb_online_alter_log_max_size") {
		t.Errorf("11 keys where 10 have room: %v", err)
	}
	for i := range 11 {
		w.end("row" + string(rune('a'+i)))
	}
	if w.Waiting() != 0 {
		t.Error("keys are kept beyond the limit")
	}
}

// What a transaction keeps for who watches is bounded with it: when the watch knows too much, or is
// lost, or over, nothing is kept.
func TestWatchedKeysAreBounded(t *testing.T) {
	for name, end := range map[string]func(*Watch){
		"too much": func(*Watch) {},
		"lost":     func(w *Watch) { w.m.loseWatches(ErrReadOnly) },
		"stopped":  (*Watch).Stop,
	} {
		w := newWatch(100 * (watchEntry + 8))
		w.m.watches[w.name] = w
		tr, o := new(Txn), &Table{watch: w}
		write := func(n int) {
			for range n {
				if o.watch != nil {
					tr.watch(o, []byte("the same"))
				}
			}
		}
		write(50)
		if len(tr.watchedKeys) != 50 {
			t.Errorf("%s: %d keys of 50", name, len(tr.watchedKeys))
		}
		end(w)
		write(100)
		if o.watch != nil || tr.watchedKeys != nil {
			t.Errorf("%s: %d keys are kept", name, len(tr.watchedKeys))
		}
		if tr.endWatched(); w.Waiting() != 0 || w.bytes != 0 {
			t.Errorf("%s: %d keys and %d bytes are left", name, w.Waiting(), w.bytes)
		}
	}
}
