package apply

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// This is how work ahead is taken back, and how other work goes on beside that.

const (
	// againTries is how often work that met other work begins anew.
	againTries = 4
	// againWait is for how long it waits for news of the other work's end, which comes by the same stream.
	againWait = time.Second
)

// hasPlace reports whether there is a place for one more work. Work that is taken back needs none, so that a transaction
// that is run again has one. REQUIRES: mu.
func (a *Applier) hasPlace() bool {
	places := a.opt.AheadMax
	for _, h := range a.aheads {
		if !h.over() {
			places--
		}
	}
	return places > 0 && len(a.aheads) < a.opt.AheadMax+min(a.opt.AheadMax, aheadBackMax)
}

// over reports whether the work is being taken back, or will be as soon as its task looks. REQUIRES: Applier.mu.
func (h *ahead) over() bool { return h.ending.Load() || h.b.Status().State == body.Dropped }

// goesBack is over, or reports that a part is taken back. REQUIRES: Applier.mu.
func (h *ahead) goesBack() bool {
	return h.over() || h.status.Frames > 0 && h.b.Status().Epoch != h.epoch
}

// backOn reports whether work other than h on a table is taken back. REQUIRES: mu.
func (a *Applier) backOn(h *ahead, table uint64) bool {
	return slices.ContainsFunc(a.aheads, func(o *ahead) bool {
		return o != h && o.over() && slices.Contains(o.tables, table)
	})
}

// takenBack is how often work was taken back.
func (a *Applier) takenBack() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.backs
}

// again takes back work that does not fit, and waits until other work ahead that may have been in its way is taken back: then
// it begins anew. backs is how often that had happened before the change that did not fit. Error: err if there was nothing in
// the way, or the entry is in the log, which need not wait for as much; that of the rollback.
func (h *ahead) again(err error, backs uint64) error {
	a := h.a
	if h.tries++; h.tries > againTries || h.taken() != nil {
		return err
	}
	h.w.closeTables()
	if err := h.takeBack(); err != nil {
		return err
	}
	h.x.Truncate(0)
	h.marks, h.rows = h.marks[:0], 0
	h.tell(0)
	until := a.opt.Env.Monotonic() + againWait
	a.mu.Lock()
	h.tables = nil
	over := false
	for !over && !h.over() && !a.stopping.Load() && h.job == nil {
		others, goesBack := 0, false
		for _, o := range a.aheads {
			if o != h {
				others++
				goesBack = goesBack || o.goesBack()
			}
		}
		switch {
		case goesBack:
			h.pause()
		case a.backs != backs:
			over, err = true, nil
		case others == 0 || a.opt.Env.Monotonic() >= until:
			over = true
		default:
			h.pause()
		}
	}
	a.mu.Unlock()
	return err
}

// pause waits a little for other work to be taken back. REQUIRES: Applier.mu, which it gives up meanwhile; see awaitAhead.
func (h *ahead) pause() {
	h.behind = true
	h.a.mu.Unlock()
	h.w.parker.ParkFor(awaitEvery)
	h.a.mu.Lock()
	h.behind = false
}

// takeBack rolls the work back, as that of a session: this member may lead by now, and sessions may
// have locked the gaps and may wait for the rows. If the applier stops, it leaves to the next start what that takes back beside
// new work.
func (h *ahead) takeBack() error {
	t := h.probe.trx
	if t == nil {
		return nil
	}
	h.w.table.Use(t)
	h.w.table.Applying = false
	defer func() { h.w.table.Applying = true }()
	if left, err := h.a.back(h.w, t); left || err != nil {
		return err
	}
	h.a.eng.Trx.End(t)
	h.probe.trx = nil
	return nil
}

// back rolls a worker's transaction back. left says that the rest is the next start's: the applier stops.
func (a *Applier) back(w *worker, t *trx.Trx) (left bool, err error) {
	if t.State() != trx.RollingBack {
		t.StartRollback()
	}
	if left, err := w.table.RollbackUnless(0, a.leaves(t)); left || err != nil {
		return left, err
	}
	return false, w.table.Rollback()
}

// leaves is asked whether a rollback ends where it is: the applier stops, and the next start takes the rest back beside new work.
func (a *Applier) leaves(t *trx.Trx) func() bool {
	return func() bool { return a.stopping.Load() && a.eng.Leaves(t) }
}

// goBack takes back the frames that were cut off by the time of an epoch.
func (h *ahead) goBack(epoch uint64) error {
	n := h.x.Len()
	for n > 0 {
		// A frame that was written anew has the old one's number, and its checksum goes
		// through all frames before it.
		f, ok := h.b.Frame(n-1, epoch)
		if ok && f.Header == h.x.Frame(n-1).Header {
			break
		}
		n--
	}
	if h.b.Status().Epoch != epoch {
		return nil // cut off again meanwhile
	}
	if n == h.x.Len() {
		h.wentBack(epoch, 0)
		return nil
	}
	m := h.marks[n]
	h.w.table.Applying = false // as in takeBack
	left, err := h.w.table.RollbackUnless(m.undo, h.a.leaves(h.probe.trx))
	h.w.table.Applying = true
	if left {
		err = errDropped
	}
	if err != nil {
		return err
	}
	h.x.Truncate(n)
	h.marks = h.marks[:n]
	h.rows = m.rows
	h.tell(0)
	h.wentBack(epoch, 1)
	return nil
}

// wentBack notes that the work has gone back as far as the cuts up to an epoch say, and whether it has taken anything back for that.
func (h *ahead) wentBack(epoch uint64, back uint64) {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	h.epoch = epoch
	h.a.backs += back
}
