package dict

import (
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// DefaultCacheSize is the default of Options.CacheSize.
const DefaultCacheSize = 4000

// Options configure a catalogue.
type Options struct {
	// CacheSize is table_open_cache: how many tables are kept open besides those
	// in use; 0 means [DefaultCacheSize].
	CacheSize int
	// CacheBytes is how much memory those may take, about; 0: any.
	CacheBytes int64
	// Shown, if not nil, gives the definition that the users of a table see for the stored one, which it does not change: they
	// differ in the table's names. [Catalog.OpenTable] takes the stored ones.
	Shown func(stored *record.Table) *record.Table
}

// prepare is that of a definition as users of the table see it.
func (c *Catalog) prepare(stored *record.Table) (*record.Schema, error) {
	if c.opt.Shown != nil {
		stored = c.opt.Shown(stored)
	}
	return prepare(stored)
}

// Catalog is the catalogue of a database. All methods are safe for concurrent use;
// those that take a worker belong to the worker's task and transaction. Once the engine is
// closed, those that read fail with table.ErrClosed.
type Catalog struct {
	e   *table.Engine
	sys *trx.System
	opt Options
	own [idEnd]*table.Table // the catalogue's tables by number

	turns       []*env.Mutex // held while a table is opened, by its number
	reclaimTurn *env.Mutex
	tasks       *env.Group
	pendings    atomic.Int64  // len(pending)
	overfull    atomic.Bool   // the cache holds too many tables, all in use when it was looked at
	changes     atomic.Uint64 // committed changes of definitions

	mu         sync.Mutex // guards what follows; nothing parks under it
	readers    []*reader
	generation uint64 // rises with each committed change of definitions
	byName     map[name]*Handle
	byID       map[uint64]*Handle
	cacheBytes int64                // of the cached handles, about
	ring       Handle               // of the cached handles, those first that evict has looked at last
	live       map[uint64][]*Handle // every handle that is cached or in use, by table
	recovered  map[uint64]*table.Table
	pending    map[uint64]*pending   // by transaction
	creating   map[garbage]uint32    // being made: their tablespace numbers
	garbage    map[garbage]*leftover // to be deleted
	queue      []garbage             // the keys of garbage in order
	reclaiming bool
	closing    bool
	waiting    env.Parker // of the task that reclaims, while it waits
	lastErr    error
}

// name is the full name of a table.
type name struct{ schema, table string }

// Open binds the catalogue's tables and sets e.Lookup. It loads nothing else.
// Errors: [ErrFormat], those of reading pages.
//
// REQUIRES: redo has been applied.
func Open(e *table.Engine, opt Options) (*Catalog, error) {
	if opt.CacheSize <= 0 {
		opt.CacheSize = DefaultCacheSize
	}
	c := &Catalog{
		e: e, sys: e.Trx, opt: opt,
		reclaimTurn: env.NewMutex(e.Env), tasks: env.NewGroup(e.Env),
		byName: map[name]*Handle{}, byID: map[uint64]*Handle{}, live: map[uint64][]*Handle{},
		recovered: map[uint64]*table.Table{}, pending: map[uint64]*pending{},
		creating: map[garbage]uint32{}, garbage: map[garbage]*leftover{},
	}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	for range 16 {
		c.turns = append(c.turns, env.NewMutex(e.Env))
	}
	if err := c.bind(); err != nil {
		return nil, err
	}
	e.Lookup = c.Lookup
	return c, nil
}

// Close ends the catalogue's background task. What is still to be deleted is found
// again after the next start.
//
// REQUIRES: nobody changes a definition any more.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closing = true
	if c.waiting != nil {
		c.waiting.Unpark()
	}
	c.mu.Unlock()
	c.tasks.Wait()
}

// SystemTables returns the catalogue's own tables, for checks and the state hash.
func (c *Catalog) SystemTables() []*table.Table { return c.own[1:] }

// IsReplicated reports whether a table's rows are the same on all members, so that
// they are part of the state hash.
func IsReplicated(id uint64) bool { return id != idPhysical && id != idLocal }

// IsSystem reports whether the number is that of a table of the catalogue's own.
func IsSystem(id uint64) bool { return id < idEnd }

// Tables calls fn with the definition of every table, in the order of their
// numbers, as the snapshot sees them: that of a transaction for its own view of
// the world, nil for what is committed now. The catalogue's own are not among them.
func (c *Catalog) Tables(snap *trx.Snapshot, fn func(def *record.Table) error) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	defer c.done(r)
	if snap == nil {
		snap = r.latest(0)
	}
	var ids []uint64
	err = r.each(c.own[idTables], snap, 0, nil, func(row values) error {
		ids = append(ids, row[tableID].Uint())
		return nil
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		var def *record.Table
		if def, err = r.definition(snap, id); err == nil {
			err = fn(def)
		}
	}
	return err
}

// Definition is the definition of a table as the snapshot sees it; nil for what is
// committed now. Error: table.ErrNoTable.
func (c *Catalog) Definition(snap *trx.Snapshot, id uint64) (*record.Table, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	if snap == nil {
		snap = r.latest(0)
	}
	return r.definition(snap, id)
}

// TableName is an entry in the list of a schema's tables.
type TableName struct {
	ID   uint64
	Name string
}

// TableNames returns the tables of a schema in the order of their names, as t sees
// them; t may be nil. Error: 1049.
func (c *Catalog) TableNames(t *trx.Trx, schema string) ([]TableName, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	snap := r.latest(ownID(t))
	s, err := r.schemaNamed(snap, schema)
	if err != nil {
		return nil, err
	}
	var names []TableName
	err = r.each(c.own[idTables], snap, 1, values{uintValue(s.ID)}, func(row values) error {
		names = append(names, TableName{row[tableID].Uint(), text(row[tableName])})
		return nil
	})
	return names, err
}

// Reference is a foreign key that refers to a table.
type Reference struct {
	Table uint64 // that has the foreign key
	Key   uint64
}

// References returns the foreign keys that refer to the table of that name, as t
// sees them; t may be nil.
func (c *Catalog) References(t *trx.Trx, schema, table string) ([]Reference, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	var refs []Reference
	prefix := values{stringValue(schema), stringValue(table)}
	err = r.each(c.own[idForeignKeys], r.latest(ownID(t)), 1, prefix, func(row values) error {
		refs = append(refs, Reference{row[foreignTable].Uint(), row[foreignID].Uint()})
		return nil
	})
	return refs, err
}

// Changes counts the committed changes of definitions since the start. Who caches what
// it has learned from several definitions compares it: it costs a load.
func (c *Catalog) Changes() uint64 { return c.changes.Load() }

func ownID(t *trx.Trx) uint64 {
	if t == nil {
		return 0
	}
	return t.ID()
}
