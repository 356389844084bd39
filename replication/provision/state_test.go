package provision

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// applySetting applies the next entry of the log as one that has no number, as those of settings.
func applySetting(t testing.TB, eng *storage.Engine, key, value string) {
	t.Helper()
	x := eng.Trx.Begin(trx.Options{})
	w := eng.Tables.NewWorker()
	w.Use(x)
	if err := eng.Catalog.PutState(w, dict.Replicated, []byte(key), []byte(value)); err != nil {
		t.Fatal(err)
	}
	x.StartCommit()
	_, pos := eng.Trx.Applied()
	if err := eng.Trx.CommitGroup([]trx.Commit{{Trx: x}}, trx.Position{Index: pos.Index + 1, Term: pos.Term}); err != nil {
		t.Fatal(err)
	}
	eng.Catalog.Committed(x)
	eng.Trx.End(x)
}

// twoDonors runs fn with two donors that have applied the same, a state of several parts among it.
func twoDonors(t *testing.T, seed uint64, fn func(e env.Env, d, d2 *donor, j *job)) {
	world := smallDonor(t)
	s := simenv.New(seed)
	s.Run(func() {
		d, d2 := newDonor(t, s, world.CrashImageFor(s, seed), nil), newDonor(t, s, world.CrashImageFor(s, seed), nil)
		for i := range 20 {
			for _, eng := range []*storage.Engine{d.eng, d2.eng} {
				do(t, eng, func(w *table.Worker) error {
					return eng.Catalog.PutState(w, dict.Replicated, []byte(fmt.Sprintf("group/setting/%02d", i)), bytes.Repeat([]byte{'v'}, 1000))
				})
			}
		}
		fn(s, d, d2, newJob(t, s, d.net))
		d.src.Close()
		d.close()
		d2.close()
	})
}

// at has the network break an answer to a request of some kind at its chunk n, once, and ask another donor from then on.
func (n *network) at(w what, chunk int, other *Source) {
	done := false
	n.cut = func(q *request, k int, b []byte) ([]byte, error) {
		if q.what == w && k == chunk && !done {
			done = true
			n.source = other
			return nil, errors.New("connection reset")
		}
		return b, nil
	}
}

// TestStateOfDonorBehind: a donor that has the CSN of a snapshot that another one has taken, and not yet the entries without a
// number behind that, does not give the state: the receiver would never apply these.
func TestStateOfDonorBehind(t *testing.T) {
	for seed := range uint64(3) {
		for _, broken := range []int{1, 3} { // before any of the state, and within it
			twoDonors(t, seed, func(e env.Env, d, d2 *donor, j *job) {
				applySetting(t, d.eng, "group/setting/00", "changed")
				applySetting(t, d.eng, "group/setting/zz", "new")
				d.net.at(askState, broken, d2.src)
				if seed == 0 && broken == 1 {
					_, err := j.run()
					wantError(t, err, ErrBehind, "nothing has arrived", "it has applied the log up to entry")
				}
				tasks := env.NewGroup(e)
				tasks.Go("follow", func() {
					env.Sleep(e, time.Second)
					applySetting(t, d2.eng, "group/setting/00", "changed")
					env.Sleep(e, 50*time.Millisecond)
					applySetting(t, d2.eng, "group/setting/zz", "new")
				})
				p := j.ends(d)
				tasks.Wait()
				if p.Restarts != 0 || (seed > 0 || broken > 1) && !strings.Contains(p.LastError, "the donor is behind") || d2.src.Stats().Rows == 0 {
					t.Errorf("seed %d, chunk %d: %+v", seed, broken, p)
				}
			})
		}
	}
}

// TestStateOfOlderDonors: a donor of an older version does not say how far it has applied the log. Its state counts if it is certain
// that it has taken the snapshot.
func TestStateOfOlderDonors(t *testing.T) {
	for what, c := range map[string]struct {
		asked    what
		chunk    int
		other    bool
		restarts int64
	}{
		"nothing breaks": {},
		"another donor before the list of tables": {askCatalogue, 1, true, 1},
		"another donor before the state":          {askState, 1, true, 1},
		"another donor within the state":          {askState, 3, true, 1},
		"the same donor within the state":         {askState, 3, false, 1},
		"another donor behind the state":          {askTable, 1, true, 0},
	} {
		t.Run(what, func(t *testing.T) {
			twoDonors(t, 1, func(e env.Env, d, d2 *donor, j *job) {
				applySetting(t, d.eng, "group/setting/zz", "new") // the other one never does
				d.net.format = splitFormat
				next := d.src
				if c.other {
					next = d2.src
				}
				d.net.at(c.asked, c.chunk, next)
				m, err := j.run()
				if err != nil {
					t.Fatal(err)
				}
				from := d.eng
				if _, pos := d2.eng.Applied(); m.Position == pos {
					from = d2.eng
				}
				eng := openReceived(t, e, j.home)
				same(t, from, eng, &m)
				if err := eng.Close(); err != nil {
					t.Error(err)
				}
				if p := j.r.Progress(); p.Restarts != c.restarts || len(d.src.Snapshots())+len(d2.src.Snapshots()) > 1 {
					t.Errorf("%+v; %v, %v", p, d.src.Snapshots(), d2.src.Snapshots())
				}
			})
		})
	}
}

// TestStateOfEarlierRun: a run that goes on with the state of an earlier one does not know who has taken the snapshot.
func TestStateOfEarlierRun(t *testing.T) {
	for format, restarts := range map[uint32]int64{splitFormat: 1, appliedFormat: 0} {
		twoDonors(t, 1, func(e env.Env, d, d2 *donor, j *job) {
			d.net.format = format
			d.net.at(askState, 4, nil)
			_, err := j.run()
			wantError(t, err, nil, "nobody is there")
			d.net.source = d.src
			if p := j.ends(d); p.Restarts != restarts {
				t.Errorf("format %d: %+v", format, p)
			}
		})
	}
}
