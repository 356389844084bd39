package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// bulky is a log some of whose transactions are large: their events lie in files.
type bulky struct {
	entries []txntest.Entry
	files   map[uint64][]byte // by index
	large   []*largeTxn
	coder   *zstd.Encoder
	rng     *rand.Rand

	mu             sync.Mutex // guards what follows, and files
	opened, closed int
}

// largeTxn is a transaction of kind entry.Large.
type largeTxn struct {
	entry.Txn
	index uint64
	after uint64 // index of the newest entry that it depends on
	id    entry.StreamID
}

// enlarge makes transactions of a log large, those that pick says.
func enlarge(entries []txntest.Entry, rng *rand.Rand, pick func(t *entry.Txn) bool) (*bulky, error) {
	coder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	b := &bulky{files: map[uint64][]byte{}, coder: coder, rng: rng}
	indexOf := map[uint64]uint64{} // by number
	for _, old := range entries {
		e, stored, err := entry.Parse(old.Data)
		if err != nil {
			return nil, err
		}
		plain, err := e.Unpack(z, stored, nil)
		if err != nil {
			return nil, err
		}
		var group []entry.Txn
		r := entry.NewReader(&e, plain)
		for {
			var t entry.Txn
			more, err := r.Next(&t)
			if err != nil {
				return nil, err
			}
			if !more || t.Flags&entry.SchemaFlag == 0 && pick(&t) {
				b.plain(&e, group, old.Term)
				group = nil
			}
			if !more {
				break
			}
			if t.Flags&entry.SchemaFlag == 0 && pick(&t) {
				x := &largeTxn{Txn: t, after: indexOf[t.DependsOn]}
				if err := b.add(&e, x, old.Term); err != nil {
					return nil, err
				}
			} else {
				group = append(group, t)
			}
			indexOf[t.Number] = uint64(len(b.entries) + 1)
			if len(group) == 0 {
				indexOf[t.Number] = uint64(len(b.entries))
			}
		}
	}
	return b, nil
}

// plain adds an entry of ordinary transactions.
func (b *bulky) plain(e *entry.Envelope, group []entry.Txn, term uint64) {
	if len(group) == 0 {
		return
	}
	var raw []byte
	for i := range group {
		raw = entry.AppendTxn(raw, &group[i], e.Time)
	}
	n := *e
	n.Codec, n.First, n.Count, n.RawLength = entry.Plain, group[0].Number, uint32(len(group)), uint32(len(raw))
	b.append(&n, raw, term)
}

func (b *bulky) append(e *entry.Envelope, raw []byte, term uint64) {
	data := make([]byte, entry.EnvelopeSize)
	e.Put(data)
	b.entries = append(b.entries, txntest.Entry{Index: uint64(len(b.entries) + 1), Term: term, Data: append(data, raw...)})
}

// add adds an entry of kind Large.
func (b *bulky) add(e *entry.Envelope, t *largeTxn, term uint64) error {
	t.index = uint64(len(b.entries) + 1)
	t.id = entry.StreamID{Term: term, Member: 1, Start: 7, Number: t.index}
	frames, l, err := b.frames(t.Events)
	if err != nil {
		return err
	}
	l.ID = t.id
	b.files[t.index] = append(make([]byte, body.Offset), frames...)
	events := t.Events
	t.Txn.Events = nil
	raw := entry.AppendLarge(nil, &l, &t.Txn, e.Time)
	t.Txn.Events = events
	b.append(&entry.Envelope{Kind: entry.Large, Flags: entry.FlagRotate | e.Flags&entry.FlagBarrier, FileVersion: entry.LargeVersion, Term: e.Term,
		First: t.Number, Count: 1, Time: e.Time, RawLength: uint32(len(raw))}, raw, term)
	b.large = append(b.large, t)
	return nil
}

// frames makes a body of events, cut at random.
func (b *bulky) frames(events []byte) ([]byte, entry.LargeBody, error) {
	var x body.Index
	var all []byte
	runs, err := cut(events, b.rng)
	for _, r := range runs {
		var h body.Header
		all, h = b.frame(all, x.Chain(), r)
		x.Add(h, 0)
	}
	return all, x.Describe(), err
}

// frame appends a frame, compressed or not.
func (b *bulky) frame(dst []byte, before uint32, r run) ([]byte, body.Header) {
	z := b.coder
	if b.rng.IntN(3) == 0 {
		z = nil
	}
	return body.AppendFrame(dst, z, before, r.events, r.count)
}

// run is a run of whole events that can be read without others.
type run struct {
	events []byte
	count  int
}

