package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// fillRows is how many rows a transaction has that fills the table, and fillClients
// how many such clients there are.
const (
	fillRows    = 500
	fillClients = 4
)

// measureProvision fills the table and gives its data to a new member under load.
func measureProvision(c *config, r *report) (err error) {
	k, err := newGroup(c, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	began := time.Now()
	rows := c.provision / valueBytes / fillRows * fillRows
	if err := k.fill(rows); err != nil {
		return err
	}
	r.note("Filling the table with %d rows took %.0f s.", rows, time.Since(began).Seconds())
	w, err := newCrowd(k, faultClients, faultPause, patience, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	time.Sleep(settlePause)
	quiet := time.Now()
	time.Sleep(max(c.slice, time.Second))
	begin := time.Now()
	before := w.rate(quiet, begin)
	if err := k.join(); err != nil {
		return err
	}
	end := time.Now()
	took := end.Sub(begin)
	during := w.rate(begin, end)
	longest, at := w.gap(begin, end)
	size := fmt.Sprintf("%.0f MiB", float64(rows*valueBytes)/(1<<20))
	r.value("giving a new member "+size+" of values", "%.1f s", took.Seconds())
	r.value("the same, values a second", "%.0f MiB/s", float64(rows*valueBytes)/(1<<20)/took.Seconds())
	r.value("commits/s meanwhile, beside before", "%.2fx", during/before)
	r.under("longest window without a commit meanwhile", longest, 200*time.Millisecond)
	r.note("While the new member got its data: %.0f commits/s by %d clients that pause, %.0f/s before; the longest window without a commit began after %.1f s of %.1f.",
		during, faultClients, before, at.Seconds(), took.Seconds())
	if err := w.end(); err != nil {
		return err
	}
	return k.equal()
}

// fill inserts rows with ids below 0.
func (k *cluster) fill(rows int64) error {
	leader, err := k.leader()
	if err != nil {
		return err
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, fillClients)
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil {
				from := next.Add(fillRows) - fillRows
				if from >= rows {
					return
				}
				req := binary.LittleEndian.AppendUint64(nil, uint64(from-rows))
				ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
				_, errs[i] = call(ctx, k.conns[leader], callFill, binary.LittleEndian.AppendUint64(req, fillRows))
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), k.settled())
}

// join adds a member to the group and waits until it has everything.
func (k *cluster) join() error {
	leader, err := k.leader()
	if err != nil {
		return err
	}
	peers, _, err := k.flags[leader].parsePeers()
	if err != nil {
		return err
	}
	f := roleFlags{name: "node", id: members + 1, data: filepath.Join(k.dir, fmt.Sprint(members+1)), verbose: k.c.verbose,
		join: true, contact: peers[leader].addr}
	self := peer{id: f.id}
	if self.addr, err = freeAddr(); err != nil {
		return err
	}
	if f.listen, err = freeAddr(); err != nil {
		return err
	}
	f.peers = joinPeers(append(peers, self))
	if _, err := k.command(leader, command{Do: "add", ID: self.id, Addr: self.addr}); err != nil {
		return err
	}
	p, err := start(f)
	if err != nil {
		return err
	}
	cc, err := dial(f.listen)
	if err != nil {
		return errors.Join(err, p.end())
	}
	k.flags, k.nodes, k.conns = append(k.flags, f), append(k.nodes, p), append(k.conns, cc)
	return k.caughtUp(len(k.nodes)-1, leader)
}

// equal compares the rows of all nodes.
func (k *cluster) equal() error {
	if err := k.settled(); err != nil {
		return err
	}
	var first map[int64]uint32
	for i := range k.nodes {
		rows, err := k.dump(i, -1<<62)
		if err != nil {
			return err
		}
		if first == nil {
			first = rows
			continue
		}
		if len(rows) != len(first) {
			return fmt.Errorf("node %d has %d rows, node 1 has %d", i+1, len(rows), len(first))
		}
		for id, sum := range rows {
			if first[id] != sum {
				return fmt.Errorf("row %d differs on node %d", id, i+1)
			}
		}
	}
	return nil
}
