package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
)

// sqlBackend is a node as SQL sessions see it, as far as they ask here.
type sqlBackend struct {
	session.Backend
	n *group.Node
}

func (b sqlBackend) NewSession() (*txn.Session, error) { return b.n.NewSession() }
func (b sqlBackend) Engine() (*storage.Engine, error)  { return b.n.Engine() }
func (b sqlBackend) Writable() bool                    { return b.n.Writable() }
func (b sqlBackend) Group() [16]byte                   { return b.n.Group() }
func (b sqlBackend) NotLeader() error                  { return group.ErrNotLeader }
func (b sqlBackend) Stale() error                      { return group.ErrStale }
func (b sqlBackend) NoQuorum() error                   { return group.ErrNoQuorum }
func (b sqlBackend) ReadEnded() error                  { return group.ErrReadEnded }
func (b sqlBackend) Token(error) error                 { return nil }
func (b sqlBackend) LeaderAddr() string                { return "" }
func (b sqlBackend) Server() session.ServerInfo        { return session.ServerInfo{} }
func (b sqlBackend) Members() []session.Member         { return nil }

func (b sqlBackend) ReadPoint(opt session.ReadOptions) (uint64, error) {
	return b.n.ReadPoint(group.ReadOptions{Consistency: group.Consistency(opt.Consistency), Ended: opt.Ended})
}

func (b sqlBackend) Away(err error) (string, bool) {
	return "away", errors.Is(err, group.ErrProvisioning) || errors.Is(err, group.ErrStopped)
}

func (b sqlBackend) GroupSetting(name string) (int64, bool) {
	all, err := b.n.Settings()
	for _, s := range all {
		if s.Name == name && err == nil {
			return s.Value, true
		}
	}
	return 0, false
}

func (b sqlBackend) Stats(fn func(name string, value int64)) {
	if s, err := b.n.Stats(); err == nil {
		s.Each(fn)
	}
}

func (b sqlBackend) MetadataLocks(max int) []txn.MetadataLock { return b.n.MetadataLocks(max) }

func (b sqlBackend) LargeTransactions() (list []session.LargeTransaction) {
	for _, t := range b.n.LargeTransactions() {
		list = append(list, session.LargeTransaction{ID: t.ID.String()})
	}
	return list
}

type noResult struct{}

func (noResult) Columns([]session.ResultColumn) error { return nil }
func (noResult) Rows(*types.Batch) error              { return nil }
func (noResult) Done(session.Outcome) error           { return nil }

// TestServesWhileGivenData: whatever clients ask a member while its data are replaced, it answers, or
// says that it is away. Nobody looks at what is not there any more.
func TestServesWhileGivenData(t *testing.T) {
	r := closedRig(t, 3)
	r.options = func(o *group.Options) { o.Sabotage = group.ReplaceSame } // it lacks nothing, and is given it
	for i := range r.nodes {
		r.start(i)
	}
	open := func(n *group.Node, readOnly bool) *session.Session {
		m, err := session.NewManager(session.Options{Env: env.Real(), FS: simfile.New(env.Real(), 1), Backend: sqlBackend{n: n}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Open(session.ConnectionInfo{User: "root", Host: "localhost", ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), m.Close()); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	l := r.leader()
	writer := open(r.nodes[l], false)
	var rows []string
	for i := range race.Fewer(20_000, 4000) {
		rows = append(rows, fmt.Sprintf("(%d, 'row %d')", i, i))
	}
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (a INT PRIMARY KEY, b VARCHAR(20), KEY b (b))",
		"INSERT INTO shop.t VALUES " + strings.Join(rows, ",")} {
		if err := writer.Query(context.Background(), text, noResult{}); err != nil {
			t.Fatal(err)
		}
	}
	f := r.nodes[(l+1)%3]
	for until := time.Now().Add(time.Minute); f.Status().Number < r.nodes[l].Status().Number; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the follower does not catch up: %+v", f.Status())
		}
	}

	var readers sync.WaitGroup
	var ended atomic.Bool
	var answered, away [20]atomic.Int64
	statements := []string{"CHECK TABLE shop.t", "CHECKSUM TABLE shop.t", "SELECT * FROM information_schema.columns",
		"SELECT * FROM information_schema.tables; SHOW TABLE STATUS FROM shop", "SELECT * FROM performance_schema.data_locks",
		"SHOW VARIABLES LIKE 'binlog%'; SHOW STATUS", "SHOW CREATE TABLE shop.t; SHOW TABLES FROM shop; USE shop", "SELECT SUM(LENGTH(b)) FROM shop.t",
		"EXPLAIN SELECT * FROM shop.t x JOIN shop.t y ON x.b = y.b"}
	for i, text := range statements {
		s := open(f, true)
		readers.Go(func() {
			for !ended.Load() {
				for part := range strings.SplitSeq(text, ";") {
					var e *sqlerr.Error
					switch err := s.Query(context.Background(), part, noResult{}); {
					case err == nil:
						answered[i].Add(1)
					case errors.As(err, &e) && (e.Number == 1053 || e.Number == 3101):
						away[i].Add(1)
						time.Sleep(time.Millisecond) // the member has work to do
					default:
						t.Errorf("%s: %v", part, err)
						return
					}
				}
			}
		})
	}
	readers.Go(func() {
		for !ended.Load() {
			e, err := f.Engine()
			if err == nil {
				_, err = e.StateHash(e.Trx.LastCommitted())
			}
			if err == nil {
				err = e.Catalog.EachState(nil, dict.Replicated, func(_, _ []byte) error { return nil })
			}
			if err != nil && !errors.Is(err, storage.ErrClosed) && !errors.Is(err, group.ErrProvisioning) {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	another := func(than *storage.Engine) *storage.Engine {
		for until := time.Now().Add(time.Minute); !t.Failed(); time.Sleep(time.Millisecond) {
			if now, err := f.Engine(); err == nil && now != than {
				return now
			}
			if than != nil {
				f.WantData() // again, if the donor's were older
			}
			if err := f.Err(); err != nil || time.Now().After(until) {
				t.Errorf("the member is not given its data: %v, %+v", err, f.Status())
			}
		}
		return nil
	}
	for range race.Fewer(4, 2) {
		another(another(nil))
	}
	ended.Store(true)
	readers.Wait()
	for i, text := range statements {
		t.Logf("%s: answered %d times, away %d times", text, answered[i].Load(), away[i].Load())
		if answered[i].Load() == 0 {
			t.Errorf("%s: never answered", text)
		}
	}
}
