package redo

import (
	"fmt"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/page"
)

// kick makes the writer task look.
func (l *Log) kick() {
	if !l.kicked.Load() && l.kicked.CompareAndSwap(false, true) {
		l.writer.Unpark()
	}
}

// runWriter is the writer task: it empties the ring when much lies in it or when
// somebody waits for room.
func (l *Log) runWriter() {
	for !l.stopping.Load() {
		l.writer.Park()
		l.kicked.Store(false)
		for l.shouldWrite() {
			if l.writeTo(l.published.Load()) != nil {
				break
			}
		}
	}
}

func (l *Log) shouldWrite() bool {
	unwritten := l.published.Load() - l.written.Load()
	return unwritten >= l.writeAhead() || unwritten > 0 && l.roomWait.n.Load() != 0
}

// runFlusher is the flusher task: it bounds the time for which a group may stay
// volatile, and when nothing is left to flush brings the bound up to date.
func (l *Log) runFlusher() {
	for !l.stopping.Load() {
		l.flusher.ParkFor(env.Beat(l.env, l.options.FlushInterval))
		if l.stopping.Load() || l.failure.Load() != nil {
			continue
		}
		// A failure halts the log, where everybody hears of it.
		if lsn := l.Published(); lsn > l.Flushed() {
			_ = l.FlushTo(lsn)
		} else {
			_ = l.saveBound()
		}
	}
}

// writeTo writes published bytes to the file until written reaches lsn, in as
// large pieces as there are. A piece may end within a group; that lsn is the end
// of one is what lets wholeWritten follow.
//
// REQUIRES: lsn was the published LSN at some time.
func (l *Log) writeTo(lsn uint64) error {
	for l.written.Load() < lsn {
		l.writeTurn.Lock()
		var err error
		if l.written.Load() < lsn {
			err = l.writePiece()
		}
		l.writeTurn.Unlock()
		if err != nil {
			return err
		}
	}
	raise(&l.wholeWritten, lsn)
	return nil
}

// writePiece writes the longest run that is contiguous in ring and file.
//
// REQUIRES: writeTurn is held; something is published and not written.
func (l *Log) writePiece() error {
	if err := l.Err(); err != nil {
		return err
	}
	from := l.written.Load()
	n := min(l.published.Load()-from, writeMax)
	pos := from & uint64(len(l.ring)-1)
	n = min(n, uint64(len(l.ring))-pos)
	off, contiguous := l.shape.place(page.LSN(from))
	n = min(n, uint64(contiguous))
	if age := from + n - l.ckpt.Load(); age > uint64(l.capacity.Load()) {
		// Somebody reserved without Admit. Better halt than overwrite live log.
		err := fmt.Errorf("redo: log of %d bytes would overrun its checkpoint: age %d", l.capacity.Load(), age)
		l.Fail(err)
		return err
	}
	if _, err := l.file.WriteAt(l.ring[pos:pos+n], off); err != nil {
		return l.ioFailed("write", from, err)
	}
	l.stats.writes.Add(1)
	l.stats.writeBytes.Add(int64(n))
	l.written.Store(from + n)
	if l.roomWait.n.Load() != 0 {
		l.mu.Lock()
		l.roomWait.wake(from + n)
		l.mu.Unlock()
	}
	return nil
}

// ioFailed halts the log after a failed call and returns the error.
func (l *Log) ioFailed(what string, lsn uint64, err error) error {
	err = fmt.Errorf("redo: %s at LSN %d failed: %w", what, lsn, err)
	l.Fail(err)
	return err
}

// FlushTo returns once every group below lsn is durable, or with the error that
// halted the log. Whoever finds nobody at it writes and syncs for all who come
// meanwhile; the others park, and each is woken when its own LSN is reached.
// ErrFutureLSN: lsn is beyond Current.
func (l *Log) FlushTo(lsn page.LSN) error {
	if l.flushed.Load() >= uint64(lsn) {
		return nil
	}
	if lsn > l.Current() {
		return fmt.Errorf("%w: %d > %d", ErrFutureLSN, lsn, l.Current())
	}
	if err := l.waitPublished(uint64(lsn)); err != nil {
		return err
	}
	if done, err := l.takeFlushing(uint64(lsn)); done || err != nil {
		return err
	}
	err := l.flushPublished()
	l.releaseFlushing()
	return err
}

// takeFlushing makes the caller the one who flushes, unless lsn becomes durable
// before.
func (l *Log) takeFlushing(lsn uint64) (done bool, err error) {
	l.mu.Lock()
	for {
		if l.flushed.Load() >= lsn {
			l.mu.Unlock()
			return true, nil
		}
		if f := l.failure.Load(); f != nil {
			l.mu.Unlock()
			return false, f.err
		}
		if !l.flushing {
			l.flushing = true
			l.mu.Unlock()
			return false, nil
		}
		p := l.parkers.Get()
		l.flushWait.add(lsn, p)
		l.mu.Unlock()
		l.stats.flushWaits.Add(1)
		p.Park()
		l.parkers.Put(p)
		l.mu.Lock()
	}
}

