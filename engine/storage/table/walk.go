package table

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// walkBytes is how much of an index a walk copies at a time, at least, in bytes.
const walkBytes = 256 << 10

// walk goes through all entries of an index in the order of their keys, in
// pieces: a piece is copied under latches and looked at without any. So what is
// done with an entry may take its time, read off-page values or other trees.
type walk struct {
	w        *Worker
	t        *Table
	position int
	// pick, if not nil, runs under the leaf's latch and says which version of an
	// entry to take, if any.
	pick func(key, value []byte, flags byte) (version []byte, flagsOut byte, take bool, err error)

	last  []byte // key of the last entry looked at
	begun bool
	done  bool

	buf   []byte
	items []walkItem
}

type walkItem struct {
	key, value, end int // offsets in buf
	flags           byte
}

// start makes k a walk through the index from the first entry on, or from behind
// the one with the key after.
func (k *walk) start(w *Worker, t *Table, position int, after []byte) {
	k.w, k.t, k.position = w, t, position
	k.last, k.begun, k.done = append(k.last[:0], after...), after != nil, false
	k.buf, k.items = k.buf[:0], k.items[:0]
}

func (k *walk) key(i int) []byte {
	it := &k.items[i]
	return k.buf[it.key:it.value:it.value]
}

func (k *walk) value(i int) []byte {
	it := &k.items[i]
	return k.buf[it.value:it.end:it.end]
}

// next copies the next piece; its entries are 0 to len(k.items). more is false if
// there is nothing behind it.
//
// REQUIRES: w.rm is not in use.
func (k *walk) next() (more bool, err error) {
	k.buf, k.items = k.buf[:0], k.items[:0]
	if k.done {
		return false, nil
	}
	w := k.w
	w.rm.BeginRead()
	defer w.release()
	c := &w.look
	c.Init(k.t.trees[k.position], w.rm)
	if k.begun {
		exact, err := c.Seek(k.last, mtr.S)
		if err == nil && exact {
			err = c.Next()
		}
		if err != nil {
			return false, err
		}
	} else if err := c.First(mtr.S); err != nil {
		return false, err
	}
	for c.Valid() && len(k.buf) < walkBytes {
		for i := c.Pos(); i < c.LeafLen() && len(k.buf) < 2*walkBytes; i++ {
			if err := k.take(i); err != nil {
				return false, err
			}
			c.SetPos(i)
		}
		if c.Pos() < c.LeafLen()-1 {
			return true, nil
		}
		if err := c.NextLeaf(); err != nil {
			return false, err
		}
	}
	k.done = !c.Valid()
	return !k.done, nil
}

// take copies entry i of the cursor's leaf.
func (k *walk) take(i int) error {
	c := &k.w.look
	_, flags, value := c.At(i)
	k.last = c.AppendKey(k.last[:0], i)
	k.begun = true
	if k.pick != nil {
		var take bool
		var err error
		if value, flags, take, err = k.pick(k.last, value, flags); err != nil || !take {
			return err
		}
	}
	it := walkItem{key: len(k.buf), flags: flags}
	k.buf = append(k.buf, k.last...)
	it.value = len(k.buf)
	k.buf = append(k.buf, value...)
	it.end = len(k.buf)
	k.items = append(k.items, it)
	return nil
}

// startRows makes k a walk through the rows that the snapshot sees.
func (k *walk) startRows(w *Worker, t *Table, snap *trx.Snapshot, after []byte) {
	k.start(w, t, 0, after)
	k.pick = func(_, value []byte, flags byte) ([]byte, byte, bool, error) {
		version, deleted, err := w.visible(t, snap, value, flags)
		return version, 0, !deleted, err
	}
}

// row returns entry i of the clustered index as a row.
func (k *walk) row(i int) (record.Row, error) { return k.t.Schema.Row(k.key(i), k.value(i)) }

// canonical returns a column of a row as bytes that mean the same on every node:
// its stored form, whole if it lies off-page, of JSON the canonical encoding. null
// says that it is NULL. The result aliases the row or buf, which is returned for
// reuse.
//
// REQUIRES: no latch is held.
func (w *Worker) canonical(t *Table, r *record.Row, column int, buf []byte) (b []byte, null bool, bufOut []byte, err error) {
	f, err := r.Field(column)
	if err != nil || f.Null {
		return nil, true, buf, err
	}
	typ := &t.Schema.Columns[column].Type
	if f.External {
		ref, err := lob.Decode(f.Bytes)
		if err != nil {
			return nil, false, buf, fmt.Errorf("%w: %w", record.ErrCorrupt, err)
		}
		if buf, err = lob.ReadAll(w.e.Pool, ref, buf[:0]); err != nil {
			return nil, false, buf, err
		}
		if typ.Kind != types.KindJSON {
			return buf, false, buf, nil
		}
		b, err = compactJSON(nil, buf)
		return b, false, buf, err
	}
	v, arena, err := r.Value(column, w.arena[:0])
	w.arena = arena
	if err != nil {
		return nil, false, buf, err
	}
	buf, err = appendCanonical(buf[:0], v, typ)
	return buf, false, buf, err
}
