package provision

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc64"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// tableLoad is a table that is being received. It is made in a transaction that
// commits when its last row is loaded, together with the note of that.
type tableLoad struct {
	b       *building
	entry   tableEntry
	dec     *zstd.Decoder
	w       *table.Worker
	handle  *dict.Handle
	tbl     *table.Table
	loader  *table.Loader
	def     []byte // as it came
	last    []byte // key of the last row that was added
	key     []byte
	raw     []byte // what has come of rows that are not whole
	row     []types.Value
	got     ending // all rows so far
	rowsNow atomic.Int64
}

// table receives a table. After an error nothing of it is left.
func (b *building) table(entry tableEntry, dec *zstd.Decoder) error {
	l := &tableLoad{b: b, entry: entry, dec: dec, w: b.eng.Tables.NewWorker()}
	l.w.Use(b.eng.Trx.Begin(trx.Options{}))
	b.r.tableBegun(l)
	err := b.persist(l.rowsNow.Load, l.fetch)
	if err == nil {
		b.busy.Add(1)
		err = l.finish()
		b.busy.Add(-1)
	}
	if err != nil {
		err = errors.Join(err, l.abandon())
		if l.tbl != nil && !isFull(err) && !errors.Is(err, ErrSnapshotGone) {
			err = fmt.Errorf("provision: table %s.%s: %w", l.tbl.Schema.Table.Schema, l.tbl.Schema.Name, err)
		}
	}
	b.r.tableOver(l, err == nil)
	return err
}

// fetch receives rows, from where an earlier call has got to.
func (l *tableLoad) fetch() error {
	s, err := l.b.ask(request{what: askTable, csn: l.b.manifest.CSN, table: l.entry.id, resume: l.got.rows > 0, after: l.last})
	if err != nil {
		return err
	}
	defer s.close()
	l.raw = l.raw[:0]
	for first := true; ; first = false {
		t, body, done, err := s.next()
		switch {
		case err != nil:
			return err
		case first != (t == frameDefinition) || !done && !first && t != framePart:
			return fmt.Errorf("%w: a frame of %v within a table", errDamaged, t)
		case done && len(l.raw) > 0:
			return errPartial
		case done:
			return nil
		case first:
			err = l.define(body)
		default:
			err = l.part(s, body)
		}
		if err != nil {
			return err
		}
	}
}

// define takes the definition over: at the beginning the table is made, later it must
// be the same.
func (l *tableLoad) define(body []byte) error {
	d := &decoder{b: body}
	auto, rowID := d.uint64(), d.uint64()
	encoded := d.rest()
	if d.err != nil {
		return fmt.Errorf("%w: counters of table %d", errDamaged, l.entry.id)
	}
	op, err := txn.DecodeSchemaOp(encoded)
	if err != nil || op.Kind != txn.OpCreateTable || op.Table.ID != l.entry.id {
		return fmt.Errorf("provision: the definition of table %d is not one: %w", l.entry.id, cmp.Or(err, txn.ErrSchemaOp))
	}
	def := op.Table
	if l.tbl == nil {
		if err := l.create(def); err != nil {
			return fmt.Errorf("provision: making table %s.%s: %w", def.Schema, def.Name, err)
		}
		l.def = slices.Clone(encoded)
		l.b.arrived()
	} else if !bytes.Equal(l.def, encoded) {
		return fmt.Errorf("%w: another definition of table %s.%s than before", errDamaged, def.Schema, def.Name)
	}
	l.loader.RaiseCounters(auto, rowID)
	return nil
}

// create makes the table and begins to load it.
func (l *tableLoad) create(def *record.Table) error {
	made, err := l.b.eng.Catalog.CreateTable(l.w, def)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(made, def) {
		return errors.New("the definition is not one that this program would make")
	}
	if l.handle, err = l.b.eng.Catalog.OpenTableByID(l.w.Trx(), def.ID); err != nil {
		return err
	}
	tbl := l.handle.Table()
	if slices.ContainsFunc(def.Indexes, func(ix record.Index) bool { return ix.Building }) {
		if tbl, err = l.withoutBuilding(def, tbl); err != nil {
			return err
		}
	}
	l.tbl = tbl
	o := &l.b.r.opt
	l.loader = l.b.eng.Tables.NewWorker().NewLoader(tbl, table.LoadOptions{FS: l.b.r.opt.Home.receiving(), Memory: o.SortMemory / int64(o.Streams),
		Stop: l.b.ctx.Err})
	return nil
}

