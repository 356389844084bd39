package bodies

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A failed sync on a member that the commit needs costs one more transfer, whether it was of a piece or of
// the whole body.
func TestFailedSyncNeeded(t *testing.T) {
	for _, frames := range []int{2, 20} {
		run(t, 15, 3, simnettest.Options{}, func(r *rig) {
			r.nodes[2].down()
			bad := r.nodes[1]
			in := bad.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
			s := r.nodes[0].session()
			for range frames {
				s.write(1_000_000)
				env.Sleep(r.sim, 50*time.Millisecond)
			}
			if frames > 2 {
				r.until("a piece is lost", func() bool { return in.Hits() == 1 })
				env.Sleep(r.sim, time.Second)
			}
			began := r.sim.Monotonic()
			l, err := s.finish()
			if wait := r.sim.Monotonic() - began; err != nil || in.Hits() != 1 || wait > wantAfter+time.Second {
				r.fatalf("%v, after %v; %d syncs failed", err, wait, in.Hits())
			}
			r.commit(l)
			s.abort()
		})
	}
}

// A sync of a piece that fails while the whole body is synced fails it, though the second sync does not: on the
// leader, and on a member that receives it.
func TestFailedSyncBeside(t *testing.T) {
	slow := simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Delay: 5 * time.Second, Times: 1}
	begin := func(r *rig, n *node) *session {
		r.nodes[2].down()
		in := n.fs.Inject(slow)
		s := r.nodes[0].session()
		for s.b.Status().Stored < syncEveryOwn {
			s.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		r.until("a piece is being synced", func() bool { return in.Hits() == 1 })
		return s
	}
	run(t, 16, 3, simnettest.Options{}, func(r *rig) {
		s := begin(r, r.nodes[0])
		l, err := s.finish()
		if !errors.Is(err, file.ErrCrashed) || r.nodes[0].store.Pin(&l) {
			r.fatalf("COMMIT: %v", err)
		}
		s.abort()
	})
	run(t, 17, 3, simnettest.Options{}, func(r *rig) {
		s := begin(r, r.nodes[1])
		l, err := s.finish()
		if err != nil || !r.nodes[1].store.Pin(&l) {
			r.fatalf("COMMIT: %v", err)
		}
		env.Sleep(r.sim, 10*time.Second)
		if !r.nodes[1].store.Has(&l) {
			r.fatalf("a body is gone that Raft was given")
		}
		r.commit(l)
		s.abort()
	})
}

// A former leader whose log has lost an entry again does not take the file for the body's that the log had: it
// fetches the body, though a member is still being sent the first file.
func TestTakenTwice(t *testing.T) {
	run(t, 18, 3, simnettest.Options{BulkWindow: 1 << 20, Faults: simnettest.Faults{BytesPerSecond: 100_000}}, func(r *rig) {
		old := r.nodes[0]
		s := old.session()
		for range 5 {
			s.write(1_000_000)
		}
		r.net.SetFaults(addr(1), addr(2), simnettest.Faults{})
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		old.commit(l)
		r.nodes[1].commit(l)
		s.abort()
		if len(old.store.Status().Streams) != 1 {
			r.fatalf("nobody is being sent it")
		}
		if err := old.fs.Remove(old.log[l.ID]); err != nil { // the log is cut
			r.fatalf("%v", err)
		}
		delete(old.log, l.ID)
		delete(old.busy, l.ID)
		if old.store.Has(&l) || old.store.Pin(&l) {
			r.fatalf("a body is here that has no file")
		}
		old.store.Resign(5)
		r.leader, r.term = 2, 6
		r.net.SetDefaultFaults(simnettest.Faults{})
		old.commit(l)
		r.nodes[2].commit(l)
		for _, n := range r.nodes {
			n.store.DropBefore(6)
		}
		env.Sleep(r.sim, time.Second)
		for _, n := range r.nodes {
			if now := n.store.Status(); len(n.files()) > 0 || len(now.Streams) > 0 {
				r.fatalf("member %d keeps %v, %+v", n.id, n.files(), now)
			}
		}
	})
}

