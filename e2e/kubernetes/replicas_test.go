//go:build kubernetes

package kubernetes

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"
)

// readers are programs that read by the Service for that, with a connection for each read.
type readers struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	reads  int
	failed []error
}

func (g *group) readers() *readers {
	g.t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("root:%s@tcp(%s-read.%s.svc.%s:3306)/?tls=skip-verify&timeout=5s&readTimeout=10s", g.password, name, namespace, domain))
	g.must(err)
	db.SetMaxIdleConns(-1)
	ctx, stop := context.WithCancel(context.Background())
	r := &readers{stop: stop}
	for range 2 {
		r.all.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(think) {
				n := 0
				err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM bank.account").Scan(&n)
				if err == nil && n != accounts {
					err = fmt.Errorf("there are %d accounts", n)
				}
				if ctx.Err() == nil {
					r.note(err)
				}
			}
			_ = db.Close()
		})
	}
	return r
}

func (r *readers) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if err != nil {
		r.failed = append(r.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
	}
}

// end demands that no read has failed.
func (r *readers) end(t *testing.T) {
	t.Helper()
	r.stop()
	r.all.Wait()
	if len(r.failed) > 0 || r.reads == 0 {
		t.Errorf("of %d reads %d have failed: %v", r.reads, len(r.failed), r.failed)
	}
	t.Logf("%d reads", r.reads)
}

// readBy waits until so many read replicas are members and have what is committed.
func (g *group) readBy(replicas int) {
	g.t.Helper()
	g.eventually(fmt.Sprintf("%d read replicas", replicas), func() error {
		r, err := g.status(g.leader())
		if err != nil {
			return err
		}
		online := 0
		for _, m := range r.Members {
			if m.Learner && m.State == "ONLINE" {
				online++
			}
		}
		if online != replicas || len(r.Members) != 3+replicas {
			return fmt.Errorf("%d of %d members", online, len(r.Members))
		}
		return nil
	})
}

// replicasComeAndGo: reads go on while the first read replica is given its data, while its pod is started anew, and when there is to be
// none any more: then they have left the group, and their claims are gone.
func (g *group) replicasComeAndGo(t *testing.T, _ *bank) string {
	reads := g.readers()
	defer reads.end(t)
	g.upgrade("--set=readReplicas.count=1")
	g.readBy(1)
	var was pod
	g.must(g.api.get(g.podPath(name+"-read-0"), &was))
	g.must(g.api.remove(g.podPath(was.Meta.Name)))
	g.eventually(was.Meta.Name+" is ready again", func() error {
		var p pod
		if err := g.api.get(g.podPath(was.Meta.Name), &p); err != nil || p.Meta.UID != was.Meta.UID && p.ready() {
			return err
		}
		return fmt.Errorf("it is not")
	})
	g.upgrade("--set=readReplicas.count=2")
	g.readBy(2)
	began := time.Now()
	g.upgrade("--set=readReplicas.count=0")
	g.consists(3)
	g.whole(3)
	return fmt.Sprintf(", of which %s until both had left and their claims were gone", round(time.Since(began)))
}
