package table

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// A damaged page of one table must not keep the others from working. Whoever uses
// the page gets the error. But rollback and purge, which cannot be called off, pass
// over an entry that a search for it cannot reach: nobody else can reach it either,
// so that nothing wrong is ever read. Without that a transaction could not end, and
// the engine could not start, until the table is restored.

// damagedPage reports whether err says that a page of a table is damaged, and not
// one of the system or an undo tablespace.
func damagedPage(err error) (*page.CorruptError, bool) {
	var c *page.CorruptError
	if !errors.As(err, &c) || c.Newer || c.ID.Space == space.System || c.ID.Space >= space.FirstUndo {
		return nil, false
	}
	return c, true
}

// Lost reports whether err means that a table cannot be opened at all, since the
// first page of its tablespace is damaged.
func Lost(err error) bool {
	c, ok := damagedPage(err)
	return ok && c.ID.No == 0
}

// passOver returns nil in place of an error that a damaged page was met, if the
// search for the key in the index at the position meets one; else err.
//
// REQUIRES: no mini-transaction of the worker is open.
func (w *Worker) passOver(t *Table, position int, key []byte, err error) error {
	if _, ok := damagedPage(err); !ok {
		return err
	}
	w.rm.BeginRead()
	w.look.Init(t.trees[position], w.rm)
	_, serr := w.look.SeekLeaf(key, mtr.S)
	w.release()
	if c, ok := damagedPage(serr); ok && c.ID.Space == t.space.No() {
		return nil
	}
	return err
}
