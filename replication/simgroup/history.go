package simgroup

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
)

// ctx is of all calls: nobody cancels them.
var ctx = context.Background()

// outcome is what a client knows about a transaction.
type outcome uint8

const (
	unknown outcome = iota // not answered, or answered so
	committed
	refused
)

// op is what a client wants done once: the row that it leaves in the table of operations has
// its id. A client that does not know its outcome may try again.
type op struct {
	id           uint64
	work         work // nil: a transfer
	outcome      outcome
	number       uint64
	token        entry.Token // zero: none
	began, ended int64       // by the history's clock; ended is 0 as long as it is not acknowledged
	tries        []*try
	there        *try // that took place, as the tables say in the end; nil: none
}

// try is one attempt at an operation, and what it has done if it took place.
type try struct {
	note  string // in its row
	began int64
	stale bool // its plain reads may be of an older state than was acknowledged before it began
	legs  [2]leg
	lists []history.Op // its reads and appends, in their order
	sets  []set
	saw   []sight
	made  []rowOf
	gone  []rowOf
}

// ack is that acked became a number at a time.
type ack struct {
	number uint64
	at     time.Duration
}

// acknowledged notes that a client has heard of a commit.
func (h *chronicle) acknowledged(number uint64, at time.Duration) {
	if number > h.acked {
		h.acked = number
		h.acks = append(h.acks, ack{number, at})
	}
}

// ackedBy is the highest number that was acknowledged by a time.
func (h *chronicle) ackedBy(at time.Duration) (number uint64) {
	later := sort.Search(len(h.acks), func(i int) bool { return h.acks[i].at > at })
	if later > 0 {
		number = h.acks[later-1].number
	}
	return number
}

// leg is a change of an account's balance.
type leg struct{ account, amount int64 }

// work is what a try does in its transaction, but for the row that it leaves.
type work func(w *world, n *node, s *txn.Session, rng *rand.Rand, y *try) error

// chronicle is what the clients know: the members' data are checked against it.
type chronicle struct {
	ops      []*op
	acked    uint64 // highest number that was acknowledged
	acks     []ack  // when
	newest   *op    // acknowledged with the highest number of all operations
	numbered map[uint64]*op
	clock    int64
	reads    int
	writes   int
	lost     int // answers unknown
	found    int // of which a token told more

	looks []*history.Txn // transactions that only read lists
	saw   []sight        // registers, by those that only read
	told  []taken        // of keys that were taken
	snaps []*snap        // of plain reads of lists
	defs  [3][]definition
}

// now is a point in the order in which clients do things and are answered.
func (h *chronicle) now() int64 {
	h.clock++
	return h.clock
}

// acknowledge notes that an operation is committed. No two are one transaction, and what had been
// acknowledged before an operation began has a lower number.
func (w *world) acknowledge(o *op, number uint64) {
	h := &w.history
	o.outcome, o.number, o.ended = committed, number, h.now()
	if other := h.numbered[number]; other != nil && other != o {
		w.failf("operations %x and %x were both acknowledged as transaction %d", other.id, o.id, number)
	}
	h.numbered[number] = o
	if h.newest == nil || h.newest.number < number {
		h.newest = o
	}
}

// client runs operations until the end.
func (w *world) client(number int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(number)))
	for i := 0; !w.stop; i++ {
		env.Sleep(w.sim, time.Duration(rng.IntN(40))*time.Millisecond)
		n := w.server(rng)
		if n == nil {
			env.Sleep(w.sim, 20*time.Millisecond)
			continue
		}
		var work work
		if !w.opt.Plain {
			if work = w.draw(rng); work == nil {
				w.look(n, rng, number, i)
				continue
			}
		}
		o := &op{id: uint64(number)<<32 | uint64(i), work: work, began: w.history.now()}
		w.history.ops = append(w.history.ops, o)
		w.history.writes++
		w.attempt(n, rng, o)
		for o.outcome == unknown && o.token != (entry.Token{}) && !w.stop {
			env.Sleep(w.sim, time.Duration(20+rng.IntN(100))*time.Millisecond)
			if n := w.server(rng); n != nil {
				w.retry(n, rng, o)
			}
		}
		switch o.outcome {
		case committed:
			w.history.acknowledged(o.number, w.sim.Monotonic())
		case unknown:
			w.history.lost++
		}
	}
}

