package buffer_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// cacheRig counts in pages, as recovery does: each batch adds 1 to the counter of its pages.
type cacheRig struct {
	t     *testing.T
	store *syncStore
	cache *buffer.RecoveryCache
	want  map[page.ID]uint64
	reads int
}

func newCacheRig(t *testing.T, pages int64) *cacheRig {
	t.Helper()
	r := &cacheRig{t: t, store: &syncStore{memStore: newMemStore(env.Real())}, want: map[page.ID]uint64{}}
	var err error
	if r.cache, err = buffer.NewRecoveryCache(env.Real(), file.OS(t.TempDir()), r.store, pages*page.Size); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *cacheRig) batch(ids ...page.ID) {
	r.t.Helper()
	if err := r.cache.Begin(ids); err != nil {
		r.t.Fatal(err)
	}
	spare := make([]byte, page.Size)
	for _, id := range ids {
		p, known := r.cache.Get(id, spare)
		if !known {
			r.reads++
			if err := r.store.ReadPage(id, p); err != nil {
				r.t.Fatal(err)
			}
			if page.IsZero(p) {
				page.Init(p, id, page.TypeIndex)
			}
		}
		r.want[id]++
		if got := binary.LittleEndian.Uint64(p[counterOff:]) + 1; got != r.want[id] {
			r.t.Fatalf("page %v counts %d, it should be %d", id, got, r.want[id])
		}
		binary.LittleEndian.PutUint64(p[counterOff:], r.want[id])
		if err := r.cache.Done(id, p); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.cache.EndBatch(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *cacheRig) end() {
	r.t.Helper()
	if err := r.cache.Flush(); err != nil {
		r.t.Fatal(err)
	}
	if n := r.cache.Kept.Load(); n != 0 {
		r.t.Errorf("%d pages are kept behind Flush", n)
	}
	if n := r.cache.Written.Load(); int(n) != len(r.store.written) {
		r.t.Errorf("%d pages were written, not %d", len(r.store.written), n)
	}
	if err := r.cache.Close(); err != nil {
		r.t.Fatal(err)
	}
	p := make([]byte, page.Size)
	for id, want := range r.want {
		if err := r.store.ReadPage(id, p); err != nil {
			r.t.Fatal(err)
		}
		if err := page.Verify(p, id); err != nil || binary.LittleEndian.Uint64(p[counterOff:]) != want {
			r.t.Errorf("page %v counts %d on disk, it should be %d (%v)", id, binary.LittleEndian.Uint64(p[counterOff:]), want, err)
		}
	}
}

func someIDs(from, n uint32) (ids []page.ID) {
	for i := range n {
		ids = append(ids, page.ID{Space: 3, No: from + i})
	}
	return ids
}

// TestRecoveryCacheOnce: pages that fit are read and written once, however many batches
// change them.
func TestRecoveryCacheOnce(t *testing.T) {
	r := newCacheRig(t, 100)
	for range 10 {
		r.batch(someIDs(1, 100)...)
	}
	if r.reads != 100 || len(r.store.written) != 0 {
		t.Errorf("%d reads and %d writes so far", r.reads, len(r.store.written))
	}
	r.end()
	if len(r.store.written) != 100 {
		t.Errorf("%d pages were written", len(r.store.written))
	}
}

// TestRecoveryCacheMoves: pages that are not used any more make room for others.
func TestRecoveryCacheMoves(t *testing.T) {
	r := newCacheRig(t, 20)
	for at := range uint32(10) {
		r.batch(someIDs(1+20*at, 20)...)
		r.batch(someIDs(1+20*at, 20)...)
	}
	r.end()
	if r.reads != 200 || len(r.store.written) != 200 {
		t.Errorf("%d reads, %d writes", r.reads, len(r.store.written))
	}
}

// TestRecoveryCacheFull: a batch of more pages than fit keeps as many as fit.
func TestRecoveryCacheFull(t *testing.T) {
	r := newCacheRig(t, 20)
	for range 10 {
		r.batch(someIDs(1, 30)...)
	}
	r.end()
	if want := 20 + 10*10; r.reads != want || len(r.store.written) != want {
		t.Errorf("%d reads, %d writes", r.reads, len(r.store.written))
	}
}

// TestRecoveryCacheDrop: pages of a tablespace that goes are not written.
func TestRecoveryCacheDrop(t *testing.T) {
	r := newCacheRig(t, 20)
	gone, stays := page.ID{Space: 4, No: 2}, page.ID{Space: 5, No: 2}
	r.batch(gone, stays)
	r.cache.DropSpace(4)
	delete(r.want, gone)
	r.end()
	if len(r.store.written) != 1 || r.store.written[0] != stays {
		t.Errorf("wrote %v", r.store.written)
	}
}

// TestRecoveryCacheModel: whatever is kept and whatever goes, no change is lost.
func TestRecoveryCacheModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := newCacheRig(t, 1+rng.Int64N(30))
		for range 20 {
			var ids []page.ID
			for _, id := range someIDs(1, 60) {
				if rng.IntN(4) == 0 {
					ids = append(ids, id)
				}
			}
			r.batch(ids...)
			if rng.IntN(5) == 0 && len(ids) > 0 { // as of a page that is not there
				id := page.ID{Space: 9, No: 1}
				if err := r.cache.Begin([]page.ID{id}); err != nil {
					t.Fatal(err)
				}
				r.cache.Get(id, make([]byte, page.Size))
				r.cache.Leave(id)
				if err := r.cache.EndBatch(); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.end()
	}
}
