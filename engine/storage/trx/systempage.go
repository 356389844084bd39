package trx

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// SystemPage is the number of the system page in the system tablespace.
const SystemPage uint32 = 1

// FormatVersion is the format of the system page that this code writes, and the
// newest that it reads.
const FormatVersion = 1

// The system page, after the page header:
//
//	offset size field
//	32     8    magic
//	40     4    format version
//	44     4    reserved
//	48     16   database id
//	64     8    applied: CSN
//	72     8    applied: index in the group's log
//	80     8    applied: term of that index
//	88     8    purge floor: no older snapshot can be opened
//	96     8    limit of transaction ids
//	104    24   counters: next table, index and tablespace number
//	128    4    number of undo tablespaces; 0 if unknown
//	256    256  slots of 8 bytes for the catalogue's own roots
const (
	sysMagic    = "TRSYSTEM"
	offMagic    = page.HeaderSize
	offFormat   = 40
	offDatabase = 48
	offApplied  = 64
	offPosition = 72
	offFloor    = 88
	offIDLimit  = 96
	offCounters = 104
	offUndo     = 128
	offSlots    = 256
)

// Counter is one of the engine's counters.
type Counter int

const (
	TableID Counter = iota
	IndexID
	SpaceNo
	counterEnd
)

// Slots is the number of slots on the system page.
const Slots = 32

var le = binary.LittleEndian

// Position is a place in the group's log.
type Position struct{ Index, Term uint64 }

// systemPage is the decoded system page.
type systemPage struct {
	database space.DatabaseID
	csn      uint64
	position Position
	floor    uint64
	idLimit  uint64
	counters [counterEnd]uint64
}

func systemPageID() page.ID { return page.ID{Space: space.System, No: SystemPage} }

// Create makes the system page of a new database. Its first transaction ids,
// numbers of tables and so on are 1.
//
// REQUIRES: sp is the system tablespace, still empty.
func Create(m *mtr.Mtr, sp *space.Space, database space.DatabaseID) error {
	seg, err := sp.CreateSegment(m)
	if err != nil {
		return err
	}
	no, err := sp.AllocPage(m, seg, page.None)
	if err != nil {
		return err
	}
	if no != SystemPage || sp.No() != space.System {
		return fmt.Errorf("trx: the system page would be page %d of tablespace %d", no, sp.No())
	}
	p, err := m.GetNew(sp.ID(no), page.TypeSystem)
	if err != nil {
		return err
	}
	m.SetOwner(p, uint64(seg))
	m.Write(p, offMagic, []byte(sysMagic))
	m.WriteU32(p, offFormat, FormatVersion)
	m.Write(p, offDatabase, database[:])
	m.WriteU64(p, offIDLimit, 1)
	for c := range counterEnd {
		m.WriteU64(p, offCounters+8*int(c), 1)
	}
	return nil
}

// SetUndoSpaces records how many undo tablespaces a new database has, so that a
// missing one is noticed.
//
// REQUIRES: m is the mini-transaction of [Create].
func SetUndoSpaces(m *mtr.Mtr, n int) error {
	p, err := m.Get(systemPageID(), mtr.X)
	if err == nil {
		m.WriteU32(p, offUndo, uint32(n))
	}
	return err
}

// UndoSpaces reads how many undo tablespaces the database has; 0 if unknown.
func UndoSpaces(pool *buffer.Pool) (int, error) {
	m := mtr.New(pool)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(systemPageID(), mtr.S)
	if err != nil {
		return 0, err
	}
	return int(le.Uint32(p.Data[offUndo:])), nil
}

// CheckFormat looks at a system page as it is on disk. The error satisfies
// errors.Is(err, page.ErrNewerFormat) or is nil.
//
// REQUIRES: len(p) == page.Size.
func CheckFormat(p []byte) error {
	_, err := decodeSystemPage(p)
	if errors.Is(err, page.ErrNewerFormat) {
		return err
	}
	return nil
}

