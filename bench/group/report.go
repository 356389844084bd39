package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/reportfile"
)

// line is a measured value, with its target if it has one.
type line struct {
	what, value, cpu, target string
	pass                     bool
}

// report collects lines, tables and notes.
type report struct {
	c      *config
	lines  []line
	tables []string
	notes  []string
	busy   []string // what was measured on a busy machine
}

func newReport(c *config) *report { return &report{c: c} }

func (r *report) add(l line) {
	r.lines = append(r.lines, l)
	fmt.Fprintf(os.Stderr, "  %-70s %s %s\n", l.what, l.value, l.cpu)
}

// atLeast adds a value that should not be smaller than target.
func (r *report) atLeast(what string, value, target float64, format string) {
	r.add(line{what, fmt.Sprintf(format, value), "", "at least " + fmt.Sprintf(format, target), value >= target})
}

// faster adds the ratio of two contenders' rates, and that by the CPU time of their
// servers. It should not be smaller than target; 0: there is none.
func (r *report) faster(what string, res *rounds, a, b int, target float64) {
	ratio := res.over(a, b, (*turn).rate)
	l := line{what: what, value: fmt.Sprintf("%.2fx", ratio), cpu: fmt.Sprintf("%.2fx", res.over(b, a, (*turn).cpuEach)), pass: ratio >= target}
	if target > 0 {
		l.target = fmt.Sprintf("at least %.2fx", target)
	}
	r.add(l)
}

// under adds a time that should be shorter than target.
func (r *report) under(what string, value, target time.Duration) {
	r.add(line{what, millis(value), "", "under " + millis(target), value < target})
}

// value adds a value without a target.
func (r *report) value(what, format string, args ...any) {
	r.add(line{what: what, value: fmt.Sprintf(format, args...), pass: true})
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// table adds a table of its own; the first row is its heading.
func (r *report) table(title string, rows [][]string) {
	r.tables = append(r.tables, "## "+title+"\n\n"+format(rows))
}

func (r *report) missed() (n int) {
	for _, l := range r.lines {
		if !l.pass {
			n++
		}
	}
	return n
}

// finish prints everything and writes the report.
func (r *report) finish() error {
	if len(r.busy) > 0 {
		r.note("The machine was busy with other work in: %s.", strings.Join(r.busy, "; "))
	}
	rows := [][]string{{"Measured", "Value", "By CPU time", "Target", ""}}
	for _, l := range r.lines {
		verdict := ""
		switch {
		case l.target == "":
		case l.pass:
			verdict = "pass"
		default:
			verdict = "missed"
		}
		rows = append(rows, []string{l.what, l.value, l.cpu, l.target, verdict})
	}
	parts := append([]string{format(rows)}, r.tables...)
	if len(r.notes) > 0 {
		parts = append(parts, "- "+strings.Join(r.notes, "\n- ")+"\n")
	}
	text := strings.Join(parts, "\n")
	fmt.Print(text)
	if r.c.report == "" || r.c.only != "" {
		return nil
	}
	head := fmt.Sprintf(heading, r.c.rounds, runtime.NumCPU(), memoryGiB(), strings.TrimPrefix(runtime.Version(), "go"))
	return reportfile.Write(r.c.report, head+text)
}

const heading = `# A group of three nodes, measured

Written by ` + "`make bench`" + `; see bench/group for how. Three servers and all clients on one machine: it is the
processors that are short, so ratios count, not rates. Ratios are medians of %d rounds in which the
contenders take turns. %d cores, %.0f GiB of memory, Go %s.

`

// format lays out a table.
func format(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell), 3)
		}
	}
	var b strings.Builder
	write := func(row []string) {
		for i, cell := range row {
			fmt.Fprintf(&b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
	}
	write(rows[0])
	write(slices.Repeat([]string{"---"}, len(widths)))
	for _, row := range rows[1:] {
		write(row)
	}
	return b.String()
}

func millis(d time.Duration) string {
	if ms := float64(d.Microseconds()) / 1000; ms < 10 {
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

type number interface{ ~int64 | ~float64 }

func median[T number](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// medianOf is the median of what of gives for each element.
func medianOf[E any, T number](list []E, of func(E) T) T {
	values := make([]T, len(list))
	for i, e := range list {
		values[i] = of(e)
	}
	return median(values)
}
