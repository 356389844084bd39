package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// crcTable is of the running checksums. It is another polynomial than that of the
// frames, so that what one does not see the other does.
var crcTable = crc64.MakeTable(crc64.ECMA)

// sender is what answering a request takes. It is kept for the next one.
type sender struct {
	s      *Source
	w      *table.Worker
	enc    *zstd.Encoder
	out    frameWriter
	raw    []byte
	packed []byte

	// Of the request at hand.
	ctx  context.Context
	sn   *snapshot
	done ending
	// format is the newest one that the receiver knows.
	format uint32
}

// Answer answers a request of a receiver: it opens the snapshot that is asked for, if
// it is not open, and writes the answer. An error is one of the stream, of reading the
// engine, or what the receiver was told.
func (s *Source) Answer(ctx context.Context, req []byte, w ChunkWriter) error {
	r, err := decodeRequest(req)
	if errors.Is(err, ErrMalformed) {
		err = remotef(ErrRequest, "%v", err)
	}
	var sn *snapshot
	if err == nil {
		sn, err = s.enter(&r, w)
	}
	if err != nil {
		return tell(&frameWriter{w: w}, err)
	}
	v, err := s.sender()
	if err == nil {
		defer s.keep(v)
		v.ctx, v.sn, v.done, v.format = ctx, sn, ending{}, min(r.max, FormatVersion)
		v.out.w, v.out.sent = w, 0
		err = v.answer(&r)
	}
	// Before the end is told: who hears of it may rely on a release, and open another stream.
	s.leave(sn, &r)
	if err == nil {
		err = v.out.send(frameEnd, v.done.append(v.out.begin()))
	}
	if v != nil {
		s.count.sent.Add(v.out.sent)
	}
	if err != nil {
		return tell(&frameWriter{w: w}, err)
	}
	return nil
}

// tell tells the receiver why there is no more, if the stream can still say so.
func tell(f *frameWriter, err error) error {
	var broken *streamError
	if errors.As(err, &broken) {
		return err
	}
	var e *RemoteError
	if !errors.As(err, &e) {
		e = remotef(ErrDonor, "%v", err)
	}
	_ = f.send(frameError, e.append(f.begin()))
	return err
}

// sender returns a sender, one that was kept if there is one.
func (s *Source) sender() (*sender, error) {
	s.mu.Lock()
	if n := len(s.senders); n > 0 {
		v := s.senders[n-1]
		s.senders = s.senders[:n-1]
		s.mu.Unlock()
		return v, nil
	}
	s.mu.Unlock()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	v := &sender{s: s, w: s.opt.Engine.Tables.NewWorker(), enc: enc}
	v.out.pace = s.pace.wait
	return v, nil
}

func (s *Source) keep(v *sender) {
	v.ctx, v.sn, v.out.w = nil, nil, nil
	if cap(v.raw)+cap(v.packed) > 2*keptBuffer {
		v.raw, v.packed = nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.senders) < s.opt.MaxStreams && !s.closed {
		s.senders = append(s.senders, v)
	}
}

// answer sends all of an answer but its end.
func (v *sender) answer(r *request) error {
	switch r.what {
	case askSnapshot:
		m := v.sn.manifest
		m.Format = v.format
		return v.out.send(frameManifest, m.append(v.out.begin()))
	case askCatalogue:
		return v.catalogue()
	case askState:
		return v.state(r)
	case askTable:
		return v.table(r)
	}
	return nil
}

// proceed says why to give up, if so. It is asked before each frame.
func (v *sender) proceed() error {
	if err := v.ctx.Err(); err != nil {
		return &streamError{err}
	}
	return v.s.proceed(v.sn)
}

func (v *sender) snap() *trx.Snapshot { return &v.sn.view.Snapshot }