// SlotOf reads a slot from the bytes of a system page.
func SlotOf(p []byte, i int) uint64 { return le.Uint64(p[offSlots+8*i : offSlots+8*Slots]) }

// decodeSystemPage reads the system page. The error is a *page.CorruptError, or
// says that the format is too new.
func decodeSystemPage(p []byte) (systemPage, error) {
	var sp systemPage
	if t := page.GetType(p); t != page.TypeSystem || string(p[offMagic:offMagic+8]) != sysMagic {
		return sp, corruptSystem("type or magic of the system page", uint64(page.TypeSystem), uint64(t))
	}
	if f := le.Uint32(p[offFormat:]); f == 0 || f > FormatVersion {
		err := corruptSystem("format of the system page", FormatVersion, uint64(f))
		err.Newer = f != 0
		return sp, err
	}
	copy(sp.database[:], p[offDatabase:])
	sp.csn = le.Uint64(p[offApplied:])
	sp.position = Position{Index: le.Uint64(p[offPosition:]), Term: le.Uint64(p[offPosition+8:])}
	sp.floor = le.Uint64(p[offFloor:])
	sp.idLimit = le.Uint64(p[offIDLimit:])
	for c := range counterEnd {
		sp.counters[c] = le.Uint64(p[offCounters+8*int(c):])
	}
	if sp.floor > sp.csn || sp.csn == activeMark {
		return sp, corruptSystem("purge floor is beyond the applied CSN", sp.csn, sp.floor)
	}
	if sp.idLimit == 0 || sp.idLimit == activeMark {
		return sp, corruptSystem("limit of transaction ids", 1, sp.idLimit)
	}
	return sp, nil
}

func corruptSystem(problem string, expected, found uint64) *page.CorruptError {
	return &page.CorruptError{ID: systemPageID(), Problem: problem, Expected: expected, Found: found}
}

// NextNumber takes a number from a counter. A number that is not used is lost.
//
// REQUIRES: the task holds no latch and no writing mini-transaction.
func (s *System) NextNumber(c Counter) (n uint64, err error) {
	err = s.changePage(func(m *mtr.Mtr, p mtr.Page) {
		n = le.Uint64(p.Data[offCounters+8*int(c):])
		m.WriteU64(p, offCounters+8*int(c), n+1)
	})
	return n, err
}

// RaiseNumber makes sure that the counter gives no number below n.
func (s *System) RaiseNumber(c Counter, n uint64) error {
	return s.changePage(func(m *mtr.Mtr, p mtr.Page) {
		if le.Uint64(p.Data[offCounters+8*int(c):]) < n {
			m.WriteU64(p, offCounters+8*int(c), n)
		}
	})
}

// Slot reads a slot of the system page, 0 if it was never set.
func (s *System) Slot(i int) (uint64, error) {
	m := mtr.New(s.pool)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(systemPageID(), mtr.S)
	if err != nil {
		return 0, err
	}
	return le.Uint64(p.Data[offSlots+8*i : offSlots+8*Slots]), nil
}

// SetSlot sets a slot in the caller's mini-transaction, before its first change.
// The system page is latched after undo pages and before pages of package space.
func (s *System) SetSlot(m *mtr.Mtr, i int, v uint64) error {
	p, err := m.Get(systemPageID(), mtr.X)
	if err != nil {
		return err
	}
	if i < 0 || i >= Slots {
		panic("trx: no such slot")
	}
	m.WriteU64(p, offSlots+8*i, v)
	return nil
}

// changePage changes the system page in a mini-transaction of its own.
func (s *System) changePage(change func(m *mtr.Mtr, p mtr.Page)) error {
	s.pageTurn.Lock()
	defer s.pageTurn.Unlock()
	m := s.pageMtr
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	p, err := m.Get(systemPageID(), mtr.X)
	if err != nil {
		return err
	}
	change(m, p)
	return nil
}
