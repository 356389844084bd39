package group

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/bodies"
	"github.com/triremedb/trireme/replication/transport"
)

// LargeState is what has become of a large transaction on a member.
type LargeState string

// States of a large transaction on a member, in the order of its life there.
const (
	LargeAbsent      LargeState = "absent"       // the member has nothing of it
	LargeRefused     LargeState = "refused"      // the member could not receive it, and fetches it after the commit
	LargeGrowing     LargeState = "growing"      // statements add to it
	LargeComplete    LargeState = "complete"     // COMMIT waits until a majority has it
	LargeFetching    LargeState = "fetching"     // it is committed, and the member's log waits for its body
	LargeCommitting  LargeState = "committing"   // Raft has been given its entry
	LargeApplying    LargeState = "applying"     // it is in the member's log, and not applied as a whole
	LargeLogged      LargeState = "logged"       // it is in the member's log
	LargeRollingBack LargeState = "rolling back" // what was applied ahead of the commit is taken back
	LargeUnreachable LargeState = "unreachable"  // the member does not answer
)

// LargeTransaction is a large transaction that some member does not have in its log yet, or has not
// applied as a whole.
type LargeTransaction struct {
	ID      entry.StreamID // ID.Member is the leader whose session runs it
	Session uint64         // the client's, there; 0: none, or unknown
	Age     time.Duration  // of the transaction; if the leader does not answer, since members have heard of it
	Members []LargeMember
}

// LargeMember is what a member has of a large transaction. Of one that does not answer Synced and Whole
// are what the leader has heard last; everything else is 0.
type LargeMember struct {
	Member uint64     `json:"-"`
	State  LargeState `json:"state"`
	Events int64      `json:"events"`
	Plain  int64      `json:"plain"`  // bytes of events
	Stored int64      `json:"stored"` // bytes in the member's file
	Synced int64      `json:"synced"` // of them
	Whole  bool       `json:"whole"`  // all of it is there, verified and synced

	// Applied ahead of the commit.
	AheadBytes int64  `json:"ahead_bytes"` // of events
	AheadRows  uint64 `json:"ahead_rows"`
	// Waits is what the applier waits for with the rest; empty: for nothing, or there is no work ahead.
	Waits string `json:"waits,omitempty"`
}

// largeHere is what a member says of a large transaction.
type largeHere struct {
	LargeMember
	ID      entry.StreamID        `json:"id"`
	Session uint64                `json:"session,omitempty"`
	Age     time.Duration         `json:"age"`
	Others  []bodies.MemberStatus `json:"others,omitempty"` // what its leader has heard of others
}

// largeAnswer is a member's answer to askLarge.
type largeAnswer struct {
	Running []largeHere      `json:"running"`
	Refused []entry.StreamID `json:"refused"`
	Logged  []entry.StreamID `json:"logged"` // those that its log has taken last
}

const (
	largeMax  = 256 // transactions in an answer, the oldest ones, and in what is made of all answers
	loggedMax = 64  // and refused ones
)

// LargeTransactions asks all members what they have of running large transactions. The oldest come
// first, at most 256. Members that answer with an error are left out: their program does not
// know the question, or they are being given their data.
func (n *Node) LargeTransactions() []LargeTransaction {
	members := n.Members()
	said := make([]largeSaid, len(members))
	asking := env.NewGroup(n.opt.Env)
	for i, m := range members {
		asking.Go("large transactions", func() { said[i] = n.askLarge(m.ID) })
	}
	asking.Wait()
	return joinLarge(said)
}

// largeSaid is what came of asking a member.
type largeSaid struct {
	member uint64
	left   bool // it is left out
	heard  bool // it has answered
	largeAnswer
}

func (n *Node) askLarge(member uint64) largeSaid {
	s := largeSaid{member: member}
	a := &s.largeAnswer
	var err error
	if member == n.id.id {
		var c *core
		if c, err = n.running(); err == nil {
			*a = c.largeHere()
		}
		s.left = err != nil
	} else {
		var b []byte
		b, err = n.transport.Ask(context.Background(), transport.Call{To: member, Kind: askLarge, Timeout: n.opt.StatusTimeout})
		var failure *transport.Failure
		if err == nil {
			err = json.Unmarshal(b, a)
			s.left = err != nil
		} else {
			s.left = errors.As(err, &failure)
		}
	}
	s.heard = err == nil
	a.Running = a.Running[:min(largeMax, len(a.Running))]
	return s
}

