package dict

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// Handle is a table opened in one definition. It is shared: each caller of
// OpenTable or OpenTableByID releases it once.
//
// The table's files stay until the last handle is released, whatever becomes of
// the table.
type Handle struct {
	c     *Catalog
	id    uint64
	table *table.Table
	refs  atomic.Int32
	stale atomic.Bool
	used  atomic.Bool // since the cache looked for tables to drop

	// Changed under Catalog.mu.
	seen   atomic.Uint64 // a CSN as of which this was its definition; 0: its creation is pending
	cached atomic.Bool   // by name and number, and in the ring

	attached atomic.Value // see Attach

	prev, next *Handle // guarded by Catalog.mu
	bytes      int64   // of memory, about: set when it is cached
}

// Table is the open table.
func (h *Handle) Table() *table.Table { return h.table }

// Current reports whether the table still has this definition, as far as others
// than a transaction that is changing it can see. It costs a load: plan caches ask
// it before each use.
func (h *Handle) Current() bool { return !h.stale.Load() }

// Attached returns what was attached last, or nil.
func (h *Handle) Attached() any { return h.attached.Load() }

// Attach keeps what somebody has made of the definition for as long as the handle is in memory. It is always of the same type.
func (h *Handle) Attach(v any) { h.attached.Store(v) }

// Reopen opens the table again as [Catalog.OpenTable] opened it before, or returns false
// if OpenTable is to be asked, since t or somebody else has changed the table's definition.
// It takes no mutex, unlike OpenTable.
func (h *Handle) Reopen(t *trx.Trx) bool {
	if !h.cached.Load() || h.c.pendingOf(t) != nil {
		return false
	}
	h.refs.Add(1)
	if !h.cached.Load() { // it was retired meanwhile: nobody may take it up
		h.Release()
		return false
	}
	h.touch()
	return true
}

// touch notes that the handle is used. It writes seldom: many tasks use the same.
func (h *Handle) touch() {
	if !h.used.Load() {
		h.used.Store(true)
	}
}

// Release gives the handle back.
func (h *Handle) Release() {
	n := h.refs.Add(-1)
	if n < 0 {
		panic("dict: handle released too often")
	}
	if n > 0 {
		return
	}
	if stale := h.stale.Load(); stale || h.c.overfull.Load() {
		h.c.mu.Lock()
		if stale {
			h.c.forgetUnused(h)
			h.c.kick()
		}
		h.c.evict()
		h.c.mu.Unlock()
	}
}

// CacheStats are counts of the table cache.
type CacheStats struct {
	Cached int   // tables in the cache
	Live   int   // definitions in the cache or in use
	Bytes  int64 // of memory that those in the cache take, about
}

// Stats returns the state of the table cache.
func (c *Catalog) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := CacheStats{Cached: len(c.byID), Bytes: c.cacheBytes}
	for _, hs := range c.live {
		s.Live += len(hs)
	}
	return s
}

// OpenTable opens a table in its definition as committed, or as t has changed it; t
// may be nil. Errors: 1049, 1146, *[CorruptError], those of reading pages.
func (c *Catalog) OpenTable(t *trx.Trx, schema, tbl string) (*Handle, error) {
	p := c.pendingOf(t)
	if p == nil {
		c.mu.Lock()
		if h := c.byName[name{schema, tbl}]; h != nil {
			c.use(h)
			c.mu.Unlock()
			return h, nil
		}
		c.mu.Unlock()
	}
	for {
		r, err := c.reader()
		if err != nil {
			return nil, err
		}
		id, err := r.tableNamed(r.latest(ownID(t)), schema, tbl)
		c.done(r)
		if err != nil {
			return nil, err
		}
		h, err := c.openID(p, id)
		if !errors.Is(err, table.ErrNoTable) {
			return h, err
		}
		// Dropped since it was found by name.
	}
}

// OpenTableByID opens the table with the number, like OpenTable. Error:
// table.ErrNoTable.
func (c *Catalog) OpenTableByID(t *trx.Trx, id uint64) (*Handle, error) {
	return c.openID(c.pendingOf(t), id)
}

func (c *Catalog) openID(p *pending, id uint64) (*Handle, error) {
	if p != nil {
		if h, changed := p.latest(id); h != nil {
			c.mu.Lock()
			h.refs.Add(1)
			c.mu.Unlock()
			return h, nil
		} else if changed {
			return nil, table.ErrNoTable
		}
	}
	c.mu.Lock()
	if h := c.byID[id]; h != nil {
		c.use(h)
		c.mu.Unlock()
		return h, nil
	}
	c.mu.Unlock()
	return c.load(id)
}

// Lookup finds the table of an undo record, for rollback and purge: in its
// definition as committed; as created by a transaction that has not ended, if it
// is not; or as one of the catalogue's own. Error: table.ErrNoTable.
//
// REQUIRES: something keeps the table from being dropped while it is used: the
// transaction that rolls back, or an open snapshot.
func (c *Catalog) Lookup(id uint64) (*table.Table, error) {
	if id < uint64(idEnd) {
		if c.own[id] == nil {
			return nil, table.ErrNoTable
		}
		return c.own[id], nil
	}
	c.mu.Lock()
	t := c.knownTable(id)
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	h, err := c.load(id)
	if err == nil {
		t = h.table
		h.Release()
		return t, nil
	}
	if !errors.Is(err, table.ErrNoTable) {
		return nil, err
	}
	return c.loadUncommitted(id)
}

