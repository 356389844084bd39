package group

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/transport"
)

// housekeep is the task of what has to be done now and then: the leader puts its
// clock into an idle log where heartbeats do not tell it; who has lost the lead lets sessions
// go that wait for an outcome; everybody says when it has no space for what it applies, refuses nodes that do not
// know its format, and finds out that it has left the group. It waits for no disk, but to read of its own
// removal, lest one that does not answer keep sessions waiting as well.
func (c *core) housekeep() {
	var marked time.Duration
	var full bool // the applier, or a body that the log waits for, has been seen to wait for space
	var looked uint64
	for !c.isStopped() {
		c.idle.ParkFor(env.Beat(c.env, c.opt.MarkInterval/2))
		now := c.env.Monotonic()
		c.requireFormat()
		c.lookForRemoval(&looked)
		// A wake may come a little earlier after the last one than it was meant to.
		if now-marked >= c.opt.MarkInterval*3/4 && c.serving.Load() != 0 {
			marked = now
			if c.marksTell() && c.pipeline.Idle() {
				c.pipeline.Mark(entry.Mark, nil, func(trx.Position, error) {})
			}
		}
		if (c.applier.Full() || c.bodies.Full()) != full {
			if full = !full; full {
				c.log.Error("the disk is full: this member cannot apply what the group commits until there is space")
			} else {
				c.log.Info("the disk has space again: this member applies what it has missed")
			}
		}
		if now-time.Duration(c.lostAt.Load()) >= c.opt.DoubtTimeout {
			c.pipeline.Forsake()
		}
		if c.mustMakeRoom() {
			c.purging.Unpark()
		}
	}
}

// purge is the task that removes files of the log that nobody needs.
func (c *core) purge() {
	for {
		c.purging.ParkFor(env.Beat(c.env, c.opt.PurgeInterval))
		if c.isStopped() {
			return
		}
		if err := c.purgeLog(); err != nil {
			c.fail(err)
		}
	}
}

// tellsTime is the version of the protocol from which heartbeats tell followers how fresh they are.
const tellsTime = 2

// marksTell reports whether members need marks to know how fresh they are. Older programs do not
// hear it from heartbeats. A leader tells nothing by those if it has no lease, or has given it up for
// a transfer that came to nothing; and it tells little if heartbeats are seldom.
func (c *core) marksTell() bool {
	if len(c.membership.current()) == 1 && !c.opt.NoLease {
		return false
	}
	told := time.Duration(c.raft.lease.told.Load())
	return c.env.Monotonic()-told > c.opt.MarkInterval || slices.ContainsFunc(c.transport.Status(), func(s transport.PeerStatus) bool {
		return s.Connected && s.Protocol < tellsTime
	})
}

func (c *core) isStopped() bool {
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	return c.stopped
}

// markBody says that commit tokens from before a time are to be forgotten; empty
// for 0.
func markBody(before int64) []byte {
	if before <= 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(before))
}

// expireBefore reads the body of a mark.
func expireBefore(e *entry.Envelope, data []byte) int64 {
	if e.Kind != entry.Mark || e.Codec != entry.Plain || len(data) != entry.EnvelopeSize+8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(data[entry.EnvelopeSize:]))
}
