package session_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// benchRig has a table as sysbench makes it.
func benchRig(b testing.TB) (*sessiontest.Rig, *session.Session) {
	r := sessiontest.New(b, sessiontest.Options{Dir: b.TempDir(), Discard: true, Audit: func(session.AuditedStatement) {}}) // as in a node
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		b.Fatal(err)
	}
	r.CreateSchema("sbtest")
	s := r.Open(session.ConnectionInfo{Schema: "sbtest", User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	r.Exec(s, `CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL,
		c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id), KEY k_1 (k))`)
	r.Exec(s, "BEGIN")
	for i := 1; i <= 10000; i++ {
		r.Exec(s, fmt.Sprintf("INSERT INTO sbtest1 (k, c, pad) VALUES (%d, 'c-%d-68487932199-96439406143-93774651418', 'pad-%d')", i%5000, i, i))
	}
	r.Exec(s, "COMMIT")
	return r, s
}

func benchText(b *testing.B, text func(i int) string) {
	r, s := benchRig(b)
	texts := make([]string, 1024)
	for i := range texts {
		texts[i] = text(i)
	}
	ctx := context.Background()
	for i := range 100 {
		r.Exec(s, texts[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := s.Query(ctx, texts[i%len(texts)], sessiontest.Discard); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkPointSelect(b *testing.B) {
	benchText(b, func(i int) string { return fmt.Sprintf("SELECT c FROM sbtest1 WHERE id=%d", i*9+1) })
}

func BenchmarkUpdateNonIndex(b *testing.B) {
	benchText(b, func(i int) string { return fmt.Sprintf("UPDATE sbtest1 SET c='new-%d' WHERE id=%d", i, i*9+1) })
}

func BenchmarkUpdateIndex(b *testing.B) {
	benchText(b, func(i int) string { return fmt.Sprintf("UPDATE sbtest1 SET k=k+1 WHERE id=%d", i*9+1) })
}

func BenchmarkRangeSum(b *testing.B) {
	benchText(b, func(i int) string {
		return fmt.Sprintf("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN %d AND %d", i*9+1, i*9+100)
	})
}

func BenchmarkRangeDistinct(b *testing.B) {
	benchText(b, func(i int) string {
		return fmt.Sprintf("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN %d AND %d ORDER BY c", i*9+1, i*9+100)
	})
}

func benchPrepared(b *testing.B, sql string, args func(i int) []session.Arg) {
	_, s := benchRig(b)
	ctx := context.Background()
	p, err := s.Prepare(ctx, sql)
	if err != nil {
		b.Fatal(err)
	}
	all := make([][]session.Arg, 1024)
	for i := range all {
		all[i] = args(i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := s.ExecutePrepared(ctx, p, all[i%1024], sessiontest.Discard); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkPreparedSelect(b *testing.B) {
	benchPrepared(b, "SELECT c FROM sbtest1 WHERE id=?", func(i int) []session.Arg { return sessiontest.Args(i*9 + 1) })
}

func BenchmarkPreparedUpdate(b *testing.B) {
	benchPrepared(b, "UPDATE sbtest1 SET c=? WHERE id=?", func(i int) []session.Arg {
		return sessiontest.Args(fmt.Sprintf("new %d", i), i*9+1)
	})
}

func BenchmarkPreparedInsert(b *testing.B) {
	benchPrepared(b, "INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)", func(i int) []session.Arg {
		return sessiontest.Args(i, fmt.Sprintf("new %d", i), "pad")
	})
}

// A delete and an insert of the same row in one transaction, as in sysbench.
func BenchmarkTransaction(b *testing.B) {
	_, s := benchRig(b)
	ctx := context.Background()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		id := i%9000 + 1
		for _, text := range []string{"BEGIN", fmt.Sprintf("DELETE FROM sbtest1 WHERE id=%d", id),
			fmt.Sprintf("INSERT INTO sbtest1 (id, k, c, pad) VALUES (%d, 5, 'c', 'pad')", id), "COMMIT"} {
			if err := s.Query(ctx, text, sessiontest.Discard); err != nil {
				b.Fatal(err)
			}
		}
		i++
	}
}

func BenchmarkPreparedRange(b *testing.B) {
	benchPrepared(b, "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c", func(i int) []session.Arg {
		return sessiontest.Args(i*9+1, i*9+100)
	})
}
