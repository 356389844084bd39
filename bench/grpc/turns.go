package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// contender is something that is measured.
type contender struct {
	name   string
	server *servers.Process
	// open prepares callers; end is called in any case.
	open func(callers int) (call func(caller int, m *meter) error, end func(), err error)
}

// meter is what one caller of a turn notes.
type meter struct {
	over *atomic.Bool
	rnd  *rand.Rand
	rows int
	took []time.Duration
}

// id draws a row.
func (m *meter) id() int { return m.rnd.IntN(m.rows) + 1 }

// repeat makes a call of its argument's row until the turn is over.
func (m *meter) repeat(call func(id int) error) error {
	for !m.over.Load() {
		begin := time.Now()
		if err := call(m.id()); err != nil {
			return err
		}
		m.took = append(m.took, time.Since(begin))
	}
	return nil
}

// sample is what one turn gave.
type sample struct {
	rate   float64 // calls per second
	median time.Duration
	p99    time.Duration
	server time.Duration // processor time of the server, for each call
	client time.Duration // the same of the callers
}

// cpu is the processor time of a call as a whole.
func (s sample) cpu() time.Duration { return s.server + s.client }

// ownCPU is the processor time of this process so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// turn lets callers call for a while.
func (b *bench) turn(server *servers.Process, callers int, length time.Duration, call func(caller int, m *meter) error) (sample, error) {
	var over atomic.Bool
	meters, errs := make([]*meter, callers), make([]error, callers)
	served, own, begin := server.CPU(), ownCPU(), time.Now()
	var tasks sync.WaitGroup
	for i := range meters {
		m := &meter{over: &over, rnd: rand.New(rand.NewPCG(uint64(i), 1)), rows: b.rows, took: make([]time.Duration, 0, 1<<14)}
		meters[i] = m
		tasks.Go(func() {
			if errs[i] = call(i, m); errs[i] != nil {
				over.Store(true)
			}
		})
	}
	time.AfterFunc(length, func() { over.Store(true) })
	tasks.Wait()
	wall := time.Since(begin)
	served, own = server.CPU()-served, ownCPU()-own
	if err := errors.Join(errs...); err != nil {
		return sample{}, err
	}
	var all []time.Duration
	for _, m := range meters {
		all = append(all, m.took...)
	}
	if len(all) == 0 {
		return sample{}, errors.New("no call has ended within the turn: give it more time with -turn")
	}
	slices.Sort(all)
	n := time.Duration(len(all))
	return sample{rate: float64(len(all)) / wall.Seconds(), median: all[len(all)/2], p99: all[len(all)*99/100], server: served / n, client: own / n}, nil
}

// warmUp is a turn before those that count.
const warmUp = 500 * time.Millisecond

// takeTurns lets contenders take turns. The samples are by contender and round.
func (b *bench) takeTurns(callers int, all []contender) (samples [][]sample, err error) {
	calls := make([]func(int, *meter) error, len(all))
	for i, c := range all {
		call, end, err := c.open(callers)
		if end != nil {
			defer end()
		}
		if err == nil {
			_, err = b.turn(c.server, callers, warmUp, call)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %d callers: %w", c.name, callers, err)
		}
		calls[i] = call
	}
	samples = make([][]sample, len(all))
	for range b.rounds {
		for i, c := range all {
			s, err := b.turn(c.server, callers, b.config.turn, calls[i])
			if err != nil {
				return nil, fmt.Errorf("%s, %d callers: %w", c.name, callers, err)
			}
			samples[i] = append(samples[i], s)
			fmt.Fprintf(os.Stderr, "%-40s %3d callers %8.0f/s  p50 %-9v p99 %-9v CPU %v and %v\n", c.name, callers, s.rate, s.median, s.p99, s.server, s.client)
		}
	}
	return samples, nil
}

func median[T interface{ ~float64 | ~int64 }](list []sample, of func(sample) T) T {
	v := make([]T, len(list))
	for i, s := range list {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// ratio is the median of the rounds' ratios of a to b.
func ratio(a, b []sample, of func(sample) float64) float64 {
	v := make([]float64, len(a))
	for i := range a {
		v[i] = of(a[i]) / of(b[i])
	}
	slices.Sort(v)
	return v[len(v)/2]
}
