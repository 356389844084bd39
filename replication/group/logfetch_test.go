package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

const (
	askStatus    = "group/status"
	askLogFile   = "group/log/file"
	askIdentity  = "group/identity"
	bulkLogFile  = "group/log/bytes"
	bulkSnapshot = "group/snapshot"
)

// taps look at, and meddle with, what nodes ask each other. Fields that are nil do nothing.
type taps struct {
	opened func(from, kind string, payload []byte)       // a bulk stream was
	bulk   func(at, kind string) error                   // before one is served
	answer func(at, kind string, err *error) (done bool) // before a question is answered
	asked  func(at, kind string, payload []byte) []byte  // what a stream is asked for with
	reply  func(at, kind string, answer []byte) []byte   // what a question is answered with
}

// on puts the taps on a node.
func (x *taps) on(o *group.Options) {
	listen := o.Transport
	o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
		w := &tappedHandler{Handler: h, taps: x}
		tr, err := listen(id, w)
		if err != nil {
			return nil, err
		}
		w.addr.Store(tr.Addr())
		return &tappedTransport{tr, x}, nil
	}
}

type tappedTransport struct {
	transport.Transport
	taps *taps
}

func (t *tappedTransport) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	r, err := t.Transport.OpenBulk(ctx, c)
	if t.taps.opened != nil {
		t.taps.opened(t.Addr(), c.Kind, c.Payload)
	}
	return r, err
}

type tappedHandler struct {
	transport.Handler
	taps *taps
	addr atomic.Value
}

func (h *tappedHandler) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	if fn := h.taps.answer; fn != nil {
		var err error
		if fn(h.addr.Load().(string), kind, &err) {
			return nil, err
		}
	}
	answer, err := h.Handler.Answer(ctx, kind, payload)
	if fn := h.taps.reply; fn != nil && err == nil {
		answer = fn(h.addr.Load().(string), kind, answer)
	}
	return answer, err
}

func (h *tappedHandler) Bulk(ctx context.Context, kind string, payload []byte, w transport.BulkWriter) error {
	if fn := h.taps.bulk; fn != nil {
		if err := fn(h.addr.Load().(string), kind); err != nil {
			return err
		}
	}
	if fn := h.taps.asked; fn != nil {
		payload = fn(h.addr.Load().(string), kind, payload)
	}
	return h.Handler.Bulk(ctx, kind, payload, w)
}

// joining simulates a group of three with some files of the log, and a fourth node that is to join, which
// is not started yet.
func joining(t *testing.T, seed uint64, x *taps, contacts []string, test func(r *simRig, l, joiner *simNode)) {
	simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) {
		o.LogFileSize, o.LogPreallocate = 4096, -1
		if o.ID == 4 {
			o.Founders, o.Join, o.Contact = nil, true, contacts
		}
		x.on(o)
	}, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		for i := range 120 {
			insertTraced(t, l.node, i)
		}
		joiner := &simNode{rig: r, id: 4, addr: "node4", fs: simfile.New(r.sim, seed+100)}
		r.nodes = append(r.nodes, joiner)
		if err := l.node.Add(group.Member{ID: 4, Addr: joiner.addr}); err != nil {
			t.Error(err)
		}
		test(r, l, joiner)
	})
}

var threeContacts = []string{"node1", "node2", "node3"}

// joined waits until a node has the group's data, and returns how often it began anew.
func (n *simNode) joined(limit time.Duration, number uint64) (restarts int64) {
	r := n.rig
	r.t.Helper()
	if !r.within(limit, func() bool {
		if p, ok := n.node.Progress(); ok {
			restarts = max(restarts, p.Restarts)
		}
		return n.node.Status().Number >= number
	}) {
		p, _ := n.node.Progress()
		r.t.Errorf("it has not joined: %+v, %+v", n.node.Status(), p)
	}
	return restarts
}

