package table

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// StateHash stands for what a table says: equal for tables with the same rows, on
// whatever node and after whatever history.
type StateHash struct {
	Sum  [sha256.Size]byte
	Rows int64
}

func (h StateHash) String() string { return fmt.Sprintf("%x (%d rows)", h.Sum[:8], h.Rows) }

// Hash computes the state hash of a table as the snapshot sees it: SHA-256 over the
// rows in the order of their clustered keys, and then their number, 8 bytes. A row
// is its columns in order of declaration, dropped ones left out, hidden ones not.
// A column is
//
//	1 byte   0: NULL, nothing follows; else 1 + types.Class
//	8 bytes  length, little-endian
//	         stored form, of JSON the canonical encoding
//
// The definition of the table is not hashed: it is rows of the catalogue. stop, if
// not nil, is asked now and then whether to give up. Error when the engine is closed:
// [ErrClosed].
func (w *Worker) Hash(t *Table, snap *trx.Snapshot, stop func() error) (StateHash, error) {
	if err := w.e.Enter(); err != nil {
		return StateHash{}, err
	}
	defer w.e.Leave()
	var k walk
	k.startRows(w, t, snap, nil)
	h := rowHasher{w: w, t: t, sum: sha256.New()}
	for more := true; more; {
		var err error
		if more, err = k.next(); err != nil {
			return StateHash{}, err
		}
		for i := range k.items {
			r, err := k.row(i)
			if err != nil {
				return StateHash{}, err
			}
			if err := h.add(&r); err != nil {
				return StateHash{}, err
			}
		}
		if err = w.e.goOn(stop); err != nil {
			return StateHash{}, err
		}
	}
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(h.rows))
	h.sum.Write(n[:])
	return StateHash{[sha256.Size]byte(h.sum.Sum(nil)), h.rows}, nil
}

type rowHasher struct {
	w    *Worker
	t    *Table
	sum  hash.Hash
	rows int64
	buf  []byte // of a row
	col  []byte
}

// inlineHash is up to what length a column is copied before it is hashed, in bytes.
const inlineHash = 1024

func (h *rowHasher) add(r *record.Row) error {
	h.buf = h.buf[:0]
	for i := range h.t.Schema.Columns {
		c := &h.t.Schema.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		var b []byte
		var null bool
		var err error
		if b, null, h.col, err = h.w.canonical(h.t, r, i, h.col); err != nil {
			return err
		}
		if null {
			h.buf = append(h.buf, 0)
			continue
		}
		h.buf = append(h.buf, 1+byte(c.Type.Class()))
		h.buf = binary.LittleEndian.AppendUint64(h.buf, uint64(len(b)))
		if len(b) <= inlineHash {
			h.buf = append(h.buf, b...)
			continue
		}
		h.sum.Write(h.buf)
		h.sum.Write(b)
		h.buf = h.buf[:0]
	}
	h.sum.Write(h.buf)
	h.rows++
	return nil
}
