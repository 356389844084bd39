package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
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
		}); n > 2 && !race.Enabled {
			t.Errorf("%v allocations for one row", n)
		}
		if cap(c.w.buf) > keepBuffer {
			t.Errorf("%d bytes are kept", cap(c.w.buf))
		}
	}
}

// TestLongDataIsCounted: what waits for executions is counted as it comes and goes, without
// looking at all statements for each piece, and is never more than a packet may have.
func TestLongDataIsCounted(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	s := &Server{closePrepared: func(*session.Prepared) {}}
	sess := &fakeSession{f: &fake{}}
	c := &conn{s: s, stmts: map[uint32]*statement{}, sess: sess}
	c.w = packetWriter{dst: io.Discard, seq: &c.seq}
	c.r.max = 10_000
	full, refused, most := 0, 0, int64(0)
	for step := range 20_000 {
		id := uint32(r.IntN(20))
		at := binary.LittleEndian.AppendUint32(nil, id)
		st := c.stmts[id]
		switch n := r.IntN(100); {
		case st == nil:
			c.stmts[id] = &statement{id: id, prepared: &session.Prepared{Params: 3}}
		case n < 90:
			at = binary.LittleEndian.AppendUint16(at, uint16(r.IntN(4)))
			if sess.mayHold = 0; r.IntN(10) == 0 {
				sess.mayHold = 6_000
			}
			c.longData(&payload{b: append(at, make([]byte, r.IntN(800))...)})
			if st.failed == errTooLarge {
				full++
			} else if st.failed != nil && st.failed.Number == 3170 {
				refused++
			}
		case n < 95:
			if err := c.resetStatement(&payload{b: at}); err != nil {
				t.Fatal(err)
			}
			c.w.buf = c.w.buf[:0]
		case n < 99:
			c.closeStatement(&payload{b: at})
		case r.IntN(10) == 0:
			c.closeStatements()
		}
		var want int64
		for _, st := range c.stmts {
			for _, l := range st.long {
				want += int64(cap(l.b)) + longEntry
			}
		}
		if most = max(most, want); c.longBytes != want || sess.held != want || want > c.r.max+2*longEntry {
			t.Fatalf("seed %d: %d, of which the session knows %d, instead of %d after %d steps", seed, c.longBytes, sess.held, want, step)
		}
	}
	if full == 0 || refused == 0 || most < c.r.max/2 {
		t.Errorf("seed %d: refused %d times for their length and %d for want of memory, at most %d bytes", seed, full, refused, most)
	}
	c.closeStatements()
	if c.longBytes != 0 || sess.held != 0 || len(c.stmts) != 0 {
		t.Errorf("%d bytes of %d statements are left", c.longBytes, len(c.stmts))
	}
}

// pieces is a stream that gives little at once, as a network does.
type pieces struct{ io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), 16<<10)]) }

// TestNoRoomForPackets: a long payload that there is no memory for is passed over, and what was accounted for
// others is given back.
func TestNoRoomForPackets(t *testing.T) {
	const room = 20 << 20
	long := []int{10, 3 << 20, room + 1<<20, 20, 2*maxChunk + 5, 40, maxChunk, 50, 12 << 20, 60}
	var wire []byte
	for i, n := range long {
		seq := 0
		for left := n; ; left -= maxChunk {
			k := min(left, maxChunk)
			wire = binary.LittleEndian.AppendUint32(wire, uint32(k)|uint32(seq)<<24)
			wire = append(wire, bytes.Repeat([]byte{byte(i + 1)}, k)...)
			if seq++; k < maxChunk {
				break
			}
		}
	}
	var seq uint8
	held := int64(0)
	r := packetReader{src: pieces{bytes.NewReader(wire)}, seq: &seq, max: 1 << 30, hold: func(delta int64) error {
		if delta > 0 && held+delta > room {
			return &sqlerr.Error{Number: 3170}
		}
		held += delta
		return nil
	}}
	for i, n := range long {
		seq = 0
		p, err := r.next()
		var refused *noRoom
		switch {
		case n > room || n == maxChunk: // which is put together of two chunks
			if !errors.As(err, &refused) || refused.command != command(i+1) {
				t.Fatalf("packet %d of %d bytes: %d bytes, %v", i, n, len(p), err)
			}
		case err != nil || !bytes.Equal(p, bytes.Repeat([]byte{byte(i + 1)}, n)):
			t.Fatalf("packet %d of %d bytes: %d bytes, %v", i, n, len(p), err)
		case n < maxBuffer && held != 0:
			t.Errorf("packet %d: %d bytes are accounted for", i, held)
		}
	}
}
