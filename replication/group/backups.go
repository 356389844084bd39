package group

import (
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"
)

// backups is what the group remembers of its backups: numbers that the leader logs as it logs changes of settings,
// so that all members tell the same, a restart forgets nothing, and members of older versions keep them, too. Their
// names hold the group's id: a group that was made of a backup remembers nothing of the old one's.
type backups struct {
	group                              [16]byte
	succeeded, failed, bytes, duration atomic.Int64 // times and durations are in microseconds
}

const backupPrefix = "backup/"

// name is that under which the group keeps one of the numbers.
func (b *backups) name(what string) string {
	return backupPrefix + hex.EncodeToString(b.group[:]) + "/" + what
}

// note takes a number that the group keeps, if it is one of them.
func (b *backups) note(name string, value int64) {
	what, ok := strings.CutPrefix(name, b.name(""))
	if !ok {
		return
	}
	for _, n := range []struct {
		what string
		is   *atomic.Int64
	}{{"succeeded", &b.succeeded}, {"failed", &b.failed}, {"bytes", &b.bytes}, {"duration", &b.duration}} {
		if n.what == what {
			n.is.Store(value)
		}
	}
}

// Backups is what the group remembers of its backups.
type Backups struct {
	// Succeeded is when the last one was whole, Failed when the last attempt failed, by the clocks of those that
	// led; zero: none has.
	Succeeded, Failed time.Time
	// Bytes and Duration are those of the last that was whole.
	Bytes    int64
	Duration time.Duration
}

// Backups tells what this member knows of the group's backups.
func (n *Node) Backups() (Backups, error) {
	c, err := n.running()
	if err != nil {
		return Backups{}, err
	}
	at := func(micros int64) (t time.Time) {
		if micros != 0 {
			t = time.UnixMicro(micros)
		}
		return t
	}
	b := &c.backups
	return Backups{Succeeded: at(b.succeeded.Load()), Failed: at(b.failed.Load()), Bytes: b.bytes.Load(),
		Duration: time.Duration(b.duration.Load()) * time.Microsecond}, nil
}

// BackupSucceeded has the group remember a whole backup, on the leader. The time comes last: with it the rest is there.
func (n *Node) BackupSucceeded(bytes int64, took time.Duration) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	for _, v := range []struct {
		what  string
		value int64
	}{{"bytes", bytes}, {"duration", took.Microseconds()}, {"succeeded", c.env.Now().UnixMicro()}} {
		if err := c.logNumber(c.backups.name(v.what), v.value); err != nil {
			return err
		}
	}
	return nil
}

// BackupFailed has the group remember that an attempt at a backup failed, on the leader.
func (n *Node) BackupFailed() error {
	c, err := n.running()
	if err != nil {
		return err
	}
	return c.logNumber(c.backups.name("failed"), c.env.Now().UnixMicro())
}
