package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// entries checks a secondary index against the rows.
func (c *checker) entries(position int) error {
	c.have[position] = entrySum{}
	if err := c.scanEntries(position, false); err != nil || c.broken {
		return err
	}
	if c.have[position] == c.want[position] {
		return nil
	}
	before := c.count[position]
	if err := c.scanEntries(position, true); err != nil {
		return err
	}
	if err := c.scanRows(position); err != nil {
		return err
	}
	if c.opt.State != CheckOnline && c.count[position] == before {
		c.find(position, nil, "%d entries and %d rows that should have one do not fit together", c.have[position].n, c.want[position].n)
	}
	return nil
}

// scanEntries goes through the entries. The first time, it adds up those that count
// and looks for duplicates; when that has shown a difference, single looks up the
// row of each.
func (c *checker) scanEntries(position int, single bool) error {
	x := entryScan{c: c, key: c.t.Schema.Keys[position]}
	for i := range x.key.Parts {
		p := &x.key.Parts[i]
		var null []byte
		if !p.Type.NotNull {
			null = types.AppendKey(nil, types.Null, p.Type, p.Desc, p.Prefix)
		}
		x.nulls = append(x.nulls, null)
	}
	var k walk
	k.start(c.w, c.t, position, nil)
	for more := true; more; {
		var err error
		if more, err = k.next(); err != nil {
			return c.damaged(position, nil, err)
		}
		for i := range k.items {
			if single {
				err = x.single(k.key(i), k.value(i), k.items[i].flags)
			} else {
				err = x.add(k.key(i), k.value(i), k.items[i].flags)
			}
			if err != nil {
				return err
			}
		}
		if err := c.stop(); err != nil {
			return err
		}
	}
	return nil
}

type entryScan struct {
	c     *checker
	key   *record.KeySchema
	nulls [][]byte // key form of NULL by part, nil: never NULL
	last  []byte   // unique index: the entry before that counts
	part  int      // length of its part; 0: none
}

// split checks the outline of an entry and returns the length of its first part,
// and whether it counts for uniqueness.
func (x *entryScan) split(key, value []byte) (part int, counts bool, err error) {
	counts = x.key.Unique
	for i := range x.key.Parts {
		p := &x.key.Parts[i]
		if null := x.nulls[i]; null != nil && bytes.HasPrefix(key[part:], null) {
			counts = false
		}
		n, err := types.SkipKey(key[part:], p.Type, p.Desc, p.Prefix)
		if err != nil {
			return 0, false, err
		}
		part += n
	}
	row, err := record.ClusteredKey(key, value)
	if err == nil && len(key)-len(row) != part {
		err = record.ErrCorrupt
	}
	return part, counts, err
}

func (x *entryScan) add(key, value []byte, flags byte) error {
	c, position := x.c, x.key.Position
	if flags&^record.FlagDeleted != 0 {
		c.find(position, key, "unknown flags %#x", flags)
	}
	part, counts, err := x.split(key, value)
	if err != nil {
		c.find(position, key, "malformed entry: %v", err)
		return nil
	}
	if flags&record.FlagDeleted != 0 {
		if c.opt.State == CheckPurged {
			c.find(position, key, "deleted entry that purge has left")
		}
		return nil
	}
	c.have[position].add(key, value)
	if !counts {
		return nil
	}
	if x.part > 0 && bytes.Equal(x.last[:x.part], key[:part]) && !c.broken {
		if err := x.duplicate(key, part); err != nil {
			return err
		}
	}
	x.last, x.part = append(x.last[:0], key...), part
	return nil
}

// duplicate looks at two entries with the same part again: whether both rows have
// it at the same time.
func (x *entryScan) duplicate(key []byte, part int) error {
	for {
		a, err := x.c.newest(x.key, x.last[x.part:])
		if err != nil || !a.settled || !bytes.Equal(a.entry, x.last) {
			return err
		}
		b, err := x.c.newest(x.key, key[part:])
		if err != nil || !b.settled || !bytes.Equal(b.entry, key) {
			return err
		}
		again, err := x.c.newest(x.key, x.last[x.part:])
		if err != nil {
			return err
		}
		if again.same(&a) {
			x.c.find(x.key.Position, key, "the row with key %x has the same unique key", a.row)
			return nil
		}
	}
}

