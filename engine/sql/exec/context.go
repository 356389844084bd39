package exec

import (
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// Context is what a run of a tree needs of its statement. It belongs to the session and
// may be used again for the next one.
type Context struct {
	// Expr evaluates expressions. Its Interrupted is asked for each batch: KILL (1317)
	// and max_execution_time (3024) come from there.
	Expr    *expr.Context
	Storage Storage
	// Source is handed to virtual tables: the session.
	Source any

	Env     env.Env
	FS      file.FS // for what does not fit into memory; nil: it must fit
	TempDir string
	// Large is set by a run whose rows needed much memory, which its tree keeps.
	Large bool
	// MemoryLimit is what the statement may keep in memory, in bytes; 0: 64 MiB.
	MemoryLimit int64
	// Share is what the session has of the node's memory for statements; nil: as much as it may by MemoryLimit.
	Share *temptable.Share
	// Disk is what the session has of the node's disk for temporary files; nil: as much as there is.
	Disk *temptable.DiskShare
	// MaxRecursion is cte_max_recursion_depth.
	MaxRecursion uint64
	// SemiConsistent says that a locking scan need not wait for rows that its filter
	// does not want (UPDATE of a single table at READ COMMITTED and below).
	SemiConsistent bool
	// LockReads says which of the tables that the plan reads without locks are locked in S: what a statement
	// reads besides the rows it changes. Nil: none.
	LockReads func(t *plan.Table) bool

	// FoundRows is set by a plan with SQL_CALC_FOUND_ROWS to the number of rows without
	// the limit.
	FoundRows uint64
	// Examined counts rows read from tables.
	Examined uint64
}

const (
	defaultMemory    = 64 << 20
	defaultRecursion = 1000
)

// Storage is how operators read base tables. [Transaction] is the one of sessions.
type Storage interface {
	// NewScan returns a scan for as long as the storage lives.
	NewScan() Scan
	// Get appends the columns of the row with the clustered key to the batch.
	Get(t *plan.Table, key []byte, l *plan.Lock, columns []int, b *types.Batch) (found bool, err error)
}

// Scan reads ranges of tables, one after the other; see txn.Scan.
type Scan interface {
	Start(t *plan.Table, r table.Range) error
	Next(b *types.Batch) (more bool, err error)
	Key(i int) []byte
	Unlock(i int)
}

// Transaction reads the tables that a transaction has opened. Tables are in the order
// of plan.Query.Tables.
type Transaction struct {
	Session *txn.Session
	Tables  []*txn.Table
}

// NewScan implements [Storage].
func (s *Transaction) NewScan() Scan { return &txnScan{s: s} }

// Get implements [Storage].
func (s *Transaction) Get(t *plan.Table, key []byte, l *plan.Lock, columns []int, b *types.Batch) (bool, error) {
	if l != nil {
		return s.Session.GetLocked(s.Tables[t.Number], key, l.Mode, l.Policy, columns, b)
	}
	return s.Session.Get(s.Tables[t.Number], key, columns, b)
}

// txnScan is a scan of the transaction's session, which may be another one by the next
// run.
type txnScan struct {
	s    *Transaction
	of   *txn.Session
	scan *txn.Scan
}

func (c *txnScan) Start(t *plan.Table, r table.Range) error {
	if c.of != c.s.Session {
		c.of = c.s.Session
		c.scan = c.of.NewScan()
	}
	return c.scan.Start(c.s.Tables[t.Number], r)
}
func (c *txnScan) Next(b *types.Batch) (bool, error) { return c.scan.Next(b) }
func (c *txnScan) Key(i int) []byte                  { return c.scan.Key(i) }
func (c *txnScan) Unlock(i int)                      { c.scan.Unlock(i) }

// run is the state of a tree's present run, which its operators share.
type run struct {
	*Context
	x      *expr.Context
	memory *temptable.Account
	temp   temptable.Config
	seed   uint64 // of hash tables
	tree   *Tree
	// growths are those of the tree's predicates.
	growths map[expr.Node]*expr.Growth
}

// LargeBatch is from which size on a batch is not to be kept from run to run.
const LargeBatch = 2 << 20

// note looks at whether a batch has become large.
func (r *run) note(b *types.Batch) {
	if !r.Large && b.MemoryBytes() > LargeBatch {
		r.Large = true
	}
}

// check ends an interrupted statement.
func (r *run) check() error {
	if err := r.x.Check(); err != nil || !r.memory.Crowded() {
		return err
	}
	if r.x.Hold == nil {
		return nil
	}
	err := r.x.Hold(crowdedHold) // which waits for others to end
	if err == nil {
		err = r.x.Hold(-crowdedHold)
	}
	return err
}

// crowdedHold is what a statement asks for, in bytes, to be told when others have ended.
const crowdedHold = 64 << 10

// readAll runs an operator to its end, and passes its rows to add.
func (r *run) readAll(input operator, add func(b *types.Batch, sel []uint32) error) error {
	if err := input.open(); err != nil {
		return err
	}
	defer input.close()
	for {
		b, sel, err := input.next()
		if b == nil || err != nil {
			return err
		}
		if err := add(b, sel); err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return err
		}
	}
}
