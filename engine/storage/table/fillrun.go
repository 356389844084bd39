package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// entryRun is entries of an index that is being built, in their order, which belong to their
// rows: those that are near each other come into their leaf together.
type entryRun struct {
	buf     []byte
	entries []runEntry
}

type runEntry struct {
	key, value, end int // offsets in buf
	compared        bool
}

// A run ends at this many entries or bytes, so that nobody waits long for a leaf.
const (
	runEntries = 128
	runBytes   = 8 << 10
)

func (r *entryRun) isFull() bool { return len(r.entries) == runEntries || len(r.buf) >= runBytes }

// add adds an entry; compared says that no other one may have its first part.
func (r *entryRun) add(key, value []byte, compared bool) {
	e := runEntry{key: len(r.buf), value: len(r.buf) + len(key), compared: compared}
	r.buf = append(append(r.buf, key...), value...)
	e.end = len(r.buf)
	r.entries = append(r.entries, e)
}

func (r *entryRun) at(i int) (key, value []byte) {
	e := &r.entries[i]
	return r.buf[e.key:e.value:e.value], r.buf[e.value:e.end:e.end]
}

// fillRun puts the entries that are not there into the index, and empties the run.
func (w *Worker) fillRun(t *Table, k *record.KeySchema, r *entryRun, stop func() error) error {
	for from := 0; from < len(r.entries); w.e.Env.Yield() {
		n, ended, err := w.fillLeaf(t, k, r, from)
		if from += n; err == nil && ended != leafEnd {
			key, value := r.at(from)
			if ended == leafFull {
				err = w.makeRoom(t.trees[k.Position], key, len(value))
			} else {
				err = w.fillEntry(t, k, key, value, 0, stop)
				from++
			}
		}
		if err != nil {
			return err
		}
	}
	r.buf, r.entries = r.buf[:0], r.entries[:0]
	return nil
}

// Why fillLeaf has left an entry: it belongs to another leaf or there is none any more, there is no room,
// or it has to be looked at alone.
const (
	leafEnd = iota
	leafFull
	leafMeets
)

// fillLeaf puts those into the index that belong to the leaf of the first, and returns how many
// are done and why not more. No lock protects a gap in an index that is being built: nobody reads it.
func (w *Worker) fillLeaf(t *Table, k *record.KeySchema, r *entryRun, from int) (n, ended int, err error) {
	id, err := w.trx.EnsureID()
	if err != nil {
		return 0, 0, err
	}
	if err := w.begin(); err != nil {
		return 0, 0, err
	}
	defer w.commit()
	w.cur.Init(t.trees[k.Position], w.m)
	key, value := r.at(from)
	exact, err := w.cur.SeekLeaf(key, mtr.X)
	if err != nil {
		return 0, 0, err
	}
	_, hi := w.cur.Bounds()
	put := false
	for {
		// One that is there may have come back unasked. An error meets fillEntry again.
		if r.entries[from+n].compared {
			if free, err := w.isFree(k, key, value, exact); err != nil || !free {
				ended = leafMeets
				break
			}
		}
		if !exact {
			if !w.cur.Fits(len(key), len(value)) {
				ended = leafFull
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
	return n, ended, nil
}

// isFree reports whether no other entry with the first part of key, at which or at whose place the
// cursor stands, is in the index, and nobody is looking for one: as far as the leaf can tell.
func (w *Worker) isFree(k *record.KeySchema, key, value []byte, exact bool) (bool, error) {
	row, err := record.ClusteredKey(key, value)
	if err != nil {
		return false, err
	}
	part := key[:len(key)-len(row)]
	lo, hi := w.cur.Bounds()
	if !withinBounds(part, lo, hi) {
		return false, nil
	}
	next := w.cur.Pos()
	if exact {
		next++
	}
	for _, pos := range [...]int{w.cur.Pos() - 1, next} {
		if pos < 0 || pos >= w.cur.LeafLen() {
			continue
		}
		if w.sec2 = w.cur.AppendKey(w.sec2[:0], pos); bytes.HasPrefix(w.sec2, part) {
			return false, nil
		}
	}
	res, err := w.e.Locks.AcquireHinted(w.trx.Locks(), lock.Request{Index: k.ID, Key: part, Mode: lock.InsertIntention, Policy: lock.SkipLocked}, &lock.Hint{NoEntry: true})
	return res != lock.Skip, err
}

// withinBounds reports whether all entries with a first part belong to the leaf with these bounds.
func withinBounds(part, lo, hi []byte) bool {
	return bytes.Compare(lo, part) <= 0 && (hi == nil || bytes.Compare(hi, part) > 0 && !bytes.HasPrefix(hi, part))
}
