package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// drawBytes draws a version's bytes, of few distinct ones so that versions share runs.
func drawBytes(t *rapid.T, least int) []byte {
	return rapid.SliceOfN(rapid.ByteRange(0, 3), least, 200).Draw(t, "bytes")
}

// TestDelta checks that a delta gives the older version back, header included, from
// the newer one with whatever header it gets after the delta was made.
func TestDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older := drawBytes(t, HeaderSize)
		newer := drawBytes(t, HeaderSize)
		if rapid.Bool().Draw(t, "edited") {
			newer = bytes.Clone(older)
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				at := rapid.IntRange(HeaderSize, len(newer)).Draw(t, "at")
				end := rapid.IntRange(at, len(newer)).Draw(t, "end")
				newer = bytes.Join([][]byte{newer[:at], drawBytes(t, 0), newer[end:]}, nil)
			}
		}
		delta := AppendDelta([]byte("x"), older, newer)[1:]
		if bound := len(older) + 20; len(delta) > bound {
			t.Fatalf("delta of %d bytes for an older version of %d", len(delta), len(older))
		}
		SetHeader(newer, 1<<40, 1<<50)
		newer[offVersion] = 9
		got, err := ApplyDelta([]byte("y"), newer, delta)
		if err != nil || !bytes.Equal(got[1:], older) {
			t.Fatalf("older %x\nnewer %x\ndelta %x\n got %x, %v", older, newer, delta, got, err)
		}
	})
}

// TestDeltaShort checks versions that are shorter than a header, which come from
// damaged pages only: a delta must survive them.
func TestDeltaShort(t *testing.T) {
	for n := range HeaderSize + 2 {
		older, newer := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, HeaderSize)
		for range 2 {
			got, err := ApplyDelta(nil, newer, AppendDelta(nil, older, newer))
			if err != nil || !bytes.Equal(got, older) {
				t.Errorf("%d bytes: %x, %v", n, got, err)
			}
			older, newer = newer, older
		}
	}
}

// TestVersionChain updates a row again and again, across row versions, and goes
// back to each state from the newest.
func TestVersionChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		key, val, row := drawOldRow(t, s)
		versions, undo := [][]byte{bytes.Clone(val)}, [][]byte(nil)
		for i := range rapid.IntRange(1, 6).Draw(t, "updates") {
			changes, next := drawChanges(t, s, row)
			newer, err := s.AppendUpdated(nil, open(t, s, key, val), changes)
			if err != nil {
				t.Fatal(err)
			}
			undo = append(undo, AppendUndoUpdate(nil, s.Table.ID, key, 0, val, newer))
			SetHeader(newer, uint64(i+10), uint64(i+100))
			versions = append(versions, newer)
			val, row = newer, next
		}
		for i := len(undo) - 1; i >= 0; i-- {
			u, err := DecodeUndo(FinishSecondary(undo[i]))
			if err != nil {
				t.Fatal(err)
			}
			if val, err = ApplyDelta(nil, val, u.Delta); err != nil || !bytes.Equal(val, versions[i]) {
				t.Fatalf("version %d: %x, want %x, %v", i, val, versions[i], err)
			}
		}
	})
}

