package txn

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/types"
)

// Metadata locks keep the definition of what a transaction uses as it is until the
// transaction ends. A table is locked in Shared by who uses it, in SharedWrite by who changes its rows,
// in NoWrite by who lets nobody else change them (LOCK TABLES READ), and in Exclusive by who
// changes its definition, or lets nobody else use it (LOCK TABLES WRITE); a schema, which is a name without a table, in Shared by who
// makes, renames or drops tables in it and in Exclusive by who changes the schema.
//
// Requests are granted in the order of their arrival, so that users who come and go
// do not keep a schema change waiting; an owner that asks for more than it has comes
// before those who wait for that, and who only uses a table does not wait for who waits for NoWrite. Owners of one side, those of
// one session (what LOCK TABLES and GET_LOCK hold, and its transaction), are in each other's way as little as one owner's locks. Cycles of metadata locks alone are found when a wait begins. One that goes
// through a row lock ends by that lock's timeout, or by nothing if there is none.
//
// Nearly all requests are for Shared or SharedWrite where nobody has or wants more. Such a lock is
// only noted in a slot, by which few owners are in each other's way, and the first who
// asks for more moves what the slots have into the objects: the same idea as fast
// paths of MySQL's metadata locks (WL#7306).
//
// Mutex order: the shards by number, then a slot.
type metadataLocks struct {
	env     env.Env
	parkers *env.Parkers
	shards  [metadataShards + namedShards]metadataShard // those of named locks last
	slots   [metadataSlots]metadataSlot
	// suspending, while [Manager.Suspend] waits for the sessions' turns: nobody begins to wait, with
	// its turn, for who may end only after that.
	suspending atomic.Bool

	sidesMu sync.Mutex
	sides   map[uint64][]*metadataOwner // those who wait, of each side
}

const (
	metadataShards = 16
	namedShards    = 4 // of their own: who holds a named lock for days is in the way of no slot
	metadataSlots  = 64
)

type metadataShard struct {
	mu      sync.Mutex
	objects map[Name]*metadataObject
	free    []*metadataObject
	// exclusive counts the tickets in NoWrite and Exclusive, granted or waiting. While there are some, the
	// slots have no ticket of the shard. It is changed under mu.
	exclusive atomic.Int32
}

// metadataSlot has locks in Shared and SharedWrite of some owners on names that nobody has or wants in
// NoWrite or Exclusive.
type metadataSlot struct {
	mu    sync.Mutex
	first *ticket
	_     [48]byte // to its own cache line
}

// Name is the name of a table, or of a schema if Table is empty. Names without a schema are of what all share, those with a
// schema that none can be called are of [Session.LockNamed].
type Name struct{ Schema, Table string }

// namedSchema is the schema of names of named locks: no schema has U+0000 in its name.
const namedSchema = "\x00"

// Named returns the name of a named lock, and whether the name is of one.
func (n Name) Named() (string, bool) { return n.Table, n.Schema == namedSchema }

var (
	// CommitLock is locked in SharedWrite by who commits changes, until they are visible, and in NoWrite by FLUSH TABLES WITH READ LOCK.
	CommitLock = Name{Table: "commit"}
	// BackupLock is locked in SharedWrite by who changes definitions, and in NoWrite by LOCK INSTANCE FOR BACKUP.
	BackupLock = Name{Table: "backup"}
)

// MetadataMode is a mode of metadata locks.
type MetadataMode uint8

const (
	Shared MetadataMode = iota
	SharedWrite
	NoWrite
	Exclusive
)

func (m MetadataMode) String() string {
	return [...]string{"SHARED", "SHARED_WRITE", "SHARED_READ_ONLY", "EXCLUSIVE"}[m]
}

// keepsOut reports whether a lock in one mode keeps out another owner's in the other.
func (m MetadataMode) keepsOut(o MetadataMode) bool {
	return m == Exclusive || o == Exclusive || m == NoWrite && o == SharedWrite || m == SharedWrite && o == NoWrite
}

// gives reports whether who has a lock in one mode need not ask for the other.
func (m MetadataMode) gives(o MetadataMode) bool { return m == Exclusive || m == o || o == Shared }

// metadataObject is a name that somebody has locked or waits for.
type metadataObject struct {
	name    Name
	granted []*ticket
	waiting []*ticket // first come first
}

// ticket is a lock of one owner, granted or waited for.
type ticket struct {
	owner   *metadataOwner
	name    Name
	shard   *metadataShard
	mode    MetadataMode
	object  *metadataObject // guarded by the shard; nil in a slot
	granted bool
	err     error // ended the wait

	// Guarded by the slot.
	inSlot     bool
	prev, next *ticket
}

