package session

import (
	"context"
	"errors"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// A rebuild beside running changes:
//
//	watch    who uses the table ends; from then on it is noted which rows are changed
//	copy     a reader copies what a snapshot of it has into the new table
//	rounds   as long as many rows have been changed: another snapshot is taken, and of each
//	         row that may differ in it the copy is taken away and made again
//	replace  the statement's transaction makes one more round, takes the table for itself, makes
//	         the last one, and puts the new table in its place
//
// Nobody waits but at the beginning and at the end, for as long as transactions that use the
// table take to end, and for the few rows of the last round.
//
// Invariant: between two rounds the new table holds what the snapshot of the round before
// has, row by row. So the key of a copy, which may be another column's value, is found by
// reading the row in that snapshot.

const (
	// roundSmall is how many changed rows are left to the last round, which has the table for itself.
	roundSmall = 256
	// roundsMax bounds the rounds, for a table that is changed faster than it is copied.
	roundsMax = 64
	// roundBatch is how many rows are read before they are written.
	roundBatch = 256
)

// onlineRebuild is one under way.
type onlineRebuild struct {
	s     *Session
	ch    *catalog.Change
	text  []byte
	keys  *record.Schema // of the old table as it was when the watch began
	watch *txn.Watch
	w     *txn.Session // fills the new table
	made  *record.Table
	c     *copier
	key   []byte
}

// view is a session that has a snapshot of the old table.
type view struct {
	session *txn.Session
	table   *txn.Table
}

// errMoved says that the table's definition was changed before the rebuild had begun.
var errMoved = errors.New("session: the definition has changed")

// onlineCopy reports whether a rebuild can run beside changes: each row of the old table has
// to tell which row of the new one is its copy.
func onlineCopy(ch *catalog.Change) bool {
	next, err := record.Prepare(ch.Table.Clone())
	if err != nil {
		return false
	}
	for i := range next.Keys[0].Parts {
		col := &next.Columns[next.Keys[0].Parts[i].Column]
		if col.Hidden || col.Generated != "" || col.ID == 0 || ch.Old.Column(col.ID) == nil {
			return false
		}
	}
	return true
}

// watchTable begins to watch the table. REQUIRES: the transaction has it for itself.
func (s *Session) watchTable(ch *catalog.Change, text []byte) (*onlineRebuild, error) {
	o, err := s.txn.Open(ch.Old.Schema, ch.Old.Name)
	if err != nil {
		return nil, err
	}
	b := &onlineRebuild{s: s, ch: ch, text: text, keys: o.Table().Schema}
	limit := int64(s.value(varOnlineLog).n)
	if b.watch = s.txn.Watch(ch.Old.Schema, ch.Old.Name, limit); b.watch == nil {
		return nil, errMoved
	}
	return b, nil
}

// run makes the new table and puts it in the old one's place.
func (b *onlineRebuild) run(ctx context.Context) (rows uint64, err error) {
	s := b.s
	defer b.watch.Stop()
	s.setState("copy to tmp table")
	defer s.setState("")
	var readers [2]*txn.Session
	defer func() {
		s.setHelpers(nil) // nobody ends the cleaning up
		if err != nil {
			b.giveUp(ctx)
		}
		for _, r := range append(readers[:], b.w) {
			if r != nil {
				_ = r.Close() // it has changed nothing
			}
		}
	}()
	for i := range readers {
		if readers[i], err = s.m.opt.Backend.NewSession(); err != nil {
			return 0, err
		}
	}
	if b.w, err = s.m.opt.Backend.NewSession(); err != nil {
		return 0, err
	}
	helpers := []*txn.Session{readers[0], readers[1], b.w}
	for _, h := range helpers {
		h.Join(s.txn)
	}
	s.setHelpers(helpers)
	seen, err := b.look(readers[0])
	if err != nil {
		return 0, err
	}
	if err = b.begin(ctx, seen); err != nil {
		return 0, err
	}
	if rows, err = b.c.all(ctx, seen.session, seen.table); err != nil {
		return 0, err
	}
	for n := 0; n < roundsMax && b.watch.Waiting() > roundSmall; n++ {
		if seen, err = b.round(ctx, seen, readers[(n+1)%2]); err != nil {
			return 0, err
		}
	}
	level := uint8(isoRepeatableRead) + 1
	return rows, s.inTransactionAt(ctx, level, func() error { return b.replace(ctx, seen) })
}

// giveUp drops what was made.
func (b *onlineRebuild) giveUp(ctx context.Context) {
	if b.w == nil {
		return
	}
	_ = b.w.Rollback() // it may have no transaction
	b.s.dropCopy(ctx, b.w, b.made)
}

// look begins a transaction with a snapshot of the table. Error: errMoved if that is not what
// is watched.
func (b *onlineRebuild) look(r *txn.Session) (v view, err error) {
	o := txn.BeginOptions{MetadataWait: b.s.seconds(varLockWait)}
	o.ReadOnly = true
	err = r.Begin(o)
	if err == nil {
		err = b.s.interrupted() // the transaction knows nothing of a KILL before it
	}
	if err != nil {
		return v, err
	}
	v = view{session: r}
	if v.table, err = r.Open(b.ch.Old.Schema, b.ch.Old.Name); err != nil {
		return v, err
	}
	if v.table.Table().Schema != b.keys {
		return v, errMoved
	}
	b.watch.Cut()
	_, err = r.Snapshot()
	return v, err
}

// begin makes the new table.
func (b *onlineRebuild) begin(ctx context.Context, seen view) error {
	next := b.s.copyDefinition(b.ch)
	err := within(ctx, b.w, func() (err error) {
		b.made, err = b.s.makeCopy(b.w, next, seen.table.Table().NextAuto())
		return err
	})
	if err != nil {
		b.made = nil
		return err
	}
	b.c, err = b.s.newCopier(b.w, seen.table.Definition(), b.made, b.ch.Old.Name, false)
	return err
}

// round brings the new table from one snapshot to another, which a session takes now.
func (b *onlineRebuild) round(ctx context.Context, seen view, r *txn.Session) (now view, err error) {
	if now, err = b.look(r); err != nil {
		return now, err
	}
	if err := b.follow(ctx, seen, now.session.Get, now.table); err != nil {
		return now, err
	}
	return now, seen.session.Rollback()
}

// getter reads a row by its clustered key.
type getter func(o *txn.Table, key []byte, columns []int, batch *types.Batch) (found bool, err error)

// follow makes the copies of the rows that may have changed anew: as they were they are
// taken away, all of them first, since one may have what was another's unique key; then
// they are made as get has them.
func (b *onlineRebuild) follow(ctx context.Context, seen view, get getter, table *txn.Table) error {
	changed, err := b.watch.Changed()
	if err != nil {
		return err
	}
	if err := b.each(ctx, changed, seen.session.Get, seen.table, b.c.remove); err != nil {
		return err
	}
	if err := b.each(ctx, changed, get, table, b.c.copy); err != nil {
		return err
	}
	return b.c.flush(ctx)
}

// each reads rows and has something done with them, batch by batch.
func (b *onlineRebuild) each(ctx context.Context, keys []string, get getter, table *txn.Table, do func(context.Context) error) error {
	batch := b.c.batch
	batch.Reset()
	for i, key := range keys {
		b.key = append(b.key[:0], key...)
		if _, err := get(table, b.key, b.c.source, batch); err != nil {
			return err
		}
		if batch.Len() < roundBatch && !batch.Full() && i+1 < len(keys) {
			continue
		}
		if err := b.s.interrupted(); err != nil {
			return err
		}
		if err := do(ctx); err != nil {
			return err
		}
		batch.Reset()
	}
	return nil
}

// replace ends the rebuild, in the statement's transaction.
func (b *onlineRebuild) replace(ctx context.Context, seen view) error {
	s, old := b.s, b.ch.Old
	o, err := s.txn.Open(old.Schema, old.Name)
	if err != nil {
		return missingTable(err, old.Schema, old.Name)
	}
	if o.Table().Schema != b.keys {
		return sqlerr.New(sqlerr.TableDefChanged)
	}
	b.watch.Cut()
	if _, err := s.txn.Snapshot(); err != nil {
		return err
	}
	if err := b.follow(ctx, seen, s.txn.Get, o); err != nil {
		return err
	}
	if err := seen.session.Rollback(); err != nil { // so that nobody is left but this transaction
		return err
	}
	names, err := s.follows(b.ch)
	if err != nil {
		return err
	}
	if err := s.txn.LockWatched(b.watch, names...); err != nil {
		return err
	}
	s.urgent = true
	newest := func(o *txn.Table, key []byte, columns []int, batch *types.Batch) (bool, error) {
		return s.txn.GetLocked(o, key, lock.RecordS, lock.Block, columns, batch)
	}
	b.watch.Cut()
	if err := b.follow(ctx, view{s.txn, o}, newest, o); err != nil {
		return err
	}
	if err := s.checkChildren(b.ch); err != nil { // who refers to the table may be others now
		return err
	}
	auto := o.Table().NextAuto()
	if _, err := s.txn.DropTable(old.Schema, old.Name, nil); err != nil {
		return err
	}
	// From here on the transaction has changed something, and is rolled back if this node
	// stops writing. Before, others may have changed rows without the watch.
	if err := b.watch.Err(); err != nil {
		return err
	}
	return s.takePlace(ctx, b.ch, b.made, auto, b.text)
}
