// Package mtr is the mini-transaction: a short piece of work on pages that is
// atomic towards crashes and towards other tasks.
//
// A mini-transaction latches the pages that it reads and changes, collects the
// redo of each change, and at Commit appends the redo to the log as one group,
// marks the pages dirty and releases everything. After a crash either all of its
// changes are there or none.
//
// # Rules
//
//   - There is no way back: whatever can fail (reading pages, allocating, checking
//     room) comes before the first change.
//   - Pages are latched in this order, so that nobody waits in a circle: pages of
//     a tree from the root down and from left to right; undo pages; the pages that
//     manage space. A page just made by GetNew is nobody else's yet and exempt.
//   - Nothing waits for a lock, a commit or another mini-transaction's Begin while
//     it holds a latch. A task has at most one writing mini-transaction at a time;
//     reading ones may be open beside it on other pages.
//   - One writes at most [MaxRedo] bytes of redo. Begin reserves that much of the
//     log, so that Commit never waits for a checkpoint.
package mtr

import (
	"encoding/binary"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
)

// MaxRedo is the most redo that one mini-transaction may write, in bytes.
const MaxRedo = 256 << 10

// Mode says how a page is latched.
type Mode = buffer.Mode

const (
	S = buffer.Shared
	X = buffer.Exclusive
)

// Page is a page held by a mini-transaction. Its bytes are valid until the page
// is released, and are changed only through the mini-transaction's methods.
type Page struct {
	Data  []byte
	Frame uint32
	slot  int32
}

// ID is the page's identity.
func (p Page) ID() page.ID { return page.GetID(p.Data) }

// Mtr is a mini-transaction. It belongs to one task and is used again and again:
// Begin (or BeginRead), work, Commit.
type Mtr struct {
	pool  *buffer.Pool
	log   *redo.Log
	held  []hold // ascending by number
	gets  int    // pages held so far, ever
	redo  []byte
	phase phase
}

type phase uint8

const (
	idle phase = iota
	reading
	writing
	unlogged
)

type hold struct {
	handle buffer.Handle
	number int // of the get
	id     page.ID
	mode   Mode
	dirty  bool
}

// New returns an idle mini-transaction. It has memory for what it does from when it first does it: most
// sessions never write.
func New(pool *buffer.Pool) *Mtr { return &Mtr{pool: pool, log: pool.Log()} }

// What a mini-transaction has room for at first.
const (
	writtenFirst = 16 // pages
	readFirst    = 4
	redoFirst    = 1024 // bytes
)

// Pool is the buffer pool that the pages come from.
func (m *Mtr) Pool() *buffer.Pool { return m.pool }

// Begin starts a mini-transaction that may change pages. It waits for room in the
// redo log. The error is what stopped the engine.
//
// REQUIRES: the task holds no latch.
func (m *Mtr) Begin() error {
	m.mustBe(idle)
	if err := m.log.Admit(MaxRedo); err != nil {
		return err
	}
	if m.redo == nil {
		m.redo = make([]byte, 0, redoFirst)
	}
	m.phase = writing
	return nil
}

// BeginRead starts a mini-transaction that only reads.
func (m *Mtr) BeginRead() {
	m.mustBe(idle)
	m.phase = reading
}

// BeginUnlogged starts a mini-transaction whose changes are not logged: for
// filling pages that nothing durable refers to yet. The caller makes them durable
// with [buffer.Pool.FlushSpace] before anything logged refers to them.
func (m *Mtr) BeginUnlogged() error {
	m.mustBe(idle)
	if err := m.log.Err(); err != nil {
		return err
	}
	m.phase = unlogged
	return nil
}

// Active reports whether the mini-transaction has begun and not committed.
func (m *Mtr) Active() bool { return m.phase != idle }

// Writable reports whether the mini-transaction may change pages.
func (m *Mtr) Writable() bool { return m.phase >= writing }

func (m *Mtr) mustBe(want phase) {
	if m.phase != want {
		panic(fmt.Sprintf("mtr: in phase %d, not %d", m.phase, want))
	}
}

// Get fixes and latches a page until Commit or Release. A page that is held
// already is returned as it is held.
//
// REQUIRES: not X for a page that is held in S.
func (m *Mtr) Get(id page.ID, mode Mode) (Page, error) {
	if p, ok := m.heldPage(id, mode); ok {
		return p, nil
	}
	h, err := m.pool.Fix(id, mode)
	if err != nil {
		return Page{}, err
	}
	return m.hold(h, id, mode), nil
}

