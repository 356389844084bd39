// Package simfile is the deterministic file system of tests: in memory, driven
// by a seed, able to lose power at any call and to fail or delay calls on demand.
//
// A crash test makes a file system with [New], runs a workload once to learn the
// number of changing calls ([FS.Mutations]), and then, for each k of interest,
// runs it again with [FS.CrashAt](k), takes [FS.CrashImage] and recovers from it:
//
//	fs := simfile.New(env, seed)
//	fs.CrashAt(k)
//	run(fs)                       // sees file.ErrCrashed from the k-th change on
//	recover(fs.CrashImage())      // what the disk held
//
// What a crash leaves, at least and at most:
//
//   - A sector of 512 bytes holds one of the contents it had from the last
//     successful Sync on (as of the call of that Sync), whatever its neighbours
//     hold: unsynced writes are kept, lost, torn and reordered.
//   - Size changes survive up to some point in their order; growth by a write may
//     stop at a sector in between. A truncation that survived takes its bytes with
//     it for good, and one that did not leaves them.
//   - A name created, renamed or removed without SyncDir of its directory is as
//     before or as after, for each name by itself, but operations on the same names
//     keep their order and a rename is never half done. What lies in a directory
//     whose own name was lost is lost.
//   - After a failed Sync each sector it should have written is on disk or not, and
//     no later Sync, which takes another handle, writes it unless it is written again.
//
// Contents are kept in copy-on-write chunks and zeros are not stored, so that an
// image costs little more than what changes in it.
//
// A process that is killed loses nothing by that, but [FS.KillImage] makes nothing durable
// either: what was not synced may still be lost with the power, some lives later.
//
// Disks do worse than lose power: [FS.Inject] makes calls fail, writes go astray and syncs
// lie, for all files or for some; [FS.FlipBit] is rot, at rest or while a file is in use, and
// [FS.BadSector] a sector that can no longer be read.
//
// A FS may be used under simenv and under env.Real, there by many goroutines.
// It does not model hard or symbolic links, permissions, or renames of directories.
package simfile

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// SectorSize is the unit in bytes that a crash keeps or loses whole.
const SectorSize = 512

// maxFileSize bounds a file, so that a wild offset fails and does not eat memory.
const maxFileSize = 64 << 30

// FS is a simulated file system. It implements [file.FS].
type FS struct {
	env   env.Env
	seed  uint64
	stats file.Stats

	// mu guards all below. Nothing parks while it is held.
	mu     sync.Mutex
	rng    *rand.Rand // outcomes of injected faults
	tree   tree
	faults []*Injection
	locks  map[*inode]bool

	capacity int64 // in bytes; 0 means no limit
	used     int64 // sum of the sizes of files that are named or open

	mutations int64 // changing calls so far
	crashAt   int64 // the call that crashes, counted from 1; 0 means none
	crashed   bool
	images    uint64 // images taken, so that each differs
	boots     uint64 // how often power was lost before
}

var _ file.FS = (*FS)(nil)

// New returns an empty file system.
func New(e env.Env, seed uint64) *FS {
	return &FS{
		env:   e,
		seed:  seed,
		rng:   rand.New(rand.NewPCG(seed, 0x66_61_75_6c_74)),
		tree:  newTree(),
		locks: map[*inode]bool{},
	}
}

// BootID implements [file.FS]: each loss of power makes another one.
func (s *FS) BootID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("simulated-%d", s.boots)
}

// Stats counts the work done so far.
func (s *FS) Stats() *file.Stats { return &s.stats }

// Mutations is the number of changing calls so far: writes, syncs, truncations,
// allocations, creations, removals, renames and directory syncs.
func (s *FS) Mutations() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mutations
}

// CrashAt makes the k-th changing call, counted from 1 since New, lose power: it
// and every later call of any kind return file.ErrCrashed. What the call was to
// change may or may not be on disk. 0 takes the crash back if it has not happened.
func (s *FS) CrashAt(k int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashAt = k
}

// Crash loses power now.
func (s *FS) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashed = true
}

// Crashed reports whether power was lost.
func (s *FS) Crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// SetCapacity limits the sum of all file sizes to n bytes; 0 takes the limit off.
// Files that are above a lowered limit stay but cannot grow.
func (s *FS) SetCapacity(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity = n
}

// Used is the sum of the sizes of all files that are named or open.
func (s *FS) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// resize changes the account of space by n bytes.
//
// REQUIRES: s.mu.
func (s *FS) resize(n int64) error {
	if n > 0 && s.capacity > 0 && s.used+n > s.capacity {
		return file.ErrNoSpace
	}
	s.used += n
	return nil
}

// enter begins a call: the scheduling point, then the delay and the error that
// were injected for it. injected is for the caller to act on; err ends the call.
func (s *FS) enter(op Op, name string) (injected, err error) {
	s.env.Yield()
	s.mu.Lock()
	if s.crashed {
		s.mu.Unlock()
		return nil, fail(op, name, file.ErrCrashed)
	}
	delay, injected := s.match(op, name)
	s.mu.Unlock()
	if delay > 0 {
		env.Sleep(s.env, delay)
	}
	return injected, nil
}

// change counts one changing call and reports whether it is the one that crashes.
// The caller then makes its change, unsynced, and calls s.settle.
//
// REQUIRES: s.mu, not crashed.
func (s *FS) change() (crashing bool) {
	s.mutations++
	return s.mutations == s.crashAt
}

// settle ends a changing call.
//
// REQUIRES: s.mu.
func (s *FS) settle(crashing bool, op Op, name string, err error) error {
	if crashing {
		s.crashed = true
		err = file.ErrCrashed
	}
	return fail(op, name, err)
}

// perform runs a call that is one change. check comes first and may refuse the
// call; then nothing counts as changed. Neither does it if do refuses.
func (s *FS) perform(op Op, name string, check, do func() error) error {
	injected, err := s.enter(op, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return fail(op, name, file.ErrCrashed)
	}
	if err := check(); err != nil {
		return fail(op, name, err)
	}
	if injected == nil {
		if err := do(); err != nil {
			return fail(op, name, err)
		}
	}
	return s.settle(s.change(), op, name, injected)
}

// fail names the operation and the file; nil stays nil.
func fail(op Op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op.String(), Path: name, Err: err}
}

// Errors of the operating system that callers may meet.
var (
	errIsDir    error = syscall.EISDIR
	errNotDir   error = syscall.ENOTDIR
	errNotEmpty error = syscall.ENOTEMPTY
	errTooBig   error = syscall.EFBIG
)
