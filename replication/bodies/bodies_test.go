package bodies

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A transaction is on all members when it commits, and they hear of it while it runs.
func TestStream(t *testing.T) {
	run(t, 1, 3, simnettest.Options{}, func(r *rig) {
		s := r.nodes[0].session()
		for range 50 {
			s.write(300_000)
		}
		follower := r.nodes[1]
		r.until("the frames are there", func() bool {
			b := follower.seen[s.b.ID]
			return b != nil && b.Status().Stored == s.b.Status().Stored
		})
		for i := range 50 {
			a, _ := s.b.Frame(i, 0)
			if f, ok := follower.seen[s.b.ID].Frame(i, 0); !ok || f != a {
				r.fatalf("frame %d is %+v, not %+v", i, f, a)
			}
		}
		now := r.nodes[0].store.Status()
		if st := now.Streams[0]; !st.Own || st.Session != 7 || st.Age <= 0 || now.Oldest != st.Age || len(r.nodes[0].store.Logged(9)) > 0 {
			r.fatalf("its leader says %+v", now)
		}
		if now := follower.store.Status(); now.Oldest != 0 || now.Streams[0].Session != 0 || now.Streams[0].Age <= 0 {
			r.fatalf("another member says %+v", now)
		}
		r.until("some is synced", func() bool { return follower.streams()[0].Synced >= syncEveryStaged })
		before := follower.streams()[0].Synced
		if before == s.b.Status().Stored {
			r.fatalf("everything is synced before the end")
		}
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		r.until("all have it", func() bool { return r.nodes[1].store.Has(&l) && r.nodes[2].store.Has(&l) })
		r.commit(l)
		s.abort() // the session is done; the file is the log's
		env.Sleep(r.sim, time.Second)
		for _, n := range r.nodes {
			if now := n.store.Status(); len(n.files()) > 0 || len(now.Streams) > 0 || now.Oldest > 0 {
				r.fatalf("member %d keeps %v", n.id, n.files())
			}
			if got := n.store.Logged(1); len(got) != 1 || got[0] != l.ID || len(n.store.Logged(0)) > 0 {
				r.fatalf("member %d has %v in its log", n.id, got)
			}
		}
	})
}

// What is rolled back leaves nothing behind, and late words of it create nothing.
func TestAbort(t *testing.T) {
	run(t, 2, 3, simnettest.Options{}, func(r *rig) {
		s := r.nodes[0].session()
		for range 5 {
			s.write(100_000)
		}
		r.until("it has begun", func() bool { return len(r.nodes[1].files()) == 1 && len(r.nodes[2].files()) == 1 })
		seen := r.nodes[1].seen[s.b.ID]
		s.abort()
		r.until("it is dropped", func() bool { return len(r.nodes[1].files()) == 0 && len(r.nodes[2].files()) == 0 })
		if seen.Status().State != body.Dropped {
			r.fatalf("the applier is not told")
		}
		st, src := r.nodes[1].store, r.nodes[1].store.src
		for _, m := range []message{{kind: msgBegin}, {kind: msgData, data: []byte{1}}, {kind: msgTruncate}, {kind: msgEnd, why: endDropped}} {
			m.number = s.b.ID.Number
			if err := st.accept(src, &m); err != nil {
				r.fatalf("%v", err)
			}
		}
		if len(r.nodes[1].files()) != 0 {
			r.fatalf("a late message made a file")
		}
	})
}

// A rolled back statement is rolled back elsewhere, in the same epoch or across a cut.
func TestTruncate(t *testing.T) {
	for seed := range uint64(10) {
		run(t, seed, 3, simnettest.Options{Faults: simnettest.Faults{BytesPerSecond: 20_000_000, Break: 20}}, func(r *rig) {
			s := r.nodes[0].session()
			for range 60 {
				s.write([]int{100, 20_000, 700_000}[r.rng.IntN(3)])
				if r.rng.IntN(4) == 0 {
					s.cut()
				}
				env.Sleep(r.sim, time.Duration(r.rng.IntN(30))*time.Millisecond)
			}
			l, err := s.finish()
			if err != nil {
				r.fatalf("%v", err)
			}
			r.until("all have it", func() bool { return r.nodes[1].store.Has(&l) && r.nodes[2].store.Has(&l) })
			r.check()
			r.commit(l)
			s.abort()
		})
	}
}

