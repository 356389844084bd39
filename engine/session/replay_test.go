package session_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// discardRows is a ResultWriter that keeps nothing.
type discardRows struct{}

func (discardRows) Columns([]session.ResultColumn) error { return nil }
func (discardRows) Rows(*types.Batch) error              { return nil }
func (discardRows) Done(session.Outcome) error           { return nil }

const replayed = `
CREATE DATABASE a;
CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c VARCHAR(40), t TEXT, KEY k (k)) AUTO_INCREMENT = 7;
INSERT INTO a.t (k, c, t) SELECT n, concat('c', n), repeat('x', n) FROM (WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT n FROM r) x;
ALTER TABLE a.t ADD d DATE NOT NULL DEFAULT '2024-01-01', ADD KEY d (d);
CREATE UNIQUE INDEX u ON a.t (k);
UPDATE a.t SET k = k + 5000, d = '2024-02-02' WHERE id < 100;
CREATE INDEX c ON a.t (c DESC, k);
ALTER TABLE a.t ADD g INT AS (k * 2), ADD KEY ((k + 1)), MODIFY c VARCHAR(50), DROP t;
ALTER TABLE a.t MODIFY k BIGINT, DROP PRIMARY KEY, ADD PRIMARY KEY (k, id), ADD UNIQUE (id);
CREATE TABLE a.p (id INT PRIMARY KEY, x INT, CHECK (x > 0));
INSERT INTO a.p VALUES (1, 1), (2, 2);
CREATE TABLE a.ch (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES a.p (id) ON DELETE CASCADE);
INSERT INTO a.ch VALUES (1, 1), (2, 2);
DELETE FROM a.p WHERE id = 1;
RENAME TABLE a.p TO a.q;
CREATE TABLE a.made (PRIMARY KEY (k)) SELECT k, c, d FROM a.t WHERE k < 50;
CREATE VIEW a.v AS SELECT * FROM a.t;
CREATE OR REPLACE VIEW a.v AS SELECT k FROM a.t;
CREATE USER u IDENTIFIED BY 'x';
GRANT SELECT ON a.* TO u;
TRUNCATE a.made;
CREATE TABLE a.gone LIKE a.t;
DROP TABLE a.gone;
ALTER TABLE a.ch ADD x INT, RENAME COLUMN p TO pp
`

// TestReplay applies the log of definitions, and of indexes built beside changes, on
// another engine: both have the same tables, and their indexes are whole.
func TestReplay(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Early: true})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	s := r.Open(session.ConnectionInfo{AccountUser: "root", AccountHost: "%"})
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for i, text := range strings.Split(strings.TrimSpace(replayed), ";\n") {
		if i == 3 { // while definitions change, others write
			for w := range 2 {
				writer := r.Open(session.ConnectionInfo{AccountUser: "root", AccountHost: "%"})
				writers.Add(1)
				go func() {
					defer writers.Done()
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						// Errors are of definitions that change, and duplicates.
						_ = writer.Query(context.Background(), fmt.Sprintf("UPDATE a.t SET k = k + 10000, c = 'w%d' WHERE id = %d", n, 10+(n*7+w)%800), discardRows{})
						_ = writer.Query(context.Background(), fmt.Sprintf("DELETE FROM a.t WHERE id = %d", 300+n%50), discardRows{})
						_ = writer.Query(context.Background(), fmt.Sprintf("INSERT INTO a.t (k, c) VALUES (%d, 'new')", 1_000_000+2*n+w), discardRows{})
					}
				}()
			}
		}
		if strings.HasPrefix(text, "CREATE TABLE a.p ") {
			close(stop)
			writers.Wait()
		}
		r.Exec(s, text)
	}
	follower := openFollower(t)
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: follower})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Log.Entries() {
		if err := a.Submit(apply.Entry{Index: e.Index, Term: e.Term, Data: e.Data}); err != nil {
			t.Fatal(err, a.Err())
		}
	}
	if err := a.Drain(); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	mine, theirs := stateOf(t, r.Engine), stateOf(t, follower)
	for name, h := range mine {
		if theirs[name] != h {
			t.Errorf("%s: %s here, %q on the follower", name, h, theirs[name])
		}
	}
	if len(mine) != len(theirs) || len(mine) < 10 {
		t.Errorf("%d tables here, %d on the follower", len(mine), len(theirs))
	}
	for _, eng := range []*storage.Engine{r.Engine, follower} {
		if err := eng.Check(table.CheckOnline, func(f string) { t.Error(f) }); err != nil {
			t.Error(err)
		}
	}
}

func openFollower(t *testing.T) *storage.Engine {
	eng, err := storage.Open(storage.Options{FS: file.OS(t.TempDir()), Env: env.Real(), BufferPoolSize: 16 << 20, RedoCapacity: 16 << 20, LogBufferSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// stateOf gives a hash of each table by name: of its definition and its rows.
func stateOf(t *testing.T, eng *storage.Engine) map[string]string {
	t.Helper()
	tx := eng.Trx.Begin(trx.Options{})
	defer eng.Trx.End(tx)
	w := eng.Tables.NewWorker()
	w.Use(tx)
	all := map[string]string{}
	add := func(name string, tbl *table.Table) {
		h, err := w.Hash(tbl, tx.Snapshot(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = h.String()
	}
	for _, tbl := range eng.Catalog.SystemTables() {
		if dict.IsReplicated(tbl.ID()) {
			add(tbl.Schema.Name, tbl)
		}
	}
	err := eng.Catalog.Tables(tx.Snapshot(), func(def *record.Table) error {
		tbl, err := eng.Catalog.TableAt(tx.Snapshot(), def.ID)
		if err == nil {
			add(def.Schema+"."+def.Name, tbl)
			all[def.Schema+"."+def.Name] += fmt.Sprintf(" %x", sha256.Sum256(fmt.Appendf(nil, "%+v", *def)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
