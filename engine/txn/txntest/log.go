// Package txntest is a commit log for tests: that of a group of one, which keeps its
// entries so that a test can apply them elsewhere.
package txntest

import (
	"context"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// Entry is an entry of the log.
type Entry struct {
	Index, Term uint64
	Data        []byte
}

// Log commits transactions at once, those that arrive together in one entry.
type Log struct {
	// Zstd says that bodies are compressed.
	Zstd bool
	// Early releases locks before the commit, as a group does.
	Early bool
	// Doubt, if not nil, is called while the transactions of an entry are in doubt, with
	// Early: an error of it loses the entry. What depends on them may have read or locked
	// rows, not changed them.
	Doubt func() error
	// Refuse, if not nil, is asked before anything happens to a transaction.
	Refuse func(*txn.Txn) error
	// Discard says that entries are not kept.
	Discard bool
	// Independent makes wrong entries, in which no transaction depends on another.
	Independent bool

	env  env.Env
	eng  *storage.Engine
	turn *env.Mutex

	mu      sync.Mutex
	queue   []*txn.Txn
	entries []Entry
	bytes   int64

	// Guarded by turn.
	lost    uint64 // index of the last entry that was lost
	history map[uint64]uint64
	floor   uint64
	coder   *zstd.Encoder
	body    []byte
	events  []byte
}

// NewLog returns a log that goes on behind what the engine has applied.
func NewLog(e env.Env, eng *storage.Engine) *Log {
	coder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	csn, _ := eng.Trx.Applied()
	return &Log{env: e, eng: eng, turn: env.NewMutex(e), history: map[uint64]uint64{}, floor: csn, coder: coder}
}

// Entries are the entries so far.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[:len(l.entries):len(l.entries)]
}

// Bytes is the sum of the entries' lengths.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// WaitFinished implements txn.CommitLog.
func (l *Log) WaitFinished(_ context.Context, index uint64, ended func() error) error {
	// Whoever has appended the entry holds the turn until it is committed.
	for ended != nil && !l.turn.TryLock() {
		if err := ended(); err != nil {
			return err
		}
		env.Sleep(l.env, time.Millisecond)
	}
	if ended == nil {
		l.turn.Lock()
	}
	defer l.turn.Unlock()
	if _, at := l.eng.Trx.Applied(); at.Index < index && index <= l.lost {
		return table.ErrEntryFailed
	}
	return nil
}

// Commit implements txn.CommitLog.
func (l *Log) Commit(_ context.Context, t *txn.Txn) (uint64, error) {
	if l.Refuse != nil {
		if err := l.Refuse(t); err != nil {
			return 0, err
		}
	}
	t.Trx.StartCommit()
	t.Time = l.env.Now().UnixMicro()
	l.mu.Lock()
	l.queue = append(l.queue, t)
	l.mu.Unlock()
	l.env.Yield()
	l.turn.Lock()
	defer l.turn.Unlock()
	if !t.Done.Load() {
		l.mu.Lock()
		group := l.queue
		l.queue = nil
		l.mu.Unlock()
		if err := l.commit(group); err != nil {
			for _, t := range group {
				t.Err = err
			}
		}
		for _, t := range group {
			t.Done.Store(true)
		}
	}
	return t.Number, t.Err
}

// commit makes an entry of a group and commits it.
func (l *Log) commit(group []*txn.Txn) error {
	number, pos := l.eng.Trx.Applied()
	pos.Index++
	pos.Term = max(pos.Term, 1)
	e := entry.Envelope{Kind: entry.Transactions, Term: pos.Term, First: number + 1, Count: uint32(len(group)),
		Time: l.env.Now().UnixMicro()}
	for _, t := range group {
		e.Time = max(e.Time, t.Time)
	}
	l.body = l.body[:0]
	items := make([]trx.Commit, 0, len(group))
	for _, t := range group {
		number++
		x := entry.Txn{Number: number, DependsOn: l.depends(t, number), Time: t.Time}
		if t.HasToken {
			x.Flags |= entry.TokenFlag
			x.Token = t.Token
		}
		if t.Trace.Valid() {
			x.Flags |= entry.TraceFlag
			x.Trace = t.Trace
		}
		if t.Schema {
			x.Flags |= entry.SchemaFlag
			e.Flags |= entry.FlagBarrier
		}
		var err error
		if l.events, err = t.AppendEvents(l.events[:0]); err != nil {
			return err
		}
		x.Events = l.events
		l.body = entry.AppendTxn(l.body, &x, e.Time)
		items = append(items, trx.Commit{Trx: t.Trx, CSN: number})
	}
	l.keep(e, pos)
	for i, t := range group {
		t.Number = items[i].CSN
		if l.Early {
			t.Appended(t.Number, pos)
		}
	}
	if l.Early {
		l.env.Yield()
		if l.Doubt != nil {
			if err := l.Doubt(); err != nil {
				return l.lose(group, pos.Index, err)
			}
		}
	}
	if err := l.eng.Trx.CommitGroup(items, pos); err != nil {
		return err
	}
	for _, t := range group {
		t.Published()
	}
	return nil
}

// lose rolls the transactions of an entry back, newest first. It returns what has lost it.
func (l *Log) lose(group []*txn.Txn, index uint64, cause error) error {
	l.lost = index
	l.mu.Lock()
	l.entries = l.entries[:max(len(l.entries), 1)-1]
	l.mu.Unlock()
	for i := len(group) - 1; i >= 0; i-- {
		if err := group[i].Rollback(); err != nil {
			return err
		}
	}
	return cause
}

// keep encodes an entry and keeps it.
func (l *Log) keep(e entry.Envelope, pos trx.Position) {
	e.RawLength = uint32(len(l.body))
	data := make([]byte, entry.EnvelopeSize, entry.EnvelopeSize+len(l.body))
	if l.Zstd {
		e.Codec = entry.Zstd
		data = l.coder.EncodeAll(l.body, data)
	} else {
		data = append(data, l.body...)
	}
	e.Put(data)
	l.mu.Lock()
	l.bytes += int64(len(data))
	if !l.Discard {
		l.entries = append(l.entries, Entry{pos.Index, pos.Term, data})
	}
	l.mu.Unlock()
}

// Skip adds an entry without transactions.
func (l *Log) Skip(data []byte) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	_, pos := l.eng.Trx.Applied()
	pos.Index++
	pos.Term = max(pos.Term, 1)
	l.mu.Lock()
	if !l.Discard {
		l.entries = append(l.entries, Entry{pos.Index, pos.Term, data})
	}
	l.mu.Unlock()
	return l.eng.Trx.AdvancePosition(pos)
}

// depends works out the newest transaction that t must come after.
func (l *Log) depends(t *txn.Txn, number uint64) uint64 {
	if l.Independent {
		return 0
	}
	if t.Schema || t.Keys.Everything() {
		l.floor = number
		clear(l.history)
		return number - 1
	}
	d := l.floor
	for _, h := range t.Keys.Keys() {
		d = max(d, l.history[h])
		l.history[h] = number
	}
	for _, h := range t.Keys.References() {
		if n := l.history[h]; n != number {
			d = max(d, n)
		}
	}
	return d
}
