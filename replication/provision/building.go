package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// What a receiver notes in the local area of the new engine, so that a later run can
// go on.
const (
	keySnapshot  = "provision/snapshot"   // number of the receiver, manifest
	keyState     = "provision/state"      // last key of the state that is there
	keyStateDone = "provision/state done" // all of the state is there
	keyTable     = "provision/table/"     // and a number: that table is there
	keyInstalled = "provision/installed"  // everything is there; its value is the manifest
)

// building is an engine that is being built from a snapshot.
type building struct {
	r      *Receiver
	ctx    context.Context
	cancel context.CancelFunc
	eng    *storage.Engine
	watch  env.Parker // of the watchdog
	over   atomic.Bool
	holder env.Parker // of the task that keeps the snapshot
	busy   atomic.Int64

	token     uint64
	manifest  Manifest
	begun     bool // the manifest and the schemas are there
	state     []byte
	stateDone bool
	installed bool
	done      map[uint64]bool // tables
	lastMoved atomic.Int64

	stateParts int64 // that have come

	mu      sync.Mutex // guards the following
	streams []*stream
	last    error
	// taker: the next request goes to the donor that has taken the snapshot, since all were answered from that one on.
	taker  bool
	queue  []tableEntry
	failed error // of a task
}

// isFull reports whether err says that the disk is full.
func isFull(err error) bool { return errors.Is(err, file.ErrNoSpace) }

// whenFull runs fn again, some time later, as long as it fails since the disk is full.
func (b *building) whenFull(fn func() error) error {
	for {
		err := fn()
		if !isFull(err) {
			return err
		}
		b.note(err)
		b.r.waits(1)
		err = b.r.pause(b.ctx, b.r.opt.SpaceRetry)
		b.r.waits(-1)
		if err != nil {
			return err
		}
		b.arrived()
	}
}

// open opens the engine to build, and reads what an earlier run has noted. If that
// cannot be gone on with it is thrown away.
func (b *building) open() error {
	for first := true; ; first = false {
		resumed := false
		err := b.whenFull(func() error {
			fsys, again, err := b.r.opt.Home.receive()
			if err != nil {
				return err
			}
			resumed = again
			opt := b.r.opt.Storage
			opt.FS, opt.Env = fsys, b.r.opt.Env
			b.eng, err = storage.Open(opt)
			return err
		})
		if err == nil {
			if err = b.recall(); err == nil {
				return nil
			}
			err = errors.Join(err, b.eng.Close())
		}
		if !resumed || !first || errors.Is(err, file.ErrLocked) || b.ctx.Err() != nil {
			return fmt.Errorf("provision: opening the new engine: %w", err)
		}
		b.note(err)
		if err := b.r.opt.Home.Discard(); err != nil {
			return err
		}
	}
}

// recall reads what an earlier run has noted.
func (b *building) recall() error {
	b.done = map[uint64]bool{}
	return b.eng.Catalog.EachState(nil, dict.Local, func(key, value []byte) error {
		k := string(key)
		d := &decoder{b: value}
		switch {
		case k == keySnapshot, k == keyInstalled:
			b.token, b.manifest = d.uint64(), d.manifest()
			b.begun, b.installed = true, b.installed || k == keyInstalled
			return d.end()
		case k == keyState:
			b.state = slices.Clone(value)
		case k == keyStateDone:
			b.stateDone = true
		case len(k) > len(keyTable) && k[:len(keyTable)] == keyTable:
			id, err := strconv.ParseUint(k[len(keyTable):], 10, 64)
			b.done[id] = true
			return err
		}
		return nil
	})
}

func tableKey(id uint64) []byte { return strconv.AppendUint([]byte(keyTable), id, 10) }

func (b *building) put(w *table.Worker, key string, value []byte) error {
	return b.eng.Catalog.PutState(w, dict.Local, []byte(key), value)
}

// change runs fn in a transaction without a number.
func (b *building) change(fn func(w *table.Worker) error) error {
	t := b.eng.Trx.Begin(trx.Options{})
	w := b.eng.Tables.NewWorker()
	w.Use(t)
	if err := fn(w); err != nil {
		return errors.Join(err, b.rollback(w))
	}
	return b.commit(t)
}

func (b *building) commit(t *trx.Trx) error {
	if !t.HasChanges() {
		b.eng.Trx.End(t)
		return nil
	}
	t.StartCommit()
	_, pos := b.eng.Trx.Applied()
	if err := b.eng.Trx.CommitGroup([]trx.Commit{{Trx: t}}, pos); err != nil {
		return err // the engine has halted
	}
	b.eng.Catalog.Committed(t)
	b.eng.Trx.End(t)
	return nil
}

func (b *building) rollback(w *table.Worker) error {
	t := w.Trx()
	if err := w.Rollback(); err != nil {
		return err
	}
	b.eng.Catalog.RolledBack(t)
	b.eng.Trx.End(t)
	return nil
}

