package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/quantile"
	"github.com/triremedb/trireme/bench/reportfile"
)

// text is the report; picture is the name of its plot.
func (c *config) text(results []*result, picture string) string {
	var b strings.Builder
	flags, what := "", "MariaDB"
	if c.nodes > 1 {
		flags, what = fmt.Sprintf(" -nodes %d", c.nodes), fmt.Sprintf("Galera, %d nodes each", c.nodes)
	}
	fmt.Fprintf(&b, `# Large transactions beside small ones, and beside %s

Written by `+"`go -C bench run ./large%s`"+`. Buffer pool %d MiB. Every commit is on disk before it is acknowledged;
of a changed row the key and the changed columns are logged. A large transaction is

    %s

with as many rows of %d random bytes as give the binlog its size. %d processors, %s.

`, what, flags, c.pool, strings.Replace(largeUpdate(1), fmt.Sprint(rowsPerMiB), "…", 1), columnBytes,
		runtime.NumCPU(), runtime.Version())
	for _, r := range results {
		fmt.Fprintf(&b, "- %s: %s\n", r.name, r.version)
	}
	c.latencyText(&b, results)
	c.throughputText(&b, results, picture)
	if c.nodes > 1 {
		c.lagText(&b, results)
	}
	c.memoryText(&b, results)
	return b.String()
}

func (c *config) latencyText(b *strings.Builder, results []*result) {
	fmt.Fprintf(b, `
## Latency of small commits

%d clients change single rows, %d per second in all, each on its time whatever it has to wait for. The windows are
before the large transaction, while its statement runs, and from %v before COMMIT until %v after its OK. Large
transactions of each size: %d. The times of the statement and of COMMIT are medians, COMMIT's longest in brackets;
the latencies are of all small commits in all windows of a kind.

| Size | | statement | COMMIT | before: p99 | longest | statement: p99 | longest | COMMIT: p99 | longest | failed |
| --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --- |
`, c.clients, c.rate, commitBefore, commitAfter, c.rounds)
	for i, mib := range c.sizes {
		for _, r := range results {
			l := r.latency[i]
			if l.err != nil && len(l.commit) == 0 {
				fmt.Fprintf(b, "| %d MiB | %s | %s | | | | | | | | %v |\n", mib, r.name, cell(l.err), l.failures)
				continue
			}
			fmt.Fprintf(b, "| %d MiB | %s | %v | %s |", mib, r.name, short(quantile.Of(l.statement, 0.5)), several(l.commit))
			for _, w := range l.windows {
				if len(w) == 0 {
					b.WriteString(" | |")
					continue
				}
				fmt.Fprintf(b, " %v | %v |", short(quantile.Of(w, 0.99)), short(quantile.Of(w, 1)))
			}
			if l.err != nil {
				fmt.Fprintf(b, " then %s;", cell(l.err))
			}
			fmt.Fprintf(b, " %v |\n", l.failures)
		}
	}
	for _, peer := range results[1:] {
		fmt.Fprintf(b, "\nHow many times as long as in %s it takes in %s:\n\n", results[0].name, peer.name)
		b.WriteString("| Size | statement | COMMIT | p99 while the statement runs | longest | p99 at COMMIT | longest |\n" +
			"| --: | --: | --: | --: | --: | --: | --: |\n")
		for i, mib := range c.sizes {
			own, other := results[0].latency[i], peer.latency[i]
			fmt.Fprintf(b, "| %d MiB | %s | %s |", mib, ratio(quantile.Of(other.statement, 0.5), quantile.Of(own.statement, 0.5)),
				ratio(quantile.Of(other.commit, 0.5), quantile.Of(own.commit, 0.5)))
			for w := 1; w < 3; w++ {
				for _, q := range []float64{0.99, 1} {
					fmt.Fprintf(b, " %s |", ratio(quantile.Of(other.windows[w], q), quantile.Of(own.windows[w], q)))
				}
			}
			b.WriteByte('\n')
		}
	}
}

