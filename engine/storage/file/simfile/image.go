package simfile

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/triremedb/trireme/engine/env"
)

// CrashImage returns a new file system with what would be found after a power
// failure now. It may be taken whether or not s has crashed, and s goes on as it
// was. Each call draws anew what survived.
func (s *FS) CrashImage() *FS {
	s.mu.Lock()
	s.images++
	seed := s.seed*0x9E3779B97F4A7C15 + s.images
	s.mu.Unlock()
	return s.CrashImageFor(s.env, seed)
}

// CrashImageFor is CrashImage for another environment; seed alone decides what
// survives and drives the new file system.
func (s *FS) CrashImageFor(e env.Env, seed uint64) *FS {
	s.mu.Lock()
	defer s.mu.Unlock()
	rng := rand.New(rand.NewPCG(seed, 0x63_72_61_73_68))
	to := s.next(e, seed)
	to.boots++
	names := s.tree.survive(rng)
	for _, name := range sorted(names) { // parents come before what they hold
		if name == "." || to.tree.parent(name) != nil {
			continue
		}
		from := names[name]
		ino := &inode{dir: from.dir, named: true, bad: maps.Clone(from.bad)}
		if !ino.dir {
			ino.cur, ino.size = from.survive(rng)
			ino.disk, ino.diskSize = ino.cur.share(), ino.size
			to.used += ino.size
		}
		to.tree.cur[name] = ino
		to.tree.disk[name] = ino
	}
	return to
}

// KillImage returns a new file system with what would be found after the process
// was killed but the machine went on: everything, and what was not durable still is
// not. Power that is lost later may take it, if nobody has synced it.
func (s *FS) KillImage() *FS {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images++
	to := s.next(s.env, s.seed*0x9E3779B97F4A7C15+s.images)
	copies := map[*inode]*inode{}
	copyOf := func(ino *inode) *inode {
		if copies[ino] == nil && ino != nil {
			copies[ino] = ino.clone()
		}
		return copies[ino]
	}
	for name, ino := range s.tree.cur {
		to.tree.cur[name] = copyOf(ino)
		if !ino.dir {
			to.used += ino.size
		}
	}
	clear(to.tree.disk)
	for name, ino := range s.tree.disk {
		to.tree.disk[name] = copyOf(ino)
	}
	for _, op := range s.tree.pending {
		to.tree.pending = append(to.tree.pending, nameOp{from: op.from, to: op.to, ino: copyOf(op.ino)})
	}
	return to
}

// SyncAll makes everything durable, as a machine does that is shut down in order.
func (s *FS) SyncAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.tree.pending {
		op.apply(s.tree.disk)
	}
	s.tree.pending = nil
	for _, name := range sorted(s.tree.cur) {
		ino := s.tree.cur[name]
		ino.endSync(ino.beginSync())
	}
}

// next returns the empty file system of the process after this one.
//
// REQUIRES: s.mu.
func (s *FS) next(e env.Env, seed uint64) *FS {
	to := New(e, seed)
	to.capacity, to.boots = s.capacity, s.boots
	return to
}

func sorted(names map[string]*inode) []string {
	return slices.Sorted(maps.Keys(names))
}

// clone returns a file as another process finds it: the openers of this one are gone.
func (ino *inode) clone() *inode {
	to := *ino
	to.open = 0
	to.cur, to.disk = ino.cur.share(), ino.disk.share()
	to.dirty, to.lost, to.bad = maps.Clone(ino.dirty), maps.Clone(ino.lost), maps.Clone(ino.bad)
	to.pending = slices.Clone(ino.pending)
	return &to
}

// survive draws which pending operations are on disk.
func (t *tree) survive(rng *rand.Rand) map[string]*inode {
	m := make(map[string]*inode, len(t.disk))
	for name, ino := range t.disk {
		m[name] = ino
	}
	keep := func(ops []int) {
		for _, at := range ops {
			t.pending[at].apply(m)
		}
	}
	switch rng.IntN(4) {
	case 0: // none
	case 1: // all up to some moment, as a journal has it
		n := rng.IntN(len(t.pending) + 1)
		for _, op := range t.pending[:n] {
			op.apply(m)
		}
	case 2:
		for _, op := range t.pending {
			op.apply(m)
		}
	default:
		for _, chain := range t.chains() {
			keep(chain[:rng.IntN(len(chain)+1)])
		}
	}
	return m
}

// survive draws the content that is on disk.
func (ino *inode) survive(rng *rand.Rand) (chunks, int64) {
	out, size := ino.disk.share(), ino.diskSize
	switch {
	case ino.clean():
		return out, size
	case ino.overflow:
		out, size = ino.surviveEither(rng, out)
	default:
		d := newDraw(ino, rng)
		for i := range ino.pending {
			d.apply(&out, &ino.pending[i])
		}
		size = d.size()
	}
	out.cut(size)
	return out, size
}

