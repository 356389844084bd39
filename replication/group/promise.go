package group

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/storage/file"
)

// promise is what a voter owes the leader that it heard last: to vote for nobody else until a
// time. Leases stand on it (see lease.go).
//
// Raft refuses votes for as long, but forgets that it has to when the process starts again,
// and when it hears of a higher term without a leader. So the promise is kept here as well.
//
// Members may be set to different election timeouts, if only while somebody changes them one
// after the other. The leader tells in its heartbeats on what promise its lease counts, and who
// takes one in promises that much, or what its own timeout asks for if that is more.
//
// Invariant: until is not before started.
type promise struct {
	to    leadership    // zero: whomever the member followed before it started
	until time.Duration // on the lease clock
	// started is until when a promise may hold that was given before this process started. Nobody
	// knows to whom: not even proof that a leader is no more, heard of since, ends it.
	started time.Duration
}

// promiseLength is how long a voter that heard the leader votes for nobody else: the shortest
// time in which that many ticks less one pass, whatever their phase.
func promiseLength(tick time.Duration, electionTicks int) time.Duration {
	return min(time.Duration(electionTicks-1)*tick, promiseMax)
}

// longest is the longest promise that may still hold. It is in a file before it is given: a process that
// starts again, perhaps with another timeout, acts as if it had given it just then.
//
// Once the Raft task runs another one writes the file, since a disk may not answer.
//
// Invariant: the file holds length or more, also while it is being written.
type longest struct {
	fsys    file.FS      // nil: of a test without a directory
	run     func(func()) // begins a task; nil: of a test without tasks
	length  time.Duration
	unlike  bool          // the file and its copy were not the same at the start
	until   time.Duration // when the last promise of that length ends
	again   time.Duration // when it is written again, after there was no space for it
	writing *promiseWrite // nil: the file is not being written
}

// promiseWrite is a change of the file on its way.
type promiseWrite struct {
	from, to time.Duration
	done     atomic.Bool
	err      error // once it is done
}

// spaceAgain is after how long space is looked for again.
const spaceAgain = time.Second

const (
	promiseName     = "promise"
	promiseCopyName = promiseName + ".copy"
	// promiseMax is more than any settings ask for.
	promiseMax = 3 * time.Hour
)

var promiseMagic = [8]byte{'T', 'R', 'I', 'P', 'R', 'O', 'M', '1'}

// read reads the file, which holds nanoseconds. Of a directory without it nothing is known.
func (l *longest) read() error {
	n, err := readNumberFile(l.fsys, promiseName, promiseMagic)
	if err == nil {
		// The longer of both counts: a write that the disk has confirmed and lost has forgotten nothing then.
		second, err := readNumberFile(l.fsys, promiseCopyName, promiseMagic)
		if l.unlike = err != nil || second != n; err == nil {
			n = max(n, second)
		}
	}
	if err == errNumberFile {
		return fmt.Errorf("group: the file named %s is damaged; remove it when this node has been stopped for longer "+
			"than the longest election timeout of all members (heartbeat_interval times election_ticks)", promiseName)
	}
	l.length = time.Duration(n)
	return err
}

// keep makes a length durable.
func (l *longest) keep(length time.Duration) error {
	if length == l.length && !l.unlike {
		return nil
	}
	err := l.store(length)
	if err == nil {
		l.length, l.unlike = length, false
	}
	return err
}

func (l *longest) store(length time.Duration) error {
	if l.fsys == nil {
		return nil
	}
	err := writeNumberFile(l.fsys, promiseCopyName, promiseMagic, uint64(length))
	if err == nil {
		err = writeNumberFile(l.fsys, promiseName, promiseMagic, uint64(length))
	}
	return err
}