// COMMIT fails if the leader cannot read what its session wrote, before it or while it waits.
func TestFailedRead(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} {
		run(t, 19, 3, simnettest.Options{BulkWindow: 1 << 20, Faults: simnettest.Faults{BytesPerSecond: 1_000_000}}, func(r *rig) {
			r.nodes[2].down()
			s := r.nodes[0].session()
			for range 10 {
				s.write(1_000_000)
			}
			var in *simfile.Injection
			r.sim.Go("fault", func() {
				env.Sleep(r.sim, later)
				in = r.nodes[0].fs.Inject(simfile.Fault{Ops: simfile.OpRead, Err: file.ErrCrashed, Times: 1})
			})
			if later == 0 {
				r.until("a read fails", func() bool { return in != nil && in.Hits() == 1 })
			}
			began := r.sim.Monotonic()
			l, err := s.finish()
			if wait := r.sim.Monotonic() - began; !errors.Is(err, file.ErrCrashed) || wait > later+time.Second || r.nodes[0].store.Pin(&l) {
				r.fatalf("COMMIT after %v: %v", wait, err)
			}
			s.abort()
			r.until("it is dropped", func() bool { return len(r.nodes[0].files())+len(r.nodes[1].files()) == 0 })
		})
	}
}

// The disk has changed what the leader's session wrote: no member is sent it, the leader says whose disk it is, and COMMIT fails
// instead of waiting for members that refuse it. What the network has changed is sent once more.
func TestDamagedFile(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} { // before COMMIT, or while it waits
		for _, off := range []int64{0, 9, 300_000, 900_000} { // in the last frames: headers and payloads
			var said bytes.Buffer
			run(t, 20, 3, simnettest.Options{BulkWindow: 1 << 20, Faults: simnettest.Faults{BytesPerSecond: 1_000_000}}, func(r *rig) {
				n := r.nodes[0]
				n.store.opt.Logger = slog.New(slog.NewTextHandler(&said, nil))
				s := n.session()
				for range 10 {
					s.write(1_000_000)
				}
				st := s.b.Status()
				f, ok := s.b.Frame(st.Frames-2, st.Epoch)
				if !ok {
					r.fatalf("%d frames", st.Frames)
				}
				damage := func() {
					if err := n.fs.FlipBit(s.b.Name, body.Offset+f.At+off%f.Size(), 3); err != nil {
						r.fatalf("%v", err)
					}
				}
				if later == 0 {
					damage()
				} else {
					r.sim.Go("damage", func() { env.Sleep(r.sim, later); damage() })
				}
				r.sim.Go("KILL", func() { env.Sleep(r.sim, time.Minute); r.killed = errors.New("COMMIT never ends") })
				l, err := s.finish()
				if !errors.Is(err, body.ErrCorrupt) || !strings.Contains(err.Error(), "see to its disk") || n.store.Pin(&l) {
					r.fatalf("COMMIT: %v", err)
				}
				if got := r.nodes[1].store.count.refetched.Load() + r.nodes[2].store.count.refetched.Load(); got != 0 {
					r.fatalf("%d times a member was sent what is damaged", got)
				}
				s.abort()
				r.until("it is dropped", func() bool { return len(n.files())+len(r.nodes[1].files())+len(r.nodes[2].files()) == 0 })
			})
			if got := strings.Count(said.String(), "the file of a large transaction cannot be relied on"); got != 1 {
				t.Errorf("at %d, %v: said %d times: %s", off, later, got, said.String())
			}
		}
	}
}