// surviveEither takes each unsynced sector from the disk or from the current
// content.
func (ino *inode) surviveEither(rng *rand.Rand, out chunks) (chunks, int64) {
	odds := rng.IntN(5) // of 4
	for _, i := range ino.dirtyChunks() {
		var mask uint32
		for s := range sectorsPerChunk {
			if rng.IntN(4) < odds {
				mask |= 1 << s
			}
		}
		mask &^= ino.lost[i]
		out.set(i, merge(out.at(i), ino.cur.at(i), mask))
	}
	if rng.IntN(4) < odds {
		return out, ino.size
	}
	return out, ino.diskSize
}

// draw decides how far each sector of a file got in its history: the changes to
// it up to some number are on disk, later ones are not.
type draw struct {
	ino  *inode
	rng  *rand.Rand
	mode drawMode
	// sizes up to this change are on disk.
	sizeCut uint64
	// fileCut is the one cut of all sectors (drawPrefix).
	fileCut uint64
	// tearing is the chance of 8 that a sector does not follow its chunk.
	tearing int
	chunk   map[int64]uint64
	sector  map[int64]uint64
}

type drawMode uint8

const (
	drawNone    drawMode = iota // nothing unsynced survives
	drawAll                     // everything does
	drawPrefix                  // what was written first; the next write is torn
	drawScatter                 // each chunk or sector by itself
	drawModes
)

func newDraw(ino *inode, rng *rand.Rand) *draw {
	d := &draw{ino: ino, rng: rng, chunk: map[int64]uint64{}, sector: map[int64]uint64{}}
	// Half of the images scatter, the others share the rest.
	d.mode = drawMode(rng.IntN(2 * int(drawScatter)))
	if d.mode > drawScatter {
		d.mode = drawScatter
	}
	switch d.mode {
	case drawNone:
		d.sizeCut, d.fileCut = ino.synced, ino.synced
	case drawAll:
		d.sizeCut, d.fileCut = ino.seq, ino.seq
	case drawPrefix:
		d.fileCut = d.any()
		d.sizeCut = d.fileCut
	default:
		d.sizeCut = d.cut()
		d.tearing = []int{0, 1, 4, 8}[rng.IntN(4)]
	}
	return d
}

// any draws a number from the last synced to the newest change.
func (d *draw) any() uint64 {
	return d.ino.synced + d.rng.Uint64N(d.ino.seq-d.ino.synced+1)
}

// cut draws nothing, everything or something between.
func (d *draw) cut() uint64 {
	switch d.rng.IntN(3) {
	case 0:
		return d.ino.synced
	case 1:
		return d.ino.seq
	}
	return d.any()
}

// cutOf returns how far sector got, drawing it at the first call.
func (d *draw) cutOf(sector int64) uint64 {
	cut, ok := d.sector[sector]
	if ok {
		return cut
	}
	switch {
	case d.mode == drawPrefix && d.rng.IntN(2) == 0:
		cut = min(d.fileCut+1, d.ino.seq)
	case d.mode != drawScatter:
		cut = d.fileCut
	case d.rng.IntN(8) < d.tearing:
		cut = d.cut()
	default:
		at := sector / sectorsPerChunk
		if cut, ok = d.chunk[at]; !ok {
			cut = d.cut()
			d.chunk[at] = cut
		}
	}
	for i := range d.ino.pending {
		cut = d.followTruncation(&d.ino.pending[i], sector, cut)
	}
	d.sector[sector] = cut
	return cut
}

// followTruncation moves a sector's cut so that it agrees with the size: the bytes
// of a truncation that is on disk are gone, those of one that is not are there.
func (d *draw) followTruncation(c *change, sector int64, cut uint64) uint64 {
	start, end := sector*SectorSize, (sector+1)*SectorSize
	switch {
	case c.kind != changeShrink || end <= c.off || start >= c.off+c.n:
		return cut
	case c.seq <= d.sizeCut:
		return max(cut, c.seq)
	case start >= c.off:
		return min(cut, c.seq-1)
	}
	return cut // the sector of the new end may be zeroed ahead of the size
}

// apply makes a change in the sectors that got so far.
func (d *draw) apply(out *chunks, c *change) {
	if c.kind == changeGrow {
		return
	}
	for off, end := c.off, c.off+c.n; off < end; {
		sector := off / SectorSize
		next := min(end, (sector+1)*SectorSize)
		if c.seq <= d.cutOf(sector) {
			var data []byte
			if c.data != nil {
				data = c.data[off-c.off : next-c.off]
			}
			out.writeAt(data, off, next-off)
		}
		off = next
	}
}

// size returns the size on disk.
func (d *draw) size() int64 {
	size := d.ino.diskSize
	for i := range d.ino.pending {
		c := &d.ino.pending[i]
		if c.seq <= d.sizeCut {
			size = c.size
			continue
		}
		if c.size == size {
			continue
		}
		if c.kind == changeWrite && d.mode > drawAll && d.rng.IntN(2) == 0 {
			// A write that extends the file may have got to some sector.
			first := max(size, c.off)/SectorSize + 1
			if last := c.size / SectorSize; first <= last {
				size = SectorSize * (first + d.rng.Int64N(last-first+1))
			}
		}
		break
	}
	return size
}