// metadataOwner is what a transaction has of metadata locks. It is used by one task
// at a time.
type metadataOwner struct {
	id      uint64 // of the session
	client  uint64 // whose session it is, or works for; 0: nobody's
	side    uint64 // of owners that do not keep each other out, those of one session; 0: it is alone
	again   bool   // it has nothing that it could not give back, and begins again when its wait closes a circle
	lasting bool   // its locks outlive transactions
	tickets []*ticket
	spare   []*ticket
	parker  env.Parker // during a wait
	waiting *ticket    // guarded by all shards together, or by that of the ticket
	waits   *lock.Waits

	interrupted atomic.Bool
	unwatched   atomic.Bool // it waits until nobody watches a table
}

func newMetadataLocks(e env.Env) *metadataLocks {
	l := &metadataLocks{env: e, parkers: env.NewParkers(e)}
	for i := range l.shards {
		l.shards[i].objects = map[Name]*metadataObject{}
	}
	return l
}

func (l *metadataLocks) shard(n Name) *metadataShard {
	h := types.HashBytes(uint64(len(n.Schema)), []byte(n.Schema))
	h = types.HashBytes(h, []byte(n.Table))
	if n.Schema == namedSchema {
		return &l.shards[metadataShards+h%namedShards]
	}
	return &l.shards[h%metadataShards]
}

// acquire takes a lock, waiting for it up to the limit, not at all if that is 0. Errors: 1205, 1213, 1317; 1102, of a schema that cannot be.
func (l *metadataLocks) acquire(o *metadataOwner, n Name, mode MetadataMode, limit time.Duration) error {
	if n.Schema != namedSchema && o.holds(n, mode) { // the session has a map of its named locks
		return nil
	}
	if n.Schema == namedSchema && !o.lasting { // a text names a table so, which there cannot be
		return sqlerr.New(sqlerr.WrongDBName, n.Schema)
	}
	s := l.shard(n)
	if mode <= SharedWrite && l.slot(o).grant(o, n, s, mode) {
		return nil
	}
	s.mu.Lock()
	if mode >= NoWrite && s.exclusive.Add(1) == 1 && n.Schema != namedSchema { // of these the slots have none
		l.gather(s)
	}
	obj := s.object(n)
	t := o.ticket()
	*t = ticket{owner: o, name: n, object: obj, shard: s, mode: mode}
	place := obj.place(t)
	if obj.allows(t) && !obj.queued(t, place) {
		obj.grant(t)
		s.mu.Unlock()
		o.tickets = append(o.tickets, t)
		return nil
	}
	if interrupted := o.interrupted.Load() || l.suspending.Load(); interrupted || limit <= 0 {
		o.spare = append(o.spare, t)
		s.gone(t)
		s.mu.Unlock()
		if interrupted {
			return lock.ErrInterrupted
		}
		return lock.ErrTimeout
	}
	o.parker = l.parkers.Get()
	o.waiting = t
	obj.waiting = slices.Insert(obj.waiting, place, t)
	s.mu.Unlock()
	l.waitingBeside(o, true)
	l.breakCycle(o)
	err := l.wait(t, limit)
	l.waitingBeside(o, false)
	l.parkers.Put(o.parker)
	if err != nil {
		o.spare = append(o.spare, t)
		return err
	}
	o.tickets = append(o.tickets, t)
	return nil
}

// waitingBeside notes that an owner that has a side waits, or does so no more.
func (l *metadataLocks) waitingBeside(o *metadataOwner, waits bool) {
	if o.side == 0 {
		return
	}
	l.sidesMu.Lock()
	defer l.sidesMu.Unlock()
	if l.sides == nil {
		l.sides = map[uint64][]*metadataOwner{}
	}
	if waits {
		l.sides[o.side] = append(l.sides[o.side], o)
	} else if l.sides[o.side] = slices.DeleteFunc(l.sides[o.side], func(p *metadataOwner) bool { return p == o }); len(l.sides[o.side]) == 0 {
		delete(l.sides, o.side)
	}
}

// besides are the owners of one's side that wait, and itself.
func (l *metadataLocks) besides(o *metadataOwner) []*metadataOwner {
	if o.side == 0 {
		return []*metadataOwner{o}
	}
	l.sidesMu.Lock()
	defer l.sidesMu.Unlock()
	return append([]*metadataOwner{o}, l.sides[o.side]...)
}

