package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

var testGroup = [16]byte{1, 2, 3}

// engineOptions are those of a small engine.
func engineOptions() storage.Options {
	return storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, ReadAheadTasks: -1, PurgeTasks: -1}
}

func openEngine(t testing.TB, e env.Env, fsys file.FS) *storage.Engine {
	t.Helper()
	return openEngineWith(t, e, fsys, engineOptions())
}

func openEngineWith(t testing.TB, e env.Env, fsys file.FS, opt storage.Options) *storage.Engine {
	t.Helper()
	opt.Env, opt.FS = e, fsys
	eng, err := storage.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// pipe carries chunks from one task to another. It holds a few.
type pipe struct {
	mu             sync.Mutex
	chunks         [][]byte
	reader, writer env.Parker
	err            error // at the end of the chunks; io.EOF: everything was sent
	closed         bool  // by the reader
	ctx            context.Context
	last           []byte
}

const pipeChunks = 3

var errPipeClosed = errors.New("the reader is gone")

func (p *pipe) Send(chunk []byte) error {
	if len(chunk) > MaxChunk {
		return fmt.Errorf("a chunk of %d bytes", len(chunk))
	}
	chunk = bytes.Clone(chunk)
	for {
		p.mu.Lock()
		switch {
		case p.closed:
			p.mu.Unlock()
			return errPipeClosed
		case p.err != nil:
			p.mu.Unlock()
			return p.err
		case len(p.chunks) < pipeChunks:
			p.chunks = append(p.chunks, chunk)
			p.mu.Unlock()
			p.reader.Unpark()
			return nil
		}
		p.mu.Unlock()
		p.writer.Park()
	}
}

func (p *pipe) Abort() { _ = p.Close() }

// end ends what can be read, after the chunks that are there.
func (p *pipe) end(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	p.reader.Unpark()
	p.writer.Unpark()
}

func (p *pipe) Next() ([]byte, error) {
	for {
		p.mu.Lock()
		if len(p.chunks) > 0 {
			for i := range p.last {
				p.last[i] = 0xee // it is not valid any more
			}
			p.last = p.chunks[0]
			p.chunks = p.chunks[1:]
			p.mu.Unlock()
			p.writer.Unpark()
			return p.last, nil
		}
		err := p.err
		p.mu.Unlock()
		if err == nil {
			err = p.ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		p.reader.ParkFor(50 * time.Millisecond)
	}
}

func (p *pipe) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.writer.Unpark()
	return nil
}

// network brings requests to a source, and lets tests break what it answers.
type network struct {
	env    env.Env
	tasks  *env.Group
	source *Source // of whom is asked; nil: nobody is there
	// cut, if not nil, is asked for each chunk what becomes of it; an error ends the stream behind that.
	cut func(asked *request, n int, chunk []byte) ([]byte, error)
	// refuse, if not nil, is asked before each request.
	refuse func(want Want) error
	// format, if not 0, is the newest that the source knows.
	format uint32

	mu       sync.Mutex
	requests []request
	served   []error
	openPipe []*pipe
}

func newNetwork(e env.Env, s *Source) *network {
	return &network{env: e, tasks: env.NewGroup(e), source: s}
}

func (n *network) open(ctx context.Context, want Want, req []byte) (ChunkReader, error) {
	if n.refuse != nil {
		if err := n.refuse(want); err != nil {
			return nil, err
		}
	}
	if n.source == nil {
		return nil, errors.New("nobody is there")
	}
	q, _ := decodeRequest(req)
	p := &pipe{reader: n.env.NewParker(), writer: n.env.NewParker(), ctx: ctx}
	n.mu.Lock()
	n.requests = append(n.requests, q)
	n.openPipe = append(n.openPipe, p)
	n.mu.Unlock()
	var w ChunkWriter = p
	if n.cut != nil {
		w = &cutter{n: n, q: &q, p: p}
	}
	req = bytes.Clone(req)
	if n.format != 0 {
		q.max = n.format
		req = q.append(nil)
	}
	source := n.source
	n.tasks.Go("serve", func() {
		err := source.Answer(context.Background(), req, w)
		n.mu.Lock()
		n.served = append(n.served, err)
		n.mu.Unlock()
		p.end(io.EOF)
	})
	return p, nil
}

// breakAll cuts all streams.
func (n *network) breakAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.openPipe {
		p.end(errors.New("cut"))
	}
	n.openPipe = nil
}

func (n *network) asked(w what) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.requests {
		if q.what == w {
			count++
		}
	}
	return count
}

type cutter struct {
	n     *network
	q     *request
	p     *pipe
	count int
}

func (c *cutter) Abort() { c.p.Abort() }

func (c *cutter) Send(chunk []byte) error {
	c.count++
	chunk, err := c.n.cut(c.q, c.count, bytes.Clone(chunk))
	if err != nil {
		if len(chunk) > 0 {
			_ = c.p.Send(chunk)
		}
		c.p.end(err)
		return err
	}
	if chunk == nil {
		return nil
	}
	return c.p.Send(chunk)
}

// donor is an engine with a source.
type donor struct {
	t   testing.TB
	eng *storage.Engine
	src *Source
	net *network
}

func newDonor(t testing.TB, e env.Env, fsys file.FS, change func(*SourceOptions)) *donor {
	t.Helper()
	d := &donor{t: t, eng: openEngine(t, e, fsys)}
	d.serve(e, change)
	return d
}

