package session

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/exec"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// scratch is memory that statements use one after the other.
type scratch struct {
	key       []byte       // of the plan cache
	open      []*txn.Table // tables of the statement, as compiled.tables has them
	store     types.Context
	row       []types.Value
	before    []types.Value
	changes   []record.Change
	index     []byte // key of an index
	values    []types.Value
	rowKey    []byte
	one       map[*tableInfo]*types.Batch // rows over which a table's expressions are evaluated
	batches   map[*compiled]*types.Batch  // of point reads
	points    map[*plan.PointGet]*types.Batch
	trees     map[*compiled]*exec.Tree
	scans     []*txn.Scan // idle
	run       exec.Context
	storage   exec.Transaction
	target    target
	inserter  inserter
	changer   changer
	setRows   map[*plan.Change]*types.Batch
	links     []*target        // of the tables that cascades reach
	rewritten []*record.Schema // tables whose rows actions of foreign keys have changed in the statement
	textParam *types.Type
	bulk      ast.Bulk
	rows      *ast.Bulk     // what gives the INSERT its rows: bulk, or nil
	rowValues []types.Value // of its present one
	group     rowGroup
	// setInsertID says that LAST_INSERT_ID(n) was called.
	setInsertID bool
	// ofConditions says that the statement shows the conditions of the one before: its
	// end tells of none, or clients that ask after each warning would never stop.
	ofConditions bool
	// keepsCount says that ROW_COUNT() stays as it is.
	keepsCount bool
	// described is the temporary table that SHOW COLUMNS or SHOW INDEX is about, which information_schema then has alone; nil: none.
	described *table.Table
	// reads says that the statement that uses tables is a query.
	reads bool
	// hinted is the time limit that the query itself tells; 0: it tells none.
	hinted time.Duration
	// asked says that the read point was asked for in this statement, and unread, if not nil, why
	// it was not reached: whoever asks again in the statement does not wait again.
	asked  bool
	unread error
	// large says that a batch has become large.
	large    bool
	literals []types.Value
	// held is what the trees and the plans of the text that runs take, if it is much: see holdStatement.
	held   int64
	params []*types.Type // of a prepared statement that is no query
}

// kept bounds how many plans a session keeps memory for, keptPlan how large they are, in bytes.
const (
	kept     = 64
	keptPlan = 64 << 10
)

// begin prepares for a statement.
func (w *scratch) begin() {
	w.setInsertID, w.ofConditions, w.keepsCount, w.reads, w.asked, w.unread, w.params = false, false, false, false, false, nil, nil
	w.open, w.rewritten, w.hinted, w.described = w.open[:0], w.rewritten[:0], 0, nil
}

// rewrote notes that an action changes rows of a table.
func (w *scratch) rewrote(table *record.Schema) {
	if !slices.Contains(w.rewritten, table) {
		w.rewritten = append(w.rewritten, table)
	}
}

// release gives up what refers to the statement's data.
func (w *scratch) release() {
	clear(w.row)
	clear(w.before)
	clear(w.values)
	w.group.release()
	w.store.Reset()
	w.links = w.links[:0]
	if w.large || w.run.Large {
		w.large, w.run.Large = false, false
		w.one, w.batches, w.points, w.setRows, w.trees = nil, nil, nil, nil, nil
		w.changer = changer{}
	}
}

// forget gives up what was made for a plan that no other statement will run, nil if it could not be
// made: all of that refers to its text, which may be long.
func (w *scratch) forget(c *compiled) {
	w.inserter, w.changer = inserter{}, changer{}
	if c == nil {
		return
	}
	delete(w.trees, c)
	delete(w.batches, c)
	if c.query != nil && c.query.Point != nil {
		delete(w.points, c.query.Point.Get)
	}
	if c.change != nil {
		delete(w.points, c.change.point)
		delete(w.setRows, c.change.plan)
	}
}

// note looks at whether a batch has become large.
func (w *scratch) note(b *types.Batch) {
	w.large = w.large || b.MemoryBytes() > exec.LargeBatch
}

// detach forgets what belongs to a transaction session that is gone.
func (w *scratch) detach() {
	w.scans, w.trees = nil, nil
	w.open = w.open[:0]
	clear(w.links[:cap(w.links)])
}

// scan lends an idle scan; giveScan takes it back.
func (s *Session) scan() *txn.Scan {
	w := &s.work
	if n := len(w.scans); n > 0 {
		c := w.scans[n-1]
		w.scans = w.scans[:n-1]
		return c
	}
	return s.txn.NewScan()
}

func (s *Session) giveScan(c *txn.Scan) { s.work.scans = append(s.work.scans, c) }

// rowBatch returns a batch with one row, given by column position, for expressions over
// a table.
func (w *scratch) rowBatch(i *tableInfo, row []types.Value) *types.Batch {
	b := w.one[i]
	if b == nil {
		if w.one == nil || len(w.one) >= kept {
			w.one = map[*tableInfo]*types.Batch{}
		}
		b = types.NewRow(i.types)
		w.one[i] = b
	}
	b.Reset()
	b.AppendRow(row)
	w.note(b)
	return b
}
