package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
)

// group is a Large for tests.
type group struct {
	t         testing.TB
	threshold int64
	refuse    bool
	plain     bool // frames are not compressed
	after     uint64

	live    map[*body.File]bool
	began   int
	changes int
}

func newGroup(t testing.TB, threshold int64) *group {
	return &group{t: t, threshold: threshold, live: map[*body.File]bool{}}
}

func (g *group) Threshold() int64 { return g.threshold }

func (g *group) Begin(name string, f file.File, o body.Owner) (*body.File, bool) {
	if n, err := f.Size(); n != 0 || err != nil || f.Name() != name || !strings.HasPrefix(name, DefaultDir+"/ML_") {
		g.t.Errorf("file %s (%s) of %d bytes, %v", name, f.Name(), n, err)
	}
	g.began++
	if g.refuse {
		return nil, false
	}
	b := body.NewFile(entry.StreamID{Number: uint64(g.began)}, name, f)
	b.Owner = o
	g.live[b] = true
	return b, true
}

func (g *group) After() uint64 {
	g.after++
	return g.after
}

func (g *group) Changed(b *body.File) {
	if !g.live[b] {
		g.t.Error("a body that is no longer there has changed")
	}
	g.changes++
}

func (g *group) End(b *body.File) {
	if !g.live[b] || b.Status().State != body.Dropped {
		g.t.Error("the end of a body that is not there")
	}
	delete(g.live, b)
	if err := b.Close(); err != nil {
		g.t.Error(err)
	}
}

func (g *group) Compress() bool { return !g.plain }

// Parts of an event's header and of a rows event, as package event has them.
const (
	offType  = 4
	offLen   = 9
	offFlags = event.HeaderSize + 6
)

// appendEvent appends an event of a type with n random bytes, and 8 before them that
// have a rows event's flags.
func appendEvent(dst []byte, rng *rand.Rand, t event.Type, n int) []byte {
	e := make([]byte, event.HeaderSize+8, event.HeaderSize+8+n)
	e[offType] = byte(t)
	binary.LittleEndian.PutUint32(e[offLen:], uint32(cap(e)))
	seed, mask := rng.Uint64(), byte(1)
	if rng.IntN(3) == 0 {
		mask = 255
	}
	for range min(n, 4000) {
		seed = seed*6364136223846793005 + 1442695040888963407
		e = append(e, byte(seed>>56)&mask)
	}
	for len(e) < cap(e) { // again and again, with a number
		at := len(e)
		e = append(e, e[event.HeaderSize:min(4000, event.HeaderSize+cap(e)-at)]...)
		e[at] = byte(at >> 12)
	}
	return append(dst, e...)
}

// writer writes random events as event.Rows does: a table map before the first rows of a
// statement, behind the end of a frame, and now and then.
type writer struct {
	rng  *rand.Rand
	open bool // there is a table map for the next rows
}

// next makes what is written next.
func (w *writer) next(c *Cache) (p []byte) {
	long := w.rng.IntN([...]int{50, 9000, 9000, 100_000, 400_000}[w.rng.IntN(5)])
	if !w.open && w.rng.IntN(8) == 0 {
		return appendEvent(nil, w.rng, event.TypeQuery, long)
	}
	if !w.open {
		p = appendEvent(p, w.rng, event.TypeTableMap, 40)
	}
	rows := len(p)
	p = appendEvent(p, w.rng, event.TypeWriteRows, long)
	if c.Full(len(p)) || w.rng.IntN(20) == 0 {
		p[rows+offFlags] = byte(event.FlagStatementEnd)
	}
	return p
}

// wrote says that p is written.
func (w *writer) wrote(p []byte) {
	_, closed, err := event.Survey(p)
	if err != nil {
		panic(err)
	}
	w.open = !closed
}

// checkFrames reads the frames of a body; they are those events, and each can be read alone.
func checkFrames(t *testing.T, b *body.File, want []byte) {
	t.Helper()
	z, err := body.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	s := b.Status()
	if s.Plain > int64(len(want)) {
		t.Fatalf("frames of %d bytes of %d", s.Plain, len(want))
	}
	var chain uint32
	var after uint64
	for i := range s.Frames {
		f, ok := b.Frame(i, s.Epoch)
		if !ok || f.After < after {
			t.Fatalf("frame %d: %+v", i, f)
		}
		after = f.After
		_, events, err := b.ReadFrame(f, chain, z, nil, nil)
		if err != nil || !bytes.HasPrefix(want, events) {
			t.Fatalf("frame %d: %v", i, err)
		}
		chain = f.CRC
		want = want[len(events):]
		checkAlone(t, events, int(f.Events))
	}
}

