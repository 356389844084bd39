package client_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
)

// number is MySQL's number of an error.
func number(err error) uint16 {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// TestValues: what is stored comes back, by its Go type.
func TestValues(t *testing.T) {
	db := open(t)
	when := time.Date(2026, 11, 21, 19, 20, 21, 500_000_000, time.UTC)
	if _, err := db.Exec(ctx, "CREATE TABLE v (id INT PRIMARY KEY, i BIGINT, u BIGINT UNSIGNED, d DOUBLE, f FLOAT, n DECIMAL(20,5), s VARCHAR(50), "+
		"l VARCHAR(50) CHARACTER SET latin1, b VARBINARY(50), j JSON, day DATE, at DATETIME(6), ts TIMESTAMP(3), span TIME(3), e ENUM('a','ö'), bit BIT(9), y YEAR, ok BOOL)"); err != nil {
		t.Fatal(err)
	}
	defer db.Exec(ctx, "DROP TABLE v")
	in := []any{1, int64(-1 << 63), uint64(1<<64 - 1), 0.1, float32(0.1), client.Decimal("-123456789.12345"), "größer 🐟", "größer", []byte{0, 1, 255},
		json.RawMessage(`{"a": [1, 2]}`), when, when, when, -90*time.Minute - 500*time.Millisecond, "ö", []byte{1, 2}, 2026, true}
	if _, err := db.Exec(ctx, "INSERT INTO v VALUES (?"+strings.Repeat(", ?", len(in)-1)+")", in...); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(ctx, "INSERT INTO v (id) VALUES (?)", 2); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(ctx, "SELECT * FROM v ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	var i int64
	var id int8
	var u uint64
	var d float64
	var f float32
	var n, s, l, j, span, e string
	var b, bit []byte
	var day, at, ts time.Time
	var y int
	var ok bool
	if err := rows.Scan(&id, &i, &u, &d, &f, &n, &s, &l, &b, &j, &day, &at, &ts, &span, &e, &bit, &y, &ok); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(id, i, u, d, f, n, s, l, b, j, day, at.Equal(when), ts.Equal(when), span, e, bit, y, ok)
	want := fmt.Sprint(1, int64(-1<<63), uint64(1<<64-1), 0.1, float32(0.1), "-123456789.12345", "größer 🐟", "größer", []byte{0, 1, 255}, `{"a": [1, 2]}`,
		time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), true, true, "-01:30:00.500", "ö", []byte{1, 2}, 2026, true)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f64 := rows.Float64(4); f64 != 0.1 {
		t.Error(f64)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	for k := 1; k < len(in); k++ {
		if !rows.IsNull(k) || rows.Value(k) != nil {
			t.Errorf("column %d is %v", k, rows.Value(k))
		}
	}
	if err := rows.Scan(&id, &i, &u, &d, &f, &n, &s, &l, &b, &j, &day, &at, &ts, &span, &e, &bit, &y, &ok); err == nil {
		t.Error("NULL was put into an int64")
	}
	if rows.Next() || rows.Err() != nil {
		t.Error(rows.Err())
	}
}

// TestBadCalls: what is wrong is told by MySQL's number, and the next call is not hurt.
func TestBadCalls(t *testing.T) {
	db := open(t)
	exec := func(text string, args ...any) error {
		_, err := db.Exec(ctx, text, args...)
		return err
	}
	many := make([]any, 65536)
	for i := range many {
		many[i] = i
	}
	for _, c := range []struct {
		err  error
		want uint16
	}{
		{exec("NONSENSE"), 1064}, {exec(""), 1065}, {exec("SELECT 1; SELECT 2"), 1064}, {exec("INSERT INTO nothing VALUES (1)"), 1146},
		{exec("SELECT ?", 1, 2), 1210}, {exec("SELECT ?", client.Decimal("x")), 1210}, {exec("SELECT ?", struct{}{}), 1210},
		{exec("SELECT 1", many...), 1210}, {exec("INSERT INTO account VALUES (1, 1)"), 1062},
	} {
		if number(c.err) != c.want {
			t.Errorf("%v, not %d", c.err, c.want)
		}
	}
	if _, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: "root", Password: "wrong"}); number(err) != 1045 {
		t.Error(err)
	}
	if _, err := db.Reader(client.Local()).Query(ctx, "INSERT INTO account VALUES (7, 7)"); number(err) != 1290 {
		t.Error(err)
	}
	var one int
	if err := db.QueryRow(ctx, "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Error(one, err)
	}
	if err := db.QueryRow(ctx, "SELECT 1 WHERE 0").Scan(&one); err != client.ErrNoRows {
		t.Error(err)
	}
}

