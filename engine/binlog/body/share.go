package body

import "github.com/triremedb/trireme/engine/binlog/entry"

// cut is a call of Truncate.
type cut struct {
	epoch  uint64 // that it began
	frames int    // that it left
}

// addCut notes a cut. A cut that left no fewer frames than a later one says nothing that the
// later one does not, so cuts are kept with rising numbers of frames: at most one a frame.
func addCut(cuts []cut, c cut) []cut {
	for len(cuts) > 0 && cuts[len(cuts)-1].frames >= c.frames {
		cuts = cuts[:len(cuts)-1]
	}
	return append(cuts, c)
}

// Since says how the File is, and how many of its frames have been there since an epoch: a
// reader that has read more than kept frames in that epoch has to go back to kept.
func (b *File) Since(epoch uint64) (s Status, kept int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept = b.x.Len()
	for _, c := range b.cuts {
		if c.epoch > epoch {
			kept = min(kept, c.frames)
			break
		}
	}
	return b.status(), kept
}

// Matches says how the frames differ from what is described, if they do. Error: ErrCorrupt.
func (b *File) Matches(want *entry.LargeBody) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.x.Matches(want)
}

// Hold keeps the file open for a reader until Release, whatever becomes of it. It reports
// false if the file is closed already.
func (b *File) Hold() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed && b.holds == 0 {
		return false
	}
	b.holds++
	return true
}

// Release ends Hold.
func (b *File) Release() {
	b.mu.Lock()
	if b.holds--; b.holds < 0 {
		b.mu.Unlock()
		panic("body: Release without Hold")
	}
	last := b.closed && b.holds == 0
	b.mu.Unlock()
	if last {
		_ = b.f.Close() // nothing is written any more
	}
}

// Closed reports whether the file is released.
func (b *File) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.holds == 0
}

// Close releases the file, once nobody holds it. It does not remove it, and may be called
// again.
func (b *File) Close() error {
	b.mu.Lock()
	last := !b.closed && b.holds == 0
	b.closed = true
	b.mu.Unlock()
	if !last {
		return nil
	}
	return b.f.Close()
}