// single checks that the row of an entry has it.
func (x *entryScan) single(key, value []byte, flags byte) error {
	c := x.c
	part, _, err := x.split(key, value)
	if err != nil || flags&record.FlagDeleted != 0 {
		return nil
	}
	for {
		r, err := c.newest(x.key, key[part:])
		if err != nil {
			return c.damaged(x.key.Position, key, err)
		}
		if !r.settled || bytes.Equal(r.entry, key) {
			return nil // changing, or the row's to check
		}
		there, flags, _, err := c.lookup(x.key.Position, key)
		if err != nil || !there || flags&record.FlagDeleted != 0 {
			return err
		}
		again, err := c.newest(x.key, key[part:])
		if err != nil {
			return err
		}
		if !again.same(&r) {
			continue
		}
		switch {
		case !r.exists:
			c.find(x.key.Position, key, "entry without a row")
		case r.entry == nil:
			c.find(x.key.Position, key, "entry of a deleted row is not deleted")
		default:
			c.find(x.key.Position, key, "the row has the key %x", r.entry)
		}
		return nil
	}
}

// scanRows looks up the entry of each row.
func (c *checker) scanRows(position int) error {
	var k walk
	k.start(c.w, c.t, 0, nil)
	key := c.t.Schema.Keys[position]
	for more := true; more; {
		var err error
		if more, err = k.next(); err != nil {
			return c.damaged(0, nil, err)
		}
		for i := range k.items {
			if k.items[i].flags&record.FlagDeleted != 0 {
				continue
			}
			if err := c.hasEntry(key, k.key(i)); err != nil {
				return err
			}
		}
		if err := c.stop(); err != nil {
			return err
		}
	}
	return nil
}

// hasEntry checks that a row has its entry in an index.
func (c *checker) hasEntry(k *record.KeySchema, row []byte) error {
	for {
		r, err := c.newest(k, row)
		if err != nil || !r.settled || r.entry == nil {
			return c.damaged(k.Position, row, err)
		}
		there, flags, value, err := c.lookup(k.Position, r.entry)
		if err != nil {
			return c.damaged(k.Position, r.entry, err)
		}
		if there && flags&record.FlagDeleted == 0 && bytes.Equal(value, r.value) {
			return nil
		}
		again, err := c.newest(k, row)
		if err != nil {
			return err
		}
		if !again.same(&r) {
			continue
		}
		switch {
		case !there:
			c.find(k.Position, r.entry, "a row has no entry")
		case flags&record.FlagDeleted != 0:
			c.find(k.Position, r.entry, "the entry of a row is deleted")
		default:
			c.find(k.Position, r.entry, "the entry keeps %x; the row gives %x", value, r.value)
		}
		return nil
	}
}

// newestRow is the newest version of a row and the entry that it should have.
type newestRow struct {
	row     []byte // clustered key
	exists  bool
	settled bool // no running transaction is changing it
	version []byte
	flags   byte
	entry   []byte // nil: none
	value   []byte // of the entry
}

func (r *newestRow) same(o *newestRow) bool {
	return r.exists == o.exists && r.settled == o.settled && r.flags == o.flags && bytes.Equal(r.version, o.version)
}

// newest reads a row and builds the entry that it should have in the index.
func (c *checker) newest(k *record.KeySchema, row []byte) (r newestRow, err error) {
	there, flags, value, err := c.lookup(0, row)
	r.row, r.exists, r.flags, r.version = row, there, flags, value
	if err != nil || !there {
		r.settled = true
		return r, err
	}
	rec, err := c.t.Schema.Row(row, value)
	if err != nil {
		return r, err
	}
	if r.settled = c.opt.State != CheckOnline || c.w.e.Trx.Holder(rec.TrxID()) == nil; !r.settled || flags&record.FlagDeleted != 0 {
		return r, nil
	}
	if err := c.expected(k, rec); err != nil {
		if isGone(err) && c.opt.State == CheckOnline && !c.stands(&rec) {
			r.settled = false
			return r, nil
		}
		return r, err
	}
	r.entry, r.value = bytes.Clone(c.w.sec), bytes.Clone(c.w.secVal)
	return r, nil
}

// lookup copies an entry of an index.
func (c *checker) lookup(position int, key []byte) (there bool, flags byte, value []byte, err error) {
	w := c.w
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(c.t.trees[position], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		return false, 0, nil, err
	}
	return true, w.look.Flags(), bytes.Clone(w.look.Value()), nil
}
