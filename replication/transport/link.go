package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// link is one dialed connection of messages to a peer, and the task that keeps it:
// it connects, says hello, sends what is queued until the connection breaks, and
// connects again.
type link struct {
	peer    *peer
	purpose Purpose
	queue   *queue
	again   chan struct{} // holds a token when the link should try at once
	calls   atomic.Pointer[callsOver]
	sent    atomic.Uint64 // bytes of frames
	arrives delivery
}

// callsOver is a connection for calls beside the stream, and its watch.
type callsOver struct {
	*grpc.ClientConn
	signs *signs
}

func newLink(q *peer, purpose Purpose, limit Limit) *link {
	return &link{peer: q, purpose: purpose, queue: newQueue(limit), again: make(chan struct{}, 1),
		arrives: delivery{well: time.Now()}}
}

// tryNow cuts the pause before the next attempt.
func (l *link) tryNow() {
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// run keeps the link until ctx ends.
func (l *link) run(ctx context.Context) {
	opts := &l.peer.p.opts
	lost, pause := time.Now(), time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		connected, err := l.connect(ctx)
		l.calls.Store(nil)
		l.queue.setOpen(false)
		l.arrives.broken()
		if ctx.Err() != nil {
			return
		}
		l.peer.linkDown(l.purpose, err)
		if connected {
			lost = time.Now()
			// A connection that stood for a while is made again at once. One that broke
			// soon would break again.
			pause = 0
			if lost.Sub(began) > time.Second {
				continue
			}
		}
		pause = nextPause(pause, time.Since(lost), lasting(err), opts)
		select {
		case <-ctx.Done():
		case <-l.again:
		case <-time.After(jitter(pause)):
		}
	}
}

// fastPause is the longest pause between attempts while a connection was lost only
// recently.
const fastPause = 50 * time.Millisecond

// nextPause doubles the pause within its limits.
func nextPause(pause, since time.Duration, refused bool, opts *Options) time.Duration {
	most := opts.RetryMax
	switch {
	case refused:
		most = opts.RetryRefused
	case since < opts.RetryFast:
		most = min(most, fastPause)
	}
	return min(max(2*pause, opts.RetryMin), most)
}

// lasting reports whether a node was refused for a reason that is not over by itself: somebody has to
// do something about it. A node that is let in where it had been refused is dialed at once.
func lasting(err error) bool {
	var r *Rejection
	if !errors.As(err, &r) {
		return false
	}
	switch r.Reason {
	case ReasonTooMany, ReasonNoGroup, ReasonNotAMember:
		return false
	}
	return true
}

// jitter takes up to a quarter off.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/4+1))
}

// messageStream is the client's end of Control or Entries.
type messageStream interface {
	grpc.ClientStream
	response() (response, error)
}

// response is one of Control or of Entries: the welcome, or a sign of life.
type response interface {
	GetWelcome() *pb.PeerWelcome
	GetReceived() *pb.PeerReceived
}

type controlStream struct {
	grpc.BidiStreamingClient[pb.PeerControlRequest, pb.PeerControlResponse]
}

func (s controlStream) response() (response, error) { return s.Recv() }

type entriesStream struct {
	grpc.BidiStreamingClient[pb.PeerEntriesRequest, pb.PeerEntriesResponse]
}

func (s entriesStream) response() (response, error) { return s.Recv() }

// open starts the stream and says hello.
func (l *link) open(ctx context.Context, cc *grpc.ClientConn, hello *pb.PeerHello) (messageStream, error) {
	client := pb.NewPeerClient(cc)
	if l.purpose == ForControl {
		s, err := client.Control(ctx)
		if err != nil {
			return nil, err
		}
		return controlStream{s}, s.Send(&pb.PeerControlRequest{Kind: &pb.PeerControlRequest_Hello{Hello: hello}})
	}
	s, err := client.Entries(ctx)
	if err != nil {
		return nil, err
	}
	return entriesStream{s}, s.Send(&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: hello}})
}

// connect makes one connection and uses it until it breaks. It reports whether the
// connection got as far as a welcome, and why it ended.
func (l *link) connect(ctx context.Context) (connected bool, err error) {
	p, q := l.peer.p, l.peer
	hello := p.door.Hello(q.ID)
	if hello.Member == 0 {
		return false, errors.New("this node belongs to no group yet")
	}
	conn, err := p.dial(ctx, q.Addr)
	if err != nil {
		return false, err
	}
	cc, err := p.overConn(conn, 64<<10)
	if err != nil {
		return false, err
	}
	defer cc.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The watch ends the connection unless it is wound up again in time.
	watch := time.AfterFunc(p.opts.HandshakeTimeout, func() {
		cancel(fmt.Errorf("%s did not answer the handshake in %v", q.Addr, p.opts.HandshakeTimeout))
	})
	defer watch.Stop()
	stream, err := l.open(ctx, cc.ClientConn, helloToWire(&hello))
	var first response
	if stream != nil { // an error of Send is explained by Recv
		first, err = stream.response()
	}
	if err != nil {
		return false, l.why(ctx, conn, err)
	}
	welcome, r := welcomeFromWire(first.GetWelcome())
	if r == nil {
		r = CheckWelcome(&hello, &welcome)
	}
	if r == nil && p.certs != nil {
		r = p.certs.checkIdentity(conn.peerTLS().PeerCertificates[0], Identity{welcome.Group, welcome.Member}, q.Addr)
	}
	if r != nil {
		return false, r
	}
	if err := stopWatch(ctx, watch); err != nil {
		return false, err
	}
	signs := watchSigns(p.opts.LinkTimeout, &l.arrives, cancel)
	defer signs.stop()
	signs.hear(first.GetReceived())
	go func() {
		for {
			m, err := stream.response()
			if err != nil {
				cancel(l.why(ctx, conn, err))
				return
			}
			signs.hear(m.GetReceived())
		}
	}()
	l.calls.Store(&callsOver{cc.ClientConn, signs})
	l.queue.setOpen(true)
	q.linkUp(l.purpose, &welcome)
	err = l.send(ctx, stream, signs)
	cancel(l.why(ctx, conn, err))
	return true, context.Cause(ctx)
}

// stopWatch stops a timer that is to cancel ctx. If that comes too late it returns why ctx
// was canceled, for which it waits: a timer fires before its function runs.
func stopWatch(ctx context.Context, watch *time.Timer) error {
	if watch.Stop() {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// why finds the best explanation for the end of a connection.
func (l *link) why(ctx context.Context, conn *clientConn, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	err = fromStatus(err)
	if errors.Is(err, ErrUnreachable) {
		return conn.reason(err)
	}
	return err
}

// send sends frames until the stream breaks.
func (l *link) send(ctx context.Context, stream messageStream, signs *signs) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.queue.wake:
		}
		var e encoder
		for l.queue.take(&e) {
			l.sent.Add(uint64(e.size()))
			for requests, i := split(e.finish()), 0; i < len(requests); i++ {
				signs.sending(requests[i].length)
				if err := stream.SendMsg(&requests[i]); err != nil {
					// The reading side knows why.
					<-ctx.Done()
					return context.Cause(ctx)
				}
			}
		}
	}
}
