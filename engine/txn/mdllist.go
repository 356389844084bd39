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
	Session uint64
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

// waits says what kind of metadata lock an owner waits for, in MySQL's words; empty: none.
func (l *metadataLocks) waits(o *metadataOwner) string {
	l.lockAll()
	defer l.unlockAll()
	switch {
	case o.waiting == nil:
		return ""
	case o.waiting.object.name == CommitLock:
		return "Waiting for commit lock"
	case o.waiting.object.name == BackupLock:
		return "Waiting for backup lock"
	case o.waiting.object.name.Table == "":
		return "Waiting for schema metadata lock"
	}
	return "Waiting for table metadata lock"
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
			list = append(list, MetadataLock{t.name, t.mode, true, t.owner.id})
		}
		k.mu.Unlock()
	}
	for i := range l.shards {
		for name, o := range l.shards[i].objects {
			for _, t := range o.granted {
				list = append(list, MetadataLock{name, t.mode, true, t.owner.id})
			}
			for _, t := range o.waiting {
				list = append(list, MetadataLock{name, t.mode, false, t.owner.id})
			}
		}
	}
	return list
}
