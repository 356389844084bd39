package table

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/types"
)

// statistics are estimates of an index's values, from a sample of its leaves.
type statistics struct {
	rows     int64     // of the table then
	distinct []float64 // values of the first parts, by their number less one
}

// sampleLeaves is how many leaves of an index are looked at.
const sampleLeaves = 12

// stale reports whether the table has changed much since: by a fifth.
func (s *statistics) stale(rows int64) bool {
	return max(rows-s.rows, s.rows-rows) > s.rows/5+50
}

// Distinct estimates the number of different values of the first parts of the index at a
// position; 0 if it is not known. It may read pages: what they say is kept until the table
// has changed much.
func (t *Table) Distinct(position, parts int) float64 {
	rows := t.Rows()
	kept := &t.stats[position]
	s := kept.Load()
	if s == nil || s.stale(rows) {
		s = &statistics{rows: rows}
		var err error
		if s.distinct, err = t.sample(position); err != nil {
			return 0 // a damaged page is for who reads its rows
		}
		kept.Store(s)
	}
	if parts < 1 || parts > len(s.distinct) {
		return 0
	}
	return s.distinct[parts-1]
}

// ForgetStatistics makes the next who asks look again.
func (t *Table) ForgetStatistics() {
	for i := range t.stats {
		t.stats[i].Store(nil)
	}
}

// sample counts on some leaves how often the first parts of the keys change from an entry
// to the next.
func (t *Table) sample(position int) ([]float64, error) {
	if err := t.engine.Enter(); err != nil {
		return nil, err
	}
	defer t.engine.Leave()
	parts := t.Schema.Keys[position].Parts
	ends := func(key []byte, dst []int) ([]int, error) {
		at := 0
		for _, p := range parts {
			n, err := types.SkipKey(key[at:], p.Type, p.Desc, p.Prefix)
			if err != nil {
				return nil, err
			}
			at += n
			dst = append(dst, at)
		}
		return dst, nil
	}
	changes := make([]float64, len(parts)) // within leaves
	seen := make([]float64, len(parts))    // at least so many values there are
	pairs := 0.0
	var before, key []byte
	var cuts, keyCuts []int
	var failed error
	err := t.trees[position].Sample(sampleLeaves, func(leaf btree.Leaf) {
		for i := range leaf.Len() {
			key = leaf.AppendKey(key[:0], i)
			if keyCuts, failed = ends(key, keyCuts[:0]); failed != nil {
				return
			}
			first := len(before) == 0
			for p := range parts {
				if !first && slices.Equal(before[:cuts[p]], key[:keyCuts[p]]) {
					continue
				}
				seen[p]++
				if i > 0 {
					changes[p]++
				}
			}
			if i > 0 {
				pairs++
			}
			before, key = key, before
			cuts, keyCuts = keyCuts, cuts
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil || pairs == 0 {
		return nil, err
	}
	rows := math.Max(1, float64(t.Rows()))
	for p := range seen {
		seen[p] = math.Min(math.Max(seen[p], rows*changes[p]/pairs), rows)
	}
	return seen, nil
}

// newStatistics makes room for what is known of n indexes.
func newStatistics(n int) []atomic.Pointer[statistics] { return make([]atomic.Pointer[statistics], n) }
