package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/metrics"
)

// failureName is the file of the data directory that tells of the node's last failure. A node that
// stops by itself is gone before Prometheus asks it: its next process tells what happened.
const failureName = "failure.json"

// failureWait is how long the file may take: the disk may be what has failed.
const failureWait = time.Second

// failure is that the node has stopped by itself.
type failure struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"` // a label: one of few
	Error  string    `json:"error"`
}

// stopped is the reason of an error that the disk has no part in, as far as can be told.
const stopped = "it has stopped by itself"

// reason is the kind of an error because of which a node stops.
func reason(err error) string {
	var halt *redo.HaltError
	var badPage *page.CorruptError
	var badLog *redo.CorruptError
	switch {
	case errors.As(err, &halt):
		return "its storage engine has halted"
	case errors.As(err, &badPage), errors.As(err, &badLog):
		return "a page of its data is damaged"
	}
	return stopped
}

// noteFailure keeps why the node stops by itself, if it does.
func (n *Node) noteFailure() {
	err := n.failure()
	if err == nil || errors.Is(err, group.ErrRemoved) {
		return
	}
	n.noteFailureOf(err, time.Now())
}

// noteFailureOf keeps the first failure of this process. It asks for no sync: what it writes is for
// the next process, and the disk may give no answer.
func (n *Node) noteFailureOf(err error, now time.Time) {
	f := &failure{Time: now, Reason: reason(err), Error: err.Error()}
	if !n.lastFailure.CompareAndSwap(n.failureBefore, f) {
		return // it was noted
	}
	written := make(chan error, 1)
	go func() {
		b, err := json.Marshal(f)
		name := filepath.Join(n.dir, failureName)
		if err == nil {
			err = os.WriteFile(name+".new", b, 0o600)
		}
		if err == nil {
			err = os.Rename(name+".new", name)
		}
		written <- err
	}()
	select {
	case err = <-written:
	case <-time.After(failureWait):
		err = errors.New("the disk does not answer")
	}
	if err != nil {
		n.log.Warn("the next process will not know why this one has failed", "error", err)
	}
}

// readFailure reads what noteFailure of a process before has written.
func (n *Node) readFailure() {
	name := filepath.Join(n.dir, failureName)
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	f := &failure{}
	if err == nil {
		err = json.Unmarshal(b, f)
	}
	if err != nil {
		n.log.Warn("the node's last failure cannot be read", "file", name, "error", err)
		return
	}
	n.failureBefore = f
	n.lastFailure.Store(f)
}

// failureMetrics tells of the node's last failure.
func (n *Node) failureMetrics(m *metrics.Writer) {
	if f := n.lastFailure.Load(); f != nil {
		m.Set("trireme_node_failure_timestamp_seconds", float64(f.Time.UnixMilli())/1e3, "reason", f.Reason)
	}
}
