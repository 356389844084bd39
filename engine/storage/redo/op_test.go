package redo

import (
	"bytes"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/storage/page"
	"pgregory.net/rapid"
)

// genOp draws an op that the Append functions accept.
func genOp(t *rapid.T) Op {
	op := Op{Kind: Kind(rapid.IntRange(int(KindInit), int(KindSpaceResize)).Draw(t, "kind"))}
	op.ID.Space = rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 1, 0xffff0000, 0xffffffff})).Draw(t, "space")
	if op.Kind.OfPage() {
		op.ID.No = rapid.Uint32().Draw(t, "no")
	}
	span := func(label string, n int) int {
		low := rapid.SampledFrom([]int{page.OffType, page.HeaderSize - 8}).Draw(t, label+" from")
		high := page.Size
		if low == page.OffType && n <= page.OffLSN-page.OffType {
			high = page.OffLSN
		} else {
			low = page.HeaderSize - 8
		}
		return rapid.IntRange(low, high-n).Draw(t, label)
	}
	op.N = 0
	if op.Kind >= KindWrite && op.Kind <= KindFill {
		op.N = rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, page.Size-page.HeaderSize)).Draw(t, "n")
		op.Off = span("off", op.N)
	}
	switch op.Kind {
	case KindInit:
		op.Type = page.Type(rapid.IntRange(0, int(page.TypeSystem)).Draw(t, "type"))
	case KindWrite:
		op.Data = bytes.Repeat([]byte{rapid.Byte().Draw(t, "data")}, op.N)
		op.Data[0] ^= 0x55
	case KindMove:
		op.Src = span("src", op.N)
	case KindFill:
		op.Value = rapid.Byte().Draw(t, "value")
	case KindSpaceResize:
		op.Pages = rapid.Uint32().Draw(t, "pages")
	}
	return op
}

func appendOp(dst []byte, op Op) []byte {
	switch op.Kind {
	case KindInit:
		return AppendInit(dst, op.ID, op.Type)
	case KindWrite:
		return AppendWrite(dst, op.ID, op.Off, op.Data)
	case KindMove:
		return AppendMove(dst, op.ID, op.Off, op.Src, op.N)
	case KindFill:
		return AppendFill(dst, op.ID, op.Off, op.N, op.Value)
	case KindSpaceCreate:
		return AppendSpaceCreate(dst, op.ID.Space)
	case KindSpaceDrop:
		return AppendSpaceDrop(dst, op.ID.Space)
	}
	return AppendSpaceResize(dst, op.ID.Space, op.Pages)
}

func sameOp(a, b Op) bool {
	data := bytes.Equal(a.Data, b.Data)
	a.Data, b.Data = nil, nil
	return data && a.String() == b.String() && a.ID == b.ID && a.Type == b.Type &&
		a.Off == b.Off && a.Src == b.Src && a.N == b.N && a.Value == b.Value && a.Pages == b.Pages
}

func TestOpsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ops []Op
		var payload []byte
		for range rapid.IntRange(1, 10).Draw(t, "ops") {
			op := genOp(t)
			ops = append(ops, op)
			payload = appendOp(payload, op)
		}
		rest := payload
		for i, want := range ops {
			op, next, err := Decode(rest)
			if err != nil || !sameOp(op, want) {
				t.Fatalf("op %d: %v, %v; want %v", i, op, err, want)
			}
			for cut := range min(len(rest)-len(next), 12) {
				if _, _, err := Decode(rest[:cut:cut]); err == nil {
					t.Fatalf("%v cut to %d bytes decodes", want, cut)
				}
			}
			rest = next
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes left", len(rest))
		}
	})
}

func TestApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := make([]byte, page.Size)
		for i := range p {
			p[i] = byte(i * 7)
		}
		want := bytes.Clone(p)
		op := genOp(t)
		err := Apply(op, p)
		switch op.Kind {
		case KindInit:
			page.Init(want, op.ID, op.Type)
		case KindWrite:
			copy(want[op.Off:], op.Data)
		case KindMove:
			copy(want[op.Off:], bytes.Clone(want[op.Src:op.Src+op.N]))
		case KindFill:
			copy(want[op.Off:], bytes.Repeat([]byte{op.Value}, op.N))
		}
		if op.Kind.OfPage() != (err == nil) || !bytes.Equal(p, want) {
			t.Fatalf("%v: error %v, or the page differs", op, err)
		}
	})
}

