package provision

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/triremedb/trireme/engine/storage/file"
)

// Names in a home. data.<number> is a data directory; of those the one is in use whose
// number is in the file data.current. A higher one with the file "receiving" is being
// received, or waits for [Home.Swap]: nothing on disk tells the two apart. Numbers are not used
// again, and a directory that is to be removed loses that file first: whatever
// a crash leaves of it, it is neither gone on with nor opened.
const (
	currentName   = "data.current"
	dirPrefix     = "data."
	receivingName = "receiving"
	// completeName is a file by which older programs said that a directory may come into use at
	// the next start, whatever the member had acknowledged meanwhile. It counts for nothing.
	completeName = "complete"
)

// Home is the place of a member's data: a directory for the engine, and during
// provisioning a second one beside it. The file data.current says which one is in use,
// and where its data came from. What else is in the file system it leaves alone.
//
// Its methods are safe for concurrent use as far as they say nothing else.
type Home struct {
	fsys file.FS

	mu      sync.Mutex // guards the following
	current generation
	next    *generation // nil: nothing is being received
	newest  uint64      // the highest number seen

	swapped bool   // Swap has brought what was received into use, and not removed all of the old
	former  string // the directory of the old one, until the caller has had it
}

// generation is a data directory.
type generation struct {
	number   uint64
	received bool // by a receiver, not made empty
	complete bool // may become the data in use; known to the process alone that received it
	manifest Manifest
}

func (g *generation) dir() string { return dirPrefix + strconv.FormatUint(g.number, 10) }

// ErrHome says that the data directories are not what this package leaves behind.
var ErrHome = errors.New("provision: the data directories are not as they were left")

// OpenHome finds out which directory is in use, and makes a home in an empty file
// system. Directories that are not in use any more are removed. What was received
// stays, for a receiver to go on with. It does not come into use, even if it is complete: the
// caller of [Home.Swap] has made sure that the data in use are not ahead of it, and a start
// cannot know.
//
// Errors: [ErrHome], those of the file system. Nothing is removed then.
func OpenHome(fsys file.FS) (*Home, error) { return openDirectories(fsys, false, false) }

// OpenUsedHome opens a home that has had data in use, which must be there; given says that they were received. A file
// data.current that is older than they are, since the disk has lost what it had confirmed, or missing, must not have them removed.
func OpenUsedHome(fsys file.FS, given bool) (*Home, error) { return openDirectories(fsys, true, given) }

func openDirectories(fsys file.FS, used, given bool) (*Home, error) {
	h := &Home{fsys: fsys}
	if err := fsys.MkdirAll("."); err != nil {
		return nil, err
	}
	// The process before may have been killed when it had renamed something and not yet made
	// that durable. What is found must not be another one after the next loss of power.
	if err := fsys.SyncDir("."); err != nil {
		return nil, err
	}
	numbers, err := h.directories()
	if err != nil {
		return nil, err
	}
	g, err := h.findCurrent(numbers)
	if err == nil && used && (given && !g.received || !slices.Contains(numbers, g.number)) {
		err = fmt.Errorf("%w: the data in use are not there (by %s they are in %s): put the files back, or empty the node's directory and let it join as a new member",
			ErrHome, currentName, g.dir())
	}
	if err != nil {
		return nil, err
	}
	if known, err := fsys.Exists(currentName); err != nil {
		return nil, err
	} else if !known {
		if err := h.writeCurrent(&g); err != nil {
			return nil, err
		}
	}
	h.current = g
	h.newest = max(h.newest, g.number)
	if err := h.settle(numbers); err != nil {
		return nil, err
	}
	return h, nil
}

// CurrentDir tells which directory of a home is in use; nothing is changed. Errors: fs.ErrNotExist if there are no data;
// [ErrHome], those of the file system.
func CurrentDir(fsys file.FS) (name string, err error) {
	h := &Home{fsys: fsys}
	numbers, err := h.directories()
	if err != nil {
		return "", err
	}
	g, err := h.findCurrent(numbers)
	if err == nil && !slices.Contains(numbers, g.number) {
		err = fs.ErrNotExist
	}
	return g.dir(), err
}

