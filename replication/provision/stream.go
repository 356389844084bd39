package provision

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

// stream is the answer to a request, while it is read.
type stream struct {
	b      *building
	in     frameReader
	cancel context.CancelFunc
	got    ending // so far
	// waiting is since when the next chunk is waited for, on the environment's clock,
	// in nanoseconds plus one; 0: it is not.
	waiting atomic.Int64
	stalled atomic.Bool
}

// ask sends a request.
func (b *building) ask(q request) (*stream, error) {
	return b.askFor(b.ctx, q, Want{CSN: q.csn, New: q.fresh, Last: b.takeError()})
}

func (b *building) askFor(ctx context.Context, q request, want Want) (*stream, error) {
	o := &b.r.opt
	q.min, q.max, q.group, q.receiver = minFormat, FormatVersion, o.Group, b.token
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{b: b, cancel: cancel}
	s.wait(true)
	b.mu.Lock()
	b.streams = append(b.streams, s)
	b.mu.Unlock()
	b.r.change(func(p *Progress) { p.Streams++ })
	r, err := o.Open(ctx, want, q.append(nil))
	s.wait(false)
	if err != nil {
		s.forget()
		return nil, s.why(&streamError{err})
	}
	s.in.r = chunks{s, r}
	s.in.noted = func(n int) {
		b.r.change(func(p *Progress) { p.Received += int64(n) })
		b.r.pace.wait(n)
	}
	return s, nil
}

// chunks notes when the stream is waited for.
type chunks struct {
	s *stream
	ChunkReader
}

func (c chunks) Next() ([]byte, error) {
	c.s.wait(true)
	defer c.s.wait(false)
	return c.ChunkReader.Next()
}

func (s *stream) wait(on bool) {
	if !on {
		s.waiting.Store(0)
		return
	}
	s.waiting.Store(int64(s.b.r.opt.Env.Monotonic()) + 1)
}

// forget takes the stream off the list.
func (s *stream) forget() {
	s.cancel()
	b := s.b
	b.mu.Lock()
	for i, o := range b.streams {
		if o == s {
			b.streams = append(b.streams[:i], b.streams[i+1:]...)
			break
		}
	}
	b.mu.Unlock()
	b.r.change(func(p *Progress) { p.Streams-- })
}

func (s *stream) close() {
	_ = s.in.r.Close()
	s.forget()
}

// why is err, or that the stream was given up.
func (s *stream) why(err error) error {
	if s.stalled.Load() {
		return &streamError{fmt.Errorf("the donor was silent for %v", s.b.r.opt.Stall)}
	}
	return err
}

// next returns the next frame; done at the end of the answer, which is as it should be.
func (s *stream) next() (t frameType, body []byte, done bool, err error) {
	if t, body, err = s.in.next(); err != nil {
		return 0, nil, false, s.why(err)
	}
	d := &decoder{b: body}
	switch t {
	case frameError:
		e := d.remoteError()
		if d.end() != nil {
			return 0, nil, false, errDamaged
		}
		return 0, nil, false, e
	case frameEnd:
		e := d.ending()
		if d.end() != nil || e != s.got {
			return 0, nil, false, fmt.Errorf("%w: %d rows, %d bytes and checksum %#x were announced; %d, %d and %#x came",
				errDamaged, e.rows, e.bytes, e.sum, s.got.rows, s.got.bytes, s.got.sum)
		}
		return t, nil, true, nil
	}
	return t, body, false, nil
}

