//go:build clients

package clients

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

// wantError wants an error of the server with this number.
func wantError(t *testing.T, err error, number uint16) {
	t.Helper()
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != number {
		t.Errorf("error %d is wanted, not %v", number, err)
	}
}

// ways are how the driver may send values.
var ways = []struct {
	name string
	with func(*mysql.Config)
}{
	{"prepared", func(*mysql.Config) {}},
	{"interpolated", func(c *mysql.Config) { c.InterpolateParams = true }},
	{"TLS", func(c *mysql.Config) { c.TLSConfig = "skip-verify" }},
	{"compressed", func(c *mysql.Config) { _ = c.Apply(mysql.EnableCompression(true)) }},
}

// TestGoValues writes and reads every type of column, by every way, extremes and NULL.
func TestGoValues(t *testing.T) {
	node := serve(t, 1).Nodes[0]
	servers.Run(t, servers.Open(t, node.DSN("", nil)), "CREATE DATABASE go")
	moment := time.Date(2024, 2, 29, 12, 34, 56, 123456000, time.UTC)
	day := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	columns := []struct {
		kind   string
		values []any // as the driver gives them back when prepared
	}{
		{"TINYINT", []any{int64(-128), int64(127)}}, {"TINYINT UNSIGNED", []any{int64(0), int64(255)}},
		{"SMALLINT", []any{int64(-32768), int64(32767)}}, {"SMALLINT UNSIGNED", []any{int64(65535)}},
		{"MEDIUMINT", []any{int64(-8388608), int64(8388607)}}, {"MEDIUMINT UNSIGNED", []any{int64(16777215)}},
		{"INT", []any{int64(math.MinInt32), int64(math.MaxInt32)}}, {"INT UNSIGNED", []any{int64(math.MaxUint32)}},
		{"BIGINT", []any{int64(math.MinInt64), int64(math.MaxInt64), int64(0)}}, {"BIGINT UNSIGNED", []any{uint64(math.MaxUint64)}},
		{"FLOAT", []any{float32(1.5), float32(-3.40282e38)}}, {"DOUBLE", []any{-math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1}},
		{"DECIMAL(65,30)", []any{"99999999999999999999999999999999999.999999999999999999999999999999", "-0.000000000000000000000000000001"}},
		{"DATE", []any{day, time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)}}, {"DATETIME(6)", []any{moment}}, {"DATETIME", []any{moment.Truncate(time.Second)}},
		{"TIMESTAMP(6) NULL", []any{moment, time.Date(2038, 1, 19, 3, 14, 7, 999999000, time.UTC)}},
		{"TIME(6)", []any{"-838:59:58.999999", "00:00:00.000001"}}, {"TIME", []any{"838:59:59"}}, {"YEAR", []any{int64(1901), int64(2155)}},
		{"CHAR(20)", []any{"", "żółć", "it's \"\\ \x00\n\x1a"}}, {"VARCHAR(255)", []any{"🐙", " trails "}}, {"TINYTEXT", []any{"x"}}, {"TEXT", []any{strings.Repeat("a", 65535)}},
		{"MEDIUMTEXT", []any{strings.Repeat("ż", 100000)}}, {"LONGTEXT", []any{strings.Repeat("0123456789", 200000)}},
		{"BINARY(4)", []any{"\x00\xff'\\"}}, {"VARBINARY(255)", []any{"\x00\xff'\\\x1a\n", ""}}, {"TINYBLOB", []any{"\x00"}}, {"BLOB", []any{"\xff\xfe"}},
		{"MEDIUMBLOB", []any{strings.Repeat("\x00\x27", 50000)}}, {"LONGBLOB", []any{strings.Repeat("\x5c\xff", 500000)}},
		{"ENUM('a','it''s')", []any{"it's"}}, {"SET('a','b','c')", []any{"a,c", ""}}, {"JSON", []any{`{"a": [1, null, "ż"]}`, "3"}}, {"BIT(64)", []any{"\xff\xff\xff\xff\xff\xff\xff\xff"}}, {"BIT(3)", []any{"\x05"}},
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			db := servers.Open(t, node.DSN("go", func(c *mysql.Config) { c.ParseTime = true; w.with(c) }))
			for _, c := range columns {
				servers.Run(t, db, "DROP TABLE IF EXISTS v", "CREATE TABLE v (id INT PRIMARY KEY, v "+c.kind+")")
				for i, v := range append(c.values, nil) {
					send := v
					if s, ok := v.(string); ok && (strings.Contains(c.kind, "B") && !strings.Contains(c.kind, "TINYINT")) && !strings.HasPrefix(c.kind, "S") {
						send = []byte(s)
					}
					if _, err := db.Exec("INSERT INTO v VALUES (?, ?)", i, send); err != nil {
						t.Errorf("%s: %.60v: %v", c.kind, v, err)
						continue
					}
					var got any
					if err := db.QueryRow("SELECT v FROM v WHERE id = ?", i).Scan(&got); err != nil {
						t.Errorf("%s: %v", c.kind, err)
						continue
					}
					if b, ok := got.([]byte); ok {
						got = string(b)
					}
					switch v := v.(type) {
					case time.Time:
						if g, ok := got.(time.Time); !ok || !g.Equal(v) {
							t.Errorf("%s: %v, not %v", c.kind, got, v)
						}
					case uint64: // text, above what int64 holds
						if fmt.Sprint(got) != fmt.Sprint(v) {
							t.Errorf("%s: %v, not %v", c.kind, got, v)
						}
					default:
						if got != v {
							t.Errorf("%s: %.60q (%T), not %.60q (%T)", c.kind, got, got, v, v)
						}
					}
				}
			}
		})
	}
}

