package lob

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// Info is what a value's first page says about it.
type Info struct {
	Length   uint64 // stored so far, in bytes
	Trx      uint64 // the transaction that made it
	Segment  uint32
	Version  uint32
	Pages    uint32 // data pages
	Complete bool
}

// Stat returns what a value's first page says, whatever state the value is in but
// freed. Error: [ErrGone].
func Stat(pool *buffer.Pool, ref Ref) (Info, error) {
	if ref.First == page.None {
		return Info{Complete: true}, nil
	}
	m := mtr.New(pool)
	m.BeginRead()
	defer m.Commit()
	_, h, err := ref.getHeader(m, mtr.S)
	return Info{h.length, h.trx, h.segment, h.version, h.pages, h.state == stateComplete}, err
}

// Check reads all pages of the value that a row refers to, reports what is wrong,
// and calls reach with each page, for space.Check. The error is one of reading;
// damage is a finding.
//
// REQUIRES: the task holds no latch.
func Check(pool *buffer.Pool, ref Ref, report func(space.Finding), reach func(seg, no uint32)) error {
	if ref.First == page.None {
		if ref.Length != 0 {
			report(space.Finding{Page: ref.id(0), Problem: fmt.Sprintf("value of %d bytes has no page", ref.Length)})
		}
		return nil
	}
	c := check{pool: pool, ref: ref, m: mtr.New(pool), report: report, reach: reach}
	return c.run()
}

type check struct {
	pool   *buffer.Pool
	ref    Ref
	m      *mtr.Mtr
	h      header
	report func(space.Finding)
	reach  func(seg, no uint32)
}

// fails reports damage; it passes other errors on.
func (c *check) fails(no uint32, err error) error {
	damage := (*page.CorruptError)(nil)
	if errors.As(err, &damage) || errors.Is(err, ErrGone) || errors.Is(err, space.ErrBeyondEnd) {
		c.report(space.Finding{Page: c.ref.id(no), Segment: c.h.segment, Problem: err.Error()})
		return nil
	}
	return err
}

func (c *check) run() error {
	c.m.BeginRead()
	defer c.m.Commit()
	first, err := c.ref.getFirst(c.m, mtr.S)
	if err != nil {
		return c.fails(c.ref.First, err)
	}
	c.h = getHeader(first.Data)
	c.reach(c.h.segment, c.ref.First)
	if err := c.entries(first, offDirect, min(c.h.pages, directPages)); err != nil {
		return err
	}
	for k := range uint32(maxIndexes) {
		no := le.Uint32(first.Data[offIndexes+4*k:])
		if (no != page.None) != (k < indexesFor(c.h.pages)) {
			c.report(space.Finding{Page: c.ref.id(c.ref.First), Segment: c.h.segment,
				Problem: fmt.Sprintf("index page %d is %d; the value has %d data pages", k, no, c.h.pages)})
			continue
		}
		if no == page.None {
			continue
		}
		if err := c.index(no, min(c.h.pages-directPages-k*indexPages, indexPages)); err != nil {
			return err
		}
	}
	return nil
}

// index checks an index page with n entries.
func (c *check) index(no, n uint32) error {
	mark := c.m.Mark()
	defer c.m.ReleaseTo(mark)
	p, err := c.ref.getPage(c.m, no, page.TypeLOBIndex, mtr.S)
	if err != nil {
		return c.fails(no, err)
	}
	c.reach(c.h.segment, no)
	return c.entries(p, page.HeaderSize, n)
}

// entries checks the data pages that n entries at off name.
func (c *check) entries(list mtr.Page, off int, n uint32) error {
	for i := range n {
		no := le.Uint32(list.Data[off+4*int(i):])
		mark := c.m.Mark()
		_, err := c.ref.getPage(c.m, no, page.TypeLOBData, mtr.S)
		c.m.ReleaseTo(mark)
		if err != nil {
			if err := c.fails(no, err); err != nil {
				return err
			}
			continue
		}
		c.reach(c.h.segment, no)
	}
	return nil
}
