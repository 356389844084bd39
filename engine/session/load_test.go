package session_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// fileWriter is a client that sends a file, in pieces of a few bytes.
type fileWriter struct {
	session.ResultWriter
	text  string
	piece int
	out   session.Outcome
}

func (w *fileWriter) LocalFile(name string, read func(piece []byte) error) error {
	for i := 0; i < len(w.text); i += w.piece {
		if err := read([]byte(w.text[i:min(i+w.piece, len(w.text))])); err != nil {
			return err
		}
	}
	return nil
}

func (w *fileWriter) Done(o session.Outcome) error {
	w.out = o
	return nil
}

func TestLoadData(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"local_infile": "ON"}})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	for _, c := range []struct{ sql, text, info, rows string }{
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "1\tone\t1.5\n2\t\\N\t\\N\n3\ta\\tb\\\\\t7\n",
			"Records: 3  Deleted: 0  Skipped: 0  Warnings: 0", "1 | one | 1.50\n2 | NULL | NULL\n3 | a\tb\\ | 7.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (id, v)",
			"id,v\r\n1,\"a,\"\"b\"\"\"\r\n2,NULL\r\n3,\"x\r\ny\"", "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0",
			"1 | a,\"b\" | 9.00\n2 | NULL | 9.00\n3 | x\r\\ny | 9.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t FIELDS TERMINATED BY ';' (id, @a) SET v = CONCAT(@a, '!'), d = id * 2", "1;p\n1;q\n",
			"Records: 2  Deleted: 1  Skipped: 0  Warnings: 0", "1 | q! | 2.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "1\tx\n1\ty\t1\t2\nz\tlong long text\t1\n",
			"Records: 3  Deleted: 0  Skipped: 1  Warnings: 5", "0 | long long  | 1.00\n1 | x | 9.00\n"},
	} {
		for _, piece := range []int{1, 3, 1000} {
			r.Exec(s, "DROP TABLE IF EXISTS t")
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), d DECIMAL(5,2) DEFAULT 9)")
			w := &fileWriter{ResultWriter: sessiontest.Discard, text: c.text, piece: piece}
			if err := s.Query(context.Background(), c.sql, w); err != nil {
				t.Fatalf("%s: %v", c.sql, err)
			}
			if w.out.Info != c.info {
				t.Errorf("%s, pieces of %d: %s", c.sql, piece, w.out.Info)
			}
			if got := r.Text(s, "SELECT * FROM t ORDER BY id"); got != "id | v | d\n"+c.rows {
				t.Errorf("%s, pieces of %d:\n%q\n%q", c.sql, piece, got, "id | v | d\n"+c.rows)
			}
		}
	}
}

// TestLoadPrivileges: REPLACE deletes rows, and SET may read columns.
func TestLoadPrivileges(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"local_infile": "ON"}})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	for _, text := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, v INT)", "CREATE USER app", "GRANT INSERT ON test.t TO app"} {
		r.Exec(root, text)
	}
	app := r.Open(session.ConnectionInfo{User: "app", Host: "h", AccountUser: "app", AccountHost: "%", Schema: "test"})
	load := func(sql string) error {
		return app.Query(context.Background(), sql, &fileWriter{ResultWriter: sessiontest.Discard, text: "1\t2\n", piece: 10})
	}
	for _, c := range []struct{ sql, need string }{
		{"LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t", "DELETE"},
		{"LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE t (id) SET v = id + 1", "SELECT"},
	} {
		if err := load(c.sql); err == nil || !strings.Contains(err.Error(), c.need+" command denied") {
			t.Errorf("%s: %v", c.sql, err)
		}
		r.Exec(root, "GRANT "+c.need+" ON test.t TO app")
		if err := load(c.sql); err != nil {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
}

// TestNoAccountsLookedFor: where there are no system tables statements do not look for them
// each time, even if there is a schema of that name.
func TestNoAccountsLookedFor(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
	p, err := s.Prepare(context.Background(), "SELECT id FROM t WHERE id = 1")
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		if err := s.ExecutePrepared(context.Background(), p, nil, sessiontest.Discard); err != nil {
			t.Error(err)
		}
	}
	run()
	before := testing.AllocsPerRun(200, run)
	r.CreateSchema("mysql")
	time.Sleep(300 * time.Millisecond) // the time after which it is looked again
	run()
	if after := testing.AllocsPerRun(200, run); after > before {
		t.Errorf("%v allocations, %v without the schema", after, before)
	}
}
