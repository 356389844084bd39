//go:build oracles

package oracle

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

var (
	count = flag.Int("oracle.n", 2000, "queries")
	seed  = flag.Uint64("oracle.seed", 1, "first seed")
	most  = flag.Int("oracle.most", 10, "differences to show")
	only  = flag.String("oracle.only", "", "kind of queries: windows; empty: all")
)

func open(t *testing.T, dsn string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"} {
		if _, err := c.ExecContext(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// rows runs a query and returns its rows as text, sorted. Floating-point numbers are
// rounded: the last digits depend on the order of additions.
func rows(c *sql.Conn, query string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	types, err := r.ColumnTypes()
	if err != nil {
		return nil, err
	}
	var out []string
	for r.Next() {
		values := make([]sql.NullString, len(types))
		into := make([]any, len(types))
		for i := range values {
			into[i] = &values[i]
		}
		if err := r.Scan(into...); err != nil {
			return nil, err
		}
		var line []string
		for i, v := range values {
			switch {
			case !v.Valid:
				line = append(line, "NULL")
			case strings.Contains(types[i].DatabaseTypeName(), "DOUBLE"):
				f, _ := strconv.ParseFloat(v.String, 64)
				line = append(line, strconv.FormatFloat(math.Abs(f)*sign(f), 'g', 10, 64)) // -0 is 0
			default:
				// Of texts that are equal under their collation any may stand for all.
				line = append(line, strings.ReplaceAll(strings.ToLower(v.String), "ä", "a"))
			}
		}
		out = append(out, strings.Join(line, " | "))
	}
	slices.Sort(out)
	return out, r.Err()
}

// same reports whether both servers gave the same. Which rows meet an overflow (1690)
// depends on the order in which conditions are looked at.
func same(got []string, err error, want []string, wantErr error) bool {
	if err == nil && wantErr == nil {
		return slices.Equal(got, want)
	}
	a, b := errorNumber(err), errorNumber(wantErr)
	return a == b || a == 1690 || b == 1690
}

func errorNumber(err error) uint16 {
	var e *mysql.MySQLError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Number
	}
	return math.MaxUint16
}

// TestOracle runs random queries here and there. It needs Debian's package mariadb-server.
func TestOracle(t *testing.T) {
	charset := func(c *mysql.Config) { c.Params = map[string]string{"charset": "utf8mb4"} }
	ours, theirs := servers.Test(t, servers.Options{}).Nodes[0], servers.TestMariaDB(t)
	a, b := open(t, ours.DSN("", charset)), open(t, theirs.DSN("", charset))
	shown, bad := 0, 0
	for s := *seed; s < *seed+uint64((*count+99)/100); s++ {
		g := &generator{Rand: rand.New(rand.NewPCG(s, 1)), tables: []string{"t1", "t2", "t3"}}
		statements := []string{"DROP DATABASE IF EXISTS oracle", "CREATE DATABASE oracle", "USE oracle"}
		for i, name := range g.tables {
			statements = append(statements, g.create(name), g.insert(name, []int{30, 12, 3}[i]))
		}
		for _, st := range statements {
			for _, c := range []*sql.Conn{a, b} {
				if _, err := c.ExecContext(context.Background(), st); err != nil {
					t.Fatalf("seed %d: %s: %v", s, st, err)
				}
			}
		}
		for q := range 100 {
			text, _ := g.query()
			if *only == "windows" || *only == "" && q%4 == 0 {
				text = g.windows()
			}
			want, wantErr := rows(b, text)
			got, err := rows(a, text)
			if same(got, err, want, wantErr) {
				continue
			}
			bad++
			if shown < *most {
				shown++
				t.Errorf("seed %d, query %d: %s\n ours: %s\ntheirs: %s", s, q, text, show(got, err), show(want, wantErr))
			}
		}
	}
	t.Logf("%d of %d queries differ", bad, *count)
}

func show(rows []string, err error) string {
	if err != nil {
		return err.Error()
	}
	if len(rows) > 12 {
		return fmt.Sprintf("%d rows: %s ...", len(rows), strings.Join(rows[:12], "\n\t"))
	}
	return fmt.Sprintf("%d rows: %s", len(rows), strings.Join(rows, "\n\t"))
}

// sign is -1 of negative numbers, and 1 of others, -0 too.
func sign(f float64) float64 {
	if f < 0 {
		return -1
	}
	return 1
}
