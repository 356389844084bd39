package txn

import (
	"errors"
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// Table is a table as a transaction uses it. It is valid until the transaction ends
// or changes a definition. What it says of itself can be asked even when Suspend has
// ended the transaction meanwhile.
type Table struct {
	name    Name
	serial  uint64 // of the transaction
	handle  *dict.Handle
	tbl     *table.Table
	meta    *meta
	seen    bool // the transaction's snapshot of CSN seenAt can read it
	seenAt  uint64
	linked  bool // parents are known
	changes bool // the transaction has the metadata lock of who changes rows
	parents []parent
	watch   *Watch // who watches its rows, or nil
	// access is the index by which rows were read last, for the counts of what is changed.
	access int
	// temporary is what the session has of a temporary table; nil: it is none.
	temporary *temporaryTable
}

// Temporary reports whether it is a temporary table of the session.
func (t *Table) Temporary() bool { return t.temporary != nil }

// Table is the engine's table.
func (t *Table) Table() *table.Table { return t.tbl }

// Handle is the catalogue's handle of the table's definition.
func (t *Table) Handle() *dict.Handle { return t.handle }

// Definition is the table's definition.
func (t *Table) Definition() *record.Table { return t.tbl.Schema.Table }

// batch makes a batch for columns of the table, given by position.
func (t *Table) batch(columns []int) *types.Batch {
	kinds := make([]*types.Type, len(columns))
	for i, c := range columns {
		kinds[i] = &t.tbl.Schema.Columns[c].Type
	}
	return types.NewBatch(kinds)
}

// mayUse reports whether the transaction may use the table.
func (t *Txn) mayUse(o *Table) error {
	if o.serial != t.serial {
		return errOtherTransaction
	}
	return nil
}

var errOtherTransaction = errors.New("txn: the table was opened in another transaction, or before a change of a definition")

// meta is what a table's definition means for logging its changes. It is immutable.
type meta struct {
	schema *record.Schema
	layout *event.Layout
	unique []*record.KeySchema // unique secondary indexes
	auto   int                 // position of the AUTO_INCREMENT column, or -1
	autoUp uint64              // its greatest value
	rowID  int                 // position of the hidden row id, or -1
	needed []int               // columns that a delete must know, and an update besides those it changes
	links  []link
}

// link is a foreign key of a table.
type link struct {
	parent  Name
	columns []int    // positions
	names   []string // of the parent's columns
}

// parent is a unique key that a foreign key refers to.
type parent struct {
	link  *link
	table uint64
	key   *record.KeySchema
	from  []int // by part of the key: position of the child's column
}

// meta returns that of a definition, with which it stays in memory.
func (m *Manager) meta(h *dict.Handle) (*meta, error) {
	s, opt := h.Table().Schema, *m.events.Load()
	if x, _ := h.Attached().(*meta); x != nil && x.layout.Options() == opt {
		return x, nil
	}
	x, err := newMeta(s, opt)
	if err == nil {
		h.Attach(x)
	}
	return x, err
}

func newMeta(s *record.Schema, opt event.Options) (*meta, error) {
	l, err := event.NewLayout(s.Table, opt)
	if err != nil {
		return nil, err
	}
	x := &meta{schema: s, layout: l, auto: -1, rowID: -1}
	if k := s.Keys[0]; len(k.Parts) == 1 && s.Columns[k.Parts[0].Column].Hidden {
		x.rowID = k.Parts[0].Column
	}
	for _, k := range s.Keys[1:] {
		if k.Unique {
			x.unique = append(x.unique, k)
		}
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		if c.AutoIncrement && c.Type.IsInteger() {
			x.auto, x.autoUp = i, greatestInteger(&c.Type)
		}
		if l.BeforeNeeds(i) || l.AfterNeeds(i) || x.inUnique(i) {
			x.needed = append(x.needed, i)
		}
	}
	for i := range s.ForeignKeys {
		fk := &s.ForeignKeys[i]
		k := link{parent: Name{fk.RefSchema, fk.RefTable}, names: fk.RefColumns}
		for _, id := range fk.Columns {
			k.columns = append(k.columns, s.Position(id))
		}
		if len(k.columns) == len(k.names) {
			x.links = append(x.links, k)
		}
	}
	return x, nil
}

func (x *meta) inUnique(column int) bool {
	for _, k := range x.unique {
		for i := range k.Parts {
			if k.Parts[i].Column == column {
				return true
			}
		}
	}
	return false
}

// greatestInteger is the greatest value of an integer type.
func greatestInteger(t *types.Type) uint64 {
	bits := map[types.Kind]int{types.KindTinyInt: 8, types.KindSmallInt: 16, types.KindMediumInt: 24, types.KindInt: 32,
		types.KindBigInt: 64}[t.Kind]
	if t.Unsigned {
		return math.MaxUint64 >> (64 - bits)
	}
	return math.MaxUint64 >> (65 - bits)
}

// Open opens a table for the transaction. Nobody changes its definition until the
// transaction ends. Errors: 1049, 1146, those of waiting for a metadata lock (1205,
// 1213, 1317, 3024), those of reading pages.
func (s *Session) Open(schema, name string) (*Table, error) {
	t, err := s.enter()
	if err != nil {
		return nil, err
	}
	o, err := t.open(Name{schema, name})
	return o, s.leave(err)
}

// OpenTemporary opens a temporary table of the session, nil if it has none of the name. Open finds everybody's tables only.
func (s *Session) OpenTemporary(schema, name string) (*Table, error) {
	if !s.HasTemporary(schema, name) {
		return nil, nil
	}
	t, err := s.enter()
	if err != nil {
		return nil, err
	}
	o, err := t.openTemporary(Name{schema, name})
	return o, s.leave(err)
}

// OpenUnlocked is Open for plain reads of the transaction's snapshot, which must not wait for anybody who changes definitions: without
// a metadata lock. The snapshot keeps what it sees, and reads fail with error 1412 if the definition that was found is not the
// snapshot's.
//
// REQUIRES: the transaction opens no table by Open.
func (s *Session) OpenUnlocked(schema, name string) (*Table, error) {
	t, err := s.enter()
	if err != nil {
		return nil, err
	}
	o, err := t.openLocked(Name{schema, name})
	return o, s.leave(err)
}

func (t *Txn) open(n Name) (*Table, error) {
	for _, o := range t.opened[:t.inUse] {
		if o.name == n {
			return o, nil
		}
	}
	if err := t.lockName(n, Shared); err != nil {
		return nil, err
	}
	return t.openLocked(n)
}

// openLocked is open for a transaction that has the metadata lock, or needs none.
func (t *Txn) openLocked(n Name) (*Table, error) {
	o := t.place(n)
	h, x := o.handle, o.meta
	if o.name != n || !h.Reopen(t.Trx) {
		var err error
		if h, err = t.m.catalog.OpenTable(t.Trx, n.Schema, n.Table); err != nil {
			return nil, err
		}
	}
	if s := h.Table().Schema; x == nil || x.schema != s || x.layout.Options() != *t.m.events.Load() {
		var err error
		if x, err = t.m.meta(h); err != nil {
			h.Release()
			return nil, err
		}
	}
	t.inUse++
	*o = Table{name: n, serial: t.serial, handle: h, tbl: h.Table(), meta: x, parents: o.parents[:0], watch: t.m.watching(n)}
	return o, nil
}

// lockName takes the metadata lock of who uses a table, or changes its rows. Its wait ends with the time of the statement.
func (t *Txn) lockName(n Name, mode MetadataMode) error {
	limit, limited := t.metadataWait, false
	if t.until != nil {
		if until := t.until(); until > 0 {
			left := until - t.m.opt.Env.Monotonic()
			limited = left <= limit
			limit = min(limit, left)
		}
	}
	err := t.m.locks.acquire(&t.locks, n, mode, limit)
	if limited && errors.Is(err, lock.ErrTimeout) {
		return lock.ErrTimeLimit
	}
	return err
}

// openedKept bounds how many tables of earlier transactions a session remembers, and keptColumns how many columns they have: what a session
// remembers is in memory, whatever the catalogue has forgotten.
const (
	openedKept  = 16
	keptColumns = 100
)

// place returns the object for the next table that is opened: that in which an earlier
// transaction had the table, if it is remembered.
func (t *Txn) place(n Name) *Table {
	next := t.inUse
	at := next + slices.IndexFunc(t.opened[next:], func(o *Table) bool { return o.name == n })
	if at < next {
		if len(t.opened) < openedKept || next == len(t.opened) {
			t.opened = append(t.opened, new(Table))
		}
		at = len(t.opened) - 1 // that has not been used for long
	}
	o := t.opened[at]
	copy(t.opened[next+1:at+1], t.opened[next:at])
	t.opened[next] = o
	return o
}

// toForget reports whether a session is not to remember the table.
func (t *Table) toForget() bool {
	return t.handle != nil && (!t.handle.Current() || len(t.tbl.Schema.Columns) > keptColumns)
}

// closeTables gives back the tables. The objects stay as they are until they are used
// again, by the session's task: it may be looking at them.
func (t *Txn) closeTables() {
	forget := false
	for _, o := range t.opened[:t.inUse] {
		forget = forget || o.toForget()
		o.handle.Release()
	}
	if forget {
		t.opened = slices.DeleteFunc(t.opened, (*Table).toForget)
	}
	t.inUse = 0
	if len(t.opened) > openedKept {
		clear(t.opened[openedKept:])
		t.opened = t.opened[:openedKept]
	}
}

// forgetTables closes the tables, since definitions have changed within the
// transaction.
func (t *Txn) forgetTables() {
	t.closeTables()
	clear(t.opened) // not to be used again: somebody may still have them
	t.opened = t.opened[:0]
	t.newSerial()
}

// newSerial makes tables that were opened before unusable.
func (t *Txn) newSerial() { t.serial = t.m.serials.Add(1) }

// findParents works out which unique keys the table's foreign keys refer to. A key
// that is none, or of other types, is left out: nobody on a member that applies
// the log checks foreign keys, and commits are in order all the same.
func (t *Txn) findParents(o *Table) error {
	o.linked = true
	for i := range o.meta.links {
		l := &o.meta.links[i]
		p, err := t.open(l.parent)
		if isMissing(err) {
			continue
		}
		if err != nil {
			o.linked, o.parents = false, o.parents[:0]
			return err
		}
		for _, k := range p.tbl.Schema.Keys {
			if from := l.matches(k, o.tbl.Schema, p.tbl.Schema); from != nil {
				o.parents = append(o.parents, parent{link: l, table: p.tbl.ID(), key: k, from: from})
				break
			}
		}
	}
	return nil
}

// matches returns the child's columns in the order of a unique key of the parent, or
// nil if the foreign key does not refer to that key.
func (l *link) matches(k *record.KeySchema, child, parent *record.Schema) []int {
	if !k.Unique || len(k.Parts) != len(l.names) {
		return nil
	}
	from := make([]int, len(k.Parts))
	for i := range k.Parts {
		p := &k.Parts[i]
		found := false
		for n, name := range l.names {
			if dict.Fold(name) != dict.Fold(parent.Columns[p.Column].Name) || l.columns[n] < 0 {
				continue
			}
			c := &child.Columns[l.columns[n]].Type
			found = p.Prefix == 0 && c.Kind == p.Type.Kind && c.Unsigned == p.Type.Unsigned && c.Collation == p.Type.Collation &&
				c.Precision == p.Type.Precision && c.Scale == p.Type.Scale && c.FSP == p.Type.FSP
			from[i] = l.columns[n]
		}
		if !found {
			return nil
		}
	}
	return from
}