// TryGet is Get without waiting for the latch; ok is false where it would wait.
func (m *Mtr) TryGet(id page.ID, mode Mode) (p Page, ok bool, err error) {
	if p, ok := m.heldPage(id, mode); ok {
		return p, true, nil
	}
	h, ok, err := m.pool.TryFix(id, mode)
	if err != nil || !ok {
		return Page{}, false, err
	}
	return m.hold(h, id, mode), true, nil
}

// GetNew gives an X-latched, empty page of the type without reading the disk.
func (m *Mtr) GetNew(id page.ID, t page.Type) (Page, error) {
	p, ok := m.heldPage(id, X)
	if !ok {
		h, err := m.pool.FixNew(id)
		if err != nil {
			return Page{}, err
		}
		p = m.hold(h, id, X)
	}
	m.Init(p, t)
	return p, nil
}

// Init empties a page that is held in X.
func (m *Mtr) Init(p Page, t page.Type) {
	id := m.held[p.slot].id
	m.change(p)
	page.Init(p.Data, id, t)
	if m.phase == writing {
		m.redo = redo.AppendInit(m.redo, id, t)
	}
}

func (m *Mtr) heldPage(id page.ID, mode Mode) (Page, bool) {
	for i := len(m.held) - 1; i >= 0; i-- {
		h := &m.held[i]
		if h.id == id && h.handle.Frame != 0 {
			if mode == X && h.mode == S {
				panic(fmt.Sprintf("mtr: page %v is held in S and asked for in X", id))
			}
			return Page{Data: h.handle.Data, Frame: h.handle.Frame, slot: int32(i)}, true
		}
	}
	return Page{}, false
}

func (m *Mtr) hold(h buffer.Handle, id page.ID, mode Mode) Page {
	if m.phase == idle {
		panic("mtr: page asked for outside Begin and Commit")
	}
	if m.held == nil {
		room := writtenFirst
		if m.phase == reading {
			room = readFirst
		}
		m.held = make([]hold, 0, room)
	}
	m.gets++
	m.held = append(m.held, hold{handle: h, number: m.gets, id: id, mode: mode})
	return Page{Data: h.Data, Frame: h.Frame, slot: int32(len(m.held) - 1)}
}

// Release gives up a page that this mini-transaction has not changed.
func (m *Mtr) Release(p Page) {
	h := &m.held[p.slot]
	if h.dirty {
		panic(fmt.Sprintf("mtr: changed page %v released before the commit", h.id))
	}
	m.pool.Unfix(h.handle, h.mode)
	h.handle = buffer.Handle{}
	m.trim()
}

// Held is the number of pages that are held.
func (m *Mtr) Held() int {
	n := 0
	for i := range m.held {
		if m.held[i].handle.Frame != 0 {
			n++
		}
	}
	return n
}

// Mark remembers which pages are held, for ReleaseTo. It stays good when some of them
// are released meanwhile.
func (m *Mtr) Mark() int { return m.gets }

// ReleaseTo gives up the pages got since the mark that were not changed.
func (m *Mtr) ReleaseTo(mark int) {
	for i := len(m.held) - 1; i >= 0 && m.held[i].number > mark; i-- {
		h := &m.held[i]
		if h.handle.Frame != 0 && !h.dirty {
			m.pool.Unfix(h.handle, h.mode)
			h.handle = buffer.Handle{}
		}
	}
	m.trim()
}

// trim drops the slots at the end that hold nothing.
func (m *Mtr) trim() {
	for n := len(m.held); n > 0 && m.held[n-1].handle.Frame == 0; n-- {
		m.held = m.held[:n-1]
	}
}

// change notes that the page is about to be changed.
func (m *Mtr) change(p Page) {
	h := &m.held[p.slot]
	if h.mode != X || m.phase < writing || h.handle.Frame != p.Frame {
		panic(fmt.Sprintf("mtr: change of page %v that is not held in X for writing", h.id))
	}
	h.dirty = true
}

// Write stores b at off.
func (m *Mtr) Write(p Page, off int, b []byte) {
	if len(b) == 0 {
		return
	}
	m.change(p)
	copy(p.Data[off:off+len(b)], b)
	if m.phase == writing {
		m.redo = redo.AppendWrite(m.redo, m.held[p.slot].id, off, b)
	}
}

