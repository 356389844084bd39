package tracing_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/server/tracing"
	"github.com/triremedb/trireme/server/tracing/tracingtest"
)

// BenchmarkBegin is what a request costs that is not traced.
func BenchmarkBegin(b *testing.B) {
	r, err := tracing.Open(tracing.Options{Endpoint: "127.0.0.1:1", Ratio: 0.01, PerSecond: 100, Queue: 64})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Begin(trace.Context{}, "app")
		}
	})
}

// BenchmarkPointSelect reads a row by its key, without a network: with nothing traced, the defaults, all
// that the limit lets through, and each statement.
func BenchmarkPointSelect(b *testing.B) {
	for _, c := range []struct {
		name  string
		ratio float64
		most  int
	}{{"off", 0, 0}, {"ratio=0.01", 0.01, 100}, {"ratio=1", 1, 100}, {"all", 1, 1_000_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			o := sessiontest.Options{Dir: b.TempDir(), Discard: true}
			if c.most > 0 {
				r, err := tracing.Open(tracing.Options{Endpoint: tracingtest.New(b).Addr(), Ratio: c.ratio, PerSecond: c.most, Queue: 2048})
				if err != nil {
					b.Fatal(err)
				}
				r.Start(tracing.Node{})
				b.Cleanup(r.Close)
				o.Trace = r
			}
			r := sessiontest.New(b, o)
			if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
				b.Fatal(err)
			}
			r.CreateSchema("sbtest")
			s := r.Open(session.ConnectionInfo{Schema: "sbtest", User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, c CHAR(120))")
			texts := make([]string, 1024)
			for i := range texts {
				r.Exec(s, fmt.Sprintf("INSERT INTO t VALUES (%d, 'c-%d')", i, i))
				texts[i] = fmt.Sprintf("SELECT c FROM t WHERE id=%d", i)
			}
			ctx := context.Background()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := s.Query(ctx, texts[i%len(texts)], sessiontest.Discard); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
