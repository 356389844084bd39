// Package process tells when another process on this host has ended, without talking to it.
//
// A process presents itself by an [Identity]: its number, and a descriptor on which it holds a
// memory file that has a random name. The identity travels over a connection. A process that is
// given one looks for that file in its own /proc, and if it is there the two share a kernel and
// a PID namespace, and the number means the same process to both. Nothing else would do: numbers
// repeat between namespaces and over time, and virtual machines that were started from one
// snapshot have the same boot id, the same inode of the PID namespace, and processes of equal
// numbers that started at equal times.
//
// Invariant: [Watch.Wait] returns true only after every thread of the process that presented
// the identity has ended.
package process

import "errors"

// Identity is how a process presents itself. The zero value says nothing, and cannot be watched.
type Identity struct {
	PID        uint32
	Descriptor uint32 // where the process holds the file
	Token      [16]byte
}

// ErrElsewhere says that the process is not to be seen from here: it runs on another host or in
// another PID namespace, has ended, belongs to another user, or the system tells nothing of it.
var ErrElsewhere = errors.New("process: not to be seen from here")
