package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
)

// packetsOf is the stream of payloads of the given lengths, each below the longest chunk.
func packetsOf(lengths ...int) io.Reader {
	var b []byte
	for i, n := range lengths {
		b = binary.LittleEndian.AppendUint32(b, uint32(n)|uint32(i)<<24)
		b = append(b, bytes.Repeat([]byte{byte(i)}, n)...)
	}
	return bytes.NewReader(b)
}

// TestLongPacketsAreGivenUp: a connection that has received a long packet keeps none of its
// memory while it waits for the next one.
func TestLongPacketsAreGivenUp(t *testing.T) {
	var seq uint8
	lengths := []int{10, 3 << 20, 20, 2 << 20, keepBuffer / 2, 30}
	r := packetReader{src: packetsOf(lengths...), seq: &seq, max: 1 << 30}
	for i, n := range lengths {
		p, err := r.next()
		if err != nil || !bytes.Equal(p, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Fatalf("packet %d: %d bytes, %v", i, len(p), err)
		}
		if n > maxBuffer {
			if r.shrink(); len(r.buf) > 2*keepBuffer {
				t.Errorf("after packet %d: %d bytes", i, len(r.buf))
			}
		}
	}
	if _, err := r.next(); err != io.EOF {
		t.Error(err)
	}
}

// TestLongFramesAreGivenUp: neither does what decompresses them, whether or not the frame
// was compressed.
func TestLongFramesAreGivenUp(t *testing.T) {
	random := make([]byte, 4<<20)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	for _, a := range []algorithm{zlibCompression, zstdCompression} {
		for _, text := range [][]byte{bytes.Repeat([]byte("long "), 1<<20), random} {
			var wire bytes.Buffer
			out := frames{rw: &wire, algorithm: a, level: 3}
			if _, err := out.Write(text); err != nil {
				t.Fatal(err)
			}
			in := frames{rw: &wire, algorithm: a, level: 3}
			got := make([]byte, len(text))
			if _, err := io.ReadFull(&in, got); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("algorithm %d: %v", a, err)
			}
			// This is where a connection waits for its client.
			if _, err := in.Read(got); err != io.EOF {
				t.Fatal(err)
			}
			if n := cap(in.in) + cap(in.store) + cap(in.plain); n > 2*maxBuffer {
				t.Errorf("algorithm %d: %d bytes", a, n)
			}
		}
	}
}

// TestRowsTooLong: a row longer than max_allowed_packet is refused before it is made, and one
// that is not gets the memory that it needs at once.
func TestRowsTooLong(t *testing.T) {
	for _, binary := range []bool{false, true} {
		c := &conn{}
		var wire bytes.Buffer
		c.w = packetWriter{dst: &wire, seq: &c.seq}
		c.r.max = 4 << 20
		c.sess = &fakeSession{f: &fake{}}
		c.res.start(c, binary)
		col := session.ResultColumn{Name: "b", Type: &types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}}
		if err := c.res.Columns([]session.ResultColumn{col, col}); err != nil {
			t.Fatal(err)
		}
		row := func(n int) *types.Batch {
			b := types.NewBatch([]*types.Type{col.Type, col.Type})
			b.Column(0).AppendBytes(make([]byte, n))
			b.Column(1).AppendBytes(make([]byte, n))
			b.SetLen(1)
			return b
		}
		before := wire.Len()
		if err := c.res.Rows(row(3 << 20)); err != errTooLarge {
			t.Errorf("a row of 6 MiB: %v", err)
		}
		if wire.Len() != before || cap(c.w.buf) > keepBuffer {
			t.Errorf("%d bytes went out, %d were made", wire.Len()-before, cap(c.w.buf))
		}
		b := row(1 << 20)
		if n := testing.AllocsPerRun(3, func() {
			wire.Reset()
			if err := c.res.Rows(b); err != nil {
				t.Fatal(err)
			}
		}); n > 2 {
			t.Errorf("%v allocations for one row", n)
		}
		if cap(c.w.buf) > keepBuffer {
			t.Errorf("%d bytes are kept", cap(c.w.buf))
		}
	}
}