// findCurrent tells which of the directories with these numbers is in use. Where nothing says so it is the first.
func (h *Home) findCurrent(numbers []uint64) (g generation, err error) {
	g, err = h.readCurrent()
	switch {
	case errors.Is(err, fs.ErrNotExist) && h.newest > 1:
		err = fmt.Errorf("%w: %s is missing, but %s%d is there (put it back, or empty the node's directory and let it join as a new member)",
			ErrHome, currentName, dirPrefix, h.newest)
	case errors.Is(err, fs.ErrNotExist):
		g, err = generation{number: 1}, nil
	case err == nil && g.received && !slices.Contains(numbers, g.number):
		err = fmt.Errorf("%w: %s names %s, which is missing: put it back, or empty the node's directory and let it join as a new member",
			ErrHome, currentName, g.dir())
	}
	return g, err
}

// directories lists the numbers of the data directories.
func (h *Home) directories() (numbers []uint64, err error) {
	names, err := h.fsys.List(".")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		digits, ours := strings.CutPrefix(name, dirPrefix)
		n, err := strconv.ParseUint(digits, 10, 63)
		if ours && err == nil && n > 0 && strconv.FormatUint(n, 10) == digits {
			numbers = append(numbers, n)
			h.newest = max(h.newest, n)
		}
	}
	return numbers, nil
}

// settle decides what becomes of the directories that are not in use.
func (h *Home) settle(numbers []uint64) error {
	if err := h.inUse(); err != nil { // a crash came after it was brought into use
		return err
	}
	for _, n := range numbers {
		if n <= h.current.number {
			continue
		}
		g := generation{number: n, received: true}
		receiving, err := h.fsys.Exists(g.dir() + "/" + receivingName)
		if err == nil {
			err = h.forgetComplete(&g)
		}
		if err != nil {
			return err
		}
		if receiving && (h.next == nil || h.next.number < n) {
			h.next = &g
		}
	}
	return h.sweep(numbers)
}

// forgetComplete makes sure that no older program brings a directory into use.
func (h *Home) forgetComplete(g *generation) error {
	err := h.fsys.Remove(g.dir() + "/" + completeName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = h.fsys.SyncDir(g.dir())
	}
	return err
}

