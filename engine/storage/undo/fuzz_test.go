package undo

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage/page"
)

// samplePage is a page with a committed log of three records.
func samplePage(t page.Type) []byte {
	p := make([]byte, page.Size)
	page.Init(p, page.ID{Space: 0xFFFF0000, No: 2}, t)
	off := firstEntry(p)
	h := logHeader{trx: 7, csn: 9, records: 3, end: pos{2, 200}, flags: Committed}
	var raw [headerSize]byte
	h.put(raw[:])
	b := appendEntry(nil, kindHeader, raw[:])
	b = appendEntry(b, kindInsert, []byte("one"))
	b = appendEntry(b, kindChange, nil)
	b = appendEntry(b, kindChange, []byte("three"))
	copy(p[off:], b)
	return p
}

// FuzzPage reads arbitrary bytes as a page of a stream: whatever is decoded lies
// within the page, and both ways of walking agree.
func FuzzPage(f *testing.F) {
	f.Add(samplePage(page.TypeUndo)[32:400], uint8(page.TypeUndo), uint64(48))
	f.Add(samplePage(page.TypeUndoStream)[32:400], uint8(page.TypeUndoStream), uint64(80))
	f.Fuzz(func(t *testing.T, body []byte, typ uint8, ptr uint64) {
		p := make([]byte, page.Size)
		page.Init(p, page.ID{Space: 0xFFFF0000, No: 2}, page.Type(typ))
		copy(p[page.HeaderSize:], body)
		if first := firstEntry(p); first != 0 {
			end, records, err := endOfEntries(p, first, nil)
			if end < first || end > page.Size-terminator {
				t.Fatalf("entries end at %d", end)
			}
			for n := 0; err == nil && end > first; n++ {
				e, ok := entryBefore(p, end)
				if !ok {
					t.Fatalf("no entry before %d", end)
				}
				if e.kind == kindHeader {
					_ = getLogHeader(e.data)
					records++
				}
				if end = e.off; n > records {
					t.Fatalf("%d records forward, more backward", records)
				}
			}
		}
		for _, off := range []int{int(ptr), int(ptr>>16) - 1, page.Size} {
			if e, ok := entryAt(p, off); ok && e.end() > page.Size && e.kind != kindEnd {
				t.Fatalf("entry at %d ends at %d", off, e.end())
			}
			_, _ = entryBefore(p, off)
			_ = peek(p, off)
		}
		if out, ok := copyRecord(p, RollPtr(ptr), nil); ok && len(out) > MaxRecord {
			t.Fatalf("record of %d bytes", len(out))
		}
	})
}

// FuzzDirectory reads arbitrary bytes as a directory of streams.
func FuzzDirectory(f *testing.F) {
	p := make([]byte, page.Size)
	page.Init(p, page.ID{Space: 0xFFFF0000, No: dirPage}, page.TypeUndoHeader)
	copy(p[offDirMagic:], dirMagic)
	le.PutUint32(p[offDirCount:], 2)
	le.PutUint32(p[offDirHomes:], 2)
	le.PutUint32(p[offDirHomes+4:], 5)
	f.Add(p[32:64], uint32(64))
	f.Fuzz(func(t *testing.T, body []byte, size uint32) {
		p := make([]byte, page.Size)
		page.Init(p, page.ID{Space: 0xFFFF0000, No: dirPage}, page.TypeUndoHeader)
		copy(p[page.HeaderSize:], body)
		homes, err := decodeDirectory(p, size)
		for _, no := range homes {
			if err == nil && (no <= dirPage || no >= size) {
				t.Fatalf("home page %d of %d", no, size)
			}
		}
	})
}

func TestRollPtr(t *testing.T) {
	for _, space := range []int{0, 1, MaxSpaces - 1} {
		for _, at := range []pos{{2, offEntries}, {1<<32 - 1, page.Size - 1}} {
			for _, insert := range []bool{false, true} {
				p := makePtr(space, at, insert)
				if p.space() != space || p.pos() != at || p.Insert() != insert || p>>56 != 0 {
					t.Errorf("%v of space %d, %v, insert %v", p, space, at, insert)
				}
			}
		}
	}
}

// TestLargestRecord: a record of the largest size fits every kind of page.
func TestLargestRecord(t *testing.T) {
	if offHomeEntries+headerEntry+MaxRecord+entryFrame+terminator > page.Size {
		t.Error("a largest first record does not fit the home page")
	}
	if MaxRecord > sizeMask {
		t.Error("a largest record's size does not fit its word")
	}
}
