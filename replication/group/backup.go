package group

import (
	"context"
	"errors"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/replication/provision"
)

// BackupLogPrefix is what the names of a backup's log files begin with.
const BackupLogPrefix = "log."

// Backup writes a snapshot of the database as this member has it, and the group's log from
// there up to what is committed when the snapshot is written: with both any moment between
// can be restored. begin opens the files one after the other, as for [provision.Source.Dump].
// The group goes on meanwhile; what the log and the snapshot hold is not purged.
//
// last is the last transaction in the log. Besides those of begin and its writers errors are
// *[provision.RemoteError], and [ErrProvisioning] of a member that has no data.
func (n *Node) Backup(ctx context.Context, begin func(name string) (provision.ChunkWriter, error)) (m provision.Manifest, last uint64, err error) {
	c, err := n.running()
	if err != nil {
		return m, 0, err
	}
	m, err = c.source.Dump(ctx, begin, func(m *provision.Manifest) (err error) {
		last, err = c.backupLog(ctx, m, begin)
		return err
	})
	return m, last, err
}

func (c *core) backupLog(ctx context.Context, m *provision.Manifest, begin func(name string) (provision.ChunkWriter, error)) (last uint64, err error) {
	at, err := c.binlog.Position(m.Position.Index + 1)
	if err != nil {
		return 0, err
	}
	for number := at.File; ; number++ {
		x, err := c.binlog.Export(number)
		if err != nil {
			return 0, err
		}
		closed, next := x.Closed, x.Next
		w, err := begin(BackupLogPrefix + log.FileName(number))
		if err == nil {
			err = sendExport(w, x)
		}
		if err = errors.Join(err, x.Close(), ctx.Err()); err != nil {
			return 0, err
		}
		if !closed {
			return c.binlog.Number(next - 1)
		}
	}
}
