package provision

import (
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Phase is what a receiver is doing.
type Phase uint8

const (
	Connecting Phase = iota // looking for a donor
	Receiving
	WaitingForSpace // the disk is full
	Finishing       // making everything durable
	Complete
)

func (p Phase) String() string {
	return [...]string{"connecting", "receiving", "waiting for disk space", "finishing", "complete"}[p]
}

// Progress says how far a receiver is. Totals are estimates of the donor.
type Progress struct {
	Phase              Phase
	CSN                uint64 // of the snapshot; 0: none yet
	Tables, TablesDone int
	Rows, RowsDone     int64
	Bytes, BytesDone   int64 // of the tables as the donor stores them
	RawBytes           int64 // of rows received in this run
	Received           int64 // bytes of streams in this run
	Elapsed            time.Duration
	Left               time.Duration // estimate; 0: unknown
	Streams            int           // open
	Retries            int64         // requests that were repeated
	BadParts           int64         // that were damaged and asked for again
	Restarts           int64         // with a new snapshot
	LastError          string        // why something was repeated
}

// progress keeps a receiver's progress.
type progress struct {
	env env.Env

	mu      sync.Mutex // guards the following
	now     Progress
	started time.Duration
	full    int          // tasks that wait for space
	before  int64        // BytesDone when the run began
	doing   []*tableLoad // in progress, in no order
}

// begin resets what counts one run.
func (p *progress) begin() {
	p.mu.Lock()
	p.now = Progress{}
	p.started = p.env.Monotonic()
	p.mu.Unlock()
}

func (p *progress) setPhase(phase Phase) {
	p.mu.Lock()
	p.now.Phase = phase
	p.mu.Unlock()
}

// waits counts the tasks that wait for space.
func (p *progress) waits(n int) {
	p.mu.Lock()
	p.full += n
	p.mu.Unlock()
}

// waiting reports whether one of them does.
func (p *progress) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full > 0
}

// change changes the numbers.
func (p *progress) change(fn func(*Progress)) {
	p.mu.Lock()
	fn(&p.now)
	p.mu.Unlock()
}

// restarted counts a new beginning.
func (p *progress) restarted(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.now
	p.now = Progress{Received: n.Received, RawBytes: n.RawBytes, Retries: n.Retries, BadParts: n.BadParts,
		Restarts: n.Restarts + 1, LastError: err.Error()}
}

// listed takes over the list of tables and which of them are complete.
func (p *progress) listed(m *Manifest, tables []tableEntry, done map[uint64]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.now
	n.CSN, n.Tables, n.Phase = m.CSN, len(tables), Receiving
	n.Rows, n.Bytes, n.RowsDone, n.BytesDone, n.TablesDone = 0, 0, 0, 0, 0
	for _, t := range tables {
		n.Rows += t.rows
		n.Bytes += t.bytes
		if done[t.id] {
			n.RowsDone += t.rows
			n.BytesDone += t.bytes
			n.TablesDone++
		}
	}
	p.before = n.BytesDone
	p.started = p.env.Monotonic()
}

func (p *progress) tableBegun(t *tableLoad) {
	p.mu.Lock()
	p.doing = append(p.doing, t)
	p.mu.Unlock()
}

// tableOver ends the account of a table, which is complete or was given up.
func (p *progress) tableOver(t *tableLoad, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, d := range p.doing {
		if d == t {
			p.doing = append(p.doing[:i], p.doing[i+1:]...)
			break
		}
	}
	if complete {
		p.now.TablesDone++
		p.now.RowsDone += t.rowsNow.Load()
		p.now.BytesDone += t.entry.bytes
	}
}

// Progress says how far Run is.
func (p *progress) Progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.now
	for _, t := range p.doing {
		rows := t.rowsNow.Load()
		n.RowsDone += rows
		if t.entry.rows > 0 {
			n.BytesDone += int64(float64(t.entry.bytes) * min(1, float64(rows)/float64(t.entry.rows)))
		}
	}
	n.Rows = max(n.Rows, n.RowsDone)
	if p.full > 0 {
		n.Phase = WaitingForSpace
	}
	if n.Phase != Complete {
		n.Elapsed = p.env.Monotonic() - p.started
	}
	if got := n.BytesDone - p.before; got > 0 && n.Phase == Receiving {
		n.Left = time.Duration(float64(n.Elapsed) * float64(n.Bytes-n.BytesDone) / float64(got))
	}
	return n
}
