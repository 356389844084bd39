package mysqlwire

import (
	"io"
	"net"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
)

// instant is a backend whose sessions answer every query by the same row at once: what is
// left is the door.
type instant struct{ *fake }

func (b instant) Open(info session.ConnectionInfo) (Session, error) {
	s := &fakeSession{f: b.fake, info: info, batch: types.NewBatch([]*types.Type{intColumn[0].Type})}
	s.batch.AppendRow([]types.Value{types.NewInt(42)})
	return direct{s}, nil
}

// BenchmarkPointQuery is queries over 32 connections, the clients' cost included, which
// is kept low: they send the same bytes and count those of the answer.
func BenchmarkPointQuery(b *testing.B) {
	r := serve(b, func(o *Options, f *fake) { o.Backend = instant{f} })
	const connections = 32
	query := []byte("\x1a\x00\x00\x00\x03SELECT c FROM t WHERE id=?")
	query[0] = byte(len(query) - 4)
	conns := make([]net.Conn, connections)
	size := 0
	for i := range conns {
		nc, err := net.Dial("tcp", r.addr)
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		var buf [1024]byte
		if _, err := nc.Read(buf[:]); err != nil {
			b.Fatal(err)
		}
		login := appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData | capDeprecateEOF, user: "empty", plugin: PluginSHA2})
		if _, err := nc.Write(append([]byte{byte(len(login)), 0, 0, 1}, login...)); err != nil {
			b.Fatal(err)
		}
		if _, err := nc.Read(buf[:]); err != nil {
			b.Fatal(err)
		}
		if _, err := nc.Write(query); err != nil {
			b.Fatal(err)
		}
		if size, err = nc.Read(buf[:]); err != nil {
			b.Fatal(err)
		}
		conns[i] = nc
	}
	b.ReportAllocs()
	b.ResetTimer()
	work := make(chan net.Conn, connections)
	for _, c := range conns {
		work <- c
	}
	b.SetParallelism(connections / 2)
	b.RunParallel(func(pb *testing.PB) {
		nc := <-work
		buf := make([]byte, size)
		for pb.Next() {
			if _, err := nc.Write(query); err != nil {
				b.Error(err)
				return
			}
			if _, err := io.ReadFull(nc, buf); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