func (c *Catalog) knownTable(id uint64) *table.Table {
	if h := c.byID[id]; h != nil {
		return h.table
	}
	if t := c.recovered[id]; t != nil {
		return t
	}
	if len(c.pending) > 0 {
		// A table that is not committed is known to the transaction that created it.
		for _, h := range slices.Backward(c.live[id]) {
			if h.seen.Load() == 0 && !h.stale.Load() {
				return h.table
			}
		}
	}
	return nil
}

// loadUncommitted opens a table from the newest versions of its rows: that of a
// transaction found again after a crash.
func (c *Catalog) loadUncommitted(id uint64) (*table.Table, error) {
	def, at, err := c.readNewest(id)
	if err != nil {
		return nil, err
	}
	t, err := c.build(def, at)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.recovered[id] = t
	c.mu.Unlock()
	return t, nil
}

func (c *Catalog) readNewest(id uint64) (*record.Table, table.Physical, error) {
	t := c.sys.Begin(trx.Options{Isolation: trx.ReadUncommitted})
	defer c.sys.End(t)
	r, err := c.reader()
	if err != nil {
		return nil, table.Physical{}, err
	}
	defer c.done(r)
	def, err := r.definition(t.Snapshot(), id)
	if err != nil {
		return nil, table.Physical{}, err
	}
	at, err := r.physical(r.latest(0), id)
	return def, at, err
}

// use takes a reference.
//
// REQUIRES: c.mu; h is cached.
func (c *Catalog) use(h *Handle) {
	h.refs.Add(1)
	h.touch()
}

func (c *Catalog) linkFront(h *Handle) {
	h.prev, h.next = &c.ring, c.ring.next
	h.prev.next, h.next.prev = h, h
}

// load opens a table in its committed definition and puts it into the cache.
func (c *Catalog) load(id uint64) (*Handle, error) {
	if err := c.e.Enter(); err != nil {
		return nil, err
	}
	defer c.e.Leave()
	turn := c.turns[id%uint64(len(c.turns))]
	turn.Lock()
	defer turn.Unlock()
	for {
		c.mu.Lock()
		if h := c.byID[id]; h != nil {
			c.use(h)
			c.mu.Unlock()
			return h, nil
		}
		generation := c.generation
		c.mu.Unlock()
		h, err := c.loadOnce(id, generation)
		if h != nil || err != nil {
			return h, err
		}
		// Definitions changed meanwhile.
	}
}

// loadOnce returns nil without an error if it was overtaken by a change.
func (c *Catalog) loadOnce(id, generation uint64) (*Handle, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	snap := r.latest(0)
	h := &Handle{c: c, id: id}
	h.seen.Store(max(snap.CSN, 1))
	def, err := r.definition(snap, id)
	var at table.Physical
	if err == nil {
		at, err = r.physical(snap, id)
	}
	c.done(r)
	if err != nil {
		return nil, err
	}
	// From here on the table's files are in use, which c.live says.
	h.refs.Store(1)
	c.e.Env.Yield()
	c.mu.Lock()
	if c.generation != generation {
		c.mu.Unlock()
		return nil, nil
	}
	c.live[id] = append(c.live[id], h)
	c.mu.Unlock()
	t, err := c.build(def, at)
	c.e.Env.Yield()

	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.generation == generation {
		h.table = t
		c.install(h)
		return h, nil
	}
	h.stale.Store(true)
	h.refs.Store(0)
	c.forgetUnused(h)
	c.kick()
	return nil, err
}

// build opens the trees of a table and finds where its counters stand.
func (c *Catalog) build(def *record.Table, at table.Physical) (*table.Table, error) {
	s, err := c.prepare(def)
	if err != nil {
		return nil, err
	}
	roots := map[uint64]uint32{} // of this definition's indexes alone: it uses no others
	for i := range def.Indexes {
		if root, ok := at.Roots[def.Indexes[i].ID]; ok {
			roots[def.Indexes[i].ID] = root
		}
	}
	at.Roots = roots
	t, err := c.e.Open(s, at)
	if err != nil {
		return nil, err
	}
	if err := c.initCounters(t); err != nil {
		return nil, err
	}
	rows, _, err := t.Tree(0).Estimate(nil, nil)
	var damaged *page.CorruptError
	if err != nil && !errors.As(err, &damaged) {
		return nil, err // a damaged page keeps nobody from the rest of the table
	}
	t.SetRows(rows)
	return t, nil
}

// OptionAutoIncrement is the name in record.Table.Options of the least
// AUTO_INCREMENT value that the table may give, in decimal.
const OptionAutoIncrement = "auto_increment"

