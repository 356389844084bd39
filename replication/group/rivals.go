package group

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
)

// A term has one leader, unless a member has voted twice in it. Entries of two leaders of one term that have the same
// index are the same to Raft, so that whoever hears both stops before it takes part in both. Any two majorities
// share a member: what one of the leaders has acknowledged the other one could not, unless that member was started again
// just between.
//
// A node that is started again would follow whoever still leads, so that the stop is written down. No start in this
// directory goes on before an operator has found out which members are the same.

// ErrTwoLeaders: this member has heard two leaders of one term. The node has stopped, and does not start again.
var ErrTwoLeaders = errors.New("group: two members lead in one term")

// rivalsName is the file that has the term of which two leaders were heard.
const rivalsName = "two-leaders"

var rivalsMagic = [8]byte{'T', 'R', 'I', '2', 'L', 'E', 'D', '1'}

// rival is who leads already in the term of a leader's message; 0: nobody else. It is the sender itself if that has led in the term
// from another process: one that starts again follows first, and a member stands for election once in a term.
func (t *raftTask) rival(m *raftpb.Message) uint64 {
	switch twice := t.n.processes.twice.Load(); {
	case t.led != 0 && m.GetTerm() == t.led:
		return t.n.opt.ID
	case t.promise.to.term == m.GetTerm() && t.promise.to.member != m.GetFrom():
		return t.promise.to.member
	case twice != nil && twice.leadership == leadership{m.GetFrom(), m.GetTerm()}:
		return m.GetFrom()
	}
	return 0
}

// stopBetween ends the node since two members lead in the term of a message.
func (t *raftTask) stopBetween(m *raftpb.Message, rival uint64) {
	who := fmt.Sprintf("%d and %d", m.GetFrom(), rival)
	if rival == m.GetFrom() {
		who = fmt.Sprintf("%d, from two processes one after the other,", rival)
	}
	t.stopUnlike(m.GetTerm(), fmt.Errorf("%w: %s in term %d. Some member has voted twice: its disk has lost what it had confirmed, or an old "+
		"copy of its directory was put back. This node stops before it takes part in both, and %s", ErrTwoLeaders, who, m.GetTerm(), afterRivals))
}

const afterRivals = "does not start again: see docs/operations-group.md, When two members lead in one term"

// stopUnlike ends the node and writes down that it is not to start again.
func (t *raftTask) stopUnlike(term uint64, err error) {
	if e := writeNumberFile(t.n.opt.FS, rivalsName, rivalsMagic, term); e != nil {
		err = fmt.Errorf("%w (the file named %s, which keeps it from starting again, could not be written: %w)", err, rivalsName, e)
	}
	t.n.fail(err)
}

// alike is the newest entry that a leader knows to be in a member's log, or the newest of its own log, and how memory has it; index
// 0: it does not. Raft takes entries of one index and term for the same. Where a member has heard of one leader before it
// was started and of the other one since, they need not be, nor those before. So the leader tells the checksum, which goes
// through all of the log, with its heartbeats, and a member whose log has another one there stops.
func (t *raftTask) alike(id uint64) (index uint64, of log.Identity) {
	last := t.n.binlog.LastIndex()
	t.raft.WithProgress(func(member uint64, _ raft.ProgressType, pr tracker.Progress) {
		if member == id {
			index = min(pr.Match, last)
		}
	})
	if index == 0 { // it may know that more is committed than is here
		index = last
	}
	of, ok := t.n.binlog.Identity(index)
	if !ok {
		return 0, log.Identity{}
	}
	return index, of
}

// comparison is of an entry of this member's log that memory does not have.
type comparison struct {
	index   uint64
	of      log.Identity // as the leader has told it
	running bool
}

// unlike compares a leader's message with this member's own log, the entry that the leader tells of and entries that are here
// already. Error: they differ.
func (t *raftTask) unlike(m *raftpb.Message) error {
	var index uint64
	switch m.GetType() {
	case raftpb.MsgHeartbeat:
		b := m.GetContext()
		if len(b) < alikeSize {
			return nil
		}
		le, at := binary.LittleEndian, binary.LittleEndian.Uint64(b[toldSize:])
		of := log.Identity{Term: le.Uint64(b[toldSize+8:]), Checksum: uint32(le.Uint64(b[toldSize+16:]))}
		if own, ok := t.n.binlog.Identity(at); ok && differ(of, own) {
			index = at
		} else if !ok && at != 0 {
			t.compare(m.GetFrom(), at, of)
		}
	case raftpb.MsgApp:
		index = t.n.raftlog.Unlike(m.GetEntries())
	}
	if index == 0 {
		return nil
	}
	return notAlike(m.GetFrom(), index)
}

// compare lets another task read how this member's log has an entry, if it does.
func (t *raftTask) compare(leader, index uint64, of log.Identity) {
	if v := &t.compared; v.running || v.index == index && v.of == of || index > t.n.binlog.LastIndex() {
		return
	}
	t.compared = comparison{index, of, true}
	t.n.tasks.Go("log comparison", func() {
		own, err := t.n.binlog.FindIdentity(index)
		unlike := err == nil && differ(of, own)
		if unlike {
			_, err = t.n.binlog.Read(index, index+1, 1) // which verifies the checksum that was found
		}
		t.n.inbox.call(func() {
			t.compared.running = false
			var damage *log.CorruptError
			switch {
			case unlike && errors.As(err, &damage):
				t.n.fail(fmt.Errorf("group: comparing the log with the leader's: %w", err))
			case unlike && err == nil: // else the entry was purged or replaced meanwhile
				t.stopUnlike(t.role.term, notAlike(leader, index))
			}
		})
	})
}

// differ reports whether entries that Raft takes for the same are not.
func differ(a, b log.Identity) bool { return a.Term == b.Term && a.Checksum != b.Checksum }

func notAlike(leader, index uint64) error {
	return fmt.Errorf("%w: the logs of this member and of its leader, member %d, are not the same up to entry %d, though both have it. Some member "+
		"has voted twice: its disk has lost what it had confirmed, or an old copy of its directory was put back. This node stops, and %s",
		ErrTwoLeaders, leader, index, afterRivals)
}

// noRivals is an error if the member of a directory was stopped between two leaders.
func noRivals(fsys file.FS) error {
	term, err := readNumberFile(fsys, rivalsName, rivalsMagic)
	if err == nil && term == 0 || err != nil && err != errNumberFile { // no file; one that is damaged was written all the same
		return err
	}
	return fmt.Errorf("%w: this member has heard two leaders of term %d (the file named %s in its directory says so), and %s",
		ErrTwoLeaders, term, rivalsName, afterRivals)
}
