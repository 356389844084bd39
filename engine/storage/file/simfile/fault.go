package simfile

import (
	"path"
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
	// A failed write has written nothing or some first part. A failed Sync
	// leaves each unsynced sector on disk or lost (see the package comment).
	// Other failed calls change nothing.
	Err error
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
	}
	return delay, err
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
