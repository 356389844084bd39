package provision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// job is a receiver with its home.
type job struct {
	t    testing.TB
	env  env.Env
	fs   *simfile.FS
	home *Home
	opt  ReceiverOptions
	r    *Receiver
}

func newJob(t testing.TB, e env.Env, n *network) *job {
	t.Helper()
	j := &job{t: t, env: e, fs: simfile.New(e, 3)}
	j.home = openHome(t, j.fs)
	j.opt = receiverOptions(e, j.home, n)
	return j
}

func (j *job) run() (Manifest, error) {
	j.t.Helper()
	var err error
	if j.r, err = NewReceiver(j.opt); err != nil {
		j.t.Fatal(err)
	}
	return j.r.Run()
}

// ends runs the receiver and checks what has come.
func (j *job) ends(d *donor) Progress {
	j.t.Helper()
	m, err := j.run()
	if err != nil {
		j.t.Fatalf("%v; progress %+v", err, j.r.Progress())
	}
	eng := openReceived(j.t, j.env, j.home)
	same(j.t, d.eng, eng, &m)
	if err := eng.Close(); err != nil {
		j.t.Error(err)
	}
	return j.r.Progress()
}

// wantError checks an error's kind and text.
func wantError(t testing.TB, err, kind error, parts ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not say %q: %v", p, err)
		}
	}
}

// resumed counts the requests that went on behind a row.
func (n *network) resumed() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.requests {
		if q.resume {
			count++
		}
	}
	return count
}

// TestCuts: streams end anywhere, and are gone on with where they were.
func TestCuts(t *testing.T) {
	resumed := 0
	for seed := range race.Fewer(uint64(6), 2) {
		simRun(t, seed, func(e env.Env, d *donor) {
			rng := rand.New(rand.NewPCG(seed, 8))
			d.net.cut = func(_ *request, _ int, chunk []byte) ([]byte, error) {
				switch rng.IntN(12) {
				case 0:
					return nil, errors.New("cut")
				case 1:
					return chunk[:rng.IntN(len(chunk))], errors.New("cut")
				}
				return chunk, nil
			}
			p := newJob(t, e, d.net).ends(d)
			if p.Restarts != 0 {
				t.Errorf("seed %d: %+v", seed, p)
			}
			resumed += d.net.resumed()
		})
	}
	if resumed == 0 {
		t.Error("nothing was resumed")
	}
}

// TestDamage: a damaged part is asked for again; one that stays so ends the run with
// its table's name.
func TestDamage(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 1) {
		simRun(t, seed, func(e env.Env, d *donor) {
			rng := rand.New(rand.NewPCG(seed, 9))
			hits := int64(0)
			d.net.cut = func(q *request, _ int, chunk []byte) ([]byte, error) {
				if rng.IntN(8) == 0 {
					hits++
					chunk[rng.IntN(len(chunk))] ^= 1 << rng.IntN(8)
				}
				return chunk, nil
			}
			p := newJob(t, e, d.net).ends(d)
			if hits > 3 && p.BadParts == 0 || p.BadParts > hits {
				t.Errorf("seed %d: %d chunks were damaged, %d seen", seed, hits, p.BadParts)
			}
		})
	}
	simRun(t, 9, func(e env.Env, d *donor) {
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if q.what == askTable && n == 2 {
				chunk[len(chunk)/2] ^= 4
			}
			return chunk, nil
		}
		_, err := newJob(t, e, d.net).run()
		wantError(t, err, errDamaged, "damaged part", "checksum", "table db.", "5 times in a row")
	})
}

// TestLostPart: a part that is missing, or comes twice, is noticed though each part is
// sound.
func TestLostPart(t *testing.T) {
	for _, twice := range []bool{false, true} {
		simRun(t, 1, func(e env.Env, d *donor) {
			done := false
			d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
				if q.what != askTable || n != 3 || done {
					return chunk, nil
				}
				done = true
				if twice {
					return append(chunk, chunk...), nil
				}
				return nil, nil
			}
			if p := newJob(t, e, d.net).ends(d); p.BadParts != 1 {
				t.Errorf("twice %v: %+v", twice, p)
			}
		})
	}
}

