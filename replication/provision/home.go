package provision

import (
	"sync"

	"github.com/triremedb/trireme/engine/storage/file"
)

// Home is the place of a member's data: a directory for the engine, and during
// provisioning a second one beside it. The file named data.current says which one is
// in use, and where its data came from.
type Home struct {
	fsys file.FS

	mu      sync.Mutex // guards the following
	current generation
	next    *generation // nil: nothing is being received
}

// generation is a data directory.
type generation struct {
	number   uint64
	received bool     // by a receiver, not made empty
	complete bool     // may become the data in use
	manifest Manifest // of what was received
}

// OpenHome finds out which directory is in use, and makes a home in an empty file
// system. What a crash has cut short is finished: a directory that is complete comes
// into use, and those that are not in use any more are removed. What is half
// received stays, for a receiver to go on with.
func OpenHome(fsys file.FS) (*Home, error) {
	return &Home{fsys: fsys, current: generation{number: 1}}, nil
}

// Data is the directory of the engine in use.
func (h *Home) Data() file.FS { return nil }

// Received says which snapshot the data in use was received as; ok is false if it
// was not. The log must not end before that position, nor hold another entry there:
// if it does, a crash came between the swap and the reset of the log, which then
// begins behind the position.
func (h *Home) Received() (m Manifest, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.manifest, h.current.received
}

// Swap puts what was received in the place of the data in use, which are removed.
//
// REQUIRES: a receiver has returned its manifest; the engine in use is closed.
func (h *Home) Swap() error { return nil }

// Discard removes what was received so far.
//
// REQUIRES: no receiver is running.
func (h *Home) Discard() error { return nil }
