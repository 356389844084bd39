package group

import (
	"errors"
	"io/fs"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/raftlog"
)

// CheckFiles looks at the files of a stopped node by which it takes part in the group: who it is,
// and Raft's state. The error is why a start would be refused; a directory that belongs to no group
// has none.
func CheckFiles(root file.FS, e env.Env) error {
	if _, err := notHalfMade(root); err != nil {
		return err
	}
	id, err := readIdentity(root)
	if errors.Is(err, fs.ErrNotExist) {
		if used, e := root.Exists(raftlog.StateFileName); e != nil || !used {
			return e
		}
		return errIdentity
	}
	if err != nil {
		return err
	}
	st, err := raftlog.OpenState(stateOptions(&Options{FS: root, Env: e}, id))
	if err != nil {
		return err
	}
	return st.Close()
}