// initCounters sets the next AUTO_INCREMENT value and the next row id behind the
// greatest ones in the table, deleted rows included, and to what was asked for.
func (c *Catalog) initCounters(t *table.Table) error {
	raiseToOption(t)
	for i, k := range t.Schema.Keys {
		col := &t.Schema.Columns[k.Parts[0].Column]
		rowID := i == 0 && col.Hidden
		if k.Building || !col.AutoIncrement && !rowID || !col.Type.IsInteger() {
			continue
		}
		v, ok, err := c.greatest(t, i)
		if err != nil {
			return err
		}
		if !ok || v.IsNull() || !col.Type.Unsigned && v.Int() < 0 {
			continue
		}
		if rowID {
			t.RaiseRowID(v.Uint())
		} else {
			t.RaiseAuto(v.Uint())
		}
	}
	return nil
}

// raiseToOption lets a table count from where its definition says.
func raiseToOption(t *table.Table) {
	if n, err := strconv.ParseUint(t.Schema.Options[OptionAutoIncrement], 10, 64); err == nil && n > 0 {
		t.RaiseAuto(n - 1)
	}
}

// greatest returns the greatest value of an index's first part.
func (c *Catalog) greatest(t *table.Table, position int) (v types.Value, ok bool, err error) {
	m := mtr.New(c.e.Pool)
	m.BeginRead()
	cur := t.Tree(position).NewCursor(m)
	defer m.Commit()
	defer cur.Reset()
	p := &t.Schema.Keys[position].Parts[0]
	if p.Desc {
		err = cur.First(mtr.S)
	} else {
		err = cur.Last(mtr.S)
	}
	if err != nil || !cur.Valid() {
		return v, false, err
	}
	v, _, _, err = types.DecodeKey(cur.Key(), p.Type, p.Desc, p.Prefix, nil)
	if err != nil {
		err = corrupt(t.Schema.Name, err, t.Schema.Keys[position].ID)
	}
	return v, err == nil, err
}

// install puts a handle that is in use into the cache, in the place of another
// definition of the table.
//
// REQUIRES: c.mu; h is in c.live.
func (c *Catalog) install(h *Handle) {
	s := h.table.Schema
	if old := c.byID[h.table.ID()]; old != nil {
		c.retire(old)
	}
	h.cached.Store(true)
	c.byID[h.table.ID()] = h
	if c.opt.Shown == nil { // else it is looked up by the stored name, which the handle does not have
		n := name{s.Table.Schema, s.Name}
		if old := c.byName[n]; old != nil {
			c.retire(old)
		}
		c.byName[n] = h
	}
	c.linkFront(h)
	h.bytes = definitionBytes(s.Table)
	c.cacheBytes += h.bytes
	c.evict()
}

// definitionBytes is about what a definition takes in memory, with all that is made of it for reading and writing rows and for the log.
func definitionBytes(t *record.Table) int64 {
	n := 4096
	for i := range t.Columns {
		c := &t.Columns[i]
		n += 320 + len(c.Name) + len(c.Initial) + len(c.Default) + len(c.Generated) + len(c.OnUpdate) + len(c.Comment)
	}
	for i := range t.Indexes {
		n += 512 + 128*len(t.Indexes[i].Parts)
	}
	return int64(n)
}

// tooMany reports whether the cache holds more than it may. REQUIRES: c.mu.
func (c *Catalog) tooMany() bool {
	return len(c.byID) > c.opt.CacheSize || c.opt.CacheBytes > 0 && c.cacheBytes > c.opt.CacheBytes
}

// evictionTries bounds how many handles one installation looks at.
const evictionTries = 32

// evict drops handles that have not been used since it looked at them last, while there
// are too many (CLOCK). Those in use are passed over, and not looked at again soon; the
// cache then shrinks when one of them is released.
//
// REQUIRES: c.mu.
func (c *Catalog) evict() {
	for tries := 0; c.tooMany() && tries < evictionTries; tries++ {
		h := c.ring.prev
		if !h.used.Swap(false) && h.refs.Load() == 0 {
			c.retire(h)
			continue
		}
		h.prev.next, h.next.prev = h.next, h.prev
		c.linkFront(h)
	}
	c.overfull.Store(c.tooMany())
}

// retire takes a handle out of the cache: nobody can open it any more.
//
// REQUIRES: c.mu.
func (c *Catalog) retire(h *Handle) {
	if h.cached.Load() {
		s := h.table.Schema
		h.cached.Store(false) // before it is asked who uses it: Reopen asks in the other order
		delete(c.byID, h.table.ID())
		if n := (name{s.Table.Schema, s.Name}); c.byName[n] == h {
			delete(c.byName, n)
		}
		h.prev.next, h.next.prev = h.next, h.prev
		h.prev, h.next = nil, nil
		c.cacheBytes -= h.bytes
	}
	h.stale.Store(true)
	c.forgetUnused(h)
}

// forgetUnused removes a retired handle that nobody uses from c.live.
//
// REQUIRES: c.mu.
func (c *Catalog) forgetUnused(h *Handle) {
	if h.refs.Load() != 0 || h.cached.Load() {
		return
	}
	hs := slices.DeleteFunc(c.live[h.id], func(o *Handle) bool { return o == h })
	if len(hs) == 0 {
		delete(c.live, h.id)
	} else {
		c.live[h.id] = hs
	}
}
