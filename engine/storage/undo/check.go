package undo

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Finding is something that is wrong with a stream.
type Finding struct {
	Page    page.ID // the stream's home page
	Problem string
}

func (f Finding) String() string { return fmt.Sprintf("undo stream %v: %s", f.Page, f.Problem) }

// Check walks every page and entry of every stream, reports what contradicts the
// invariants, and tells each page that a stream reaches, for the tablespace's own
// check.
//
// REQUIRES: nobody writes undo or purges meanwhile.
func (u *Manager) Check(report func(Finding), reach func(space, segment, no uint32)) {
	u.mu.Lock()
	streams := append([]*stream(nil), u.streams...)
	u.mu.Unlock()
	for _, s := range streams {
		c := checker{s: s, report: report, buf: make([]byte, page.Size), reached: map[uint32]bool{}}
		c.run()
		reach(s.space.No(), s.seg, s.home)
		for _, no := range c.chain {
			if no != s.home {
				reach(s.space.No(), s.seg, no)
			}
		}
	}
}

type checker struct {
	s       *stream
	report  func(Finding)
	buf     []byte
	chain   []uint32
	reached map[uint32]bool
}

func (c *checker) fail(format string, args ...any) {
	c.report(Finding{Page: c.s.id(c.s.home), Problem: fmt.Sprintf(format, args...)})
}

func (c *checker) run() {
	s := c.s
	m := s.u.getMtr()
	defer s.u.putMtr(m)
	if err := s.copyPage(m, s.home, c.buf); err != nil {
		c.fail("%v", err)
		return
	}
	if got := le.Uint32(c.buf[offFirst:]); got != s.first {
		c.fail("first page is %d on disk and %d in memory", got, s.first)
	}
	if got := le.Uint32(c.buf[offLast:]); got != s.last {
		c.fail("last page is %d on disk and %d in memory", got, s.last)
	}
	if got := getPos(c.buf[offHead:]); got != s.stored {
		c.fail("head is %v on disk and %v in memory", got, s.stored)
	}
	for no := s.first; ; {
		if c.reached[no] {
			c.fail("page %d is in the chain twice", no)
			return
		}
		c.reached[no] = true
		c.chain = append(c.chain, no)
		if err := s.copyPage(m, no, c.buf); err != nil {
			c.fail("%v", err)
			return
		}
		next := le.Uint32(c.buf[offNext:])
		if no == s.last {
			if next != page.None {
				c.fail("last page %d has a next one, %d", no, next)
			}
			break
		}
		no = next
	}
	if !c.reached[s.stored.page] {
		c.fail("head %v is not in the chain", s.stored)
		return
	}
	c.logs()
}

// logs walks the logs from the head on.
func (c *checker) logs() {
	s := c.s
	m := s.u.getMtr()
	defer s.u.putMtr(m)
	committed := 0
	at := s.stored
	var open *logHeader
	var left uint64
	for {
		if err := s.copyPage(m, at.page, c.buf); err != nil {
			c.fail("%v", err)
			return
		}
		_, _, err := endOfEntries(c.buf, int(at.off), func(e entry) error {
			if e.kind != kindHeader {
				if open == nil || left == 0 && open.flags&Committed != 0 {
					c.fail("record at %d+%d belongs to no log", at.page, e.off)
				}
				left--
				return nil
			}
			if open != nil && (left != 0 || open.flags&Committed == 0) {
				c.fail("log of transaction %d before %d+%d has %d records too few", open.trx, at.page, e.off, left)
			}
			h := getLogHeader(e.data)
			open, left = &h, h.records
			if h.flags&Committed != 0 {
				committed++
			}
			return nil
		})
		if err != nil {
			c.fail("%v", err)
			return
		}
		if at.page == s.last {
			break
		}
		at = pos{page: le.Uint32(c.buf[offNext:]), off: offEntries}
	}
	if open != nil && left != 0 && open.flags&Committed != 0 {
		c.fail("last log, of transaction %d, has %d records too few", open.trx, left)
	}
	// Logs that were purged since the head was stored are still to be seen.
	if committed != s.history+s.skipped {
		c.fail("%d committed logs from the head on; %d in memory and %d purged", committed, s.history, s.skipped)
	}
}
