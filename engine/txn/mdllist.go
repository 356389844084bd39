package txn

import (
	"cmp"
	"slices"
)

// MetadataLock is a metadata lock as performance_schema.metadata_locks shows it.
type MetadataLock struct {
	Name    Name
	Mode    MetadataMode
	Granted bool
	Session uint64 // the number of the client's; 0: one of the node's own
}

// MetadataLocks lists the metadata locks, by name, granted ones first, at most max of
// them.
func (m *Manager) MetadataLocks(max int) []MetadataLock {
	list := m.locks.list()
	sortLocks(list)
	return list[:min(max, len(list))]
}

// sortLocks puts locks in the order of MetadataLocks. Those of one name that wait are in
// the order of their queue, and stay so.
func sortLocks(list []MetadataLock) {
	slices.SortStableFunc(list, func(a, b MetadataLock) int {
		switch c := a.Name.compare(b.Name); {
		case c != 0:
			return c
		case a.Granted && b.Granted:
			return cmp.Compare(a.Session, b.Session)
		case a.Granted:
			return -1
		case b.Granted:
			return 1
		}
		return 0
	})
}

// waits says what kind of metadata lock the owners of a session wait for, in MySQL's words; empty: none.
func (l *metadataLocks) waits(owners ...*metadataOwner) string {
	l.lockAll()
	defer l.unlockAll()
	for _, o := range owners {
		if t := o.waiting; t != nil {
			return t.name.waits()
		}
		if o.unwatched.Load() {
			return waitsForTable
		}
	}
	return ""
}

const waitsForTable = "Waiting for table metadata lock"

// waits says that somebody waits for the name.
func (n Name) waits() string {
	switch _, named := n.Named(); {
	case named:
		return "User lock"
	case n == CommitLock:
		return "Waiting for commit lock"
	case n == BackupLock:
		return "Waiting for backup lock"
	case n.Table == "":
		return "Waiting for schema metadata lock"
	}
	return waitsForTable
}

// MetadataWait is a session that waits for another's metadata lock, or, if nobody has what is in its way, behind another one.
type MetadataWait struct {
	Name              Name
	Waiting, Blocking uint64 // numbers of the clients' sessions; 0: one of the node's own
}

// MetadataWaits lists who waits for whom, by name, at most max of them.
func (m *Manager) MetadataWaits(max int) []MetadataWait {
	var list []MetadataWait
	l := m.locks
	l.lockAll()
	defer l.unlockAll()
	for i := range l.shards {
		for name, o := range l.shards[i].objects {
			for at, t := range o.waiting {
				before := len(list)
				for _, g := range o.granted {
					if len(list) < max && g.inWayOf(t) {
						list = append(list, MetadataWait{name, t.owner.client, g.owner.client})
					}
				}
				first := slices.IndexFunc(o.waiting[:at], func(q *ticket) bool { return q.inWayOf(t) })
				if len(list) == before && len(list) < max && first >= 0 {
					list = append(list, MetadataWait{name, t.owner.client, o.waiting[first].owner.client})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b MetadataWait) int { return a.Name.compare(b.Name) })
	return list
}

// list returns all locks, those of one name together and in order.
func (l *metadataLocks) list() []MetadataLock {
	var list []MetadataLock
	l.lockAll() // so that none moves from a slot to its object meanwhile
	defer l.unlockAll()
	for i := range l.slots {
		k := &l.slots[i]
		k.mu.Lock()
		for t := k.first; t != nil; t = t.next {
			list = append(list, MetadataLock{t.name, t.mode, true, t.owner.client})
		}
		k.mu.Unlock()
	}
	for i := range l.shards {
		for name, o := range l.shards[i].objects {
			for _, t := range o.granted {
				list = append(list, MetadataLock{name, t.mode, true, t.owner.client})
			}
			for _, t := range o.waiting {
				list = append(list, MetadataLock{name, t.mode, false, t.owner.client})
			}
		}
	}
	return list
}
