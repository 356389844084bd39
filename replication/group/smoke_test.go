package group_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// rig is a group of real nodes in one process, on real files and loopback.
type rig struct {
	t       *testing.T
	dirs    []string
	addrs   []string
	members []group.Member
	nodes   []*group.Node
	options func(o *group.Options) // changes them, if not nil
}

func newRig(t *testing.T, n int) *rig {
	r := closedRig(t, n)
	for i := range n {
		r.start(i)
	}
	return r
}

// closedRig is one whose nodes have not been started.
func closedRig(t *testing.T, n int) *rig {
	r := &rig{t: t, nodes: make([]*group.Node, n)}
	for i := range n {
		port, err := ports.Free()
		if err != nil {
			t.Fatal(err)
		}
		r.addrs = append(r.addrs, fmt.Sprintf("127.0.0.1:%d", port))
		r.dirs = append(r.dirs, t.TempDir())
		r.members = append(r.members, group.Member{ID: uint64(i + 1), Addr: r.addrs[i]})
	}
	t.Cleanup(func() {
		for i := range r.nodes {
			r.stop(i)
		}
	})
	return r
}

func (r *rig) start(i int) {
	r.t.Helper()
	n, err := r.open(i)
	if err != nil {
		r.t.Fatalf("node %d: %v", i+1, err)
	}
	r.nodes[i] = n
}

func (r *rig) open(i int) (*group.Node, error) {
	o := group.Options{Env: env.Real(), FS: file.OS(r.dirs[i]), Group: [16]byte{7}, ID: uint64(i + 1), Founders: r.members,
		Storage: storage.Options{BufferPoolSize: 32 << 20},
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			return transport.New(transport.Options{Listen: r.addrs[i], Identity: id, AllowPlaintext: true, LogFormat: group.LogFormat}, h)
		}}
	if r.options != nil {
		r.options(&o)
	}
	return group.Open(o)
}

func (r *rig) stop(i int) {
	if n := r.nodes[i]; n != nil {
		r.nodes[i] = nil
		if err := n.Close(); err != nil {
			r.t.Errorf("closing node %d: %v", i+1, err)
		}
	}
}

func (r *rig) leader() int {
	r.t.Helper()
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		for i, n := range r.nodes {
			if n != nil && n.Writable() {
				return i
			}
		}
	}
	for i, n := range r.nodes {
		if n != nil {
			r.t.Logf("node %d: %+v", i+1, n.Status())
		}
	}
	r.t.Fatal("no leader")
	return -1
}

func do(t *testing.T, n *group.Node, fn func(s *txn.Session) error) uint64 {
	t.Helper()
	s, err := n.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := fn(s); err != nil {
		t.Fatal(err)
	}
	number, err := s.Commit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func createFruit(t *testing.T, n *group.Node) {
	t.Helper()
	do(t, n, func(s *txn.Session) error {
		_, err := s.CreateSchema(dict.Schema{Name: "shop"}, nil)
		return err
	})
	do(t, n, func(s *txn.Session) error {
		_, err := s.CreateTable(&record.Table{Schema: "shop", Name: "fruit",
			Columns: []record.Column{{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
				{ID: 2, Name: "name", Type: types.Type{Kind: types.KindVarChar, Length: 200, Collation: types.CollationUTF8MB40900AI}}},
			Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}},
			nil)
		return err
	})
}

func insertFruit(t *testing.T, n *group.Node, id int) uint64 {
	t.Helper()
	return do(t, n, func(s *txn.Session) error {
		o, err := s.Open("shop", "fruit")
		if err != nil {
			return err
		}
		return s.Insert(o, []types.Value{types.NewInt(int64(id)), types.NewString(fmt.Sprint("fruit ", id))}, false)
	})
}

// What one node commits, all have; a group goes on without one of three, and one that
// comes back catches up.
func TestGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := r.leader()
	createFruit(t, r.nodes[l])
	var last uint64
	for i := range 100 {
		last = insertFruit(t, r.nodes[l], i)
	}
	r.equal(last)

	r.stop(l)
	l2 := r.leader()
	for i := range 100 {
		last = insertFruit(t, r.nodes[l2], 100+i)
	}
	r.start(l)
	r.equal(last)
}

// Changes of membership may follow each other at once: each takes effect, though Raft
// takes none before the last one has been applied.
func TestChangesInARow(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := r.nodes[r.leader()]
	createFruit(t, l)
	var stop atomic.Bool
	var load sync.WaitGroup
	for c := range 4 { // so that applying takes its time
		load.Go(func() {
			for i := c; !stop.Load(); i += 4 {
				insertFruit(t, l, i)
			}
		})
	}
	defer load.Wait()
	defer stop.Store(true)
	for i := range 20 {
		id := uint64(100 + i)
		if err := l.Add(group.Member{ID: id, Addr: fmt.Sprintf("127.0.0.1:%d", 1+i)}); err != nil {
			t.Fatal(err)
		}
		if err := l.Remove(id); err != nil {
			t.Fatal(err)
		}
	}
	if m := l.Members(); len(m) != 3 {
		t.Errorf("members %+v", m)
	}
}

