package table

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
)

// CheckState says what a check may take for granted, and so how much it finds.
type CheckState uint8

const (
	// CheckOnline: the table is in use. What looks wrong is looked at again until it
	// stands still; pages are not held against the tablespace's books.
	CheckOnline CheckState = iota
	// CheckQuiet: nobody changes or purges the table meanwhile. Pages of off-page
	// values that only undo refers to are not told from lost ones: neither is
	// reported.
	CheckQuiet
	// CheckPurged: quiet, no transaction is running, and purge has nothing left to
	// do. Whatever it should have removed is a finding.
	CheckPurged
)

// CheckOptions configure a check.
type CheckOptions struct {
	State CheckState
	// Space is the check of the tablespace, for one that several tables share: the
	// caller begins and finishes it. Nil: the table's own.
	Space *space.Check
	// Stop, if not nil, is asked now and then whether to give up.
	Stop func() error
	// Limit is how many findings of one index are reported, 0: 100. What is beyond is
	// counted.
	Limit int
}

// Finding is something that is wrong with a table.
type Finding struct {
	Table   string
	Index   string  // empty if none is concerned
	Page    page.ID // zero if none is concerned
	Key     []byte  // of the entry, if one is concerned
	Problem string
}

func (f Finding) String() string {
	var b bytes.Buffer
	b.WriteString("table " + f.Table)
	if f.Index != "" {
		b.WriteString(", index " + f.Index)
	}
	if f.Page != (page.ID{}) {
		fmt.Fprintf(&b, ", page %v", f.Page)
	}
	if f.Key != nil {
		fmt.Fprintf(&b, ", key %x", f.Key)
	}
	return b.String() + ": " + f.Problem
}

// CheckSummary is what a check has seen.
type CheckSummary struct {
	Rows     int64 // not deleted
	Deleted  int64 // rows with a delete mark
	Values   int64 // off-page values
	Findings int64 // reported or not
	Indexes  []btree.Summary
}

// Check looks at all of a table: the structure of its trees; every row, in all
// versions that a snapshot can need; that each row has its entry in every secondary
// index and each entry its row; that unique indexes are; off-page values; and that
// the pages that these take are the ones that the tablespace has given out.
//
// It reads each tree twice, and keeps a bit for each page of the tablespace. Rows
// and entries are compared by a sum over all of them first; only where it differs
// each one is looked up.
//
// The error is one of reading, or Stop's; damage is a finding. Findings come while
// no latch is held. A check ends early with [ErrClosed] when the engine is closed.
func (t *Table) Check(opt CheckOptions, report func(Finding)) (CheckSummary, error) {
	if err := t.engine.Enter(); err != nil {
		return CheckSummary{}, err
	}
	defer t.engine.Leave()
	if opt.Limit == 0 {
		opt.Limit = 100
	}
	c := &checker{t: t, w: t.engine.NewWorker(), opt: opt, report: report, name: t.Schema.Table.Schema + "." + t.Schema.Name}
	c.count = make([]int, len(t.Schema.Keys)+1)
	c.want, c.have = make([]entrySum, len(t.Schema.Keys)), make([]entrySum, len(t.Schema.Keys))
	err := c.run()
	return c.sum, err
}

type checker struct {
	t      *Table
	w      *Worker
	opt    CheckOptions
	report func(Finding)
	name   string
	sum    CheckSummary
	count  []int // findings by index; the last one: of none
	view   trx.View

	pages *space.Check
	// pending are problems seen under a latch.
	pending []Finding
	values  []types.Value
	refs    []oldRef // of older versions of the rows at hand

	want, have []entrySum // by index: from the rows, from the entries
	broken     bool       // the clustered index cannot be relied upon
}

// oldRef is a reference to an off-page value in an older version of a row.
type oldRef struct {
	ref     []byte
	deleted bool // in a version with a delete mark
}

