package provision

import (
	"context"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// TestReaderStandsStill: a receiver that reads nothing any more pins a snapshot no longer than one may be open, and
// keeps a donor from being closed no longer than its streams need to end.
func TestReaderStandsStill(t *testing.T) {
	world := smallDonor(t)
	for _, closes := range []bool{false, true} {
		s := simenv.New(1)
		s.StepLimit = 100_000
		s.Run(func() {
			d := newDonor(t, s, world.CrashImageFor(s, 1), func(o *SourceOptions) { o.MaxAge = time.Hour })
			q := request{min: 1, max: 1, group: testGroup, receiver: 1, what: askSnapshot, fresh: true}
			if err := d.src.Answer(context.Background(), q.append(nil), new(sink)); err != nil {
				t.Fatal(err)
			}
			q.what, q.fresh, q.csn = askCatalogue, false, d.eng.Trx.LastCommitted()
			p := &pipe{reader: s.NewParker(), writer: s.NewParker(), ctx: context.Background()}
			p.chunks = make([][]byte, pipeChunks) // it is full
			var err error
			tasks := env.NewGroup(s)
			tasks.Go("serve", func() { err = d.src.Answer(context.Background(), q.append(nil), p) })
			env.Sleep(s, 50*time.Minute)
			if n := d.eng.Trx.OpenSnapshots(); n != 1 {
				t.Fatalf("%d snapshots are open", n)
			}
			began := s.Monotonic()
			if closes {
				d.src.Close()
			} else {
				env.Sleep(s, 10*time.Minute+3*watchEvery)
			}
			if n := d.eng.Trx.OpenSnapshots(); n != 0 || closes && s.Monotonic()-began > 2*closeGrace {
				t.Errorf("closes: %t: after %v %d snapshots are open", closes, s.Monotonic()-began, n)
			}
			p.Abort()
			tasks.Wait()
			wantError(t, err, errPipeClosed)
			d.close()
		})
	}
}