// A network that is cut while the log is copied costs a joining member neither the data that it has
// received nor the files of the log that it has.
func TestCutWhileLogIsCopied(t *testing.T) {
	for seed := range uint64(3) {
		var r *simRig
		var leader, joiner *simNode
		fetched := map[uint64]int{} // files of the log, by their numbers
		requests := -1              // of the snapshot, since the cut
		x := &taps{answer: func(_, kind string, _ *error) bool {
			if kind == askLogFile && len(fetched) == 0 { // there are to be several files behind the snapshot
				for i := range 120 {
					insertTraced(t, leader.node, 1000+i)
				}
				env.Sleep(r.sim, time.Second) // all know that they are committed
			}
			return false
		}, opened: func(from, kind string, payload []byte) {
			switch {
			case from != "node4":
			case kind == bulkSnapshot && requests >= 0:
				requests++
			case kind == bulkLogFile:
				number := binary.LittleEndian.Uint64(payload)
				fetched[number]++
				if requests < 0 && len(fetched) == 3 {
					requests = 0
					r.cut(joiner, r.others(joiner)...)
					r.sim.Go("heal", func() {
						env.Sleep(r.sim, 10*time.Second)
						r.net.HealAll()
					})
				}
			}
		}}
		joining(t, seed, x, threeContacts, func(rig *simRig, l, n *simNode) {
			r, leader, joiner = rig, l, n
			n.start()
			restarts := n.joined(time.Minute, l.node.Status().Number)
			if requests < 0 || requests > 1 || restarts != 0 { // one says that the snapshot is not needed any more
				t.Errorf("seed %d: since the cut %d requests for a snapshot were made, %d restarts", seed, requests, restarts)
			}
			again := 0
			for _, times := range fetched {
				again += times - 1
			}
			if len(fetched) < 5 || again > 1 {
				t.Errorf("seed %d: files of the log were fetched so often: %v", seed, fetched)
			}
		})
	}
}

// A donor that sends nothing more of the log, but gives signs of life, is given up for another one.
func TestLogDonorHangs(t *testing.T) {
	var r *simRig
	hangs, over, snapshots := "", false, 0
	x := &taps{bulk: func(at, kind string) error {
		if kind == bulkLogFile && (hangs == "" || hangs == at) {
			hangs = at
			for !over {
				env.Sleep(r.sim, time.Second)
			}
		}
		return nil
	}, opened: func(from, kind string, _ []byte) {
		if kind == bulkSnapshot && hangs != "" {
			snapshots++
		}
	}}
	joining(t, 1, x, threeContacts, func(rig *simRig, l, n *simNode) {
		r = rig
		n.start()
		if restarts := n.joined(time.Minute, l.node.Status().Number); hangs == "" || restarts != 0 || snapshots > 1 {
			t.Errorf("%q hangs, %d restarts, %d requests for a snapshot", hangs, restarts, snapshots)
		}
		over = true
	})
}

// A member stops at once while the log is copied.
func TestStopsWhileLogIsCopied(t *testing.T) {
	var r *simRig
	hangs, over := false, false
	x := &taps{bulk: func(_, kind string) error {
		for hangs = hangs || kind == bulkLogFile; kind == bulkLogFile && !over; {
			env.Sleep(r.sim, time.Second)
		}
		return nil
	}}
	joining(t, 1, x, threeContacts, func(rig *simRig, l, n *simNode) {
		r = rig
		n.start()
		if !r.within(20*time.Second, func() bool { return hangs }) {
			t.Error("no log is copied")
		}
		env.Sleep(r.sim, time.Second)
		began := r.sim.Monotonic()
		r.sim.Go("the donors go on", func() { env.Sleep(r.sim, 20*time.Second); over = true })
		n.close()
		if took := r.sim.Monotonic() - began; took > 2*time.Second {
			t.Errorf("it took %v to stop", took)
		}
		over = true
		n.start()
		n.joined(time.Minute, l.node.Status().Number)
	})
}

// And while the leader does not answer whether data are needed at all.
func TestStopsWhileLeaderIsAsked(t *testing.T) {
	var r *simRig
	asked, over := false, false
	x := &taps{answer: func(_, kind string, _ *error) bool {
		for asked = asked || kind == "group/first"; kind == "group/first" && !over; {
			env.Sleep(r.sim, time.Second)
		}
		return false
	}}
	simulate(t, 1, 3, simnettest.Options{}, x.on, func(rig *simRig) {
		r = rig
		l := r.leader(nil)
		n := r.others(l)[0]
		n.node.WantDataAsOf(l.id)
		if !r.within(time.Second, func() bool { return asked }) {
			t.Error("the leader is not asked")
		}
		began := r.sim.Monotonic()
		n.close()
		if took := r.sim.Monotonic() - began; took > time.Second {
			t.Errorf("it took %v to stop", took)
		}
		over = true
	})
}

