package audit

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/internal/socket"
)

// writer is the file of the log. Write only puts lines into a buffer, from where a task takes them to the file.
type writer struct {
	opt Options

	mu      sync.Mutex
	room    *sync.Cond // the buffer was taken
	pending []byte     // whole lines
	lines   uint64     // in pending
	lost    uint64     // dropped, and not told of in the log yet
	closed  bool

	wake chan struct{} // holds one: there is something to be written
	much chan struct{} // holds one: there is so much that it is to be written now
	quit chan struct{} // closed: no more waiting for the disk
	done chan struct{} // closed by the task

	// Of the task.
	file *os.File
	size int64

	written, dropped  atomic.Uint64 // lines
	failing           atomic.Bool   // the last attempt to write did
	said, saidFailing socket.Rarely
}

const (
	// retryEvery is how soon a file that could not be written is tried again.
	retryEvery = time.Second
	// gather is for how long lines are gathered, so that each is not a call of its own.
	gather = 20 * time.Millisecond
)

func openWriter(opt Options) (*writer, error) {
	w := &writer{opt: opt, wake: make(chan struct{}, 1), much: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	if err := w.open(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

func (w *writer) open() error {
	// Without O_NONBLOCK a pipe that nobody reads would keep whoever opens it.
	f, err := os.OpenFile(w.opt.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: lines go to the node's log if audit_log is empty", w.opt.File)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	w.file, w.size = f, info.Size()
	return nil
}

// Write takes a line. It never fails: what there is no room for is counted.
func (w *writer) Write(line []byte) (int, error) { return w.take(line, false) }

// patient is a writer whose callers wait for room, if that is asked for.
type patient struct{ *writer }

// Write takes a line when there is room for it.
func (p patient) Write(line []byte) (int, error) { return p.take(line, true) }

func (w *writer) take(line []byte, waits bool) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waits && len(w.pending)+len(line) > w.opt.Buffer && len(w.pending) > 0 && !w.closed && w.opt.Waits() {
		w.room.Wait()
	}
	if w.closed || len(w.pending)+len(line) > w.opt.Buffer {
		w.drop(1)
		return len(line), nil
	}
	w.pending = append(w.pending, line...)
	w.lines++
	if w.lines == 1 {
		w.stir(w.wake)
	}
	if len(w.pending) > w.opt.Buffer/4 {
		w.stir(w.much)
	}
	return len(line), nil
}

func (w *writer) stir(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop counts lines that are lost.
//
// REQUIRES: w.mu.
func (w *writer) drop(lines uint64) {
	w.lost += lines
	w.dropped.Add(lines)
	if w.said.Now() {
		w.opt.Log.Warn("lines of the audit log are lost", "file", w.opt.File, "lost", w.dropped.Load(), "waiting_bytes", len(w.pending))
	}
}

// run takes lines to the file until the writer is closed and all is written.
func (w *writer) run() {
	defer close(w.done)
	var spare []byte
	for {
		select {
		case <-w.wake:
			select {
			case <-time.After(gather):
			case <-w.much:
			case <-w.quit:
			}
		case <-w.quit:
		}
		w.mu.Lock()
		batch, lines, lost, closed := w.pending, w.lines, w.lost, w.closed
		w.pending, w.lines, w.lost = spare[:0], 0, 0
		w.mu.Unlock()
		if lost > 0 {
			batch = append(batch, w.gap(lost)...)
		}
		if len(batch) > 0 {
			w.put(batch, lines, lost)
		}
		w.mu.Lock()
		w.room.Broadcast()
		w.mu.Unlock()
		spare = batch
		if closed {
			_ = w.file.Close()
			return
		}
	}
}

// gap is the line that says how many are missing before it.
func (w *writer) gap(lost uint64) []byte {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Warn("lost", slog.Group("audit", "lines", lost))
	return b.Bytes()
}

// put writes lines. If that fails they are tried again until the log is closed: meanwhile others fill the buffer.
func (w *writer) put(batch []byte, lines, lost uint64) {
	for {
		err := w.append(batch)
		w.failing.Store(err != nil)
		if err == nil {
			w.written.Add(lines)
			return
		}
		if w.saidFailing.Now() {
			w.opt.Log.Error("the audit log cannot be written, and is tried again", "file", w.opt.File, "error", err)
		}
		select {
		case <-time.After(retryEvery):
			continue
		case <-w.quit:
		}
		w.mu.Lock()
		w.drop(lines)
		w.lost += lost
		w.mu.Unlock()
		return
	}
}

// append adds lines to the file, and begins a new one before if they have no place in it, or if somebody has moved it.
func (w *writer) append(batch []byte) error {
	if err := w.follow(); err != nil {
		return err
	}
	if w.size > 0 && w.size+int64(len(batch)) > w.opt.RotateSize {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	n, err := w.file.Write(batch)
	if err != nil && n > 0 { // nothing stands behind half a line
		if cut := w.file.Truncate(w.size); cut != nil {
			return errors.Join(err, cut)
		}
		return err
	}
	w.size += int64(n)
	return err
}

// follow opens a new file if the name is another one's, or nobody's, now.
func (w *writer) follow() error {
	own, err := w.file.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(w.opt.File); err == nil && os.SameFile(own, named) {
		w.size = own.Size() // it may have been emptied
		return nil
	}
	return w.reopen()
}

func (w *writer) reopen() error {
	old := w.file
	if err := w.open(); err != nil {
		return err
	}
	_ = old.Close()
	return nil
}

// rotate renames the file and those before it, of which the oldest goes.
func (w *writer) rotate() error {
	name := func(i int) string {
		if i == 0 {
			return w.opt.File
		}
		return fmt.Sprintf("%s.%d", w.opt.File, i)
	}
	if w.opt.Files == 0 {
		if err := os.Remove(name(0)); err != nil {
			return err
		}
	}
	for i := w.opt.Files - 1; i >= 0; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return w.reopen()
}

// closeWait is how long the disk has to take the last lines.
const closeWait = 2 * time.Second

func (w *writer) close() {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	if again {
		return
	}
	close(w.quit)
	select {
	case <-w.done:
	case <-time.After(closeWait):
		w.opt.Log.Warn("the audit log's disk does not answer: its last lines may be lost", "file", w.opt.File)
	}
}
