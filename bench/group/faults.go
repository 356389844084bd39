package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// The load of the faults: few clients that leave the processors room, so that what is
// measured is the group and not the machine.
const (
	faultClients = 4
	faultPause   = 2 * time.Millisecond
	patience     = 2 * time.Second        // of a client with one node
	settlePause  = 700 * time.Millisecond // between two trials
	// busyWriters never pause: they, and what the nodes do for them, take all processors.
	busyWriters = 8
)

// faulty starts a group and a crowd of clients, and ends both.
func faulty(c *config, patience time.Duration, count bool, fn func(k *cluster, w *crowd) error) (err error) {
	return loaded(c, faultClients, faultPause, patience, count, fn)
}

// loaded is faulty with as many clients, which pause between two writes.
func loaded(c *config, clients int, pause, patience time.Duration, count bool, fn func(k *cluster, w *crowd) error) (err error) {
	k, err := newGroup(c, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	w, err := newCrowd(k, clients, pause, patience, count)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	time.Sleep(settlePause)
	return fn(k, w)
}

// measureFailover kills the leader again and again.
func measureFailover(c *config, r *report) error {
	times, err := failovers(c, r, faultClients, faultPause)
	if err != nil {
		return err
	}
	r.under(fmt.Sprintf("kill -9 of the leader to the next commit, median of %d", len(times)), median(times), time.Second)
	r.under("kill -9 of the leader to the next commit, worst", slices.Max(times), 2500*time.Millisecond)
	return nil
}

// measureBusyFailover does so while writers take all processors.
func measureBusyFailover(c *config, r *report) error {
	times, err := failovers(c, r, busyWriters, 0)
	if err != nil {
		return err
	}
	slices.Sort(times)
	what := fmt.Sprintf("the same under %d writers without a pause", busyWriters)
	r.under(fmt.Sprintf("%s, median of %d", what, len(times)), median(times), 100*time.Millisecond)
	r.under(what+", 99 of 100", times[(len(times)*99+99)/100-1], 300*time.Millisecond)
	r.value(what+", worst", "%s", millis(slices.Max(times)))
	return nil
}

// failovers are how long nothing was committed after each kill of the leader.
func failovers(c *config, r *report, clients int, pause time.Duration) (times []time.Duration, err error) {
	err = loaded(c, clients, pause, patience, false, func(k *cluster, w *crowd) error {
		for range c.failovers {
			took, err := failover(k, w)
			if err != nil {
				return fmt.Errorf("after %d trials: %w", len(times), err)
			}
			times = append(times, took)
			time.Sleep(settlePause)
		}
		if err := w.end(); err != nil {
			return err
		}
		r.note("After %d failovers under %d clients all %d acknowledged rows, and no others, were on all nodes.", len(times), clients, len(w.ids))
		return w.verify()
	})
	fmt.Fprintf(os.Stderr, "  failovers: %v\n", rounded(times))
	return times, err
}

// failover kills the leader, waits for the next commit, and lets the node come back
// and catch up.
func failover(k *cluster, w *crowd) (took time.Duration, err error) {
	leader, err := k.leader()
	if err != nil {
		return 0, err
	}
	if took, err = w.waitAck(k.kill(leader), leader); err != nil {
		return took, err
	}
	time.Sleep(settlePause)
	if err := k.restart(leader); err != nil {
		return took, err
	}
	return took, k.settled()
}

// measureHang stops the leader's process, which then neither answers nor refuses: the
// others have to wait for it. It goes on once another leads.
func measureHang(c *config, r *report) error {
	const patience = 100 * time.Millisecond
	var times []time.Duration
	err := faulty(c, patience, false, func(k *cluster, w *crowd) error {
		for range c.hangs {
			leader, err := k.leader()
			if err != nil {
				return err
			}
			p, begin := k.nodes[leader], time.Now()
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			took, err := w.waitAck(begin, leader)
			if err := errors.Join(err, p.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
				return err
			}
			times = append(times, took)
			if err := k.settled(); err != nil {
				return err
			}
			time.Sleep(settlePause)
		}
		if err := w.end(); err != nil {
			return err
		}
		return w.verify()
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  hangs: %v\n", rounded(times))
	r.under(fmt.Sprintf("leader stands still to the next commit, median of %d", len(times)), median(times), time.Second)
	r.under("leader stands still to the next commit, worst", slices.Max(times), 2500*time.Millisecond)
	r.note("A leader that stands still (SIGSTOP) refuses no connection, so that the others wait out the election timeout; clients wait %s for an answer.", millis(patience))
	return nil
}

// measureTransfer hands leadership over again and again.
func measureTransfer(c *config, r *report) error {
	var times []time.Duration
	err := faulty(c, patience, true, func(k *cluster, w *crowd) error {
		for range c.transfers {
			leader, err := k.leader()
			if err != nil {
				return err
			}
			begin := time.Now()
			if _, err := k.command(leader, command{Do: "transfer"}); err != nil {
				return err
			}
			took, err := w.waitAck(begin, leader)
			if err != nil {
				return err
			}
			times = append(times, took)
			time.Sleep(settlePause)
		}
		if err := w.end(); err != nil {
			return err
		}
		var acked int64
		for _, n := range w.counts {
			acked += n
		}
		r.note("Of %d commits with tokens during %d transfers none failed and none was done twice.", acked, len(times))
		return k.counted(retryCounter, func(sum int64) error {
			if sum != acked {
				return fmt.Errorf("the counters say %d, but %d commits were acknowledged", sum, acked)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  transfers: %v\n", rounded(times))
	r.under(fmt.Sprintf("planned transfer to the next commit on the new leader, median of %d", len(times)), median(times), 200*time.Millisecond)
	r.under("planned transfer to the next commit on the new leader, worst", slices.Max(times), 200*time.Millisecond)
	return nil
}

// watchAfter is how long after a follower died, or has caught up, a window without
// commits is looked for.
const watchAfter = 1500 * time.Millisecond

// measureFollower kills a follower and lets it come back.
func measureFollower(c *config, r *report) error {
	var quiet, dying, coming []time.Duration
	err := faulty(c, patience, false, func(k *cluster, w *crowd) error {
		for i := range c.windows {
			leader, err := k.leader()
			if err != nil {
				return err
			}
			begin := time.Now()
			time.Sleep(watchAfter)
			quiet = append(quiet, longest(w, begin))
			victim := (leader + 1 + i%(members-1)) % members
			begin = k.kill(victim)
			time.Sleep(watchAfter)
			dying = append(dying, longest(w, begin))
			begin = time.Now()
			if err := errors.Join(k.restart(victim), k.settled()); err != nil {
				return err
			}
			time.Sleep(watchAfter / 3)
			coming = append(coming, longest(w, begin))
		}
		if err := w.end(); err != nil {
			return err
		}
		return w.verify()
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  longest windows: quiet %v, dying %v, coming back %v\n", rounded(quiet), rounded(dying), rounded(coming))
	r.under(fmt.Sprintf("longest window without a commit when a follower dies, worst of %d", len(dying)), slices.Max(dying), 200*time.Millisecond)
	r.under(fmt.Sprintf("longest window without a commit when a follower comes back, worst of %d", len(coming)), slices.Max(coming), 200*time.Millisecond)
	r.note("Longest windows without a commit: nothing happening, median %s, worst %s; a follower dies, median %s; it comes back, median %s.",
		millis(median(quiet)), millis(slices.Max(quiet)), millis(median(dying)), millis(median(coming)))
	return nil
}

// longest is the longest window without a commit since a point in time.
func longest(w *crowd, since time.Time) time.Duration {
	d, _ := w.gap(since, time.Now())
	return d
}

func rounded(list []time.Duration) (out []time.Duration) {
	for _, d := range list {
		out = append(out, d.Round(time.Millisecond))
	}
	return out
}
