package table

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/extsort"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// LoadOptions configure a bulk load. An FS, this or the engine's, is required if
// entries of secondary indexes are to be sorted.
type LoadOptions struct {
	FS     file.FS
	Dir    string // of temporary files; empty: "tmp"
	Fill   int    // percent of a page that is filled; 0: 93
	Memory int64  // for sorting, all indexes together, in bytes; 0: 64 MiB
	// Stop, if not nil, is asked now and then whether to give up.
	Stop func() error
}

// loadFill leaves a sixteenth of each page for later changes, as InnoDB does.
const loadFill = 93

// stopEvery is after how many entries Stop is asked.
const stopEvery = 1024

func (o *LoadOptions) setDefaults() {
	if o.Dir == "" {
		o.Dir = "tmp"
	}
	if o.Fill == 0 {
		o.Fill = loadFill
	}
}

// loadedTrx and loadedRoll are the header of a loaded row: a transaction that every
// snapshot sees, and the roll pointer of an insert, which nobody follows.
const (
	loadedTrx  uint64 = 0
	loadedRoll uint64 = 1 << 55
)

// Loader fills an empty table with rows, in the order of their clustered keys, that
// every snapshot sees at once: who may see them is decided by who may see the
// table. It takes no locks, writes no undo, and keeps index pages out of the redo
// log; a tree is synced before its root refers to it. Rows that have gone wrong
// stay until the table is dropped: if a call fails, or Finish is not reached, the
// caller drops the table.
//
// REQUIRES: nobody else uses the table; the worker is not used for anything else
// meanwhile. It needs no transaction.
type Loader struct {
	w    *Worker
	t    *Table
	opt  LoadOptions
	tree *btree.Loader
	sort *indexSort
	rows int64
	key  []byte
	last []byte
	// counters are the tablespace's words that the rows raise.
	counters [2]uint64
	err      error
}

// NewLoader returns a loader of the table.
func (w *Worker) NewLoader(t *Table, opt LoadOptions) *Loader {
	opt.setDefaults()
	l := &Loader{w: w, t: t, opt: opt}
	l.tree = t.trees[0].NewLoader(opt.Fill)
	l.tree.Unlogged = true
	if len(t.Schema.Keys) > 1 {
		l.sort = newIndexSort(w, t, opt)
	}
	return l
}

// Rows is the number of rows added.
func (l *Loader) Rows() int64 { return l.rows }

// SortStats says what sorting the secondary entries has taken so far.
func (l *Loader) SortStats() extsort.Stats {
	if l.sort == nil {
		return extsort.Stats{}
	}
	return l.sort.sorter.Stats()
}

// Add adds a row, given by column position and valid for the columns' types; it is
// not kept. Errors: *[DuplicateError] for the primary key, btree.ErrUnsorted,
// btree.ErrNotEmpty, record.ErrRowTooLarge and ErrKeyTooLong, space.ErrNoSpace.
// After an error the loader is of no more use.
func (l *Loader) Add(row []types.Value) error {
	if l.err == nil {
		l.err = l.add(row)
	}
	return l.err
}

func (l *Loader) add(row []types.Value) error {
	w, t, s := l.w, l.t, l.t.Schema
	var err error
	if l.opt.Stop != nil && l.rows%stopEvery == 0 {
		if err := l.opt.Stop(); err != nil {
			return err
		}
	}
	if l.key, err = s.AppendRowKey(l.key[:0], row); err != nil {
		return err
	}
	if l.rows > 0 && bytes.Equal(l.key, l.last) {
		return t.duplicate(0, l.key, l.key)
	}
	if err := l.encode(row); err != nil {
		return err
	}
	record.SetHeader(w.row, loadedTrx, loadedRoll)
	if err := l.tree.Add(l.key, 0, w.row); err != nil {
		return fmt.Errorf("table %s.%s: %w", s.Table.Schema, s.Name, err)
	}
	if l.sort != nil {
		r, err := s.Row(l.key, w.row)
		if err != nil {
			return err
		}
		for _, k := range s.Keys[1:] {
			if err := l.sort.add(k, r, 0); err != nil {
				return err
			}
		}
	}
	l.noteCounters(row)
	l.key, l.last = l.last, l.key
	l.rows++
	return nil
}

// encode makes w.row of a row. One that has no room for columns which were added since it was made has an older
// version where it comes from, and gets one here: the newest that it fits.
func (l *Loader) encode(row []types.Value) error {
	s := l.t.Schema
	for version := s.RowVersion; ; version-- {
		older := s
		if version < s.RowVersion {
			older = s.Older(version)
		}
		err := l.encodeAs(older, row)
		if !errors.Is(err, record.ErrRowTooLarge) || version == record.FirstRowVersion || !hasInitials(s, row, version-1) {
			return err
		}
	}
}

