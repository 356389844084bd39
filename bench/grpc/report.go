package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Targets.
const (
	executeTarget = 0.7       // of the rate of a service that only answers
	streamTarget  = 1.5       // of the rate of the MySQL door
	manySessions  = 32        // from so many callers on
	idleTarget    = 100 << 20 // bytes
	unreadTarget  = 32 << 20  // bytes: a window of 16 MiB, and what the collector is late by
	besideRate    = 0.9       // of the rate without: noise
	besideTail    = 1.25      // of the p99 without: noise
)

type report struct {
	c       *config
	version string
	load    string // of the machine when it began
	rates   []string
	values  []string
	notes   []string
}

func newReport(c *config) *report { return &report{c: c, load: loadAverage()} }

// loadAverage is the machine's load of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func verdict(ok bool) string {
	if ok {
		return "pass"
	}
	return "missed"
}

// line is a contender's row.
func (r *report) line(name string, callers int, list []sample, ratios string) {
	r.rates = append(r.rates, fmt.Sprintf("| %-62s | %7d | %7.0f | %8v | %8v | %8v | %8v | %s |", name, callers, median(list, func(s sample) float64 { return s.rate }),
		median(list, func(s sample) time.Duration { return s.median }).Round(time.Microsecond), median(list, func(s sample) time.Duration { return s.p99 }).Round(10*time.Microsecond),
		median(list, func(s sample) time.Duration { return s.server }).Round(100*time.Nanosecond), median(list, func(s sample) time.Duration { return s.client }).Round(100*time.Nanosecond), ratios))
}

// compare adds contenders and their ratios to one of them; target 0: none.
func (r *report) compare(callers int, all []contender, samples [][]sample, to int, target float64) {
	for i, c := range all {
		if i == to {
			r.line(c.name, callers, samples[i], "| | |")
			continue
		}
		rate := ratio(samples[i], samples[to], func(s sample) float64 { return s.rate })
		cpu := ratio(samples[to], samples[i], func(s sample) float64 { return float64(s.cpu()) })
		goal := "| "
		if target > 0 {
			goal = fmt.Sprintf("%.1fx | %s", target, verdict(rate >= target))
		}
		r.line(c.name, callers, samples[i], fmt.Sprintf("%.2fx | %.2fx | %s", rate, cpu, goal))
	}
}

// beside adds reads beside something, which are to be as good as the first.
func (r *report) beside(callers int, all []contender, samples [][]sample) {
	for i, c := range all {
		if i == 0 {
			r.line(c.name, callers, samples[i], "| | |")
			continue
		}
		rate := ratio(samples[i], samples[0], func(s sample) float64 { return s.rate })
		tail := ratio(samples[i], samples[0], func(s sample) float64 { return float64(s.p99) })
		cpu := ratio(samples[0], samples[i], func(s sample) float64 { return float64(s.cpu()) })
		r.line(c.name, callers, samples[i], fmt.Sprintf("%.2fx | %.2fx | %.1fx, p99 %.2fx of %.2fx | %s", rate, cpu, besideRate, tail, besideTail,
			verdict(rate >= besideRate && tail <= besideTail)))
	}
}

// atMost adds a number of bytes.
func (r *report) atMost(what string, bytes, target int64) {
	const mib = 1 << 20
	r.values = append(r.values, fmt.Sprintf("| %-87s | %6.1f MiB | %4d MiB | %s |", what, float64(bytes)/mib, target/mib, verdict(bytes <= target)))
}

func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The gRPC door, measured\n\nWritten by `go -C bench run ./grpc`. Point reads of a table of %d rows by its key, a column of %d bytes; %d rounds of %v in turn,\n"+
		"medians, ratios of the same round. A caller waits for its answer before it asks again. Callers, the server and the service beside it are\n"+
		"processes that share %d processors, without TLS; %s, %s; load of the machine %s before and %s after. The ratio\n"+
		"by CPU is that of the processor time of a call, server and caller together: what other work on the machine changes least.\n",
		r.c.rows, valueSize, r.c.rounds, r.c.turn, runtime.NumCPU(), r.version, runtime.Version(), r.load, loadAverage())
	if len(r.rates) > 0 {
		fmt.Fprintf(&b, "\n| %-62s | Callers | Calls/s |      p50 |      p99 |   Server |   Caller | Ratio | By CPU | Target | |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |\n%s\n",
			"Reads", strings.Join(r.rates, "\n"))
	}
	if len(r.values) > 0 {
		fmt.Fprintf(&b, "\n| %-87s |      Value |  At most | |\n| --- | --: | --: | --- |\n%s\n", "Memory", strings.Join(r.values, "\n"))
	}
	if len(r.notes) > 0 {
		fmt.Fprintf(&b, "\n- %s\n", strings.Join(r.notes, "\n- "))
	}
	return b.String()
}