// TestLargeResult: rows come as they are read, many sessions of one stream at a time; those that
// nobody reads stop nobody.
func TestLargeResult(t *testing.T) {
	db := open(t)
	const text = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 50000) SELECT n, REPEAT('x', 200) AS s FROM r"
	if _, err := db.Exec(ctx, "SET GLOBAL cte_max_recursion_depth = 1000000"); err != nil {
		t.Fatal(err)
	}
	unread, err := db.Query(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	rows, err := db.Query(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		if n++; rows.Int64(0) != int64(n) || len(rows.Bytes(1)) != 200 {
			t.Fatalf("row %d is %d, %q", n, rows.Int64(0), rows.Bytes(1))
		}
	}
	if rows.Err() != nil || n != 50000 {
		t.Errorf("%d rows, %v", n, rows.Err())
	}
	if err := unread.Close(); err != nil {
		t.Error(err)
	}
}

// TestCancel: a context ends a statement on the server too.
func TestCancel(t *testing.T) {
	db := open(t)
	cancelled, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(50*time.Millisecond, cancel)
	defer timer.Stop()
	if _, err := db.Exec(cancelled, "SELECT SLEEP(1000)"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	late, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if _, err := db.Exec(late, "SELECT SLEEP(1000)"); !errors.Is(err, context.DeadlineExceeded) && number(err) != 3024 {
		t.Error(err)
	}
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var running int
		if err := db.QueryRow(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'").Scan(&running); err != nil {
			t.Fatal(err)
		}
		if running == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d statements go on", running)
		}
	}
}

