package node_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestKillAll: an administrator ends all sessions, whatever they do, by the process list;
// nothing of them is left, and others can go on.
func TestKillAll(t *testing.T) {
	m := group(t, 1)[0]
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	ctx := context.Background()
	admin, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	do := func(text string) {
		t.Helper()
		if _, err := admin.ExecContext(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	do("CREATE DATABASE shop")
	do("USE shop")
	do("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
	do("INSERT INTO t VALUES (1, 0), (2, 0)")
	do("CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")

	// Each goes on until it is ended.
	works := []func(c *sql.Conn) error{
		func(c *sql.Conn) error { return exec(c, "DO SLEEP(1000)") },
		func(c *sql.Conn) error { return exec(c, "INSERT INTO log (n) VALUES (1)") },
		func(c *sql.Conn) error {
			return errors.Join(exec(c, "BEGIN"), exec(c, "UPDATE t SET n = n + 1 WHERE id = 1"), exec(c, "DO SLEEP(1000)"))
		},
		func(c *sql.Conn) error {
			return exec(c, "SELECT COUNT(*) FROM log a JOIN log b ON a.n = b.n JOIN log c ON b.n = c.n")
		},
		func(c *sql.Conn) error {
			p, err := c.PrepareContext(ctx, "SELECT n FROM t WHERE id = ? FOR UPDATE")
			if err != nil {
				return err
			}
			var n int
			return errors.Join(p.QueryRowContext(ctx, 1).Scan(&n), p.Close())
		},
		func(c *sql.Conn) error {
			return errors.Join(exec(c, "SELECT GET_LOCK('all', 1000)"), exec(c, "DO SLEEP(1000)"))
		},
	}
	var began atomic.Int32
	var ended sync.WaitGroup
	for i := range 30 {
		ended.Add(1)
		go func() {
			defer ended.Done()
			c, err := db.Conn(ctx)
			if err == nil {
				defer c.Close()
				err = exec(c, "USE shop")
			}
			began.Add(1)
			for err == nil {
				err = works[i%len(works)](c)
			}
			if !lost(err) {
				t.Errorf("client %d: %v", i, err)
			}
		}()
	}
	eventually(t, "clients at work", func() error {
		if n := began.Load(); n < 30 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	var own int64
	if err := admin.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no other session", func() error {
		rows, err := admin.QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> ?", own)
		if err != nil {
			return err
		}
		var ids []int64
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, id := range ids {
			var e *mysql.MySQLError
			if _, err := admin.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err != nil && !(errors.As(err, &e) && e.Number == 1094) {
				t.Errorf("KILL %d: %v", id, err)
			}
		}
		if len(ids) > 0 {
			return fmt.Errorf("%d sessions are there", len(ids))
		}
		return nil
	})
	ended.Wait()
	var n int
	if err := admin.QueryRowContext(ctx, "SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	for text, want := range map[string]string{
		"SELECT IS_FREE_LOCK('all')":                    "1",
		"SHOW GLOBAL STATUS LIKE 'Threads_connected'":   "1",
		"SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'": "0",
	} {
		var name, value string
		row := admin.QueryRowContext(ctx, text)
		if err := row.Scan(&name, &value); err != nil {
			err = admin.QueryRowContext(ctx, text).Scan(&value)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if value != want {
			t.Errorf("%s: %s", text, value)
		}
	}
	if err := open(t, m.MainAddr()).Ping(); err != nil {
		t.Error(err)
	}
}

func exec(c *sql.Conn, text string) error {
	_, err := c.ExecContext(context.Background(), text)
	return err
}

// lost reports whether all that went wrong is that a session was ended.
func lost(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			if !lost(e) {
				return false
			}
		}
		return true
	}
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number == 1317
	}
	return err != nil
}