// withoutBuilding opens the table without its indexes that are being built: rows may
// not fit them, and whoever builds them begins with empty trees.
func (l *tableLoad) withoutBuilding(def *record.Table, tbl *table.Table) (*table.Table, error) {
	slim := *def
	slim.Indexes = slices.DeleteFunc(slices.Clone(def.Indexes), func(ix record.Index) bool { return ix.Building })
	s, err := record.Prepare(&slim)
	if err != nil {
		return nil, err
	}
	return l.b.eng.Tables.Open(s, tbl.Where)
}

// part loads rows.
func (l *tableLoad) part(s *stream, body []byte) error {
	p, raw, err := s.unpack(l.dec, body, l.raw)
	l.raw = raw
	if err != nil {
		return err
	}
	l.b.arrived()
	if p.rows == 0 {
		return nil
	}
	schema := l.tbl.Schema
	rest := raw
	rows := uint64(0)
	for ; len(rest) > 0; rows++ {
		if l.row, rest, err = table.DecodeExported(schema, rest, l.row[:0]); err != nil {
			return err
		}
		if err := l.loader.Add(l.row); err != nil {
			return err
		}
	}
	if rows != p.rows {
		return fmt.Errorf("%w: %d rows, %d were announced", table.ErrExport, rows, p.rows)
	}
	if l.key, err = schema.AppendRowKey(l.key[:0], l.row); err != nil {
		return err
	}
	if !bytes.Equal(l.key, p.last) {
		return fmt.Errorf("%w: the last row has the key %x, %x was announced", table.ErrExport, l.key, p.last)
	}
	l.last = append(l.last[:0], l.key...)
	l.got.rows += rows
	l.got.bytes += uint64(len(raw))
	l.got.sum = crc64.Update(l.got.sum, crcTable, raw)
	l.rowsNow.Store(int64(l.got.rows))
	l.b.r.change(func(n *Progress) { n.RawBytes += int64(len(raw)) })
	if l.raw = raw[:0]; cap(raw) > keptBuffer {
		l.raw = nil
	}
	return nil
}

// finish builds the indexes and commits the table.
func (l *tableLoad) finish() error {
	if err := l.loader.Finish(); err != nil {
		return err
	}
	l.b.arrived()
	if l.b.r.opt.Verify {
		if err := l.verify(); err != nil {
			return err
		}
	}
	if err := l.b.put(l.w, string(tableKey(l.entry.id)), nil); err != nil {
		return err
	}
	t := l.w.Trx()
	if err := l.b.commit(t); err != nil {
		return err
	}
	l.w = nil
	l.handle.Release()
	l.b.mu.Lock()
	l.b.done[l.entry.id] = true
	l.b.mu.Unlock()
	return nil
}

// verify reads the table again.
func (l *tableLoad) verify() error {
	var v trx.View
	l.b.eng.Trx.OpenSnapshot(&v)
	defer l.b.eng.Trx.CloseSnapshot(&v)
	x := l.b.eng.Tables.NewWorker().NewExporter(l.tbl, &v.Snapshot, nil)
	var got ending
	for {
		var rows int
		var err error
		if l.raw, rows, err = x.Next(l.raw[:0], 1<<20); err != nil {
			return err
		}
		if rows == 0 {
			break
		}
		got.rows += uint64(rows)
		got.bytes += uint64(len(l.raw))
		got.sum = crc64.Update(got.sum, crcTable, l.raw)
		l.b.arrived()
		if err := l.b.ctx.Err(); err != nil {
			return err
		}
	}
	if got != l.got {
		return fmt.Errorf("the rows that were loaded are not those that were received: %d with checksum %#x, not %d with %#x",
			got.rows, got.sum, l.got.rows, l.got.sum)
	}
	return nil
}

// abandon takes everything back.
func (l *tableLoad) abandon() error {
	var err error
	if l.loader != nil {
		err = l.loader.Close()
	}
	if l.handle != nil && l.w != nil {
		l.handle.Release()
	}
	if l.w != nil && l.b.eng.Err() == nil {
		err = errors.Join(err, l.b.rollback(l.w))
	}
	return err
}