// WriteU8 stores one byte at off.
func (m *Mtr) WriteU8(p Page, off int, v uint8) {
	b := [1]byte{v}
	m.Write(p, off, b[:])
}

// WriteU16 stores v at off, little-endian.
func (m *Mtr) WriteU16(p Page, off int, v uint16) {
	var b [2]byte
	binary.LittleEndian.PutUint16(b[:], v)
	m.Write(p, off, b[:])
}

// WriteU32 stores v at off, little-endian.
func (m *Mtr) WriteU32(p Page, off int, v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	m.Write(p, off, b[:])
}

// WriteU64 stores v at off, little-endian.
func (m *Mtr) WriteU64(p Page, off int, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	m.Write(p, off, b[:])
}

// Move copies n bytes from src to dst within the page; the ranges may overlap.
func (m *Mtr) Move(p Page, dst, src, n int) {
	if n == 0 || dst == src {
		return
	}
	m.change(p)
	copy(p.Data[dst:dst+n], p.Data[src:src+n])
	if m.phase == writing {
		m.redo = redo.AppendMove(m.redo, m.held[p.slot].id, dst, src, n)
	}
}

// Fill stores n bytes b at off.
func (m *Mtr) Fill(p Page, off, n int, b byte) {
	if n == 0 {
		return
	}
	m.change(p)
	region := p.Data[off : off+n]
	for i := range region {
		region[i] = b
	}
	if m.phase == writing {
		m.redo = redo.AppendFill(m.redo, m.held[p.slot].id, off, n, b)
	}
}

// SetOwner stores the page's owner (see package page).
func (m *Mtr) SetOwner(p Page, owner uint64) { m.WriteU64(p, page.OffOwner, owner) }

// LogSpaceCreate logs that the tablespace's file was created.
func (m *Mtr) LogSpaceCreate(space uint32) {
	m.mustBe(writing)
	m.redo = redo.AppendSpaceCreate(m.redo, space)
}

// LogSpaceDrop logs that the tablespace's file is about to be deleted.
func (m *Mtr) LogSpaceDrop(space uint32) {
	m.mustBe(writing)
	m.redo = redo.AppendSpaceDrop(m.redo, space)
}

// LogSpaceResize logs the tablespace's new size in pages.
func (m *Mtr) LogSpaceResize(space, pages uint32) {
	m.mustBe(writing)
	m.redo = redo.AppendSpaceResize(m.redo, space, pages)
}

// RedoSize is the redo collected so far, in bytes.
func (m *Mtr) RedoSize() int { return len(m.redo) }

// Commit appends the redo to the log, marks the changed pages dirty and releases
// all pages. It returns the LSN up to which the log must be flushed to make the
// changes durable. If the engine has failed, the changes stay in memory only; the
// next Begin says so.
func (m *Mtr) Commit() page.LSN {
	var end page.LSN
	switch {
	case m.phase == idle:
		panic("mtr: Commit without Begin")
	case len(m.redo) > 0:
		if len(m.redo) > MaxRedo {
			panic(fmt.Sprintf("mtr: %d bytes of redo; the limit is %d", len(m.redo), MaxRedo))
		}
		var start page.LSN
		start, end = m.log.Reserve(len(m.redo))
		m.log.Fill(start, m.redo)
		m.markDirty(start, end)
		m.log.Publish(start, end)
	case m.phase == unlogged:
		// The pages are dirty since now; their old content is nothing to redo. What
		// was ever logged for them is below Current, but not always below Published.
		end = m.log.Current()
		m.markDirty(end, end)
	}
	m.ReleaseAll()
	if m.phase == writing {
		m.log.Unadmit(MaxRedo)
	}
	m.redo = m.redo[:0]
	if cap(m.redo) > 64<<10 {
		m.redo = make([]byte, 0, redoFirst)
	}
	m.phase = idle
	return end
}

func (m *Mtr) markDirty(start, end page.LSN) {
	for i := range m.held {
		if h := &m.held[i]; h.dirty {
			m.pool.MarkDirty(h.handle.Frame, start, end)
		}
	}
}

// ReleaseAll drops every page. Commit calls it; only a task that gives up after a
// failure calls it otherwise.
func (m *Mtr) ReleaseAll() {
	for i := len(m.held) - 1; i >= 0; i-- {
		if h := &m.held[i]; h.handle.Frame != 0 {
			m.pool.Unfix(h.handle, h.mode)
		}
		m.held[i] = hold{}
	}
	m.held = m.held[:0]
}
