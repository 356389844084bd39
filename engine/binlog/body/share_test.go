package body

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// A scanner sees the same frames however their bytes are cut, and any change of a byte.
func TestScanner(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []byte
	var want []Header
	var before uint32
	for range 20 {
		events := make([]byte, 1+rng.IntN(5000))
		var h Header
		all, h = AppendFrame(all, nil, before, events, 1+rng.IntN(9))
		want, before = append(want, h), h.CRC
	}
	scan := func(b []byte) (got []Header, err error) {
		var s Scanner
		for len(b) > 0 {
			piece := b[:min(len(b), 1+rng.IntN(3000))]
			b = b[len(piece):]
			for len(piece) > 0 {
				n, h, whole, err := s.Next(piece)
				if err != nil {
					return got, err
				}
				if piece = piece[n:]; whole {
					got = append(got, h)
				}
			}
		}
		if s.Partial() != 0 {
			return got, errors.New("the last frame is not whole")
		}
		return got, nil
	}
	for range 50 {
		got, err := scan(all)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d frames, %v", len(got), err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("frame %d: %+v, not %+v", i, got[i], want[i])
			}
		}
		bad := bytes.Clone(all)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		if _, err := scan(bad); err == nil {
			t.Fatal("a flipped bit was not seen")
		}
	}
}

// Since tells the fewest frames that there were since an epoch.
func TestSince(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f, err := simfile.New(env.Real(), 1).Open("x", file.OpenOptions{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	b := NewFile(entry.StreamID{}, "x", f)
	var cuts []int // by epoch less one
	for range 2000 {
		if n := b.Status().Frames; n == 0 || rng.IntN(4) > 0 {
			frame, h := AppendFrame(nil, nil, b.Status().Chain, []byte{1}, 1)
			if err := b.Write(frame, h, 0); err != nil {
				t.Fatal(err)
			}
		} else {
			n = rng.IntN(n + 1)
			b.Truncate(n)
			cuts = append(cuts, n)
		}
		epoch := rng.IntN(len(cuts) + 1)
		want := b.Status().Frames
		for _, n := range cuts[epoch:] {
			want = min(want, n)
		}
		if _, got := b.Since(uint64(epoch)); got != want {
			t.Fatalf("since epoch %d of %d: %d frames, not %d", epoch, len(cuts), got, want)
		}
		if len(b.cuts) > b.Status().Frames+1 {
			t.Fatalf("%d cuts are kept for %d frames", len(b.cuts), b.Status().Frames)
		}
	}
}

// A file is closed when it was given up and nobody holds it.
func TestHold(t *testing.T) {
	f, err := simfile.New(env.Real(), 1).Open("x", file.OpenOptions{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	b := NewFile(entry.StreamID{}, "x", f)
	if !b.Hold() || b.Close() != nil || !b.Hold() {
		t.Fatal("it is not open")
	}
	b.Release()
	if _, err := f.Size(); err != nil {
		t.Fatalf("it was closed too early: %v", err)
	}
	b.Release()
	if _, err := f.Size(); err == nil || b.Hold() || b.Close() != nil {
		t.Fatal("it is not closed")
	}
}
