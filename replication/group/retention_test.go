package group_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// nowhere takes what is sent.
type nowhere struct{}

func (nowhere) Send([]byte) error { return nil }

func (nowhere) Abort() {}

// A backup that lasts while far more is written than binlog_keep_size has the log behind its snapshot, which goes when it is
// done. Where space is short, or is gone, it is the log that goes: the backup is told, and the node goes on.
func TestLogOfBackup(t *testing.T) {
	for _, what := range []string{"space", "little space", "full"} {
		free := uint64(100)
		options := func(o *group.Options) {
			o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 8<<10, 16<<10, 4<<10, time.Second
			if what == "full" {
				o.PurgeInterval = time.Hour // it does not wait for that
			}
			o.DiskSpace = func() (uint64, uint64) { return 100, free }
		}
		simulate(t, 1, 1, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			row := 0
			write := func(n int) {
				for range n {
					row++
					insertFruit(t, l.node, row)
				}
				env.Sleep(r.sim, 3*time.Second)
			}
			write(10)
			files := 0
			m, last, err := l.node.Backup(context.Background(), func(name string) (provision.ChunkWriter, error) {
				switch {
				case name == "state":
					write(400)
					env.Sleep(r.sim, time.Hour)
					since := r.sim.Monotonic()
					switch what {
					case "little space":
						free = 9
					case "full":
						l.fs.SetCapacity(l.fs.Used() + 8<<10)
					}
					write(200)
					if took := r.sim.Monotonic() - since; took > time.Minute || l.node.Status().DiskFull {
						t.Errorf("%s: the node was without space for %v", what, took)
					}
				case strings.HasPrefix(name, group.BackupLogPrefix):
					files++
				}
				return nowhere{}, nil
			})
			if what != "space" {
				if !errors.Is(err, provision.ErrSnapshotGone) || !strings.Contains(err.Error(), "binlog_keep_size") {
					t.Errorf("%s: %v", what, err)
				}
				return
			}
			if err != nil || last != m.CSN+600 || files < 6 {
				t.Errorf("%v: transactions %d to %d, %d log files", err, m.CSN, last, files)
			}
			env.Sleep(r.sim, 3*time.Second)
			if first := l.node.Log().FirstIndex(); first <= m.Position.Index {
				t.Errorf("the log still begins with entry %d, the snapshot was of %d", first, m.Position.Index)
			}
		})
	}
}

// oneRequest is the transport of a member to which the donor that it asks first answers one request only. Before it asks for
// a log it waits.
type oneRequest struct {
	transport.Transport
	first *uint64
	wait  func()
}

func (t oneRequest) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	if c.Kind == "group/log/file" {
		t.wait()
	}
	return t.Transport.Ask(ctx, c)
}

func (t oneRequest) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	asks := c.Kind == "group/snapshot" || c.Kind == "group/log/bytes"
	if asks && *t.first == c.To {
		return nil, errors.New("no more")
	}
	b, err := t.Transport.OpenBulk(ctx, c)
	if asks && err == nil && *t.first == 0 {
		*t.first = c.To
	}
	return b, err
}

// A donor keeps the log, too, behind a snapshot that another one has taken.
func TestLogOfOtherDonor(t *testing.T) {
	first, waits := map[uint64]*uint64{}, false
	options := func(o *group.Options) {
		o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 8<<10, 16<<10, 4<<10, time.Second
		open := o.Transport
		o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			tr, err := open(id, h)
			first[o.ID] = new(uint64)
			return oneRequest{tr, first[o.ID], func() {
				waits = true
				env.Sleep(o.Env, 10*time.Second)
			}}, err
		}
	}
	simulate(t, 1, 4, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		f := r.others(l)[0]
		createFruit(t, l.node)
		for i := range 100 {
			insertFruit(t, l.node, i)
		}
		r.net.CutBoth(f.addr, l.addr)
		insertFruit(t, l.node, 100)
		f.node.WantData()
		if !r.within(time.Minute, func() bool { return waits }) {
			t.Fatal("no log is asked for")
		}
		for i := range 400 {
			insertFruit(t, l.node, 1000+i)
		}
		over := false
		r.within(time.Minute, func() bool {
			if p, ok := f.node.Progress(); ok && p.Restarts > 0 {
				t.Errorf("it began anew: %s", p.LastError)
				return true
			}
			over = !f.node.WantsData()
			return over
		})
		if *first[f.id] == 0 || !over {
			t.Errorf("the first donor was %d; over: %v", *first[f.id], over)
		}
	})
}