// checkAlone checks that rows have their table map with them.
func checkAlone(t *testing.T, events []byte, count int) {
	t.Helper()
	r := event.NewReader(events)
	var e event.Event
	mapped, n := false, 0
	for {
		more, err := r.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		n++
		if e.Type.IsRows() && !mapped {
			t.Fatal("rows without a table map")
		}
		mapped = !event.Closes(e.Raw)
	}
	if mapped || n != count {
		t.Fatalf("a frame of %d events, %d are said, with its table map open: %v", n, count, mapped)
	}
}

// model runs a cache beside a slice of bytes.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	disk  *simfile.FS
	g     *group
	c     *Cache
	w     writer
	want  []byte
	marks []Mark
	fault *simfile.Injection
}

// The large mode keeps what is written, whatever is cut off, refused by the disk or not
// allowed by the group, and so do its frames.
func TestLargeModel(t *testing.T) {
	modes, healed := 0, 0
	for seed := range race.Fewer(uint64(40), 8) {
		rig(t, seed, func(disk *simfile.FS, opt Options) {
			rng := rand.New(rand.NewPCG(seed, 5))
			g := newGroup(t, rng.Int64N([]int64{1, 50_000, 1 << 20}[rng.IntN(3)]))
			opt.Large = g
			m := &model{t: t, rng: rng, disk: disk, g: g, c: New(opt), w: writer{rng: rng}}
			for range 150 {
				healed += m.step()
				if m.c.Size() != int64(len(m.want)) {
					t.Fatalf("size %d, want %d", m.c.Size(), len(m.want))
				}
			}
			m.stopFault()
			checkContents(t, m.c, m.want)
			m.seal()
			modes += int(opt.Stats.LargeUse.Load())
			if err := m.c.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := disk.List(DefaultDir); len(left) > 0 || disk.Used() != 0 || opt.Stats.Files.Load() != 0 || len(g.live) > 0 {
				t.Fatalf("%v, %d bytes, %d files and %d bodies are left", left, disk.Used(), opt.Stats.Files.Load(), len(g.live))
			}
			if packers.free == nil {
				t.Fatal("no packer was used")
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if modes < 10 || healed == 0 {
		t.Fatalf("%d large modes, %d failed truncations", modes, healed)
	}
}

func (m *model) stopFault() {
	if m.fault != nil {
		m.fault.Stop()
		m.fault = nil
	}
}

// step does something. healed counts truncations that could not read.
func (m *model) step() (healed int) {
	switch m.rng.IntN(16) {
	case 0:
		if !m.w.open {
			m.marks = append(m.marks, m.c.Mark())
		}
	case 1, 2:
		if len(m.marks) > 0 {
			i := m.rng.IntN(len(m.marks))
			m.truncate(m.marks[i])
			m.marks = m.marks[:i+1]
			if m.c.failed != nil {
				m.broken()
				healed++
			}
		}
	case 3:
		if m.fault == nil {
			ops := []simfile.Op{simfile.OpWrite | simfile.OpCreate | simfile.OpTruncate, simfile.OpRead}[m.rng.IntN(2)]
			m.fault = m.disk.Inject(simfile.Fault{Ops: ops, Err: file.ErrNoSpace})
		} else {
			m.stopFault()
		}
	case 4:
		m.g.refuse, m.g.plain = m.rng.IntN(3) == 0, m.rng.IntN(2) == 0
	case 5:
		if m.rng.IntN(6) == 0 {
			m.c.Reset()
			m.want, m.marks, m.w.open = m.want[:0], nil, false
			if cap(m.c.buf) > m.c.opt.Size || m.c.read != nil {
				m.t.Fatal("memory is left")
			}
		}
	case 6:
		if m.fault == nil {
			checkContents(m.t, m.c, m.want)
			m.checkBody()
		}
	default:
		m.write()
	}
	return healed
}

func (m *model) write() {
	p := m.w.next(m.c)
	n, err := m.c.Write(p)
	if err == nil {
		m.want = append(m.want, p...)
		m.w.wrote(p)
		return
	}
	if n != 0 || !errors.Is(err, file.ErrNoSpace) || m.fault == nil {
		m.t.Fatal(n, err)
	}
	// The statement fails.
	m.w.open = false
	if _, closed, _ := event.Survey(m.want); !closed && len(m.want) > 0 {
		m.truncate(m.lastClosed())
		if m.c.failed != nil {
			m.broken()
		}
	}
}

// lastClosed is a place behind the last event that closes its statement.
func (m *model) lastClosed() (at Mark) {
	r := event.NewReader(m.want)
	var e event.Event
	var off int
	for {
		more, err := r.Next(&e)
		if !more || err != nil {
			break
		}
		off += len(e.Raw)
		if event.Closes(e.Raw) {
			at = Mark(off)
		}
	}
	m.marks = slices.DeleteFunc(m.marks, func(k Mark) bool { return k > at })
	return at
}

func (m *model) truncate(at Mark) {
	m.c.Truncate(at)
	m.want = m.want[:at]
	if m.fault == nil && m.c.failed != nil {
		m.t.Fatal(m.c.failed)
	}
	m.w.open = false
	if _, closed, _ := event.Survey(m.want); !closed && len(m.want) > 0 {
		m.t.Fatal("a mark within a statement")
	}
}

// broken: a Truncate could not read. Nothing else works until one can, to there or further back.
func (m *model) broken() {
	if m.fault == nil {
		m.t.Fatal(m.c.failed)
	}
	m.stopFault()
	if m.c.Mark() != Mark(len(m.want)) {
		m.t.Fatalf("%d bytes", m.c.Mark())
	}
	_, write := m.c.Write([]byte("x"))
	_, read := m.c.AppendTo(nil)
	_, seal := m.c.Seal()
	_, piece := m.c.ReadAt(make([]byte, 1), 0)
	for _, err := range []error{write, read, seal, piece} {
		if !errors.Is(err, file.ErrNoSpace) && (err != io.EOF || len(m.want) > 0) {
			m.t.Fatal(write, read, seal, piece)
		}
	}
	if n := len(m.marks); n > 0 && m.rng.IntN(2) == 0 {
		m.truncate(m.marks[m.rng.IntN(n)])
		m.marks = slices.DeleteFunc(m.marks, func(k Mark) bool { return k > Mark(len(m.want)) })
		return
	}
	m.truncate(m.c.Mark()) // where it has failed
}

func (m *model) checkBody() {
	b, ok := m.c.Large()
	if !ok {
		if m.c.Outgrown() {
			m.t.Fatal("a large transaction without a body")
		}
		return
	}
	if !m.g.live[b] || b.Status().Plain != m.c.Spilled() {
		m.t.Fatalf("%+v with %d bytes", b.Status(), m.c.Spilled())
	}
	if m.c.Outgrown() != (int64(len(m.want)) > m.g.threshold) {
		m.t.Fatal("it does not know whether it is large")
	}
	checkFrames(m.t, b, m.want)
}

// seal ends the transaction as a commit does, if it is large.
func (m *model) seal() {
	if _, ok := m.c.Large(); !ok || len(m.want) == 0 {
		return
	}
	if m.w.open { // the statement ends
		p := appendEvent(nil, m.rng, event.TypeWriteRows, 10)
		p[offFlags] = byte(event.FlagStatementEnd)
		mustWrite(m.t, m.c, p)
		m.want = append(m.want, p...)
	}
	b, err := m.c.Seal()
	if err != nil {
		m.t.Fatal(err)
	}
	m.checkBody()
	l := b.Finish()
	f, err := m.disk.Open(b.Name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		m.t.Fatal(err)
	}
	z, err := body.NewDecoder()
	if err != nil {
		m.t.Fatal(err)
	}
	r := body.NewReader(f, &l, z)
	var got []byte
	for {
		_, events, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			m.t.Fatal(err)
		}
		got = append(got, events...)
	}
	if !bytes.Equal(got, m.want) || f.Close() != nil {
		m.t.Fatal("the sealed body differs")
	}
	checkContents(m.t, m.c, m.want)
}

// write adds events of about n bytes, as Rows would.
func fill(t *testing.T, c *Cache, w *writer, n int64) (all []byte) {
	t.Helper()
	for end := c.Size() + n; c.Size() < end; {
		p := w.next(c)
		mustWrite(t, c, p)
		w.wrote(p)
		all = append(all, p...)
	}
	return all
}

// A body that the log has taken is neither removed nor ended.
func TestTaken(t *testing.T) {
	rig(t, 1, func(disk *simfile.FS, opt Options) {
		g := newGroup(t, 100_000)
		opt.Large = g
		c := New(opt)
		fill(t, c, &writer{rng: rand.New(rand.NewPCG(1, 1))}, 1<<20)
		b, err := c.Seal()
		if err != nil || !c.Outgrown() {
			t.Fatal(err)
		}
		l := b.Finish()
		if err := disk.Rename(b.Name, "binlog.000002"); err != nil {
			t.Fatal(err)
		}
		b.End(body.Taken)
		c.Reset()
		if !g.live[b] || opt.Stats.Files.Load() != 1 || c.Size() != 0 { // the raw file
			t.Fatal("the body has ended")
		}
		if _, ok := c.Large(); ok {
			t.Fatal("the next transaction is large")
		}
		f, err := disk.Open("binlog.000002", file.OpenOptions{ReadOnly: true})
		if err == nil {
			err = body.Verify(f, &l)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if names, _ := disk.List(DefaultDir); len(names) > 0 {
			t.Fatal(names)
		}
	})
}

// The group is asked at the threshold and, as long as it refuses, when the events have
// doubled; beyond the greatest transaction of an entry there is no other way.
func TestRefusedLarge(t *testing.T) {
	rig(t, 1, func(disk *simfile.FS, opt Options) {
		g := newGroup(t, 1<<20)
		g.refuse = true
		opt.Large = g
		c := New(opt)
		rng := rand.New(rand.NewPCG(2, 1))
		asked := func(n int64, want int) {
			t.Helper()
			for c.Size() < n {
				mustWrite(t, c, appendEvent(nil, rng, event.TypeQuery, 50_000))
			}
			if g.began != want {
				t.Fatalf("at %d bytes the group was asked %d times, want %d", n, g.began, want)
			}
		}
		asked(900<<10, 0)
		asked(1600<<10, 1)
		asked(1900<<10, 1)
		asked(3500<<10, 2)
		if names, _ := disk.List(DefaultDir); len(names) != 1 {
			t.Fatal(names)
		}
		for c.Size() < event.MaxTransaction {
			n := min(event.MaxTransaction-c.Size(), 1<<20)
			mustWrite(t, c, appendEvent(nil, rng, event.TypeQuery, int(n)-event.HeaderSize-8))
		}
		last := appendEvent(nil, rng, event.TypeQuery, 10)
		began := g.began
		if _, err := c.Write(last); err != event.ErrTooLarge || g.began != began+1 {
			t.Fatal(err, g.began)
		}
		g.refuse = false
		mustWrite(t, c, last)
		if !c.Outgrown() || c.Size() != event.MaxTransaction+int64(len(last)) {
			t.Fatal(c.Size())
		}
		g.threshold = 1 << 40
		if !c.Outgrown() {
			t.Fatal("it does not fit an entry")
		}
		c.Truncate(Mark(event.MaxTransaction))
		if c.Outgrown() {
			t.Fatal("it fits an entry")
		}
		if err := c.Close(); err != nil || len(g.live) > 0 {
			t.Fatal(err)
		}
	})
}

// max_binlog_cache_size holds in large mode.
func TestLargeLimit(t *testing.T) {
	rig(t, 1, func(_ *simfile.FS, opt Options) {
		opt.Large, opt.MaxSize = newGroup(t, 1000), 100_000
		c := New(opt)
		rng := rand.New(rand.NewPCG(1, 1))
		var err error
		for err == nil {
			_, err = c.Write(appendEvent(nil, rng, event.TypeQuery, 973))
		}
		if err != event.ErrTooLarge || c.Size() != 100_000 {
			t.Fatal(err, c.Size())
		}
		if opt.Stats.LargeUse.Load() != 1 || opt.Stats.Use.Load() != 1 {
			t.Fatal("counts")
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A long event is a frame of its own, and is not kept in memory.
func TestLongEvent(t *testing.T) {
	rig(t, 1, func(_ *simfile.FS, opt Options) {
		opt.Large = newGroup(t, 100_000)
		c := New(opt)
		rng := rand.New(rand.NewPCG(1, 1))
		short, long := appendEvent(nil, rng, event.TypeQuery, 100), appendEvent(nil, rng, event.TypeQuery, 20<<20)
		for _, p := range [][]byte{short, long, short, long, long} {
			mustWrite(t, c, p)
		}
		b, _ := c.Large()
		if s := b.Status(); s.Frames != 5 || len(c.buf) > 0 || cap(c.buf) > keptFrame {
			t.Fatalf("%+v, %d bytes in memory", s, cap(c.buf))
		}
		checkContents(t, c, slices.Concat(short, long, short, long, long))
		c.Truncate(Mark(len(short) + 1<<20))
		checkContents(t, c, slices.Concat(short, long)[:len(short)+1<<20])
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A statement of any length, small events in between, with a disk that is full at each
// place: the turn to large mode is made whole or not at all.
func TestTurnOnFullDisk(t *testing.T) {
	for capacity := int64(800_000); capacity < 2_400_000; capacity += 100_000 {
		rig(t, 1, func(disk *simfile.FS, opt Options) {
			g := newGroup(t, 1<<20)
			g.plain = true
			opt.Large = g
			c := New(opt)
			w := &writer{rng: rand.New(rand.NewPCG(9, 1))}
			all := fill(t, c, w, 900<<10)
			disk.SetCapacity(capacity)
			var err error
			for err == nil && c.Size() < 3<<20 {
				p := w.next(c)
				if _, err = c.Write(p); err == nil {
					all = append(all, p...)
					w.wrote(p)
				}
			}
			if err != nil && !errors.Is(err, file.ErrNoSpace) {
				t.Fatal(err)
			}
			disk.SetCapacity(0)
			checkContents(t, c, all)
			all = append(all, fill(t, c, w, 1<<20)...)
			checkContents(t, c, all)
			if b, ok := c.Large(); !ok || len(g.live) != 1 {
				t.Fatal("no large mode")
			} else {
				checkFrames(t, b, all)
			}
			if err := c.Close(); err != nil || disk.Used() != 0 || len(g.live) > 0 {
				t.Fatal(err, disk.Used())
			}
		})
	}
}

// BenchmarkLarge writes a large transaction of 64 MiB in events of 8 KiB.
func BenchmarkLarge(b *testing.B) {
	g := newGroup(b, 8<<20)
	c := New(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Large: g})
	rng := rand.New(rand.NewPCG(1, 1))
	var all [][]byte
	for range 64 {
		p := appendEvent(nil, rng, event.TypeTableMap, 40)
		at := len(p)
		p = appendEvent(p, rng, event.TypeWriteRows, 8000)
		p[at+offFlags] = byte(event.FlagStatementEnd)
		all = append(all, p)
	}
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		for i := 0; c.Size() < 64<<20; i++ {
			if _, err := c.Write(all[i%len(all)]); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := c.Seal(); err != nil {
			b.Fatal(err)
		}
		c.Reset()
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}

// A session that has ended a large transaction holds no more memory than before it.
func TestLargeMemory(t *testing.T) {
	rig(t, 1, func(_ *simfile.FS, opt Options) {
		opt.Large = newGroup(t, 100_000)
		c := New(opt)
		fill(t, c, &writer{rng: rand.New(rand.NewPCG(1, 1))}, 3<<20)
		if _, err := c.AppendTo(nil); err != nil {
			t.Fatal(err)
		}
		if cap(c.buf) > 2<<20 || cap(c.read) > 2<<20 {
			t.Fatalf("%d bytes of the frame, %d of another", cap(c.buf), cap(c.read))
		}
		c.Reset()
		if cap(c.buf) > opt.Size || c.read != nil || len(packers.free) > packersKept {
			t.Fatal("memory is kept")
		}
	})
}