// leaveSide makes an owner one that is alone: its session goes on without it.
func (l *metadataLocks) leaveSide(o *metadataOwner) {
	l.lockAll()
	defer l.unlockAll()
	o.side = 0
}

// wait parks until the ticket is granted or its wait is over.
func (l *metadataLocks) wait(t *ticket, limit time.Duration) error {
	began := l.env.Monotonic()
	deadline := began + limit
	defer func() { t.owner.waits.Add(l.env.Monotonic() - began) }()
	for {
		left := deadline - l.env.Monotonic()
		inTime := t.owner.parker.ParkFor(left)
		t.shard.mu.Lock()
		if !t.granted && t.err == nil && !inTime {
			t.shard.giveUp(t, lock.ErrTimeout)
		}
		done, err := t.granted || t.err != nil, t.err
		t.shard.mu.Unlock()
		if done {
			return err
		}
	}
}

// interrupt ends the wait of an owner, and every later one until interrupted is taken
// back.
func (l *metadataLocks) interrupt(o *metadataOwner) {
	o.interrupted.Store(true)
	l.lockAll()
	defer l.unlockAll()
	if t := o.waiting; t != nil {
		t.shard.giveUp(t, lock.ErrInterrupted)
	}
}

// releaseFrom releases the locks from the n-th on, in the order in which they were
// taken.
func (l *metadataLocks) releaseFrom(o *metadataOwner, n int) {
	if len(o.tickets) == n {
		return
	}
	slot := l.slot(o)
	for i, t := range o.tickets[n:] {
		if !slot.release(t) {
			s := t.shard
			s.mu.Lock()
			t.object.granted = without(t.object.granted, t)
			s.gone(t)
			s.mu.Unlock()
		}
		*t = ticket{}
		if len(o.spare) < spareTickets {
			o.spare = append(o.spare, t)
		}
		o.tickets[n+i] = nil
	}
	o.tickets = o.tickets[:n]
	if n == 0 && cap(o.tickets) > spareTickets {
		o.tickets = nil
	}
}

// spareTickets is how many an owner keeps for its next locks: a session may have had millions.
const spareTickets = 1024

// releaseName releases the lock on a name.
func (l *metadataLocks) releaseName(o *metadataOwner, n Name) {
	if i := slices.IndexFunc(o.tickets, func(t *ticket) bool { return t.name == n }); i >= 0 {
		l.releaseAt(o, i)
	}
}

// releaseAt releases the lock of the i-th ticket, and returns the one whose ticket is the i-th now, if any.
func (l *metadataLocks) releaseAt(o *metadataOwner, i int) (moved *ticket) {
	last := len(o.tickets) - 1
	if i != last {
		moved = o.tickets[last]
		o.tickets[i], o.tickets[last] = moved, o.tickets[i]
	}
	l.releaseFrom(o, last)
	return moved
}

// slot is where the owner's locks are noted that are in nobody's way.
func (l *metadataLocks) slot(o *metadataOwner) *metadataSlot {
	return &l.slots[o.id%metadataSlots]
}

// grant takes a lock in Shared or SharedWrite, or makes the owner's one in Shared one in SharedWrite, or returns false if somebody
// may be in the way.
func (k *metadataSlot) grant(o *metadataOwner, n Name, s *metadataShard, mode MetadataMode) bool {
	k.mu.Lock()
	// Whoever asks for more counts first and looks into the slot then.
	if s.exclusive.Load() > 0 {
		k.mu.Unlock()
		return false
	}
	if mode == SharedWrite {
		for _, t := range o.tickets {
			if t.name == n && t.inSlot {
				t.mode = mode
				k.mu.Unlock()
				return true
			}
		}
	}
	t := o.ticket()
	*t = ticket{owner: o, name: n, shard: s, mode: mode, granted: true, inSlot: true, next: k.first}
	if k.first != nil {
		k.first.prev = t
	}
	k.first = t
	k.mu.Unlock()
	o.tickets = append(o.tickets, t)
	return true
}

// release releases a lock that is in the slot, and returns false if it is not there.
func (k *metadataSlot) release(t *ticket) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !t.inSlot {
		return false
	}
	k.remove(t)
	return true
}

