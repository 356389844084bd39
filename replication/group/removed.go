package group

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
)

// removal is what this member has heard of its own removal from the group.
//
// One member's word does not end another for good: it may come from a member whose disk rots,
// or which was put back from an old copy. The node stops, and will not start as this member
// again, when a majority of the voters that it knows say so: one of them has taken part in every
// later decision. Or when one does and the node's own log has the removal, or the joint configuration
// before it, or its leader has told it so before it was stopped (HasLeft). A word of one that does not vote is
// a reason to doubt, and ends nothing: the group may need this member's vote until a voter knows better.
//
// Until then, and unless a leader talks to it as to a member, it serves no reads: if the word is
// right, nobody tells it any more what it misses. A member that was away while others left, too,
// may never hear a majority of those it knows. It stays so, and says what to do.
type removal struct {
	left  bool // HasLeft was called
	mu    sync.Mutex
	words []uint64 // voters that have said so
	said  []uint64 // all that have
	other bool     // one has that this member does not know as a voter, nor as one that does not vote
	told  time.Duration
	text  string

	doubt atomic.Pointer[error] // why there are no reads; nil: there are
}

// removedAgain is how often the same doubt is told.
const removedAgain = time.Minute

// heard notes that a voter says that this member was removed.
func (v *removal) heard(c *core, from uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	members := c.membership.current()
	self := slices.ContainsFunc(members, func(m Member) bool { return m.ID == c.opt.ID })
	voters, silent, learner := 0, []string(nil), false
	for _, m := range members {
		if m.Learner {
			learner = learner || m.ID == from
			continue
		}
		voters++
		if m.ID == from && !slices.Contains(v.words, from) {
			v.words = append(v.words, from)
		}
		if m.ID != c.opt.ID && !slices.Contains(v.words, m.ID) {
			silent = append(silent, fmt.Sprintf("%d (%s)", m.ID, m.Addr))
		}
	}
	if !slices.Contains(v.said, from) {
		v.said = append(v.said, from)
	}
	known := slices.ContainsFunc(members, func(m Member) bool { return m.ID == from })
	v.other = v.other || !known
	switch most := voters/2 + 1; {
	case v.left:
		c.fail(fmt.Errorf("%w (member %d says so, and so did the leader before this member was stopped)", ErrRemoved, from))
	case !learner && (!self || c.membership.leaving(c.opt.ID)):
		c.fail(fmt.Errorf("%w (member %d says so, and so does this member's log)", ErrRemoved, from))
	case len(v.words) >= most:
		c.fail(fmt.Errorf("%w (members %s say so)", ErrRemoved, list(v.words)))
	default:
		v.doubts(c, fmt.Errorf("%w (members %s say so; %d of the %d voters that this member knows have to, and these "+
			"have not: %s): if it was removed, stop it, empty its directory and start it again, so that it joins as a new member; "+
			"if it was not, bring the others back or see to the network between them and this one",
			ErrMaybeRemoved, list(v.said), most, voters, strings.Join(silent, ", ")))
	}
}

func list(ids []uint64) string { return strings.Trim(fmt.Sprint(ids), "[]") }

// doubts ends reads.
func (v *removal) doubts(c *core, err error) {
	v.doubt.Store(&err)
	if now := c.env.Monotonic(); v.text != err.Error() || now-v.told >= removedAgain {
		v.text, v.told = err.Error(), now
		c.log.Warn("this member serves no reads", "reason", err)
	}
}

// over ends the doubt: a leader talks to this member as to one of the group.
func (v *removal) over() {
	if v.doubt.Load() == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doubt.Store(nil)
	v.words, v.said, v.other, v.text = nil, nil, false, ""
}

// certain reports whether the removal is certain if the log has it.
func (v *removal) certain() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.words) > 0 || v.other
}

// err is why there are no reads; nil: there are.
func (v *removal) err() error {
	if p := v.doubt.Load(); p != nil {
		return *p
	}
	return nil
}

// lookForRemoval ends the node if others say that it was removed and its log has the removal. It
// is the housekeeping task's, and looks when the log is another than the last time.
func (c *core) lookForRemoval(looked *uint64) {
	last := c.binlog.LastIndex()
	if !c.removal.certain() || last == *looked {
		return
	}
	*looked = last
	if index := c.removedAt(); index > 0 {
		c.fail(fmt.Errorf("%w (other members say so, and this member's log has it at index %d)", ErrRemoved, index))
	}
}

// removedAt is where the log has an entry that removes this member, among those that it does
// not know to be committed. 0: nowhere.
func (c *core) removedAt() (index uint64) {
	for at, end := c.committed.Load()+1, c.binlog.LastIndex()+1; at < end && !c.isStopped(); {
		entries, err := c.binlog.Read(at, end, 1<<20)
		if err != nil || len(entries) == 0 {
			return index // the end was cut off meanwhile; there will be another word
		}
		for i := range entries {
			if removes(&entries[i], c.opt.ID) {
				index = entries[i].Index
			}
		}
		at += uint64(len(entries))
	}
	return index
}

// removes reports whether an entry takes a member out of the group.
func removes(e *log.Entry, id uint64) bool {
	if e.Type == log.Normal || len(e.Data) == 0 {
		return false
	}
	cc, err := decodeConfChange(&raftpb.Entry{Type: raftpb.EntryType(e.Type).Enum(), Data: e.Data})
	return err == nil && slices.ContainsFunc(cc.AsV2().GetChanges(), func(ch *raftpb.ConfChangeSingle) bool {
		return ch.GetType() == raftpb.ConfChangeRemoveNode && ch.GetNodeId() == id
	})
}
