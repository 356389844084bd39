package simnettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// breakable is a call that ends when one of its nodes does, or when its connection is
// broken on the way.
type breakable interface {
	nodeGone(dead *Node)
	refused(from, to *Node)
}

func (n *Node) track(c breakable) { n.calls = append(n.calls, c) }

func (n *Node) untrack(c breakable) {
	n.calls = slices.DeleteFunc(n.calls, func(d breakable) bool { return d == c })
}

// poll is how often a waiting task looks at its context and at cuts.
const poll = 20 * time.Millisecond

// callContext is what the handler gets: it names the caller and ends with the call,
// without a channel.
type callContext struct {
	context.Context
	over *bool
}

func (c callContext) Err() error {
	if *c.over {
		return context.Canceled
	}
	return nil
}

func contextOf(h *transport.Hello, over *bool) context.Context {
	caller := transport.Caller{Identity: h.Identity, Addr: h.Addr, Build: h.Build}
	return callContext{transport.WithCaller(context.Background(), caller), over}
}

// asFailure returns an error of the handler as the asker sees it.
func asFailure(err error) error {
	var f *transport.Failure
	if errors.As(err, &f) {
		return f
	}
	return &transport.Failure{Text: err.Error()}
}

// target returns where a call goes. Without an address it takes the connection to
// the member, if that stands.
func (n *Node) target(c *transport.Call, connected bool) (string, error) {
	switch l := n.links[c.To]; {
	case !n.alive:
		return "", transport.ErrClosed
	case len(c.Payload) > transport.MaxAsk:
		return "", fmt.Errorf("%w: a question of %d bytes, at most %d are allowed", transport.ErrTooLarge, len(c.Payload), transport.MaxAsk)
	case c.Addr != "":
		return c.Addr, nil
	case l == nil:
		return "", fmt.Errorf("%w to member %d: it is not known", transport.ErrUnreachable, c.To)
	case connected && !l.up:
		return "", fmt.Errorf("%w to member %d: %w", transport.ErrUnreachable, c.To, l.err)
	default:
		return l.peer.Addr, nil
	}
}

// question is one Ask.
type question struct {
	net    *Network
	from   *Node
	addr   string
	hello  transport.Hello
	call   transport.Call
	target *Node // while it runs there
	wake   env.Parker
	over   bool
	answer []byte
	err    error
}

// Ask implements [transport.Transport].
func (n *Node) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	addr, err := n.target(&c, true)
	if err != nil {
		return nil, err
	}
	e := n.net.env
	q := &question{net: n.net, from: n, addr: addr, hello: n.door.Hello(c.To), call: c, wake: e.NewParker()}
	q.call.Payload = slices.Clone(c.Payload)
	timeout := c.Timeout
	if timeout == 0 {
		timeout = n.net.opts.AskTimeout
	}
	n.track(q)
	e.Go("net ask", q.run)
	for deadline := e.Monotonic() + timeout; !q.over; {
		left := deadline - e.Monotonic()
		switch {
		case ctx.Err() != nil:
			q.finish(nil, ctx.Err())
		case left <= 0:
			q.finish(nil, transport.ErrTimeout)
		case ctx.Done() != nil:
			q.wake.ParkFor(min(left, poll))
		default:
			q.wake.ParkFor(left)
		}
	}
	return q.answer, q.err
}

// finish ends the question, once.
func (q *question) finish(answer []byte, err error) {
	if q.over {
		return
	}
	q.over, q.answer, q.err = true, answer, err
	q.from.untrack(q)
	if q.target != nil {
		q.target.untrack(q)
	}
	q.wake.Unpark()
}

