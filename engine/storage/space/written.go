package space

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// written knows the LSN of each page as it was written last, so that a page which its disk gives
// back as it was before (a lost or misdirected write, part of a file from a backup) is told from
// a good one: its checksum is right.
//
// The LSNs lie in a file for each tablespace, lsn/NNNNNNNN.lsn, in chunks:
//
//	offset size field
//	0      4    CRC-32C of the database's id and of bytes 4 to 4095
//	4      4    tablespace number
//	8      4    chunk number
//	12     4    format version
//	16     8    highest LSN that was ever noted in the chunk
//	24     8    LSN of the chunk's first page, 0: not known; and so on
//
// A chunk that is older than its watermark (see watermarks) was lost by the disk, which may have
// lost the pages' writes as well: none of its pages is good.
//
// # Invariants
//
//   - An LSN is noted once its page is durable. So whatever of these files a crash loses, a page
//     is never older than its LSN here. It may be newer: then nothing is said.
//   - Nothing depends on these files. What cannot be read, or has another checksum (a torn write), is not known, if the
//     pages are as new as the watermark; what cannot be written is tried again.
type written struct {
	opt   *Options
	name  func(no uint32) string // of the file of LSNs
	pages func(no uint32) string // of the tablespace's file
	most  int                    // chunks in memory
	high  *watermarks
	turn  *env.Mutex // held by whoever writes the files, or changes which chunks are in memory

	mu     sync.Mutex // guards what follows
	chunks map[chunkID]*chunk
	ring   []chunkID // the chunks in memory, in which a hand goes round for those not used of late
	hand   int
	dirty  int
	writes uint64 // of chunks, so far
	noted  bool   // something since the last call of save
	saved  time.Duration
}

type chunkID struct{ space, no uint32 }

func (c chunkID) compare(other chunkID) int {
	return cmp.Or(cmp.Compare(c.space, other.space), cmp.Compare(c.no, other.no))
}

// chunk is what is known of chunkPages pages.
type chunk struct {
	lsns    [chunkPages]page.LSN
	highest page.LSN
	lost    page.LSN // the watermark that it is older than; 0: it is not
	at      int      // in the ring
	dirty   bool
	used    bool
}

const (
	chunkSize    = 4 << 10
	chunkHeader  = 24
	chunkPages   = (chunkSize - chunkHeader) / 8
	chunkVersion = 2
	chunksLeast  = 64
	// saveEvery is how long what was noted waits to be written while more comes.
	saveEvery = 3 * time.Second
)

var lsnTable = crc32.MakeTable(crc32.Castagnoli)

// newWritten makes the directory. bytes is what may be kept in memory. Errors: those of newWatermarks and of the file system.
func newWritten(opt *Options, bytes int64) (*written, error) {
	dir := path.Join(path.Dir(opt.Dir), "lsn")
	if err := opt.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("space: making the directory of pages' LSNs: %w", err)
	}
	high, err := newWatermarks(opt, dir)
	if err != nil {
		return nil, err
	}
	return &written{opt: opt, most: max(int(bytes/chunkSize), chunksLeast), high: high, turn: env.NewMutex(opt.Env), chunks: map[chunkID]*chunk{},
		name: func(no uint32) string { return fmt.Sprintf("%s/%08x.lsn", dir, no) }, pages: opt.name}, nil
}

func chunkOf(id page.ID) (c chunkID, i int) {
	return chunkID{id.Space, id.No / chunkPages}, int(id.No % chunkPages)
}

// lsn is the LSN with which a page was written last, 0 if that is not known; and the watermark that what
// is known is older than, 0 if it is not.
func (w *written) lsn(id page.ID) (last, lost page.LSN) {
	c, i := chunkOf(id)
	w.mu.Lock()
	if k := w.chunks[c]; k != nil {
		k.used = true
		defer w.mu.Unlock()
		return k.lsns[i], k.lost
	}
	writes := w.writes
	w.mu.Unlock()
	k := w.read(c) // many tasks may read at a time
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	if w.writes != writes {
		k = nil // it may have been written meanwhile
	}
	w.mu.Unlock()
	w.load(c, k)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chunks[c].lsns[i], w.chunks[c].lost
}

