package storage_test

import (
	"fmt"
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