func TestRangesThatAreNotTheLogs(t *testing.T) {
	for _, c := range []struct {
		off, n int
		ok     bool
	}{
		{0, 4, false}, {4, 8, false}, {11, 1, false}, {12, 4, true}, {12, 5, false}, {16, 8, false},
		{23, 1, false}, {24, 1, true}, {24, page.Size - 24, true}, {24, page.Size - 23, false},
		{page.Size, 1, false}, {page.Size - 1, 1, true}, {-1, 1, false}, {100, 0, false}, {100, -1, false},
		{0, page.Size, false}, {100, 1 << 62, false},
	} {
		if mayChange(c.off, c.n) != c.ok {
			t.Errorf("mayChange(%d, %d) is %v", c.off, c.n, !c.ok)
		}
		op := Op{Kind: KindFill, Off: c.off, N: c.n}
		if err := Apply(op, make([]byte, page.Size)); (err == nil) != c.ok {
			t.Errorf("%v: %v", op, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("AppendWrite over the LSN does not panic")
		}
	}()
	AppendWrite(nil, page.ID{}, 20, []byte{1})
}

func FuzzDecode(f *testing.F) {
	id := page.ID{Space: 0xffff0001, No: 77}
	seed := AppendInit(nil, id, page.TypeIndex)
	seed = AppendWrite(seed, id, 100, []byte("hello"))
	seed = AppendMove(seed, id, 24, 200, 1000)
	seed = AppendFill(seed, id, 16000, 384, 1)
	seed = AppendSpaceResize(AppendSpaceDrop(AppendSpaceCreate(seed, 1), 2), 3, 4)
	f.Add(seed)
	f.Add([]byte{2, 0, 0, 0x80, 0x80, 1, 1, 9})
	f.Fuzz(func(t *testing.T, payload []byte) {
		guard := make([]byte, page.Size+128)
		p := guard[64 : 64+page.Size : 64+page.Size]
		header := bytes.Repeat([]byte{0xee}, page.HeaderSize)
		for rest := payload; len(rest) > 0; {
			op, next, err := Decode(rest)
			if err != nil {
				var de *DecodeError
				if !errors.As(err, &de) {
					t.Fatalf("error %v is no DecodeError", err)
				}
				return
			}
			if len(next) >= len(rest) {
				t.Fatal("no progress")
			}
			copy(p, header)
			if op.Kind.OfPage() {
				if err := Apply(op, p); err != nil {
					t.Fatalf("%v decodes but does not apply: %v", op, err)
				}
			}
			if op.Kind != KindInit && (!bytes.Equal(p[:page.OffType], header[:page.OffType]) ||
				!bytes.Equal(p[page.OffLSN:page.OffLSN+8], header[:8])) {
				t.Fatalf("%v changed the header", op)
			}
			rest = next
		}
		if !bytes.Equal(guard[:64], make([]byte, 64)) || !bytes.Equal(guard[64+page.Size:], make([]byte, 64)) {
			t.Fatal("write outside of the page")
		}
	})
}

func TestBatchGivesWhatTheLogOrderGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := map[page.ID][]byte{}
		batched := map[page.ID][]byte{}
		at := func(m map[page.ID][]byte, id page.ID) []byte {
			if m[id] == nil {
				m[id] = make([]byte, page.Size)
			}
			return m[id]
		}
		cut := func(m map[page.ID][]byte, space, pages uint32) {
			for id := range m {
				if id.Space == space && id.No >= pages {
					delete(m, id)
				}
			}
		}
		b := NewBatch(rapid.IntRange(1, 20000).Draw(t, "limit"))
		flush := func() {
			for _, so := range b.SpaceOps() {
				switch so.Op.Kind {
				case KindSpaceDrop:
					cut(batched, so.Op.ID.Space, 0)
				case KindSpaceResize:
					cut(batched, so.Op.ID.Space, so.Op.Pages)
				}
			}
			for _, id := range b.Pages() {
				p := at(batched, id)
				if b.BeginsWithInit(id) {
					clear(p)
				}
				if _, _, _, err := b.Apply(id, p); err != nil {
					t.Fatal(err)
				}
				if n, _, _, _ := b.Apply(id, p); n != 0 && !b.BeginsWithInit(id) {
					t.Fatalf("%d ops applied twice", n)
				}
			}
			b.Reset()
		}
		lsn := page.LSN(100)
		for range rapid.IntRange(1, 40).Draw(t, "groups") {
			var payload []byte
			lsn += 50
			for range rapid.IntRange(1, 4).Draw(t, "ops") {
				op := genOp(t)
				op.ID.Space %= 2
				op.Pages %= 4
				if op.Kind.OfPage() {
					op.ID.No %= 4
					p := at(plain, op.ID)
					if err := Apply(op, p); err != nil {
						t.Fatal(err)
					}
					page.SetLSN(p, lsn)
				} else if op.Kind != KindSpaceCreate {
					cut(plain, op.ID.Space, op.Pages)
				}
				payload = appendOp(payload, op)
			}
			if b.Full() {
				flush()
			}
			if err := b.Add(lsn, payload); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		for id, p := range plain {
			if !bytes.Equal(p, at(batched, id)) {
				t.Fatalf("page %v differs", id)
			}
		}
		if len(plain) != len(batched) {
			t.Fatalf("%d pages, want %d", len(batched), len(plain))
		}
	})
}