// note takes down what is durable of a tablespace, whose file has so many pages.
func (w *written) note(space uint32, pages []writtenPage, size func() uint32) {
	w.turn.Lock()
	defer w.turn.Unlock()
	for _, p := range pages {
		if p.no >= size() {
			continue // it was cut off
		}
		c, i := chunkOf(page.ID{Space: space, No: p.no})
		w.load(c, nil)
		w.mu.Lock()
		if k := w.chunks[c]; k.lost == 0 {
			k.lsns[i], k.highest, k.used, w.noted = p.lsn, max(k.highest, p.lsn), true, true
			w.soil(k)
		}
		w.mu.Unlock()
	}
}

// soil notes that a chunk is to be written. REQUIRES: mu.
func (w *written) soil(k *chunk) {
	if !k.dirty {
		k.dirty = true
		w.dirty++
	}
}

// load brings a chunk into memory, where it stays while the caller has the turn: as it was read, or as it is read
// now (nil).
//
// REQUIRES: turn.
func (w *written) load(c chunkID, k *chunk) {
	w.mu.Lock()
	there, full := w.chunks[c] != nil, len(w.ring) >= w.most
	w.mu.Unlock()
	if there {
		return
	}
	if full {
		w.makeRoom()
	}
	if k == nil {
		k = w.read(c)
	}
	w.mu.Lock()
	k.at = len(w.ring)
	w.chunks[c] = k
	w.ring = append(w.ring, c)
	w.mu.Unlock()
}

// read reads a chunk from its file.
func (w *written) read(c chunkID) *chunk {
	k, mark := &chunk{used: true}, w.high.of(c) // what is read now is as new at least
	if f, err := w.opt.FS.Open(w.name(c.space), file.OpenOptions{ReadOnly: true}); err == nil {
		var b [chunkSize]byte
		if n, _ := f.ReadAt(b[:], int64(c.no)*chunkSize); n == chunkSize {
			w.decode(k, c, b[:])
		}
		_ = f.Close() // it was only read
	}
	if k.highest < mark {
		if k.highest == 0 && w.reached(c, mark) {
			k.highest = mark // the chunk alone is not known
		} else {
			k.lost = mark
		}
	}
	return k
}

// reached reports whether one of a chunk's pages is as new as its watermark in the tablespace's file.
func (w *written) reached(c chunkID, mark page.LSN) bool {
	f, err := w.opt.FS.Open(w.pages(c.space), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return true // whoever wants a page hears of it
	}
	defer func() { _ = f.Close() }() // it was only read
	p := file.AlignedBuffer(page.Size)
	for i := range int64(chunkPages) {
		id := page.ID{Space: c.space, No: c.no*chunkPages + uint32(i)}
		if n, _ := f.ReadAt(p, int64(id.No)*page.Size); n == page.Size && page.GetLSN(p) >= mark && page.Verify(p, id) == nil {
			return true
		}
	}
	return false
}

// makeRoom drops a chunk that was not used of late, after writing it if need be.
//
// REQUIRES: turn.
func (w *written) makeRoom() {
	w.mu.Lock()
	var c chunkID
	for range 2*len(w.ring) + 1 {
		w.hand = (w.hand + 1) % len(w.ring)
		c = w.ring[w.hand]
		if k := w.chunks[c]; !k.used {
			break
		}
		w.chunks[c].used = false
	}
	dirty := w.chunks[c].dirty
	w.mu.Unlock()
	if dirty {
		_ = w.write(c) // else these pages are not known for a while
	}
	w.mu.Lock()
	w.forget(c)
	w.mu.Unlock()
}

// forget drops a chunk. REQUIRES: mu.
func (w *written) forget(c chunkID) {
	k := w.chunks[c]
	if k == nil {
		return
	}
	if k.dirty {
		w.dirty--
	}
	delete(w.chunks, c)
	last := len(w.ring) - 1
	if moved := w.ring[last]; moved != c {
		w.ring[k.at], w.chunks[moved].at = moved, k.at
	}
	w.ring = w.ring[:last]
}

// forgetFrom drops the chunks of a tablespace from one on, in the order of the ring: the order in which files are
// written is to be that of the same simulation.
//
// REQUIRES: turn.
func (w *written) forgetFrom(space, no uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i < len(w.ring); {
		if c := w.ring[i]; c.space == space && c.no >= no {
			w.forget(c) // the last one comes here
		} else {
			i++
		}
	}
	w.writes++ // who has read one of them just now reads it again
}

