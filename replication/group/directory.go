package group

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/raftlog"
)

// lockName is the file whose lock is held while a process uses the directory.
const lockName = "trireme.lock"

// lock keeps other processes out of the directory: before it nothing in there is
// looked at.
func (n *Node) lock() error {
	err := n.opt.FS.MkdirAll(".")
	if err == nil {
		n.locked, err = n.opt.FS.Lock(lockName)
	}
	if err != nil {
		return fmt.Errorf("group: the node's directory: %w", err)
	}
	return nil
}

func (n *Node) unlock() error { return n.locked.Close() }

// notHalfMade makes sure that nothing was cut short in a directory that makes it another member's, and returns the
// names in it. Until that is done, a node that started there would found or join a group without the data.
func notHalfMade(fsys file.FS) (names []string, err error) {
	if names, err = fsys.List("."); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(names, discardedName):
		return nil, errDiscarded
	case slices.Contains(names, planName):
		return nil, errRegrouping
	case slices.Contains(names, restoringName) && !slices.Contains(names, identityName):
		return nil, errRestoring
	}
	return names, nil
}

// unused makes sure that a directory that does not say whose it is has not been used
// by a member yet: what that one has promised must not be forgotten.
func unused(fsys file.FS, s raftlog.State) error {
	names, err := fsys.List(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "data.") {
			return fmt.Errorf("%w (%s is there)", errNoIdentity, name)
		}
	}
	if s != (raftlog.State{}) {
		return fmt.Errorf("%w (%s knows term %d)", errNoIdentity, raftlog.StateFileName, s.Term)
	}
	return nil
}

var errNoIdentity = errors.New("group: the file named member, which says who this node is, is missing, but the directory has been used; " +
	"put the file back, or empty the directory and let the node join as a new member")
