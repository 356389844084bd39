package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// entryRun is entries of an index that is being built, in their order, which are compared
// with no others and belong to their rows: those that are near each other come into their
// leaf together.
type entryRun struct {
	buf     []byte
	entries []runEntry
}

type runEntry struct{ key, value, end int } // offsets in buf

// A run ends at this many entries or bytes, so that nobody waits long for a leaf.
const (
	runEntries = 128
	runBytes   = 8 << 10
)

func (r *entryRun) isFull() bool { return len(r.entries) == runEntries || len(r.buf) >= runBytes }

func (r *entryRun) add(key, value []byte) {
	e := runEntry{key: len(r.buf), value: len(r.buf) + len(key)}
	r.buf = append(append(r.buf, key...), value...)
	e.end = len(r.buf)
	r.entries = append(r.entries, e)
}

func (r *entryRun) at(i int) (key, value []byte) {
	e := &r.entries[i]
	return r.buf[e.key:e.value:e.value], r.buf[e.value:e.end:e.end]
}

// fillRun puts the entries that are not there into the index, and empties the run.
func (w *Worker) fillRun(t *Table, k *record.KeySchema, r *entryRun) error {
	for from := 0; from < len(r.entries); w.e.Env.Yield() {
		n, err := w.fillLeaf(t, k, r, from)
		if err == nil && n == 0 {
			key, value := r.at(from)
			err = w.makeRoom(t.trees[k.Position], key, len(value))
		}
		if err != nil {
			return err
		}
		from += n
	}
	r.buf, r.entries = r.buf[:0], r.entries[:0]
	return nil
}

// fillLeaf puts those into the index that belong to the leaf of the first, as far as there is
// room, and returns how many are done. No lock protects a gap in an index that is being built: nobody reads it.
func (w *Worker) fillLeaf(t *Table, k *record.KeySchema, r *entryRun, from int) (n int, err error) {
	id, err := w.trx.EnsureID()
	if err != nil {
		return 0, err
	}
	if err := w.begin(); err != nil {
		return 0, err
	}
	defer w.commit()
	w.cur.Init(t.trees[k.Position], w.m)
	key, value := r.at(from)
	exact, err := w.cur.SeekLeaf(key, mtr.X)
	if err != nil {
		return 0, err
	}
	_, hi := w.cur.Bounds()
	put := false
	for {
		if !exact {
			if !w.cur.Fits(len(key), len(value)) {
				break
			}
			w.cur.Insert(key, 0, value)
			put = true
		}
		if n++; from+n == len(r.entries) {
			break
		}
		key, value = r.at(from + n)
		if hi != nil && bytes.Compare(key, hi) >= 0 {
			break
		}
		var pos int
		pos, exact = w.cur.Search(key)
		w.cur.SetPos(pos)
	}
	if put {
		w.cur.RaiseMaxTrx(id)
	}
	return n, nil
}