// receive receives everything that is not there yet.
func (b *building) receive() error {
	if b.installed {
		return nil
	}
	if err := b.snapshot(); err != nil {
		return err
	}
	tables, err := b.catalogue()
	if err != nil {
		return err
	}
	b.r.listed(&b.manifest, tables, b.done)
	if err := b.receiveState(); err != nil {
		return err
	}
	b.queue = slices.DeleteFunc(tables, func(t tableEntry) bool { return b.done[t.id] })
	// The largest first, so that no task is left with one in the end.
	slices.SortFunc(b.queue, func(x, y tableEntry) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.id, y.id))
	})
	return b.receiveTables()
}

// snapshot asks for a snapshot: a new one, or whether the one that was begun is there.
func (b *building) snapshot() error {
	if !b.begun {
		b.token = b.r.opt.Env.Uint64()
	}
	return b.persist(func() int64 { return 0 }, func() error {
		s, err := b.ask(request{what: askSnapshot, fresh: !b.begun, csn: b.manifest.CSN})
		if err != nil {
			return err
		}
		defer s.close()
		var m Manifest
		got := false
		for {
			t, body, done, err := s.next()
			if err != nil {
				return err
			}
			if done {
				break
			}
			d := &decoder{b: body}
			if m = d.manifest(); t != frameManifest || d.end() != nil {
				return fmt.Errorf("%w: a frame of %v instead of a manifest", errDamaged, t)
			}
			got = true
		}
		return b.accept(m, got)
	})
}

// accept checks a manifest and takes a new one over.
func (b *building) accept(m Manifest, got bool) error {
	switch {
	case !got:
		return fmt.Errorf("%w: there is no manifest", errDamaged)
	case m.Format < minFormat || m.Format > FormatVersion:
		return remotef(ErrVersion, "the snapshot is in format %d; this program knows the formats %d to %d: start a newer version", m.Format, minFormat, FormatVersion)
	case m.Group != b.r.opt.Group:
		return remotef(ErrOtherGroup, "the snapshot is of group %x, this member is of group %x", m.Group, b.r.opt.Group)
	case b.begun && m.CSN != b.manifest.CSN:
		return fmt.Errorf("%w: the donor has snapshot %d instead of %d", errDamaged, m.CSN, b.manifest.CSN)
	}
	if !b.begun {
		b.manifest = m
		b.mu.Lock()
		b.taker = true
		b.mu.Unlock()
	}
	b.arrived()
	return nil
}

// catalogue receives the list of tables, and the schemas if they are not there.
func (b *building) catalogue() (tables []tableEntry, err error) {
	var schemas []dict.Schema
	err = b.persist(func() int64 { return 0 }, func() error {
		schemas, tables = nil, nil
		s, err := b.ask(request{what: askCatalogue, csn: b.manifest.CSN})
		if err != nil {
			return err
		}
		defer s.close()
		for {
			t, body, done, err := s.next()
			if done || err != nil {
				return err
			}
			d := &decoder{b: body}
			switch t {
			case frameSchema:
				op, err := txn.DecodeSchemaOp(d.rest())
				if err != nil || op.Kind != txn.OpCreateSchema {
					return fmt.Errorf("%w: schema: %v", errDamaged, err)
				}
				schemas = append(schemas, op.Schema)
			case frameTable:
				tables = append(tables, d.tableEntry())
			default:
				d.fail()
			}
			if d.end() != nil {
				return fmt.Errorf("%w: a malformed frame of %v in the catalogue", errDamaged, t)
			}
			s.got.rows++
		}
	})
	if err != nil || b.begun {
		return tables, err
	}
	return tables, b.whenFull(func() error { return b.begin(schemas) })
}

// begin makes the schemas, and notes what is being received.
func (b *building) begin(schemas []dict.Schema) error {
	err := b.change(func(w *table.Worker) error {
		for _, s := range schemas {
			if _, err := b.eng.Catalog.CreateSchema(w, s); err != nil {
				return fmt.Errorf("provision: making schema %s: %w", s.Name, err)
			}
		}
		return b.put(w, keySnapshot, b.manifest.append(appendUints(nil, b.token)))
	})
	b.begun = err == nil
	return err
}

// receiveState receives the replicated keys and values. They have to hold what the log has changed in them up to the
// manifest's position, since it is applied from there on; they may hold more, which is changed once more then.
func (b *building) receiveState() error {
	if b.stateDone {
		return nil
	}
	dec, err := newDecoder()
	if err != nil {
		return err
	}
	defer dec.Close()
	var raw []byte
	return b.whenFull(func() error {
		return b.persist(func() int64 { return b.stateParts }, func() (err error) {
			raw, err = b.fetchState(dec, raw[:0])
			return err
		})
	})
}