// releaseFlushing ends the caller's time as the one who flushes. Those who came
// too late for it are still there: the first of them is next.
func (l *Log) releaseFlushing() {
	l.mu.Lock()
	l.flushing = false
	l.flushWait.wake(l.flushed.Load())
	l.flushWait.wakeFirst()
	l.mu.Unlock()
}

// flushPublished writes and syncs what is published now. If the bound has fallen
// far behind, the sync takes a slot along.
//
// REQUIRES: the caller is the one who flushes.
func (l *Log) flushPublished() error {
	if err := l.writeTo(l.published.Load()); err != nil {
		return err
	}
	if l.flushed.Load() < l.bound.Load()+l.boundLag() || !l.slotTurn.TryLock() {
		return l.sync()
	}
	defer l.slotTurn.Unlock()
	return l.saveSlot(page.LSN(l.ckpt.Load()))
}

// boundLag is how far the bound may fall behind what is flushed before a flush
// takes a slot along.
func (l *Log) boundLag() uint64 { return min(boundLagMax, uint64(l.capacity.Load())/8) }

// sync makes durable what was written before the call. The flushed LSN, and with
// it the bound, moves to the end of a whole group: of a group that reaches across
// the bound recovery could not tell whether it is torn or damaged.
//
// A flush and a slot may sync at the same time: the file lets one follow the other, and after a
// failed sync none succeeds (see package file), so that flushed never moves over what was lost.
func (l *Log) sync() error {
	if err := l.Err(); err != nil {
		return err
	}
	whole := l.wholeWritten.Load()
	if err := l.file.Sync(); err != nil {
		return l.ioFailed("sync", whole, err)
	}
	l.stats.syncs.Add(1)
	raise(&l.flushed, whole)
	if l.flushWait.n.Load() != 0 {
		l.mu.Lock()
		l.flushWait.wake(l.flushed.Load())
		l.mu.Unlock()
	}
	return nil
}

func raise(v *atomic.Uint64, to uint64) {
	for {
		at := v.Load()
		if at >= to || v.CompareAndSwap(at, to) {
			return
		}
	}
}

// saveSlot writes the other slot block and syncs the file. Since the sync is part
// of it, the block that it leaves alone is always durable.
//
// REQUIRES: slotTurn is held; checkpoint and all it implies are durable.
func (l *Log) saveSlot(checkpoint page.LSN) error {
	if err := l.Err(); err != nil {
		return err
	}
	s := l.slot
	s.sequence++
	s.checkpoint = checkpoint
	s.flushed = l.Flushed()
	s.epoch = epochAt(l.epochs, checkpoint)
	if err := s.write(l.file, s.sequence%2); err != nil {
		return l.ioFailed("write of the header", uint64(checkpoint), err)
	}
	if err := l.sync(); err != nil {
		return err
	}
	l.slot = s
	l.bound.Store(uint64(s.flushed))
	return nil
}

// saveBound brings the bound in the file up to what is flushed, if it is not.
func (l *Log) saveBound() error {
	if l.bound.Load() == l.flushed.Load() {
		return nil
	}
	l.slotTurn.Lock()
	defer l.slotTurn.Unlock()
	if l.bound.Load() == l.flushed.Load() {
		return nil
	}
	return l.saveSlot(page.LSN(l.ckpt.Load()))
}

// Checkpoint makes lsn the place where recovery begins, durably, and gives the
// room below free. An lsn at or below the checkpoint changes nothing.
//
// REQUIRES: lsn is the start or end of a group and at most Published; every page
// change below it is durable in the data files.
func (l *Log) Checkpoint(lsn page.LSN) error {
	if lsn <= l.CheckpointLSN() {
		return l.Err()
	}
	if lsn > l.Published() {
		panic(fmt.Sprintf("redo: checkpoint at %d beyond the published LSN %d", lsn, l.Published()))
	}
	if err := l.FlushTo(lsn); err != nil {
		return err
	}
	if err := l.moveCheckpoint(lsn); err != nil {
		return err
	}
	l.roomForAdmits()
	l.pressed.Store(false)
	old := l.Age() > l.asyncAge() && l.pressed.CompareAndSwap(false, true)
	if old || l.admitQueue.Load() != 0 {
		l.options.OnPressure()
	}
	return nil
}

func (l *Log) moveCheckpoint(lsn page.LSN) error {
	l.slotTurn.Lock()
	defer l.slotTurn.Unlock()
	if lsn <= l.CheckpointLSN() {
		return nil
	}
	if err := l.saveSlot(lsn); err != nil {
		return err
	}
	l.ckpt.Store(uint64(lsn))
	for len(l.epochs) > 1 && l.epochs[1].lsn <= lsn {
		l.epochs = l.epochs[1:]
	}
	l.stats.checkpoints.Add(1)
	return nil
}

// epochAt is the epoch of a group that starts at lsn.
func epochAt(epochs []epochStart, lsn page.LSN) uint32 {
	e := epochs[0].epoch
	for _, x := range epochs[1:] {
		if x.lsn <= lsn {
			e = x.epoch
		}
	}
	return e
}
