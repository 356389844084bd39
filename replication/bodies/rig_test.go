package bodies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

var errNoBody = errors.New("no body")

// rig is a group whose members have stores. The first leads.
type rig struct {
	t       *testing.T
	sim     env.Env
	rng     *rand.Rand
	net     *simnettest.Network
	nodes   []*node
	leader  uint64
	term    uint64
	killed  error                     // what ends waits for a majority
	want    map[entry.StreamID][]byte // what was finished, as its leader had it
	damage  func(from *node, kind string, chunk []byte) []byte
	entries []entry.LargeBody // the group's log
}

// node is a member.
type node struct {
	r     *rig
	id    uint64
	fs    *simfile.FS
	net   *simnettest.Node
	store *Store
	log   map[entry.StreamID]string // bodies that are in the log
	last  int                       // entries of the group's log that are in this one
	busy  map[entry.StreamID]bool   // bodies that are being taken
	seen  map[entry.StreamID]*body.File
	has   []entry.LargeBody // what OnHas has said
	miss  []uint64          // what OnMiss has said
}

func addr(id uint64) string { return fmt.Sprintf("n%d", id) }

// run runs a test in a simulation with a group.
func run(t *testing.T, seed uint64, members int, opts simnettest.Options, test func(r *rig)) {
	t.Helper()
	sim := simenv.New(seed)
	sim.StepLimit = 3_000_000
	defer func() {
		if f := recover(); f != nil {
			t.Fatalf("seed %d: %v", seed, f)
		}
	}()
	sim.Run(func() {
		r := &rig{t: t, sim: sim, rng: rand.New(rand.NewPCG(seed, 1)), net: simnettest.New(sim, opts), leader: 1, term: 5,
			want: map[entry.StreamID][]byte{}}
		for id := uint64(1); id <= uint64(members); id++ {
			r.nodes = append(r.nodes, &node{r: r, id: id, fs: simfile.New(sim, seed+id), log: map[entry.StreamID]string{}})
		}
		for _, n := range r.nodes {
			n.up()
		}
		env.Sleep(sim, 50*time.Millisecond)
		test(r)
		r.check()
		for _, n := range r.nodes {
			n.down()
		}
	})
}

func (r *rig) fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// up starts a member that is not running.
func (n *node) up() {
	r := n.r
	n.seen, n.has, n.miss, n.busy = map[entry.StreamID]*body.File{}, nil, nil, map[entry.StreamID]bool{}
	names, _ := n.fs.List(defaultDir)
	for _, name := range names {
		_ = n.fs.Remove(defaultDir + "/" + name)
	}
	var err error
	n.net, err = r.net.Listen(simnettest.Config{Addr: addr(n.id), Identity: transport.Identity{Group: transport.GroupID{7}, Member: n.id}}, n)
	if err != nil {
		r.fatalf("%v", err)
	}
	n.store = New(Options{Env: r.sim, FS: n.fs, Transport: n.net, Member: n.id, ErrNoBody: errNoBody,
		Members: func() []uint64 { return r.others(n.id) },
		Leader:  func() (uint64, uint64) { return r.leader, r.term },
		Quorum: func(have func(uint64) bool) bool {
			count := 0
			for _, m := range r.nodes {
				if have(m.id) {
					count++
				}
			}
			return count > len(r.nodes)/2
		},
		OnBody: func(b *body.File) { n.seen[b.ID] = b },
		OnHas:  func(l entry.LargeBody) { n.has = append(n.has, l) },
		OnMiss: func(index uint64) { n.miss = append(n.miss, index) },
		Log:    n.openLog,
	})
	var peers []transport.Peer
	for _, m := range r.nodes {
		peers = append(peers, transport.Peer{ID: m.id, Addr: addr(m.id)})
	}
	n.net.SetPeers(peers)
}

// down ends a member's process.
func (n *node) down() {
	if n.store == nil {
		return
	}
	n.net.Crash()
	n.store.Close()
	n.store = nil
}