// catalogue sends the schemas, and what tables there are.
func (v *sender) catalogue() error {
	c := v.s.opt.Engine.Catalog
	schemas, err := c.Schemas(v.snap())
	if err != nil {
		return err
	}
	for i := range schemas {
		op := txn.SchemaOp{Kind: txn.OpCreateSchema, Schema: schemas[i]}
		if err := v.out.send(frameSchema, op.Append(v.out.begin())); err != nil {
			return err
		}
	}
	var ids []uint64
	err = c.Tables(v.snap(), func(def *record.Table) error {
		ids = append(ids, def.ID)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.proceed(); err != nil {
			return err
		}
		e := v.estimate(id)
		if err := v.out.send(frameTable, e.append(v.out.begin())); err != nil {
			return err
		}
	}
	v.done.rows = uint64(len(schemas) + len(ids))
	return nil
}

// estimate says how large a table is. One that cannot be read says so when its rows are
// asked for.
func (v *sender) estimate(id uint64) tableEntry {
	e := tableEntry{id: id}
	tbl, err := v.s.opt.Engine.Catalog.TableAt(v.snap(), id)
	if err != nil {
		return e
	}
	e.bytes = int64(tbl.Space().SizePages()) * page.Size
	if rows, _, err := tbl.Tree(0).Estimate(nil, nil); err == nil {
		e.rows = max(rows, 0)
	}
	return e
}

// state sends the keys and values of the replicated area, each with its length before
// it. Entries without a number change them too, and the CSN of the snapshot does not tell
// which of these are applied here: that is said first.
func (v *sender) state(r *request) error {
	if v.format >= appliedFormat {
		_, pos := v.s.opt.Engine.Trx.Applied()
		if err := v.out.send(frameApplied, appendUints(v.out.begin(), pos.Index)); err != nil {
			return err
		}
	}
	var last []byte
	rows := 0
	v.raw = v.raw[:0]
	err := v.s.opt.Engine.Catalog.EachState(v.snap(), dict.Replicated, func(key, value []byte) error {
		if r.resume && bytes.Compare(key, r.after) <= 0 {
			return nil
		}
		if rows > 0 && len(v.raw)+len(key)+len(value) > v.s.opt.PartSize {
			if err := v.part(rows, last); err != nil {
				return err
			}
			v.raw, rows = v.raw[:0], 0
		}
		v.raw = appendBytes(appendBytes(v.raw, key), value)
		last = append(last[:0], key...)
		rows++
		return nil
	})
	if err == nil && rows > 0 {
		err = v.part(rows, last)
	}
	return err
}

// table sends a table's definition and counters, and its rows.
func (v *sender) table(r *request) error {
	tbl, err := v.s.opt.Engine.Catalog.TableAt(v.snap(), r.table)
	if errors.Is(err, table.ErrNoTable) {
		return remotef(ErrRequest, "snapshot %d has no table %d", v.sn.manifest.CSN, r.table)
	}
	if err != nil {
		return err
	}
	// Not the counters in use, which may be ahead by what was never committed: members
	// would differ.
	auto, rowID, err := tbl.Counters()
	if err != nil {
		return err
	}
	head := appendUints(v.out.begin(), auto, rowID)
	op := txn.SchemaOp{Kind: txn.OpCreateTable, Table: tbl.Schema.Table}
	if err := v.out.send(frameDefinition, op.Append(head)); err != nil {
		return err
	}
	var after []byte
	if r.resume {
		after = r.after
	}
	x := v.w.NewExporter(tbl, v.snap(), after)
	for {
		var rows int
		if v.raw, rows, err = x.Next(v.raw[:0], v.s.opt.PartSize); err == nil && rows == 0 {
			return nil
		}
		if err == nil {
			err = v.part(rows, x.Last())
		}
		if err != nil {
			return fmt.Errorf("table %s.%s: %w", tbl.Schema.Table.Schema, tbl.Schema.Name, err)
		}
	}
}

// part sends rows, which are in v.raw: long ones in several parts, of which only the last one says that they are there.
func (v *sender) part(rows int, last []byte) error {
	raw, size := v.raw, v.s.opt.PartSize
	if len(raw) > longRows*size {
		if v.format >= splitFormat {
			for ; len(raw) > size; raw = raw[size:] {
				if err := v.piece(raw[:size], 0, nil); err != nil {
					return err
				}
			}
		} else if len(raw) > maxPart {
			return remotef(ErrVersion, "a row of %d bytes, and the receiver takes rows of %d at most: start a newer version there", len(raw), maxPart)
		}
	}
	if err := v.piece(raw, rows, last); err != nil {
		return err
	}
	if cap(v.raw) > keptBuffer {
		v.raw = nil
	}
	return nil
}

// piece sends a part.
func (v *sender) piece(raw []byte, rows int, last []byte) error {
	if err := v.proceed(); err != nil {
		return err
	}
	v.done.rows += uint64(rows)
	v.done.bytes += uint64(len(raw))
	v.done.sum = crc64.Update(v.done.sum, crcTable, raw)
	p := part{rows: uint64(rows), raw: uint64(len(raw)), codec: zstdFrame, last: last,
		rowsSoFar: v.done.rows, bytesSoFar: v.done.bytes, sumSoFar: v.done.sum}
	v.packed = v.enc.EncodeAll(raw, v.packed[:0])
	p.data = v.packed
	if len(v.packed) >= len(raw)-len(raw)/16 {
		p.codec, p.data = plain, raw
	}
	c := &v.s.count
	c.rows.Add(int64(rows))
	c.parts.Add(1)
	c.raw.Add(int64(len(raw)))
	return v.out.send(framePart, p.append(v.out.begin()))
}