func TestGoStatements(t *testing.T) {
	node := serve(t, 1).Nodes[0]
	servers.Run(t, servers.Open(t, node.DSN("", nil)), "CREATE DATABASE go")
	t.Run("several statements", func(t *testing.T) {
		db := servers.Open(t, node.DSN("go", func(c *mysql.Config) { c.MultiStatements = true; c.InterpolateParams = true }))
		rows, err := db.Query("CREATE TABLE m (a INT); INSERT INTO m VALUES (1), (?); SELECT a FROM m ORDER BY a; SELECT 'x'", 2)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for {
			for rows.Next() {
				var s string
				if err := rows.Scan(&s); err != nil {
					t.Fatal(err)
				}
				got = append(got, s)
			}
			if !rows.NextResultSet() {
				break
			}
		}
		if s := strings.Join(got, " "); s != "1 2 x" || rows.Err() != nil {
			t.Errorf("%q, %v", s, rows.Err())
		}
		_, err = servers.Open(t, node.DSN("go", nil)).Exec("SELECT 1; SELECT 2")
		wantError(t, err, 1064)
	})
	t.Run("LOAD DATA LOCAL", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "rows")
		if err := os.WriteFile(file, []byte("1\ta\n2\t\\N\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		mysql.RegisterLocalFile(file)
		conn, err := servers.Open(t, node.DSN("go", nil)).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		servers.Run(t, conn, "CREATE TABLE loaded (a INT PRIMARY KEY, b VARCHAR(10))", "SET GLOBAL local_infile = OFF")
		load := "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE loaded"
		_, err = conn.ExecContext(t.Context(), load)
		wantError(t, err, 3948)
		servers.Run(t, conn, "SET GLOBAL local_infile = ON", load)
		var n, b int
		if err := conn.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(b) FROM loaded").Scan(&n, &b); err != nil || n != 2 || b != 1 {
			t.Errorf("%d rows, %d b, %v", n, b, err)
		}
	})
	t.Run("transactions", func(t *testing.T) {
		db := servers.Open(t, node.DSN("go", nil))
		servers.Run(t, db, "CREATE TABLE x (id INT PRIMARY KEY)")
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		servers.Run(t, tx, "INSERT INTO x VALUES (1)")
		if got := servers.Text(t, db, "SELECT * FROM x"); got != "" {
			t.Errorf("%q is seen", got)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if tx, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}); err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec("INSERT INTO x VALUES (1)")
		wantError(t, err, 1792)
		_ = tx.Rollback()
		_, err = db.Exec("INSERT INTO x VALUES (1), (1)")
		wantError(t, err, 1062)
	})
	t.Run("cancellation and KILL", func(t *testing.T) {
		db := servers.Open(t, node.DSN("go", nil))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := db.ExecContext(ctx, "DO SLEEP(30)"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var id string
		if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(300 * time.Millisecond)
			_, _ = db.Exec("KILL QUERY " + id)
		}()
		_, err = conn.ExecContext(t.Context(), "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c")
		wantError(t, err, 1317)
		servers.Run(t, db, "KILL "+id)
		if err := conn.PingContext(t.Context()); err == nil {
			t.Error("a killed connection answers")
		}
	})
	t.Run("time zones", func(t *testing.T) {
		tokyo, err := time.LoadLocation("Asia/Tokyo")
		if err != nil {
			t.Fatal(err)
		}
		db := servers.Open(t, node.DSN("go", func(c *mysql.Config) {
			c.ParseTime, c.Loc, c.Params = true, tokyo, map[string]string{"time_zone": "'Asia/Tokyo'"}
		}))
		servers.Run(t, db, "CREATE TABLE z (ts TIMESTAMP(6), dt DATETIME(6))")
		now := time.Date(2024, 7, 1, 23, 30, 0, 5000, time.UTC)
		if _, err := db.Exec("INSERT INTO z VALUES (?, ?)", now, now); err != nil {
			t.Fatal(err)
		}
		var ts, dt time.Time
		if err := db.QueryRow("SELECT * FROM z WHERE ts = ?", now).Scan(&ts, &dt); err != nil || !ts.Equal(now) || !dt.Equal(now) {
			t.Errorf("%v, %v, %v", ts, dt, err)
		}
		if got := servers.Text(t, servers.Open(t, node.DSN("go", func(c *mysql.Config) { c.Params = map[string]string{"time_zone": "'+00:00'"} })), "SELECT * FROM z"); got != "2024-07-01 23:30:00.000005\t2024-07-02 08:30:00.000005\n" {
			t.Errorf("%q", got)
		}
	})
}
