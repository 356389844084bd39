package servers

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for what has to come.
const Patience = 2 * time.Minute

// Test starts a group for a test.
func Test(t testing.TB, o Options) *Group {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Binary == "" {
		binary, err := Build(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		o.Binary = binary
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	Start(t, g)
	return g
}

// Start starts a group that New has made, for a test.
func Start(t testing.TB, g *Group) {
	t.Helper()
	t.Cleanup(func() {
		g.Kill()
		for _, n := range g.Nodes {
			if t.Failed() {
				t.Logf("node %d said:\n%s", n.Number, n.LastWords())
			}
		}
	})
	if err := g.Start(Patience); err != nil {
		t.Fatal(err)
	}
}

// TestMariaDB starts a MariaDB for a test.
func TestMariaDB(t testing.TB, settings ...string) *MariaDB {
	t.Helper()
	log := filepath.Join(t.TempDir(), "mariadb.log")
	m, err := StartMariaDB(log, Patience, settings...)
	if err != nil {
		t.Fatalf("%v\n%s", err, lastWords(log))
	}
	t.Cleanup(func() {
		m.Remove()
		if t.Failed() {
			t.Logf("MariaDB said:\n%s", m.LastWords())
		}
	})
	return m
}

// Open returns a pool of connections for a test.
func Open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Run runs statements, one after the other, which must not fail.
func Run(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%.300s: %v", s, err)
		}
	}
}

// Querier is a connection or a pool of them.
type Querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// Text runs a query, which must not fail, and returns its rows as Rows does.
func Text(t testing.TB, db Querier, query string, args ...any) string {
	t.Helper()
	rows, err := Rows(db, query, args...)
	if err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	return rows
}

// Rows runs a query and returns its rows as lines, columns separated by tabs.
func Rows(db Querier, query string, args ...any) (string, error) {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		for i, v := range values {
			if i > 0 {
				out.WriteByte('\t')
			}
			if v.Valid {
				out.WriteString(v.String)
			} else {
				out.WriteString("NULL")
			}
		}
		out.WriteByte('\n')
	}
	return out.String(), rows.Err()
}