// cut cuts events into runs at random.
func cut(events []byte, rng *rand.Rand) (runs []run, err error) {
	r := event.NewReader(events)
	var lastMap []byte
	var now run
	mapped := false
	for {
		var e event.Event
		more, err := r.Next(&e)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		switch {
		case e.Type == event.TypeTableMap:
			lastMap, mapped = e.Raw, true
		case e.Type.IsRows() && !mapped:
			now.events, now.count, mapped = append(now.events, lastMap...), now.count+1, true
		}
		now.events = append(now.events, e.Raw...)
		now.count++
		if e.Type != event.TypeTableMap && rng.IntN(2) == 0 {
			runs, now, mapped = append(runs, now), run{}, false
		}
	}
	if now.count > 0 {
		runs = append(runs, now)
	}
	return runs, nil
}

// bodyFile is one of the files of a bulky log.
type bodyFile struct {
	*bytes.Reader
	b *bulky
}

func (f bodyFile) Close() error {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.b.closed++
	return nil
}

// open is apply.Options.OpenBody.
func (b *bulky) open(index uint64) (apply.Body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := b.files[index]
	if data == nil {
		return nil, fmt.Errorf("entry %d has no body", index)
	}
	b.opened++
	return bodyFile{bytes.NewReader(data), b}, nil
}

// some picks about one of n transactions that have more than table maps.
func some(rng *rand.Rand, n int) func(t *entry.Txn) bool {
	picked := map[uint64]bool{}
	return func(t *entry.Txn) bool {
		if _, asked := picked[t.Number]; !asked {
			picked[t.Number] = len(unitsOf(t.Events)) > 0 && rng.IntN(n) == 0
		}
		return picked[t.Number]
	}
}

// TestLarge: it makes no difference whether transactions lie in entries or behind them, through
// restarts in the middle too.
func TestLarge(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		l, err := newLeader(sim, seed, nil)
		if err != nil {
			return err
		}
		l.log.Zstd = seed%2 == 0
		if err := l.load(sim, seed, 1+int(seed%4), 40, seed%3 != 2); err != nil {
			return err
		}
		rng := newRand(seed)
		b, err := enlarge(l.log.Entries(), rng, some(rng, 3))
		if err != nil {
			return err
		}
		eng, err := openEngine(simfile.New(sim, seed+100), sim)
		if err != nil {
			return err
		}
		tokens := 0
		for stops := 0; ; stops++ {
			a, err := apply.New(apply.Options{Env: sim, Engine: eng.Engine, Workers: 1 + int(seed%8), MemoryMax: 4 << 20, OpenBody: b.open,
				Extra: func(e *apply.Applied) (*trx.Trx, error) {
					if e.Envelope.Kind == entry.Large {
						tokens += len(e.Tokens)
					}
					return nil, nil
				}})
			if err != nil {
				return err
			}
			if stops < 4 {
				_, pos := eng.Applied()
				if err := feed(a, b.entries[:min(len(b.entries), int(pos.Index)+1+rng.IntN(20))]); err != nil {
					return err
				}
				env.Sleep(sim, time.Duration(rng.IntN(1000))*time.Microsecond)
				if err := a.Stop(); err != nil {
					return err
				}
				continue
			}
			if err := errors.Join(feed(a, b.entries), a.Drain()); err != nil {
				return err
			}
			if s := a.Stats(); s.PendingBytes != 0 {
				return fmt.Errorf("%d bytes are pending", s.PendingBytes)
			}
			if err := a.Stop(); err != nil {
				return err
			}
			break
		}
		want := 0
		for _, x := range b.large {
			if x.Flags&entry.TokenFlag != 0 {
				want++
			}
		}
		if b.opened < len(b.large) || b.opened != b.closed || tokens < want || n(l) != eng.Trx.LastCommitted() {
			return fmt.Errorf("of %d bodies %d were opened and %d closed; %d of %d tokens; applied %d of %d", len(b.large), b.opened, b.closed,
				tokens, want, eng.Trx.LastCommitted(), n(l))
		}
		return errors.Join(sameStates(l.eng, eng), eng.close(), l.close())
	})
}

// n is the number of a leader's last transaction.
func n(l *leader) uint64 { return l.eng.Trx.LastCommitted() }

