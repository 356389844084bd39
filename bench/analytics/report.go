package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
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

// plot is a picture of the ratios: a bar for each query, a mark at its target.
func (m *measured) plot() string {
	const left, width, height, step = 190, 560, 24, 1
	most := 4.0
	for q := range m.queries {
		most = max(most, m.ratio(q, took))
	}
	most = min(most, 20)
	at := func(ratio float64) float64 { return left + min(ratio, most)/most*width }
	var b strings.Builder
	bottom := len(m.queries)*height + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", left+width+70, bottom+30)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for x := 0.0; x <= most; x += step {
		fmt.Fprintf(&b, `<path d="M%.1f 6V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", at(x), bottom, at(x), bottom+18, x)
	}
	for i, q := range m.queries {
		y, r := 8+i*height, m.ratio(i, took)
		color := "#4a7db5"
		if r < q.target {
			color = "#c0504d"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+14, q.name)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y+2, at(r)-left, height-8, color)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%.2fx</text>`+"\n", at(r)+5, y+14, r)
		if q.target > 0 {
			fmt.Fprintf(&b, `<path d="M%.1f %dv%d" stroke="black" stroke-width="2"/>`+"\n", at(q.target), y, height-4)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