// TestTokens: a transaction whose token was used is not made again; a token of another statement is
// refused.
func TestTokens(t *testing.T) {
	db := open(t)
	token := client.NewToken()
	runs := 0
	for range 2 {
		_, err := db.RunTx(ctx, &client.TxOptions{Token: token}, func(tx *client.Tx) error {
			runs++
			_, err := tx.Exec(ctx, "INSERT INTO orders (note) VALUES ('once')")
			return err
		})
		if err != nil && runs == 1 {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow(ctx, "SELECT COUNT(*) FROM orders WHERE note = 'once'").Scan(&n); err != nil || n != 1 {
		t.Error(n, err)
	}
}

// TestTx: what is rolled back is gone, statements after the end are refused, isolation is obeyed.
func TestTx(t *testing.T) {
	db := open(t)
	tx, err := db.Begin(ctx, &client.TxOptions{Isolation: client.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO orders (note) VALUES (?)", "gone"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM orders WHERE note = ?", "gone").Scan(&n); err != nil || n != 1 {
		t.Error(n, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if _, err := tx.Exec(ctx, "SELECT 1"); err != client.ErrClosed {
		t.Error(err)
	}
	if _, err := tx.Commit(ctx); err != client.ErrClosed {
		t.Error(err)
	}
	if err := db.QueryRow(ctx, "SELECT COUNT(*) FROM orders WHERE note = 'gone'").Scan(&n); err != nil || n != 0 {
		t.Error(n, err)
	}
}

// TestDeadlock: what follows a deadlock in a transaction is not committed by itself, though the
// session goes on, and whoever does not look at the error hears of it from Commit.
func TestDeadlock(t *testing.T) {
	db := open(t)
	for _, text := range []string{"CREATE TABLE pair (id INT PRIMARY KEY, n INT)", "INSERT INTO pair VALUES (1, 0), (2, 0)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	update := func(tx *client.Tx, id int) error {
		_, err := tx.Exec(ctx, "UPDATE pair SET n = n + 1 WHERE id = ?", id)
		return err
	}
	var both [2]*client.Tx
	for i := range both {
		var err error
		if both[i], err = db.Begin(ctx, nil); err == nil {
			err = update(both[i], i+1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first := make(chan error, 1)
	go func() { first <- update(both[0], 2) }()
	err, victim, other := update(both[1], 1), both[1], both[0]
	if e := <-first; e != nil {
		err, victim, other = e, both[0], both[1]
	}
	var e *client.Error
	if !errors.As(err, &e) || e.Number != 1213 {
		t.Fatalf("no deadlock: %v", err)
	}
	if _, err := victim.Exec(ctx, "INSERT INTO pair VALUES (3, 0)"); !errors.As(err, &e) || e.Number != 1213 {
		t.Errorf("a statement behind a deadlock: %v", err)
	}
	if _, err := victim.Commit(ctx); !errors.As(err, &e) || e.Number != 1213 {
		t.Errorf("committed behind a deadlock: %v", err)
	}
	if _, err := other.Commit(ctx); err != nil {
		t.Error(err)
	}
	var n, sum int
	if err := db.QueryRow(ctx, "SELECT COUNT(*), SUM(n) FROM pair").Scan(&n, &sum); err != nil || n != 2 || sum != 2 {
		t.Errorf("%d rows, %d: %v", n, sum, err)
	}
}

// TestDatabaseSQL: the driver under database/sql.
func TestDatabaseSQL(t *testing.T) {
	db, err := sql.Open("trireme", "trireme://root:secret@"+address+"/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		t.Fatal(err)
	}
	r, err := tx.Exec("INSERT INTO orders (note, price) VALUES (?, ?)", sql.NullString{String: "std", Valid: true}, sql.NullFloat64{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.LastInsertId()
	if err != nil || id == 0 {
		t.Error(id, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	st, err := db.Prepare("SELECT note, price FROM orders WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for range 3 {
		var note string
		var price sql.NullFloat64
		if err := st.QueryRow(id).Scan(&note, &price); err != nil || note != "std" || price.Valid {
			t.Error(note, price, err)
		}
	}
	if err := db.Ping(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"trireme://x", "mysql://root:x@h/", "trireme://u:p@h/?tls=maybe", "trireme://u:p@h/?x=1"} {
		if _, err := sql.Open("trireme", bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// TestTxEnded: once a statement has ended the transaction nothing behind it is committed by itself.
func TestTxEnded(t *testing.T) {
	db := open(t)
	for i, text := range []string{"COMMIT", "ROLLBACK", "CREATE TABLE IF NOT EXISTS shop.extra (id INT PRIMARY KEY)"} {
		before := count(t, db)
		tx, err := db.Begin(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, err = tx.Exec(ctx, text)
		} else {
			var rows *client.Rows
			if rows, err = tx.Query(ctx, text); err == nil {
				rows.Next()
				err = rows.Close()
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO shop.orders (note) VALUES ('behind the end')"); err == nil {
			t.Errorf("%s: a statement behind it succeeds", text)
		}
		if _, err := tx.Commit(ctx); err == nil {
			t.Errorf("%s: the commit behind it succeeds", text)
		}
		if after := count(t, db); after != before {
			t.Errorf("%s: %d rows, before there were %d", text, after, before)
		}
	}
	// The session goes on for others.
	if _, err := db.RunTx(ctx, nil, func(tx *client.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE shop.account SET balance = balance WHERE id = 1")
		return err
	}); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, db *client.DB) (n int64) {
	t.Helper()
	if err := db.QueryRow(ctx, "SELECT COUNT(*) FROM shop.orders").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