func (l *Loader) encodeAs(s *record.Schema, row []types.Value) error {
	external, err := l.externalize(s, row)
	if err == nil {
		l.w.row, err = s.AppendRow(l.w.row[:0], row, external)
	}
	return err
}

// hasInitials reports whether the row has, of all columns that rows of a version do not hold, what those
// rows are taken to have.
func hasInitials(s *record.Schema, row []types.Value, version uint8) bool {
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 || c.AddedIn <= version {
			continue
		}
		null := row[i].IsNull()
		if null != (c.Initial == nil) || !null && !bytes.Equal(types.AppendStored(nil, row[i], &c.Type), c.Initial) {
			return false
		}
	}
	return true
}

// externalize is Worker.externalize without undo: whoever drops the table drops the values.
func (l *Loader) externalize(s *record.Schema, row []types.Value) ([]record.External, error) {
	return externalize(s, row, func(value []byte) (ref lob.Ref, err error) {
		w := lob.NewWriter(l.w.e.Pool, l.t.space, l.t.Where.LOBSegment, loadedTrx, space.Ordinary)
		if _, err := w.Write(value); err != nil {
			return ref, err
		}
		return w.Close()
	})
}

// noteCounters keeps AUTO_INCREMENT and the hidden row id ahead of what rows hold.
func (l *Loader) noteCounters(row []types.Value) {
	for _, i := range l.t.counted {
		c := &l.t.Schema.Columns[i]
		if row[i].IsNull() || !c.Type.Unsigned && row[i].Int() < 0 {
			continue
		}
		if next := l.t.above(row[i].Uint()); c.AutoIncrement {
			l.RaiseCounters(next, 0)
		} else {
			l.RaiseCounters(0, next)
		}
	}
}

// RaiseCounters makes the next AUTO_INCREMENT value and the next hidden row id at
// least these: they may be ahead of the rows where those come from. They are in
// force after Finish.
func (l *Loader) RaiseCounters(nextAuto, nextRowID uint64) {
	l.counters[wordAuto] = max(l.counters[wordAuto], nextAuto)
	l.counters[wordRow] = max(l.counters[wordRow], nextRowID)
}

// storeCounters puts the counters into force.
func (l *Loader) storeCounters() error {
	t := l.t
	if len(t.counted) == 0 {
		return nil
	}
	if err := l.w.begin(); err != nil {
		return err
	}
	defer l.w.commit()
	if err := t.space.RaiseWords(l.w.m, l.counters[:]); err != nil {
		return err
	}
	if next := l.counters[wordAuto]; next > 0 {
		t.RaiseAuto(next - 1)
	}
	if next := l.counters[wordRow]; next > 0 {
		t.RaiseRowID(next - 1)
	}
	return nil
}

// Finish builds the trees. What was loaded is then durable as far as the redo log
// is: before a commit that lies behind it in the log. Errors: as of Add, *[DuplicateError] for the secondary indexes, and
// file.ErrNoSpace.
func (l *Loader) Finish() error {
	if l.err == nil {
		l.err = l.tree.Finish()
	}
	if l.err == nil && l.sort != nil {
		l.err = l.sort.build(l.t.Schema.Keys[1:])
	}
	if l.err == nil {
		l.err = l.storeCounters()
	}
	if err := l.Close(); l.err == nil {
		l.err = err
	}
	if l.err == nil {
		l.t.SetRows(l.rows)
	}
	return l.err
}

// Close gives temporary files and memory back. Finish does it too.
func (l *Loader) Close() error {
	if l.sort == nil {
		return nil
	}
	return l.sort.sorter.Close()
}