// write writes a chunk to its file.
//
// REQUIRES: turn.
func (w *written) write(c chunkID) error {
	var b [chunkSize]byte
	w.mu.Lock()
	w.writes++
	k := w.chunks[c]
	le.PutUint32(b[4:], c.space)
	le.PutUint32(b[8:], c.no)
	le.PutUint32(b[12:], chunkVersion)
	highest := k.highest
	le.PutUint64(b[16:], uint64(highest))
	for i, lsn := range k.lsns {
		le.PutUint64(b[chunkHeader+8*i:], uint64(lsn))
	}
	w.mu.Unlock()
	le.PutUint32(b[:], w.sum(b[:]))
	f, err := w.opt.FS.Open(w.name(c.space), file.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b[:], int64(c.no)*chunkSize)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	w.high.wrote(c, highest)
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.dirty {
		k.dirty = false
		w.dirty--
	}
	return nil
}

func (w *written) sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(w.opt.Database[:], lsnTable), lsnTable, b[4:])
}

// decode fills a chunk, unless the bytes are none of this place.
func (w *written) decode(k *chunk, c chunkID, b []byte) {
	if le.Uint32(b) != w.sum(b) || le.Uint32(b[4:]) != c.space || le.Uint32(b[8:]) != c.no || le.Uint32(b[12:]) != chunkVersion {
		return
	}
	k.highest = page.LSN(le.Uint64(b[16:]))
	for i := range k.lsns {
		k.lsns[i] = page.LSN(le.Uint64(b[chunkHeader+8*i:]))
	}
}

// save writes what was noted: when nothing has come since it was asked last, after saveEvery,
// and if all has to be.
func (w *written) save(all bool) {
	w.saveChunks(all)
	w.high.raise(all, w.name)
}

func (w *written) saveChunks(all bool) {
	now := w.opt.Env.Monotonic()
	w.mu.Lock()
	quiet := !w.noted
	w.noted = false
	if w.dirty == 0 || !all && !quiet && now-w.saved < saveEvery {
		w.mu.Unlock()
		return
	}
	w.saved = now
	var list []chunkID
	for _, c := range w.ring {
		if w.chunks[c].dirty {
			list = append(list, c)
		}
	}
	w.mu.Unlock()
	w.turn.Lock()
	defer w.turn.Unlock()
	for _, c := range list {
		w.mu.Lock()
		there := w.chunks[c] != nil && w.chunks[c].dirty
		w.mu.Unlock()
		if there && w.write(c) != nil {
			return // the next time
		}
	}
}

// cut durably forgets the pages of a tablespace from one on, before they are cut off the file: those that come in
// their place are zeros until they are written.
func (w *written) cut(space, from uint32) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	c, i := chunkOf(page.ID{Space: space, No: from})
	if i > 0 {
		w.load(c, nil)
		w.mu.Lock()
		k := w.chunks[c]
		w.mu.Unlock()
		if k.lost == 0 { // else it stays lost
			if err := w.high.forget(space, c.no); err != nil {
				return err
			}
			w.mu.Lock()
			clear(k.lsns[i:])
			k.highest = slices.Max(k.lsns[:])
			w.soil(k)
			w.mu.Unlock()
			if err := w.write(c); err != nil {
				return err
			}
		}
		c.no++
	}
	if err := w.high.forget(space, c.no); err != nil {
		return err
	}
	w.forgetFrom(space, c.no)
	return w.shorten(space, c.no)
}

// shorten durably cuts a tablespace's file of LSNs to so many chunks, if it has more.
func (w *written) shorten(space, chunks uint32) error {
	f, err := w.opt.FS.Open(w.name(space), file.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	size, err := f.Size()
	if to := int64(chunks) * chunkSize; err == nil && size > to {
		err = f.Truncate(to)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// drop forgets a tablespace. A file that stays does no harm to another of its number, whose pages are newer.
func (w *written) drop(space uint32) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.forgetFrom(space, 0)
	w.high.drop(space, 0)
	_ = w.opt.FS.Remove(w.name(space))
}
