package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/triremedb/trireme/engine/storage"
)

// insertRows is the number of rows of an insert transaction.
const insertRows = 100

// inMemory are the options of an engine that holds the table in memory, and a redo
// log that fits the load, as one would set it.
func inMemory(rows int) storage.Options {
	pool := max(int64(rows)*rowBytes*10, 256<<20)
	return storage.Options{BufferPoolSize: pool, RedoCapacity: 1 << 30}
}

func subdir(c *config, name string) (string, error) {
	dir := filepath.Join(c.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// pair opens our engine and bbolt, both loaded.
func pair(c *config, name string) (o *ours, b *bbolt, done func(*error), err error) {
	dir, err := subdir(c, name)
	if err != nil {
		return nil, nil, nil, err
	}
	if o, err = openOurs(dir, inMemory(c.rows)); err != nil {
		return nil, nil, nil, err
	}
	if b, err = openBbolt(dir); err != nil {
		return nil, nil, nil, errors.Join(err, o.close())
	}
	if err = o.load(c.rows); err == nil {
		err = b.load(c.rows)
	}
	done = func(err *error) { *err = errors.Join(*err, o.close(), b.close(), os.RemoveAll(dir)) }
	if err != nil {
		done(&err)
	}
	return o, b, done, err
}

// loop computes: it tells what a second goroutine could gain at most.
type loop struct{ x uint64 }

func (l *loop) get(id int64) error {
	l.x ^= uint64(id)
	for range 1000 {
		l.x = mix(l.x)
	}
	return nil
}

// settle writes our dirty pages, so that no background writing disturbs reads.
func (o *ours) settle() error { return o.eng.Pool.FlushAll() }

func measureReads(c *config, r *report) (err error) {
	o, b, done, err := pair(c, "read")
	if err != nil {
		return err
	}
	defer done(&err)
	if err := o.settle(); err != nil {
		return err
	}
	points := func(name string, readers ...reader) contender {
		return contender{name, pointReads(c.rows, readers)}
	}
	mine := points("trireme", o.reader())
	mine.turn = c.profiling("point", mine.turn)
	res, err := compete(c, "point reads",
		mine, points("bbolt", b.reader()), points("trireme x2", o.reader(), o.reader()),
		points("loop", &loop{}), points("loop x2", &loop{}, &loop{}))
	if err != nil {
		return err
	}
	room, _ := res.over(4, 3)
	r.note("Two goroutines that only compute did %.2f times as much as one meanwhile: that is what the machine had room for.", room)
	r.faster("point reads, one goroutine, beside bbolt", res, 0, 1, 0.8)
	r.faster("point reads, two goroutines, beside one", res, 2, 0, 1.6)
	for _, s := range []struct {
		name   string
		cols   []int
		target float64
	}{{"scan of one column", []int{colAmount}, 1}, {"scan of all columns", wholeRow, 0.6}} {
		turn := c.profiling("scan"+s.name[8:11], scans(c.rows, o.scanner(s.cols)))
		res, err := compete(c, s.name,
			contender{"trireme", turn}, contender{"bbolt", scans(c.rows, b.scanner(s.cols))})
		if err != nil {
			return err
		}
		r.faster(s.name+", beside bbolt", res, 0, 1, s.target)
	}
	return nil
}

func measureInserts(c *config, r *report) (err error) {
	o, b, done, err := pair(c, "insert")
	if err != nil {
		return err
	}
	defer done(&err)
	dir, err := subdir(c, "lsm")
	if err != nil {
		return err
	}
	p, err := openPebble(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(), os.RemoveAll(dir)) }()
	if err := p.load(c.rows); err != nil {
		return err
	}
	side := func(name string, w writer) contender {
		return contender{name, inserts(w, newFreshIDs(c.rows), insertRows)}
	}
	mine := side("trireme", o.writer())
	mine.turn = c.profiling("insert", mine.turn)
	res, err := compete(c, "random inserts", mine, side("bbolt", b), side("pebble", p))
	if err != nil {
		return err
	}
	r.faster("batches of 100 random inserts, beside bbolt", res, 0, 1, 3)
	r.faster("batches of 100 random inserts, beside pebble", res, 0, 2, 0.35)
	return nil
}

// profiling wraps a turn so that it is profiled if profiles are wanted.
func (c *config) profiling(name string, turn func(time.Duration) (int, time.Duration, error)) func(time.Duration) (int, time.Duration, error) {
	return func(d time.Duration) (n int, took time.Duration, err error) {
		err = c.profiled(name, func() error {
			n, took, err = turn(d)
			return err
		})
		return n, took, err
	}
}
