package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage/page"
)

// TestLostWrite: a page that the disk gives back as it was before its last write, with a right
// checksum, is told from a good one, after a stop in good order and after a kill.
func TestLostWrite(t *testing.T) {
	for _, index := range []int{0, 1} {
		d := newDisk(t)
		d.open()
		d.close()
		id := page.ID{Space: 1, No: d.leaf("a", index)}
		old := d.read(d.file["a"], int64(id.No)*page.Size, page.Size)
		d.open()
		if err := d.set("a", 0, diskRows, 7); err != nil {
			t.Fatal(err)
		}
		if index == 1 {
			if err := d.insert("a", 2*diskRows, 3*diskRows); err != nil {
				t.Fatal(err)
			}
		}
		d.close()
		now := d.read(d.file["a"], int64(id.No)*page.Size, page.Size)
		if page.GetLSN(now) == page.GetLSN(old) {
			t.Fatalf("page %v was not written", id)
		}
		d.write(d.file["a"], int64(id.No)*page.Size, old)
		d.open()
		_, _, err := d.count("a", index, 0)
		want(t, err, nil, fmt.Sprintf("tablespace 1, page %d: older than what was written", id.No))
		if n := d.eng.Spaces.ReadErrors(); n == 0 {
			t.Error("it is not counted")
		}
		d.works("b")
		d.close()
		d.write(d.file["a"], int64(id.No)*page.Size, now)
		d.open()
		d.works("a")
		d.close()
	}
}

// TestLostWrites: a tablespace that the disk gives back as it was before, with the LSNs of its pages as they were then, is told
// from a good one: that of a table, those of the system and those of undo logs.
func TestLostWrites(t *testing.T) {
	d := newDisk(t)
	d.open()
	d.close()
	old := d.content()
	d.open()
	if err := d.set("a", 0, diskRows, 7); err != nil {
		t.Fatal(err)
	}
	d.create("c")
	d.fill("c", 0, diskRows)
	d.close()
	now := d.content()
	pairs := 0
	for name, b := range now {
		no, ok := strings.CutSuffix(strings.TrimPrefix(name, "spaces/"), ".trd")
		if !ok || bytes.Equal(old[name], b) || old[name] == nil || no == "doublewrite" {
			continue
		}
		pairs++
		lsns := "lsn/" + no + ".lsn"
		d.replace(name, old[name])
		d.replace(lsns, old[lsns])
		err := d.tryOpen()
		if err == nil {
			for _, table := range []string{"a", "c"} {
				_, _, e := d.count(table, 0, 0)
				err = errors.Join(err, e)
			}
			err = errors.Join(err, d.eng.Close())
		}
		if err == nil || !strings.Contains(err.Error(), "the disk has lost writes") {
			t.Errorf("old %s: %v", name, err)
		}
		for name, b := range now {
			d.replace(name, b)
		}
	}
	if pairs < 4 {
		t.Errorf("only %d tablespaces were written", pairs)
	}
	d.open()
	d.works("a")
	d.close()
}

// TestZeroedPage: a page that was written and is zeros now counts as what the disk has lost, and is told by its own number.
func TestZeroedPage(t *testing.T) {
	d := newDisk(t)
	id := page.ID{Space: 1, No: d.leaf("a", 0)}
	d.write(dblwrName, 0, make([]byte, 512))
	d.write(d.file["a"], int64(id.No)*page.Size, make([]byte, page.Size))
	d.open()
	_, _, err := d.count("a", 0, 0)
	want(t, err, nil, fmt.Sprintf("tablespace 1, page %d: older than what was written", id.No))
	if n := d.eng.Spaces.ReadErrors(); n == 0 {
		t.Error("it is not counted")
	}
	d.works("b")
	d.close()
}