// sweep removes the directories that nobody needs.
func (h *Home) sweep(numbers []uint64) error {
	for _, n := range numbers {
		if n != h.current.number && (h.next == nil || n != h.next.number) {
			if err := h.remove(&generation{number: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a data directory. First it loses what could bring it into use.
func (h *Home) remove(g *generation) error {
	for _, name := range []string{completeName, receivingName} {
		if err := h.fsys.Remove(g.dir() + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := h.fsys.SyncDir(g.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = file.RemoveTree(h.fsys, g.dir())
	}
	if err == nil {
		err = h.fsys.SyncDir(".")
	}
	return err
}

// Data is the directory of the engine in use. It is not made before the engine is.
func (h *Home) Data() file.FS {
	h.mu.Lock()
	defer h.mu.Unlock()
	return subFS{h.fsys, h.current.dir()}
}

// Dir is the name of the directory of the engine in use.
func (h *Home) Dir() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.dir()
}

// Received says which snapshot the data in use was received as; ok is false if it
// was not. The log must not end before that position, nor hold another entry there:
// if it does, a crash came between the swap and the reset of the log, which then
// begins behind the position.
func (h *Home) Received() (m Manifest, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.manifest, h.current.received
}

// Receiving reports whether something is half received, or waits for [Home.Swap]. After
// [OpenHome] nothing waits before a receiver has run.
func (h *Home) Receiving() (half, complete bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next != nil && !h.next.complete, h.next != nil && h.next.complete
}

// Swap puts what was received in the place of the data in use, which are removed. Before that former, unless it is nil, is called,
// and may move files out of their directory; not if the process ends just before: the next start removes them. After an error, which
// may be former's, Swap can be called again; [Home.Received] tells which of the two are in use.
//
// REQUIRES: a receiver has returned its manifest; the engine in use is closed; nothing that
// has been acknowledged on the strength of the data in use is missing in what was received; no
// other task uses the home.
func (h *Home) Swap(former func(dir string) error) error {
	if !h.swapped {
		if h.next == nil || !h.next.complete {
			return fmt.Errorf("%w: there is nothing complete to swap in", ErrHome)
		}
		if err := h.writeCurrent(h.next); err != nil {
			return fmt.Errorf("provision: bringing %s into use: %w", h.next.dir(), err)
		}
		old := h.current.dir()
		h.mu.Lock()
		h.current, h.next = *h.next, nil
		h.mu.Unlock()
		h.swapped, h.former = true, old
	}
	if former != nil && h.former != "" {
		if err := former(h.former); err != nil {
			return fmt.Errorf("provision: keeping what is left of the old data: %w", err)
		}
	}
	h.former = ""
	if err := h.inUse(); err != nil {
		return err
	}
	numbers, err := h.directories()
	if err == nil {
		err = h.sweep(numbers)
	}
	if err != nil {
		return fmt.Errorf("provision: removing the old data: %w", err)
	}
	h.swapped = false
	return nil
}

// inUse makes sure that nothing calls the directory in use one that is being received.
func (h *Home) inUse() error {
	err := h.fsys.Remove(h.current.dir() + "/" + receivingName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = h.fsys.SyncDir(h.current.dir())
	}
	return err
}

// Discard removes what was received so far.
//
// REQUIRES: no receiver is running; no other task uses the home.
func (h *Home) Discard() error {
	h.mu.Lock()
	g := h.next
	h.next = nil
	h.mu.Unlock()
	if g == nil {
		return nil
	}
	return h.remove(g)
}

// receive returns the directory to receive into: that of an earlier run, or a new one.
func (h *Home) receive() (fsys file.FS, resumed bool, err error) {
	if h.next != nil {
		return subFS{h.fsys, h.next.dir()}, true, nil
	}
	g := &generation{number: h.newest + 1, received: true}
	sub := subFS{h.fsys, g.dir()}
	if err := sub.MkdirAll("."); err != nil {
		return nil, false, err
	}
	// A directory that could not be made whole, since the disk is full, is taken again at the next
	// try, which a receiver makes every few seconds: nothing has been received into it.
	if err := file.WriteWhole(sub, receivingName, nil); err != nil {
		return nil, false, err
	}
	if err := h.fsys.SyncDir("."); err != nil {
		return nil, false, err
	}
	h.newest = g.number
	h.mu.Lock()
	h.next = g
	h.mu.Unlock()
	return sub, false, nil
}

// complete says that the directory that was received into can be swapped in.
//
// REQUIRES: the files in it are durable.
func (h *Home) complete(m Manifest) error {
	g := *h.next
	g.complete, g.manifest = true, m
	if err := h.fsys.SyncDir(g.dir()); err != nil {
		return err
	}
	h.mu.Lock()
	h.next = &g
	h.mu.Unlock()
	return nil
}

// A record is a generation on disk: magic, what follows, CRC32C of both.
const recordMagic = "TRHOME1\n"

// maxRecord bounds a record in bytes.
const maxRecord = maxMembership + 4096

func appendRecord(g *generation) []byte {
	b := appendUints([]byte(recordMagic), g.number, boolUint(g.received))
	b = g.manifest.append(b)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readRecord reads a record. The error wraps fs.ErrNotExist or [ErrMalformed], or is
// one of reading.
func (h *Home) readRecord(name string) (g generation, err error) {
	b, err := file.ReadWhole(h.fsys, name, maxRecord)
	if err != nil && !errors.Is(err, file.ErrTooLong) {
		return g, err
	}
	if len(b) >= len(recordMagic)+4 && string(b[:len(recordMagic)]) == recordMagic {
		body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
		if crc32.Checksum(body, castagnoli) == sum {
			d := &decoder{b: body[len(recordMagic):]}
			g.number, g.received = d.uint(1<<63-1), d.bool()
			g.manifest = d.manifest()
			if d.end() == nil && g.number > 0 {
				return g, nil
			}
		}
	}
	return g, fmt.Errorf("%s: %w", name, ErrMalformed)
}

func (h *Home) readCurrent() (generation, error) {
	g, err := h.readRecord(currentName)
	if errors.Is(err, ErrMalformed) {
		err = fmt.Errorf("%w: %w (restore the file, or rebuild this member)", ErrHome, err)
	}
	return g, err
}

// writeCurrent says which directory is in use, atomically and durably.
func (h *Home) writeCurrent(g *generation) error {
	return file.WriteWhole(h.fsys, currentName, appendRecord(g))
}

// receiving is the directory that is being received into.
func (h *Home) receiving() file.FS {
	h.mu.Lock()
	defer h.mu.Unlock()
	return subFS{h.fsys, h.next.dir()}
}
