package table

import (
	"bytes"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// Range is what a scan goes through: the entries of one index from Low to High.
// Bounds are key forms of the index's first parts (record.KeySchema.AppendKey); a
// bound stands for all keys that begin with it.
type Range struct {
	Index     int    // position
	Low, High []byte // nil: open
	LowOpen   bool   // keys that begin with Low are left out
	HighOpen  bool   // keys that begin with High are left out
	Backward  bool
	Columns   []int // positions of the columns wanted
	// Keys asks for the clustered key of each row, see [Scanner.Key].
	Keys bool

	// Lock makes the scan a locking read of the newest versions: RecordS or
	// RecordX. Gaps are locked too where the isolation level asks for it.
	Lock   lock.Mode
	Policy lock.Policy
	// Locking says whether Lock applies.
	Locking bool
	// Wanted, if not nil, is asked by a locking scan without gap locks before it waits
	// for a row that another transaction has locked. It is given the columns of the
	// row's last committed version and says whether the statement wants the row; if
	// not, the scan passes it over (InnoDB's semi-consistent read). If so, the scan
	// waits and gives the row as it is then, which may not be wanted any more. A scan
	// of one key of a unique index does not ask. No latch is held; the worker must not
	// be used. MySQL has it for UPDATE, not for DELETE.
	Wanted func(row *types.Batch) (bool, error)
}

// Scanner reads a range into batches. It belongs to its worker and is used for
// one range after the other; between two calls of Next it holds no latch.
type Scanner struct {
	w     *Worker
	t     *Table
	r     Range
	snap  *trx.Snapshot
	key   *record.KeySchema
	state scanState

	covering bool
	point    bool   // a locking read of one key of a unique index
	last     []byte // key of the last entry looked at
	keys     []byte // clustered keys of the batch, one after the other
	ends     []int
	row      []byte // clustered key of the row being decoded
	stands   bool   // the cursor is on the entry behind last, and w.rm open
	paused   bool   // Next is to return with what it has
	pending  pendingRow
	gather   rowGatherer
	took     tookLocks
	asking   asking
}

type scanState uint8

const (
	scanStart scanState = iota
	scanOn              // the cursor has left, or last is set
	scanEnd
)

// pendingRow is a row with off-page columns, copied to be completed without a
// latch.
type pendingRow struct {
	is         bool
	key, value []byte
}

// Start makes s a scan of the range as the snapshot sees it; a locking scan needs
// no snapshot. The bounds must stay as they are until the scan is over.
func (s *Scanner) Start(w *Worker, t *Table, snap *trx.Snapshot, r Range) error {
	s.w, s.t, s.snap, s.r = w, t, snap, r
	s.key, s.state = t.Schema.Keys[r.Index], scanStart
	s.last = s.last[:0]
	s.pending.is, s.stands = false, false
	s.took.start()
	s.asking = asking{}
	s.gather.start(t, &r)
	s.covering = true
	for _, c := range r.Columns {
		s.covering = s.covering && s.key.Covers[c]
	}
	if s.point = r.Locking && s.isPoint(); s.point {
		s.r.Backward = false
	}
	if r.Locking {
		mode := lock.TableIX
		if r.Lock == lock.RecordS {
			mode = lock.TableIS
		}
		return w.lockTable(t, mode)
	}
	return nil
}

// Key is the clustered key of row i of the last batch.
//
// REQUIRES: Range.Keys.
func (s *Scanner) Key(i int) []byte {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.keys[from:s.ends[i]]
}

// Next fills the batch, which has a vector for each wanted column, with the next
// rows, and reports whether there may be more. It returns fewer, or none, where it has passed over many entries that are no
// rows for it: whoever calls may have a reason to end.
func (s *Scanner) Next(batch *types.Batch) (more bool, err error) {
	batch.Reset()
	s.keys, s.ends = s.keys[:0], s.ends[:0]
	s.took.reset()
	if s.r.Locking {
		s.took.splits = s.w.trx.Locks().Splits()
	}
	for s.state != scanEnd && !batch.Full() {
		if s.r.Locking {
			err = s.nextLocked(batch)
		} else {
			err = s.nextLeaf(batch)
		}
		if err != nil {
			return false, err
		}
		if s.pending.is {
			s.pending.is = false
			if err := s.complete(batch); err != nil {
				return false, err
			}
		}
		if s.r.Locking && !s.gaps() {
			s.noteTook(batch.Len())
		}
		if s.paused {
			s.paused = false
			break
		}
	}
	return s.state != scanEnd, nil
}

// complete adds the pending row to the batch.
func (s *Scanner) complete(batch *types.Batch) error {
	snap, p := s.snap, &s.pending
	if s.r.Locking {
		snap = nil
	}
	found, err := s.w.appendExternal(s.t, snap, p.key, p.value, s.r.Columns, batch, s.hasEntry)
	if found {
		s.noteKey(p.key)
	}
	return err
}

// hasEntry reports whether a version of the pending row has the entry that the scan
// is at.
func (s *Scanner) hasEntry(version []byte) (bool, error) {
	if s.r.Index == 0 {
		return true, nil
	}
	r, err := s.t.Schema.Row(s.pending.key, version)
	if err != nil {
		return false, err
	}
	w := s.w
	w.sec2, _, _, err = w.appendEntry(w.sec2[:0], s.t, s.key, r)
	return bytes.Equal(w.sec2, s.last), err
}

func (s *Scanner) noteKey(key []byte) {
	if s.r.Keys {
		s.keys = append(s.keys, key...)
		s.ends = append(s.ends, len(s.keys))
	}
}

// position puts the cursor on the first entry that is still to be looked at.
//
// REQUIRES: w.rm is open.
func (s *Scanner) position() error {
	c := &s.w.look
	c.Init(s.t.trees[s.r.Index], s.w.rm)
	if !s.r.Backward {
		switch {
		case s.state == scanOn:
			exact, err := c.Seek(s.last, mtr.S)
			if err == nil && exact {
				err = c.Next()
			}
			return err
		case s.r.Low == nil:
			return c.First(mtr.S)
		case s.r.LowOpen:
			s.row = successor(s.row[:0], s.r.Low)
			if s.row == nil {
				return pastLast(c)
			}
			_, err := c.Seek(s.row, mtr.S)
			return err
		}
		_, err := c.Seek(s.r.Low, mtr.S)
		return err
	}
	switch {
	case s.state == scanOn:
		return c.SeekBefore(s.last, mtr.S, false)
	case s.r.High == nil:
		return c.Last(mtr.S)
	case s.r.HighOpen:
		return c.SeekBefore(s.r.High, mtr.S, false)
	}
	if s.row = successor(s.row[:0], s.r.High); s.row == nil {
		return c.Last(mtr.S)
	}
	return c.SeekBefore(s.row, mtr.S, false)
}

// pastLast puts the cursor behind the last entry.
func pastLast(c *btree.Cursor) error {
	err := c.Last(mtr.S)
	if err == nil && c.Valid() {
		err = c.Next()
	}
	return err
}

// successor appends the least key above all keys that begin with prefix. It returns
// nil if there is none: prefix is all ones.
func successor(dst, prefix []byte) []byte {
	dst = append(dst, prefix...)
	for n := len(dst); n > 0; n-- {
		if dst[n-1] != 0xff {
			dst[n-1]++
			return dst[:n]
		}
	}
	return nil
}

// beyond reports whether an entry is past the scan's end.
func (s *Scanner) beyond(key []byte) bool {
	if s.r.Backward {
		switch {
		case s.r.Low == nil:
			return false
		case s.r.LowOpen:
			return bytes.HasPrefix(key, s.r.Low) || bytes.Compare(key, s.r.Low) < 0
		}
		return bytes.Compare(key, s.r.Low) < 0
	}
	switch {
	case s.r.High == nil:
		return false
	case s.r.HighOpen:
		return bytes.Compare(key, s.r.High) >= 0
	}
	return bytes.Compare(key, s.r.High) > 0 && !bytes.HasPrefix(key, s.r.High)
}

// leavesAtOnce is how many leaves are read before Next returns, however few rows they have.
const leavesAtOnce = 256

// nextLeaf reads on, from leaf to leaf, until the batch is full, the range is at
// its end, or a row needs to be completed without a latch.
func (s *Scanner) nextLeaf(batch *types.Batch) error {
	w := s.w
	w.rm.BeginRead()
	defer w.release()
	if err := s.position(); err != nil {
		return err
	}
	c := &w.look
	for n := 1; c.Valid(); n++ {
		stop, err := s.readLeaf(batch)
		if err != nil || stop {
			return err
		}
		if n >= leavesAtOnce && s.state == scanOn {
			s.paused = true
			return nil
		}
		if s.r.Backward {
			err = c.PrevLeaf()
		} else {
			err = c.NextLeaf()
		}
		if err != nil {
			return err
		}
	}
	s.state = scanEnd
	return nil
}

// readLeaf reads the entries of the cursor's leaf. stop says that the batch is
// full or the scan is over or a row is pending.
func (s *Scanner) readLeaf(batch *types.Batch) (stop bool, err error) {
	if s.r.Index == 0 {
		return s.readRows(batch)
	}
	c := &s.w.look
	step, end := 1, c.LeafLen()
	if s.r.Backward {
		step, end = -1, -1
	}
	plain := c.PageMaxTrx() < s.w.e.Trx.VisibleBelow()
	inside := s.leafInside(c.Pos(), end-step)
	for i := c.Pos(); i != end; i += step {
		suffix, flags, value := c.At(i)
		s.last = append(append(s.last[:0], c.Prefix()...), suffix...)
		if !inside && s.beyond(s.last) {
			s.state = scanEnd
			return true, nil
		}
		s.state = scanOn
		switch {
		case plain && flags&record.FlagDeleted != 0:
		case plain && s.covering:
			err = s.readCovered(batch, s.last, value)
		default:
			err = s.readThrough(batch, s.last, value, plain)
		}
		if err != nil || s.pending.is || batch.Full() {
			c.SetPos(i)
			return true, err
		}
	}
	return false, nil
}

// leafInside reports whether the last entry of the leaf, and so all before it, is
// within the range.
func (s *Scanner) leafInside(first, last int) bool {
	if s.r.High == nil && !s.r.Backward || s.r.Low == nil && s.r.Backward {
		return true
	}
	if last < 0 || first == last {
		return false
	}
	s.row = s.w.look.AppendKey(s.row[:0], last)
	return !s.beyond(s.row)
}

func (s *Scanner) decode(batch *types.Batch, key, value []byte) error {
	r, err := s.t.Schema.Row(key, value)
	if err != nil {
		return err
	}
	external, err := appendColumns(s.t, batch, &r, s.r.Columns)
	switch {
	case err != nil:
		return err
	case external:
		s.pending.is = true
		s.pending.key = append(s.pending.key[:0], key...)
		s.pending.value = append(s.pending.value[:0], value...)
		return nil
	}
	s.noteKey(key)
	return nil
}

// readCovered takes a row from a secondary record alone.
func (s *Scanner) readCovered(batch *types.Batch, key, value []byte) error {
	for n, col := range s.r.Columns {
		if err := s.t.Schema.AppendCovered(&batch.Vecs[n], s.key, key, value, col); err != nil {
			return err
		}
	}
	batch.EndRow()
	if s.r.Keys {
		row, err := record.ClusteredKey(key, value)
		if err != nil {
			return err
		}
		s.noteKey(row)
	}
	return nil
}

// readThrough takes a row from the clustered index that a secondary entry points
// to. Unless the entry stands for itself (plain), the row counts only if the
// version that the snapshot sees has the entry's key.
func (s *Scanner) readThrough(batch *types.Batch, key, value []byte, plain bool) error {
	w := s.w
	row, err := record.ClusteredKey(key, value)
	if err != nil {
		return err
	}
	s.row = append(s.row[:0], row...)
	w.inner.Init(s.t.trees[0], w.rm)
	defer w.inner.Reset()
	exact, err := w.inner.SeekLeaf(s.row, mtr.S)
	if err != nil {
		return err
	}
	if !exact {
		if plain {
			return fmt.Errorf("%w: index %s of table %s has an entry without a row", record.ErrCorrupt, s.key.Name, s.t.Schema.Name)
		}
		return nil
	}
	version, deleted, err := w.visible(s.t, s.snap, w.inner.Value(), w.inner.Flags())
	if err != nil || deleted {
		return err
	}
	if !plain {
		r, err := s.t.Schema.Row(s.row, version)
		if err != nil {
			return err
		}
		if w.sec2, _, _, err = w.appendEntry(w.sec2[:0], s.t, s.key, r); err != nil {
			return err
		}
		if !bytes.Equal(w.sec2, key) {
			return nil
		}
	}
	return s.decode(batch, s.row, version)
}
