package buffer_test

import (
	"encoding/binary"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// TestFlushSpaceWaitsForBatch: pages that a batch is just writing are not dirty any
// more, and not on disk yet. FlushSpace must not return before they are.
func TestFlushSpaceWaitsForBatch(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		s := simenv.New(seed)
		s.Run(func() {
			f := open(t, s, func(o *buffer.Options) { o.Cleaner.Off = true })
			defer f.close(t)
			var ids []page.ID
			for no := uint32(1); no <= 6; no++ {
				ids = append(ids, page.ID{Space: 1, No: no})
			}
			if err := addTo(mtr.New(f.pool), ids...); err != nil {
				t.Fatal(err)
			}
			tasks := env.NewGroup(s)
			tasks.Go("flush all", func() {
				if err := f.pool.FlushAll(); err != nil {
					t.Error(err)
				}
			})
			tasks.Go("flush space", func() {
				for range seed % 8 {
					s.Yield()
				}
				if err := f.pool.FlushSpace(1); err != nil {
					t.Error(err)
				}
				f.store.mu.Lock()
				defer f.store.mu.Unlock()
				for _, id := range ids {
					if p := f.store.pages[id]; p == nil || binary.LittleEndian.Uint64(p[counterOff:]) != 1 {
						t.Errorf("seed %d: page %v is not written after FlushSpace", seed, id)
					}
				}
			})
			tasks.Wait()
		})
		if t.Failed() {
			return
		}
	}
}

// TestUnloggedKeepsLSN: an unlogged change must not make a page older than what was
// logged for it, or recovery would apply that again on top. The group of the last
// logged change can be published while an earlier one is not.
func TestUnloggedKeepsLSN(t *testing.T) {
	f := open(t, env.Real(), func(o *buffer.Options) { o.Cleaner.Off = true })
	defer f.close(t)
	id := page.ID{Space: 1, No: 1}
	if err := f.log.Admit(64); err != nil {
		t.Fatal(err)
	}
	slow, slowEnd := f.log.Reserve(9) // somebody is about to publish
	m := mtr.New(f.pool)
	if err := addTo(m, id); err != nil {
		t.Fatal(err)
	}
	before := lsnOf(t, m, id)
	if err := m.BeginUnlogged(); err != nil {
		t.Fatal(err)
	}
	p, err := m.Get(id, mtr.X)
	if err != nil {
		t.Fatal(err)
	}
	m.WriteU64(p, counterOff, 7)
	m.Commit()
	if after := lsnOf(t, m, id); after < before {
		t.Errorf("LSN of the page fell from %d to %d", before, after)
	}
	f.log.Fill(slow, make([]byte, 9))
	f.log.Publish(slow, slowEnd)
	f.log.Unadmit(64)
}

func lsnOf(t *testing.T, m *mtr.Mtr, id page.ID) page.LSN {
	t.Helper()
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(id, mtr.S)
	if err != nil {
		t.Fatal(err)
	}
	return page.GetLSN(p.Data)
}

// TestRestoreTornSyncs: the pages of the last batch may be in the system's cache
// only, since the process ended before it synced them. The doublewrite file is
// about to be used again, so they must be durable first.
func TestRestoreTornSyncs(t *testing.T) {
	fs := file.OS(t.TempDir())
	store := &syncStore{memStore: newMemStore(env.Real())}
	w, err := buffer.NewPageWriter(fs, store)
	if err != nil {
		t.Fatal(err)
	}
	id := page.ID{Space: 3, No: 5}
	p := make([]byte, page.Size)
	page.Init(p, id, page.TypeIndex)
	if err := w.Add(id, p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	store.written, store.synced = nil, nil
	repaired, err := buffer.RestoreTorn(fs, store, func(uint32) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if len(repaired) != 0 {
		t.Errorf("repaired %v", repaired)
	}
	// Written once more: a sync that failed before makes the system believe that
	// what it has is on disk.
	if len(store.written) != 1 || store.written[0] != id || len(store.synced) != 1 || store.synced[0] != 3 {
		t.Errorf("wrote %v, synced %v", store.written, store.synced)
	}
}

// syncStore notes what is written and synced.
type syncStore struct {
	*memStore
	written []page.ID
	synced  []uint32
}

func (s *syncStore) WritePage(id page.ID, p []byte) error {
	s.written = append(s.written, id)
	return s.memStore.WritePage(id, p)
}

func (s *syncStore) SyncSpace(space uint32) error {
	s.synced = append(s.synced, space)
	return s.memStore.SyncSpace(space)
}

// TestTailInUse: most pages are in use, those at the LRU list's tail among them, and
// all others are dirty. Who needs a frame gets one.
func TestTailInUse(t *testing.T) {
	const window = 12
	for from := uint32(0); from < 64-window; from += window / 2 {
		s := simenv.New(1)
		s.Run(func() {
			f := open(t, s, func(o *buffer.Options) { o.Cleaner.Off = true })
			defer f.close(t)
			id := func(no uint32) page.ID { return page.ID{Space: 1, No: no + 1} }
			frames := uint32(f.pool.Stats().PagesTotal)
			m, pins := mtr.New(f.pool), mtr.New(f.pool)
			pins.BeginRead()
			for no := range frames {
				if no >= from && no < from+window {
					if err := addTo(m, id(no)); err != nil {
						t.Fatal(err)
					}
				} else if _, err := pins.Get(id(no), mtr.S); err != nil {
					t.Fatal(err)
				}
			}
			m.BeginRead()
			if _, err := m.Get(id(frames), mtr.S); err != nil {
				t.Errorf("dirty pages from %d on of %d: %v", from, frames, err)
			}
			m.Commit()
			pins.Commit()
		})
	}
}