// largePair is a pair whose log is an insert of many rows, made large, and more.
func largePair(e env.Env, rows int64, more func(p *pair) error) (*pair, *bulky, error) {
	p, err := newPair(e)
	if err != nil {
		return nil, nil, err
	}
	if err := p.rows(func(t *txn.Table) error {
		for i := range rows {
			if err := p.s.Insert(t, []types.Value{types.NewInt(i), types.NewInt(0), types.NewString(strings.Repeat("long ", 400))}, false); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	number := n(p.leader)
	if more != nil {
		if err := more(p); err != nil {
			return nil, nil, err
		}
	}
	b, err := enlarge(p.log.Entries(), newRand(1), func(t *entry.Txn) bool { return t.Number == number })
	return p, b, err
}

func (p *pair) closeAll() error { return errors.Join(p.s.Close(), p.to.close(), p.leader.close()) }

// TestDamagedBody: the log is told of a body that is not what the entry says, and if it can be
// repaired, nothing is lost; else the applier stops.
func TestDamagedBody(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(b *bulky, data []byte) []byte
	}{
		{"a bit", func(b *bulky, data []byte) []byte { data[body.Offset+len(data[body.Offset:])/2] ^= 1; return data }},
		{"cut off", func(b *bulky, data []byte) []byte { return data[:len(data)-30] }},
		{"another body", func(b *bulky, data []byte) []byte {
			frames, _, _ := b.frames(b.large[0].Events)
			return append(data[:body.Offset:body.Offset], frames...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, b, err := largePair(env.Real(), 100, func(p *pair) error { return errors.Join(p.set(1, 5), p.insert(1000, "x")) })
			must(t, err)
			index := b.large[0].index
			good := b.files[index]
			b.files[index] = c.spoil(b, bytes.Clone(good))
			lost := errors.New("nobody has it")
			a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine, OpenBody: b.open,
				Damaged: func(at uint64, err error) error {
					if at != index || !errors.Is(err, body.ErrCorrupt) {
						t.Errorf("entry %d: %v", at, err)
					}
					return lost
				}})
			must(t, err)
			if err := errors.Join(feed(a, b.entries), a.Drain()); !errors.Is(err, lost) {
				t.Errorf("the applier says %v", err)
			}
			_ = a.Stop()
			repaired := 0
			a, err = apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine, OpenBody: b.open, RetryEvery: time.Millisecond,
				Damaged: func(uint64, error) error {
					if repaired++; repaired == 2 {
						b.files[index] = good
					}
					return nil
				}})
			must(t, err)
			must(t, errors.Join(feed(a, b.entries), a.Drain()))
			if repaired != 2 {
				t.Errorf("repaired %d times", repaired)
			}
			must(t, errors.Join(sameStates(p.eng, p.to), a.Stop(), p.closeAll()))
		})
	}
}

// TestLargeDiskFull: a large transaction waits for room in its place, and Stop takes back what
// there is of it.
func TestLargeDiskFull(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		p, b, err := largePair(sim, 300, func(p *pair) error { return p.set(1, 5) })
		if err != nil {
			return err
		}
		opt := apply.Options{Env: sim, Engine: p.to.Engine, Workers: 1 + int(seed%4), OpenBody: b.open}
		a, err := apply.New(opt)
		if err != nil {
			return err
		}
		p.fs.SetCapacity(p.fs.Used() + 100_000)
		if err := feed(a, b.entries); err != nil {
			return err
		}
		if err := a.WaitApplied(uint64(len(b.entries)), time.Second); !errors.Is(err, apply.ErrTimeout) || a.Stats().State != apply.NoSpace {
			return fmt.Errorf("state %v: %w", a.Stats().State, err)
		}
		if seed%2 == 0 {
			if err := a.Stop(); err != nil {
				return err
			}
			if n := p.to.Trx.Count(); n != 0 {
				return fmt.Errorf("%d transactions are left", n)
			}
			if a, err = apply.New(opt); err != nil {
				return err
			}
			if err := feed(a, b.entries); err != nil {
				return err
			}
		}
		p.fs.SetCapacity(0)
		if err := a.Drain(); err != nil {
			return err
		}
		return errors.Join(sameStates(p.eng, p.to), a.Stop(), p.closeAll())
	})
}

// TestLargeDiverged: a row of a large transaction that does not fit stops the applier, and so does
// such a transaction where bodies are not known.
func TestLargeDiverged(t *testing.T) {
	p, b, err := largePair(env.Real(), 10, nil)
	must(t, err)
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine})
	must(t, err)
	if err := errors.Join(feed(a, b.entries), a.Drain()); err == nil || !strings.Contains(err.Error(), "bodies") {
		t.Errorf("without bodies: %v", err)
	}
	_ = a.Stop()
	must(t, p.insert(5000, "x"))
	more, err := enlarge(p.log.Entries(), newRand(2), func(t *entry.Txn) bool { return t.Number == n(p.leader) })
	must(t, err)
	last := more.large[0]
	a, err = apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine, OpenBody: func(index uint64) (apply.Body, error) {
		return more.open(last.index)
	}})
	must(t, err)
	must(t, errors.Join(feed(a, more.entries), a.Drain()))
	again := more.entries[last.index-1]
	env, stored, err := entry.Parse(again.Data)
	must(t, err)
	env.First++
	data := make([]byte, entry.EnvelopeSize)
	env.Put(data)
	err = errors.Join(a.Submit(apply.Entry{Index: last.index + 1, Term: 1, Data: append(data, stored...)}), a.Drain())
	var diverged *apply.DivergedError
	if !errors.As(err, &diverged) || diverged.Index != last.index+1 || diverged.Table != "db.t" {
		t.Errorf("the applier says %v", err)
	}
	_ = a.Stop()
	must(t, p.closeAll())
}
