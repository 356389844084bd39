package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

// settle is what the background work of a turn gets before the next.
const settle = time.Second

// sample is what one turn gave.
type sample struct {
	rate float64       // transactions per second
	p99  time.Duration //
	cpu  time.Duration // of the server, per transaction
	errs float64       // ignored errors per second
}

var (
	rateLine = regexp.MustCompile(`transactions:\s+\d+\s+\(([\d.]+) per sec\.\)`)
	errsLine = regexp.MustCompile(`ignored errors:\s+\d+\s+\(([\d.]+) per sec\.\)`)
	p99Line  = regexp.MustCompile(`99th percentile:\s+([\d.]+)`)
)

// sysbench runs a script on a server.
func (c *config) sysbench(s *contenders.Server, script, step string, threads int, extra ...string) (string, error) {
	args := append([]string{script, "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-port=" + strconv.Itoa(s.Port),
		"--mysql-user=" + s.User, "--mysql-password=" + s.Password, "--mysql-db=sbtest",
		"--tables=" + strconv.Itoa(c.tables), "--table-size=" + strconv.Itoa(c.rows), "--threads=" + strconv.Itoa(threads),
		"--percentile=99", "--time=" + strconv.Itoa(c.seconds), "--rand-seed=1"}, extra...)
	cmd := exec.Command("sysbench", append(args, step)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("sysbench %s %s on %s: %w\n%s", script, step, s.Name, err, out.String())
	}
	return out.String(), nil
}

func (c *config) turn(s *contenders.Server, script string, threads int) (sample, error) {
	before := s.CPU()
	begin := time.Now()
	out, err := c.sysbench(s, script, "run", threads)
	if err != nil {
		return sample{}, err
	}
	number := func(re *regexp.Regexp) float64 {
		m := re.FindStringSubmatch(out)
		if m == nil {
			err = fmt.Errorf("sysbench %s says nothing of %s:\n%s", script, re, out)
			return 0
		}
		v, perr := strconv.ParseFloat(m[1], 64)
		if perr != nil {
			err = perr
		}
		return v
	}
	x := sample{rate: number(rateLine), errs: number(errsLine), p99: time.Duration(number(p99Line) * float64(time.Millisecond))}
	if n := x.rate * time.Since(begin).Seconds(); n > 0 {
		x.cpu = time.Duration(float64(s.CPU()-before) / n)
	}
	return x, err
}

// measured is all turns, by workload, threads and server.
type measured struct {
	c       *config
	servers contenders.List
	samples map[string][]sample
	load    map[string]time.Duration
}

func key(workload string, threads int, server string) string {
	return fmt.Sprintf("%s/%d/%s", workload, threads, server)
}

func (c *config) measure(servers contenders.List) (*measured, error) {
	m := &measured{c: c, servers: servers, samples: map[string][]sample{}, load: map[string]time.Duration{}}
	for _, s := range servers {
		if err := s.SQL("CREATE DATABASE IF NOT EXISTS sbtest"); err != nil {
			return nil, err
		}
		begin := time.Now()
		if _, err := c.sysbench(s, "oltp_read_write", "prepare", 2); err != nil {
			return nil, err
		}
		m.load[s.Name] = time.Since(begin)
		fmt.Fprintf(os.Stderr, "%s: loaded in %v\n", s.Name, m.load[s.Name].Round(time.Millisecond))
	}
	for _, w := range c.workloads {
		for _, n := range c.threads {
			for range c.rounds {
				for _, s := range servers {
					x, err := c.turn(s, w, n)
					if err != nil {
						return nil, err
					}
					k := key(w, n, s.Name)
					m.samples[k] = append(m.samples[k], x)
					fmt.Fprintf(os.Stderr, "%-22s %3d threads  %-8s %9.0f/s  p99 %v  %v CPU\n", w, n, s.Name, x.rate, x.p99, x.cpu)
				}
			}
			time.Sleep(settle)
		}
	}
	return m, nil
}