// TestDonorVanishes: without a donor Run gives up, and says why; the next one goes on
// with what is complete.
func TestDonorVanishes(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.opt.Streams = 1
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if d.net.asked(askTable) == 3 && n == 2 {
				d.net.source = nil
				return nil, errors.New("connection reset")
			}
			return chunk, nil
		}
		_, err := j.run()
		wantError(t, err, nil, "nothing has arrived for 2s", "nobody is there", "table db.")
		if half, complete := j.home.Receiving(); !half || complete {
			t.Errorf("half %v, complete %v", half, complete)
		}
		if _, ok := j.home.Received(); ok {
			t.Error("half received data are in use")
		}
		d.net.source, d.net.cut = d.src, nil
		before := d.net.asked(askTable)
		if p := j.ends(d); p.Restarts != 0 || d.net.asked(askTable)-before != 2 {
			t.Errorf("%d tables were asked for again; %+v", d.net.asked(askTable)-before, p)
		}
	})
}

// TestSnapshotGone: the donor is restarted, so that its snapshot is gone: the receiver
// begins again with a new one.
func TestSnapshotGone(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		done := false
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if q.what == askTable && n == 2 && !done {
				done = true
				fill(t, d.eng, "db", "parent", 3, func(i int, _ *table.Table) []types.Value { return plainRow(int64(i)) })
				old := d.src
				d.net.source = nil
				d.net.tasks.Go("restart", func() {
					old.Close()
					if _, err := d.eng.Trx.PurgeLimit(); err != nil {
						t.Error(err)
					}
					d.serveAgain(e)
				})
				return nil, errors.New("connection reset")
			}
			return chunk, nil
		}
		if p := j.ends(d); p.Restarts != 1 || !strings.Contains(p.LastError, "snapshot gone") {
			t.Errorf("%+v", p)
		}
	})
}

// serveAgain gives the donor another source, as if it had been restarted.
func (d *donor) serveAgain(e env.Env) {
	n := d.net
	d.serve(e, nil)
	n.source = d.src
	d.net = n
}

// TestOtherDonor: another member that has the snapshot's CSN goes on with it.
func TestOtherDonor(t *testing.T) {
	s := simenv.New(1)
	world := smallDonor(t)
	s.Run(func() {
		d := newDonor(t, s, world.CrashImageFor(s, 1), nil)
		d2 := newDonor(t, s, world.CrashImageFor(s, 2), nil)
		j := newJob(t, s, d.net)
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if q.what == askTable && n == 3 && d.net.source == d.src {
				d.net.source = d2.src
				return nil, errors.New("connection reset")
			}
			return chunk, nil
		}
		if p := j.ends(d); p.Restarts != 0 {
			t.Errorf("%+v", p)
		}
		if s := d2.src.Stats(); s.Rows == 0 {
			t.Error("the other donor sent nothing")
		}
		d.src.Close()
		d.close()
		d2.close()
	})
}

// TestRefused: what a donor must not serve, and a receiver must not take.
func TestRefused(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.opt.Group = [16]byte{9}
		_, err := j.run()
		wantError(t, err, ErrOtherGroup, "belongs to another group", "01020300", "09000000")

		answer := func(req []byte) error {
			return d.src.Answer(context.Background(), req, new(sink))
		}
		newer := request{min: FormatVersion + 1, max: FormatVersion + 1, group: testGroup, what: askSnapshot, fresh: true}
		wantError(t, answer(newer.append(nil)), ErrVersion, "formats 1 to 3", "4 to 4")
		wantError(t, answer([]byte("GET / HTTP/1.1")), ErrRequest)
		bad := request{min: 1, max: 1, group: testGroup, what: askTable, csn: 11, table: 99999}
		wantError(t, answer(bad.append(nil)), ErrRequest, "no table 99999")
		future := request{min: 1, max: 1, group: testGroup, what: askSnapshot, csn: 5000}
		wantError(t, answer(future.append(nil)), ErrBehind, "5000")

		// A donor that sends what it should not.
		for what, change := range map[string]func(m *Manifest){
			"newer":   func(m *Manifest) { m.Format = FormatVersion + 1 },
			"foreign": func(m *Manifest) { m.Group[3] = 7 },
		} {
			d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
				if q.what != askSnapshot || n != 1 {
					return chunk, nil
				}
				dec := &decoder{b: chunk[frameHeader:]}
				m := dec.manifest()
				change(&m)
				var out sink
				f := frameWriter{w: &out}
				err := f.send(frameManifest, m.append(f.begin()))
				return out, err
			}
			_, err := newJob(t, e, d.net).run()
			if what == "newer" {
				wantError(t, err, ErrVersion, "in format 4", "start a newer version")
			} else {
				wantError(t, err, ErrOtherGroup, "of group 01020307")
			}
		}
	})
}

