package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// measured is what all contenders did.
type measured struct {
	c       config
	servers []string
	results [][]result // by change, then by contender
}

type result struct {
	server string
	took   time.Duration
	seen   seen
}

// text is the report.
func (m *measured) text() string {
	var b strings.Builder
	c, flags, what := &m.c, "", "MariaDB"
	if c.nodes > 1 {
		flags, what = fmt.Sprintf(" -nodes %d", c.nodes), fmt.Sprintf("Galera, %d nodes each", c.nodes)
	}
	fmt.Fprintf(&b, "# Changes of a table in use, beside %s\n\nWritten by `go -C bench run ./ddl%s`. A table of %d rows of about 200 bytes, buffer pool %d MiB; %d clients write and read\n"+
		"single rows, %d requests per second in all, each on its time whatever it has to wait for. Every commit is on disk before it is acknowledged. %d processors, %s.\n\n",
		what, flags, c.rows, c.pool, c.clients, c.rate, runtime.NumCPU(), runtime.Version())
	for _, s := range m.servers {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	b.WriteString("\n| Change | | took | served /s before | during | longest write | longest read | over 100 ms | failed |\n| --- | --- | --: | --: | --: | --: | --: | --: | --: |\n")
	for i, rs := range m.results {
		for _, r := range rs {
			during := "" // there is nothing to count in a moment
			if r.took > late {
				during = fmt.Sprintf("%.0f", r.seen.during)
			}
			fmt.Fprintf(&b, "| %s | %s | %v | %.0f | %s | %v | %v | %d | %s |\n", changes[i].name, r.server, short(r.took), r.seen.before, during,
				short(r.seen.writes), short(r.seen.reads), r.seen.late, r.seen.failures())
		}
	}
	b.WriteString("\n")
	for _, ch := range changes {
		fmt.Fprintf(&b, "- %s: `%s`\n", ch.name, ch.text)
	}
	return b.String()
}

func (s *seen) failures() string {
	if s.failed == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", s.failed, s.why)
}

// short rounds to what can be told apart.
func short(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
