package txn

import (
	"slices"

	"github.com/triremedb/trireme/engine/storage/lock"
)

// breakCycle ends waits as long as that of o closes a cycle: of each the wait that yields, or else that of o.
func (l *metadataLocks) breakCycle(o *metadataOwner) {
	l.lockAll()
	defer l.unlockAll()
	for o.waiting != nil {
		w := &cycleWalk{locks: l, goal: o, seen: map[*metadataOwner]bool{}}
		if !w.from(o, true) {
			return
		}
		victim := o.waiting
		for _, t := range w.path {
			if t.yieldsBefore(victim) {
				victim = t
			}
		}
		victim.shard.giveUp(victim, lock.ErrDeadlock)
	}
}

// worth is how much is lost if a wait in a cycle ends, as MySQL has it: nothing of who begins again, less of who only uses tables
// than of who wants a named lock, a commit, or a definition, or tables for himself.
func (t *ticket) worth() int {
	switch _, named := t.name.Named(); {
	case t.owner.again:
		return 0
	case named:
		return 2
	case t.name == BackupLock:
		return 1
	case t.mode >= NoWrite:
		return 4
	case t.name == CommitLock:
		return 3
	}
	return 1
}

// yieldsBefore reports whether a wait in a cycle is ended rather than another one.
func (t *ticket) yieldsBefore(o *ticket) bool {
	if a, b := t.worth(), o.worth(); a != b || a > 0 {
		return a < b
	}
	return t.mode > o.mode // who locks tables, rather than commits
}

// cycleWalk looks for a way from the goal back to it along who waits for whom. An owner that others wait for waits for what any
// owner of its side waits for: what LOCK TABLES holds goes when its session goes on.
type cycleWalk struct {
	locks *metadataLocks
	goal  *metadataOwner
	seen  map[*metadataOwner]bool
	path  []*ticket // tickets waited for on the way
}

// from walks from who waits. With queue false those before it in its queue have been walked from already.
func (w *cycleWalk) from(o *metadataOwner, queue bool) bool {
	t := o.waiting
	if t == nil || w.seen[o] {
		return false
	}
	w.seen[o] = true
	w.path = append(w.path, t)
	for _, g := range t.object.granted {
		if w.inWay(t, g) {
			return true
		}
	}
	// Whoever is before a ticket in the queue is in its way, since the order is kept. The walk goes along the
	// queue, and does not begin anew with each of them: a queue may be long.
	for _, q := range t.object.waiting {
		if q == t || !queue {
			break
		}
		if q.owner == w.goal || w.from(q.owner, false) {
			return true
		}
	}
	w.path = w.path[:len(w.path)-1]
	return false
}

// inWay follows one edge to who has what a ticket waits for.
func (w *cycleWalk) inWay(t, g *ticket) bool {
	if !g.inWayOf(t) {
		return false
	}
	for _, o := range w.locks.besides(g.owner) {
		if o.with(w.goal) || w.from(o, true) {
			return true
		}
	}
	return false
}

// waitsFor reports whether a side waits, in the end, for what the side of an owner has.
func (l *metadataLocks) waitsFor(side uint64, o *metadataOwner) bool {
	l.lockAll()
	defer l.unlockAll()
	l.sidesMu.Lock()
	waiting := slices.Clone(l.sides[side])
	l.sidesMu.Unlock()
	w := &cycleWalk{locks: l, goal: o, seen: map[*metadataOwner]bool{}}
	return slices.ContainsFunc(waiting, func(p *metadataOwner) bool { return w.from(p, true) })
}