// A stream that breaks goes on where it was: little is sent twice.
func TestResume(t *testing.T) {
	run(t, 3, 2, simnettest.Options{Faults: simnettest.Faults{Break: 30}}, func(r *rig) {
		s := r.nodes[0].session()
		for range 200 {
			s.write(100_000)
			env.Sleep(r.sim, 20*time.Millisecond)
		}
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		got := r.nodes[1].store.Status()
		if got.Received > l.Stored*5/4 {
			r.fatalf("%d bytes were received for %d", got.Received, l.Stored)
		}
		s.abort()
	})
}

// A small transaction is not kept back by a huge one.
func TestFair(t *testing.T) {
	run(t, 4, 2, simnettest.Options{BulkWindow: 1 << 20, Faults: simnettest.Faults{BytesPerSecond: 10_000_000}}, func(r *rig) {
		huge := r.nodes[0].session()
		for range 50 {
			huge.write(2_000_000)
		}
		env.Sleep(r.sim, time.Second)
		begin := r.sim.Monotonic()
		small := r.nodes[0].session()
		small.write(200_000)
		l, err := small.finish()
		if took := r.sim.Monotonic() - begin; err != nil || took > time.Second {
			r.fatalf("it took %v: %v", took, err)
		}
		if now := r.nodes[1].streams()[0]; now.Stored == huge.b.Status().Stored {
			r.fatalf("the huge one was faster")
		}
		r.commit(l)
		small.abort()
		huge.abort()
	})
}

// The leader waits for a majority, not for all, and for nobody once it has resigned.
func TestQuorum(t *testing.T) {
	run(t, 5, 3, simnettest.Options{}, func(r *rig) {
		r.nodes[2].down()
		s := r.nodes[0].session()
		s.write(1_000_000)
		l, err := s.finish()
		if err != nil || !r.nodes[1].store.Has(&l) {
			r.fatalf("without one member: %v", err)
		}
		s.abort()
		r.nodes[1].down()
		s = r.nodes[0].session()
		s.write(1_000_000)
		r.sim.Go("resign", func() {
			env.Sleep(r.sim, 20*time.Second)
			r.nodes[0].store.Resign(r.term)
		})
		begin := r.sim.Monotonic()
		if _, err = s.finish(); err != ErrOver || r.sim.Monotonic()-begin < 20*time.Second {
			r.fatalf("without two members: %v", err)
		}
		s.abort()
		r.term++
		s = r.nodes[0].session()
		s.write(1_000_000)
		killed := errors.New("killed")
		r.sim.Go("kill", func() {
			env.Sleep(r.sim, 5*time.Second)
			r.killed = killed
		})
		if _, err = s.finish(); err != killed {
			r.fatalf("after KILL: %v", err)
		}
		r.killed = nil
		s.abort()
	})
}

