package lock

import "time"

// weighEvery is how old the scheduling weights may get while requests come to
// wait. Between two computations a new waiter adds itself to those before it.
const weighEvery = 5 * time.Millisecond

// chainMax bounds how far a new waiter adds its weight.
const chainMax = 32

// enter makes o known as a waiter and counts it into the weights.
func (d *detector) enter(t *Table, o *Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, o)
	o.slot = len(d.waiting)
	if t.fifo.Load() {
		return
	}
	if now := t.env.Monotonic(); now-d.weighed >= weighEvery {
		d.weighed = now
		d.weigh(t)
		return
	}
	b := o.blockedBy.Load()
	for i := 0; i < chainMax && b != nil && b != o; i++ {
		b.scheduling.Add(1)
		b = b.blockedBy.Load()
	}
}

// leave forgets o, if it is known.
func (d *detector) leave(o *Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.slot == 0 {
		return
	}
	last := len(d.waiting) - 1
	moved := d.waiting[last]
	d.waiting[o.slot-1] = moved
	moved.slot = o.slot
	d.waiting[last] = nil
	d.waiting = d.waiting[:last]
	o.slot = 0
}

// weigh computes every waiter's weight: one, or the boost if it is overdue, plus
// the weights of those that it blocks. The graph is sparse: each waiter counts
// for one of its blockers only, as a snapshot that others may change meanwhile.
// Members of a cycle get what comes into the cycle, and each its own.
func (d *detector) weigh(t *Table) {
	n := len(d.waiting)
	d.blockedBy = resize(d.blockedBy, n)
	d.incoming = resize(d.incoming, n)
	d.weights = resize(d.weights, n)
	clear(d.incoming)
	old := boost / uint64(n)
	for i, o := range d.waiting {
		d.weights[i] = 1
		if t.overdue(o) {
			d.weights[i] = max(old, uint64(n))
		}
		d.blockedBy[i] = -1
		if b := o.blockedBy.Load(); b != nil && b.slot > 0 {
			d.blockedBy[i] = int32(b.slot - 1)
			d.incoming[b.slot-1]++
		}
	}
	for i := range d.waiting {
		// Follow the chain from each waiter that blocks no (other) one left.
		for j := int32(i); j >= 0 && d.incoming[j] == 0; {
			d.incoming[j] = -1
			b := d.blockedBy[j]
			if b >= 0 {
				d.weights[b] += d.weights[j]
				d.incoming[b]--
			}
			j = b
		}
	}
	for i, o := range d.waiting {
		o.scheduling.Store(d.weights[i])
	}
}

// resize returns s with length n, its contents undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	return s[:n]
}
