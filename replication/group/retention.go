package group

import (
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
)

// spaceReserve is which part of the disk stays free of what is kept of the log for snapshots beyond LogKeep. Whoever watches
// the disk is alerted at the same mark.
const spaceReserve = 10

// purgeLog removes old files of the log: never what the engine would need after a crash; what a member needs as long as
// all files take no more than LogKeep; and what is behind the snapshots that are being sent, which would be sent for
// nothing without it, as long as there is space. They are given up when there is none: the log would stop the node.
func (c *core) purgeLog() error {
	_, pos := c.engine.Applied()
	if err := c.engine.Sync(); err != nil {
		return err
	}
	keep, most := pos.Index, pos.Index
	if slowest := c.slowestMatch.Load(); slowest != 0 {
		keep = min(keep, slowest)
	}
	short, held := c.spaceShort(), false
	if oldest, ok := c.oldestSnapshot(); ok {
		keep = min(keep, oldest)
		if !short {
			most, held = min(most, oldest), true
		}
	}
	c.logHeld.Store(held)
	limit := c.limits.logKeep.Load()
	for _, r := range []log.Retention{{Keep: keep, MaxAge: time.Duration(c.limits.logExpire.Load())}, {Keep: most, MaxBytes: limit}} {
		if _, err := c.binlog.Purge(r); err != nil {
			if c.binlog.Err() != nil {
				return err
			}
			c.log.Warn("removing old files of the log", "error", err)
		}
	}
	if short {
		why := fmt.Sprintf("this member has little space left on its disk, and keeps no more of the log than binlog_keep_size then (%d bytes). Make room, or raise it", limit)
		if c.source.Forsake(c.binlog.FirstIndex(), why) {
			c.log.Warn("backups and members that were being given data have to begin anew", "reason", why)
		}
	}
	return nil
}

// oldestSnapshot is the entry behind which somebody needs the log who receives a snapshot.
func (c *core) oldestSnapshot() (index uint64, ok bool) {
	for _, m := range c.source.Snapshots() {
		at := m.Position.Index
		if at == 0 { // another member has taken it; without the entry that it ends with, its log is not here
			var err error
			if at, err = c.binlog.IndexOf(m.CSN); err != nil {
				continue
			}
		}
		if !ok || at < index {
			index, ok = at, true
		}
	}
	return index, ok
}

// mustMakeRoom reports whether the disk is full and some of the log is kept that could go.
func (c *core) mustMakeRoom() bool {
	return c.logHeld.Load() && c.isFull()
}

// spaceShort reports whether the disk is full, or will be soon.
func (c *core) spaceShort() bool {
	if c.isFull() {
		return true
	}
	if c.opt.DiskSpace == nil {
		return false
	}
	total, free := c.opt.DiskSpace()
	return free < total/spaceReserve
}