// unpack checks a part and appends what it holds to raw, which has that of the parts before that belong to it: rows
// are there as a whole when one comes that counts some.
func (s *stream) unpack(dec *zstd.Decoder, body, raw []byte) (p part, out []byte, err error) {
	d := &decoder{b: body}
	p = d.part()
	if err := d.end(); err != nil {
		return p, raw, fmt.Errorf("%w: %w", errDamaged, err)
	}
	at := len(raw)
	raw = reserve(raw, int(p.raw))
	b := p.data
	if p.codec != plain {
		if b, err = dec.DecodeAll(p.data, raw[at:]); err != nil {
			return p, raw, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	s.got.rows += p.rows
	s.got.bytes += uint64(len(b))
	s.got.sum = crc64.Update(s.got.sum, crcTable, b)
	if uint64(len(b)) != p.raw || s.got != (ending{p.rowsSoFar, p.bytesSoFar, p.sumSoFar}) || p.rows == 0 && (len(b) == 0 || len(p.last) > 0) {
		return p, raw, fmt.Errorf("%w: the rows are not those that were announced", errDamaged)
	}
	return p, append(raw, b...), nil
}

// errPartial says that an answer ended within rows.
var errPartial = fmt.Errorf("%w: the answer ends before the rows that have begun", errDamaged)

// decodeRoom is what zstd likes to have behind what it writes, in bytes: it is faster then.
const decodeRoom = 16

// reserve returns raw with room for n bytes more. Of rows that go on behind them it has room for the whole, so that the
// memory of a long one is not taken twice; but never for more than twice what has come, since a length may be wrong.
func reserve(raw []byte, n int) []byte {
	if n += decodeRoom; n <= cap(raw)-len(raw) {
		return raw
	}
	return append(make([]byte, 0, max(len(raw)+n, min(wholeLength(raw)+decodeRoom, 2*len(raw)))), raw...)
}

// wholeLength is how long the beginning of exported rows, or of keys and values, will be with the rest of the last one:
// each has its length before it.
func wholeLength(raw []byte) int {
	for at := 0; at < len(raw); {
		size, n := binary.Uvarint(raw[at:])
		if n <= 0 {
			break
		}
		if size > uint64(len(raw)-at-n) {
			return int(min(size, 1<<62)) + at + n
		}
		at += n + int(size)
	}
	return len(raw)
}

// newDecoder returns a decoder of parts.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart+1), zstd.WithDecoderLowmem(true))
}

// maxBadParts is how often in a row the same part may be damaged.
const maxBadParts = 5

// persist runs fetch until it succeeds, or fails for good. fetch goes on where it has
// got to, which is what place tells.
func (b *building) persist(place func() int64, fetch func() error) error {
	env, bad := b.r.opt.Env, 0
	since, at := env.Monotonic(), place() // where it stands still, and since when
	for {
		err := fetch()
		if err == nil || !retryable(err) {
			return err
		}
		if cerr := b.ctx.Err(); cerr != nil {
			return cerr
		}
		now := env.Monotonic()
		if p := place(); p != at {
			bad, since, at = 0, now, p
		}
		if errors.Is(err, errDamaged) {
			bad++
			b.r.change(func(p *Progress) { p.BadParts++ })
		}
		b.note(err)
		if bad >= maxBadParts {
			return fmt.Errorf("%w (%d times in a row)", err, bad)
		}
		if quiet := now - max(since, b.moved()); quiet >= b.r.opt.GiveUp {
			return fmt.Errorf("provision: nothing has arrived for %v: %w", quiet.Round(time.Second), err)
		}
		if err := b.r.pause(b.ctx, b.r.opt.Retry); err != nil {
			return err
		}
	}
}

// retryable reports whether the same request may succeed later, or with another donor.
func retryable(err error) bool {
	var broken *streamError
	var told *RemoteError
	switch {
	case errors.As(err, &broken), errors.Is(err, errCut), errors.Is(err, errDamaged):
		return true
	case errors.As(err, &told):
		return told.Kind == ErrBusy || told.Kind == ErrBehind || told.Kind == ErrDonor
	}
	return false
}

// note keeps why something is done again.
func (b *building) note(err error) {
	b.mu.Lock()
	b.last, b.taker = err, false
	b.mu.Unlock()
	b.r.change(func(p *Progress) {
		p.Retries++
		p.LastError = err.Error()
	})
}

// takeError is why the last stream ended early, for one request: if that is answered, the
// next ones have the same donor.
func (b *building) takeError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.last
	b.last = nil
	return err
}

// asksTaker reports whether the next request goes to the donor that has taken the snapshot.
func (b *building) asksTaker() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taker
}

// arrived notes that something has arrived.
func (b *building) arrived() { b.lastMoved.Store(int64(b.r.opt.Env.Monotonic())) }

// moved is when that was.
func (b *building) moved() time.Duration { return time.Duration(b.lastMoved.Load()) }

// streamsEvery is how often streams are looked at.
const streamsEvery = 200 * time.Millisecond

// watchStreams gives up streams that bring nothing.
func (b *building) watchStreams() {
	stall := b.r.opt.Stall
	for !b.over.Load() {
		b.watch.ParkFor(min(stall/4, streamsEvery))
		now := b.r.opt.Env.Monotonic()
		b.mu.Lock()
		for _, s := range b.streams {
			if since := s.waiting.Load(); since > 0 && now-time.Duration(since-1) >= stall {
				s.stalled.Store(true)
				s.cancel()
			}
		}
		b.mu.Unlock()
	}
}

// holdEvery is how often a donor hears of a receiver that asks for nothing since it is at work. It is less than any Grace.
const holdEvery = time.Minute

// hold keeps the snapshot, and with it the log behind it, at the donor while this side builds indexes, writes its pages or
// takes the log over, each of which may last longer than the donor would wait for another request. A receiver that
// waits for space does not hold it.
func (b *building) hold(ctx context.Context) {
	for !b.over.Load() {
		b.holder.ParkFor(holdEvery)
		if b.over.Load() || b.busy.Load() == 0 || b.r.waiting() {
			continue
		}
		if s, err := b.askFor(ctx, request{what: askSnapshot, csn: b.manifest.CSN}, Want{CSN: b.manifest.CSN}); err == nil {
			for done := false; err == nil && !done; {
				_, _, done, err = s.next()
			}
			s.close()
		}
	}
}
