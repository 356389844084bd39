package provision

import (
	"context"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
)

// TestUnneeded: a receiver that hears that its snapshot is not needed leaves nothing behind, here and
// at the donor, and one whose snapshot is gone asks before it begins again.
func TestUnneeded(t *testing.T) {
	for what, set := range map[string]func(o *ReceiverOptions, err error){
		"install": func(o *ReceiverOptions, err error) {
			o.Install = func(*storage.Engine, *table.Worker, *Manifest) error { return err }
		},
		"attach": func(o *ReceiverOptions, err error) {
			o.Attach = func(context.Context, file.FS, *Manifest) error { return err }
		},
	} {
		for _, gone := range []bool{false, true} {
			simRun(t, 1, func(e env.Env, d *donor) {
				j := newJob(t, e, d.net)
				set(&j.opt, ErrUnneeded)
				asked := 0
				j.opt.Needed = func() bool { asked++; return asked < 3 }
				want := 0
				if gone {
					set(&j.opt, ErrSnapshotGone)
					want = 3
				}
				_, err := j.run()
				wantError(t, err, ErrUnneeded)
				if open := d.src.Snapshots(); len(open) > 0 || asked != want {
					t.Errorf("%s: asked %d times; snapshots are open: %v", what, asked, open)
				}
				wantNames(t, j.fs, "data.current")
			})
		}
	}
}

// TestReleaseHangs: a donor that does not answer that its snapshot may go keeps nobody.
func TestReleaseHangs(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		hangs, over := false, false
		d.net.cut = func(q *request, _ int, chunk []byte) ([]byte, error) {
			for hangs = hangs || q.what == askRelease; q.what == askRelease && !over; {
				env.Sleep(e, time.Second)
			}
			return chunk, nil
		}
		late := env.NewGroup(e)
		late.Go("the donor goes on", func() { env.Sleep(e, time.Hour); over = true })
		j := newJob(t, e, d.net)
		began := e.Monotonic()
		if _, err := j.run(); err != nil || !hangs || e.Monotonic()-began > time.Minute {
			t.Errorf("it hangs: %v; after %v: %v", hangs, e.Monotonic()-began, err)
		}
		late.Wait()
	})
}
