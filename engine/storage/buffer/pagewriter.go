package buffer

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// PageWriter writes pages in place without a pool, protected by the doublewrite
// file: for recovery, which brings pages up to date before there is a pool.
type PageWriter struct {
	store Store
	dblwr *doublewrite
	batch []byte
	ids   []page.ID
}

// NewPageWriter opens the doublewrite file.
func NewPageWriter(fsys file.FS, store Store) (*PageWriter, error) {
	d, err := openDoublewrite(fsys)
	if err != nil {
		return nil, err
	}
	return &PageWriter{store: store, dblwr: d, batch: make([]byte, 0, batchPages*page.Size)}, nil
}

// Add takes a copy of a page. It is durable after the next Flush.
func (w *PageWriter) Add(id page.ID, p []byte) error {
	n := len(w.batch)
	w.batch = append(w.batch, p...)
	page.Seal(w.batch[n:])
	w.ids = append(w.ids, id)
	if len(w.ids) == batchPages {
		return w.Flush()
	}
	return nil
}

// Flush makes the pages that were added durable.
func (w *PageWriter) Flush() error {
	if len(w.ids) == 0 {
		return nil
	}
	if err := w.dblwr.write(w.batch, len(w.ids)); err != nil {
		return err
	}
	spaces := map[uint32]bool{}
	var order []uint32
	for i, id := range w.ids {
		if err := w.store.WritePage(id, w.batch[i*page.Size:(i+1)*page.Size]); err != nil {
			return err
		}
		if !spaces[id.Space] {
			spaces[id.Space] = true
			order = append(order, id.Space)
		}
	}
	for _, space := range order {
		if err := w.store.SyncSpace(space); err != nil {
			return err
		}
	}
	w.batch, w.ids = w.batch[:0], w.ids[:0]
	return nil
}

// Close flushes and closes the doublewrite file.
func (w *PageWriter) Close() error { return errors.Join(w.Flush(), w.dblwr.close()) }
