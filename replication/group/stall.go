package group

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// stall is what a member does about a disk that takes a call of the log's writer and does not return: neither success nor an
// error. A leader's heartbeats go on, its followers acknowledge, and the group agrees; but the leader answers a commit
// once it has the entry itself, so that every COMMIT would wait for as long.
//
// So it hands over. That takes nothing of its own disk: the word to take over is sent at once, and the successor is
// elected by the others. It does so only where the group has agreed on an entry that it has not stored, or on a change of membership that it has not
// noted as agreed on, which holds up all that follows (knownchanges.go). Then a majority
// has, which does without this member and whose disks are well, and to one of those it hands over. Anywhere else it is needed
// itself, or the others' disks stall too: the leader's lease, and with it the reads, would be given away for nothing.
//
// A disk that answers, but each time late, makes every COMMIT wait as well. If calls take slowCall or longer most of the time, and the
// group has agreed meanwhile on what this member has not stored, it hands over likewise.
//
// What it had proposed is in doubt, as after any loss of the lead (see DESIGN.md). It stores nothing, and so acknowledges
// nothing, before the disk answers.
type stall struct {
	since time.Duration // when the first call that took too long began; 0: the disk is well
	seen  time.Duration // when one was seen that takes too long, last
	last  time.Duration // when was looked
	slow  time.Duration // for how much longer of late the disk was late, and others' were not, than it was not
	late  time.Duration // what late calls had taken when was looked last
	from  time.Duration // up to when calls, and the time between them, are counted
	ahead time.Duration // for how long it is seen that the group has agreed on what is not stored here
	handOvers
}

const (
	// slowCall is how long a call takes at least of a disk that is late: commits take some milliseconds.
	slowCall = 100 * time.Millisecond
	// slowFor is by how much late times have to prevail until a leader hands over.
	slowFor = 5 * time.Second
)

// stallAdvice is what the log says to the operator.
const stallAdvice = "see to the disk: iostat -x 1, dmesg, the volume's limits. If it does not come back, stop this node, kill it if it does not end, " +
	"and replace it: docs/operations-alerts.md, TriremeDiskStalled"

// stallLimit is how long a call of the log's writer may take until its disk is taken to stall.
func (o *Options) stallLimit() time.Duration {
	return max(handOver, 4*time.Duration(o.ElectionTicks)*o.Tick)
}

// stalled is how long the disk of the log has not answered a call; 0: not for long.
func (c *core) stalled() time.Duration {
	since := c.writer.since.Load()
	if took := c.env.Monotonic() - time.Duration(since); since != 0 && took >= c.opt.stallLimit() {
		return took
	}
	return 0
}

// begins notes that a call to the disk begins, and that the one before has ended.
func (w *writer) begins() {
	w.ends()
	w.since.Store(max(1, int64(w.n.env.Monotonic())))
}

// ends notes that the call to the disk has ended, if there was one.
func (w *writer) ends() {
	if since := w.since.Swap(0); since != 0 {
		if took := int64(w.n.env.Monotonic()) - since; took >= int64(slowCall) {
			w.late.Add(took)
		}
	}
}

// stoodStill leaves the time out of a call in which this process did not run itself: stopped, frozen with its container or machine.
func (w *writer) stoodStill(took time.Duration) {
	if since := w.since.Load(); since != 0 {
		w.since.CompareAndSwap(since, min(since+int64(took), int64(w.n.env.Monotonic())))
	}
}

// tick looks whether the disk answers, and hands over if that has to be.
func (s *stall) tick(t *raftTask, now time.Duration) {
	s.handOvers.tick(t)
	gap := now - s.last
	stoodStill := s.last != 0 && gap >= t.n.opt.stallLimit()/2
	if stoodStill {
		t.n.writer.stoodStill(gap)
	}
	s.isLate(t, now, stoodStill)
	s.last = now
	took := t.n.stalled()
	if took == 0 {
		s.isWell(t, now)
		return
	}
	if s.seen = now; s.since == 0 {
		s.since = now - took
		t.n.log.Error("the disk of the log does not answer: this member acknowledges and answers nothing that has to be stored",
			"for", took.Round(time.Millisecond), "leads", t.role.leads, "advice", stallAdvice)
	}
	if s.due(t, now) && t.outrun() {
		s.begin(t, now, "a majority of the others has stored what this member's disk does not take")
	}
}

// isLate notes how much of the time calls have taken that took long, and that others' disks did not need, and hands over if that prevails.
// A call counts when it has ended: what is seen of it before says little of how long it takes. Of one that the group has agreed on without this
// member for less than a third of its time the others' disks are hardly faster.
func (s *stall) isLate(t *raftTask, now time.Duration, stoodStill bool) {
	late, since, ahead := time.Duration(t.n.writer.late.Load()), time.Duration(t.n.writer.since.Load()), s.ahead
	took, until := late-s.late, now
	s.late = late
	if since != 0 {
		until = since // the call that is under way counts once it has ended
	}
	if s.ahead = 0; t.role.leads && t.outrun() {
		s.ahead = ahead + now - s.last
	}
	if stoodStill || s.last == 0 {
		s.from, s.ahead = now, 0
		return
	}
	if !t.role.leads || max(ahead, s.ahead) < took/3 {
		took = 0
	}
	s.slow = max(0, s.slow-max(0, until-s.from-took)) + took
	s.from = max(s.from, until)
	if s.slow < slowFor {
		return
	}
	if s.slow = slowFor; took > 0 && s.due(t, now) {
		s.slow = 0
		t.n.log.Error("the disk of the log answers late: every commit waits for it", "calls", took.Round(time.Millisecond), "advice", stallAdvice)
		s.begin(t, now, "others have stored for seconds what this member's disk takes long for")
	}
}

// isWell ends a stall of which nothing was seen for a while.
func (s *stall) isWell(t *raftTask, now time.Duration) {
	limit := t.n.opt.stallLimit()
	if s.since != 0 && now-s.seen >= limit {
		t.n.log.Info("the disk of the log answers again", "after", (s.seen - s.since).Round(time.Millisecond))
		s.since = 0
	}
	if now-s.seen >= handOverPauseMax {
		s.forget()
	}
}

// outrun reports whether the group has agreed on more than this member, which leads, has stored: on entries, or on a change of membership
// that its disk does not know to be committed.
func (t *raftTask) outrun() (yes bool) {
	if t.role.leads && len(t.known.held) > 0 {
		return true
	}
	t.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		yes = yes || id == t.n.opt.ID && pr.Match < t.n.agreed.Load()
	})
	return yes
}