// TestDeltaSize pins what updates cost in undo: the columns that they change, also
// where those change their length.
func TestDeltaSize(t *testing.T) {
	older := make([]byte, 1000)
	for i := range older {
		older[i] = byte(i * 7)
	}
	for _, c := range []struct {
		name  string
		edit  func(b []byte) []byte
		limit int
	}{
		{"nothing", func(b []byte) []byte { return b }, 19},
		{"one byte", func(b []byte) []byte { b[500]++; return b }, 24},
		{"two places", func(b []byte) []byte { b[100]++; b[900]++; return b }, 29},
		{"end offset and longer column", func(b []byte) []byte {
			b[50]++
			return append(b[:800:800], append([]byte{77}, b[800:]...)...)
		}, 30},
		{"shorter", func(b []byte) []byte { return append(b[:800:800], b[810:]...) }, 35},
		{"cut at the end", func(b []byte) []byte { return b[:990] }, 35},
	} {
		newer := c.edit(bytes.Clone(older))
		delta := AppendDelta(nil, older, newer)
		if len(delta) > c.limit {
			t.Errorf("%s: %d bytes, expected %d", c.name, len(delta), c.limit)
		}
		if got, err := ApplyDelta(nil, newer, delta); err != nil || !bytes.Equal(got, older) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestDeltaErrors(t *testing.T) {
	newer := make([]byte, 20)
	for _, delta := range []string{
		"", "\x80", "\xff\xff\xff\x7f", "\x13", "\x14\x15", "\x14\x00\x15\x00", "\x14\x00\x01\x02a", "\x14\x00\x00\xff\xff\x7f", "\x14\x00", "\x14\x00\x00",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		if _, err := ApplyDelta(nil, newer, []byte(delta)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", delta, err)
		}
	}
}

// undoItem is an element of the lists of an undo record.
type undoItem struct {
	index uint64
	key   string
}

func TestUndoRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.Uint64().Draw(t, "table")
		key := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "key")
		u, err := DecodeUndo(AppendUndoInsert(nil, table, key))
		if err != nil || u.Kind != UndoInsert || u.Table != table || !bytes.Equal(u.Key, key) || u.HasPurgeWork() {
			t.Fatalf("insert: %+v, %v", u, err)
		}
		ref := rapid.SliceOfN(rapid.Byte(), LOBRefSize, LOBRefSize).Draw(t, "ref")
		u, err = DecodeUndo(AppendUndoLOB(nil, table, ref))
		if err != nil || u.Kind != UndoLOB || u.Table != table || !bytes.Equal(u.Key, ref) || u.HasPurgeWork() {
			t.Fatalf("off-page value: %+v, %v", u, err)
		}
		older, newer := drawBytes(t, HeaderSize), drawBytes(t, HeaderSize)
		flags := rapid.Byte().Draw(t, "flags")
		b := AppendUndoUpdate([]byte("x"), table, key, flags, older, newer)
		var want []undoItem
		for range rapid.IntRange(0, 3).Draw(t, "secondaries") {
			it := undoItem{rapid.Uint64Range(0, 1<<40).Draw(t, "index"), string(drawBytes(t, 0))}
			b, want = AppendOldSecondary(b, it.index, []byte(it.key)), append(want, it)
		}
		b = FinishSecondary(b)
		lobs := rapid.IntRange(0, 3).Draw(t, "lobs")
		for i := range lobs {
			ref[0] = byte(i)
			b, want = AppendOldLOB(b, append(ref, "local prefix"...)), append(want, undoItem{0, string(ref)})
		}
		u, err = DecodeUndo(b[1:])
		if err != nil || u.Kind != UndoUpdate || u.Table != table || !bytes.Equal(u.Key, key) || u.OldFlags != flags {
			t.Fatalf("update: %+v, %v", u, err)
		}
		if got, err := ApplyDelta(nil, newer, u.Delta); err != nil || !bytes.Equal(got, older) {
			t.Fatalf("delta: %x, %v", got, err)
		}
		if got := items(t, &u); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("lists: %v, want %v", got, want)
		}
		deletes := flags&FlagDeleted == 0 && bytes.Equal(older[offVersion+1:], newer[offVersion+1:])
		if u.MayDelete() != deletes || u.HasPurgeWork() != (len(want) > 0 || deletes) {
			t.Fatalf("%d items, deleting %v: purge work %v", len(want), deletes, u.HasPurgeWork())
		}
		for n := range len(b) - 1 {
			cut, err := DecodeUndo(b[1 : 1+n])
			if err == nil && (len(b)-1-n)%LOBRefSize != 0 {
				t.Fatalf("a record cut to %d of %d bytes was taken: %+v", n, len(b)-1, cut)
			}
		}
	})
}

// items walks both lists and checks that an error ends the walk.
func items(t fataler, u *UndoRecord) (all []undoItem) {
	stop := errors.New("stop")
	for _, fail := range []bool{true, false} {
		all = nil
		err := u.EachSecondary(func(index uint64, key []byte) error {
			all = append(all, undoItem{index, string(key)})
			if fail {
				return stop
			}
			return nil
		})
		if n := len(all); fail && n > 0 && (n != 1 || err != stop) || err != nil && err != stop {
			t.Fatalf("after %d items: %v", n, err)
		}
		from := len(all)
		err = u.EachLOB(func(ref []byte) error {
			all = append(all, undoItem{0, string(ref)})
			if fail {
				return stop
			}
			return nil
		})
		if n := len(all) - from; fail && n > 0 && (n != 1 || err != stop) || err != nil && err != stop {
			t.Fatalf("after %d items: %v", n, err)
		}
	}
	return all
}
