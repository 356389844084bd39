package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// contender is one side of a comparison. turn works for about d and returns how
// many units it did in which time.
type contender struct {
	name string
	turn func(d time.Duration) (units int, took time.Duration, err error)
}

// result is what the contenders did, by contender and round: units a second, and
// units a second of the process's CPU time.
type result struct {
	wall, cpu [][]float64
	// busy says that other processes took processors away in nearly every round.
	busy bool
}

// Rounds in which some turn had to wait for a processor for longer than a part of
// its length are repeated, up to a number of times the rounds wanted.
const (
	calmShare = 0.05
	roundsMax = 3
)

// compete lets the contenders take turns. A first round warms up and does not
// count. If the machine is too busy for enough calm rounds, all rounds count.
//
// Background work of one goes on in the next one's turn. Pebble, which has the most
// of it, comes before us: what it costs is counted against us.
func compete(c *config, what string, list ...contender) (*result, error) {
	calm, all := newResult(len(list)), newResult(len(list))
	for round := -1; round < c.rounds*roundsMax && len(calm.wall[0]) < c.rounds; round++ {
		wall, cpu := make([]float64, len(list)), make([]float64, len(list))
		isCalm := true
		for i, one := range list {
			cpuBefore, delayBefore := cpuTime(), runDelay()
			units, took, err := one.turn(c.slice)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", what, one.name, err)
			}
			used := max(cpuTime()-cpuBefore, time.Microsecond)
			isCalm = isCalm && (runDelay()-delayBefore).Seconds() < calmShare*took.Seconds()
			wall[i], cpu[i] = float64(units)/took.Seconds(), float64(units)/used.Seconds()
		}
		if round < 0 {
			continue
		}
		all.add(wall, cpu)
		if isCalm {
			calm.add(wall, cpu)
		}
	}
	r := calm
	if len(calm.wall[0]) < min(3, c.rounds) {
		r = all
		r.busy = true
	}
	for i, one := range list {
		fmt.Fprintf(os.Stderr, "  %-20s %-12s %10.0f/s %s; %.0f a CPU second\n",
			what, one.name, median(r.wall[i]), spread(r.wall[i]), median(r.cpu[i]))
	}
	fmt.Fprintf(os.Stderr, "  %-20s %d calm rounds of %d\n", what, len(calm.wall[0]), len(all.wall[0]))
	return r, nil
}

func newResult(contenders int) *result {
	return &result{wall: make([][]float64, contenders), cpu: make([][]float64, contenders)}
}

func (r *result) add(wall, cpu []float64) {
	for i := range wall {
		r.wall[i] = append(r.wall[i], wall[i])
		r.cpu[i] = append(r.cpu[i], cpu[i])
	}
}

// over is the median over the rounds of one contender's rate to another's, by the
// wall clock and by CPU time: what disturbs a round disturbs both of its turns.
func (r *result) over(a, b int) (wall, cpu float64) {
	return overRounds(r.wall[a], r.wall[b]), overRounds(r.cpu[a], r.cpu[b])
}

func overRounds(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

// cpuTime is the CPU time of the process so far, all threads, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runDelay is the time that the process's threads have waited for a processor
// while they could have run; 0 where the system does not tell.
func runDelay() time.Duration {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0
	}
	var total time.Duration
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		var onCPU, waiting int64
		if _, err := fmt.Sscan(string(text), &onCPU, &waiting); err == nil {
			total += time.Duration(waiting)
		}
	}
	return total
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread tells how far values lie apart.
func spread(values []float64) string {
	return fmt.Sprintf("(%.0f to %.0f)", slices.Min(values), slices.Max(values))
}

// timed runs step until d is over and returns the number of units that it did.
func timed(d time.Duration, step func() (units int, err error)) (int, time.Duration, error) {
	start := time.Now()
	total := 0
	for {
		n, err := step()
		if err != nil {
			return total, 0, err
		}
		total += n
		if took := time.Since(start); took >= d {
			return total, took, nil
		}
	}
}

// pointReads is a turn of random reads, by one goroutine for each reader.
func pointReads(rows int, readers []reader) func(time.Duration) (int, time.Duration, error) {
	seed := rng(len(readers))
	return func(d time.Duration) (int, time.Duration, error) {
		var wg sync.WaitGroup
		units := make([]int, len(readers))
		errs := make([]error, len(readers))
		start := time.Now()
		for i, r := range readers {
			random := rng(seed.below(1 << 40))
			wg.Add(1)
			go func() {
				defer wg.Done()
				units[i], _, errs[i] = timed(d, func() (int, error) {
					for range 256 {
						if err := r.get(int64(random.below(rows)) * idStep); err != nil {
							return 0, err
						}
					}
					return 256, nil
				})
			}()
		}
		wg.Wait()
		took := time.Since(start)
		total := 0
		for i := range units {
			if errs[i] != nil {
				return 0, 0, errs[i]
			}
			total += units[i]
		}
		return total, took, nil
	}
}

// scans is a turn of whole scans, at least one.
func scans(rows int, s scanner) func(time.Duration) (int, time.Duration, error) {
	want := int64(0)
	for i := range int64(rows) {
		want += amountOf(i * idStep)
	}
	return func(d time.Duration) (int, time.Duration, error) {
		return timed(d, func() (int, error) {
			n, sum, err := s.scan()
			if err == nil && (n != rows || sum != want) {
				err = fmt.Errorf("the scan gave %d rows with sum %d, not %d with %d", n, sum, rows, want)
			}
			return n, err
		})
	}
}

// inserts is a turn of batches of fresh rows.
func inserts(w writer, ids *freshIDs, batchRows int) func(time.Duration) (int, time.Duration, error) {
	return func(d time.Duration) (int, time.Duration, error) {
		return timed(d, func() (int, error) {
			if ids.left() < batchRows {
				return 0, fmt.Errorf("no ids are left after %d inserts", ids.used)
			}
			return batchRows, w.batch(batchRows, func(int) int64 { return ids.next() })
		})
	}
}
