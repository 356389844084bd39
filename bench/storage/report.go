package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/triremedb/trireme/bench/reportfile"
)

// line is a measured value with its target.
type line struct {
	what, value, cpu, target string
	pass                     bool
}

// report collects lines and notes.
type report struct {
	c     *config
	lines []line
	notes []string
	busy  []string // what was measured on a busy machine
}

func newReport(c *config) *report { return &report{c: c} }

func (r *report) add(what, value, target string, pass bool) {
	r.lines = append(r.lines, line{what, value, "", target, pass})
}

// faster adds a ratio of rates that should not be smaller than target.
func (r *report) faster(what string, res *result, a, b int, target float64) {
	wall, cpu := res.over(a, b)
	r.lines = append(r.lines, line{what, fmt.Sprintf("%.2fx", wall), fmt.Sprintf("%.2fx", cpu),
		fmt.Sprintf("at least %.2fx", target), wall >= target})
	if res.busy {
		r.busy = append(r.busy, what)
	}
}

// atMost adds a value that should not be greater than target.
func (r *report) atMost(what string, value, target float64, format string) {
	r.add(what, fmt.Sprintf(format, value), "at most "+fmt.Sprintf(format, target), value <= target)
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *report) missed() (n int) {
	for _, l := range r.lines {
		if !l.pass {
			n++
		}
	}
	return n
}

// finish prints the table and writes the report.
func (r *report) finish() error {
	if len(r.busy) > 0 {
		r.note("The machine was busy with other work in: %s.", strings.Join(r.busy, "; "))
	}
	var b strings.Builder
	const row = "| %-53s | %-10s | %-11s | %-16s | %-6s |\n"
	fmt.Fprintf(&b, row, "Measured", "Value", "By CPU time", "Target", "")
	fmt.Fprintf(&b, row, "---", "---", "---", "---", "---")
	for _, l := range r.lines {
		verdict := "missed"
		if l.pass {
			verdict = "pass"
		}
		fmt.Fprintf(&b, row, l.what, l.value, l.cpu, l.target, verdict)
	}
	fmt.Print(b.String())
	fmt.Println(strings.Join(r.notes, "\n"))
	if r.c.report == "" || r.c.only != "" {
		return nil
	}
	text := fmt.Sprintf(heading, r.c.rows, rowBytes, r.c.rounds, runtime.NumCPU(), memoryGiB(), strings.TrimPrefix(runtime.Version(), "go")) + b.String()
	if len(r.notes) > 0 {
		text += "\n- " + strings.Join(r.notes, "\n- ") + "\n"
	}
	return reportfile.Write(r.c.report, text)
}

const heading = `# The storage engine, measured

Written by ` + "`make bench`" + `; see bench/storage for what is compared. %d rows of %d bytes; each ratio is the
median of %d rounds in which the contenders take turns. %d cores, %.0f GiB of memory, Go %s.

`

// memoryGiB is the machine's memory.
func memoryGiB() float64 { return float64(procField("/proc/meminfo", "MemTotal:")) / (1 << 20) }

// procField returns a number of a file like /proc/meminfo, in KiB; 0 if it is not there.
func procField(name, field string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(l, field); ok {
			var n int64
			if _, err := fmt.Sscan(rest, &n); err == nil {
				return n
			}
		}
	}
	return 0
}
