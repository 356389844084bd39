package mtr_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
)

// blank is a store of pages that were never written.
type blank struct {
	mu    sync.Mutex
	pages map[page.ID][]byte
}

func (b *blank) ReadPage(id page.ID, p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(p)
	copy(p, b.pages[id])
	return nil
}

func (b *blank) WritePage(id page.ID, p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[id] = bytes.Clone(p)
	return nil
}

func (b *blank) SyncSpace(uint32) error         { return nil }
func (b *blank) CheckLSN(page.ID, []byte) error { return nil }
func (b *blank) SaveLSNs()                      {}
func (b *blank) Unsound(page.ID, error)         {}

func setUp(t *testing.T) (*buffer.Pool, *redo.Log, redo.Options, *blank) {
	t.Helper()
	opt := redo.Options{FS: file.OS(t.TempDir()), Env: env.Real(), Dir: "redo", Capacity: 8 << 20}
	log, err := redo.Create(opt)
	if err != nil {
		t.Fatal(err)
	}
	store := &blank{pages: map[page.ID][]byte{}}
	pool, err := buffer.New(buffer.Options{Env: env.Real(), Store: store, Log: log, Size: buffer.MinSize, Cleaner: buffer.CleanerOptions{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	return pool, log, opt, store
}

// TestRedoSaysWhatWasDone replays the logged groups of random changes onto empty
// pages and expects the same bytes.
func TestRedoSaysWhatWasDone(t *testing.T) {
	pool, log, opt, _ := setUp(t)
	rng := rand.New(rand.NewPCG(4, 2))
	m := mtr.New(pool)
	var b [200]byte
	for n := range 300 {
		if err := m.Begin(); err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(3) {
			id := page.ID{Space: 9, No: 1 + uint32(rng.IntN(20))}
			p, err := m.Get(id, mtr.X)
			if err != nil {
				t.Fatal(err)
			}
			if page.GetType(p.Data) == page.TypeFree || rng.IntN(30) == 0 {
				m.Init(p, page.TypeIndex)
			}
			off := page.HeaderSize + rng.IntN(page.Size-page.HeaderSize-400)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			switch rng.IntN(5) {
			case 0:
				m.Write(p, off, b[:rng.IntN(200)])
			case 1:
				m.Move(p, off, page.HeaderSize+rng.IntN(5000), rng.IntN(300))
			case 2:
				m.Fill(p, off, rng.IntN(300), byte(n))
			case 3:
				m.WriteU64(p, off, uint64(n))
				m.WriteU16(p, off+20, uint16(n))
				m.WriteU8(p, off+30, uint8(n))
			case 4:
				m.SetOwner(p, uint64(n))
			}
		}
		m.Commit()
	}
	want := map[uint32][]byte{}
	for no := uint32(1); no <= 20; no++ {
		m.BeginRead()
		p, err := m.Get(page.ID{Space: 9, No: no}, mtr.S)
		if err != nil {
			t.Fatal(err)
		}
		want[no] = bytes.Clone(p.Data)
		m.Commit()
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	batch := redo.NewBatch(64 << 20)
	log, err := redo.Open(opt, func(_, end page.LSN, payload []byte) error { return batch.Add(end, payload) })
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for no, w := range want {
		got := make([]byte, page.Size)
		if _, _, _, err := batch.Apply(page.ID{Space: 9, No: no}, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, w) {
			t.Errorf("page %d: replayed bytes differ", no)
		}
	}
}

// TestHolding shows what Get, Release, Mark and ReleaseTo keep and give up.
func TestHolding(t *testing.T) {
	pool, log, _, _ := setUp(t)
	defer log.Close()
	a, b := mtr.New(pool), mtr.New(pool)
	id := func(no uint32) page.ID { return page.ID{Space: 1, No: no} }
	if err := a.Begin(); err != nil {
		t.Fatal(err)
	}
	p1, _ := a.Get(id(1), mtr.X)
	again, _ := a.Get(id(1), mtr.S)
	if p1.Frame != again.Frame {
		t.Error("a page that is held was not found again")
	}
	free := func(no uint32) bool {
		b.BeginRead()
		defer b.Commit()
		_, ok, err := b.TryGet(id(no), mtr.S)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if free(1) {
		t.Error("a page held in X was latched by another")
	}
	mark := a.Mark()
	p2, _ := a.Get(id(2), mtr.X)
	p3, _ := a.Get(id(3), mtr.X)
	a.Init(p2, page.TypeIndex)
	a.ReleaseTo(mark)
	if free(2) || !free(3) || free(1) {
		t.Error("ReleaseTo must give up what was not changed since the mark, and only that")
	}
	p4, _ := a.Get(id(4), mtr.S)
	mark = a.Mark()
	a.Release(p4) // its slot is used again behind the mark
	_, _ = a.Get(id(5), mtr.S)
	_, _ = a.Get(id(6), mtr.X)
	a.ReleaseTo(mark)
	if !free(6) || free(2) || free(1) {
		t.Error("ReleaseTo after a Release of a page from before the mark")
	}
	b.BeginRead()
	if _, ok, err := b.TryGet(id(5), mtr.X); err != nil || !ok {
		t.Errorf("ReleaseTo kept a page: %v, %v", ok, err)
	}
	b.Commit()
	mustPanic(t, "Release of a changed page", func() { a.Release(p2) })
	mustPanic(t, "change of a page that is not held", func() { a.WriteU8(p3, 100, 1) })
	a.Release(p1)
	if !free(1) {
		t.Error("Release did not release")
	}
	if lsn := a.Commit(); lsn == 0 || page.GetLSN(p2.Data) != lsn || pool.DirtyPages() != 1 {
		t.Errorf("commit at LSN %d: page has %d, %d dirty", lsn, page.GetLSN(p2.Data), pool.DirtyPages())
	}
	b.BeginRead()
	p, _ := b.Get(id(2), mtr.S)
	mustPanic(t, "X for a page held in S", func() { _, _ = b.Get(id(2), mtr.X) })
	mustPanic(t, "change in a reading mini-transaction", func() { b.WriteU8(p, 100, 1) })
	b.Commit()
	mustPanic(t, "Commit without Begin", func() { b.Commit() })
}

func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}

// TestUnlogged checks that changes without redo keep the checkpoint back until
// they are on disk.
func TestUnlogged(t *testing.T) {
	pool, log, _, store := setUp(t)
	defer log.Close()
	m := mtr.New(pool)
	if err := m.BeginUnlogged(); err != nil {
		t.Fatal(err)
	}
	p, _ := m.GetNew(page.ID{Space: 5, No: 1}, page.TypeIndex)
	m.WriteU64(p, 64, 77)
	m.Commit()
	before := log.Current()
	if err := m.Begin(); err != nil {
		t.Fatal(err)
	}
	q, _ := m.Get(page.ID{Space: 6, No: 1}, mtr.X)
	m.Init(q, page.TypeIndex)
	m.Commit()
	if got := pool.CheckpointLSN(); got > before {
		t.Errorf("checkpoint %d would pass an unlogged change at %d", got, before)
	}
	if err := pool.FlushSpace(5); err != nil {
		t.Fatal(err)
	}
	on := store.pages[page.ID{Space: 5, No: 1}]
	if on == nil || page.Verify(on, page.ID{Space: 5, No: 1}) != nil || on[64] != 77 {
		t.Error("the unlogged page is not on disk")
	}
	if store.pages[page.ID{Space: 6, No: 1}] != nil {
		t.Error("FlushSpace wrote another tablespace")
	}
}