// run takes the question there and back.
func (q *question) run() {
	n := q.net
	target, err := n.reach(q.from.addr, q.addr)
	if err != nil {
		q.finish(nil, q.broken(err))
		return
	}
	w, r := target.door.Admit(q.hello, transport.ForAsk)
	early := n.draw(n.faultsOf(q.from.addr, q.addr).Break)
	if r != nil || early {
		q.back(nil, r, early)
		return
	}
	q.target = target
	if !q.over {
		target.track(q)
	}
	var answer []byte
	target.serve(func() {
		answer, err = target.handler.Answer(contextOf(&q.hello, &q.over), q.call.Kind, q.call.Payload)
	})
	switch {
	case !target.alive:
		return // nodeGone has told the asker, or will
	case err == nil && len(answer) > transport.MaxAsk:
		err = fmt.Errorf("%w: an answer of %d bytes to %q, at most %d are allowed", transport.ErrTooLarge, len(answer), q.call.Kind, transport.MaxAsk)
	}
	target.untrack(q)
	if err != nil {
		q.back(nil, asFailure(err), false)
		return
	}
	if r := transport.CheckWelcome(&q.hello, &w); r != nil {
		q.back(nil, r, false)
		return
	}
	q.back(slices.Clone(answer), nil, n.draw(n.faultsOf(q.addr, q.from.addr).Break))
}

// back brings the answer home, or the end of the connection.
func (q *question) back(answer []byte, err error, broken bool) {
	env.Sleep(q.net.env, q.net.delay(q.addr, q.from.addr))
	if !q.net.open(q.addr, q.from.addr) {
		return // the asker runs out of time
	}
	if broken {
		answer, err = nil, q.broken(errClosed)
	}
	q.finish(answer, err)
}

func (q *question) broken(err error) error {
	return fmt.Errorf("%w to %s: %w", transport.ErrUnreachable, &q.call, err)
}

func (q *question) nodeGone(dead *Node) {
	if dead == q.from {
		q.finish(nil, transport.ErrClosed)
		return
	}
	q.net.env.Go("net reset", func() { q.back(nil, nil, true) })
}

func (q *question) refused(from, to *Node) {
	if q.from == from && q.target == to && to != nil {
		q.finish(nil, q.broken(errClosed))
	}
}

// stream is one bulk stream.
type stream struct {
	net      *Network
	from, to *Node // reader and writer
	call     transport.Call
	over     bool // for the writer: nobody reads any more
	reader   env.Parker
	writer   env.Parker
	chunks   []chunk
	bytes    int           // of chunks that the reader has not taken
	taken    time.Duration // when it took one last
	last     time.Duration
	busy     time.Duration
	err      error // for the reader
}

type chunk struct {
	data []byte
	err  error // the stream's end
	due  time.Duration
}

// OpenBulk implements [transport.Transport].
func (n *Node) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	addr, err := n.target(&c, false)
	if err != nil {
		return nil, err
	}
	hello := n.door.Hello(c.To)
	target, err := n.net.reach(n.addr, addr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w to %s: %w", transport.ErrUnreachable, &c, err)
	case !n.alive:
		return nil, transport.ErrClosed
	}
	s := &stream{net: n.net, from: n, to: target, call: c, reader: n.net.env.NewParker(), writer: n.net.env.NewParker()}
	_, leave, r := target.door.Enter(hello, transport.ForBulk, func() { s.cut(errClosed) })
	if r != nil {
		env.Sleep(n.net.env, n.net.delay(addr, n.addr))
		return nil, r
	}
	n.track(s)
	target.track(s)
	s.call.Payload = slices.Clone(c.Payload)
	n.net.env.Go("net bulk", func() {
		defer leave()
		err := error(&transport.Failure{Text: "closed"})
		target.serve(func() { err = target.handler.Bulk(contextOf(&hello, &s.over), s.call.Kind, s.call.Payload, s) })
		target.untrack(s)
		switch {
		case s.over || !target.alive:
			return
		case err == nil:
			err = io.EOF
		default:
			err = asFailure(err)
		}
		s.put(chunk{err: err})
	})
	return &bulkReader{s, ctx}, nil
}

// put adds a chunk that arrives after a while.
func (s *stream) put(c chunk) {
	n := s.net
	if f := n.faultsOf(s.to.addr, s.from.addr); f.BytesPerSecond > 0 {
		s.busy = max(s.busy, n.env.Monotonic()) + time.Duration(len(c.data))*time.Second/time.Duration(f.BytesPerSecond)
	}
	s.last = max(s.last, s.busy, n.env.Monotonic()) + n.delay(s.to.addr, s.from.addr)
	c.due = s.last
	s.chunks = append(s.chunks, c)
	s.bytes += len(c.data)
	s.reader.Unpark()
}

