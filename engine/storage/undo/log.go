package undo

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Log is the undo log of one running transaction, and the owner's side of its
// stream. It belongs to the transaction's task, from Acquire to Release.
type Log struct {
	s         *stream
	trxID     uint64
	start     pos    // of the header, if count > 0
	top       pos    // where the next entry goes
	count     uint64 // records
	pages     int64  // that it has taken, and not given back
	changes   bool   // had a record that is not an insert's
	committed bool
	mark      logHeader // as committed
	buf       []byte    // for building entries
}

// begin makes the log that of a transaction, empty.
func (l *Log) begin(trxID uint64) *Log {
	l.trxID, l.top, l.count = trxID, l.s.tail, 0
	l.changes, l.committed = false, false
	return l
}

// TrxID is the transaction that the log belongs to.
func (l *Log) TrxID() uint64 { return l.trxID }

// Top is the number of records, and the number that the next record will have: a
// savepoint is a value of Top, and reached again once Last and DropLast have
// taken away all records from that number on.
func (l *Log) Top() uint64 { return l.count }

// Prepare makes sure that there is room for records with that many bytes of
// payload in all (n records may be told as the sum plus 4 for each but the
// first), so that the next Appends need no page. It may take a page, in a
// mini-transaction of its own. Error: space.ErrNoSpace, and what halted the
// engine.
//
// REQUIRES: size <= MaxRecord; the task holds no latch and no writing
// mini-transaction.
func (l *Log) Prepare(size int) error {
	if size > MaxRecord {
		panic("undo: record is too large")
	}
	if l.hasRoom(size) {
		return nil
	}
	return l.s.extend(l)
}

func (l *Log) hasRoom(size int) bool {
	need := size + entryFrame + terminator
	if l.count == 0 {
		need += headerEntry
	}
	return int(l.top.off)+need <= page.Size
}

// Append writes a record in the caller's mini-transaction and returns the pointer
// to it and its number. It must come before the mini-transaction's first change
// (or after [Log.Fix]): an error of reading the page has changed nothing.
//
// REQUIRES: Prepare for at least this size since the last Append; in latch order.
func (l *Log) Append(m *mtr.Mtr, payload []byte, insert bool) (ptr RollPtr, number uint64, err error) {
	p, err := m.Get(l.s.id(l.top.page), mtr.X)
	if err != nil {
		return 0, 0, err
	}
	if !l.hasRoom(len(payload)) {
		panic("undo: Append without Prepare")
	}
	b := l.buf[:0]
	if l.count == 0 {
		l.start = l.top
		h := logHeader{trx: l.trxID}
		var raw [headerSize]byte
		h.put(raw[:])
		b = appendEntry(b, kindHeader, raw[:])
	}
	at := pos{page: l.top.page, off: l.top.off + uint16(len(b))}
	kind := kindInsert
	if !insert {
		kind = kindChange
		l.changes = true
	}
	b = appendEntry(b, kind, payload)
	b = append(b, 0, 0)
	m.Write(p, int(l.top.off), b)
	l.buf = b
	l.top.off += uint16(len(b) - terminator)
	l.count++
	return makePtr(l.s.index, at, insert), l.count - 1, nil
}

// Fix latches the page that the next Append writes to, so that the Append cannot
// fail.
func (l *Log) Fix(m *mtr.Mtr) error {
	_, err := m.Get(l.s.id(l.top.page), mtr.X)
	return err
}

// Record is an undo record.
type Record struct {
	Ptr     RollPtr
	Number  uint64 // place in its log, from 0
	Payload []byte
}

