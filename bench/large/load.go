package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
)

// turn is one contender at its turn.
type turn struct {
	*config
	server    *contenders.Server
	name      string
	db        *sql.DB
	followers []*sql.DB
	marker    int64 // last value of the row by which followers show how far they are
}

func (t *turn) open() (err error) {
	if t.db, err = sql.Open("mysql", t.server.DSN("")); err != nil {
		return err
	}
	t.db.SetMaxIdleConns(t.clients + 4)
	for _, dsn := range t.server.Followers("") {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			return err
		}
		t.followers = append(t.followers, db)
	}
	return nil
}

func (t *turn) close() {
	for _, db := range append(t.followers, t.db) {
		if db != nil {
			_ = db.Close()
		}
	}
}

// chooseCommit tells a MariaDB that can rename large transactions' files whether to do so, and
// reports whether it can.
func (t *turn) chooseCommit(rename bool) (renames bool, err error) {
	if t.name == "trireme" {
		return false, nil
	}
	var name, value string
	err = t.db.QueryRow("SHOW GLOBAL VARIABLES LIKE 'binlog_large_commit_threshold'").Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	const least = 10 << 20 // that MariaDB takes
	threshold := uint64(math.MaxUint64)
	if rename {
		threshold = least
		t.name += ", renaming"
	}
	_, err = t.db.Exec(fmt.Sprintf("SET GLOBAL binlog_large_commit_threshold = %d", threshold))
	return true, err
}

const (
	// rowsPerMiB is how many changed rows give a MiB of binlog: of each, the key of 4 bytes,
	// the column's length of 2, and 2 bytes of flags and bitmaps.
	rowsPerMiB  = 1024
	columnBytes = 1024 - 8

	sourceRows = 16384
	chunkRows  = 4096 // copied by a statement: few enough to be no large transaction anywhere
)

// load makes the tables.
func (t *turn) load() error {
	began := time.Now()
	for _, text := range []string{"CREATE DATABASE large",
		"CREATE TABLE large.t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL," +
			" KEY k (k))",
		fmt.Sprintf("CREATE TABLE large.source (id INT NOT NULL PRIMARY KEY, c VARBINARY(%d) NOT NULL)", columnBytes),
		"CREATE TABLE large.big LIKE large.source",
		"CREATE TABLE large.beats (id INT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)",
		"INSERT INTO large.beats VALUES (0, 0), (1, 0)",
		"CREATE TABLE large.many (id INT NOT NULL PRIMARY KEY, n INT NOT NULL, c CHAR(60) NOT NULL)"} {
		if _, err := t.db.Exec(text); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	err := contenders.Fill(t.db, "large.t", t.rows, func(b *strings.Builder, id int) { b.WriteString(smallRow(r, id)) })
	if err == nil && t.nodes > 1 {
		err = contenders.Fill(t.db, "large.many", t.lagRows, func(b *strings.Builder, id int) {
			fmt.Fprintf(b, "%d,0,'%060d'", id, r.Uint64())
		})
	}
	if err == nil {
		err = t.loadBig()
	}
	if err == nil {
		err = t.caughtUp()
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s: loaded in %v\n", t.name, time.Since(began).Round(time.Millisecond))
	}
	return err
}

// smallRow are the values of a row of the clients' table.
func smallRow(r *rand.Rand, id int) string {
	return fmt.Sprintf("%d,%d,'%0120d','%060d'", id, r.IntN(1_000_000), r.Uint64(), r.Uint64())
}

// loadBig makes the table of random bytes. Rows are copies of others, shifted by some bytes and
// far enough away that no compression finds them.
func (t *turn) loadBig() error {
	bytes := make([]byte, columnBytes)
	random := rand.NewChaCha8([32]byte{1})
	err := contenders.Fill(t.db, "large.source", sourceRows, func(b *strings.Builder, id int) {
		_, _ = random.Read(bytes)
		fmt.Fprintf(b, "%d,X'%s'", id, hex.EncodeToString(bytes))
	})
	if err != nil {
		return err
	}
	most := t.steady
	for _, mib := range t.sizes {
		most = max(most, mib)
	}
	for id := 0; id < most*rowsPerMiB; id += chunkRows {
		from, shift := id%sourceRows, id/sourceRows
		_, err := t.db.Exec(fmt.Sprintf("INSERT INTO large.big SELECT id + %d, CONCAT(SUBSTRING(c, %d), LEFT(c, %d))"+
			" FROM large.source WHERE id >= %d AND id < %d", id-from, 1+shift, shift, from, from+chunkRows))
		if err != nil {
			return err
		}
	}
	return nil
}

// largeUpdate changes as many rows as give the binlog this many MiB.
func largeUpdate(mib int) string {
	return fmt.Sprintf("UPDATE large.big SET c = CONCAT(SUBSTRING(c, 2), LEFT(c, 1)) WHERE id < %d", mib*rowsPerMiB)
}

// transaction begins a transaction, runs a statement, waits until due, and ends it as end
// says, COMMIT or ROLLBACK. After an error it is rolled back.
func (t *turn) transaction(statement string, due time.Time, end func() string) (x large, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.limit)
	defer cancel()
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return x, err
	}
	defer conn.Close()
	run := func(text string) {
		if err == nil {
			if _, err = conn.ExecContext(ctx, text); err != nil {
				word, _, _ := strings.Cut(text, " ")
				err = fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	run("BEGIN")
	x.began = time.Now()
	run(statement)
	x.done = time.Now()
	time.Sleep(time.Until(due))
	x.ended = time.Now()
	x.end = end()
	run(x.end)
	x.ok = time.Now()
	if err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK") // a connection that is gone has done so
	}
	return x, err
}

// large is a large transaction that has ended.
type large struct {
	began, done, ended, ok time.Time // the statement, and what ended the transaction
	end                    string
}

func commit() string   { return "COMMIT" }
func rollback() string { return "ROLLBACK" }

// settle is what background work gets after a large transaction.
const settle = 2 * time.Second

// caughtUp waits until all followers have what the leader has committed, and removes old
// binlogs where the server does not do so by itself.
func (t *turn) caughtUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), t.limit)
	defer cancel()
	t.marker++
	if _, err := t.db.ExecContext(ctx, fmt.Sprintf("UPDATE large.beats SET n = %d WHERE id = 0", t.marker)); err != nil {
		return err
	}
	for _, db := range t.followers {
		for n := int64(0); n < t.marker; {
			if err := db.QueryRowContext(ctx, "SELECT n FROM large.beats WHERE id = 0").Scan(&n); err != nil {
				return fmt.Errorf("a follower: %w", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	time.Sleep(settle)
	if t.name == "trireme" { // binlog_keep_size
		return nil
	}
	_, err := t.db.ExecContext(ctx, "FLUSH LOCAL BINARY LOGS")
	if err == nil {
		_, err = t.db.ExecContext(ctx, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	}
	return err
}
