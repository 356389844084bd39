package apply_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/replication/apply"
)

// recorder keeps the spans, and draws contexts by counting.
type recorder struct {
	mu    sync.Mutex
	drawn uint64
	spans []*trace.Span
}

func (r *recorder) Begin(trace.Context, string) trace.Context { return trace.Context{} }

func (r *recorder) Child(parent trace.Context) trace.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drawn++
	binary.BigEndian.PutUint64(parent.Span[:], 1<<63|r.drawn)
	return parent
}

func (r *recorder) Record(s *trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, s)
}

// TestSpans: each transaction that is part of a trace has one span on the member that applies
// it, below the one in the log; the others have none. What is applied again after a restart has
// a span again.
func TestSpans(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		p.log.Zstd = seed%2 == 0
		traced := map[uint64]trace.Context{} // by the transaction's number
		rows := map[uint64]int64{}
		rng := newRand(seed)
		for id := int64(0); id < 60; {
			var c trace.Context
			if rng.IntN(2) == 0 {
				binary.BigEndian.PutUint64(c.Trace[:], 1+uint64(id))
				binary.BigEndian.PutUint64(c.Span[:], 1000+uint64(id))
			}
			count := 1 + rng.Int64N(3)
			if err := p.rows(func(t *txn.Table) error {
				for range count {
					if err := p.s.Insert(t, []types.Value{types.NewInt(id), types.NewInt(0), types.NewString("text")}, false); err != nil {
						return err
					}
					id++
				}
				p.s.Trace(c)
				return nil
			}); err != nil {
				return err
			}
			if c.Valid() {
				number := p.eng.Trx.LastCommitted()
				traced[number], rows[number] = c, count
			}
		}
		entries := p.log.Entries()
		rec := &recorder{}
		run := func(part int) error {
			begin := sim.Now()
			a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 1 + int(seed%4), Trace: rec, Member: 7})
			if err != nil {
				return err
			}
			_, from := a.Applied()
			rec.spans = nil
			if err := errors.Join(feed(a, entries[:part]), a.Drain()); err != nil {
				return err
			}
			_, to := a.Applied()
			want := 0
			for n := range traced {
				if n > from && n <= to {
					want++
				}
			}
			if len(rec.spans) != want || to > from && want == 0 {
				return fmt.Errorf("%d spans of %d transactions that are traced, from %d to %d", len(rec.spans), want, from+1, to)
			}
			last := int64(0)
			for _, s := range rec.spans {
				is := map[string]int64{}
				for _, at := range s.Attributes {
					is[at.Key] = at.Number
				}
				number := uint64(is["trireme.transaction"])
				c := traced[number]
				e := entries[is["trireme.log_index"]-1]
				switch {
				case s.Name != "apply" || s.Kind != trace.Consumer || s.Error != "" || len(is) != 5:
					return fmt.Errorf("%+v", s)
				case s.Trace != c.Trace || s.Parent != c.Span || s.Span == c.Span:
					return fmt.Errorf("transaction %d of %v has %v below %x", number, c, s.Context, s.Parent)
				case is["trireme.member"] != 7 || is["trireme.rows"] != rows[number] || e.Index != uint64(is["trireme.log_index"]) || is["trireme.wait_us"] < 0:
					return fmt.Errorf("transaction %d: %v", number, is)
				case s.Start.Before(begin) || s.End.Before(s.Start) || s.End.After(sim.Now()):
					return fmt.Errorf("transaction %d was applied from %v to %v", number, s.Start, s.End)
				case int64(number) <= last:
					return fmt.Errorf("transaction %d is told of behind %d", number, last)
				}
				last = int64(number)
			}
			return a.Stop()
		}
		if err := run(len(entries) / 2); err != nil {
			return err
		}
		if err := run(len(entries)); err != nil {
			return err
		}
		return errors.Join(p.s.Close(), p.to.close(), p.close())
	})
}
