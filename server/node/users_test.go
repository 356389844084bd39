package node_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// writeEntry writes an entry of users_dir as Kubernetes does: all of it at once.
func writeEntry(t *testing.T, dir, name, account, password string) {
	t.Helper()
	next := filepath.Join(t.TempDir(), name)
	err := errors.Join(os.Mkdir(next, 0o700), os.WriteFile(filepath.Join(next, "account.json"), []byte(account), 0o600),
		os.WriteFile(filepath.Join(next, "password"), []byte(password), 0o600), os.RemoveAll(filepath.Join(dir, name)), os.Rename(next, filepath.Join(dir, name)))
	if err != nil {
		t.Fatal(err)
	}
}

// TestUsersDir: whoever leads makes and changes accounts as its files say, without a restart.
func TestUsersDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntry(t, dir, "app", `{"user": "app", "grants": ["ALL ON shop.*"]}`, "first")
	var said heardLog
	members := loggedGroup(t, &said, "--users-dir="+dir)
	works := func(password, statement string) {
		t.Helper()
		for _, m := range members {
			if m.Node == nil {
				continue
			}
			db, err := sql.Open("mysql", fmt.Sprintf("app:%s@tcp(%s)/?tls=skip-verify&timeout=%v&readTimeout=%v", password, m.MainAddr(), patience, patience))
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, statement+" with "+password, func() error {
				_, err := db.Exec(statement)
				return err
			})
			_ = db.Close()
		}
	}
	works("first", "CREATE DATABASE IF NOT EXISTS shop")
	writeEntry(t, dir, "app", `{"user": "app", "grants": ["ALL ON shop.*"]}`, "second")
	works("second", "CREATE TABLE IF NOT EXISTS shop.t (a INT PRIMARY KEY)")
	for _, m := range members {
		if m.Leads() {
			m.stop()
			break
		}
	}
	writeEntry(t, dir, "app", `{"user": "app", "grants": ["ALL ON shop.*", "CREATE ON bar.*"]}`, "third")
	works("third", "CREATE DATABASE IF NOT EXISTS bar")
}

// TestUsersDirWithoutMajority: an account that cannot be changed, since nobody answers the
// leader, keeps no node from stopping, and is changed when the group is back.
func TestUsersDirWithoutMajority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntry(t, dir, "app", `{"user": "app"}`, "first")
	var said heardLog
	members := loggedGroup(t, &said, "--users-dir="+dir)
	login := func(m *member, password string) {
		t.Helper()
		db, err := sql.Open("mysql", fmt.Sprintf("app:%s@tcp(%s)/?tls=skip-verify&timeout=%v&readTimeout=%v", password, m.MainAddr(), patience, patience))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		eventually(t, "log in with "+password, db.Ping)
	}
	login(members[0], "first")
	lead, _ := leaderOf(t, members)
	writeEntry(t, dir, "app", `{"user": "app"}`, "second")
	for _, m := range members {
		if m != lead {
			m.stop()
		}
	}
	writeEntry(t, dir, "app", `{"user": "app"}`, "third")
	eventually(t, "the node takes no writes", func() error {
		if lead.Leads() {
			return errors.New("it does")
		}
		return nil
	})
	lead.stop()
	for i, m := range members {
		again, err := start(t, m.args)
		if err != nil {
			t.Fatal(err)
		}
		members[i] = again
	}
	login(members[0], "third")
}