// BuildIndex fills the empty tree of a secondary index from the rows that the
// snapshot sees, and returns the number of entries. Rows changed by others
// meanwhile are not its business: whoever starts it brings the index up to date
// before anybody reads it, and keeps older snapshots from reading it at all. After
// an error the tree is of no more use.
//
// Errors: *[DuplicateError], record.ErrKeyTooLong, space.ErrNoSpace, and
// file.ErrNoSpace.
//
// REQUIRES: nobody else uses the index's tree.
func (w *Worker) BuildIndex(t *Table, position int, snap *trx.Snapshot, opt LoadOptions) (entries int64, err error) {
	opt.setDefaults()
	x := newIndexSort(w, t, opt)
	defer func() {
		if cerr := x.sorter.Close(); err == nil {
			err = cerr
		}
	}()
	key := t.Schema.Keys[position]
	var k walk
	k.startRows(w, t, snap, nil)
	for more := true; more; {
		if more, err = k.next(); err != nil {
			return 0, err
		}
		for i := range k.items {
			r, err := k.row(i)
			if err != nil {
				return 0, err
			}
			if err := x.add(key, r, 0); err != nil {
				return 0, err
			}
		}
		if opt.Stop != nil {
			if err := opt.Stop(); err != nil {
				return 0, err
			}
		}
	}
	if err := x.build(t.Schema.Keys[position : position+1]); err != nil {
		return 0, err
	}
	return x.sorter.Stats().Entries, nil
}

// indexSort sorts the entries of secondary indexes, of all of them at once: a byte
// with the index's position comes before the key. So they share one memory, and
// come out one index after the other. Before the value there is a byte of flags.
type indexSort struct {
	w      *Worker
	t      *Table
	opt    LoadOptions
	sorter *extsort.Sorter
}

// Flags of sorted entries.
const (
	sortedNull    = 1 << iota // a part of the key is NULL
	sortedInDoubt             // the row may have been taken back since it was read
)

func newIndexSort(w *Worker, t *Table, opt LoadOptions) *indexSort {
	if opt.FS == nil {
		opt.FS = w.e.FS
	}
	return &indexSort{w: w, t: t, opt: opt, sorter: extsort.New(extsort.Options{FS: opt.FS, Env: w.e.Env, Dir: opt.Dir, Memory: opt.Memory})}
}

// add adds the row's entry in an index. flags is 0 or sortedInDoubt.
func (x *indexSort) add(k *record.KeySchema, r record.Row, flags byte) error {
	w := x.w
	var partLen int
	var hasNull bool
	var err error
	w.sec = append(w.sec[:0], byte(k.Position))
	if w.sec, partLen, hasNull, err = w.appendEntry(w.sec, x.t, k, r); err != nil {
		return err
	}
	if hasNull {
		flags |= sortedNull
	}
	w.secVal = append(w.secVal[:0], flags)
	if w.secVal, err = w.appendEntryValue(w.secVal, x.t, k, r, partLen); err != nil {
		return err
	}
	return x.sorter.Add(w.sec, w.secVal)
}

// build loads the trees of the indexes, which are all that entries were added of,
// in the order of their positions.
func (x *indexSort) build(keys []*record.KeySchema) error {
	if err := x.sorter.Finish(); err != nil {
		return err
	}
	l := indexLoad{x: x}
	for n := 0; ; n++ {
		key, value, ok, err := x.sorter.Next()
		if err != nil {
			return err
		}
		if x.opt.Stop != nil && n%stopEvery == 0 {
			if err := x.opt.Stop(); err != nil {
				return err
			}
		}
		for len(keys) > 0 && (!ok || int(key[0]) != keys[0].Position || l.tree == nil) {
			if l.tree == nil {
				l.start(keys[0])
				continue
			}
			if err := l.tree.Finish(); err != nil {
				return fmt.Errorf("index %s: %w", l.k.Name, err)
			}
			l.tree, keys = nil, keys[1:]
		}
		if !ok {
			return nil
		}
		if err := l.add(key[1:], value[0]&sortedNull != 0, value[1:]); err != nil {
			return err
		}
	}
}

// indexLoad loads one index.
type indexLoad struct {
	x        *indexSort
	k        *record.KeySchema
	tree     *btree.Loader
	last     []byte // entry before, if it counts for uniqueness
	lastPart int    // length of its part; 0: none
}

func (l *indexLoad) start(k *record.KeySchema) {
	l.k, l.lastPart = k, 0
	l.tree = l.x.t.trees[k.Position].NewLoader(l.x.opt.Fill)
	l.tree.Unlogged = true
}

func (l *indexLoad) add(key []byte, hasNull bool, value []byte) error {
	if l.k.Unique && !hasNull {
		row, err := record.ClusteredKey(key, value)
		if err != nil {
			return err
		}
		part := key[:len(key)-len(row)]
		if l.lastPart > 0 && bytes.Equal(l.last[:l.lastPart], part) {
			return l.x.t.duplicate(l.k.Position, part, l.last[l.lastPart:])
		}
		l.last, l.lastPart = append(l.last[:0], key...), len(part)
	}
	if err := l.tree.Add(key, 0, value); err != nil {
		return fmt.Errorf("index %s: %w", l.k.Name, err)
	}
	return nil
}
