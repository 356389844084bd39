package main

import (
	"slices"
	"strings"
	"testing"
)

func TestRandom(t *testing.T) {
	for seed := range uint64(50) {
		load, run := loadConstants(seed), runConstants(seed)
		if d := max(load.last-run.last, run.last-load.last); d < 65 || d > 119 || d == 96 || d == 112 {
			t.Fatalf("seed %d: the constants of last names are %d apart", seed, d)
		}
	}
	r := newRandom(1, 1, loadConstants(1))
	for range 10_000 {
		if c := r.customer(); c < 1 || c > customers {
			t.Fatalf("customer %d", c)
		}
		if i := r.item(); i < 1 || i > items {
			t.Fatalf("item %d", i)
		}
		if n := len(r.data()); n < 26 || n > 50 {
			t.Fatalf("data of %d characters", n)
		}
	}
	if lastName(0) != "BARBARBAR" || lastName(371) != "PRICALLYOUGHT" || lastName(999) != "EINGEINGEING" {
		t.Error("last names")
	}
	p := r.permutation(100)
	slices.Sort(p)
	for i, v := range p {
		if v != i+1 {
			t.Fatal("no permutation")
		}
	}
}

func TestMoney(t *testing.T) {
	for m, text := range map[money]string{0: "0.00", 5: "0.05", -1: "-0.01", 123456: "1234.56", -100: "-1.00"} {
		if m.String() != text {
			t.Errorf("%d is %s", m, m)
		}
		if got, err := parseMoney(text); err != nil || got != m {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
}

func TestDeck(t *testing.T) {
	d := deck{r: newRandom(1, 1, runConstants(1))}
	dealt := map[string]int{}
	for range 1000 {
		dealt[d.deal().name]++
	}
	for _, k := range kinds {
		if dealt[k.name] != 10*k.share {
			t.Errorf("%s: %d of 1000", k.name, dealt[k.name])
		}
	}
}

// Each of the twelve conditions but the eleventh has its query.
func TestConditions(t *testing.T) {
	seen := map[int]bool{11: true}
	for _, c := range conditions {
		seen[c.number] = true
		if !strings.HasPrefix(c.query, "SELECT COUNT(*)") {
			t.Errorf("condition %d", c.number)
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d conditions", len(seen))
	}
}
