package commit

import (
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// Compression are the settings of binlog_transaction_compression. They hold for
// entries that are made from now on.
type Compression struct {
	Off   bool
	Level int // zstd's 1 to 22; 0: the fastest
	// Threshold is the body below which nothing is tried, in bytes; 0: 128, and 512 for one
	// transaction alone: what is saved then is not worth what every commit would wait for it.
	Threshold int
}

const (
	defaultThreshold = 128
	thresholdAlone   = 512
)

// encoder makes entries out of bodies. It belongs to one task: the proposing one, or who packs.
type encoder struct {
	settings atomic.Pointer[Compression]
	current  *Compression
	zstd     *zstd.Encoder
	buf      []byte // compressed body; reused

	stats encodeCounters
}

// encodeCounters count what was made of bodies.
type encodeCounters struct {
	RawBytes    atomic.Uint64 // before compression
	StoredBytes atomic.Uint64 // after it, envelopes included
	Compressed  atomic.Uint64 // entries
	Plain       atomic.Uint64
	Packed      atomic.Uint64 // of those compressed: by the session
}

func (e *encoder) configure(c Compression) { e.settings.Store(&c) }

// prepare brings the encoder in line with the settings.
func (e *encoder) prepare() error {
	c := e.settings.Load()
	if c == e.current {
		return nil
	}
	level := zstd.SpeedFastest
	if c.Level > 0 {
		level = zstd.EncoderLevelFromZstd(c.Level)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	e.current, e.zstd = c, z
	return nil
}

// packed returns the data of an entry of one transaction whose events are compressed
// already; header is what comes before them, and packed has packRoom for it, which is used.
//
// REQUIRES: prepare.
func (e *encoder) packed(env *entry.Envelope, header, packed []byte, events int) []byte {
	env.RawLength, env.Codec = uint32(len(header)+events), entry.Zstd
	e.buf = e.zstd.EncodeAll(header, e.buf[:0])
	data := packed[packRoom-entry.EnvelopeSize-len(e.buf):]
	env.Put(data)
	copy(data[entry.EnvelopeSize:], e.buf)
	e.count(env, data)
	e.stats.Packed.Add(1)
	return data
}

// entry returns the entry's data, with memory of its own.
//
// REQUIRES: prepare.
func (e *encoder) entry(env *entry.Envelope, body []byte) []byte {
	env.RawLength = uint32(len(body))
	env.Codec = entry.Plain
	stored := body
	threshold := e.current.Threshold
	if threshold == 0 {
		threshold = defaultThreshold
		if env.Count == 1 {
			threshold = thresholdAlone
		}
	}
	if env.Kind == entry.Transactions && !e.current.Off && len(body) >= threshold {
		e.buf = e.zstd.EncodeAll(body, e.buf[:0])
		if len(e.buf) < len(body) {
			stored = e.buf
			env.Codec = entry.Zstd
		}
	}
	data := make([]byte, entry.EnvelopeSize+len(stored))
	env.Put(data)
	copy(data[entry.EnvelopeSize:], stored)
	if cap(e.buf) > keepBuffer {
		e.buf = nil
	}
	e.count(env, data)
	return data
}

func (e *encoder) count(env *entry.Envelope, data []byte) {
	e.stats.RawBytes.Add(uint64(env.RawLength))
	e.stats.StoredBytes.Add(uint64(len(data)))
	if env.Codec == entry.Zstd {
		e.stats.Compressed.Add(1)
	} else {
		e.stats.Plain.Add(1)
	}
}

// keepBuffer is the largest buffer that is kept for the next entry.
const keepBuffer = 4 << 20
