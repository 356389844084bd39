package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

func newEncoder(t testing.TB) *zstd.Encoder {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func newDecoder(t testing.TB) *zstd.Decoder {
	t.Helper()
	z, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// events are n bytes, compressible or not.
func events(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	mask := byte(255)
	if rng.IntN(2) == 0 {
		mask = 1
	}
	for i := range b {
		b[i] = byte(rng.Uint32()) & mask
	}
	return b
}

// made is a body in memory, with Offset bytes before it.
type made struct {
	bytes   []byte
	payload [][]byte
	index   Index
	summary entry.LargeBody
}

func makeBody(t testing.TB, seed uint64, lengths ...int) *made {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	z := newEncoder(t)
	m := &made{bytes: make([]byte, Offset)}
	for i, n := range lengths {
		p := events(rng, n)
		enc := z
		if rng.IntN(4) == 0 {
			enc = nil
		}
		var h Header
		m.bytes, h = AppendFrame(m.bytes, enc, m.index.Chain(), p, i+1)
		m.index.Add(h, uint64(i))
		m.payload = append(m.payload, p)
	}
	m.summary = m.index.Describe()
	return m
}

// A reader gives what was framed, and ends where the body does.
func TestReader(t *testing.T) {
	m := makeBody(t, 1, 1, 50_000, 7, 300_000, 10<<20, 20)
	if m.summary.Stored != int64(len(m.bytes)-Offset) || m.summary.Frames != 6 || m.summary.Events != 21 || m.summary.Offset != Offset {
		t.Fatalf("%+v", m.summary)
	}
	r := NewReader(bytes.NewReader(append(m.bytes, "behind"...)), &m.summary, newDecoder(t))
	for i, want := range m.payload {
		f, got, err := r.Next()
		if err != nil || !bytes.Equal(got, want) || f.Number != i || f != withAfter(m.index.Frame(i), 0) {
			t.Fatalf("frame %d: %+v, %v", i, f, err)
		}
	}
	for range 2 {
		if _, _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
	}
	if err := Verify(bytes.NewReader(m.bytes), &m.summary); err != nil {
		t.Fatal(err)
	}
}

// end is where frame n ends.
func (m *made) end(n int) int64 {
	f := m.index.Frame(n)
	return f.End()
}

func withAfter(f Frame, after uint64) Frame {
	f.After = after
	return f
}

// Each damaged byte of a body, each missing end and each wrong number of its description is
// found, with and without unpacking.
func TestDamage(t *testing.T) {
	m := makeBody(t, 2, 40, 90, 3)
	check := func(what string, b []byte, want *entry.LargeBody) {
		t.Helper()
		if err := Verify(bytes.NewReader(b), want); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
		r := NewReader(bytes.NewReader(b), want, newDecoder(t))
		var err error
		for err == nil {
			_, _, err = r.Next()
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s, unpacked: %v", what, err)
		}
	}
	for i := Offset; i < len(m.bytes); i++ {
		for _, flip := range []byte{1, 128, 255} {
			b := bytes.Clone(m.bytes)
			b[i] ^= flip
			check(fmt.Sprintf("byte %d", i-Offset), b, &m.summary)
		}
		check(fmt.Sprintf("%d bytes", i-Offset), m.bytes[:i], &m.summary)
	}
	for i, change := range []func(*entry.LargeBody){
		func(l *entry.LargeBody) { l.Stored++ }, func(l *entry.LargeBody) { l.Stored = m.end(1) },
		func(l *entry.LargeBody) { l.Plain-- }, func(l *entry.LargeBody) { l.Events++ },
		func(l *entry.LargeBody) { l.Frames++ }, func(l *entry.LargeBody) { l.Digest[31] ^= 1 },
		func(l *entry.LargeBody) { l.Offset++ },
	} {
		want := m.summary
		change(&want)
		check(fmt.Sprintf("change %d", i), append(m.bytes, make([]byte, 100)...), &want)
	}
	exchanged := append([]byte(nil), m.bytes[:Offset]...)
	for _, i := range []int{1, 0, 2} {
		f := m.index.Frame(i)
		exchanged = append(exchanged, m.bytes[Offset+f.At:Offset+m.end(i)]...)
	}
	check("frames out of order", exchanged, &m.summary)
}

// An index knows where its frames are.
func TestIndex(t *testing.T) {
	m := makeBody(t, 3, 100, 200, 300)
	x := &m.index
	for off, want := range map[int64]int{0: 0, 99: 0, 100: 1, 299: 1, 300: 2, 599: 2, 600: 3, 1000: 3} {
		if got := x.Holds(off); got != want {
			t.Errorf("byte %d is in frame %d, want %d", off, got, want)
		}
	}
	for i := range 3 {
		f := x.Frame(i)
		if n, ok := x.Starts(f.At); n != i || !ok {
			t.Errorf("frame %d: %d, %v", i, n, ok)
		}
		if _, ok := x.Starts(f.At + 1); ok {
			t.Errorf("a frame starts within frame %d", i)
		}
	}
	if n, ok := x.Starts(x.Stored()); n != 3 || !ok {
		t.Errorf("the end: %d, %v", n, ok)
	}
	if _, ok := x.Starts(x.Stored() + 1); ok {
		t.Error("a frame starts behind the end")
	}
	if x.Matches(&m.summary) != nil {
		t.Error("it does not match itself")
	}
	x.Truncate(1)
	if x.Len() != 1 || x.Plain() != 100 || x.Events() != 1 || x.Chain() != x.Frame(0).CRC || x.Stored() != m.end(0) {
		t.Errorf("after the truncation: %+v", x)
	}
	if err := x.Matches(&m.summary); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	x.Truncate(0)
	if x.Stored() != 0 || x.Plain() != 0 || x.Events() != 0 || x.Chain() != 0 {
		t.Errorf("empty: %+v", x)
	}
}

// Frames grow with the body, and never end before they have anything.
func TestFull(t *testing.T) {
	for before, want := range map[int64]int{0: 256 << 10, 4<<30 - 1: 256 << 10, 4 << 30: 1 << 20, 64 << 30: 4 << 20, 1 << 50: 4 << 20} {
		if Full(want-1, before) || !Full(want, before) {
			t.Errorf("behind %d bytes a frame does not end at %d", before, want)
		}
	}
}

func newFile(t testing.TB, fs *simfile.FS) *File {
	t.Helper()
	f, err := fs.Open("ML_1", file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return NewFile(entry.StreamID{Term: 1, Member: 2, Start: 3, Number: 4}, "ML_1", f)
}

// A file that grows and is cut is what an index and a list of payloads are.
func TestFile(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		fs := simfile.New(env.Real(), seed)
		b := newFile(t, fs)
		z, unz := newEncoder(t), newDecoder(t)
		var payloads [][]byte
		var epoch uint64
		var synced int64
		parker := env.Real().NewParker()
		b.Watch(parker)
		for range 40 {
			s := b.Status()
			if s.Epoch != epoch || s.Frames != len(payloads) || s.State != Growing || s.Synced != synced {
				t.Fatalf("seed %d: %+v; want epoch %d, %d frames, %d synced", seed, s, epoch, len(payloads), synced)
			}
			switch rng.IntN(6) {
			case 0:
				n := rng.IntN(len(payloads) + 1)
				b.Truncate(n)
				payloads = payloads[:n]
				epoch++
				synced = min(synced, b.Status().Stored)
				if used := fs.Used(); used > Offset+b.Status().Stored {
					t.Fatalf("seed %d: %d bytes are left of %d", seed, used, b.Status().Stored)
				}
			case 1:
				if err := b.Sync(); err != nil {
					t.Fatal(err)
				}
				synced = b.Status().Stored
			default:
				p := events(rng, 1+rng.IntN(5000))
				frame, h := AppendFrame(nil, z, b.Status().Chain, p, 1)
				if err := b.Write(frame, h, uint64(len(payloads))); err != nil {
					t.Fatal(err)
				}
				payloads = append(payloads, p)
				parker.Park() // it has been told
			}
			checkFile(t, b, unz, payloads, epoch)
		}
		if len(payloads) == 0 {
			continue
		}
		if _, ok := b.Summary(); ok {
			t.Fatal("a summary while it grows")
		}
		l := b.Finish()
		if again, ok := b.Summary(); !ok || again != l || l.ID != b.ID || b.Status().State != Complete {
			t.Fatalf("%+v, %+v", l, again)
		}
		f, err := fs.Open("ML_1", file.OpenOptions{ReadOnly: true})
		if err == nil {
			err = Verify(f, &l)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		b.End(Taken)
		b.Unwatch(parker)
		if b.Status().State != Taken || b.Close() != nil {
			t.Fatal("the end")
		}
	}
}

// checkFile reads all frames back.
func checkFile(t *testing.T, b *File, z *zstd.Decoder, payloads [][]byte, epoch uint64) {
	t.Helper()
	var scratch, buf []byte
	var off int64
	var chain uint32
	for i, want := range payloads {
		f, ok := b.Frame(i, epoch)
		held, before, found := b.Holds(off)
		if !ok || !found || f != held || f.Number != i || before != chain || f.Before != off {
			t.Fatalf("frame %d: %+v, %+v", i, f, held)
		}
		if _, ok := b.Frame(i, epoch+1); ok {
			t.Fatal("a frame of an epoch to come")
		}
		var got []byte
		var err error
		if scratch, got, err = b.ReadFrame(f, before, z, scratch, buf); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("frame %d: %v", i, err)
		}
		if _, _, err := b.ReadFrame(f, before+1, z, nil, nil); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("frame %d behind another one: %v", i, err)
		}
		off += int64(len(want))
		chain = f.CRC
	}
	if _, _, found := b.Holds(off); found {
		t.Fatal("a frame behind the end")
	}
	if _, ok := b.Frame(len(payloads), epoch); ok {
		t.Fatal("a frame behind the end")
	}
}

// A write that fails leaves the body as it was.
func TestWriteFails(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	b := newFile(t, fs)
	z := newDecoder(t)
	frame, h := AppendFrame(nil, nil, 0, []byte("first"), 1)
	if err := b.Write(frame, h, 1); err != nil {
		t.Fatal(err)
	}
	in := fs.Inject(simfile.Fault{Ops: simfile.OpWrite, Err: file.ErrNoSpace})
	frame, h = AppendFrame(nil, nil, b.Status().Chain, []byte("second"), 1)
	if err := b.Write(frame, h, 2); !errors.Is(err, file.ErrNoSpace) {
		t.Fatal(err)
	}
	in.Stop()
	checkFile(t, b, z, [][]byte{[]byte("first")}, 0)
	if err := b.Write(frame, h, 2); err != nil {
		t.Fatal(err)
	}
	checkFile(t, b, z, [][]byte{[]byte("first"), []byte("second")}, 0)
}

// A body is synced piecewise beside the sync that is to make it whole. If either fails neither says
// that the bytes are durable, nor does a later one.
func TestSyncsFailTogether(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		sim.Run(func() {
			fs := simfile.New(sim, seed)
			b, z := newFile(t, fs), newEncoder(t)
			rng := rand.New(rand.NewPCG(seed, 5))
			frame, h := AppendFrame(nil, z, b.Status().Chain, events(rng, 5000), 1)
			if err := b.Write(frame, h, 0); err != nil {
				t.Fatal(err)
			}
			fs.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Jitter: time.Millisecond, Err: syscall.EIO})
			tasks := env.NewGroup(sim)
			for range 2 {
				tasks.Go("sync", func() {
					env.Sleep(sim, time.Duration(rng.IntN(500))*time.Microsecond)
					if err := b.Sync(); !errors.Is(err, syscall.EIO) {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			tasks.Wait()
			if err := b.Sync(); !errors.Is(err, syscall.EIO) || b.Status().Synced != 0 {
				t.Errorf("seed %d: %v, %d bytes are said to be durable", seed, err, b.Status().Synced)
			}
		})
	}
}

// FuzzHeader: what parses is written again as it was.
func FuzzHeader(f *testing.F) {
	m := makeBody(f, 5, 30)
	f.Add(m.bytes[Offset:])
	f.Add(make([]byte, HeaderSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		var again [HeaderSize]byte
		h.put(again[:])
		if !bytes.Equal(again[:], b[:HeaderSize]) || h.Plain > FrameMax || h.Events == 0 {
			t.Fatalf("%+v", h)
		}
	})
}

// FuzzReader: whatever lies in a file, a reader ends, and with io.EOF only if all is there.
func FuzzReader(f *testing.F) {
	m := makeBody(f, 6, 30, 100, 10)
	f.Add(m.bytes[Offset:], m.summary.Digest[:], int64(140), int64(6), uint32(3))
	z := newDecoder(f)
	f.Fuzz(func(t *testing.T, b, digest []byte, plain, count int64, frames uint32) {
		want := entry.LargeBody{Stored: int64(len(b)), Plain: plain, Events: count, Frames: frames}
		copy(want.Digest[:], digest)
		r := NewReader(bytes.NewReader(b), &want, z)
		var got int64
		for {
			_, p, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			got += int64(len(p))
		}
		if got != plain {
			t.Fatalf("%d bytes, %d were announced", got, plain)
		}
	})
}
