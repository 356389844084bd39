package trx

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// inDoubt is the transactions that have released their locks and are not finished:
// a ring in the order of the group's log.
type inDoubt struct {
	mu    sync.Mutex
	first *Trx // oldest
	last  *Trx
	// The one that is being taken back, no longer in the ring. It is changed under mu.
	undoing atomic.Pointer[Trx]
}

// ReleaseLocks releases the locks of a transaction whose commit is on its way and
// whose entry the group has taken into its log at the position, before the group
// agrees (early lock release). The transaction is in doubt from now on: no snapshot
// sees it, but it is in nobody's way. Who comes to lock what it wrote depends on the
// entry: see [Trx.DependsOn].
//
// It ends with [System.CommitGroup], or, if the entry has failed, with a rollback.
//
// REQUIRES: the transaction is committing and has not changed the catalogue; calls
// come in the order of the log.
func (s *System) ReleaseLocks(t *Trx, at Position) {
	t.mustBe(Committing)
	t.position = at
	t.wrote = t.locks.AppendChanged(t.wrote[:0])
	d := &s.doubt
	d.mu.Lock()
	if l := d.last; l != nil && l.position.Index > at.Index || at.Index <= s.finished.Load() {
		d.mu.Unlock()
		panic(fmt.Sprintf("trx: locks released at %+v out of the log's order", at))
	}
	t.older, t.newer = d.last, nil
	if d.last == nil {
		d.first = t
	} else {
		d.last.newer = t
	}
	d.last = t
	t.move(InDoubt, Committing)
	d.mu.Unlock()
	s.locks.ReleaseAll(&t.locks, at.Index)
}

// finish takes a committed transaction out.
func (d *inDoubt) finish(t *Trx) {
	d.mu.Lock()
	d.remove(t)
	d.mu.Unlock()
}

// remove takes t out of the ring. REQUIRES: mu; t is in it.
func (d *inDoubt) remove(t *Trx) {
	if t.older == nil {
		d.first = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		d.last = t.older
	} else {
		t.newer.older = t.older
	}
	t.older, t.newer = nil, nil
}

// fail takes out a transaction whose entry has failed: the newest, and nothing else
// may be on its way back.
func (d *inDoubt) fail(t *Trx) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != t || d.undoing.Load() != nil {
		panic(fmt.Sprintf("trx: transaction %d, in doubt at %+v, is rolled back before newer ones", t.ID(), t.position))
	}
	d.remove(t)
	d.undoing.Store(t)
}

// failed says that a rollback is over.
func (d *inDoubt) failed(t *Trx) {
	if d.undoing.Load() != t { // nobody else makes it t
		return
	}
	d.mu.Lock()
	d.undoing.Store(nil)
	d.mu.Unlock()
}

// InDoubt calls fn for the transactions in doubt, newest first: the order in which
// they are rolled back if they fail. fn must not park and may use only what [Trx]
// says is safe for others. It stops when fn returns false.
func (s *System) InDoubt(fn func(*Trx) bool) {
	s.doubt.mu.Lock()
	defer s.doubt.mu.Unlock()
	for t := s.doubt.last; t != nil && fn(t); t = t.older {
	}
}

// Settled reports whether nobody has to wait for the transaction any more: it has
// ended, or it is in doubt, and then entry is the index of its place in the log.
func (s *System) Settled(id uint64) (settled bool, entry uint64) {
	if id < s.visibleBelow.Load() {
		return true, 0
	}
	t := s.ids.owner(id)
	if t == nil {
		return true, 0
	}
	return t.locks.Released(id)
}

// Position is where the transaction's entry is in the group's log. It is known from
// [System.ReleaseLocks] on.
func (t *Trx) Position() Position { return t.position }

// DependsOn is the index of the newest entry in the group's log, not finished yet,
// by which stands or falls what the transaction has found out: it has locked a row
// version that a transaction in doubt wrote there. 0 means none. An answer that may
// tell of it, an error as well, waits until this is 0 or less than it was; a commit
// need not, since it comes after that entry in the log. It stays when a statement is
// rolled back.
func (t *Trx) DependsOn() uint64 {
	d := t.depends.Load()
	if d == 0 || d <= t.sys.finished.Load() {
		return 0
	}
	return d
}

// AddDependence makes the transaction depend on an entry; see DependsOn.
func (t *Trx) AddDependence(index uint64) {
	for {
		d := t.depends.Load()
		if index <= d || t.depends.CompareAndSwap(d, index) {
			return
		}
	}
}

// DependOnTable makes the transaction, which has locked the whole table, depend on
// all that transactions in doubt did there.
func (t *Trx) DependOnTable(table uint64) {
	t.sys.InDoubt(func(d *Trx) bool {
		for _, id := range d.wrote {
			if id == table {
				t.AddDependence(d.position.Index)
				return false
			}
		}
		return true
	})
}
