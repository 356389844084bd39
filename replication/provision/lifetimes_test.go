package provision

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// oldest is the position of the oldest snapshot that is open.
func (d *donor) oldest() (pos trx.Position) {
	for _, m := range d.src.Snapshots() {
		if p := m.Position; p.Index != 0 && (pos.Index == 0 || p.Index < pos.Index) {
			pos = p
		}
	}
	return pos
}

// TestLifetimes: how long a donor keeps snapshots, and for how many.
func TestLifetimes(t *testing.T) {
	world := smallDonor(t)
	s := simenv.New(1)
	s.Run(func() {
		d := newDonor(t, s, world.CrashImageFor(s, 1), func(o *SourceOptions) { o.MaxStreams = 3 })
		receiver := uint64(0)
		ask := func(q request) error {
			if q.fresh {
				receiver++ // another one
			}
			q.receiver = receiver
			q.min, q.max, q.group = 1, 1, testGroup
			return d.src.Answer(context.Background(), q.append(nil), new(sink))
		}
		bump := func() uint64 {
			do(t, d.eng, func(w *table.Worker) error {
				return d.eng.Catalog.PutState(w, 0, []byte("k"), []byte(fmt.Sprint(s.Monotonic())))
			})
			return d.eng.Trx.LastCommitted()
		}
		open := func() int { return d.src.Stats().Snapshots }
		fresh := request{what: askSnapshot, fresh: true}
		first := d.eng.Trx.LastCommitted()
		for i, want := range []error{nil, nil, ErrBusy} {
			if err := ask(fresh); !errors.Is(err, want) {
				t.Errorf("snapshot %d: %v", i, err)
			}
			bump()
		}
		if pos := d.oldest(); pos.Index != first {
			t.Errorf("oldest: %+v", pos)
		}
		wantError(t, ask(fresh), ErrBusy, "2 snapshots open")
		// A backup has one of its own, which takes nobody's place, and nobody takes its.
		dump := func(behind func(m *Manifest)) {
			t.Helper()
			_, err := d.src.Dump(context.Background(), func(string) (ChunkWriter, error) { return discard{}, nil }, func(m *Manifest) error {
				behind(m)
				return nil
			})
			if err != nil || open() != 2 {
				t.Errorf("a dump beside 2 snapshots: %v, %d are open after it", err, open())
			}
		}
		dump(func(*Manifest) { wantError(t, ask(fresh), ErrBusy, "3 snapshots open") })
		env.Sleep(s, evictAfter)
		dump(func(m *Manifest) {
			bump()
			env.Sleep(s, 11*time.Minute) // the others are too old by then
			for range 3 {
				bump()
				if err := ask(fresh); err != nil {
					t.Error(err)
				}
				env.Sleep(s, evictAfter)
			}
			if pos := d.oldest(); pos != m.Position {
				t.Errorf("oldest: %+v beside a dump of %+v", pos, m.Position)
			}
		})
		first = d.eng.Trx.LastCommitted()
		env.Sleep(s, evictAfter) // the oldest gives way
		if err := ask(fresh); err != nil || open() != 2 {
			t.Errorf("%d open, %v", open(), err)
		}
		if err := ask(request{what: askCatalogue, csn: first}); err != nil || open() != 2 { // opened again: nothing was purged
			t.Errorf("%d open, %v", open(), err)
		}
		env.Sleep(s, 11*time.Minute)
		if n := open(); n != 0 {
			t.Errorf("%d are open after the grace time", n)
		}
		if err := ask(fresh); err != nil {
			t.Fatal(err)
		}
		var err error
		csn, opened := d.eng.Trx.LastCommitted(), s.Monotonic()
		for range 25 * 60 / 5 { // in use all the time
			env.Sleep(s, 5*time.Minute)
			bump()
			_, _ = d.eng.Trx.PurgeLimit()
			if err = ask(request{what: askCatalogue, csn: csn}); err != nil {
				break
			}
		}
		wantError(t, err, ErrSnapshotGone, "purged")
		if age := s.Monotonic() - opened; age < 24*time.Hour || age > 24*time.Hour+6*time.Minute {
			t.Errorf("it was open for %v", age)
		}
		if err := ask(fresh); err != nil {
			t.Fatal(err)
		}
		answered := false
		release := request{what: askRelease, csn: d.eng.Trx.LastCommitted(), receiver: receiver, min: 1, max: 1, group: testGroup}
		if err := d.src.Answer(context.Background(), release.append(nil), sendFunc(func([]byte) error {
			answered = true
			if n := open(); n != 0 {
				t.Errorf("%d open when the release is answered", n)
			}
			return nil
		})); err != nil || !answered {
			t.Errorf("release: %v, answered: %v", err, answered)
		}
		wantError(t, ask(request{what: askRelease, csn: 1}), ErrSnapshotGone)
		d.close()
		wantError(t, ask(fresh), ErrBusy, "shutting down")
	})
}
