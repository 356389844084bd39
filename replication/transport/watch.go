package transport

import (
	"github.com/triremedb/trireme/internal/process"
)

// watched is the process of a peer whose end this node hears from the kernel.
type watched struct {
	incarnation uint64 // of the process that was seen last; 0: none
	watch       *process.Watch
}

// see notes which process answers for a peer, and watches it if it runs on this host. The
// watch outlives the connection: it ends with the process, when another one takes its place,
// or when the peer is forgotten.
func (q *peer) see(incarnation uint64, id process.Identity) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped.Load() || q.watched.incarnation == incarnation {
		return
	}
	q.watched.close()
	q.watched = watched{incarnation: incarnation}
	w, err := process.Open(id)
	if err != nil {
		return // its end is noticed by its silence alone
	}
	q.watched.watch = w
	q.p.tasks.Go(func() {
		defer w.Close()
		if w.Wait() && !q.stopped.Load() {
			q.p.opts.Logger.Warn("the process of a peer has ended", "peer", q.ID, "address", q.Addr)
			q.p.handler.ReportGone(q.ID, incarnation)
		}
	})
}

// unwatch ends the watch.
func (q *peer) unwatch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watched.close()
}

func (w *watched) close() {
	if w.watch != nil {
		w.watch.Close()
		w.watch = nil
	}
}