// fetchState receives the state from where an earlier call has got to. Rows that are not whole are collected in raw, which is
// returned to be used again.
func (b *building) fetchState(dec *zstd.Decoder, raw []byte) ([]byte, error) {
	taker := b.asksTaker()
	s, err := b.ask(request{what: askState, csn: b.manifest.CSN, resume: b.state != nil, after: b.state})
	if err != nil {
		return raw, err
	}
	defer s.close()
	for first := true; ; first = false {
		t, body, done, err := s.next()
		switch {
		case err != nil:
			return raw, err
		case first && t == frameApplied:
			if err := b.reaches(body); err != nil {
				return raw, err
			}
			continue
		case first && !taker:
			return raw, remotef(ErrSnapshotGone, "its donor is lost, and the next one does not say how far it has applied the log: it runs an older version")
		case done && len(raw) > 0:
			return raw, errPartial
		case done:
			err := b.change(func(w *table.Worker) error { return b.put(w, keyStateDone, nil) })
			b.stateDone = err == nil
			return raw, err
		case t != framePart:
			return raw, fmt.Errorf("%w: a frame of %v in the state", errDamaged, t)
		}
		var p part
		if p, raw, err = s.unpack(dec, body, raw); err != nil {
			return raw, err
		}
		b.arrived()
		if p.rows == 0 {
			continue
		}
		last := slices.Clone(p.last)
		if err := b.change(func(w *table.Worker) error { return b.putState(w, raw, last) }); err != nil {
			return raw, err
		}
		b.state, raw = last, raw[:0]
		b.stateParts++
	}
}

// reaches checks that the donor of the state has applied the log up to the snapshot's position. One that has not taken the
// snapshot may have its CSN and not have that: the entries in between have no number.
func (b *building) reaches(applied []byte) error {
	d := &decoder{b: applied}
	index := d.uint64()
	if err := d.end(); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if at := b.manifest.Position.Index; index < at {
		return remotef(ErrBehind, "it has applied the log up to entry %d, and the snapshot ends with entry %d", index, at)
	}
	return nil
}

// putState stores some of the state, and notes the last key.
func (b *building) putState(w *table.Worker, raw, last []byte) error {
	d := &decoder{b: raw}
	for len(d.b) > 0 {
		key, value := d.bytes(dict.MaxStateKey), d.bytes(len(raw))
		if d.err != nil {
			return fmt.Errorf("provision: state: %w", d.err)
		}
		if err := b.eng.Catalog.PutState(w, dict.Replicated, key, value); err != nil {
			return err
		}
	}
	return b.put(w, keyState, last)
}

// receiveTables receives the tables of the queue by several tasks.
func (b *building) receiveTables() error {
	tasks := env.NewGroup(b.r.opt.Env)
	for range min(b.r.opt.Streams, len(b.queue)) {
		tasks.Go("provision: table", func() {
			if err := b.work(); err != nil {
				b.mu.Lock()
				if b.failed == nil {
					b.failed = err
				}
				b.mu.Unlock()
				b.cancel() // the others
			}
		})
	}
	tasks.Wait()
	return b.failed
}

// next takes a table from the queue.
func (b *building) next() (tableEntry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 || b.failed != nil {
		return tableEntry{}, false
	}
	t := b.queue[0]
	b.queue = b.queue[1:]
	return t, true
}

// work receives tables until there are none left.
func (b *building) work() error {
	dec, err := newDecoder()
	if err != nil {
		return err
	}
	defer dec.Close()
	for {
		entry, ok := b.next()
		if !ok {
			return nil
		}
		if err := b.whenFull(func() error { return b.table(entry, dec) }); err != nil {
			return err
		}
	}
}

// finish makes what was received the database at its CSN and position.
func (b *building) finish() error {
	b.r.setPhase(Finishing)
	if b.installed {
		return nil
	}
	m, sys := &b.manifest, b.eng.Trx
	if csn, pos := sys.Applied(); csn != m.CSN || pos != m.Position {
		if err := sys.StartAt(m.CSN, m.Position); err != nil {
			return err
		}
	}
	if err := sys.RaiseNumber(trx.TableID, m.NextTable); err != nil {
		return err
	}
	if err := sys.RaiseNumber(trx.IndexID, m.NextIndex); err != nil {
		return err
	}
	return b.whenFull(func() error { return b.change(b.install) })
}

// install puts the member's own state in, and takes the notes away but for one.
func (b *building) install(w *table.Worker) error {
	if fn := b.r.opt.Install; fn != nil {
		if err := fn(b.eng, w, &b.manifest); err != nil {
			return fmt.Errorf("provision: the member's own state: %w", err)
		}
	}
	keys := [][]byte{[]byte(keySnapshot), []byte(keyState), []byte(keyStateDone)}
	for id := range b.done {
		keys = append(keys, tableKey(id))
	}
	slices.SortFunc(keys, slices.Compare)
	for _, key := range keys {
		if err := b.eng.Catalog.DeleteState(w, dict.Local, key); err != nil {
			return err
		}
	}
	return b.put(w, keyInstalled, b.manifest.append(appendUints(nil, b.token)))
}

// release tells the donor that the snapshot is not needed any more. That it does not
// hear of it costs no more than its grace time.
func (b *building) release() {
	s, err := b.ask(request{what: askRelease, csn: b.manifest.CSN, fresh: !b.begun})
	if err != nil {
		return
	}
	defer s.close()
	_, _, _, _ = s.next()
}
