package group

import (
	"errors"
	"io/fs"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
)

// A member that has lost its data does not get others under the same name: it has acknowledged entries, which the group would
// count twice, once more when it has data without them. So a start has to tell such a member from one that joins and
// has no data yet. Raft's state alone does not: it has a term once data that were received are about to come into use.

// awaitsName is an empty file in the directory of a node that joins, from before Raft's state says anything until its first
// data are in use.
const awaitsName = "joining"

// OpenHome opens the data directories of a stopped node. Error: those of [provision.OpenHome], also if the node has taken part in the
// group and the data in use are missing; nothing has been removed then.
func OpenHome(root file.FS, e env.Env) (*provision.Home, error) {
	id, err := readIdentity(root)
	if errors.Is(err, fs.ErrNotExist) {
		return provision.OpenHome(root)
	}
	if err != nil {
		return nil, err
	}
	return openHome(&Options{FS: root, Env: e}, id)
}

// openHome opens those of a member.
func openHome(opt *Options, id *identity) (*provision.Home, error) {
	used, err := takenPart(opt, id)
	if err != nil {
		return nil, err
	}
	if !used {
		return provision.OpenHome(opt.FS)
	}
	return provision.OpenUsedHome(opt.FS, len(id.founded.members) == 0)
}

// takenPart reports whether a member may have acknowledged anything. A state that cannot be read may tell of that.
func takenPart(opt *Options, id *identity) (bool, error) {
	awaits, err := opt.FS.Exists(awaitsName)
	if err != nil || awaits {
		return false, err
	}
	st, _, err := raftlog.ReadState(stateOptions(opt, id))
	switch {
	case errors.Is(err, raftlog.ErrNoState):
		return false, nil
	case errors.Is(err, raftlog.ErrDamaged):
		return true, nil
	case err != nil:
		return false, err
	}
	return st != raftlog.State{}, nil
}

// await notes that the node has no data yet.
func (n *Node) await() error {
	there, err := n.opt.FS.Exists(awaitsName)
	if err == nil && !there {
		err = file.WriteWhole(n.opt.FS, awaitsName, nil)
	}
	return err
}

// arrived notes that it has.
func (n *Node) arrived() error {
	err := n.opt.FS.Remove(awaitsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = n.opt.FS.SyncDir(".")
	}
	return err
}
