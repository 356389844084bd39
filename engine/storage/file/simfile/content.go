package simfile

import "bytes"

const (
	chunkSize       = 16 << 10
	sectorsPerChunk = chunkSize / SectorSize // fits the bits of a uint32
)

// chunk is a piece of a file. A frozen one is shared and never changes again.
type chunk struct {
	frozen bool
	data   [chunkSize]byte
}

// chunks is the content of a file; nil entries and what lies beyond are zeros.
type chunks []*chunk

var zeroChunk chunk

// at returns chunk i, zeros if it is not stored.
func (c chunks) at(i int) *chunk {
	if i >= len(c) || c[i] == nil {
		return &zeroChunk
	}
	return c[i]
}

// set stores chunk i; nil stores zeros.
func (c *chunks) set(i int, to *chunk) {
	for len(*c) <= i {
		if to == nil {
			return
		}
		*c = append(*c, make(chunks, i+1-len(*c))...)
	}
	(*c)[i] = to
}

// own returns chunk i for writing.
func (c *chunks) own(i int) *chunk {
	old := c.at(i)
	if old != &zeroChunk && !old.frozen {
		return old
	}
	n := &chunk{}
	if old != &zeroChunk {
		n.data = old.data
	}
	c.set(i, n)
	return n
}

// share freezes all chunks and returns a second content made of them.
func (c chunks) share() chunks {
	for _, p := range c {
		p.freeze()
	}
	return append(chunks(nil), c...)
}

func (c *chunk) freeze() {
	if c != nil && !c.frozen {
		c.frozen = true
	}
}

// readAt copies out what lies at off; the caller has checked the size.
func (c chunks) readAt(p []byte, off int64) {
	for len(p) > 0 {
		i, at := int(off/chunkSize), int(off%chunkSize)
		n := copy(p, c.at(i).data[at:])
		p, off = p[n:], off+int64(n)
	}
}

// writeAt copies p to off. p nil stands for n zeros.
func (c *chunks) writeAt(p []byte, off, n int64) {
	for n > 0 {
		i, at := int(off/chunkSize), int(off%chunkSize)
		part := min(n, int64(chunkSize-at))
		switch {
		case p == nil && part == chunkSize:
			c.set(i, nil)
		case p == nil && c.at(i) == &zeroChunk:
		case p == nil:
			clear(c.own(i).data[at : at+int(part)])
		default:
			copy(c.own(i).data[at:], p[:part])
			p = p[part:]
		}
		off, n = off+part, n-part
	}
}

// cut zeros all from size on.
func (c *chunks) cut(size int64) {
	i, at := int(size/chunkSize), int(size%chunkSize)
	if at > 0 {
		if c.at(i) != &zeroChunk {
			clear(c.own(i).data[at:])
		}
		i++
	}
	if i < len(*c) {
		clear((*c)[i:])
		*c = (*c)[:i]
	}
}

// merge returns chunk with the sectors in mask taken from other.
func merge(base, other *chunk, mask uint32) *chunk {
	n := &chunk{data: base.data}
	for s := range sectorsPerChunk {
		if mask&(1<<s) != 0 {
			copy(n.data[s*SectorSize:(s+1)*SectorSize], other.data[s*SectorSize:])
		}
	}
	return n
}

// allZero reports whether p holds only zeros.
func allZero(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), chunkSize)
		if !bytes.Equal(p[:n], zeroChunk.data[:n]) {
			return false
		}
		p = p[n:]
	}
	return true
}