// largeHere is what this member has of large transactions, the oldest first.
func (c *core) largeHere() largeAnswer {
	work := c.applier.AheadStatus()
	a := largeAnswer{Refused: c.bodies.Refused(loggedMax), Logged: c.bodies.Logged(loggedMax)}
	for _, st := range c.bodies.Status().Streams {
		state := largeState(&st)
		if state == "" {
			continue
		}
		h := largeHere{ID: st.ID, Session: st.Session, Age: st.Age, Others: st.Members, LargeMember: LargeMember{State: state,
			Events: st.Events, Plain: st.Plain, Stored: st.Stored, Synced: st.Synced, Whole: st.Whole}}
		if i := slices.IndexFunc(work, func(w apply.AheadStatus) bool { return w.ID == st.ID }); i >= 0 {
			h.ahead(&work[i])
			work = slices.Delete(work, i, i+1)
		}
		a.Running = append(a.Running, h)
	}
	// The store has given up the others: they are in the log, or were rolled back.
	for i := range work {
		w := &work[i]
		h := largeHere{ID: w.ID, Age: w.Age, LargeMember: LargeMember{State: LargeApplying, Events: w.Body.Events, Plain: w.Body.Plain,
			Stored: w.Body.Stored, Synced: w.Body.Synced}}
		h.Whole = w.Body.State == body.Taken
		if w.Waits == apply.AheadRollback {
			h.State = LargeRollingBack
		}
		h.ahead(w)
		a.Running = append(a.Running, h)
	}
	slices.SortStableFunc(a.Running, func(x, y largeHere) int { return cmp.Compare(y.Age, x.Age) })
	a.Running = a.Running[:min(largeMax, len(a.Running))]
	return a
}

// largeState is the state of a stream; empty: it is over here.
func largeState(st *bodies.StreamStatus) LargeState {
	switch {
	case st.State == body.Dropped:
		return ""
	case st.Fetching:
		return LargeFetching
	case st.Pinned:
		return LargeCommitting
	case st.State == body.Taken:
		return ""
	case st.State == body.Complete:
		return LargeComplete
	}
	return LargeGrowing
}

func (m *LargeMember) ahead(w *apply.AheadStatus) {
	m.AheadBytes, m.AheadRows, m.Waits = w.Bytes, w.Rows, w.Waits.String()
	if w.Waits == apply.AheadEntry {
		m.Waits = fmt.Sprintf("entry %d of the log", w.After)
	}
}

// encodeLarge is for another member. Of more than fit an answer the oldest are told.
func encodeLarge(a largeAnswer) []byte {
	for {
		b, err := json.Marshal(a)
		if err != nil {
			return nil // structs of plain fields
		}
		if len(b) <= transport.MaxAsk {
			return b
		}
		a.Running = a.Running[:len(a.Running)/2]
	}
}

// joinLarge makes transactions of what members have said of them, the oldest first.
func joinLarge(said []largeSaid) []LargeTransaction {
	var list []*LargeTransaction
	byID := map[entry.StreamID]*LargeTransaction{}
	heardBy := map[entry.StreamID][]bodies.MemberStatus{} // what leaders have heard of others
	for _, s := range said {
		for _, h := range s.Running {
			t := byID[h.ID]
			if t == nil {
				t = &LargeTransaction{ID: h.ID}
				byID[h.ID] = t
				list = append(list, t)
			}
			t.Age = max(t.Age, h.Age)
			if s.member == h.ID.Member {
				t.Session, heardBy[h.ID] = h.Session, h.Others
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *LargeTransaction) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.ID.Term, b.ID.Term), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	out := make([]LargeTransaction, 0, min(largeMax, len(list)))
	for _, t := range list[:cap(out)] {
		for i := range said {
			if s := &said[i]; !s.left {
				t.Members = append(t.Members, s.of(t.ID, heardBy[t.ID]))
			}
		}
		out = append(out, *t)
	}
	return out
}

// of is what a member has of a transaction, of which its leader has heard.
func (s *largeSaid) of(id entry.StreamID, heard []bodies.MemberStatus) LargeMember {
	if !s.heard {
		m := LargeMember{Member: s.member, State: LargeUnreachable}
		if i := slices.IndexFunc(heard, func(h bodies.MemberStatus) bool { return h.Member == s.member }); i >= 0 {
			m.Synced, m.Whole = heard[i].Synced, heard[i].Whole
		}
		return m
	}
	m := LargeMember{State: LargeAbsent}
	if i := slices.IndexFunc(s.Running, func(h largeHere) bool { return h.ID == id }); i >= 0 {
		m = s.Running[i].LargeMember
	} else if slices.Contains(s.Logged, id) {
		m.State = LargeLogged
	} else if slices.Contains(s.Refused, id) {
		m.State = LargeRefused
	}
	m.Member = s.member
	return m
}