// A session that commits by itself does what its commit needs; the tasks are for the rest.
func TestDirectCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	r.leader()
	createFruit(t, r.nodes[0])
	for i := range 200 {
		insertFruit(t, r.nodes[0], i)
	}
	s, err := r.nodes[0].Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Direct == 0 || s.Direct > s.Commit.Entries {
		t.Errorf("%d of %d entries were finished by their sessions", s.Direct, s.Commit.Entries)
	}
	t.Logf("%d of %d entries were finished by their sessions", s.Direct, s.Commit.Entries)
}

// A group that takes little at a time refuses proposals; they are made again, and nobody
// waits for ever.
func TestCommitsWhileBusy(t *testing.T) {
	r := closedRig(t, 1)
	r.options = func(o *group.Options) { o.UncommittedMax = 1 }
	r.start(0)
	n := r.nodes[r.leader()]
	createFruit(t, n)
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() {
			for i := range 25 {
				insertFruit(t, n, c*1000+i)
			}
		})
	}
	clients.Wait()
}

// Each number of a node comes once and is explained.
func TestStats(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	createFruit(t, r.nodes[r.leader()])
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.nodes[0].Stats()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	s.Each(func(name string, value int64) {
		if _, twice := all[name]; twice || !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("%s comes twice, or docs/metrics.md does not explain it", name)
		}
		all[name] = value
	})
	if all["Commit_transactions"] != 2 || all["Binlog_cache_use"] != 2 || all["Binlog_files"] != 1 {
		t.Errorf("after two transactions: %v", all)
	}
}

// A setting of the group is in force where it was changed when Set returns, elsewhere when it is
// applied, and after a restart.
func TestSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := r.leader()
	n := r.nodes[l]
	r.hasSetting(n, "binlog_keep_size", 4<<30, false)
	for value := int64(1); value <= 30; value++ {
		if err := n.Set("binlog_keep_size", value<<20); err != nil {
			t.Fatal(err)
		}
		r.hasSetting(n, "binlog_keep_size", value<<20, true)
	}
	last := n.Status().Applied
	r.stop(l)
	r.start(l)
	for _, n := range r.nodes {
		for until := time.Now().Add(time.Minute); n.Status().Applied < last; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the change is not applied: %+v", n.Status())
			}
		}
		r.hasSetting(n, "binlog_keep_size", 30<<20, true)
		r.hasSetting(n, "max_binlog_size", 256<<20, false)
	}
}

func (r *rig) hasSetting(n *group.Node, name string, value int64, changed bool) {
	r.t.Helper()
	all, err := n.Settings()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name && (s.Value != value || s.Changed != changed) {
			r.t.Fatalf("node %d: %+v; it was set to %d: %v", n.ID(), s, value, changed)
		}
	}
}

// Who has applied everything does not lag, and what lies between two entries is measured
// by the entries and bytes of the log.
func TestLag(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	leader := r.nodes[r.leader()]
	createFruit(t, leader)
	for id := range 20 {
		insertFruit(t, leader, id)
	}
	r.equal(leader.Status().Number)
	for _, n := range r.nodes {
		for until := time.Now().Add(20 * time.Second); n.Status().Lag != (group.Lag{}); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("a member that has everything: %+v", n.Status())
			}
		}
	}
	l := leader.Log()
	first, last := l.FirstIndex(), l.LastIndex()
	entries, size := leader.Between(first-1, last)
	if info := l.Files()[0]; entries != int64(last-first+1) || size <= 0 || size >= info.Size {
		t.Errorf("from the first entry to the last, %d, of %+v: %d entries, %d bytes", last, info, entries, size)
	}
	for at := first; at <= last; at++ {
		e1, s1 := leader.Between(first-1, at)
		e2, s2 := leader.Between(at, last)
		if e1+e2 != entries || s1+s2 != size || s1 <= 0 {
			t.Errorf("parted at %d: %d and %d of %d entries, %d and %d of %d bytes", at, e1, e2, entries, s1, s2, size)
		}
	}
	if entries, size := leader.Between(last+1000, last+1003); entries != 3 || size != -1 {
		t.Errorf("behind the end of the log: %d entries, %d bytes", entries, size)
	}
}

// equal waits until all nodes have the transaction and compares them there.
func (r *rig) equal(number uint64) {
	r.t.Helper()
	var want string
	for i, n := range r.nodes {
		if n == nil {
			continue
		}
		if _, err := n.ReadPoint(group.ReadOptions{Consistency: group.AtLeast, Number: number, Wait: 20 * time.Second}); err != nil {
			r.t.Fatalf("node %d: %v, %+v", i+1, err, n.Status())
		}
		e, err := n.Engine()
		if err != nil {
			r.t.Fatal(err)
		}
		h, err := e.StateHash(number)
		if err != nil {
			r.t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", h); want == "" {
			want = got
		} else if got != want {
			r.t.Errorf("node %d differs at %d", i+1, number)
		}
	}
}
