package redo

import (
	"fmt"
	"path"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Resize gives the log another capacity (at least [MinCapacity]), while it is in
// use. It copies the live part into a new file and swaps the files by rename, so
// that after a crash either is there, complete. Logging goes on as far as the
// buffer takes it. ErrTooSmall: the live part and what is admitted do not fit;
// nothing has changed, and after a checkpoint they may. file.ErrNoSpace: nothing
// has changed either.
func (l *Log) Resize(capacity int64) error {
	return l.resize(min(max(capacity, MinCapacity), maxCapacity))
}

func (l *Log) resize(capacity int64) error {
	if capacity == l.Capacity() {
		return l.Err()
	}
	// Never durable, so this waits for the turn and takes it, or fails.
	if _, err := l.takeFlushing(^uint64(0)); err != nil {
		return err
	}
	l.slotTurn.Lock()
	l.writeTurn.Lock()
	err := l.replaceFile(capacity)
	l.writeTurn.Unlock()
	l.slotTurn.Unlock()
	l.releaseFlushing()
	l.roomForAdmits()
	return err
}

// replaceFile does the work of Resize.
//
// REQUIRES: the caller holds all three turns.
func (l *Log) replaceFile(capacity int64) error {
	if err := l.Err(); err != nil {
		return err
	}
	old := l.capacity.Load()
	if capacity < old {
		// From here on nothing is admitted that would not fit afterwards.
		l.limit.Store(capacity - margin)
		if live := l.admitted.Load() + l.Age(); live > capacity-margin {
			l.setCapacity(old)
			return fmt.Errorf("%w: %d bytes live, %d wanted", ErrTooSmall, live, capacity)
		}
	}
	s := l.slot
	s.capacity = capacity
	written := l.written.Load()
	whole := l.wholeWritten.Load()
	s.flushed = page.LSN(whole) // the new file is durable before it gets its name
	f, err := makeFile(l.options, &s, func(f file.File) error {
		return copyLog(l.file, l.shape, f, s.shape, s.checkpoint, page.LSN(written))
	})
	if err != nil {
		l.setCapacity(old)
		return err
	}
	if err := l.switchFile(f, s); err != nil {
		return err
	}
	raise(&l.flushed, whole)
	l.bound.Store(uint64(s.flushed))
	l.setCapacity(capacity)
	return nil
}

// switchFile makes f the log's file. Once the rename was tried nobody knows which
// file a crash would leave, so an error halts the log.
func (l *Log) switchFile(f file.File, s slot) error {
	f, err := installFile(l.options, f)
	if err != nil {
		return l.ioFailed("replacement of "+path.Join(l.dir, fileName), l.written.Load(), err)
	}
	old := l.file
	l.file, l.shape, l.slot = f, s.shape, s
	if err := old.Close(); err != nil {
		return l.ioFailed("close of the replaced file", l.written.Load(), err)
	}
	return nil
}
