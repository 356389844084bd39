package simfile

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Op is a kind of call, or several or'ed together.
type Op uint16

// The kinds of calls.
const (
	OpOpen   Op = 1 << iota // Open of an existing file
	OpCreate                // Open or Lock that makes the file
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpAllocate
	OpRemove
	OpRename
	OpList // List and Exists
	OpMkdir
	OpSyncDir
	OpLock

	OpAny Op = 1<<iota - 1
)

var opNames = [...]string{
	"open", "create", "read", "write", "sync", "truncate", "allocate",
	"remove", "rename", "list", "mkdir", "sync directory", "lock",
}

func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Fault is what to do to calls of some kind.
type Fault struct {
	// Ops are the kinds of calls.
	Ops Op
	// Name is a pattern of path.Match for the file's name or its base name.
	// Empty means every file.
	Name string
	// Skip lets so many matching calls through first.
	Skip int
	// Times is how many calls are hit after that; 0 means all.
	Times int
	// Err is what the calls return. nil only delays them.
	//
	// A failed write has written nothing or some first part, up to the end of a sector
	// as systems do that fail block by block. A failed Sync leaves each unsynced sector on disk or lost (see the package comment).
	// Other failed calls change nothing.
	Err error
	// Lie makes writes and syncs return nil without having done what they say. A lost
	// write is seen until power is lost or the cache is dropped, and never gets to the
	// disk; a Sync makes nothing durable.
	Lie bool
	// Misdirect makes lost writes of Lie, and puts what they hold so many bytes from where
	// it belongs, a multiple of SectorSize, as far as the file reaches.
	Misdirect int64
	// Delay is how long the calls take, on the environment's clock; up to Jitter
	// more is drawn at random.
	Delay, Jitter time.Duration
}

// Injection is a fault in force.
type Injection struct {
	fs    *FS
	fault Fault
	seen  int
	hits  int
	off   bool
}

// Inject puts a fault in force. Where several match a call, their delays add up
// and the first error counts.
func (s *FS) Inject(f Fault) *Injection {
	if _, err := path.Match(f.Name, "x"); err != nil {
		panic("simfile: bad pattern in Fault.Name: " + f.Name)
	}
	if f.Lie && (f.Ops&^(OpWrite|OpSync) != 0 || f.Err != nil) || f.Misdirect%SectorSize != 0 || f.Misdirect != 0 && !f.Lie {
		panic("simfile: only writes and syncs lie, and they do not fail")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &Injection{fs: s, fault: f}
	s.faults = append(s.faults, in)
	return in
}

// Hits is how many calls it has hit.
func (in *Injection) Hits() int {
	in.fs.mu.Lock()
	defer in.fs.mu.Unlock()
	return in.hits
}

// Stop takes the fault out of force.
func (in *Injection) Stop() {
	in.fs.mu.Lock()
	defer in.fs.mu.Unlock()
	in.off = true
}

// match returns what the faults in force do to a call.
//
// REQUIRES: s.mu.
func (s *FS) match(op Op, name string) (delay time.Duration, err error) {
	for _, in := range s.faults {
		f := &in.fault
		if in.off || f.Ops&op == 0 || !matchName(f.Name, name) {
			continue
		}
		in.seen++
		if in.seen <= f.Skip || f.Times > 0 && in.hits >= f.Times {
			continue
		}
		in.hits++
		delay += f.Delay
		if f.Jitter > 0 {
			delay += time.Duration(s.rng.Int64N(int64(f.Jitter)))
		}
		if err == nil {
			err = f.Err
		}
		if err == nil && f.Lie {
			err = &lie{f.Misdirect}
		}
	}
	return delay, err
}

// lie is what a call does that says that all is well.
type lie struct{ by int64 }

func (*lie) Error() string { return "a call that lies" }

// FlipBit flips a bit of a file, in memory and on disk.
func (s *FS) FlipBit(name string, off int64, bit uint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ino, err := s.reach(name, off)
	if err != nil {
		return err
	}
	for _, c := range []*chunks{&ino.cur, &ino.disk} {
		c.own(int(off / chunkSize)).data[off%chunkSize] ^= 1 << bit
	}
	return nil
}

// BadSector makes the sector that holds a byte of a file unreadable: calls that read it or
// write a part of it fail until one has written all of it.
func (s *FS) BadSector(name string, off int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ino, err := s.reach(name, off)
	if err != nil {
		return err
	}
	if ino.bad == nil {
		ino.bad = map[int64]bool{}
	}
	ino.bad[off/SectorSize] = true
	return nil
}

// reach finds a file that has a byte at off.
//
// REQUIRES: s.mu.
func (s *FS) reach(name string, off int64) (*inode, error) {
	ino, err := s.tree.lookup(name)
	if err == nil && (ino.dir || off < 0 || off >= ino.size) {
		err = fs.ErrInvalid
	}
	return ino, err
}

// DropCaches makes reads come from the disk: what was lost and not written since is gone.
func (s *FS) DropCaches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range sorted(s.tree.cur) {
		ino := s.tree.cur[name]
		for _, i := range slices.Sorted(maps.Keys(ino.lost)) {
			if _, dirty := ino.dirty[i]; !dirty && ino.lost[i] != 0 {
				ino.cur.set(i, merge(ino.cur.at(i), ino.disk.at(i), ino.lost[i]))
				delete(ino.lost, i)
			}
		}
	}
}

func matchName(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	if ok, _ := path.Match(pattern, name); ok {
		return true
	}
	ok, _ := path.Match(pattern, path.Base(name))
	return ok
}
