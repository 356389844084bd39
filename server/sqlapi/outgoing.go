package sqlapi

import (
	"runtime"
	"sync"

	"google.golang.org/grpc/encoding"
	codec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// longAnswer is the length from which an answer is counted, until its client has taken it, in bytes: gRPC keeps it for
// so long, also when the call has ended.
const longAnswer = 1 << 20

// outgoing is a long answer on its way into a call.
type outgoing struct {
	m    proto.Message
	conn *connection
}

// outgoings are the long answers that clients have not taken.
type outgoings struct {
	mu   sync.Mutex
	each map[*unread]struct{}
}

// unread is one of them.
type unread struct {
	d     *Door
	conn  *connection
	n     int64
	since int64 // by the door's clock
	once  sync.Once
}

// done forgets it.
func (u *unread) done() {
	u.once.Do(func() {
		u.d.unread.mu.Lock()
		delete(u.d.unread.each, u)
		u.d.unread.mu.Unlock()
		u.d.memory.take(u.conn, -u.n)
	})
}

// messages is gRPC's codec, which counts long answers.
type messages struct {
	encoding.CodecV2
	d *Door
}

func newMessages(d *Door) messages { return messages{encoding.GetCodecV2(codec.Name), d} }

// Marshal implements encoding.CodecV2.
func (c messages) Marshal(v any) (mem.BufferSlice, error) {
	o, long := v.(*outgoing)
	if !long {
		return c.CodecV2.Marshal(v)
	}
	data, err := c.CodecV2.Marshal(o.m)
	if err != nil {
		return nil, err
	}
	d := c.d
	u := &unread{d: d, conn: o.conn, n: int64(data.Len()), since: d.clock.Load()}
	d.unread.mu.Lock()
	if d.unread.each == nil {
		d.unread.each = make(map[*unread]struct{})
	}
	d.unread.each[u] = struct{}{}
	d.unread.mu.Unlock()
	d.memory.force(u.conn, u.n) // its session has had room for it
	out := make(mem.BufferSlice, 0, len(data))
	left := &parts{u: u, data: data, n: len(data)}
	for i := range data {
		b := new([]byte)
		*b = data[i].ReadOnlyData()
		// gRPC gives nothing back of what is on its way when a connection breaks.
		runtime.AddCleanup(b, (*unread).done, u)
		out = append(out, mem.NewBuffer(b, left))
	}
	return out, nil
}

// parts are the buffers of a long answer, as a pool to which they come back.
type parts struct {
	u    *unread
	data mem.BufferSlice
	mu   sync.Mutex
	n    int
}

// Get implements mem.BufferPool. Nobody calls it.
func (p *parts) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// Put implements mem.BufferPool.
func (p *parts) Put(*[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 {
		p.data.Free()
		p.u.done()
	}
}

// sweepUnread closes connections whose clients have not taken a long answer for too long: nothing else makes gRPC drop it.
func (d *Door) sweepUnread(now int64) {
	d.unread.mu.Lock()
	var gone []*connection
	for u := range d.unread.each {
		if now-u.since > unreadMax && u.conn != nil && u.conn.close != nil {
			gone = append(gone, u.conn)
		}
	}
	d.unread.mu.Unlock()
	for _, c := range gone {
		c.close()
	}
}
