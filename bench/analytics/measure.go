package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
)

// limit is how long one run of a query may take.
const limit = 10 * time.Minute

// settle is what the background work of loading gets.
const settle = 2 * time.Second

// sample is one run of a query.
type sample struct {
	took, cpu time.Duration // cpu: of the server
}

// measured is all runs: by query, then by server in the order of names.
type measured struct {
	c       *config
	names   []string // this database first
	version []string
	load    []time.Duration
	queries []query
	samples [][][]sample
	busy    [2]string // the machine's load before and after
}

// result is a query's rows.
type result struct {
	rows int
	sum  uint64   // of the rows' hashes
	head []string // the first rows
}

// measure loads the servers and runs the queries.
func (c *config) measure(servers contenders.List) (*measured, error) {
	m := &measured{c: c}
	ctx := context.Background()
	conns := make([]*sql.Conn, len(servers))
	for i, s := range servers {
		db, err := sql.Open("mysql", s.DSN(""))
		if err != nil {
			return nil, err
		}
		defer db.Close()
		begin := time.Now()
		if err := c.load(ctx, db); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		m.names, m.version, m.load = append(m.names, s.Name), append(m.version, s.Version), append(m.load, time.Since(begin))
		fmt.Fprintf(os.Stderr, "%s: loaded in %v\n", s.Name, m.load[i].Round(time.Millisecond))
		if conns[i], err = c.connect(ctx, s, db); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		time.Sleep(settle)
	}
	m.busy[0] = loadAverage()
	for _, q := range queries {
		if !c.only.MatchString(q.name) {
			continue
		}
		samples, err := c.compare(ctx, servers, conns, q)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		m.queries, m.samples = append(m.queries, q), append(m.samples, samples)
		fmt.Fprintln(os.Stderr, m.line(len(m.queries)-1))
	}
	m.busy[1] = loadAverage()
	return m, nil
}

// connect opens the session that runs a server's queries.
func (c *config) connect(ctx context.Context, s *contenders.Server, db *sql.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	settings := []string{"USE analytics"}
	if s.Name == "mariadb" {
		settings = append(settings, "SET join_cache_level = 8, optimizer_switch = 'join_cache_hashed=on,optimize_join_buffer_size=off'",
			fmt.Sprintf("SET tmp_table_size = %[1]d, max_heap_table_size = %[1]d, join_buffer_size = %[1]d, sort_buffer_size = %[1]d, join_buffer_space_limit = 2 * %[1]d",
				c.memory<<20))
	}
	for _, text := range settings {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	return conn, nil
}

// compare runs a query on each server: once to compare and to warm up, then in turn.
func (c *config) compare(ctx context.Context, servers contenders.List, conns []*sql.Conn, q query) ([][]sample, error) {
	results := make([]result, len(servers))
	for i := range servers {
		var err error
		if _, results[i], err = execute(ctx, servers[i], conns[i], q.text); err != nil {
			return nil, err
		}
		if r, first := results[i], results[0]; r.rows != first.rows || r.sum != first.sum {
			return nil, fmt.Errorf("results differ\n%s: %d rows\n%s\n%s: %d rows\n%s", servers[0].Name, first.rows, strings.Join(first.head, "\n"),
				servers[i].Name, r.rows, strings.Join(r.head, "\n"))
		}
	}
	samples := make([][]sample, len(servers))
	for range c.rounds {
		for i := range servers {
			x, _, err := execute(ctx, servers[i], conns[i], q.text)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], x)
		}
	}
	return samples, nil
}

func execute(ctx context.Context, s *contenders.Server, conn *sql.Conn, text string) (x sample, r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cpu, begin := s.CPU(), time.Now()
	rows, err := conn.QueryContext(ctx, text)
	if err == nil {
		r, err = read(rows)
	}
	if err != nil {
		return x, r, fmt.Errorf("%s: %w", s.Name, err)
	}
	return sample{time.Since(begin), s.CPU() - cpu}, r, nil
}

// read takes the rows. Their order does not matter: a query that orders them leaves
// out the others by a limit.
func read(rows *sql.Rows) (r result, err error) {
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return r, err
	}
	values, into := make([]sql.RawBytes, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for ; rows.Next(); r.rows++ {
		if err := rows.Scan(into...); err != nil {
			return r, err
		}
		h := uint64(14695981039346656037) // FNV-1a
		for _, v := range values {
			for _, c := range v {
				h = (h ^ uint64(c)) * 1099511628211
			}
			if v == nil {
				h++
			}
			h = (h ^ uint64(len(v))) * 1099511628211
		}
		r.sum += h
		if len(r.head) < 5 {
			r.head = append(r.head, fmt.Sprintf("%s", values))
		}
	}
	return r, rows.Err()
}

// median of what a function takes from samples.
func median(list []sample, of func(sample) time.Duration) time.Duration {
	v := make([]time.Duration, len(list))
	for i, x := range list {
		v[i] = of(x)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func took(x sample) time.Duration { return x.took }
func cpu(x sample) time.Duration  { return x.cpu }

// loadAverage is the machine's load over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
