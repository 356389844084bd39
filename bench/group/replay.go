package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/provision"
)

// measureLog records logs of different loads and looks at their size, and at how long
// a follower takes that does nothing but apply them.
func measureLog(c *config, r *report) error {
	rows := [][]string{{"Clients", "Compression", "Bytes a transaction", "Transactions an entry", "Made, /s", "Applied alone, /s"}}
	for _, clients := range []int{1, 64, 256} {
		var sizes [2]float64
		for i, plain := range []bool{false, true} {
			rec, err := recordLog(c, clients, plain)
			if err != nil {
				return err
			}
			sizes[i] = rec.bytesEach
			row := []string{fmt.Sprint(clients), "on", fmt.Sprintf("%.0f", rec.bytesEach), fmt.Sprintf("%.1f", rec.perEntry),
				fmt.Sprintf("%.0f", rec.made), fmt.Sprintf("%.0f", rec.applied)}
			if plain {
				row[1] = "off"
			}
			rows = append(rows, row)
			if clients > 1 && !plain {
				r.atLeast("applying the log of "+clientsOf(clients)+" alone, beside making it", rec.applied/rec.made, 2, "%.2fx")
			}
		}
		r.value("log of a transaction, "+clientsOf(clients)+", compressed and not", "%.0f and %.0f bytes", sizes[0], sizes[1])
	}
	r.table("The log of transactions of one 200-byte row", rows)
	r.note("Values are letters with 4 bits of information each: 100 bytes of the 200 cannot be compressed away.")
	return nil
}

// recorded is a log and how it came to be.
type recorded struct {
	bytesEach, perEntry float64
	made, applied       float64 // transactions a second
}

// recordLog lets clients write for a while, stops the group and applies the log of its
// leader to an empty engine.
func recordLog(c *config, clients int, plain bool) (rec recorded, err error) {
	k, err := newGroup(c, func(f *roleFlags) { f.plain = plain })
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	leader, err := k.leader()
	if err != nil {
		return rec, err
	}
	conns, err := dialNode(k.flags[leader].listen)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, conns.close()) }()
	before, err := k.status(leader)
	if err != nil {
		return rec, err
	}
	t, err := drive(k, newStreamWriter(conns), clients, 3*c.slice)
	if err != nil {
		return rec, err
	}
	after, err := k.status(leader)
	if err != nil {
		return rec, err
	}
	n := float64(after.Number - before.Number)
	rec.made = t.rate()
	rec.bytesEach, rec.perEntry = float64(after.LogBytes-before.LogBytes)/n, n/float64(after.LogEntries-before.LogEntries)
	if err := k.stop(); err != nil {
		return rec, err
	}
	p, err := start(roleFlags{name: "replay", id: k.flags[leader].id, data: k.flags[leader].data})
	if err != nil {
		return rec, err
	}
	<-p.done
	if err := p.end(); err != nil {
		return rec, err
	}
	var out replayed
	if err := json.Unmarshal(p.out.Bytes(), &out); err != nil {
		return rec, err
	}
	rec.applied = float64(out.Transactions) / out.Seconds
	return rec, nil
}

// replayed is what a replaying process prints.
type replayed struct {
	Transactions uint64
	Seconds      float64
}

// replay applies the log of a node that has ended to an empty engine, as a follower
// would, and does nothing else.
func replay(f *roleFlags) (err error) {
	ready()
	home, err := provision.OpenHome(file.OS(f.data))
	if err != nil {
		return err
	}
	l, err := log.Open(log.Options{FS: home.Data(), Env: env.Real(), Group: benchGroup})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	dir := filepath.Join(f.data, "replay")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	opt := storageOptions()
	opt.FS, opt.Env = file.OS(dir), env.Real()
	eng, err := storage.Open(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: eng})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	begin := time.Now()
	for next, last := l.FirstIndex(), l.LastIndex(); next <= last; {
		entries, err := l.Read(next, last+1, 1<<20)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := a.Submit(apply.Entry{Index: e.Index, Term: e.Term, Data: e.Data, Opaque: e.Type != log.Normal}); err != nil {
				return err
			}
		}
		next += uint64(len(entries))
	}
	if err := a.Drain(); err != nil {
		return err
	}
	_, number := a.Applied()
	return json.NewEncoder(os.Stdout).Encode(replayed{number, time.Since(begin).Seconds()})
}

// storageOptions are those of an engine of this benchmark, but for where it lies.
func storageOptions() storage.Options {
	return storage.Options{BufferPoolSize: 256 << 20, RedoCapacity: 512 << 20}
}

// benchGroup is the id of the group.
var benchGroup = [16]byte{'b', 'e', 'n', 'c', 'h'}