// A member without space gives up what is only early, the growing before the whole, and one at a time; not what
// Raft has been given, or a fetch wants. Its leader hears it, and asks for it when COMMIT cannot do without.
func TestGiveRoom(t *testing.T) {
	run(t, 25, 3, simnettest.Options{}, func(r *rig) {
		r.nodes[2].down()
		n := r.nodes[1]
		var all []*session
		for i := range 4 { // two are whole, of which one is pinned; two grow
			s := r.nodes[0].session()
			for range 3 + i {
				s.write(500_000)
			}
			all = append(all, s)
		}
		whole, err := all[0].finish()
		pinned, err2 := all[1].finish()
		if err != nil || err2 != nil || !n.store.Pin(&pinned) {
			r.fatalf("%v, %v", err, err2)
		}
		for _, s := range all[2:] {
			r.until("all of it is there", func() bool { return n.seen[s.b.ID].Status().Stored == s.b.Status().Stored })
		}
		small, large := n.seen[all[2].b.ID], n.seen[all[3].b.ID]
		if small.Status().Stored > large.Status().Stored {
			small, large = large, small
		}
		reader := large.Hold()
		n.store.GiveRoom()
		env.Sleep(r.sim, time.Second)
		n.store.GiveRoom() // the space of the first is still to come
		if large.Status().State != body.Dropped || small.Status().State != body.Growing || len(n.files()) != 3 || !reader {
			r.fatalf("the larger one does not go first: %v", n.files())
		}
		large.Release()
		n.store.GiveRoom()
		env.Sleep(r.sim, time.Second)
		if small.Status().State != body.Dropped || !n.store.Has(&whole) {
			r.fatalf("the growing one does not go before the whole one")
		}
		for range 3 {
			n.store.GiveRoom()
			env.Sleep(r.sim, time.Second)
		}
		if n.store.Has(&whole) || !n.store.Has(&pinned) || len(n.store.Refused(9)) != 3 {
			r.fatalf("it has %v, and refuses %v", n.streams(), n.store.Refused(9))
		}
		for _, st := range r.nodes[0].store.Status().Streams {
			if len(st.Members) > 0 && st.ID != pinned.ID {
				r.fatalf("the leader counts on %+v", st)
			}
		}
		l, err := all[2].finish()
		if err != nil || !n.store.Has(&l) {
			r.fatalf("%v", err)
		}
		for _, c := range []entry.LargeBody{l, pinned, whole} {
			r.commit(c)
		}
		for _, s := range all {
			s.abort()
		}
		r.until("nothing is left", func() bool { return len(r.nodes[0].files())+len(n.files()) == 0 })
	})
}

// A member that fetches the body of an entry, and finds no space for it, gives up what is only early, and says meanwhile that
// its disk is full.
func TestFetchGivesRoom(t *testing.T) {
	run(t, 26, 3, simnettest.Options{}, func(r *rig) {
		lead, n := r.nodes[0], r.nodes[2]
		n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
		s := lead.session()
		for range 5 {
			s.write(1_000_000)
		}
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		r.until("the body is refused", func() bool { return len(n.store.Refused(9)) == 1 && len(n.files()) == 0 })
		early := lead.session()
		for early.b.Status().Stored < l.Stored {
			early.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		r.until("all of it is there", func() bool {
			return n.seen[early.b.ID].Status().Stored == early.b.Status().Stored
		})
		n.fs.SetCapacity(n.fs.Used() + 500_000)
		full := false
		r.sim.Go("look", func() {
			for store := n.store; n.log[l.ID] == "" && n.store == store; env.Sleep(r.sim, time.Millisecond) {
				full = full || store.Full()
			}
		})
		r.commit(l)
		if early := n.seen[early.b.ID].Status().State; early != body.Dropped || !full || n.store.Full() {
			r.fatalf("what is early is %v; the disk was said to be full: %t, and is: %t", early, full, n.store.Full())
		}
		s.abort()
		early.abort()
	})
}

// Frames that a fetch adds to what a leader's stream has left, which may be applied as they come, depend on all entries before
// that of the transaction.
func TestFetchedAfter(t *testing.T) {
	run(t, 27, 3, simnettest.Options{}, func(r *rig) {
		lead, late := r.nodes[0], r.nodes[2]
		s := lead.session()
		for range 5 {
			s.write(100_000)
		}
		r.until("the first frames are there", func() bool {
			b := late.seen[s.b.ID]
			return b != nil && b.Status().Frames == 5
		})
		r.net.Cut(addr(1), addr(3))
		r.net.Cut(addr(3), addr(1))
		for range 5 {
			s.write(100_000)
		}
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		lead.commit(l)
		r.nodes[1].commit(l)
		late.commit(l) // as entry 7
		for i := range l.Frames {
			f, ok := late.seen[l.ID].Frame(int(i), 0)
			was, _ := s.b.Frame(int(i), 0)
			if want := was.After; !ok || i < 5 && f.After != want || i >= 5 && f.After != 6 {
				r.fatalf("frame %d, closed after entry %d, depends on entry %d", i, want, f.After)
			}
		}
		s.abort()
	})
}

// loud notes the errors that are logged.
type loud struct {
	slog.Handler
	errors []string
}

func (l *loud) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l *loud) Handle(_ context.Context, r slog.Record) error {
	l.errors = append(l.errors, r.Message)
	return nil
}