// remove takes a ticket out of the slot.
//
// REQUIRES: k.mu.
func (k *metadataSlot) remove(t *ticket) {
	if t.prev == nil {
		k.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.inSlot, t.prev, t.next = false, nil, nil
}

// gather moves the shard's tickets out of the slots into its objects.
//
// REQUIRES: s.mu; s.exclusive is above zero.
func (l *metadataLocks) gather(s *metadataShard) {
	for i := range l.slots {
		k := &l.slots[i]
		k.mu.Lock()
		for t := k.first; t != nil; {
			next := t.next
			if t.shard == s {
				k.remove(t)
				t.object = s.object(t.name)
				t.object.grant(t)
			}
			t = next
		}
		k.mu.Unlock()
	}
}

// holds reports whether the owner has a lock on a name, in the mode at least.
func (o *metadataOwner) holds(n Name, mode MetadataMode) bool {
	for _, t := range o.tickets {
		if t.name == n && t.mode.gives(mode) {
			return true
		}
	}
	return false
}

// with reports whether two owners do not keep each other out.
func (o *metadataOwner) with(p *metadataOwner) bool { return o == p || o.side != 0 && o.side == p.side }

// inWayOf reports whether a lock keeps another one waiting.
func (t *ticket) inWayOf(o *ticket) bool { return !t.owner.with(o.owner) && t.mode.keepsOut(o.mode) }

func (o *metadataOwner) ticket() *ticket {
	if n := len(o.spare); n > 0 {
		t := o.spare[n-1]
		o.spare = o.spare[:n-1]
		return t
	}
	return new(ticket)
}

// object returns the entry of a name.
//
// REQUIRES: s.mu.
func (s *metadataShard) object(n Name) *metadataObject {
	obj := s.objects[n]
	if obj == nil {
		if k := len(s.free); k > 0 {
			obj, s.free = s.free[k-1], s.free[:k-1]
		} else {
			obj = new(metadataObject)
		}
		obj.name = n
		s.objects[n] = obj
	}
	return obj
}

// allows reports whether no other owner's granted lock is in the way.
func (o *metadataObject) allows(t *ticket) bool {
	for _, g := range o.granted {
		if g.inWayOf(t) {
			return false
		}
	}
	return true
}

// place is where in the queue a ticket belongs: at its end, or before the first who waits for what the ticket's side has already.
func (o *metadataObject) place(t *ticket) int {
	for i, w := range o.waiting {
		for _, g := range o.granted {
			if g.owner.with(t.owner) && !g.owner.with(w.owner) && g.mode.keepsOut(w.mode) {
				return i
			}
		}
	}
	return len(o.waiting)
}

// queued reports whether somebody waits before a place whom the ticket, granted, would keep waiting.
func (o *metadataObject) queued(t *ticket, place int) bool {
	for _, w := range o.waiting[:place] {
		if w.mode.keepsOut(t.mode) {
			return true
		}
	}
	return false
}

func (o *metadataObject) grant(t *ticket) {
	t.granted = true
	o.granted = append(o.granted, t)
}

// settle grants what has become possible, in order, and forgets a name that nobody
// wants any more.
//
// REQUIRES: s.mu.
func (s *metadataShard) settle(o *metadataObject) {
	for len(o.waiting) > 0 && o.allows(o.waiting[0]) {
		t := o.waiting[0]
		o.waiting = without(o.waiting, t)
		o.grant(t)
		t.owner.waiting = nil
		t.owner.parker.Unpark()
	}
	if len(o.granted) == 0 && len(o.waiting) == 0 {
		delete(s.objects, o.name)
		o.name = Name{}
		if len(s.free) < 64 {
			s.free = append(s.free, o)
		}
	}
}

// gone grants what has become possible since a ticket is no longer there.
//
// REQUIRES: s.mu.
func (s *metadataShard) gone(t *ticket) {
	if t.mode >= NoWrite {
		s.exclusive.Add(-1)
	}
	s.settle(t.object)
}

// giveUp ends the wait of a ticket with an error.
//
// REQUIRES: s.mu; the ticket waits.
func (s *metadataShard) giveUp(t *ticket, err error) {
	t.err = err
	t.owner.waiting = nil
	t.object.waiting = without(t.object.waiting, t)
	t.owner.parker.Unpark()
	s.gone(t)
}

func without(list []*ticket, t *ticket) []*ticket {
	for i := range list {
		if list[i] == t {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			return list[:len(list)-1]
		}
	}
	return list
}

func (l *metadataLocks) lockAll() {
	for i := range l.shards {
		l.shards[i].mu.Lock()
	}
}

func (l *metadataLocks) unlockAll() {
	for i := range l.shards {
		l.shards[i].mu.Unlock()
	}
}
