package commit

import (
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
	turn *env.Mutex // held from before a transaction is packed until its entry is made
	enc  encoder
	read []byte
}

const (
	packPiece = 128 << 10
	packPoll  = 5 * time.Millisecond
)

// pack compresses the events of a large transaction. If it cannot, or if they do not get
// shorter, who proposes does what is to be done.
func (p *Pipeline) pack(ctx context.Context, t *txn.Txn) {
	k := &p.packer
	if t.Size() < p.opt.PackAbove || t.Schema || !p.awaitPacker(ctx) {
		return
	}
	if k.enc.settings.Load().Off || k.enc.prepare() != nil {
		k.turn.Unlock()
		return
	}
	packed := k.compress(t)
	if packed == nil {
		k.turn.Unlock()
		return
	}
	t.Packed = packed
}

// awaitPacker waits for the packer's turn, as long as a commit waits.
func (p *Pipeline) awaitPacker(ctx context.Context) bool {
	for !p.packer.turn.TryLock() {
		p.mu.Lock()
		leads := p.term != 0
		p.mu.Unlock()
		if !leads || ctx.Err() != nil {
			return false
		}
		env.Sleep(p.env, packPoll)
	}
	return true
}

// compress returns the events as frames of zstd, or nil.
func (k *packer) compress(t *txn.Txn) []byte {
	var own turn.Turn
	var packed []byte
	if k.read == nil {
		k.read = make([]byte, packPiece)
	}
	size := t.Size()
	for off := int64(0); off < size; {
		n, err := t.ReadEvents(k.read, off)
		if err != nil && err != io.EOF || n == 0 {
			return nil
		}
		off += int64(n)
		packed = k.enc.zstd.EncodeAll(k.read[:n], packed)
		if int64(len(packed)) >= off {
			return nil
		}
		own.Pass()
	}
	return packed
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