func (d *donor) serve(e env.Env, change func(*SourceOptions)) {
	d.t.Helper()
	opt := SourceOptions{Engine: d.eng, Env: e, Group: testGroup, PartSize: 4 << 10, Membership: func() []byte { return []byte("members") }}
	if change != nil {
		change(&opt)
	}
	var err error
	if d.src, err = NewSource(opt); err != nil {
		d.t.Fatal(err)
	}
	d.net = newNetwork(e, d.src)
}

func (d *donor) close() {
	d.t.Helper()
	d.net.breakAll()
	d.src.Close()
	d.net.tasks.Wait()
	if n := d.eng.Trx.OpenSnapshots(); n != 0 {
		d.t.Errorf("%d snapshots are left open", n)
	}
	if err := d.eng.Close(); err != nil {
		d.t.Error(err)
	}
}

// do runs a transaction.
func do(t testing.TB, eng *storage.Engine, fn func(w *table.Worker) error) {
	t.Helper()
	if _, err := eng.NewSession().Do(trx.Options{}, fn); err != nil {
		t.Fatal(err)
	}
}

// with opens a table for fn.
func with(t testing.TB, eng *storage.Engine, schema, name string, fn func(tbl *table.Table)) {
	t.Helper()
	h, err := eng.Catalog.OpenTable(nil, schema, name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	fn(h.Table())
}

// receiverOptions are those of a receiver from the network into a home.
func receiverOptions(e env.Env, home *Home, n *network) ReceiverOptions {
	return ReceiverOptions{Home: home, Env: e, Group: testGroup, Storage: engineOptions(), Open: n.open, SortMemory: 1 << 20,
		Retry: 10 * time.Millisecond, GiveUp: 2 * time.Second, SpaceRetry: 20 * time.Millisecond, Stall: 10 * time.Second}
}

// patient is for real time: the machine that tests run on may stand still for a while.
func patient(opt ReceiverOptions) ReceiverOptions {
	opt.GiveUp, opt.Stall = 5*time.Minute, 5*time.Minute
	return opt
}

func receive(opt ReceiverOptions) (Manifest, error) {
	r, err := NewReceiver(opt)
	if err != nil {
		return Manifest{}, err
	}
	return r.Run()
}

// same checks that an engine holds what the donor held at the snapshot.
func same(t testing.TB, from, to *storage.Engine, m *Manifest) {
	t.Helper()
	if csn, pos := to.Applied(); csn != m.CSN || pos != m.Position {
		t.Errorf("applied: %d at %+v, want %d at %+v", csn, pos, m.CSN, m.Position)
	}
	want, err := from.StateHash(m.CSN)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.StateHash(m.CSN)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("state hashes differ: %x and %x", got[:8], want[:8])
		difference(t, from, to)
	}
	defs := func(eng *storage.Engine) (all []*record.Table) {
		if err := eng.Catalog.Tables(nil, func(def *record.Table) error { all = append(all, def); return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	a, b := defs(from), defs(to)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("definitions differ")
	}
	for _, def := range a {
		with(t, from, def.Schema, def.Name, func(x *table.Table) {
			with(t, to, def.Schema, def.Name, func(y *table.Table) {
				hidden := x.Schema.Keys[0].Name == dict.HiddenIndex
				if x.NextAuto() != y.NextAuto() || hidden && x.RowID() != y.RowID() {
					t.Errorf("%s: counters %d %d, want %d %d", def.Name, y.NextAuto(), y.RowID(), x.NextAuto(), x.RowID())
				}
			})
		})
	}
	for _, c := range []trx.Counter{trx.TableID, trx.IndexID} {
		x, err := from.Trx.Number(c)
		if err != nil {
			t.Fatal(err)
		}
		if y, err := to.Trx.Number(c); err != nil || x != y {
			t.Errorf("counter %d: %d, want %d (%v)", c, y, x, err)
		}
	}
	if err := to.Check(table.CheckQuiet, func(f string) { t.Errorf("check: %s", f) }); err != nil {
		t.Error(err)
	}
}

// hashOf is the hash of a table's rows.
func hashOf(eng *storage.Engine, tbl *table.Table) string {
	var v trx.View
	eng.Trx.OpenSnapshot(&v)
	defer eng.Trx.CloseSnapshot(&v)
	h, err := eng.Tables.NewWorker().Hash(tbl, &v.Snapshot, nil)
	return fmt.Sprint(h, err)
}

// difference says which tables differ.
func difference(t testing.TB, from, to *storage.Engine) {
	t.Helper()
	for i, a := range from.Catalog.SystemTables() {
		b := to.Catalog.SystemTables()[i]
		if x, y := hashOf(from, a), hashOf(to, b); x != y && dict.IsReplicated(a.ID()) {
			t.Errorf("%s: %s and %s", a.Schema.Name, x, y)
		}
	}
	_ = from.Catalog.Tables(nil, func(def *record.Table) error {
		with(t, from, def.Schema, def.Name, func(a *table.Table) {
			with(t, to, def.Schema, def.Name, func(b *table.Table) {
				if x, y := hashOf(from, a), hashOf(to, b); x != y {
					t.Errorf("%s: %s and %s", def.Name, x, y)
				}
			})
		})
		return nil
	})
}

// openReceived swaps, and opens what was received.
func openReceived(t testing.TB, e env.Env, home *Home) *storage.Engine {
	t.Helper()
	if err := home.Swap(nil); err != nil {
		t.Fatal(err)
	}
	return openEngine(t, e, home.Data())
}

func openHome(t testing.TB, fsys file.FS) *Home {
	t.Helper()
	h, err := OpenHome(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
