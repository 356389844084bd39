package commit

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/turn"
)

// Whoever proposes makes everybody wait who commits later. The events of a large transaction
// are therefore compressed by its session, before it comes into the queue: in pieces, each a
// frame of its own, so that what depends on its number can be put before them.
//
// One transaction at a time is packed, or is packed and in the queue: others would take
// memory and could not be proposed any sooner.
type packer struct {
	turn   *env.Mutex // held from before a transaction is packed until its entry is made
	enc    encoder
	read   []byte
	pieces [][]byte
}

const (
	packPiece = 128 << 10
	packPoll  = 5 * time.Millisecond
	// packRoom is what is left free before the pieces, for the envelope and the frame with
	// what AppendHeader appends, which does not get much longer by being compressed.
	packRoom = entry.EnvelopeSize + entry.HeaderSpace + 64
)

// pack compresses the events of a large transaction. If it is not to be compressed, or cannot
// be read, who proposes does what is to be done. An error says why it is not to be proposed.
func (p *Pipeline) pack(ctx context.Context, t *txn.Txn) error {
	k := &p.packer
	if t.Size() < p.opt.PackAbove || t.Schema || t.Body != nil {
		return nil
	}
	for !k.turn.TryLock() {
		if err := p.over(ctx); err != nil {
			return err
		}
		env.Sleep(p.env, packPoll)
	}
	if k.enc.settings.Load().Off || k.enc.prepare() != nil {
		k.turn.Unlock()
		return nil
	}
	packed, err := p.compress(ctx, t)
	if packed == nil {
		k.turn.Unlock()
		return err
	}
	t.Packed = packed
	return nil
}

// over says why a transaction that waits or is packed is not to be proposed any more.
func (p *Pipeline) over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term == 0 {
		return p.refused
	}
	return nil
}

// compress returns the events as frames of zstd, with packRoom before them, or nil. What does
// not get shorter is taken too: it gets hardly longer, and whoever proposes would try it again.
func (p *Pipeline) compress(ctx context.Context, t *txn.Txn) ([]byte, error) {
	k := &p.packer
	var own turn.Turn
	if k.read == nil {
		k.read = make([]byte, packPiece)
	}
	// The pieces are put together when their length is known: what is appended to one buffer
	// is copied as often as it grows, and has up to twice the memory.
	defer func() { clear(k.pieces) }()
	k.pieces = k.pieces[:0]
	length := packRoom
	size := t.Size()
	for off := int64(0); off < size; {
		if err := p.over(ctx); err != nil {
			return nil, err
		}
		n, err := t.ReadEvents(k.read, off)
		if err != nil && err != io.EOF || n == 0 {
			return nil, nil
		}
		off += int64(n)
		k.enc.buf = k.enc.zstd.EncodeAll(k.read[:n], k.enc.buf[:0])
		k.pieces = append(k.pieces, bytes.Clone(k.enc.buf))
		length += len(k.enc.buf)
		own.Pass()
	}
	packed := make([]byte, packRoom, length)
	for _, x := range k.pieces {
		packed = append(packed, x...)
	}
	return packed, nil
}

// encodePacked makes the entry of a packed transaction.
func (p *Pipeline) encodePacked(pr *Proposal, e *entry.Envelope, version uint8) {
	t := pr.txns[0]
	x := p.describe(t, pr.first, e, version)
	e.Count = 1
	pr.time = e.Time
	p.body = entry.AppendHeader(p.body[:0], &x, e.Time, int(t.Size()))
	pr.Data = p.enc.packed(e, p.body, t.Packed, int(t.Size()))
	p.unpack(t)
}

// unpack forgets what pack has made, so that the next transaction can be packed. It is called
// by whoever has the transaction at the moment, when its entry is made or it ends.
func (p *Pipeline) unpack(t *txn.Txn) {
	if t.Packed != nil {
		t.Packed = nil
		p.packer.turn.Unlock()
	}
}
