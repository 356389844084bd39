package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Transaction is a transaction of a session, as it is seen from outside.
type Transaction struct {
	ID        uint64 // 0: it has changed and locked nothing
	Session   uint64
	User      string
	Host      string
	Began     time.Time
	Age       time.Duration
	Waits     bool // for a lock
	Isolation string
	ReadOnly  bool
	OneOnly   bool   // it is that of one statement: autocommit
	Statement string // that its session runs; empty: none
}

// publishedGoesOn is set once the transaction is to go on after its first statement.
const publishedGoesOn = 1 << 16

// publishedTrx packs what others may see of a transaction that begins.
func publishedTrx(level trx.Isolation, readOnly bool) uint32 {
	return uint32(level)<<1 | uint32(bit(readOnly))
}

// transaction returns the session's transaction, if it has one. Any task may ask.
func (s *Session) transaction() (t Transaction, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.txn == nil {
		return t, false
	}
	of := s.txn.Trx()
	if of == nil {
		return t, false
	}
	p := s.published.Load()
	t = Transaction{ID: of.ID(), Session: s.id, User: s.process.User, Host: s.process.Host, Age: s.env.Monotonic() - of.Started(),
		Waits: s.txn.Waits() != "", Isolation: isolationTexts[trx.Isolation((p&^publishedGoesOn)>>1)], ReadOnly: p&1 != 0, OneOnly: p&publishedGoesOn == 0, Statement: s.process.Info}
	t.Began = s.env.Now().Add(-t.Age)
	return t, true
}

// Transactions returns the transactions of all sessions, the oldest first.
func (m *Manager) Transactions() []Transaction {
	var list []Transaction
	for _, s := range m.all() {
		if t, ok := s.transaction(); ok {
			t.Statement = hideSecrets(t.Statement) // which may take a moment
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b Transaction) int { return cmp.Compare(b.Age, a.Age) })
	return list
}

// LockWait is a transaction that waits for another's lock, or a session that waits for another's metadata lock.
type LockWait struct {
	Waiting, Blocking    uint64 // transactions; 0 of a metadata lock
	Schema, Table, Index string // Index is empty for a lock on the table; Table is the name of a lock of GET_LOCK
	Key                  []byte // as the engine has it; nil: the table, or the end of the index

	Metadata                        string // what a metadata lock is on, as metadata_locks.OBJECT_TYPE; empty: it is none
	WaitingSession, BlockingSession uint64 // of a metadata lock; 0: one of the node's own
}

// LockWaits lists who waits for whose locks, at most max.
func (m *Manager) LockWaits(max int) ([]LockWait, error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return nil, err
	}
	list, err := rowWaits(eng, max)
	if err != nil {
		return nil, err
	}
	for _, w := range m.opt.Backend.MetadataWaits(max - len(list)) {
		of := metadataKind(w.Name)
		list = append(list, LockWait{Schema: of.schema, Table: of.name, Metadata: of.kind, WaitingSession: w.Waiting, BlockingSession: w.Blocking})
	}
	return list, nil
}

// rowWaits are the waits for locks of the engine.
func rowWaits(eng *storage.Engine, max int) ([]LockWait, error) {
	waits := eng.Locks.Snapshot(max).Waits
	if len(waits) == 0 {
		return nil, nil
	}
	tables, indexes, err := lockNames(eng)
	if err != nil {
		return nil, err
	}
	list := make([]LockWait, len(waits))
	for i, w := range waits {
		on := indexes[w.Index]
		if w.Table {
			on = tables[w.Index]
		}
		list[i] = LockWait{Waiting: w.Requesting, Blocking: w.Blocking, Schema: on.schema, Table: on.table, Index: on.index, Key: w.Key}
	}
	return list, nil
}

// Needs checks that an account, with its default roles, holds one of the privileges:
// for doors whose calls are no statements. Error: 1227.
func (m *Manager) Needs(id priv.ID, any priv.Mask, dynamic ...string) error {
	k, err := m.accounts()
	if err != nil {
		return err
	}
	active := priv.NewSet().Active(id, "", nil)
	if k.set != nil {
		if of := k.set.Account(id); of != nil {
			active = k.set.Active(id, "", k.set.LoginRoles(of))
		}
	}
	return active.Needs(any, dynamic...)
}

// Origin is where a global variable's value comes from.
type Origin uint8

const (
	OriginDefault    Origin = iota // nobody has set it
	OriginConfigured               // Options.Variables
	OriginSet                      // SET GLOBAL
	OriginGroup                    // the group has it, by an entry of the log or a node's option
)

// Global is a global variable.
type Global struct {
	Name, Value, Default string
	Origin               Origin
	Changeable           bool
}

// Globals returns the global variables in the order of their names, but those whose value
// depends on the session that asks.
func (m *Manager) Globals() []Global {
	m.mu.Lock()
	values, origins := m.globals, slices.Clone(m.origins)
	m.mu.Unlock()
	var list []Global
	for name, v := range variables {
		of := v.shared()
		if v.scope&inGlobal == 0 || of.get != nil {
			continue
		}
		g := Global{Name: name, Value: v.text(values[of.slot]), Default: v.text(of.def), Origin: origins[of.slot],
			Changeable: v.scope&(readOnly|fixedTo) == 0}
		if of.scope&inGroup != 0 {
			g.Origin = OriginGroup
			if n, ok := m.opt.Backend.GroupSetting(of.name); ok {
				g.Value = v.text(varValue{n: uint64(n)})
			}
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b Global) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
