package provision

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
)

// TestHold: a donor keeps a snapshot, and the log behind it, as long as the receiver takes that over, however long that
// lasts; but not for one that waits for space.
func TestHold(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		j := newJob(t, e, d.net)
		j.opt.Attach = func(context.Context, file.FS, *Manifest) error {
			env.Sleep(e, 3*time.Hour)
			if len(d.src.Snapshots()) != 1 {
				t.Error("the donor has given up the snapshot of a receiver that is at work")
			}
			return nil
		}
		if p := j.ends(d); p.Restarts != 0 || p.Retries != 0 {
			t.Errorf("%+v", p)
		}
		if n := len(d.src.Snapshots()); n != 0 {
			t.Errorf("%d snapshots are open in the end", n)
		}
		j = newJob(t, e, d.net)
		j.opt.SpaceRetry = time.Hour
		full := true
		j.opt.Attach = func(context.Context, file.FS, *Manifest) error {
			if full {
				full = false
				return file.ErrNoSpace
			}
			if len(d.src.Snapshots()) != 0 {
				t.Error("the donor keeps the snapshot of a receiver that waits for space")
			}
			return nil
		}
		j.ends(d)
	})
}

// TestForsake: whoever receives a snapshot that has lost its log is told so, in the middle and later.
func TestForsake(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		var token uint64
		ask := func(q request, w ChunkWriter) error {
			q.min, q.max, q.group, q.receiver = minFormat, FormatVersion, testGroup, token
			return d.src.Answer(context.Background(), q.append(nil), w)
		}
		for _, active := range []bool{false, true} {
			token++
			if err := ask(request{what: askSnapshot, fresh: true}, discard{}); err != nil {
				t.Fatal(err)
			}
			m := d.src.Snapshots()[0]
			if d.src.Forsake(m.Position.Index+1, "why") {
				t.Error("a log that begins right behind the snapshot was taken for one that is gone")
			}
			forsake := func([]byte) error {
				d.src.Forsake(m.Position.Index+2, "for want of space")
				return nil
			}
			if !active {
				_ = forsake(nil)
			} else {
				wantError(t, ask(request{what: askCatalogue, csn: m.CSN}, sendFunc(forsake)), ErrSnapshotGone, "for want of space")
			}
			if n := len(d.src.Snapshots()) + d.src.Stats().Snapshots; n != 0 {
				t.Errorf("%d snapshots are open", n)
			}
			wantError(t, ask(request{what: askState, csn: m.CSN}, discard{}), ErrSnapshotGone, "for want of space")
			do(t, d.eng, func(w *table.Worker) error {
				return d.eng.Catalog.PutState(w, dict.Replicated, []byte("k"), []byte{byte(token)})
			})
		}
		// A dump that misses the log behind its snapshot says why it does.
		_, err := d.src.Dump(context.Background(), func(string) (ChunkWriter, error) { return discard{}, nil }, func(m *Manifest) error {
			d.src.Forsake(m.Position.Index+2, "for want of space")
			return errors.New("no log")
		})
		wantError(t, err, ErrSnapshotGone, "for want of space")
	})
}
