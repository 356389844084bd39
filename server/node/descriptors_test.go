package node

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/server/mysqlwire"
)

// TestShareOut: of many descriptors each gets what it is configured to have; of few clients get half, and storage what is left
// of the other half, a part of it for temporary tables.
func TestShareOut(t *testing.T) {
	for _, test := range []struct{ limit, openFiles, tables, web, own, clients uint64 }{
		{256, 4000, 22, 16, 64, 128},
		{1024, 4000, 168, 32, 256, 515},
		{1024, 100, 100, 32, 256, 592},
		{4096, 4000, 1344, 128, 256, 2072},
		{1 << 20, 4000, 4000, 1024, 256, 1<<20 - 6804},
		{1 << 20, 10, 10, 1024, 256, 1<<20 - 2324},
		{64, 4000, 10, 16, 16, 32},
	} {
		s := shareOut(test.limit, test.openFiles)
		if s != (shares{test.tables, test.web, test.own}) || s.clients(test.limit) != test.clients {
			t.Errorf("of %d, with %d open files: %+v, clients %d; want %+v", test.limit, test.openFiles, s, s.clients(test.limit), test)
		}
		if test.limit >= 256 && s.tables+2*s.web+s.own+s.clients(test.limit) > test.limit {
			t.Errorf("of %d more are shared out than there are: %+v", test.limit, s)
		}
	}
	if s := shareOut(0, 4000); s.tables != 4000 {
		t.Errorf("where nobody says how many there are: %+v", s)
	}
	for limit, want := range map[uint64][2]int{0: {0, 0}, 256: {32, 16}, 1024: {128, 64}, 1 << 20: {512, 64}} {
		if most, newcomers := shareOut(limit, 4000).peers(limit); most != want[0] || newcomers != want[1] {
			t.Errorf("of %d the peer port takes %d, and %d that are new; want %v", limit, most, newcomers, want)
		}
	}
}

// numbered is a connection with a descriptor of that number.
type numbered struct {
	net.Conn
	fd     uintptr
	closed bool
}

func (c *numbered) SyscallConn() (syscall.RawConn, error) { return numberedRaw{fd: c.fd}, nil }
func (c *numbered) Close() error                          { c.closed = true; return nil }

type numberedRaw struct {
	syscall.RawConn
	fd uintptr
}

func (r numberedRaw) Control(f func(fd uintptr)) error { f(r.fd); return nil }

// TestHasRoom: clients are counted, so that files of tables that are open take none of their descriptors; the last ones
// are for the node itself. What is refused is told once.
func TestHasRoom(t *testing.T) {
	var said strings.Builder
	n := &Node{log: slog.New(slog.NewTextHandler(&said, nil))}
	limit := socket.Numbers()
	d := &n.descriptors
	d.shares = shareOut(limit, 4000)
	most := int(d.clients(limit))
	afterAll := uintptr(limit - d.own - 2*d.web) // the number after all clients and files of tables
	if !n.hasRoom(&numbered{fd: afterAll}, 1) || !n.hasRoom(&numbered{fd: afterAll}, most-1) {
		t.Error("a client is refused because files of tables are open")
	}
	if said.Len() > 0 {
		t.Errorf("it says: %s", &said)
	}
	if n.hasRoom(&numbered{fd: 20}, most) {
		t.Error("more clients than their share")
	}
	d.programs.Store(int64(d.web) + 10)
	if n.hasRoom(&numbered{fd: 20}, most-10) || !n.hasRoom(&numbered{fd: 20}, most-11) {
		t.Error("connections of the gRPC port beyond its share are not counted")
	}
	if n.hasRoom(&numbered{fd: uintptr(limit - 1)}, 0) {
		t.Error("a client gets one of the last descriptors")
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.Contains(said.String(), "raise the hard limit") || d.refused.Load() != 3 {
		t.Errorf("%d refused, and told: %s", d.refused.Load(), &said)
	}
}

// given is a listener of connections that are there.
type given struct {
	net.Listener
	conns []net.Conn
}

func (l *given) Accept() (net.Conn, error) {
	if len(l.conns) == 0 {
		return nil, io.EOF
	}
	c := l.conns[0]
	l.conns = l.conns[1:]
	return c, nil
}

// TestProgramsPort: the gRPC port has its share, whatever clients have, and more where they leave some.
func TestProgramsPort(t *testing.T) {
	n := &Node{log: slog.New(slog.DiscardHandler)}
	n.descriptors.shares = shares{tables: 10, web: 1, own: 10}
	n.door = mysqlwire.New(mysqlwire.Options{})
	end := uintptr(socket.Numbers() - 1) // so that there is no room for clients
	conns := []*numbered{{fd: end}, {fd: end}, {fd: 20}, {fd: end}}
	l := &given{}
	for _, c := range conns {
		l.conns = append(l.conns, c)
	}
	p := &programsPort{l, n}
	var taken []net.Conn
	for {
		c, err := p.Accept()
		if err != nil {
			break
		}
		taken = append(taken, c)
	}
	if len(taken) != 2 || conns[0].closed || !conns[1].closed || conns[2].closed || !conns[3].closed || n.descriptors.programs.Load() != 2 {
		t.Errorf("%d of the connections were taken, %d are counted", len(taken), n.descriptors.programs.Load())
	}
	for _, c := range taken {
		_, _ = c.Close(), c.Close()
	}
	if k := n.descriptors.programs.Load(); k != 0 {
		t.Errorf("%d are counted when all are closed", k)
	}
}

// TestScarce: who needs a descriptor that is not there waits, for half a minute in all, and that is told once.
func TestScarce(t *testing.T) {
	var said strings.Builder
	n := &Node{log: slog.New(slog.NewTextHandler(&said, nil))}
	if !n.scarce("f", syscall.EMFILE, 1) || n.scarce("f", syscall.EMFILE, scarceTimes) {
		t.Error("it is not tried again, or without end")
	}
	if strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "raise the hard limit") || n.descriptors.awaited.Load() != 2 {
		t.Errorf("%d times, and told: %s", n.descriptors.awaited.Load(), &said)
	}
}
