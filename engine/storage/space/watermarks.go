package space

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// watermarks know the highest LSN that each chunk of LSNs has had durably in its file. So a disk that
// has lost the writes of a tablespace and those of its LSNs as well, or gives both back as they were
// before, is found: the chunk is older than its watermark. They are one small file for all tablespaces,
// lsn/watermarks, which is replaced as a whole:
//
//	0  4  CRC-32C of the database's id and of what follows
//	4  4  format version
//	8  4  tablespaces, ascending; for each:
//	   4  number
//	   4  chunks n
//	   8n highest LSN of each chunk, 0: not known
//
// # Invariants
//
//   - A watermark is raised once the chunk's file was synced. So no crash leaves one above its chunk, unless the write of
//     that chunk was torn.
//   - The page that a watermark comes from is in the tablespace's file, as it was then or newer: watermarks
//     are durably forgotten before pages are cut off, and before a tablespace's number is used again.
//   - No crash leaves the file damaged: it is synced before it takes the place of the one before. Where it is, the disk
//     does not keep what was written, and what it may have lost of the pages would not be found without it.
type watermarks struct {
	opt   *Options
	name  string
	round *env.Mutex // held while files are synced, and while watermarks are forgotten

	mu      sync.Mutex // guards what follows
	lsns    map[uint32][]page.LSN
	pending map[chunkID]page.LSN // in files that were not synced since
	due     time.Duration        // when files may be synced next
}

const (
	watermarksVersion = 1
	watermarksHeader  = 12
	// syncEvery is how long files wait at least to be synced, and syncShare how many times as long as it took the
	// last time: at most a hundredth of the time.
	syncEvery = 10 * time.Second
	syncShare = 100
)

// newWatermarks reads the file, if there is one. Errors: [ErrWatermarks], and those of the file system.
func newWatermarks(opt *Options, dir string) (*watermarks, error) {
	w := &watermarks{opt: opt, name: dir + "/watermarks", round: env.NewMutex(opt.Env), lsns: map[uint32][]page.LSN{}, pending: map[chunkID]page.LSN{}, due: opt.Env.Monotonic() + syncEvery}
	f, err := opt.FS.Open(w.name, file.OpenOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("space: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("space: %w", err)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("space: %w", err)
	}
	if !w.decode(b) {
		return nil, fmt.Errorf("space: %s: %w", w.name, ErrWatermarks)
	}
	return w, nil
}

// of is a chunk's watermark, 0 if none is known.
func (w *watermarks) of(c chunkID) page.LSN {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.lsns[c.space]; int(c.no) < len(list) {
		return list[c.no]
	}
	return 0
}

// wrote takes down what a chunk's file holds, once it is synced.
func (w *watermarks) wrote(c chunkID, highest page.LSN) {
	w.mu.Lock()
	w.pending[c] = highest
	w.mu.Unlock()
}

// raise syncs files that were written to, by the names of their tablespaces, and keeps what is durable then: when it is
// time, or now. What cannot be synced may be lost even if a later sync succeeds: it gets no watermark before it is
// written again.
func (w *watermarks) raise(now bool, name func(space uint32) string) {
	w.round.Lock()
	defer w.round.Unlock()
	w.mu.Lock()
	began := w.opt.Env.Monotonic()
	if len(w.pending) == 0 || !now && began < w.due {
		w.mu.Unlock()
		return
	}
	pending := w.pending
	w.pending = map[chunkID]page.LSN{}
	w.mu.Unlock()

	chunks := slices.SortedFunc(maps.Keys(pending), chunkID.compare)
	var failed error
	for i, c := range chunks {
		if i == 0 || c.space != chunks[i-1].space {
			failed = w.sync(name(c.space))
		}
		if failed != nil {
			delete(pending, c)
		}
	}
	w.mu.Lock()
	for c, highest := range pending {
		w.set(c, highest)
	}
	w.mu.Unlock()
	_ = w.replace() // the next time
	w.mu.Lock()
	w.due = w.opt.Env.Monotonic() + max(syncEvery, syncShare*(w.opt.Env.Monotonic()-began))
	w.mu.Unlock()
}

func (w *watermarks) sync(name string) error {
	f, err := w.opt.FS.Open(name, file.OpenOptions{})
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// set raises a watermark. REQUIRES: mu.
func (w *watermarks) set(c chunkID, lsn page.LSN) {
	list := w.lsns[c.space]
	if n := int(c.no) + 1; n > len(list) {
		list = append(list, make([]page.LSN, n-len(list))...)
		w.lsns[c.space] = list
	}
	list[c.no] = max(list[c.no], lsn)
}

// forget durably forgets the watermarks of a tablespace's chunks from one on. Errors: those of the file system.
func (w *watermarks) forget(space, from uint32) error {
	if !w.drop(space, from) {
		return nil
	}
	return w.store()
}

// drop forgets the watermarks of a tablespace's chunks from one on, and reports whether there were some:
// the file has them until it is stored.
func (w *watermarks) drop(space, from uint32) bool {
	w.round.Lock()
	defer w.round.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.pending, func(c chunkID, _ page.LSN) bool { return c.space == space && c.no >= from })
	list := w.lsns[space]
	if int(from) >= len(list) {
		return false
	}
	if w.lsns[space] = list[:from]; from == 0 {
		delete(w.lsns, space)
	}
	return true
}

// encode returns the file. REQUIRES: mu.
func (w *watermarks) encode() []byte {
	b := make([]byte, watermarksHeader)
	le.PutUint32(b[4:], watermarksVersion)
	le.PutUint32(b[8:], uint32(len(w.lsns)))
	for _, space := range slices.Sorted(maps.Keys(w.lsns)) {
		b = le.AppendUint32(b, space)
		b = le.AppendUint32(b, uint32(len(w.lsns[space])))
		for _, lsn := range w.lsns[space] {
			b = le.AppendUint64(b, uint64(lsn))
		}
	}
	le.PutUint32(b, w.sum(b))
	return b
}

func (w *watermarks) sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(w.opt.Database[:], lsnTable), lsnTable, b[4:])
}

// decode reports whether the file is as it was written. What a program that knows another format has written is not known.
func (w *watermarks) decode(b []byte) bool {
	if len(b) < watermarksHeader || le.Uint32(b) != w.sum(b) {
		return false
	}
	if le.Uint32(b[4:]) != watermarksVersion {
		return true
	}
	spaces := le.Uint32(b[8:])
	b = b[watermarksHeader:]
	for range spaces {
		if len(b) < 8 || uint64(len(b)-8) < 8*uint64(le.Uint32(b[4:])) {
			return false
		}
		list := make([]page.LSN, le.Uint32(b[4:]))
		for i := range list {
			list[i] = page.LSN(le.Uint64(b[8+8*i:]))
		}
		w.lsns[le.Uint32(b)] = list
		b = b[8+8*len(list):]
	}
	return true
}

// store makes durable what is known now. Errors: those of the file system.
func (w *watermarks) store() error {
	w.round.Lock()
	defer w.round.Unlock()
	if err := w.replace(); err != nil {
		return fmt.Errorf("space: keeping the highest LSNs of tablespaces: %w", err)
	}
	return nil
}

// replace replaces the file. REQUIRES: round.
func (w *watermarks) replace() error {
	w.mu.Lock()
	b := w.encode()
	w.mu.Unlock()
	temp := w.name + ".new"
	f, err := w.opt.FS.Open(temp, file.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := w.opt.FS.Rename(temp, w.name); err != nil {
		return err
	}
	return w.opt.FS.SyncDir(path.Dir(w.name))
}