func (l *loud) WithAttrs([]slog.Attr) slog.Handler { return l }

// A transaction that is rolled back while its body waits to be synced is nobody's trouble: the disk is slow, and has
// lost nothing.
func TestDroppedWhileSyncing(t *testing.T) {
	run(t, 19, 3, simnettest.Options{}, func(r *rig) {
		r.nodes[2].down()
		told := &loud{Handler: slog.DiscardHandler}
		for _, n := range r.nodes[:2] {
			n.store.opt.Logger = slog.New(told)
		}
		in := r.nodes[1].fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 20 * time.Second, Times: 1})
		s := r.nodes[0].session()
		for s.b.Status().Stored < syncEveryOwn {
			s.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		r.until("a piece is being synced", func() bool { return in.Hits() == 1 })
		killed, until := errors.New("killed"), r.sim.Monotonic()+5*time.Second
		_, err := s.store.Finish(context.Background(), s.b, func() error {
			if r.sim.Monotonic() < until {
				return nil
			}
			return killed
		})
		if err != killed {
			r.fatalf("COMMIT: %v", err)
		}
		s.abort()
		env.Sleep(r.sim, 30*time.Second)
		if len(told.errors) != 0 || len(r.nodes[1].files()) != 0 {
			r.fatalf("errors %q, files %q", told.errors, r.nodes[1].files())
		}
	})
}

// A body that was refused while an old transaction runs, and thousands of later ones are over, is asked for as any other one; the
// member does not remember all of them.
func TestRefusedAfterMany(t *testing.T) {
	run(t, 21, 3, simnettest.Options{}, func(r *rig) {
		r.nodes[2].down()
		lead, bad := r.nodes[0], r.nodes[1]
		old := lead.session()
		old.write(100)
		for range maxListed + 100 {
			s := lead.session()
			s.write(10)
			r.until("it has begun", func() bool { return bad.seen[s.b.ID] != nil })
			s.abort()
		}
		r.until("all of them are over", func() bool { return len(bad.streams()) == 1 })
		if n := len(bad.store.src.closed); n == 0 || n > closedKept {
			r.fatalf("it remembers %d of them", n)
		}
		in := bad.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
		s := lead.session()
		s.write(100)
		r.sim.Go("kill", func() {
			env.Sleep(r.sim, time.Minute)
			r.killed = errors.New("it waits too long")
		})
		l, err := s.finish()
		if err != nil || in.Hits() != 1 {
			r.fatalf("%v; %d syncs failed", err, in.Hits())
		}
		r.commit(l)
		s.abort()
		old.abort()
		r.until("nothing is left", func() bool { return len(lead.files())+len(bad.files()) == 0 })
	})
}
