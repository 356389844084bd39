package node_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestLostClientsLocks: what a client has locked that is gone, while its statement waits for something, is free again: rows, tables, names.
func TestLostClientsLocks(t *testing.T) {
	members := group(t, 2)
	leader, other := leaderOf(t, members)
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, n INT)", "CREATE TABLE d.b (id INT PRIMARY KEY)", "INSERT INTO d.a VALUES (1, 0), (2, 0)")
	ctx := context.Background()
	held, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, text := range []string{"SET autocommit = 0", "UPDATE d.a SET n = 1 WHERE id = 1", "SELECT GET_LOCK('held', 0)"} {
		if _, err := held.ExecContext(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, addr := range []string{leader.MainAddr(), other.MainAddr()} {
		for waits, locks := range map[string]string{
			"UPDATE d.a SET n = 2 WHERE id = 1": "UPDATE d.a SET n = 2 WHERE id = 2",
			"SELECT GET_LOCK('held', 1000)":     "LOCK TABLES d.b WRITE",
			"SELECT SLEEP(1000)":                "SELECT * FROM d.a WHERE id = 2 FOR UPDATE",
			"LOCK TABLES d.b READ, d.a WRITE":   "SELECT GET_LOCK('mine', 0)",
		} {
			var nc net.Conn
			cfg := mysql.NewConfig()
			cfg.User, cfg.Passwd, cfg.Addr, cfg.Net, cfg.AllowNativePasswords = "root", "secret", addr, "tcp", true
			cfg.Logger = log.New(io.Discard, "", 0)
			cfg.TLSConfig, cfg.DialFunc = "skip-verify", func(ctx context.Context, network, addr string) (c net.Conn, err error) {
				nc, err = (&net.Dialer{}).DialContext(ctx, network, addr)
				return nc, err
			}
			connector, err := mysql.NewConnector(cfg)
			if err != nil {
				t.Fatal(err)
			}
			gone := sql.OpenDB(connector)
			c, err := gone.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"SET innodb_lock_wait_timeout = 1000", "BEGIN", locks} {
				if _, err := c.ExecContext(ctx, text); err != nil {
					t.Fatal(text, err)
				}
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.ExecContext(ctx, waits)
				ended <- err
			}()
			eventually(t, waits+": it waits", func() error {
				var n int
				err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = ?", waits).Scan(&n)
				if err == nil && n != 1 {
					err = errors.New("it does not run")
				}
				return err
			})
			_ = nc.Close()
			if err := <-ended; err == nil || errors.Is(err, driver.ErrSkip) {
				t.Errorf("%s: %v", waits, err)
			}
			_ = gone.Close()
			eventually(t, waits+", which is gone, has left its locks", func() error {
				for _, text := range []string{"SET innodb_lock_wait_timeout = 1", "SET lock_wait_timeout = 1", "UPDATE d.a SET n = n + 1 WHERE id = 2", "INSERT IGNORE INTO d.b VALUES (1)"} {
					if _, err := db.Exec(text); err != nil {
						return err
					}
				}
				var free int
				if err := db.QueryRow("SELECT IS_FREE_LOCK('mine')").Scan(&free); err != nil || free != 1 {
					return errors.Join(err, errors.New("a name is locked"))
				}
				return nil
			})
		}
	}
}