// Last reads the newest record, for rollback; its payload is copied to buf, which
// grows if need be. ok is false if the log is empty. On its way back it frees the
// pages that have become empty.
//
// REQUIRES: the task holds no latch and no writing mini-transaction.
func (l *Log) Last(buf []byte) (rec Record, ok bool, err error) {
	if l.count == 0 {
		return Record{}, false, nil
	}
	m := l.s.u.getMtr()
	defer l.s.u.putMtr(m)
	if err := l.stepBack(m); err != nil {
		return Record{}, false, err
	}
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(l.s.id(l.top.page), mtr.S)
	if err != nil {
		return Record{}, false, err
	}
	e, good := entryBefore(p.Data, int(l.top.off))
	if !good || e.kind == kindHeader {
		return Record{}, false, corrupt(l.s.id(l.top.page), "undo record that ends at offset",
			uint64(l.top.off), uint64(peek(p.Data, int(l.top.off)-2)))
	}
	at := pos{page: l.top.page, off: uint16(e.off)}
	return Record{
		Ptr:     makePtr(l.s.index, at, e.kind == kindInsert),
		Number:  l.count - 1,
		Payload: append(buf[:0], e.data...),
	}, true, nil
}

// First reads the oldest record of a log that is not empty; its payload is copied to buf.
//
// REQUIRES: the task holds no latch and no writing mini-transaction.
func (l *Log) First(buf []byte) (payload []byte, err error) {
	m := l.s.u.getMtr()
	defer l.s.u.putMtr(m)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(l.s.id(l.start.page), mtr.S)
	if err != nil {
		return nil, err
	}
	at := int(l.start.off) + headerEntry
	e, good := entryAt(p.Data, at)
	if !good || e.kind != kindInsert && e.kind != kindChange {
		return nil, corrupt(l.s.id(l.start.page), "undo record at offset", uint64(at), uint64(peek(p.Data, at)))
	}
	return append(buf[:0], e.data...), nil
}

// DropLast takes away the newest record, in the mini-transaction that reverts its
// change (or in one of its own if there is nothing to revert). With its last
// record the log vanishes from the stream.
//
// REQUIRES: Last has returned the record; in latch order; before the
// mini-transaction's first change, as for Append.
func (l *Log) DropLast(m *mtr.Mtr) error {
	p, err := m.Get(l.s.id(l.top.page), mtr.X)
	if err != nil {
		return err
	}
	e, good := entryBefore(p.Data, int(l.top.off))
	if !good || e.kind == kindHeader || l.count == 0 {
		return corrupt(l.s.id(l.top.page), "undo record that ends at offset",
			uint64(l.top.off), uint64(peek(p.Data, int(l.top.off)-2)))
	}
	l.top.off = uint16(e.off)
	if l.count--; l.count == 0 {
		l.top = l.start
		l.changes = false
	}
	m.WriteU16(p, int(l.top.off), 0)
	return nil
}

// FixCommit latches the page that MarkCommitted writes to, so that
// MarkCommitted cannot fail.
func (l *Log) FixCommit(m *mtr.Mtr) error {
	if l.count == 0 {
		return nil
	}
	_, err := m.Get(l.s.id(l.start.page), mtr.X)
	return err
}

// MarkCommitted makes the log that of a committed transaction, in the
// mini-transaction that records the commit. An empty log has nothing to mark.
//
// REQUIRES: FixCommit in the same mini-transaction; csn is not below that of the
// log before it in the stream.
func (l *Log) MarkCommitted(m *mtr.Mtr, csn uint64, flags Flags) {
	if l.count == 0 {
		return
	}
	p, err := m.Get(l.s.id(l.start.page), mtr.X)
	if err != nil {
		panic("undo: MarkCommitted without FixCommit: " + err.Error())
	}
	flags |= Committed
	if !l.changes {
		flags |= InsertOnly
	}
	l.mark = logHeader{trx: l.trxID, csn: csn, records: l.count, end: l.top, flags: flags}
	var raw [headerSize]byte
	l.mark.put(raw[:])
	m.Write(p, int(l.start.off)+2+hdrCSN, raw[hdrCSN:])
	l.committed = true
}

// head describes the committed log for purge.
func (l *Log) head() Head { return Head{s: l.s, start: l.start, logHeader: l.mark} }