func (r *rig) others(id uint64) (ids []uint64) {
	for _, m := range r.nodes {
		if m.id != id {
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (n *node) openLog(want *entry.LargeBody, _ uint64) (io.ReaderAt, io.Closer, error) {
	name, ok := n.log[want.ID]
	if !ok {
		return nil, nil, errNoBody
	}
	f, err := n.fs.Open(name, file.OpenOptions{ReadOnly: true})
	return f, f, err
}

func (n *node) Receive(uint64, uint64, []*raftpb.Message)       {}
func (n *node) ReportUnreachable(uint64)                        {}
func (n *node) ReportGone(uint64, uint64)                       {}
func (n *node) ReportRefused(uint64)                            {}
func (n *node) ReportConnected(uint64)                          {}
func (n *node) ReportReached(uint64)                            {}
func (n *node) ReportRejected(_ uint64, r *transport.Rejection) { panic(r.Text) }
func (n *node) Answer(ctx context.Context, kind string, p []byte) ([]byte, error) {
	a, handled, err := n.store.HandleAsk(transport.CallerFrom(ctx).Member, kind, p)
	if !handled {
		panic(kind)
	}
	return a, err
}

func (n *node) Bulk(ctx context.Context, kind string, p []byte, w transport.BulkWriter) error {
	handled, err := n.store.HandleBulk(ctx, transport.CallerFrom(ctx).Member, kind, p, &wire{w, n, kind})
	if !handled {
		panic(kind)
	}
	return err
}

// wire is where chunks are damaged.
type wire struct {
	transport.BulkWriter
	n    *node
	kind string
}

func (w *wire) Send(chunk []byte) error {
	if d := w.n.r.damage; d != nil {
		chunk = d(w.n, w.kind, bytes.Clone(chunk))
	}
	return w.BulkWriter.Send(chunk)
}

// session writes a large transaction on the leader.
type session struct {
	n     *node
	b     *body.File
	f     file.File
	store *Store // of the process that it is of
}

func (n *node) session() *session {
	store := n.store
	if err := n.fs.MkdirAll(defaultDir); err != nil {
		n.r.fatalf("%v", err)
	}
	name := fmt.Sprintf("%s/ML_%016x", defaultDir, n.r.rng.Uint64())
	f, err := n.fs.Open(name, file.OpenOptions{Exclusive: true})
	if err != nil {
		n.r.fatalf("%v", err)
	}
	return &session{n, store.Begin(n.r.term, body.Owner{Session: 7, Began: n.r.sim.Monotonic()}, name, f), f, store}
}

// write adds a frame with about so many bytes.
func (s *session) write(size int) {
	events := make([]byte, 1+s.n.r.rng.IntN(2*size))
	for i := 0; i < len(events); i += 1 + len(events)/64 {
		events[i] = byte(s.n.r.rng.Uint32())
	}
	frame, h := body.AppendFrame(nil, nil, s.b.Status().Chain, events, 1+s.n.r.rng.IntN(9))
	err := s.b.Write(frame, h, s.n.r.rng.Uint64N(1000))
	if errors.Is(err, file.ErrNoSpace) {
		return // the statement fails
	}
	if err != nil {
		s.n.r.fatalf("%v", err)
	}
	s.store.Changed(s.b)
}

// cut rolls back to a random frame.
func (s *session) cut() {
	s.b.Truncate(s.n.r.rng.IntN(s.b.Status().Frames + 1))
	s.store.Changed(s.b)
}

// finish is COMMIT up to the proposal.
func (s *session) finish() (entry.LargeBody, error) {
	for s.b.Status().Frames == 0 {
		s.write(100)
		env.Sleep(s.n.r.sim, 100*time.Millisecond)
	}
	raw := make([]byte, s.b.Status().Stored)
	if _, err := s.b.ReadAt(raw, 0); err != nil {
		s.n.r.fatalf("%v", err)
	}
	s.n.r.want[s.b.ID] = raw
	return s.store.Finish(context.Background(), s.b, func() error { return s.n.r.killed })
}

// abort is ROLLBACK.
func (s *session) abort() {
	if s.b.Status().State == body.Taken {
		return
	}
	s.b.End(body.Dropped)
	_ = s.n.fs.Remove(s.b.Name)
	s.store.End(s.b)
}

// commit takes the body into the log of every member that is up, as the log does.
func (r *rig) commit(l entry.LargeBody) {
	for _, n := range r.nodes {
		if n.store != nil {
			n.commit(l)
		}
	}
}

// commit takes a body into the log of a member that may have to fetch it.
func (n *node) commit(l entry.LargeBody) {
	s := n.store
	if !s.Has(&l) {
		s.Fetch(&l, 7, nil)
		n.r.until("the body is fetched", func() bool { return n.store != s || s.Has(&l) || n.log[l.ID] != "" })
	}
	if n.store != s || n.busy[l.ID] || n.log[l.ID] != "" {
		return
	}
	n.busy[l.ID] = true
	if !s.Pin(&l) {
		n.r.fatalf("member %d: not pinned", n.id)
	}
	name, err := s.Take(&l)
	if err != nil {
		n.r.fatalf("member %d: %v", n.id, err)
	}
	to := "binlog." + l.ID.String()
	if err := n.fs.Rename(name, to); err != nil {
		n.r.fatalf("member %d: %v", n.id, err)
	}
	n.log[l.ID] = to
	s.Taken(&l, true)
	n.compare(to, l)
}

// follow takes the group's log into that of a member, until its process ends.
func (n *node) follow() {
	for s := n.store; n.store == s; env.Sleep(n.r.sim, 20*time.Millisecond) {
		for n.store == s && n.last < len(n.r.entries) {
			l := n.r.entries[n.last]
			if n.log[l.ID] == "" {
				n.commit(l)
			}
			if n.log[l.ID] != "" {
				n.last++
			} else {
				env.Sleep(n.r.sim, time.Millisecond)
			}
		}
	}
}

// until waits for something.
func (r *rig) until(what string, cond func() bool) {
	for deadline := r.sim.Monotonic() + 5*time.Minute; !cond(); {
		if r.sim.Monotonic() > deadline {
			r.fatalf("waited in vain until %s\n%s", what, r)
		}
		env.Sleep(r.sim, 10*time.Millisecond)
	}
}

func (r *rig) String() (text string) {
	for _, n := range r.nodes {
		if n.store != nil {
			text += fmt.Sprintf("member %d: %+v\n", n.id, n.store.Status())
		}
	}
	return text
}

// compare checks that a file has a body that was finished.
func (n *node) compare(name string, l entry.LargeBody) {
	want, ok := n.r.want[l.ID]
	if !ok {
		n.r.fatalf("member %d has %v, which was never finished", n.id, l.ID)
	}
	f, err := n.fs.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		n.r.fatalf("member %d: %v", n.id, err)
	}
	defer f.Close()
	got := make([]byte, l.Stored)
	if _, err := f.ReadAt(got, body.Offset); err != nil || !bytes.Equal(got, want) {
		n.r.fatalf("member %d: %v in %s is not what its leader had: %v", n.id, l.ID, name, err)
	}
	if err := body.Verify(f, &l); err != nil {
		n.r.fatalf("member %d: %v: %v", n.id, l.ID, err)
	}
}

// check compares what members say they have with what was finished.
func (r *rig) check() {
	for _, n := range r.nodes {
		if n.store == nil {
			continue
		}
		for _, st := range slices.Clone(n.store.staged) {
			if !st.whole || !st.b.Hold() {
				continue
			}
			got := make([]byte, st.l.Stored)
			if _, err := st.b.ReadAt(got, 0); err != nil || !bytes.Equal(got, r.want[st.b.ID]) {
				r.fatalf("member %d: %v is not what its leader had: %v", n.id, st.b.ID, err)
			}
			st.b.Release()
		}
	}
}

// files are the bodies' files of a member.
func (n *node) files() []string {
	names, _ := n.fs.List(defaultDir)
	return names
}

// streams are the transactions of others that a member has something of.
func (n *node) streams() (all []StreamStatus) {
	for _, s := range n.store.Status().Streams {
		if !s.Own {
			all = append(all, s)
		}
	}
	return all
}
