package group

import (
	"encoding/binary"
	"log/slog"
	"math"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// begun is the Raft task of a member with an election timeout of 10 ticks that has just started and may have
// promised something for 39 ticks before. It has been in term 7. Its lease clock is at now.
func begun(t *testing.T, now *time.Duration) *raftTask {
	t.Helper()
	n := &core{opt: &Options{ElectionTicks: 10, Tick: time.Second, FS: simfile.New(env.Real(), 1)}, env: env.Real(), log: slog.New(slog.DiscardHandler),
		leaseClock: func() time.Duration { return *now }}
	task := &raftTask{n: n, tick: time.Second, role: role{term: 7}}
	task.longest.length = 39 * time.Second
	if err := task.begin(); err != nil {
		t.Fatal(err)
	}
	return task
}

// from is a message of a leader.
func from(member, term uint64, typ raftpb.MessageType) *raftpb.Message {
	return &raftpb.Message{Type: typ.Enum(), From: proto.Uint64(member), Term: proto.Uint64(term)}
}

// A member that has started may have promised something to whomever it hears then, or to somebody else: what it
// hears does not end that earlier, nor does proof that a leader is no more.
func TestPromiseOutlivesStart(t *testing.T) {
	now := time.Hour
	task := begun(t, &now)
	end := now + 39*time.Second
	hear := func(after time.Duration, m *raftpb.Message) {
		t.Helper()
		now, task.clock = time.Hour+after, 0
		if !task.promiseTo(m) {
			t.Fatalf("after %v the message is not taken in", after)
		}
		if until := max(end, now+9*time.Second); task.promise.until != until {
			t.Errorf("after %v, and %v from %d in term %d, the promise ends %v after the start, not %v", after, m.GetType(), m.GetFrom(),
				m.GetTerm(), task.promise.until-time.Hour, until-time.Hour)
		}
	}
	hear(time.Second, from(1, 7, raftpb.MsgApp))
	hear(2*time.Second, from(3, 8, raftpb.MsgSnap))
	hear(3*time.Second, from(2, 9, raftpb.MsgApp))
	if task.yielded.note(leadership{2, 9}); !task.promised() {
		t.Error("another's lease may go on, and the member votes since the newest leader has given up its own")
	}
	hear(31*time.Second, from(2, 9, raftpb.MsgApp))
	if now, task.clock = end, 0; task.promised() {
		t.Error("the promise of the start is over and the leader has given up its lease")
	}
}

// A term has one leader. Who hears two, or leads in the term of another's message, has met a member that has voted twice:
// it stops before it takes part in both.
func TestTwoLeadersOfOneTerm(t *testing.T) {
	now := time.Hour
	for _, leads := range []bool{false, true} {
		task := begun(t, &now)
		task.n.opt.ID = 1
		if leads {
			task.led = 7 // it may have stepped down since
		} else if !task.promiseTo(from(2, 7, raftpb.MsgApp)) {
			t.Fatal("it takes in nothing of a leader's")
		}
		for _, m := range []*raftpb.Message{from(3, 6, raftpb.MsgHeartbeat), from(3, 8, raftpb.MsgHeartbeat), from(3, 8, raftpb.MsgApp)} {
			if rival := task.rival(m); rival != 0 {
				t.Errorf("leads %v, in term 7: %d is another leader of term %d", leads, rival, m.GetTerm())
			}
		}
		if rival := task.rival(from(3, 7, raftpb.MsgHeartbeat)); rival == 0 {
			t.Errorf("leads %v: two lead in one term", leads)
		}
	}
	// A process that leads is not started again as the leader of its term.
	task := begun(t, &now)
	for i, incarnation := range []uint64{50, 50, 60} {
		m := from(2, 7, raftpb.MsgHeartbeat)
		task.n.processes.heard(2, incarnation, []*raftpb.Message{m})
		if rival := task.rival(m); (rival == 2) != (i == 2) {
			t.Errorf("heard from process %d: %d leads as well", incarnation, rival)
		}
		if next := from(2, 8, raftpb.MsgHeartbeat); task.rival(next) != 0 {
			t.Error("the next term has one leader")
		}
	}
}

// A promise that is longer than a new one and not over stays covered by the file.
func TestPromiseFileCoversOpenPromises(t *testing.T) {
	now := time.Hour
	task := begun(t, &now)
	now, task.clock = now+40*time.Second, 0 // the start's is over
	task.promise.to, task.promise.until = leadership{2, 7}, now+19*time.Second
	if !task.promises(9*time.Second) || task.longest.length != 39*time.Second {
		t.Errorf("the file covers %v, and a promise ends in 19 s", task.longest.length)
	}
	if now, task.clock = now+15*time.Second, 0; !task.promises(9*time.Second) || task.longest.length != 9*time.Second {
		t.Errorf("the file covers %v, and no promise is longer than 9 s", task.longest.length)
	}
}

// A file of the promise that is missing, or as it was before a write that the disk has confirmed and lost, has a copy.
func TestPromiseCopy(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	l := &longest{fsys: fsys}
	for _, length := range []time.Duration{5 * time.Second, 60 * time.Second} {
		if err := l.keep(length); err != nil {
			t.Fatal(err)
		}
	}
	for _, spoil := range []func(name string) error{fsys.Remove, func(name string) error {
		return writeNumberFile(fsys, name, promiseMagic, uint64(5*time.Second))
	}} {
		for _, name := range []string{promiseName, promiseCopyName} {
			if err := spoil(name); err != nil {
				t.Fatal(err)
			}
			again := &longest{fsys: fsys}
			if err := again.read(); err != nil || again.length != 60*time.Second {
				t.Errorf("%s: %v, %v", name, again.length, err)
			}
			if err := again.keep(60 * time.Second); err != nil { // as a start does, also of a directory without a copy
				t.Fatal(err)
			}
			for _, name := range []string{promiseName, promiseCopyName} {
				if n, err := readNumberFile(fsys, name, promiseMagic); err != nil || time.Duration(n) != 60*time.Second {
					t.Errorf("%s after a start: %v, %v", name, time.Duration(n), err)
				}
			}
		}
	}
}

// A full disk keeps no member from starting: it follows, and answers no heartbeat with a promise that the file does not
// cover, until there is space.
func TestPromiseWithoutSpace(t *testing.T) {
	for _, stored := range []time.Duration{0, 5 * time.Second, 39 * time.Second} {
		now := time.Hour
		fsys := simfile.New(env.Real(), 1)
		n := &core{opt: &Options{ElectionTicks: 10, Tick: time.Second}, env: env.Real(), log: slog.New(slog.DiscardHandler),
			leaseClock: func() time.Duration { return now }}
		task := &raftTask{n: n, tick: time.Second, role: role{term: 7}}
		task.longest.fsys = fsys
		if stored != 0 {
			if err := task.longest.keep(stored); err != nil {
				t.Fatal(err)
			}
		}
		full := fsys.Inject(simfile.Fault{Ops: simfile.OpCreate | simfile.OpWrite, Name: promiseName + "*", Err: file.ErrNoSpace})
		if err := task.begin(); err != nil {
			t.Fatalf("%v are stored: %v", stored, err)
		}
		if until := time.Hour + max(9*time.Second, stored); task.promise.until != until {
			t.Errorf("%v are stored: a start promises nothing until %v", stored, task.promise.until-time.Hour)
		}
		beat := func(counts time.Duration) bool { return answersHeartbeat(task, counts) }
		if !task.promiseTo(from(1, 7, raftpb.MsgApp)) {
			t.Errorf("%v are stored: it does not follow", stored)
		}
		for _, counts := range []time.Duration{4 * time.Second, 9 * time.Second, 30 * time.Second} {
			if beat(counts) != (counts <= stored) {
				t.Errorf("%v are stored: a heartbeat that counts on %v is answered: %t", stored, counts, counts > stored)
			}
		}
		if beat(0) != (9*time.Second <= stored) {
			t.Errorf("%v are stored: one that does not say on what it counts", stored)
		}
		full.Stop()
		now += spaceAgain
		if !beat(9*time.Second) || max(task.longest.length, stored) < 9*time.Second {
			t.Errorf("%v are stored: there is space again, and %v are", stored, task.longest.length)
		}
	}
}

// While the file of the promise is being written it may hold either length: no promise is longer than both.
func TestPromiseWhileWritten(t *testing.T) {
	now := time.Hour
	task := begun(t, &now)
	var write func()
	task.longest.run = func(fn func()) { write = fn }
	beat := func(counts time.Duration) bool { return answersHeartbeat(task, counts) }
	now += 40 * time.Second // the promise of the start is over
	if !beat(9*time.Second) || write == nil || beat(30*time.Second) || beat(39*time.Second) {
		t.Error("the file may hold 9 s, and more is promised, or it is not written")
	}
	write()
	write = nil
	if beat(30*time.Second) || write == nil || beat(30*time.Second) || !beat(9*time.Second) {
		t.Error("the file may not hold 30 s yet")
	}
	if write(); !beat(30*time.Second) || task.promise.until != now+30*time.Second {
		t.Errorf("30 s are promised until %v", task.promise.until-now)
	}
}

// A member that has started takes a message of a term before its own for a former leader's.
func TestPromiseToFormerLeader(t *testing.T) {
	now := time.Hour
	task := begun(t, &now)
	task.promiseTo(from(3, 6, raftpb.MsgApp))
	if task.promise.to != (leadership{}) {
		t.Errorf("it promises something to %+v", task.promise.to)
	}
}

// No word of a member, or of somebody else, keeps another's from being heard: that it has given up its lease.
func TestYieldsOfOthers(t *testing.T) {
	c := &core{opt: &Options{ID: 1, ElectionTicks: 10}, log: slog.New(slog.DiscardHandler)}
	c.membership.roster.members = []Member{{ID: 1}, {ID: 2}, {ID: 3}}
	task := leads(t, c, &raftpb.ConfState{Voters: []uint64{1, 2, 3}})
	c.raft, c.inbox = task, newInbox(env.Real(), 1<<20)
	term := task.raft.BasicStatus().HardState.GetTerm()
	says := func(member, term uint64) error {
		err := c.hearYielded(member, binary.LittleEndian.AppendUint64(nil, term))
		c.inbox.rest(&task.work)
		for _, fn := range task.work.calls {
			fn()
		}
		task.work.reset()
		return err
	}
	for _, stranger := range []uint64{0, 9} {
		if says(stranger, math.MaxUint64) == nil {
			t.Errorf("a word of %d, which is no member, is taken", stranger)
		}
	}
	for _, l := range []leadership{{2, math.MaxUint64}, {2, term + 1}, {3, term + 2}, {3, term}} {
		if err := says(l.member, l.term); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if !task.over(leadership{3, term}) || task.over(leadership{2, term}) || task.over(leadership{3, term + 2}) {
		t.Errorf("in term %d: %v", term, task.yielded)
	}
	c.membership.roster.members = c.membership.roster.members[:2]
	if err := says(2, term+1); err != nil || len(task.yielded) != 1 {
		t.Errorf("%v: of a group of two: %v", err, task.yielded)
	}
}

// answersHeartbeat reports whether a task promises what a leader's heartbeat counts on.
func answersHeartbeat(task *raftTask, counts time.Duration) bool {
	l := lease{held: true, counts: counts}
	m := from(1, 7, raftpb.MsgHeartbeat)
	m.Context = make([]byte, roundSize)
	l.tell(m, 0, log.Identity{})
	task.clock = 0
	return task.promiseTo(m)
}
