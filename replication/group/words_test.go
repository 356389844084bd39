package group

import (
	"testing"
	"time"
)

// What a leader says of rounds and answers comes through a number of eight bytes.
func TestDate(t *testing.T) {
	for _, after := range []time.Duration{0, time.Microsecond, -time.Millisecond, 90 * time.Minute, -time.Hour} {
		for _, round := range []uint64{0, 1, 65535, 65536, 1<<40 + 7, ownRound | 1} {
			if got, d := dated(date(round, after)); got != roundTag(round) || d != after {
				t.Errorf("of %d and %v: %d and %v", round, after, got, d)
			}
		}
	}
}

// Of words those count whose entries are applied, and the newest of them.
func TestWords(t *testing.T) {
	var w words
	if _, ok := w.newest(9); ok {
		t.Error("nothing was said")
	}
	w.add(10, 100)
	w.add(10, 150)
	w.add(10, 140) // late
	w.add(20, 200)
	w.add(15, 300) // of a leader of old
	if _, ok := w.newest(9); ok {
		t.Error("nothing of it is applied")
	}
	for applied, want := range map[uint64]time.Duration{10: 150, 19: 150, 20: 200, 99: 200} {
		had := words{list: append([]word(nil), w.list...)}
		if at, ok := had.newest(applied); !ok || at != want {
			t.Errorf("of what is applied up to %d: %v, %t", applied, at, ok)
		}
	}
	for i := range uint64(10_000) { // of a member that is far behind
		w.add(100+i, time.Duration(1000+i))
	}
	if n := len(w.list); n > maxWords {
		t.Errorf("%d words are kept", n)
	}
	if at, ok := w.newest(5099); !ok || at < 5500 || at > 5999 {
		t.Errorf("%v, %t", at, ok)
	}
	if at, ok := w.newest(20_000); !ok || at != 10_999 {
		t.Errorf("%v, %t", at, ok)
	}
}

// A member knows for a while when it took in a round, of one leader.
func TestHeardRounds(t *testing.T) {
	var h heardRounds
	of := leadership{1, 2}
	for i := range uint64(100) {
		h.add(of, 65500+i, time.Duration(i))
	}
	for round, want := range map[uint64]bool{65500: false, 65535: false, 65536: true, 65599: true, 65600: false} {
		if _, ok := h.at(roundTag(round)); ok != want {
			t.Errorf("round %d is known: %t", round, ok)
		}
	}
	if h.add(leadership{3, 4}, 7, 7); h.of != (leadership{3, 4}) {
		t.Errorf("of %v", h.of)
	}
	if _, ok := h.at(roundTag(65599)); ok {
		t.Error("a round of another leader")
	}
	if _, ok := h.at(0); ok {
		t.Error("none has the number 0")
	}
}

// A round counts from when it was heard first, and is not taken for one of the other kind.
func TestRoundsOfTwoKinds(t *testing.T) {
	var h heardRounds
	of := leadership{1, 1}
	for i := range uint64(63) {
		h.add(of, i+1, time.Duration(i))
	}
	h.add(of, 64, time.Second)
	h.add(of, 64, 2*time.Second)
	h.add(of, ownRound|64, 3*time.Second)
	for round, want := range map[uint64]time.Duration{64: time.Second, ownRound | 64: 3 * time.Second} {
		if at, ok := h.at(roundTag(round)); !ok || at != want {
			t.Errorf("round %x was heard after %v, not %v", round, at, want)
		}
	}
	if _, ok := h.at(roundTag(ownRound | 63)); ok {
		t.Error("a round that was not heard is known")
	}
}
