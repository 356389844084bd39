package temptable

import (
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestBudget: sessions that want all of it share it, whoever comes last finds room, and what
// each gives back is whole.
func TestBudget(t *testing.T) {
	const limit = 256 << 20
	var b Budget
	b.SetLimit(limit)
	const sessions = 40
	shares, accounts := make([]Share, sessions), make([]Account, sessions)
	var all sync.WaitGroup
	for i := range sessions {
		shares[i] = Of(&b)
		accounts[i].Begin(0, &shares[i])
		all.Go(func() {
			for a := &accounts[i]; a.Used() < limit && a.Fits(10_000); {
				a.Add(10_000)
			}
		})
	}
	all.Wait()
	if used := b.Used(); used > limit+sessions*(modest+grain) || used < limit*8/10 {
		t.Errorf("%d bytes are used of %d", used, limit)
	}
	late := Of(&b)
	var a Account
	a.Begin(0, &late)
	if !a.Fits(modest) {
		t.Error("who comes last finds no room")
	}
	a.Add(8 << 20)
	for range 100 {
		a.Add(-80_000)
	}
	if left := late.taken; left > a.Used()+2*grain || left < a.Used() {
		t.Errorf("%d bytes are taken for %d", left, a.Used())
	}
	a.End()
	a.Add(-a.Used()) // a structure that is given up late
	for i := range sessions {
		if i%2 == 0 {
			accounts[i].End()
		}
		shares[i].End() // the session ends, perhaps in the middle of a statement
	}
	if used := b.Used(); used != 0 {
		t.Errorf("%d bytes are left over", used)
	}
}

// TestBudgetAlone: one session has half of the budget, and is told whose limit it has met.
func TestBudgetAlone(t *testing.T) {
	var b Budget
	b.SetLimit(64 << 20)
	share := Of(&b)
	var a Account
	a.Begin(256<<20, &share)
	for a.Fits(1 << 20) {
		a.Add(1 << 20)
	}
	if a.Used() != 32<<20 {
		t.Errorf("one session has %d bytes", a.Used())
	}
	if e := a.Exceeded("GROUP BY").(*sqlerr.Error); e.Number != sqlerr.CapacityExceeded || !strings.Contains(e.Error(), "67108864 bytes for 'temptable_max_ram'") || b.Refused() != 1 {
		t.Errorf("%v, counted %d", e, b.Refused())
	}
	if a.Fits(1 << 30) { // alone it is more than the account's own limit
		t.Error("1 GiB fits")
	}
	if e := a.Exceeded("expression").(*sqlerr.Error); !strings.Contains(e.Error(), "268435456 bytes for 'expression'") || b.Refused() != 1 {
		t.Errorf("%v, counted %d", e, b.Refused())
	}
	b.SetLimit(0)
	for a.Fits(1 << 20) {
		a.Add(1 << 20)
	}
	if e := a.Exceeded("GROUP BY").(*sqlerr.Error); a.Used() != 256<<20 || !strings.Contains(e.Error(), "268435456 bytes for 'GROUP BY'") {
		t.Errorf("%d bytes: %v", a.Used(), e)
	}
}

// TestBudgetHold: single values may take all that is left, each session 1 MiB in any case.
func TestBudgetHold(t *testing.T) {
	var b Budget
	b.SetLimit(100 << 20)
	first, second := Of(&b), Of(&b)
	if !first.Hold(60<<20) || !second.Hold(40<<20) {
		t.Fatal("values that fit are refused")
	}
	if second.Hold(1) {
		t.Error("more than the budget is taken")
	}
	third := Of(&b)
	if !third.Hold(1<<20) || third.Hold(1) {
		t.Error("a third session has not 1 MiB")
	}
	first.Hold(-60 << 20)
	if !second.Hold(50 << 20) {
		t.Error("what was given back is not there")
	}
	for _, s := range []*Share{&first, &second, &third} {
		s.End()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}
