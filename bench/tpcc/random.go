package main

import (
	"math/rand/v2"
	"unsafe"
)

// Cardinalities of the specification (clause 1.2.1), for each warehouse.
const (
	items             = 100_000 // of all warehouses
	districts         = 10
	customers         = 3000 // of a district
	firstNewOrder     = 2101 // orders from here on are not delivered in the beginning
	maxLines          = 15
	rollbackPercent   = 1
	lastNamesToLoad   = 1000
	invalidItem       = items + 1
	initialWarehouse  = 300_000
	initialDistrict   = 30_000
	undeliveredOrders = customers - firstNewOrder + 1
)

// random draws what clauses 2.1.6 and 4.3.2 ask for. It belongs to one task.
type random struct {
	*rand.Rand
	cLast, cID, cItem int // the constants C of NURand
}

func newRandom(seed uint64, task int, cs constants) *random {
	return &random{Rand: rand.New(rand.NewPCG(seed, uint64(task))), cLast: cs.last, cID: cs.id, cItem: cs.item}
}

// constants are those of NURand; runs and loads have different ones (clause 2.1.6.1).
type constants struct{ last, id, item int }

func loadConstants(seed uint64) constants {
	r := rand.New(rand.NewPCG(seed, 1<<40))
	return constants{last: r.IntN(256), id: r.IntN(1024), item: r.IntN(8192)}
}

// runConstants keeps the distance from the load's that the clause demands.
func runConstants(seed uint64) constants {
	load := loadConstants(seed)
	r := rand.New(rand.NewPCG(seed, 1<<41))
	c := constants{id: r.IntN(1024), item: r.IntN(8192)}
	for {
		c.last = r.IntN(256)
		if d := max(c.last-load.last, load.last-c.last); d >= 65 && d <= 119 && d != 96 && d != 112 {
			return c
		}
	}
}

// between is a uniform number from lo to hi.
func (r *random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func (r *random) nuRand(a, c, lo, hi int) int {
	return ((r.between(0, a)|r.between(lo, hi))+c)%(hi-lo+1) + lo
}

func (r *random) customer() int { return r.nuRand(1023, r.cID, 1, customers) }
func (r *random) item() int     { return r.nuRand(8191, r.cItem, 1, items) }

var syllables = [...]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

func lastName(n int) string {
	return syllables[n/100] + syllables[n/10%10] + syllables[n%10]
}

func (r *random) lastName() string { return lastName(r.nuRand(255, r.cLast, 0, 999)) }

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	digits  = "0123456789"
)

func (r *random) text(lo, hi int) string   { return r.of(letters, lo, hi) }
func (r *random) number(lo, hi int) string { return r.of(digits, lo, hi) }

func (r *random) of(set string, lo, hi int) string {
	b := make([]byte, r.between(lo, hi))
	for i := range b {
		b[i] = set[r.IntN(len(set))]
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (r *random) zip() string { return r.number(4, 4) + "11111" }

// data is the text of items and stock: one in ten has ORIGINAL in it.
func (r *random) data() string {
	s := r.text(26, 50)
	if r.IntN(10) > 0 {
		return s
	}
	at := r.IntN(len(s) - 8 + 1)
	return s[:at] + "ORIGINAL" + s[at+8:]
}

// cents is an amount between two numbers of cents, as decimal text.
func (r *random) cents(lo, hi int) money { return money(r.between(lo, hi)) }

// permutation is 1 to n in random order.
func (r *random) permutation(n int) []int {
	p := r.Perm(n)
	for i := range p {
		p[i]++
	}
	return p
}
