package provision

import (
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// Everything that a database can have arrives, and the new one goes on from there.
func TestProvision(t *testing.T) {
	e := env.Real()
	d := newDonor(t, e, file.OS(t.TempDir()), nil)
	defer d.close()
	fillWorld(t, d.eng, 100)
	fsys := file.OS(t.TempDir())
	home := openHome(t, fsys)
	opt := patient(receiverOptions(e, home, d.net))
	opt.Verify, opt.Streams = true, 3
	opt.Install = func(eng *storage.Engine, w *table.Worker, m *Manifest) error {
		return eng.Catalog.PutState(w, dict.Local, []byte("members"), m.Membership)
	}
	r, err := NewReceiver(opt)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Run()
	if err != nil {
		t.Fatal(err)
	}
	csn, pos := d.eng.Applied()
	if m.CSN != csn || m.Position != pos || m.Group != testGroup || string(m.Membership) != "members" {
		t.Errorf("%+v; the donor is at %d, %+v", m, csn, pos)
	}
	p := r.Progress()
	if p.Phase != Complete || p.TablesDone != 6 || p.Tables != 6 || p.RowsDone == 0 || p.RawBytes == 0 || p.Received == 0 || p.Streams != 0 {
		t.Errorf("progress %+v", p)
	}
	if s := d.src.Stats(); s.Streams != 0 || s.Snapshots != 0 || s.Taken != 1 || s.Rows == 0 || s.SentBytes == 0 || s.SentBytes > s.RawBytes {
		t.Errorf("source: %+v", s)
	}
	if _, complete := home.Receiving(); !complete {
		t.Error("nothing waits for the swap")
	}
	eng := openReceived(t, e, home)
	same(t, d.eng, eng, &m)
	if v, found, err := eng.Catalog.GetState(nil, dict.Local, []byte("members")); err != nil || !found || string(v) != "members" {
		t.Errorf("membership: %q %v %v", v, found, err)
	}
	if _, found, _ := eng.Catalog.GetState(nil, dict.Local, []byte("mine")); found {
		t.Error("local state was sent")
	}
	// Both go on alike.
	for _, x := range []*storage.Engine{d.eng, eng} {
		fill(t, x, "db", "parent", 10, func(i int, _ *table.Table) []types.Value { return plainRow(int64(i)) })
	}
	csn, _ = d.eng.Applied()
	a, err := d.eng.StateHash(csn)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := eng.StateHash(csn); err != nil || a != b {
		t.Errorf("after more work: %x and %x, %v", a[:4], b[:4], err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if got, ok := openHome(t, fsys).Received(); !ok || got.CSN != m.CSN || got.Position != m.Position {
		t.Errorf("received: %+v %v", got, ok)
	}
	if names, _ := fsys.List("."); len(names) != 2 {
		t.Errorf("left: %v", names)
	}
}
