package group

import (
	"context"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/replication/provision"
)

// BackupLogPrefix is what the names of a backup's log files begin with.
const BackupLogPrefix = "log."

// Standing is how far a member was behind its group when it was asked.
type Standing struct {
	// Heard: a leader, and with it a majority, has said since what the group has agreed on.
	Heard bool
	// Behind are the entries that the group had agreed on then and that this member does not know to be committed;
	// without a leader nobody knows.
	Behind uint64
	// Age is how old what it has is, by the clocks of the last leader and of this member; -1: unknown.
	Age time.Duration
}

// Current reports whether the member had everything that the group had acknowledged when it was asked.
func (s *Standing) Current() bool { return s.Heard && s.Behind == 0 }

// Standing finds out how this member stands to its group. It waits up to limit until the member is current.
// Errors: ErrStopped, ErrProvisioning, why the node has failed, and ctx's.
func (n *Node) Standing(ctx context.Context, limit time.Duration) (s Standing, err error) {
	c, err := n.running()
	if err != nil {
		return s, err
	}
	w := waiting{deadline: c.env.Monotonic() + limit, ended: func() bool { return ctx.Err() != nil }}
	index, err := c.askLeader(w)
	s.Heard = err == nil
	for p := c.env.NewParker(); err == nil && c.binlog.Committed() < index; {
		if err = w.pause(c.env, p); errors.Is(err, ErrStale) {
			s.Behind = index - min(index, c.binlog.Committed())
		}
	}
	if err := ctx.Err(); err != nil {
		return s, err
	}
	if errors.Is(err, ErrStopped) {
		return s, err
	}
	_, pos := c.engine.Applied()
	s.Age = c.lag(pos.Index, c.binlog.Committed()).Time
	return s, nil
}

// Backup writes a snapshot of the database as this member has it, and the group's log from
// there up to what is committed when the snapshot is written: with both any moment between
// can be restored. begin opens the files one after the other, as for [provision.Source.Dump].
// The group goes on meanwhile; what the log and the snapshot hold is not purged.
//
// Every file of the log is verified before it is sent, as its receiver verifies it. Meanwhile the writer gets empty chunks, so that it
// hears that the backup goes on.
//
// last is the last transaction in the log. Besides those of begin and its writers errors are
// *[provision.RemoteError], *[log.CorruptError] if this member's log is damaged, and [ErrProvisioning] of a member that has no data.
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
	// The snapshot's own entry is committed; the one behind it may be the first of a file of which nothing is.
	at, err := c.binlog.Position(m.Position.Index)
	if errors.Is(err, log.ErrCompacted) { // the log begins behind the snapshot
		at, err = c.binlog.Position(m.Position.Index + 1)
	}
	if err != nil {
		return 0, err
	}
	check := log.NewCheck(m.Group)
	for number := at.File; ; number++ {
		x, err := c.binlog.Export(number)
		if err != nil {
			return 0, err
		}
		closed, next := x.Closed, x.Next
		w, err := begin(BackupLogPrefix + log.FileName(number))
		if err == nil {
			err = x.Verify(check, sayAlive(ctx, w))
		}
		if err == nil {
			err = sendExport(w, x)
		}
		if err = errors.Join(err, x.Close(), ctx.Err()); err != nil {
			var damage *log.CorruptError
			if errors.As(err, &damage) {
				c.opt.Log.Error("the log of this member is damaged, so that no backup can be made of it: empty the node's directory and let it get its data from another member",
					"damage", damage.Where())
			}
			return 0, err
		}
		if !closed {
			return c.binlog.Number(next - 1)
		}
	}
}

// aliveEvery is after how many bytes that are only read a backup's writer hears that it goes on.
const aliveEvery = 8 << 20

// sayAlive returns a function that is told of bytes that are read and not sent, for [log.Export.Verify].
func sayAlive(ctx context.Context, w provision.ChunkWriter) func(bytes int) error {
	read := 0
	return func(bytes int) error {
		if read += bytes; read < aliveEvery {
			return ctx.Err()
		}
		read = 0
		return w.Send(nil)
	}
}
