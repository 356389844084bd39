package transport

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// sink is a Handler that calls a function for each run of messages.
type sink struct {
	*node
	receive func(msgs []*raftpb.Message)
}

func (s sink) Receive(_, _ uint64, msgs []*raftpb.Message) { s.receive(msgs) }

// benchPair connects two nodes whose messages go to these functions.
func benchPair(b *testing.B, toA, toB func(p *Peers, msgs []*raftpb.Message)) (x, y *Peers) {
	nodes := []*node{newNode(b, 1), newNode(b, 2)}
	for i, receive := range []func(*Peers, []*raftpb.Message){toA, toB} {
		n := nodes[i]
		var err error
		n.net, err = New(testOptions(n.id), sink{n, func(msgs []*raftpb.Message) { receive(n.net, msgs) }})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.net.Close() })
	}
	acquaint(b, nodes...)
	return nodes[0].net, nodes[1].net
}

// BenchmarkRoundTrip is a heartbeat or an append there and an answer back, one at
// a time.
func BenchmarkRoundTrip(b *testing.B) {
	for _, kind := range []string{"heartbeat", "append"} {
		b.Run(kind, func(b *testing.B) {
			back := make(chan struct{}, 1)
			msg := func(from, to uint64) *raftpb.Message { return heartbeat(from, to, 1) }
			if kind == "append" {
				data := make([]byte, 300)
				msg = func(from, to uint64) *raftpb.Message { return appendMsg(from, to, 1, data) }
			}
			x, _ := benchPair(b,
				func(*Peers, []*raftpb.Message) { back <- struct{}{} },
				func(p *Peers, _ []*raftpb.Message) { p.Send([]*raftpb.Message{msg(2, 1)}) })
			for b.Loop() {
				x.Send([]*raftpb.Message{msg(1, 2)})
				<-back
			}
		})
	}
}

// BenchmarkThroughput sends appends of one entry with so many bytes, as many as the
// queue takes.
func BenchmarkThroughput(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var received atomic.Int64
			x, _ := benchPair(b, func(*Peers, []*raftpb.Message) {},
				func(_ *Peers, msgs []*raftpb.Message) { received.Add(int64(len(msgs))) })
			data := make([]byte, size)
			b.SetBytes(int64(size))
			sent := int64(0)
			for b.Loop() {
				for sent-received.Load() > int64(min(2000, 32<<20/size)) {
					time.Sleep(20 * time.Microsecond)
				}
				x.Send([]*raftpb.Message{appendMsg(1, 2, 1, data)})
				sent++
			}
			for received.Load() < sent {
				time.Sleep(20 * time.Microsecond)
			}
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// BenchmarkCodec encodes and decodes an append of eight small entries.
func BenchmarkCodec(b *testing.B) {
	m := appendMsg(1, 2, 1000, make([]byte, 300), make([]byte, 300), make([]byte, 300), make([]byte, 300),
		make([]byte, 300), make([]byte, 300), make([]byte, 300), make([]byte, 300))
	var frame []byte
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var e encoder
			e.message(m)
			frame = e.finish()[0]
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeFrame(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}
