package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/bodies"
	"github.com/triremedb/trireme/replication/commit"
)

// openBodies makes the store of the bodies of large transactions. The log takes them from it.
func (c *core) openBodies(lo *log.Options) {
	c.bodies = bodies.New(bodies.Options{Env: c.env, FS: c.data, Transport: c.transport, Member: c.opt.ID, Logger: c.log,
		Members: c.others, Leader: func() (member, term uint64) { r := c.currentRole(); return r.leader, r.term },
		Quorum: c.membership.quorum, OnBody: c.bodyBegun,
		OnHas:  func(entry.LargeBody) { c.inbox.call(c.raft.bodyCame) },
		OnMiss: func(index uint64) { c.inbox.call(func() { c.raft.bodyMissed(index) }) },
		Log:    c.bodyOf, ErrNoBody: log.ErrNoBody})
	lo.Bodies = c.bodies
}

// commitBodies implements commit.Bodies.
type commitBodies struct{ *bodies.Store }

// Finish implements commit.Bodies. What is given up for want of a majority was not proposed.
func (b commitBodies) Finish(ctx context.Context, f *body.File, stop func() error) (entry.LargeBody, error) {
	l, err := b.Store.Finish(ctx, f, stop)
	switch {
	case errors.Is(err, bodies.ErrOver):
		err = commit.ErrRolledBack
	case errors.Is(err, bodies.ErrClosed):
		err = ErrStopped
	}
	return l, err
}

// others are the other members.
func (c *core) others() (ids []uint64) {
	for _, m := range c.membership.current() {
		if m.ID != c.opt.ID {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// quorum reports whether the members for which have is true suffice to commit, in both
// configurations if there are two.
func (m *membership) quorum(have func(member uint64) bool) bool {
	m.mu.Lock()
	state := m.latest().state
	m.mu.Unlock()
	return majority(state.GetVoters(), have) && (len(state.GetVotersOutgoing()) == 0 || majority(state.GetVotersOutgoing(), have))
}

func majority(voters []uint64, have func(uint64) bool) bool {
	n := 0
	for _, id := range voters {
		if have(id) {
			n++
		}
	}
	return n > len(voters)/2
}

// bodyBegun has a large transaction that is being received applied ahead of its commit.
func (c *core) bodyBegun(b *body.File) {
	if b.Hold() && !c.applier.Ahead(b) {
		b.Release()
	}
}

// bodyOf opens the body of an entry of this member's log, for another member.
func (c *core) bodyOf(want *entry.LargeBody, index uint64) (io.ReaderAt, io.Closer, error) {
	b, err := c.binlog.OpenBody(index)
	if err != nil {
		return nil, nil, err
	}
	if b.LargeBody != *want {
		return nil, nil, fmt.Errorf("group: entry %d is another large transaction: %w", index, errors.Join(log.ErrNoBody, b.Close()))
	}
	return b, b, nil
}

// damagedBody hears from the applier that the body of an entry is not what was synced.
func (c *core) damagedBody(index uint64, err error) error {
	b, openErr := c.binlog.OpenBody(index)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	return errors.Join(b.Damaged(err), b.Close())
}

// openBody opens the body of an entry that is to be applied.
func (c *core) openBody(index uint64) (apply.Body, error) { return c.binlog.OpenBody(index) }

// fetchBody has a body fetched whose entry a leader has sent: from that one, or from whoever has it.
func (c *core) fetchBody(want *entry.LargeBody, index, leader uint64) {
	from := slices.DeleteFunc(c.others(), func(id uint64) bool { return id == leader })
	c.bodies.Fetch(want, index, append([]uint64{leader}, from...))
}

// newTerm is called by the finisher when the group has agreed on an entry of a later term than
// before: nothing that is not in the log by now will be proposed by leaders of earlier ones.
func (c *core) newTerm(term uint64) { c.bodies.DropBefore(term) }

// giveRoom removes from a full disk what is there only early: a body that is not committed.
func (c *core) giveRoom() {
	if c.bodies != nil {
		c.bodies.GiveRoom()
	}
}

// largeMaker implements cache.Large: sessions of a leader make large transactions.
type largeMaker struct{ c *core }

// Threshold implements cache.Large.
func (m largeMaker) Threshold() int64 { return m.c.limits.largeThreshold.Load() }

// Begin implements cache.Large. Members whose program does not know large transactions could not
// take part.
func (m largeMaker) Begin(name string, f file.File, o body.Owner) (b *body.File, ok bool) {
	c := m.c
	term := c.serving.Load()
	if term == 0 || !c.writableIn(term) || c.Opens() < entry.LargeVersion {
		return nil, false
	}
	return c.bodies.Begin(term, o, name, f), true
}

// After implements cache.Large.
func (m largeMaker) After() uint64 { return m.c.accepted.Load() }

// Changed implements cache.Large.
func (m largeMaker) Changed(b *body.File) { m.c.bodies.Changed(b) }

// End implements cache.Large.
func (m largeMaker) End(b *body.File) { m.c.bodies.End(b) }

// Compress implements cache.Large.
func (m largeMaker) Compress() bool { return !m.c.limits.plainBodies.Load() }