// A member stops at once while the log is copied over real transports, whose streams give signs of life.
func TestStopsWhileLogIsCopiedForReal(t *testing.T) {
	r := closedRig(t, 3)
	hangs, over := make(chan bool, 10), make(chan bool)
	x := &taps{bulk: func(_, kind string) error {
		if kind == bulkLogFile {
			hangs <- true
			<-over
		}
		return nil
	}}
	r.members = r.members[:2]
	r.options = x.on
	r.start(0)
	r.start(1)
	t.Cleanup(func() { close(over) })
	l := r.nodes[r.leader()]
	createFruit(t, l)
	if err := l.Add(group.Member{ID: 3, Addr: r.addrs[2]}); err != nil {
		t.Fatal(err)
	}
	r.options = func(o *group.Options) {
		o.Founders, o.Join, o.Contact = nil, true, r.addrs[:2]
		x.on(o)
	}
	r.start(2)
	select {
	case <-hangs:
	case <-time.After(20 * time.Second):
		t.Fatal("no log is copied")
	}
	done := make(chan bool)
	go func() {
		r.stop(2)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the member does not stop")
	}
}

// A log whose holder may be away is looked for as long as receiving the data again takes.
func TestLogPatience(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		want  time.Duration
	}{{0, 10 * time.Second}, {1 << 20, 10 * time.Second}, {320 << 20, 20 * time.Second}, {1 << 40, 5 * time.Minute}, {math.MaxInt64, 5 * time.Minute}} {
		if got := group.LogPatience(c.bytes); got != c.want {
			t.Errorf("%d bytes: %v, want %v", c.bytes, got, c.want)
		}
	}
}

// The log that a member gets is that of the one whose data it has received, though another may give it: where the entries differ that Raft takes
// for the same, other data are taken.
func TestLogOfOtherData(t *testing.T) {
	var r *simRig
	var joiner *simNode
	var asked string
	x := &taps{reply: func(at, kind string, answer []byte) []byte {
		if r == nil || kind != askIdentity {
			return answer
		}
		if p, ok := joiner.node.Progress(); asked == "" || asked == at && ok && p.Restarts == 0 {
			asked = at
			answer = append([]byte(nil), answer...)
			answer[8]++ // a checksum
		}
		return answer
	}}
	joining(t, 1, x, threeContacts, func(rig *simRig, l, n *simNode) {
		n.start()
		r, joiner = rig, n
		if n.joined(time.Minute, l.node.Status().Number) == 0 || asked == "" {
			t.Errorf("the data were taken of which %q has other entries", asked)
		}
	})
}

// Data are given up for others when every member says that its log does not go with them, and when all who
// can be reached say so for as long as others are worth waiting for; and not sooner.
func TestNobodyHasTheLog(t *testing.T) {
	for _, c := range []struct {
		contacts []string
		atLeast  time.Duration
	}{{threeContacts, 0}, {append([]string{"nobody"}, threeContacts...), 10 * time.Second}} {
		refused, first := 0, time.Duration(0)
		var r *simRig
		var joiner *simNode
		x := &taps{answer: func(_, kind string, err *error) bool {
			if r == nil || kind != askLogFile {
				return false
			}
			if p, ok := joiner.node.Progress(); ok && p.Restarts > 0 {
				return false
			}
			if refused++; first == 0 {
				first = r.sim.Monotonic()
			}
			*err = fmt.Errorf("%w: 1, the first is 1000", log.ErrCompacted)
			return true
		}}
		joining(t, 1, x, c.contacts, func(rig *simRig, l, n *simNode) {
			n.start()
			r, joiner = rig, n
			var at time.Duration
			if !r.within(10*time.Minute, func() bool {
				p, ok := n.node.Progress()
				at = r.sim.Monotonic() - first
				return ok && p.Restarts > 0
			}) || refused < 3 || at < c.atLeast || at > c.atLeast+10*time.Second {
				t.Errorf("contacts %v: the data were given up after %v and %d refusals", c.contacts, at, refused)
			}
			n.joined(time.Minute, l.node.Status().Number)
		})
	}
}

