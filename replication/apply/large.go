package apply

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
)

// Body is a file of the log whose first entry is a large transaction.
type Body interface {
	io.ReaderAt // of the file, from its beginning
	io.Closer
}

// largeSize is the memory that a large transaction counts for: about that of a usual frame as
// it is stored and unpacked. Its length does not matter, since frames are read one by one.
const largeSize = 1 << 20

// errNoBodies answers a large transaction where Options.OpenBody is nil.
var errNoBodies = errors.New("a large transaction, but the applier was not told where bodies are")

// openLarge finds the transaction of an entry of kind Large.
func (it *item) openLarge() error {
	_, stored, err := entry.Parse(it.Data)
	if err != nil {
		return err
	}
	_, t, err := entry.ParseLarge(&it.env, stored)
	if err != nil {
		return err
	}
	if t.Flags&entry.TokenFlag != 0 {
		it.tokens = append(it.tokens, Token{t.Token, t.Number})
	}
	if t.Number >= it.from {
		it.jobs = []job{{Txn: t, item: it}}
	}
	return nil
}

// applyLarge applies a transaction whose events lie in a file of the log. If the file is
// damaged and is then repaired, it begins anew. Error: ErrStopped in the middle, or what is wrong.
func (w *worker) applyLarge(j *job) (rows uint64, err error) {
	a := w.a
	for {
		rows, err = w.applyBody(j)
		if !errors.Is(err, body.ErrCorrupt) {
			return rows, err
		}
		err = fmt.Errorf("apply: log entry %d, transaction %d: %w", j.item.Index, j.Number, err)
		if a.opt.Damaged == nil {
			return rows, err
		}
		if err = a.opt.Damaged(j.item.Index, err); err != nil {
			return rows, err
		}
		// Each frame was verified, but only the last one tells whether they belong to this body.
		if err = w.table.RollbackTo(0); err != nil {
			return rows, err
		}
		if w.parker.ParkFor(a.opt.RetryEvery); a.stopping.Load() {
			return 0, ErrStopped
		}
	}
}

// applyBody applies a large transaction's frames, one after the other. Errors: body.ErrCorrupt
// if they are not what the entry says, and those of events.
func (w *worker) applyBody(j *job) (rows uint64, err error) {
	b, err := w.a.opt.OpenBody(j.item.Index)
	if err != nil {
		return 0, fmt.Errorf("apply: log entry %d, transaction %d: %w", j.item.Index, j.Number, err)
	}
	z, err := body.NewDecoder()
	if err != nil {
		return 0, errors.Join(err, b.Close())
	}
	defer z.Close()
	rows, err = w.frames(j, b, z)
	return rows, errors.Join(err, b.Close())
}

func (w *worker) frames(j *job, b Body, z *zstd.Decoder) (rows uint64, err error) {
	for r := body.NewReader(b, &j.item.large, z); ; {
		_, events, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		n, err := w.events(j, events)
		rows += n
		if err != nil {
			return rows, err
		}
	}
}