func (c *config) throughputText(b *strings.Builder, results []*result, picture string) {
	fmt.Fprintf(b, `
## Throughput over time

%d clients commit transactions of two updates, a delete and an insert, as fast as they can, for %d s. A session runs a
large transaction of %d MiB every %v, or one after the other where they take longer. The baseline is the same with
ROLLBACK in the place of COMMIT, without the seconds from each ROLLBACK until a second after its end, when the next
statement begins: copying, logging and streaming run in it too. Alone is without large transactions. Figures are medians
of the seconds, per second. Slow seconds are those below 90 %% of the baseline's median; how many of its own seconds the
baseline has below it shows what is noise.

| | alone | baseline | beside COMMITs | worst second | slow seconds | of the baseline | COMMITs | statement | COMMIT | failed |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |
`, c.clients, c.seconds, c.steady, c.every)
	for _, r := range results {
		x := &r.throughput
		if x.err != nil {
			fmt.Fprintf(b, "| %s | %s | | | | | | | | | |\n", r.name, cell(x.err))
			continue
		}
		failed := x.alone.failures
		failed.merge(x.baseline.failures)
		failed.merge(x.beside.failures)
		statements, commits := x.beside.commits()
		baseline := quantile.Of(x.left, 0.5)
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %.0f | %.0f | %d of %d | %d of %d | %d | %v | %s | %v |\n", r.name,
			quantile.Of(x.alone.rate, 0.5), baseline, quantile.Of(x.beside.rate, 0.5), quantile.Of(x.beside.rate, 0),
			x.beside.rate.below(0.9*baseline), len(x.beside.rate), x.left.below(0.9*baseline), len(x.left), len(commits),
			short(quantile.Of(statements, 0.5)), several(commits), failed)
	}
	for _, peer := range results[1:] {
		own, other := &results[0].throughput.beside, &peer.throughput.beside
		fmt.Fprintf(b, "\nBeside COMMITs %s serves %s what %s does, in the worst second %s.\n", results[0].name,
			ratio(quantile.Of(own.rate, 0.5), quantile.Of(other.rate, 0.5)), peer.name,
			ratio(quantile.Of(own.rate, 0), quantile.Of(other.rate, 0)))
	}
	if picture != "" {
		fmt.Fprintf(b, "\n![Transactions per second; COMMITs are shaded, the dashed line is the baseline](%s)\n", picture)
	}
}

// plot is a picture of the throughput.
func plot(results []*result) string {
	var lines []reportfile.Line
	for _, r := range results {
		x := &r.throughput
		lines = append(lines, reportfile.Line{Name: r.name + ", transactions per second", Values: x.beside.rate,
			Baseline: quantile.Of(x.left, 0.5), Spans: x.beside.spans})
	}
	return reportfile.Lines(lines)
}

func (c *config) lagText(b *strings.Builder, results []*result) {
	fmt.Fprintf(b, `
## Lag of followers

An UPDATE of two columns of all %d rows of a table on the leader, so many times: %d. On each follower a session
that reads what its node has polls every %v. Visible: from COMMIT's OK until the last follower shows it,
median and longest. Heartbeats: a row that the leader writes every %v, from its OK until a follower shows it, the longest before the
statement and from its beginning on; and the longest that writing one took.

| | statement | COMMIT | visible | heartbeats before | beside it | writing one | failed |
| --- | --: | --: | --: | --: | --: | --: | --- |
`, c.lagRows, c.rounds, pollEvery, beatEvery)
	for _, r := range results {
		l := &r.lag
		if l.err != nil && len(l.visible) == 0 {
			fmt.Fprintf(b, "| %s | %s | | | | | | %v |\n", r.name, cell(l.err), l.failures)
			continue
		}
		then := ""
		if l.err != nil {
			then = fmt.Sprintf("then %s; ", cell(l.err))
		}
		fmt.Fprintf(b, "| %s | %v | %s | %s | %v | %v | %v | %s%v |\n", r.name, short(quantile.Of(l.statement, 0.5)),
			several(l.commit), several(l.visible), short(l.before), short(l.during), short(l.write), then, l.failures)
	}
	for _, peer := range results[1:] {
		own, other := &results[0].lag, &peer.lag
		fmt.Fprintf(b, "\nHow many times as long as in %s it takes in %s: until it is visible %s, the longest lag"+
			"\nof heartbeats beside it %s, the longest writing of one %s.\n", results[0].name, peer.name,
			ratio(quantile.Of(other.visible, 0.5), quantile.Of(own.visible, 0.5)), ratio(other.during, own.during),
			ratio(other.write, own.write))
	}
}

func (c *config) memoryText(b *strings.Builder, results []*result) {
	fmt.Fprintf(b, `
## Memory

How much the resident memory of a process grew at most above what it had after loading, sampled every %v, in MiB; of a
group the leader's and, after the stroke, the one of the others that grew most.
`, sampleEvery)
	if slices.Max(c.sizes) < c.pool {
		b.WriteString("Part of it is the buffer pool, which loading does not fill.\n")
	}
	b.WriteString("\n|")
	line := "| --- |"
	for _, r := range results {
		fmt.Fprintf(b, " | %s", r.name)
		line += " --: |"
	}
	fmt.Fprintf(b, " |\n%s\n", line)
	for i, p := range results[0].memory.phases {
		fmt.Fprintf(b, "| %s |", p.name)
		for _, r := range results {
			leader, others := r.memory.growth(r.memory.phases[i])
			fmt.Fprintf(b, " %.0f", leader)
			if c.nodes > 1 {
				fmt.Fprintf(b, " / %.0f", others)
			}
			b.WriteString(" |")
		}
		b.WriteByte('\n')
	}
}

// several are the median and the longest.
func several(times []time.Duration) string {
	return fmt.Sprintf("%v (%v)", short(quantile.Of(times, 0.5)), short(quantile.Of(times, 1)))
}

// ratio is one of two values of which both were measured.
func ratio[T ~int64 | ~float64](a, b T) string {
	if a <= 0 || b <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.2fx", float64(a)/float64(b))
}

// cell is an error in a table.
func cell(err error) string {
	return strings.NewReplacer("\n", " ", "|", "/").Replace(err.Error())
}

// short rounds to what can be told apart.
func short(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
