package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/reportfile"
)

// ratio is how many times as long the second server takes as the first.
func (m *measured) ratio(q int, of func(sample) time.Duration) float64 {
	if len(m.names) < 2 {
		return 0
	}
	own := median(m.samples[q][0], of)
	if own <= 0 {
		return 0
	}
	return float64(median(m.samples[q][1], of)) / float64(own)
}

// line is a query's row of the table.
func (m *measured) line(q int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %-21s |", m.queries[q].name)
	for i := range m.names {
		fmt.Fprintf(&b, " %9v | %9v |", median(m.samples[q][i], took).Round(100*time.Microsecond), median(m.samples[q][i], cpu).Round(time.Millisecond))
	}
	ratio, byCPU := m.ratio(q, took), m.ratio(q, cpu)
	target, verdict := "", ""
	if t := m.queries[q].target; t > 0 && ratio > 0 {
		target, verdict = fmt.Sprintf("%.1fx", t), "missed"
		if ratio >= t {
			verdict = "pass"
		}
	}
	fmt.Fprintf(&b, " %5.2fx | %5.2fx | %6s | %-6s |", ratio, byCPU, target, verdict)
	return b.String()
}

// text is the report; picture is the name of its plot.
func (m *measured) text(picture string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Queries over many rows, beside MariaDB\n\nWritten by `go -C bench run ./analytics`; the queries are in bench/analytics. A table of %d rows and two of %d,\n"+
		"buffer pool %d MiB, %d MiB of memory for a statement, no index but primary keys; MariaDB joins by hashing. Medians of %d runs in\n"+
		"turn, results compared. %d processors, %s; load of the machine %s before and %s after.\n\n",
		m.c.rows, m.c.rows/2, m.c.pool, m.c.memory, m.c.rounds, runtime.NumCPU(), runtime.Version(), m.busy[0], m.busy[1])
	for i, name := range m.names {
		fmt.Fprintf(&b, "- %s: %s; loaded in %v\n", name, m.version[i], m.load[i].Round(100*time.Millisecond))
	}
	fmt.Fprintf(&b, "\n| %-21s |", "Query")
	for _, name := range m.names {
		fmt.Fprintf(&b, " %9s | %9s |", name, "CPU")
	}
	b.WriteString("  Ratio |    CPU | Target |        |\n| --- |")
	b.WriteString(strings.Repeat(" --: | --: |", len(m.names)) + " --: | --: | --: | --- |\n")
	for q := range m.queries {
		b.WriteString(m.line(q) + "\n")
	}
	if picture != "" {
		fmt.Fprintf(&b, "\n![Ratios of time](%s)\n", picture)
	}
	b.WriteString("\n")
	for _, q := range m.queries {
		fmt.Fprintf(&b, "- %s: `%s`\n", q.name, q.text)
	}
	return b.String()
}

// plot is a picture of the ratios.
func (m *measured) plot() string {
	var bars []reportfile.Bar
	for i, q := range m.queries {
		bars = append(bars, reportfile.Bar{Name: q.name, Ratio: m.ratio(i, took), Target: q.target})
	}
	return reportfile.Plot(bars)
}
