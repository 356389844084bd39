package group

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/raftlog"
)

// CheckFiles looks at the files of a stopped node by which it takes part in the group: who it is,
// Raft's state, and what it has promised and learned. The error is why a start would be refused, or what
// an operator is to know; an empty directory has none.
func CheckFiles(root file.FS, e env.Env) error {
	if _, err := notHalfMade(root); err != nil {
		return err
	}
	id, err := readIdentity(root)
	if errors.Is(err, fs.ErrNotExist) {
		if used, e := root.Exists(raftlog.StateFileName); e != nil || used {
			return cmp.Or(e, errIdentity)
		}
		return unused(root, raftlog.State{})
	}
	if err != nil {
		return err
	}
	for _, read := range []func() error{
		func() error { return noRivals(root) },
		func() error { _, err := readReplaced(root); return err },
		func() error { _, err := readCluster(root); return err },
		func() error { return (&longest{fsys: root}).read() },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	_, lost, err := raftlog.ReadState(stateOptions(&Options{FS: root, Env: e}, id))
	if err != nil {
		return err
	}
	return lostStates(lost)
}

// DataCheck is what the data of a stopped node say of the log beside them.
type DataCheck struct {
	// Known is up to which entry the log was durable: Known of [log.Options].
	Known          uint64
	applied, given uint64
	state          raftlog.State
}

// CheckData looks at what the data of a stopped node say of the group. data is the directory in use, and eng is open in it.
// The error is why a start would be refused.
func CheckData(root, data file.FS, e env.Env, eng *storage.Engine) (d DataCheck, err error) {
	_, pos := eng.Applied()
	d.applied, d.Known = pos.Index, pos.Index
	if d.given, err = readGiven(data); err != nil {
		return d, err
	}
	if id, err := readIdentity(root); err == nil { // or CheckFiles says what is wrong
		d.state, _, _ = raftlog.ReadState(stateOptions(&Options{FS: root, Env: e}, id))
	}
	d.Known = max(d.applied, d.given, d.state.Commit)
	b, found, err := eng.Catalog.GetState(nil, dict.Local, []byte(membershipKey))
	if err == nil && found {
		_, err = decodeRoster(b)
	}
	if err != nil {
		err = fmt.Errorf("group: who is in it: %w", err)
	}
	return d, err
}

// Log compares a log with what was there. The error is why a start would be refused.
func (d *DataCheck) Log(l *log.Log) error { return raftlog.Missing(l, d.state, d.applied, d.given) }