// A member that has received its data, and is started again before it has their log, waits for the member that keeps that log and
// cannot be reached for a while, though the leader has purged it, and goes on with the leader's log behind it.
func TestLogHolderAway(t *testing.T) {
	var r *simRig
	var third *simNode
	hangs, over := false, false
	x := &taps{answer: func(at, kind string, _ *error) bool {
		for kind == askLogFile && at == third.addr && !over {
			hangs = true
			env.Sleep(r.sim, time.Second)
		}
		return false
	}}
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) {
		o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 8<<10, 16<<10, 4<<10, time.Second
		x.on(o)
	}, func(rig *simRig) {
		r = rig
		l := r.leader(nil)
		f := r.others(l)[0]
		third = r.others(l)[1]
		createFruit(t, l.node)
		r.net.CutBoth(f.addr, l.addr)
		for i := range 10 {
			insertFruit(t, l.node, i)
		}
		f.node.WantData()
		if !r.within(time.Minute, func() bool { return hangs }) {
			t.Fatal("no log is asked for")
		}
		for i := range 400 {
			insertFruit(t, l.node, 1000+i)
		}
		env.Sleep(r.sim, 3*time.Second)
		if first, kept := l.node.Log().FirstIndex(), third.node.Log().FirstIndex(); first <= 20 || kept >= first {
			t.Errorf("the leader's log begins with %d, that of the member that holds it with %d", first, kept)
		}
		f.kill()
		over = true
		r.net.HealAll()
		r.net.CutBoth(f.addr, third.addr)
		f.start()
		restarts := int64(0)
		anew := func() bool {
			if p, ok := f.node.Progress(); ok && p.Restarts > 0 {
				restarts = p.Restarts
			}
			return restarts > 0
		}
		if r.within(9*time.Second, func() bool { return anew() || f.node.Status().Number >= l.node.Status().Number }) {
			t.Errorf("it does not wait: %d restarts, %+v", restarts, f.node.Status())
		}
		r.net.HealAll()
		if !r.within(time.Minute, func() bool { return anew() || f.over() && f.node.Status().Number >= l.node.Status().Number }) || restarts > 0 {
			p, _ := f.node.Progress()
			t.Errorf("%d restarts, %+v, %+v", restarts, f.node.Status(), p)
		}
	})
}

// The data of a donor that is itself too far behind for the leader's log are given up for another one's before they are in place.
func TestDonorTooFarBehind(t *testing.T) {
	var donor *simNode
	// The others do not say how they stand, so that it is asked first.
	x := &taps{answer: func(at, kind string, err *error) bool {
		if kind != askStatus || donor == nil || at == donor.addr {
			return false
		}
		*err = errors.New("not now")
		return true
	}}
	simulate(t, 1, 5, simnettest.Options{}, func(o *group.Options) {
		o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 8<<10, 16<<10, 4<<10, time.Second
		x.on(o)
	}, func(r *simRig) {
		l := r.leader(nil)
		donor = r.others(l)[0]
		f := r.others(l)[1]
		createFruit(t, l.node)
		f.kill()
		for i := range 20 {
			insertFruit(t, l.node, i)
		}
		if !r.within(time.Minute, func() bool { return donor.node.Status().Applied >= l.node.Status().Committed }) {
			t.Errorf("the donor does not follow: %+v", donor.node.Status())
		}
		r.cut(donor, r.others(donor)...)
		for i := range 400 {
			insertFruit(t, l.node, 1000+i)
		}
		env.Sleep(r.sim, 3*time.Second)
		if l.node.Log().FirstIndex() < 100 {
			t.Errorf("the leader has purged nothing: %d", l.node.Log().FirstIndex())
		}
		r.net.HealBoth(donor.addr, f.addr)
		f.start()
		restarts := int64(0)
		if !r.within(time.Minute, func() bool {
			if p, ok := f.node.Progress(); ok {
				restarts = max(restarts, p.Restarts)
			}
			return f.over() && f.node.Status().Number >= l.node.Status().Number
		}) || restarts != 1 {
			t.Errorf("%d restarts, %+v", restarts, f.node.Status())
		}
	})
}
