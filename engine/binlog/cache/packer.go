package cache

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
)

// packer is what makes frames and reads them. One takes some MiB, so that sessions have none
// of their own: each takes one for as long as a frame takes.
type packer struct {
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	stored []byte // a frame or its payload; reused
}

const (
	packersKept = 4       // for the next frames
	storedKept  = 5 << 20 // bytes, by a packer
)

// packers are those that nobody uses.
var packers struct {
	mu   sync.Mutex
	free []*packer
}

func takePacker() *packer {
	packers.mu.Lock()
	defer packers.mu.Unlock()
	n := len(packers.free)
	if n == 0 {
		return new(packer)
	}
	k := packers.free[n-1]
	packers.free = packers.free[:n-1]
	return k
}

func (k *packer) giveBack() {
	if cap(k.stored) > storedKept {
		k.stored = nil
	}
	packers.mu.Lock()
	defer packers.mu.Unlock()
	if len(packers.free) < packersKept {
		packers.free = append(packers.free, k)
	}
}

// encoder returns what compresses frames; nil: they are not to be compressed.
func (k *packer) encoder(compress bool) (z *zstd.Encoder, err error) {
	if compress && k.enc == nil {
		k.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	}
	if !compress || err != nil {
		return nil, err
	}
	return k.enc, nil
}

// decoder returns what unpacks frames.
func (k *packer) decoder() (z *zstd.Decoder, err error) {
	if k.dec == nil {
		k.dec, err = body.NewDecoder()
	}
	return k.dec, err
}
