package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// duplexes are streams in both directions between two nodes, made of what the
// transport has: what the donor sends travels as bulk, the few bytes that the
// receiver sends as questions, which name the stream by a number.
type duplexes struct {
	env env.Env

	mu   sync.Mutex
	open map[uint64]*duplexServer
}

const askWrite = "group/snapshot/write"

func (d *duplexes) init(e env.Env) {
	d.env = e
	d.open = map[uint64]*duplexServer{}
}

// duplexClient is the receiver's end.
type duplexClient struct {
	io.ReadCloser
	transport transport.Transport
	call      transport.Call
	id        uint64
}

func (d *duplexes) dial(tr transport.Transport, c transport.Call) (io.ReadWriteCloser, error) {
	id := d.env.Uint64()
	c.Kind, c.Payload = bulkSnapshot, binary.LittleEndian.AppendUint64(nil, id)
	r, err := tr.OpenBulk(context.Background(), c)
	if err != nil {
		return nil, err
	}
	return &duplexClient{ReadCloser: transport.ToReader(r), transport: tr, call: c, id: id}, nil
}

func (c *duplexClient) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, transport.MaxAsk/2)
		call := c.call
		call.Kind = askWrite
		call.Payload = append(binary.LittleEndian.AppendUint64(nil, c.id), b[done:done+n]...)
		if _, err := c.transport.Ask(context.Background(), call); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// duplexServer is the donor's end.
type duplexServer struct {
	d  *duplexes
	id uint64
	w  transport.BulkWriter

	mu     sync.Mutex
	parker env.Parker
	in     []byte
	closed bool
}

// duplexMax is how much of what the receiver sends may wait to be read.
const duplexMax = 4 << 20

var errDuplexClosed = errors.New("group: the stream is closed")

// serve makes the donor's end of a stream that a receiver has opened.
func (d *duplexes) serve(payload []byte, w transport.BulkWriter) (*duplexServer, error) {
	if len(payload) != 8 {
		return nil, fmt.Errorf("group: malformed request for a snapshot")
	}
	s := &duplexServer{d: d, id: binary.LittleEndian.Uint64(payload), w: w, parker: d.env.NewParker()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[s.id] != nil {
		return nil, fmt.Errorf("group: the stream %x is open already", s.id)
	}
	d.open[s.id] = s
	return s, nil
}

// take takes what a receiver has sent.
func (d *duplexes) take(payload []byte) error {
	if len(payload) < 8 {
		return errors.New("group: malformed message of a stream")
	}
	d.mu.Lock()
	s := d.open[binary.LittleEndian.Uint64(payload)]
	d.mu.Unlock()
	if s == nil {
		return errDuplexClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.in)+len(payload) > duplexMax {
		return errDuplexClosed
	}
	s.in = append(s.in, payload[8:]...)
	s.parker.Unpark()
	return nil
}

func (d *duplexes) closeAll() {
	d.mu.Lock()
	var all []*duplexServer
	for _, s := range d.open {
		all = append(all, s)
	}
	d.mu.Unlock()
	for _, s := range all {
		_ = s.Close()
	}
}

func (s *duplexServer) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		if len(s.in) > 0 {
			n := copy(p, s.in)
			s.in = s.in[n:]
			s.mu.Unlock()
			return n, nil
		}
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return 0, io.EOF
		}
		s.parker.Park()
	}
}

func (s *duplexServer) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, transport.MaxChunk)
		if err := s.w.Send(b[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (s *duplexServer) Close() error {
	s.d.mu.Lock()
	delete(s.d.open, s.id)
	s.d.mu.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.parker.Unpark()
	return nil
}
