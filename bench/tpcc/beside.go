package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

// target is what both ratios are to be at least.
const target = 1.2

// settle is what the background work of loading or of a turn gets before the next.
const settle = 2 * time.Second

// contender is a server and what was measured of it.
type contender struct {
	*contenders.Server
	load  time.Duration
	busy  time.Duration // of the server, while it was loaded
	turns []*result
	cpu   []time.Duration // of the server, for each transaction that was committed
}

// beside loads and checks this database and MariaDB, lets both serve in turn, checks them
// again, and writes the report.
func (c *config) beside(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "bench-tpcc-")
	if err != nil {
		return err
	}
	if !c.keep {
		defer os.RemoveAll(dir)
	}
	started, err := contenders.Start(contenders.Options{Dir: dir, Binary: c.binary, Pool: c.pool, Keep: c.keep, Profiles: c.profiles}, c.only)
	defer func() { err = errors.Join(err, started.Stop()) }()
	if err != nil {
		return err
	}
	var list []*contender
	for _, s := range started {
		list = append(list, &contender{Server: s})
	}
	if err := c.compare(ctx, list); err != nil {
		return err
	}
	text := c.text(list)
	fmt.Print(text)
	if c.report == "" || c.quick || c.only != "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

func (c *config) compare(ctx context.Context, list []*contender) error {
	for _, s := range list {
		var err error
		c.at(s)
		before := s.CPU()
		s.load, err = c.load(ctx)
		s.busy = s.CPU() - before
		if err == nil {
			fmt.Fprintf(os.Stderr, "%s: loaded in %v, %v of CPU\n", s.Name, s.load.Round(time.Millisecond), s.busy.Round(time.Millisecond))
			err = c.checkAlone(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		time.Sleep(settle)
	}
	for range c.rounds {
		for _, s := range list {
			c.at(s)
			if err := c.turn(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			time.Sleep(settle)
		}
	}
	for _, s := range list {
		c.at(s)
		if err := c.checkAlone(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// at makes a server the one that is used.
func (c *config) at(s *contender) {
	c.address, c.user, c.password = fmt.Sprintf("127.0.0.1:%d", s.Port), s.User, s.Password
}

func (c *config) checkAlone(ctx context.Context) error {
	db, err := c.open(c.database)
	if err != nil {
		return err
	}
	defer db.Close()
	return c.check(ctx, db, -1)
}

func (c *config) turn(ctx context.Context, s *contender) error {
	db, err := c.open(c.database)
	if err != nil {
		return err
	}
	defer db.Close()
	before := s.CPU()
	r, err := drive(ctx, db, c.warehouses, c.clients, c.ramp, c.duration, c.seed)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range r.times {
		n += len(t)
	}
	share := float64(c.duration) / float64(c.duration+c.ramp) // of what the server did
	s.turns = append(s.turns, r)
	s.cpu = append(s.cpu, time.Duration(float64(s.CPU()-before)*share/float64(max(n, 1))))
	fmt.Fprintf(os.Stderr, "%-8s tpmC %6.0f, %v of CPU for a transaction\n", s.Name, r.tpmC(), s.cpu[len(s.cpu)-1].Round(time.Microsecond))
	return nil
}

// middle is the median.
func middle[T any, N float64 | time.Duration](list []T, of func(T) N) N {
	values := make([]N, len(list))
	for i, v := range list {
		values[i] = of(v)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// percentile is the median of the turns' percentiles of a transaction's time.
func (s *contender) percentile(name string, p int) time.Duration {
	return middle(s.turns, func(r *result) time.Duration {
		t := slices.Clone(r.times[name])
		if len(t) == 0 {
			return 0
		}
		slices.Sort(t)
		return t[(len(t)-1)*p/100]
	})
}

func (s *contender) tpmC() float64 { return middle(s.turns, (*result).tpmC) }

func (c *config) text(list []*contender) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# TPC-C, beside MariaDB\n\nWritten by `go -C bench run ./tpcc beside`: %d warehouses, %d terminals without keying and think times, statements prepared\n"+
		"once for each connection, buffer pool %d MiB, %d turns of %v each; medians. %d processors, %s, the driver among what they do.\n"+
		"Every commit is on disk before it is acknowledged. The 12 consistency conditions held before and after on each server.\n\n"+
		"| Server | Load | CPU of it | tpmC | CPU each |", c.warehouses, c.clients, c.pool, c.rounds, c.duration, runtime.NumCPU(), runtime.Version())
	line := "| --- | --: | --: | --: | --: |"
	for _, k := range kinds {
		fmt.Fprintf(&b, " %s p50 / p99 |", k.name)
		line += " --: |"
	}
	fmt.Fprintf(&b, "\n%s\n", line)
	for _, s := range list {
		fmt.Fprintf(&b, "| %s %s | %.1f s | %.1f s | %.0f | %v |", s.Name, s.Version, s.load.Seconds(), s.busy.Seconds(), s.tpmC(),
			middle(s.cpu, func(d time.Duration) time.Duration { return d }).Round(time.Microsecond))
		for _, k := range kinds {
			fmt.Fprintf(&b, " %.1f / %.0f ms |", ms(s.percentile(k.name, 50)), ms(s.percentile(k.name, 99)))
		}
		b.WriteByte('\n')
	}
	if len(list) == 2 {
		load, rate := list[1].load.Seconds()/list[0].load.Seconds(), list[0].tpmC()/list[1].tpmC()
		fmt.Fprintf(&b, "| Ratio | %.2fx | | %.2fx |%s\n| Target %.1fx | %s | | %s |%s\n", load, rate, strings.Repeat(" |", 1+len(kinds)),
			target, verdict(load), verdict(rate), strings.Repeat(" |", 1+len(kinds)))
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func verdict(ratio float64) string {
	if ratio >= target {
		return "pass"
	}
	return "missed"
}