// server is a node for a client: one that takes writes, of which there may be two while an old
// leader has not heard of the new one, and now and then another; nil: there is none.
func (w *world) server(rng *rand.Rand) *node {
	if w.opt.Plain {
		return w.leader()
	}
	up := w.up()
	var writable []*node
	for _, n := range up {
		if n.node.Writable() {
			writable = append(writable, n)
		}
	}
	switch {
	case len(up) > 0 && rng.IntN(50) == 0:
		return up[rng.IntN(len(up))]
	case len(writable) > 0:
		return writable[rng.IntN(len(writable))]
	}
	return nil
}

// retry finds out what became of an operation, or tries it again: with the token it takes place
// once at most.
func (w *world) retry(n *node, rng *rand.Rand, o *op) {
	var number uint64
	var found bool
	var err error
	n.env.Run(func() {
		if err = group.ErrStopped; n.node != nil {
			number, found, err = n.node.Used(o.token)
		}
	})
	switch {
	case err != nil:
	case found:
		w.acknowledge(o, number)
		w.history.found++
	default:
		w.attempt(n, rng, o)
		if o.outcome == refused {
			o.outcome = unknown // this try; who knows about the one before
		}
	}
}

// attempt tries an operation on a node.
func (w *world) attempt(n *node, rng *rand.Rand, o *op) {
	number, result := uint64(0), refused
	n.env.Run(func() {
		if n.node != nil {
			number, result = w.try(n, rng, o)
		}
	})
	if o.outcome = result; result == committed {
		w.acknowledge(o, number)
	}
}

func (w *world) try(n *node, rng *rand.Rand, o *op) (number uint64, result outcome) {
	g := n.node
	s, err := g.NewSession()
	if err != nil {
		return 0, refused
	}
	defer func() { _ = s.Close() }()
	begin := txn.BeginOptions{}
	switch {
	case o.token != (entry.Token{}):
		begin.HasToken, begin.Token = true, o.token
	case rng.IntN(3) == 0:
		begin.HasToken = true
		o.token = token(w.sim.Now(), o.id)
		begin.Token = o.token
	}
	y := &try{began: w.history.now(), stale: true}
	if !w.opt.Plain {
		if rng.IntN(8) == 0 {
			begin.Isolation = trx.Serializable
		}
		if rng.IntN(2) == 0 {
			if _, err := g.ReadPoint(group.ReadOptions{Wait: time.Second}); err != nil {
				return 0, refused
			}
			y.stale = false
		}
	}
	if err := s.Begin(begin); err != nil {
		return 0, refused
	}
	o.tries = append(o.tries, y)
	work := o.work
	if work == nil {
		work = (*world).transfer
	}
	err = work(w, n, s, rng, y)
	if err == nil {
		err = leaveRow(s, o, y)
	}
	if err == nil && rng.IntN(20) == 0 {
		err = errors.New("the client changed its mind")
	}
	if err != nil {
		_ = s.Rollback()
		return 0, refused
	}
	s.Trace(w.traceOf(o.id))
	number, err = s.Commit(ctx)
	var used *commit.TokenUsedError
	switch {
	case err == nil:
		return number, committed
	case errors.As(err, &used):
		return used.Number, committed
	case errors.Is(err, txn.ErrOutcomeUnknown), errors.Is(err, commit.ErrTokenInFlight):
		return 0, unknown
	}
	return 0, refused
}

// leaveRow adds the operation's own row.
func leaveRow(s *txn.Session, o *op, y *try) error {
	ops, err := s.Open("bank", "ops")
	if err != nil {
		return err
	}
	y.note = y.note[:min(len(y.note), 380)]
	return s.Insert(ops, []types.Value{types.NewInt(int64(o.id)), types.NewString(y.note)}, false)
}