// sink keeps what is sent.
type sink []byte

func (s *sink) Send(chunk []byte) error {
	*s = append(*s, chunk...)
	return nil
}

// sendFunc is a writer of chunks that looks at them.
func (s *sink) Abort() {}

type sendFunc func(chunk []byte) error

func (f sendFunc) Abort() {}

func (f sendFunc) Send(chunk []byte) error { return f(chunk) }

// TestCommitted: a donor sends nothing that it does not know to be committed, and only
// between entries.
func TestCommitted(t *testing.T) {
	world := smallDonor(t)
	s := simenv.New(1)
	s.Run(func() {
		committed, boundary := uint64(3), errors.New("this member is behind a snapshot")
		d := newDonor(t, s, world.CrashImageFor(s, 1), func(o *SourceOptions) {
			o.Committed = func() uint64 { return committed }
			o.AtBoundary = func(take func()) error {
				if boundary == nil {
					take()
				}
				return boundary
			}
		})
		j := newJob(t, s, d.net)
		_, err := j.run()
		wantError(t, err, ErrBusy, "behind a snapshot")
		boundary = nil
		_, err = j.run()
		wantError(t, err, ErrBehind, "only 3 is known to be committed", "nothing has arrived")
		committed = 1 << 40
		j.ends(d)
		d.close()
	})
}

// TestSilentDonor: a stream that brings nothing is given up.
func TestSilentDonor(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.opt.GiveUp = time.Minute
		silent := 0
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if q.what == askTable && n == 2 && silent < 2 {
				silent++
				env.Sleep(e, time.Hour)
			}
			return chunk, nil
		}
		start := e.Monotonic()
		p := j.ends(d)
		if took := e.Monotonic() - start; p.Retries != 2 || took < 10*time.Second || took > 15*time.Second || !strings.Contains(p.LastError, "silent for 10s") {
			t.Errorf("%v; %+v", took, p)
		}
	})
}

// TestFullDisk: a full disk is waited for; Stop ends the wait, and another run goes on.
func TestFullDisk(t *testing.T) {
	var used int64
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.ends(d)
		used = j.fs.Used()
	})
	for _, stop := range []bool{false, true} {
		for _, room := range []int64{100 << 10, used / 2, used - 600<<10, used - 200<<10, used - 60<<10} {
			simRun(t, 1, func(e env.Env, d *donor) {
				j := newJob(t, e, d.net)
				j.opt.Streams = 3
				j.fs.SetCapacity(room)
				done := false
				waited := 0
				tasks := env.NewGroup(e)
				tasks.Go("operator", func() {
					for !done {
						env.Sleep(e, 5*time.Millisecond)
						if j.r == nil || j.r.Progress().Phase != WaitingForSpace {
							continue
						}
						if waited++; waited > 20 && stop {
							j.r.Stop()
							return
						} else if waited > 20 {
							j.fs.SetCapacity(0)
						}
					}
				})
				if stop {
					_, err := j.run()
					wantError(t, err, ErrStopped)
					if p := j.r.Progress(); !strings.Contains(p.LastError, "no space") {
						t.Errorf("%+v", p)
					}
					done = true
					j.fs.SetCapacity(0)
				}
				p := j.ends(d)
				done = true
				tasks.Wait()
				if waited == 0 || !stop && !strings.Contains(p.LastError, "no space") {
					t.Errorf("room for %d of %d: the disk was never full; %+v", room, used, p)
				}
			})
		}
	}
}