func median[T interface{ ~float64 | ~int64 }](list []sample, of func(sample) T) T {
	if len(list) == 0 {
		return 0
	}
	v := make([]T, len(list))
	for i, s := range list {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// text is the report; picture is the name of its plot.
func (m *measured) text(picture string) string {
	var b strings.Builder
	peer, option := "MariaDB", ""
	if m.c.nodes > 1 {
		peer, option = fmt.Sprintf("Galera, %d nodes each", m.c.nodes), fmt.Sprintf(" -nodes %d", m.c.nodes)
	}
	fmt.Fprintf(&b, "# sysbench, beside %s\n\nWritten by `go -C bench run ./sql%s`. %d tables of %d rows, buffer pool %d MiB, %d rounds of %d s in turn; medians.\n"+
		"%d processors, %s. Every commit is on disk before it is acknowledged.\n\n",
		peer, option, m.c.tables, m.c.rows, m.c.pool, m.c.rounds, m.c.seconds, runtime.NumCPU(), runtime.Version())
	for _, s := range m.servers {
		fmt.Fprintf(&b, "- %s: %s; loaded in %v\n", s.Name, s.Version, m.load[s.Name].Round(100*time.Millisecond))
	}
	b.WriteString("\n| Workload | Threads | ")
	for _, s := range m.servers {
		fmt.Fprintf(&b, "%s /s | p99 | CPU each | ", s.Name)
	}
	b.WriteString("Ratio | Target | |\n| --- | --: | ")
	for range m.servers {
		b.WriteString("--: | --: | --: | ")
	}
	b.WriteString("--: | --: | --- |\n")
	for _, w := range m.c.workloads {
		for _, n := range m.c.threads {
			m.row(&b, w, n)
		}
	}
	if picture != "" {
		fmt.Fprintf(&b, "\n![Ratios of transactions per second](%s)\n", picture)
	}
	return b.String()
}

// plot is a picture of the ratios.
func (m *measured) plot() string {
	var bars []reportfile.Bar
	for _, w := range m.c.workloads {
		for _, n := range m.c.threads {
			rates := m.rates(w, n)
			if len(rates) < 2 || rates[1] == 0 {
				continue
			}
			bars = append(bars, reportfile.Bar{Name: fmt.Sprintf("%s, %d", strings.TrimPrefix(w, "oltp_"), n), Ratio: rates[0] / rates[1], Target: targets[w]})
		}
	}
	return reportfile.Plot(bars)
}

// rates are the servers' medians.
func (m *measured) rates(w string, n int) (list []float64) {
	for _, s := range m.servers {
		list = append(list, median(m.samples[key(w, n, s.Name)], func(x sample) float64 { return x.rate }))
	}
	return list
}

func (m *measured) row(b *strings.Builder, w string, n int) {
	fmt.Fprintf(b, "| %s | %d | ", w, n)
	rates := m.rates(w, n)
	var tails []time.Duration
	for i, s := range m.servers {
		list := m.samples[key(w, n, s.Name)]
		tail := median(list, func(x sample) time.Duration { return x.p99 })
		tails = append(tails, tail)
		fmt.Fprintf(b, "%.0f | %v | %v | ", rates[i], tail.Round(10*time.Microsecond), median(list, func(x sample) time.Duration { return x.cpu }).Round(time.Microsecond))
	}
	if len(rates) < 2 || rates[1] == 0 {
		b.WriteString("| | |\n")
		return
	}
	ratio, verdict, target := rates[0]/rates[1], "", ""
	if t := targets[w]; t > 0 {
		target, verdict = fmt.Sprintf("%.1fx", t), "missed"
		if ratio >= t {
			verdict = "pass"
		}
		if tails[0] > tails[1] {
			verdict += ", p99 worse"
		}
	}
	fmt.Fprintf(b, "%.2fx | %s | %s |\n", ratio, target, verdict)
}