// begin is called before the task begins. A member may have heard a leader the moment before it ended,
// a founder even before the leader's term was on its disk.
func (t *raftTask) begin() error {
	t.length = promiseLength(t.tick, t.n.opt.ElectionTicks)
	t.sleeps = t.n.opt.ElectionTicks >= sleepsFrom
	if t.n.opt.Sabotage == PromisesOwn {
		t.longest.length = 0
	}
	length := max(t.length, t.longest.length)
	if err := t.longest.keep(length); errors.Is(err, file.ErrNoSpace) {
		t.n.log.Warn("there is no space for the file named promise: until there is this member confirms no lease that counts on more",
			"promise", t.longest.length, "election_timeout", length)
	} else if err != nil {
		return err
	}
	until := t.n.leaseClock() + length
	t.promise = promise{until: until, started: until}
	t.longest.until = until
	return nil
}

// promiseTo promises a leader that was heard now not to vote for others. False: it cannot, and must not
// take in the message.
func (t *raftTask) promiseTo(m *raftpb.Message) bool {
	if m.GetTerm() < max(t.role.term, t.promise.to.term) {
		return true // of a leader of old, whose messages Raft drops
	}
	if rival := t.rival(m); rival != 0 {
		t.stopBetween(m, rival)
		return false
	}
	counts := t.countedOn(m)
	length := max(t.length, counts)
	if t.n.opt.Sabotage == PromisesOwn {
		length = t.length
	}
	if !t.promises(length) {
		if length = t.longest.length; length < counts {
			return false
		}
	}
	to := leadership{m.GetFrom(), m.GetTerm()}
	until := max(t.leaseNow()+length, t.promise.started)
	if to == t.promise.to {
		until = max(until, t.promise.until)
	}
	t.promise.to, t.promise.until = to, until
	if length == t.longest.length {
		t.longest.until = max(t.longest.until, until)
	}
	t.refused, t.held = leadership{}, nil
	t.word = true
	t.hearWord(m)
	t.n.removal.over()
	return true
}

// countedOn is the promise that somebody may count on, once the message is answered. Only answers to heartbeats
// prove a lease; a leader that does not say what it counts on has the same election timeout, as far as is known.
func (t *raftTask) countedOn(m *raftpb.Message) time.Duration {
	if told := counted(m); told != 0 || m.GetType() != raftpb.MsgHeartbeat {
		return told
	}
	return t.length
}

// promises reports whether promises of a length may be given. If it is not known to be durable that they are, that begins, and until
// it is done they may not; nor may longer ones while shorter ones take their place, once they are over.
func (t *raftTask) promises(length time.Duration) bool {
	l := &t.longest
	t.promiseWritten()
	if length == l.length || length < l.length && (t.leaseNow() < l.until || t.leaseNow()+length < t.promise.until) {
		return true
	}
	if l.writing != nil || t.leaseNow() < l.again {
		return length < l.length
	}
	w := &promiseWrite{from: l.length, to: length}
	l.writing, l.length = w, min(l.length, length)
	write := func() {
		if w.err = l.store(w.to); w.err != nil && !errors.Is(w.err, file.ErrNoSpace) {
			t.n.fail(fmt.Errorf("group: %w", w.err))
		}
		w.done.Store(true)
	}
	if l.run == nil {
		write()
	} else {
		l.run(write)
	}
	t.promiseWritten()
	return length <= l.length
}

// promiseWritten takes in that the file is written, or that there was no space: then what is there stays.
func (t *raftTask) promiseWritten() {
	l := &t.longest
	w := l.writing
	if w == nil || !w.done.Load() {
		return
	}
	l.writing = nil
	if w.err != nil {
		l.length, l.again = w.from, t.leaseNow()+spaceAgain
		return
	}
	l.length = w.to
	t.n.log.Info("what a leader counts on has changed", "promise", w.to, "election_timeout", t.length)
}

// promised reports whether this member may not vote for anyone else yet.
func (t *raftTask) promised() bool { return t.leaseNow() < t.promiseEnds() }

// promiseEnds is when it may, on the lease clock, as far as is known.
func (t *raftTask) promiseEnds() time.Duration {
	if t.over(t.promise.to) {
		return t.promise.started
	}
	return t.promise.until // which is not before
}

// waits reports whether Raft's own clock stands still, lest this member stand for election before
// a promise is over that is longer than its own election timeout.
func (t *raftTask) waits() bool {
	return !t.role.leads && t.promise.until-t.leaseNow() > t.length && t.promised()
}