// TestDamagedDonor: a donor that cannot read a table says which page, and the receiver
// says whose table it was.
func TestDamagedDonor(t *testing.T) {
	world := smallDonor(t)
	s := simenv.New(1)
	s.Run(func() {
		fsys := world.CrashImageFor(s, 1)
		for name, at := range map[string]int64{"spaces/00000001.trd": 1<<14 + 9000, "doublewrite.trd": 0} {
			f, err := fsys.Open(name, file.OpenOptions{})
			if err == nil {
				_, err = f.WriteAt(make([]byte, 600), at)
			}
			if err == nil && at > 0 {
				_, err = f.WriteAt([]byte{1, 2, 3}, at)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d := newDonor(t, s, fsys, nil)
		j := newJob(t, s, d.net)
		_, err := j.run()
		wantError(t, err, ErrDonor, "table db.a", "tablespace 1, page 1", "nothing has arrived")
		d.close()
	})
}

// TestBusyDonor: rows and tables change at the donor, and it purges, while it sends.
func TestBusyDonor(t *testing.T) {
	world := smallDonor(t)
	s := simenv.New(1)
	s.Run(func() {
		o := engineOptions()
		o.PurgeTasks, o.PurgeInterval = 2, time.Millisecond
		d := &donor{t: t, eng: openEngineWith(t, s, world.CrashImageFor(s, 1), o)}
		d.serve(s, nil)
		csn, _ := d.eng.Applied()
		want, err := d.eng.StateHash(csn)
		if err != nil {
			t.Fatal(err)
		}
		step := 0
		d.net.cut = func(q *request, n int, chunk []byte) ([]byte, error) {
			if q.what == askTable {
				step++
				disturb(t, d.eng, step)
				env.Sleep(s, 10*time.Millisecond)
			}
			return chunk, nil
		}
		j := newJob(t, s, d.net)
		m, err := j.run()
		if err != nil || m.CSN != csn {
			t.Fatalf("%+v, %v", m, err)
		}
		if step < 10 {
			t.Errorf("%d steps", step)
		}
		eng := openReceived(t, s, j.home)
		if got, err := eng.StateHash(csn); err != nil || got != want {
			t.Errorf("%x, want %x (%v)", got[:4], want[:4], err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		d.close()
	})
}

// disturb changes something at a donor.
func disturb(t testing.TB, eng *storage.Engine, step int) {
	t.Helper()
	change := func(name string, fn func(w *table.Worker, tbl *table.Table) error) {
		h, err := eng.Catalog.OpenTable(nil, "db", name)
		if err != nil {
			return // it is gone by now
		}
		defer h.Release()
		do(t, eng, func(w *table.Worker) error { return fn(w, h.Table()) })
	}
	key := func(tbl *table.Table, id int) []byte {
		return tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(int64(id)))
	}
	for _, name := range []string{"a", "b"} {
		change(name, func(w *table.Worker, tbl *table.Table) error {
			for i := step * 10; i < step*10+5; i++ {
				if err := w.Delete(tbl, key(tbl, i)); err != nil && !errors.Is(err, table.ErrNotFound) {
					return err
				}
			}
			return nil
		})
	}
	switch step {
	case 2:
		do(t, eng, func(w *table.Worker) error { _, err := eng.Catalog.DropTable(w, "db", "a"); return err })
	case 3:
		do(t, eng, func(w *table.Worker) error {
			_, err := eng.Catalog.TruncateTable(w, "db", "b", nil)
			return err
		})
	case 4:
		do(t, eng, func(w *table.Worker) error {
			_, err := eng.Catalog.RenameTable(w, "db", "history", "db", "past")
			return err
		})
	case 5:
		do(t, eng, func(w *table.Worker) error { _, err := eng.Catalog.DropTable(w, "db", "parent"); return err })
	}
}

// TestRate: both sides keep within their rates.
func TestRate(t *testing.T) {
	world := smallDonor(t)
	for _, receiver := range []bool{false, true} {
		s := simenv.New(1)
		s.Run(func() {
			d := newDonor(t, s, world.CrashImageFor(s, 1), func(o *SourceOptions) {
				if !receiver {
					o.Rate = 2000
				}
			})
			j := newJob(t, s, d.net)
			if receiver {
				j.opt.Rate = 2000
			}
			start := s.Monotonic()
			p := j.ends(d)
			want := time.Duration(float64(p.Received) / 2000 * float64(time.Second))
			if took := s.Monotonic() - start; took < want-time.Second || took > want+2*time.Second || want < 3*time.Second {
				t.Errorf("%d bytes took %v, want %v", p.Received, took, want)
			}
			d.close()
		})
	}
}

// TestStop: Run ends soon, wherever it is, and the next one goes on.
func TestStop(t *testing.T) {
	for after := time.Duration(1); after < 30; after += 3 {
		simRun(t, uint64(after), func(e env.Env, d *donor) {
			d.net.cut = func(_ *request, _ int, chunk []byte) ([]byte, error) {
				env.Sleep(e, 3*time.Millisecond)
				return chunk, nil
			}
			j := newJob(t, e, d.net)
			tasks := env.NewGroup(e)
			tasks.Go("stop", func() {
				env.Sleep(e, after*time.Millisecond)
				j.r.Stop()
			})
			_, err := j.run()
			wantError(t, err, ErrStopped)
			tasks.Wait()
			j.ends(d)
		})
	}
}

// TestLargeRows: rows larger than a part and a chunk, and a part that does not shrink.
func TestLargeRows(t *testing.T) {
	e := env.Real()
	d := newDonor(t, e, file.OS(t.TempDir()), nil)
	defer d.close()
	createSchema(t, d.eng, "db")
	def := plainTable("db", "large")
	def.Columns[1].Type = types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	def.Indexes = def.Indexes[:1]
	create(t, d.eng, def)
	rng := rand.New(rand.NewPCG(1, 1))
	fill(t, d.eng, "db", "large", 6, func(i int, _ *table.Table) []types.Value {
		b := make([]byte, []int{10, 3 << 20, 100, 1<<20 - 3, 5 << 20, 0}[i])
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		return []types.Value{types.NewInt(int64(i)), types.NewBytes(b), types.Null}
	})
	home := openHome(t, file.OS(t.TempDir()))
	opt := patient(receiverOptions(e, home, d.net))
	opt.Verify = true
	m, err := receive(opt)
	if err != nil {
		t.Fatal(err)
	}
	eng := openReceived(t, e, home)
	same(t, d.eng, eng, &m)
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
}

// TestProgress: totals stand from the beginning, what is done rises, and the estimate
// of what is left is one.
func TestProgress(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.opt.Rate, j.opt.Streams = 1000, 1
		tasks := env.NewGroup(e)
		var seen []Progress
		over := false
		tasks.Go("watch", func() {
			for ; !over; env.Sleep(e, 500*time.Millisecond) {
				if j.r != nil {
					seen = append(seen, j.r.Progress())
				}
			}
		})
		start := e.Monotonic()
		last := j.ends(d)
		took := e.Monotonic() - start
		over = true
		tasks.Wait()
		good := 0
		for i, p := range seen {
			if p.Phase != Receiving || p.Tables == 0 {
				continue
			}
			if p.Tables != 4 || p.Rows != last.Rows || p.Bytes != last.Bytes || i > 0 && p.RowsDone < seen[i-1].RowsDone || p.BytesDone > p.Bytes {
				t.Errorf("%d: %+v", i, p)
			}
			if left := took - p.Elapsed; p.Left > left/2 && p.Left < left*2 {
				good++
			}
		}
		if len(seen) < 10 || good < len(seen)/5 || last.RowsDone != last.Rows || last.BytesDone != last.Bytes {
			t.Errorf("%d of %d estimates were good; in the end %+v", good, len(seen), last)
		}
	})
}

// TestAttach: what is attached is in the data, after a failure and with a new snapshot.
func TestAttach(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		calls := 0
		j.opt.Attach = func(_ context.Context, data file.FS, m *Manifest) error {
			switch calls++; calls {
			case 1:
				return fmt.Errorf("%w: the log has moved on", ErrSnapshotGone)
			case 2:
				return errors.New("nobody has the log")
			}
			return file.WriteWhole(data, "log", []byte(fmt.Sprint(m.CSN)))
		}
		_, err := j.run()
		wantError(t, err, nil, "nobody has the log")
		if p := j.r.Progress(); p.Restarts != 1 {
			t.Errorf("%+v", p)
		}
		asked := d.net.asked(askTable)
		m, err := j.run()
		if err != nil || calls != 3 || d.net.asked(askTable) != asked {
			t.Errorf("%d calls, %v", calls, err)
		}
		// A process that ends before it has swapped attaches again what the next one finds.
		j.fs = j.fs.CrashImage()
		j.home = openHome(t, j.fs)
		j.opt.Home = j.home
		if again, err := j.run(); err != nil || calls != 4 || d.net.asked(askTable) != asked || again.CSN != m.CSN {
			t.Errorf("%d calls, snapshot %d after %d, %v", calls, again.CSN, m.CSN, err)
		}
		if err := j.home.Swap(nil); err != nil || content(j.home.Data(), "log") != fmt.Sprint(m.CSN) {
			t.Errorf("%q, %v", content(j.home.Data(), "log"), err)
		}
	})
}