// entrySum stands for a set of entries: two sums of hashes, and their number.
type entrySum struct{ a, b, n uint64 }

func (s *entrySum) add(key, value []byte) {
	s.a += types.HashBytes(types.HashBytes(1, key), value)
	s.b += types.HashBytes(types.HashBytes(2, key), value)
	s.n++
}

// find reports a problem with an index, or with none of them if position < 0.
func (c *checker) find(position int, key []byte, format string, args ...any) {
	c.finding(c.made(position, key, format, args...), position)
}

func (c *checker) made(position int, key []byte, format string, args ...any) Finding {
	f := Finding{Table: c.name, Problem: fmt.Sprintf(format, args...)}
	if position >= 0 {
		f.Index = c.t.Schema.Keys[position].Name
	}
	if key != nil {
		f.Key = bytes.Clone(key)
	}
	return f
}

func (c *checker) finding(f Finding, position int) {
	if position < 0 {
		position = len(c.count) - 1
	}
	c.count[position]++
	c.sum.Findings++
	if c.count[position] <= c.opt.Limit {
		c.report(f)
	}
}

func (c *checker) spaceFinding(f space.Finding) {
	c.finding(Finding{Table: c.name, Page: f.Page, Problem: f.Problem}, -1)
}

func (c *checker) stop() error { return c.t.engine.goOn(c.opt.Stop) }

// damaged reports an error that says that the data is wrong, and passes others on.
func (c *checker) damaged(position int, key []byte, err error) error {
	if !isDamage(err) {
		return err
	}
	c.find(position, key, "%v", err)
	return nil
}

func isDamage(err error) bool {
	var bad *page.CorruptError
	var value *types.CorruptError
	return errors.As(err, &bad) || errors.As(err, &value) || errors.Is(err, record.ErrCorrupt) ||
		errors.Is(err, lob.ErrGone) || errors.Is(err, undo.ErrBadPointer) || errors.Is(err, space.ErrBeyondEnd) ||
		errors.Is(err, record.ErrKeyTooLong)
}

// isGone reports whether an off-page value was freed, its page perhaps cut off.
func isGone(err error) bool { return errors.Is(err, lob.ErrGone) || errors.Is(err, space.ErrBeyondEnd) }

