package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// table is a table with the generator of its rows.
type table struct {
	name, columns string
	rows          func(c *config) int
	row           func(b []byte, r *rand.Rand, i, rows int) []byte // appends a row's values
}

const seed = 20_260_417

var tables = []table{
	{
		name: "sales",
		columns: `id BIGINT NOT NULL PRIMARY KEY, customer INT NOT NULL, region TINYINT NOT NULL, sold DATE NOT NULL,
			quantity INT NOT NULL, price DECIMAL(10,2) NOT NULL, product VARCHAR(40) NOT NULL, discount DOUBLE, note VARCHAR(60)`,
		rows: func(c *config) int { return c.rows },
		row:  salesRow,
	},
	{
		name:    "calls",
		columns: `id BIGINT NOT NULL PRIMARY KEY, token BIGINT NOT NULL, duration INT NOT NULL, line VARCHAR(20) NOT NULL`,
		rows:    func(c *config) int { return c.rows / 2 },
		row:     joinedRow,
	},
	{
		name:    "answers",
		columns: `id BIGINT NOT NULL PRIMARY KEY, token BIGINT NOT NULL, duration INT NOT NULL, line VARCHAR(20) NOT NULL`,
		rows:    func(c *config) int { return c.rows / 2 },
		row:     joinedRow,
	},
}

var words = strings.Fields("amber basalt cedar delta ember fjord garnet harbor indigo juniper kelp lagoon meadow nectar onyx prairie quartz russet saffron tundra")

// salesRow has a customer among a quarter as many as there are rows, a product among
// a twentieth.
func salesRow(b []byte, r *rand.Rand, i, rows int) []byte {
	b = strconv.AppendInt(b, int64(i), 10)
	b = fmt.Appendf(b, ",%d,%d,'20%02d-%02d-%02d',%d,%d.%02d", 1+r.IntN(rows/4), r.IntN(12), 20+r.IntN(5), 1+r.IntN(12), 1+r.IntN(28),
		r.IntN(100), r.IntN(10_000), r.IntN(100))
	n := r.IntN(rows / 20)
	b = fmt.Appendf(b, ",'%s %s %d'", words[n%len(words)], words[n/len(words)%len(words)], n)
	if r.IntN(10) == 0 {
		b = append(b, ",NULL"...)
	} else {
		b = fmt.Appendf(b, ",%g", float64(r.IntN(64))/64) // sums are exact
	}
	if r.IntN(4) == 0 {
		return append(b, ",NULL"...)
	}
	return fmt.Appendf(b, ",'%s %s of %s %s'", words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))])
}

// joinedRow has a token that one row of the other table has as well, on average.
func joinedRow(b []byte, r *rand.Rand, i, rows int) []byte {
	b = strconv.AppendInt(b, int64(i), 10)
	return fmt.Appendf(b, ",%d,%d,'line %d'", int64(r.IntN(rows))*7919, r.IntN(1000), r.IntN(5000))
}

// rowsPerInsert keeps a statement well below max_allowed_packet.
const rowsPerInsert = 5000

// load fills a server's tables, the same rows on each, and tells it to look at them.
func (c *config) load(ctx context.Context, db *sql.DB) error {
	for _, text := range []string{"DROP DATABASE IF EXISTS analytics", "CREATE DATABASE analytics"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	var b []byte
	for n, t := range tables {
		if _, err := db.ExecContext(ctx, "CREATE TABLE analytics."+t.name+" ("+t.columns+") DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci"); err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		rows := t.rows(c)
		for i := 0; i < rows; {
			b = append(b[:0], "INSERT INTO analytics."+t.name+" VALUES "...)
			for end := min(i+rowsPerInsert, rows); i < end; i++ {
				b = append(b, '(')
				b = t.row(b, r, i, rows)
				b = append(b, "),"...)
			}
			if _, err := db.ExecContext(ctx, string(b[:len(b)-1])); err != nil {
				return fmt.Errorf("table %s, before row %d: %w", t.name, i, err)
			}
		}
		if _, err := db.ExecContext(ctx, "ANALYZE TABLE analytics."+t.name); err != nil {
			return err
		}
	}
	return nil
}