// A member whose disk is full drops what does not fit, once, and gets it at the commit.
func TestFullDisk(t *testing.T) {
	run(t, 6, 3, simnettest.Options{}, func(r *rig) {
		full := r.nodes[2]
		small, large := r.nodes[0].session(), r.nodes[0].session()
		small.write(10_000)
		r.until("it has begun", func() bool { return len(full.files()) == 2 })
		full.fs.SetCapacity(4 << 20)
		for range 20 {
			large.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		small.write(10_000)
		ls, err := small.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		r.until("the small one is there", func() bool { return full.store.Has(&ls) })
		ll, err := large.finish()
		if err != nil || full.store.Has(&ll) || len(full.files()) != 1 {
			r.fatalf("the large one: %v, files %v", err, full.files())
		}
		if got := full.store.Refused(9); len(got) != 1 || got[0] != ll.ID || len(full.store.Refused(0)) > 0 || len(r.nodes[1].store.Refused(9)) > 0 {
			r.fatalf("it says that it refuses %v", got)
		}
		r.sim.Go("space", func() {
			env.Sleep(r.sim, 30*time.Second)
			full.fs.SetCapacity(0)
		})
		r.commit(ls)
		r.commit(ll)
		small.abort()
		large.abort()
	})
}

// A transaction that a majority had no room for commits once there is room, before COMMIT or later.
func TestFullMajority(t *testing.T) {
	for _, later := range []time.Duration{0, 20 * time.Second} {
		run(t, 12, 3, simnettest.Options{}, func(r *rig) {
			s := r.nodes[0].session()
			for _, n := range r.nodes[1:] {
				n.fs.SetCapacity(4 << 20)
			}
			for range 10 {
				s.write(1_000_000)
				env.Sleep(r.sim, 50*time.Millisecond)
			}
			r.until("it is refused", func() bool { return len(r.nodes[1].files()) == 0 && len(r.nodes[2].files()) == 0 })
			freed := time.Duration(0)
			r.sim.Go("space", func() {
				env.Sleep(r.sim, later)
				for _, n := range r.nodes[1:] {
					n.fs.SetCapacity(0)
				}
				freed = r.sim.Monotonic()
			})
			l, err := s.finish()
			if wait := r.sim.Monotonic() - freed; err != nil || wait > wantMax {
				r.fatalf("%v, %v after there was room", err, wait)
			}
			r.commit(l)
			s.abort()
		})
	}
}

// A transaction for which a majority had no file when it began commits once there are files again.
func TestRefusedBegin(t *testing.T) {
	run(t, 13, 3, simnettest.Options{}, func(r *rig) {
		for _, n := range r.nodes[1:] {
			n.fs.Inject(simfile.Fault{Ops: simfile.OpCreate, Err: syscall.EMFILE, Times: 1})
		}
		s := r.nodes[0].session()
		for range 5 {
			s.write(100_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		if got := r.nodes[1].store.Refused(9); len(got) != 1 {
			r.fatalf("it refuses %v", got)
		}
		began := r.sim.Monotonic()
		l, err := s.finish()
		if wait := r.sim.Monotonic() - began; err != nil || wait > 2*wantAfter {
			r.fatalf("%v, after %v", err, wait)
		}
		r.commit(l)
		s.abort()
	})
}

// A member without room is not asked while the others suffice, however long they take.
func TestFullIsNotNeeded(t *testing.T) {
	run(t, 14, 3, simnettest.Options{}, func(r *rig) {
		slow, full := r.nodes[1], r.nodes[2]
		s := r.nodes[0].session()
		full.fs.SetCapacity(4 << 20)
		for range 20 {
			s.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		r.until("it is refused", func() bool { return len(full.store.Refused(9)) == 1 })
		slow.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: time.Minute, Times: 1})
		came, began := full.store.count.received.Load(), r.sim.Monotonic()
		l, err := s.finish()
		if wait := r.sim.Monotonic() - began; err != nil || wait < time.Minute {
			r.fatalf("%v, after %v", err, wait)
		}
		if n := full.store.count.received.Load() - came; n != 0 {
			r.fatalf("%d bytes were sent to the member that has no room", n)
		}
		full.fs.SetCapacity(0)
		r.commit(l)
		s.abort()
	})
}

// A sync that fails drops what it may have lost.
func TestFailedSync(t *testing.T) {
	run(t, 7, 3, simnettest.Options{}, func(r *rig) {
		bad := r.nodes[1]
		in := bad.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
		s := r.nodes[0].session()
		for range 12 {
			s.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		l, err := s.finish()
		if err != nil || in.Hits() != 1 || bad.store.Has(&l) {
			r.fatalf("%v, %d syncs failed", err, in.Hits())
		}
		r.commit(l)
		s.abort()
		// The leader's own: COMMIT fails, though a second sync would not.
		in = r.nodes[0].fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
		s = r.nodes[0].session()
		for range 20 {
			s.write(1_000_000)
		}
		r.until("a sync has failed", func() bool { return in.Hits() == 1 })
		if _, err := s.finish(); err == nil {
			r.fatalf("COMMIT after a failed sync")
		}
		s.abort()
	})
}

// Bytes that are wrong are received again; if they stay wrong, the body comes at the commit.
func TestDamage(t *testing.T) {
	for _, times := range []int{1, 2, 1000} {
		run(t, 8, 3, simnettest.Options{}, func(r *rig) {
			left := times
			r.damage = func(from *node, kind string, chunk []byte) []byte {
				if kind == bulkStream && left > 0 && len(chunk) > 1000 && r.rng.IntN(3) == 0 {
					left--
					chunk[r.rng.IntN(len(chunk)-600)+600] ^= 4
				}
				return chunk
			}
			s := r.nodes[0].session()
			for range 20 {
				s.write(300_000)
				env.Sleep(r.sim, 20*time.Millisecond)
			}
			env.Sleep(r.sim, 5*time.Second)
			for _, n := range r.nodes[1:] {
				if now := n.store.Status(); times == 1000 && len(now.Streams) > 0 {
					r.fatalf("member %d still receives: %+v", n.id, now)
				}
			}
			if times == 1000 {
				r.nodes[0].store.Resign(r.term)
				raw := make([]byte, s.b.Status().Stored)
				_, _ = s.b.ReadAt(raw, 0)
				r.want[s.b.ID] = raw
			}
			l, err := s.finish()
			if (err == ErrOver) != (times == 1000) {
				r.fatalf("%v", err)
			}
			r.commit(l)
			s.abort()
		})
	}
}

// What Raft has been given stays, whatever its session and its leader say.
func TestPin(t *testing.T) {
	run(t, 9, 3, simnettest.Options{}, func(r *rig) {
		one, two := r.nodes[0].session(), r.nodes[0].session()
		one.write(500_000)
		two.write(500_000)
		l1, err1 := one.finish()
		l2, err2 := two.finish()
		if err1 != nil || err2 != nil {
			r.fatalf("%v %v", err1, err2)
		}
		all := func(l *entry.LargeBody) bool {
			return r.nodes[1].store.Has(l) && r.nodes[2].store.Has(l)
		}
		r.until("all have both", func() bool { return all(&l1) && all(&l2) })
		for _, n := range r.nodes {
			if !n.store.Pin(&l1) || n.id > 1 && !n.store.Pin(&l2) {
				r.fatalf("member %d: not pinned", n.id)
			}
		}
		one.abort() // its session does not know what becomes of it
		two.abort()
		r.term, r.leader = 6, 2
		for _, n := range r.nodes {
			n.store.Resign(5)
			n.store.DropBefore(6)
		}
		env.Sleep(r.sim, 5*time.Second)
		if !r.nodes[0].store.Has(&l1) || !all(&l1) || !all(&l2) || r.nodes[0].store.Has(&l2) {
			r.fatalf("pinned bodies are gone, or others are not:\n%s", r)
		}
		other := l1
		other.Digest[3] ^= 1
		if _, err := r.nodes[1].store.Take(&other); !errors.Is(err, errNoBody) || r.nodes[1].store.Has(&other) {
			r.fatalf("another body was taken: %v", err)
		}
		r.commit(l1)
		for _, n := range r.nodes {
			n.store.Unpin(&l2)
		}
		env.Sleep(r.sim, time.Second)
		for _, n := range r.nodes {
			if len(n.files()) > 0 {
				r.fatalf("member %d keeps %v", n.id, n.files())
			}
		}
	})
}

// A body that only the log of one member has is fetched, in spite of cuts.
func TestFetch(t *testing.T) {
	for seed := range uint64(5) {
		run(t, seed, 4, simnettest.Options{Faults: simnettest.Faults{BytesPerSecond: 20_000_000}}, func(r *rig) {
			r.nodes[3].down()
			s := r.nodes[0].session()
			for range 10 {
				s.write(1_000_000)
			}
			l, err := s.finish()
			if err != nil {
				r.fatalf("%v", err)
			}
			r.commit(l)
			delete(r.nodes[1].log, l.ID) // as if it had been purged
			r.nodes[3].up()
			r.net.SetDefaultFaults(simnettest.Faults{Break: 60, BytesPerSecond: 20_000_000})
			late := r.nodes[3]
			late.commit(l)
			if got := late.store.Status(); got.Received > 3*l.Stored || got.Fetching != 0 && late.store.fetchOf(l.ID) != nil {
				r.fatalf("%d bytes were received for %d", got.Received, l.Stored)
			}
			if len(late.has) != 1 {
				r.fatalf("it was told %d times", len(late.has))
			}
		})
	}
}

// A body that comes by the leader's stream after all, and goes into the log, is not fetched once more.
func TestFetchOvertaken(t *testing.T) {
	run(t, 12, 3, simnettest.Options{}, func(r *rig) {
		late := r.nodes[2]
		late.down()
		s := r.nodes[0].session()
		s.write(100_000)
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		late.up()
		never := entry.LargeBody{ID: entry.StreamID{Term: 3, Member: 9}, Stored: 1000, Plain: 1, Events: 1, Frames: 1, Offset: body.Offset}
		for i := range fetchesMax { // no other one begins meanwhile
			never.ID.Number = uint64(i)
			late.store.Fetch(&never, 7, []uint64{1})
		}
		late.store.Fetch(&l, 8, []uint64{1})
		r.until("it comes by the stream", func() bool { return late.store.Has(&l) })
		r.commit(l)
		for i := range fetchesMax {
			never.ID.Number = uint64(i)
			late.store.CancelFetch(&never)
		}
		env.Sleep(r.sim, 3*time.Second)
		late.store.CancelFetch(&l)
		late.store.Unpin(&l)
		env.Sleep(r.sim, time.Second)
		if got := late.store.Status(); got.Fetching != 0 || len(got.Streams) != 0 || len(late.files()) != 0 || got.Received >= 2*l.Stored {
			r.fatalf("%d fetches, %v, %d bytes received for %d", got.Fetching, late.files(), got.Received, l.Stored)
		}
	})
}

// A fetch that is not wanted any more ends and leaves nothing.
func TestCancelFetch(t *testing.T) {
	run(t, 11, 2, simnettest.Options{}, func(r *rig) {
		want := entry.LargeBody{ID: entry.StreamID{Term: 3, Member: 9}, Stored: 1000, Plain: 1, Events: 1, Frames: 1, Offset: body.Offset}
		for i := range 10 {
			want.ID.Number = uint64(i)
			r.nodes[1].store.Fetch(&want, 7, []uint64{1})
		}
		env.Sleep(r.sim, 3*time.Second)
		if got := r.nodes[1].store.Status(); got.Fetching != 10 || len(r.nodes[1].files()) != fetchesMax {
			r.fatalf("%d fetches, %v", got.Fetching, r.nodes[1].files())
		}
		if miss := r.nodes[1].miss; !slices.Contains(miss, 7) {
			r.fatalf("nobody has the body, and OnMiss has heard of %d", miss)
		}
		r.nodes[1].store.DropBefore(6)
		for i := range 10 {
			want.ID.Number = uint64(i)
			r.nodes[1].store.CancelFetch(&want)
		}
		env.Sleep(r.sim, 3*time.Second)
		if got := r.nodes[1].store.Status(); got.Fetching != 0 || len(r.nodes[1].files()) != 0 {
			r.fatalf("%d fetches, %v", got.Fetching, r.nodes[1].files())
		}
	})
}