// cut ends the stream for both sides.
func (s *stream) cut(err error) {
	s.over = true
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", transport.ErrUnreachable, err)
	}
	s.from.untrack(s)
	s.to.untrack(s)
	s.reader.Unpark()
	s.writer.Unpark()
}

func (s *stream) nodeGone(dead *Node) {
	if dead == s.from {
		s.cut(transport.ErrClosed)
		return
	}
	s.over = true // for a writer of a dead node
	s.writer.Unpark()
	s.net.env.Go("net reset", func() {
		env.Sleep(s.net.env, s.net.delay(s.to.addr, s.from.addr))
		if s.net.open(s.to.addr, s.from.addr) {
			s.cut(errClosed)
		}
	})
}

func (s *stream) refused(from, to *Node) {
	if s.from == from && s.to == to {
		s.cut(errClosed)
	}
}

// wait parks until the other side does something, and ends the stream when it was
// silent for too long. silence is when that began, or 0.
func (s *stream) wait(p env.Parker, limit time.Duration, silence *time.Duration) {
	e := s.net.env
	p.ParkFor(min(limit, s.net.opts.LinkTimeout/4))
	switch {
	case s.net.open(s.from.addr, s.to.addr) && s.net.open(s.to.addr, s.from.addr) && s.to.alive:
		*silence = 0
	case *silence == 0:
		*silence = e.Monotonic()
	case e.Monotonic()-*silence >= s.net.opts.LinkTimeout:
		s.cut(errSilent)
	}
}

// Send implements [transport.BulkWriter].
func (s *stream) Send(data []byte) error {
	if len(data) > transport.MaxChunk {
		return fmt.Errorf("%w: a chunk of %d bytes, at most %d are allowed", transport.ErrTooLarge, len(data), transport.MaxChunk)
	}
	var silence time.Duration
	began := s.net.env.Monotonic()
	for !s.over && s.bytes > 0 && s.bytes+len(data) > s.net.opts.BulkWindow {
		s.wait(s.writer, s.net.opts.LinkTimeout, &silence)
		if s.net.env.Monotonic()-max(began, s.taken) >= s.net.opts.BulkStall {
			s.cut(errClosed)
		}
	}
	if !s.over && s.net.draw(s.net.faultsOf(s.to.addr, s.from.addr).Break) {
		s.cut(errClosed)
	}
	if s.over {
		return errors.New("transport: the reader is gone")
	}
	if len(data) > 0 {
		s.put(chunk{data: slices.Clone(data)})
	}
	return nil
}

// Abort implements [transport.BulkWriter].
func (s *stream) Abort() {
	if !s.over {
		s.cut(errClosed)
	}
}

// bulkReader is the reader's end of a stream.
type bulkReader struct {
	*stream
	ctx context.Context
}

// Next implements [transport.BulkReader].
func (r *bulkReader) Next() ([]byte, error) {
	s, e := r.stream, r.net.env
	var silence time.Duration
	for s.err == nil {
		limit := poll
		if r.ctx.Done() == nil {
			limit = s.net.opts.LinkTimeout
		} else if r.ctx.Err() != nil {
			s.cut(r.ctx.Err())
			break
		}
		arrives := s.net.open(s.to.addr, s.from.addr)
		if len(s.chunks) > 0 && arrives {
			limit = min(limit, s.chunks[0].due-e.Monotonic())
		}
		if len(s.chunks) == 0 || limit > 0 || !arrives {
			s.wait(s.reader, limit, &silence)
			continue
		}
		c := s.chunks[0]
		s.chunks = s.chunks[1:]
		s.bytes -= len(c.data)
		s.taken = e.Monotonic()
		s.writer.Unpark()
		if c.err == nil {
			return c.data, nil
		}
		s.err = c.err
		s.from.untrack(s)
	}
	return nil, s.err
}

// Close implements [transport.BulkReader].
func (r *bulkReader) Close() error {
	r.cut(transport.ErrClosed)
	return nil
}
