package body

import (
	"crypto/sha256"
	"fmt"
	"sort"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// Frame is a frame and where it lies.
type Frame struct {
	Header
	At     int64  // from the body's beginning
	Before int64  // bytes of events in the frames before
	Number int    // from 0 on
	After  uint64 // the newest log index that the leader had accepted when the frame was closed
}

// End is where the next frame begins.
func (f *Frame) End() int64 { return f.At + f.Size() }

// Index are the frames of a body. The zero value is an empty body. It is not safe for
// concurrent use.
type Index struct {
	frames []Frame
	events int64
}

// Len is the number of frames.
func (x *Index) Len() int { return len(x.frames) }

// Frame returns frame n.
func (x *Index) Frame(n int) Frame { return x.frames[n] }

// Add adds a frame behind the last one.
func (x *Index) Add(h Header, after uint64) Frame {
	f := Frame{Header: h, At: x.Stored(), Before: x.Plain(), Number: len(x.frames), After: after}
	x.frames = append(x.frames, f)
	x.events += int64(h.Events)
	return f
}

// Truncate leaves the first n frames.
func (x *Index) Truncate(n int) {
	for _, f := range x.frames[n:] {
		x.events -= int64(f.Events)
	}
	x.frames = x.frames[:n]
}

// Stored is the length of the body in bytes.
func (x *Index) Stored() int64 {
	if len(x.frames) == 0 {
		return 0
	}
	return x.frames[len(x.frames)-1].End()
}

// Plain is the length of the events in bytes.
func (x *Index) Plain() int64 {
	if len(x.frames) == 0 {
		return 0
	}
	f := &x.frames[len(x.frames)-1]
	return f.Before + int64(f.Header.Plain)
}

// Events is the number of events.
func (x *Index) Events() int64 { return x.events }

// Chain is the checksum of the last frame, 0 if there is none.
func (x *Index) Chain() uint32 {
	if len(x.frames) == 0 {
		return 0
	}
	return x.frames[len(x.frames)-1].CRC
}

// Holds returns the number of the frame with byte off of the events; Len behind the last.
func (x *Index) Holds(off int64) int {
	return sort.Search(len(x.frames), func(i int) bool { return x.frames[i].Before+int64(x.frames[i].Header.Plain) > off })
}

// Starts returns the number of the frame that begins at a place of the body; Len for its end.
func (x *Index) Starts(at int64) (n int, ok bool) {
	n = sort.Search(len(x.frames), func(i int) bool { return x.frames[i].At >= at })
	return n, n == len(x.frames) && at == x.Stored() || n < len(x.frames) && x.frames[n].At == at
}

// Describe says what the body is, for the entry of the log. The id is left out.
func (x *Index) Describe() entry.LargeBody {
	d := sha256.New()
	var b [HeaderSize]byte
	for i := range x.frames {
		x.frames[i].put(b[:])
		d.Write(b[:])
	}
	l := entry.LargeBody{Offset: Offset, Stored: x.Stored(), Plain: x.Plain(), Events: x.events, Frames: uint32(len(x.frames))}
	d.Sum(l.Digest[:0])
	return l
}

// Matches says how the frames differ from what is described, if they do. Error: ErrCorrupt.
func (x *Index) Matches(want *entry.LargeBody) error {
	is := x.Describe()
	is.ID, is.Offset = want.ID, want.Offset
	if is != *want {
		return fmt.Errorf("%w: the body has %d frames, %d bytes, %d events and digest %x; %d, %d, %d and %x were announced", ErrCorrupt,
			is.Frames, is.Stored, is.Events, is.Digest[:8], want.Frames, want.Stored, want.Events, want.Digest[:8])
	}
	return nil
}
