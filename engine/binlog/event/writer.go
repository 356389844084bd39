package event

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// DefaultServerVersion is what a Writer says of the server when it is not told.
const DefaultServerVersion = "8.4.0-trireme"

const defaultVersionNumber = 80400

// WriterOptions say how events leave the house.
type WriterOptions struct {
	UUID          UUID   // of the group
	ServerID      uint32 // of the server that sends
	ServerVersion string // "": DefaultServerVersion
	NoChecksum    bool   // binlog_checksum=NONE
}

// Writer makes plain events of the log's: those that MySQL's tools, connectors and
// replicas read. Each call of its io.Writer's Write is one whole event, so that a dump
// over the network can wrap each into a packet; only a file's magic comes by itself.
//
// Positions are those of a plain file. Events have 32 bits for them: beyond 4 GiB the
// positions in events wrap around, as MySQL's do.
type Writer struct {
	w        io.Writer
	opt      WriterOptions
	position uint64
	buf      []byte
}

// NewWriter returns a writer.
func NewWriter(w io.Writer, opt WriterOptions) *Writer {
	if opt.ServerVersion == "" {
		opt.ServerVersion = DefaultServerVersion
	}
	return &Writer{w: w, opt: opt}
}

// Position is the position of the next event in the file.
func (w *Writer) Position() uint64 { return w.position }

// SetPosition says where the next event stands, when a dump begins in a file's middle.
func (w *Writer) SetPosition(position uint64) { w.position = position }

// Begin begins a file: magic, format description, the transactions before.
func (w *Writer) Begin(timestamp uint32, previous GTIDSet) error {
	if _, err := io.WriteString(w.w, Magic); err != nil {
		return err
	}
	w.position = uint64(len(Magic))
	if err := w.FormatDescription(timestamp, timestamp); err != nil {
		return err
	}
	w.buf = AppendPreviousGTIDs(w.buf[:0], timestamp, previous)
	return w.finish()
}

// FormatDescription writes the format description alone, with the time of the
// server's start or 0.
func (w *Writer) FormatDescription(timestamp, created uint32) error {
	f := FormatDescription{ServerVersion: w.opt.ServerVersion, Created: created, Checksum: !w.opt.NoChecksum}
	w.buf = AppendFormatDescription(w.buf[:0], timestamp, &f)
	w.buf = w.buf[:len(w.buf)-checksumSize]
	return w.finish()
}

// Rotate ends a file in favour of another one, whose name it gives.
func (w *Writer) Rotate(timestamp uint32, name string) error {
	w.buf = AppendRotate(w.buf[:0], timestamp, 0, uint64(len(Magic)), name)
	return w.finish()
}

// Announce writes the ROTATE event that begins a dump: what comes stands at a position
// of the file with the name.
func (w *Writer) Announce(position uint64, name string) error {
	w.buf = AppendRotate(w.buf[:0], 0, FlagArtificial, position, name)
	return w.send(0)
}

// Transaction is what the log has of a transaction.
type Transaction struct {
	Number                  uint64
	LastCommitted, Sequence uint64 // as in GTID
	Time                    int64  // of the commit, microseconds since 1970
	Events                  []byte
	// Each, if not nil, gives the events in pieces, each of whole ones, instead of Events. It is
	// called twice: a transaction's length is known before its first event is written.
	Each func(fn func(events []byte) error) error
}

func (t *Transaction) each(fn func(events []byte) error) error {
	if t.Each == nil {
		return fn(t.Events)
	}
	return t.Each(fn)
}

// Transaction writes a transaction: its GTID, then either BEGIN, its events and XID, or
// the statement that changes the catalogue. Error: ErrCorrupt, before anything is
// written; the writer's.
func (w *Writer) Transaction(t *Transaction) error {
	timestamp := uint32(t.Time / 1e6)
	var shape shape
	if err := t.each(func(events []byte) error { return w.measure(&shape, events) }); err != nil {
		return err
	}
	g := GTID{UUID: w.opt.UUID, Number: t.Number, LastCommitted: t.LastCommitted, Sequence: t.Sequence,
		CommitTime: t.Time, ServerVersion: defaultVersionNumber, Statement: shape.statement()}
	b := Query{Text: begin, Client: utf8mb4, Connection: utf8mb4, Server: utf8mb4}
	w.buf = AppendGTID(w.buf[:0], timestamp, &g)
	rest := shape.length + uint64(len(w.buf)-1+w.tail())
	if !shape.statement() {
		frame := AppendXID(AppendQuery(nil, timestamp, &b), timestamp, t.Number)
		rest += uint64(len(frame) + 2*w.tail())
	}
	g.Length = lengthWithSelf(rest)
	w.buf = AppendGTID(w.buf[:0], timestamp, &g)
	if err := w.finish(); err != nil {
		return err
	}
	if !shape.statement() {
		w.buf = AppendQuery(w.buf[:0], timestamp, &b)
		if err := w.finish(); err != nil {
			return err
		}
	}
	if err := t.each(w.events); err != nil || shape.statement() {
		return err
	}
	w.buf = AppendXID(w.buf[:0], timestamp, t.Number)
	return w.finish()
}

// utf8mb4 is the collation of statements that the writer makes, utf8mb4_0900_ai_ci.
const utf8mb4 = 255

// shape is what a transaction's events are like once they have left.
type shape struct {
	length        uint64 // with checksums
	rows, queries bool
}

// statement reports whether there is a statement and no rows.
func (s *shape) statement() bool { return s.queries && !s.rows }

func (w *Writer) measure(s *shape, events []byte) error {
	r := NewReader(events)
	var e Event
	for {
		more, err := r.Next(&e)
		if !more || err != nil {
			return err
		}
		if e.Type == TypeSchema {
			continue
		}
		s.rows = s.rows || e.Type == TypeTableMap || e.Type.IsRows()
		s.queries = s.queries || e.Type == TypeQuery
		s.length += uint64(len(e.Raw) + w.tail())
	}
}

// events writes a transaction's events but for the house's own.
func (w *Writer) events(events []byte) error {
	r := NewReader(events)
	var e Event
	for {
		more, err := r.Next(&e)
		if !more || err != nil {
			return err
		}
		if e.Type == TypeSchema {
			continue
		}
		w.buf = append(w.buf[:0], e.Raw...)
		if err := w.finish(); err != nil {
			return err
		}
	}
}

// tail is the length of an event's checksum.
func (w *Writer) tail() int {
	if w.opt.NoChecksum {
		return 0
	}
	return checksumSize
}

// tailOf is tail of any event: a format description has a checksum always.
func (w *Writer) tailOf(event []byte) int {
	if Type(event[offType]) == TypeFormatDescription {
		return checksumSize
	}
	return w.tail()
}

// finish gives the event in buf its place in the file and writes it.
func (w *Writer) finish() error {
	w.position += uint64(len(w.buf) + w.tailOf(w.buf))
	return w.send(uint32(w.position))
}

// keptEvent is the longest event whose memory is kept for the next.
const keptEvent = 1 << 20

// send writes the event in buf, with its header and checksum completed.
func (w *Writer) send(position uint32) error {
	b := w.buf
	binary.LittleEndian.PutUint32(b[offServerID:], w.opt.ServerID)
	binary.LittleEndian.PutUint32(b[offLength:], uint32(len(b)+w.tailOf(b)))
	binary.LittleEndian.PutUint32(b[offLogPos:], position)
	if w.tailOf(b) > 0 {
		b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	w.buf = b[:0]
	if cap(b) > keptEvent {
		w.buf = nil
	}
	_, err := w.w.Write(b)
	return err
}