func (c *checker) run() (err error) {
	own := c.opt.State != CheckOnline && c.opt.Space == nil
	unseen := false // pages of off-page values may be in use although none was seen to
	if c.opt.State != CheckOnline {
		if c.pages = c.opt.Space; own {
			c.pages, err = c.t.space.NewCheck(func(f space.Finding) {
				if !unseen || f.Segment != c.t.Where.LOBSegment {
					c.spaceFinding(f)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	c.w.e.Trx.OpenOldest(&c.view)
	defer c.w.e.Trx.CloseSnapshot(&c.view)
	sound := make([]bool, len(c.t.Schema.Keys))
	for i := range c.t.Schema.Keys {
		if sound[i], err = c.tree(i); err != nil {
			return err
		}
	}
	c.broken = !sound[0]
	complete, err := c.rows()
	if err != nil {
		return err
	}
	c.broken = c.broken || !complete
	for i := 1; i < len(sound); i++ {
		if sound[i] && !c.t.Schema.Keys[i].Building {
			if err := c.entries(i); err != nil {
				return err
			}
		}
	}
	if own {
		unseen = c.opt.State != CheckPurged || c.broken
		c.pages.Finish()
	}
	for i, n := range c.count {
		if n > c.opt.Limit {
			f := c.made(min(i, len(c.count)-2), nil, "%d more findings", n-c.opt.Limit)
			if i == len(c.count)-1 {
				f.Index = ""
			}
			c.report(f)
		}
	}
	return nil
}

// reach tells the tablespace's check that a page is in use.
func (c *checker) reach(seg, no uint32) {
	if c.pages != nil {
		c.pages.Reach(seg, no)
	}
}

// tree checks the structure of an index.
func (c *checker) tree(position int) (sound bool, err error) {
	sound = true
	sum, err := c.t.trees[position].Check(func(f btree.Finding) {
		sound = false
		c.finding(Finding{Table: c.name, Index: c.t.Schema.Keys[position].Name,
			Page: page.ID{Space: c.t.space.No(), No: f.Page}, Problem: f.Problem}, position)
	}, c.reach, c.stop)
	c.sum.Indexes = append(c.sum.Indexes, sum)
	return sound, err
}

// rows checks every row, and adds up the secondary entries that there must be.
// complete is false if a part of the index could not be read.
func (c *checker) rows() (complete bool, err error) {
	var k walk
	k.start(c.w, c.t, 0, nil)
	k.pick = c.versions
	for more := true; more; {
		if more, err = k.next(); err != nil {
			return false, c.damaged(0, nil, err)
		}
		for _, f := range c.pending {
			c.finding(f, 0)
		}
		c.pending = c.pending[:0]
		for i := range k.items {
			if err := c.row(k.key(i), k.value(i), k.items[i].flags); err != nil {
				return false, err
			}
		}
		for _, ref := range c.refs {
			if err := c.offPage(nil, ref.ref, ref.deleted); err != nil {
				return false, err
			}
		}
		c.refs = c.refs[:0]
		if err := c.stop(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// versions looks, under the leaf's latch, at the versions of a row that a snapshot
// can need. It notes off-page values that only older ones have.
func (c *checker) versions(key, value []byte, flags byte) ([]byte, byte, bool, error) {
	w, t := c.w, c.t
	version, mark, first := value, flags, len(c.refs)
	for n := 0; ; n++ {
		r, err := t.Schema.Row(key, version)
		if err == nil && n > 0 {
			err = r.EachExternal(func(_ int, ref []byte) error {
				known := bytes.Contains(value, ref)
				for _, other := range c.refs[first:] {
					known = known || bytes.Equal(other.ref, ref)
				}
				if !known {
					c.refs = append(c.refs, oldRef{bytes.Clone(ref), mark&record.FlagDeleted != 0})
				}
				return nil
			})
		}
		exists := false
		if err == nil {
			if w.e.Trx.Visible(&c.view.Snapshot, r.TrxID()) {
				break
			}
			version, mark, exists, err = w.older(version, n&1)
		}
		if err != nil {
			if !isDamage(err) {
				return nil, 0, false, err
			}
			if n > 0 || len(value) >= record.HeaderSize { // else the row itself says so
				c.pending = append(c.pending, c.made(0, key, "version %d before the newest: %v", n, err))
			}
			break
		}
		if !exists {
			break
		}
	}
	return value, flags, true, nil
}

// row checks the newest version of a row, which is a copy.
func (c *checker) row(key, value []byte, flags byte) error {
	s := c.t.Schema
	deleted := flags&record.FlagDeleted != 0
	switch {
	case flags&^record.FlagDeleted != 0:
		c.find(0, key, "unknown flags %#x", flags)
	case deleted && c.opt.State == CheckPurged:
		c.find(0, key, "deleted row that purge has left")
	}
	if deleted {
		c.sum.Deleted++
	} else {
		c.sum.Rows++
	}
	r, err := s.Row(key, value)
	if err == nil {
		err = c.columns(&r, deleted)
	}
	if err != nil || deleted {
		return c.damaged(0, key, err)
	}
	for _, k := range s.Keys[1:] {
		if k.Building {
			continue
		}
		if err := c.expected(k, r); err != nil {
			if isGone(err) && c.opt.State == CheckOnline && !c.stands(&r) {
				continue // the sums differ, and the row is looked up
			}
			return c.damaged(k.Position, key, err)
		}
		c.want[k.Position].add(c.w.sec, c.w.secVal)
	}
	return nil
}

// expected builds the entry that a row must have, in w.sec and w.secVal.
func (c *checker) expected(k *record.KeySchema, r record.Row) error {
	partLen, _, err := c.w.secondaryKey(c.t, k, r)
	if err == nil {
		err = c.w.entryValue(c.t, k, r, partLen)
	}
	return err
}

// columns checks that every column has a valid value, and that the key is made of
// them. Purge takes the off-page values of a deleted row before the row.
func (c *checker) columns(r *record.Row, deleted bool) error {
	s := c.t.Schema
	c.values = c.values[:0]
	arena := c.w.arena[:0]
	for i := range s.Columns {
		col := &s.Columns[i]
		if col.DroppedIn != 0 {
			c.values = append(c.values, types.Null)
			continue
		}
		v, a, err := r.Value(i, arena)
		arena = a
		if err == record.ErrExternal {
			v, err = c.external(r, i)
			if isGone(err) && (deleted || c.opt.State == CheckOnline && !c.stands(r)) {
				return nil
			}
		}
		if err == nil && !v.IsNull() {
			err = validValue(v, &col.Type)
		}
		if err == nil && v.IsNull() && col.Type.NotNull {
			err = errors.New("NULL in a NOT NULL column")
		}
		if err != nil {
			if err = c.damaged(0, r.Key, fmt.Errorf("%w: column %s: %w", record.ErrCorrupt, col.Name, err)); err != nil {
				return err
			}
			v = types.Null
		}
		c.values = append(c.values, v)
	}
	c.w.arena = arena
	// Off-page values of columns that are dropped are there all the same.
	err := r.EachExternal(func(_ int, ref []byte) error { return c.offPage(r.Key, ref, deleted) })
	if err != nil {
		return err
	}
	for _, p := range s.Keys[0].Parts {
		if c.values[p.Column].IsNull() {
			return nil // reported above
		}
	}
	if c.w.key, err = s.AppendRowKey(c.w.key[:0], c.values); err == nil && !bytes.Equal(c.w.key, r.Key) {
		c.find(0, r.Key, "the row's columns give the key %x", c.w.key)
	}
	return err
}

// external reads an off-page value, and compares it with what the row keeps of it.
func (c *checker) external(r *record.Row, column int) (types.Value, error) {
	v, err := c.w.loadExternal(c.t, *r, column)
	if err != nil {
		return types.Null, err
	}
	f, err := r.Field(column)
	if err == nil && !bytes.HasPrefix(v.Bytes(), f.Bytes[record.LOBRefSize:]) {
		err = errors.New("the row keeps other bytes than the off-page value begins with")
	}
	return v, err
}

// stands reports whether a row still is as it was, and nobody is changing it. Its
// header does not tell: a transaction that has taken back a change may use the
// same undo record again.
func (c *checker) stands(r *record.Row) bool {
	there, _, value, err := c.lookup(0, r.Key)
	return err == nil && there && bytes.Equal(value, r.Val) && c.w.e.Trx.Holder(r.TrxID()) == nil
}

// offPage checks the pages of an off-page value, which may be gone if only a
// deleted version has it.
func (c *checker) offPage(key, field []byte, deleted bool) error {
	ref, err := lob.Decode(field)
	if err != nil {
		return c.damaged(0, key, fmt.Errorf("%w: %w", record.ErrCorrupt, err))
	}
	c.sum.Values++
	if ref.Space != c.t.space.No() {
		c.find(0, key, "off-page value in tablespace %d", ref.Space)
		return nil
	}
	if deleted {
		if info, err := lob.Stat(c.w.e.Pool, ref); isGone(err) || err == nil && !info.Complete {
			return nil
		}
	}
	online := c.opt.State == CheckOnline // the value may be gone by now
	return lob.Check(c.w.e.Pool, ref, func(f space.Finding) {
		if !online {
			c.spaceFinding(f)
		}
	}, c.reach)
}
