package node

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/server/metrics"
)

// shares says what the descriptors that the process may have are for. Each of those that use them keeps to its share, so that
// none takes from another: an engine that has none halts, a member that cannot speak to others is apart, and one whose ports do
// not answer is taken for dead. What is left is for clients.
type shares struct {
	tables uint64 // files of tables that storage keeps open: innodb_open_files, or less
	web    uint64 // connections of the HTTP port; and of the gRPC port, which has more where clients leave some
	own    uint64 // the log, connections between members, sorts on disk
}

const (
	ownDescriptors = 256
	leastTables    = 10 // of innodb_open_files
	leastWeb       = 16
)

// shareOut shares so many descriptors out; 0: nobody says how many there are. Of few, half is for clients.
func shareOut(limit, openFiles uint64) shares {
	if limit == 0 {
		return shares{tables: openFiles, web: httpConnections, own: ownDescriptors}
	}
	s := shares{own: min(ownDescriptors, limit/4), web: min(max(limit/32, leastWeb), httpConnections)}
	left := limit/2 - min(s.own+2*s.web, limit/2)
	s.tables = min(openFiles, max(left, leastTables))
	if t := s.temporary(); s.tables+t > left && s.tables > leastTables+t { // of what there is
		s.tables -= t
	}
	return s
}

// temporary is how many files of temporary tables are kept open, besides.
func (s shares) temporary() uint64 { return max(s.tables/8, leastTables) }

// clients is how many descriptors clients may have of so many.
func (s shares) clients(limit uint64) uint64 {
	return limit - min(s.tables+s.temporary()+2*s.web+s.own, limit/2)
}

// peers is how many connections the peer port takes of so many, and how many of them from nodes that have not said yet who
// they are; 0: the defaults.
func (s shares) peers(limit uint64) (most, newcomers int) {
	if limit == 0 {
		return 0, 0
	}
	most = int(min(512, max(s.own/2, limit/16)))
	return most, min(64, most/2)
}

// OpenFiles is how many files of tables storage keeps open: so many as wanted (innodb_open_files), if the process may.
func OpenFiles(wanted int64) int { return int(shareOut(socket.Numbers(), uint64(wanted)).tables) }

// temporaryFiles is OpenFiles for temporary tables.
func temporaryFiles(wanted int64) int {
	return int(shareOut(socket.Numbers(), uint64(wanted)).temporary())
}

// variables are what sessions see of the configuration, and of what it has become.
func (n *Node) variables() map[string]string {
	all := n.cfg.Variables()
	all["innodb_open_files"] = strconv.FormatUint(n.descriptors.tables, 10)
	if limit := socket.Numbers(); limit != 0 {
		all["open_files_limit"] = strconv.FormatUint(limit, 10)
	}
	return all
}

// descriptors are a node's.
type descriptors struct {
	shares
	programs atomic.Int64  // connections of the gRPC port
	refused  atomic.Uint64 // connections that there was none for
	awaited  atomic.Uint64 // times that a file could not be opened, and was tried again

	saidRefused, saidAwaited socket.Rarely
}

const descriptorAdvice = "raise the hard limit of open files (ulimit -Hn, LimitNOFILE, a container's ulimits) and start the node again, or let fewer clients in (max_connections)"

// shareDescriptors is called once, at the start. It says what is less than what the configuration asks for.
func (n *Node) shareDescriptors() {
	limit, files, most := socket.Numbers(), uint64(n.cfg.Int("innodb_open_files")), uint64(n.cfg.Int("max_connections"))
	n.descriptors.shares = shareOut(limit, files)
	s := n.descriptors.shares
	if s.tables < files {
		n.log.Warn("the process may have too few file descriptors for innodb_open_files: fewer files of tables are kept open, and others are opened again "+
			"when they are used; raise the hard limit (ulimit -Hn, LimitNOFILE, a container's ulimits)",
			"descriptors", limit, "innodb_open_files", files, "effective", s.tables)
	}
	// On a member that does not lead a client needs two.
	if clients := s.clients(limit); limit != 0 && 2*most > clients {
		n.log.Warn("the process may have too few file descriptors for max_connections: clients beyond are refused with error 1040, so that files "+
			"can be opened; raise the hard limit (ulimit -Hn, LimitNOFILE) or lower max_connections",
			"descriptors", limit, "for_clients", clients, "max_connections", most, "needed", 2*most)
	}
}

// hasRoom reports whether there is a descriptor for a client's connection, besides those that the MySQL ports hold. How many
// there are may change at any time. A number that is high tells that something takes more than its share, of which clients
// are what can be refused: half of the node's own is kept.
func (n *Node) hasRoom(c net.Conn, held int) bool {
	d, limit := &n.descriptors, socket.Numbers()
	if limit == 0 {
		return true
	}
	clients := uint64(max(held, 0)) + uint64(max(d.programs.Load()-int64(d.web), 0))
	most, number := d.clients(limit), socket.Number(c)
	if clients < most && number < int(limit-min(d.own/2, limit/8)) {
		return true
	}
	d.refused.Add(1)
	if d.saidRefused.Now() {
		n.log.Warn("a client was refused for want of file descriptors (error 1040; on the gRPC port its connection is closed): "+descriptorAdvice,
			"descriptors", limit, "number", number, "of_clients", clients, "for_clients", most, "for_table_files", d.tables, "refused", d.refused.Load())
	}
	return false
}

const (
	// scarceTimes is how often a file that cannot be opened for want of a descriptor is tried again, and scarceEvery how soon: 30 s in all,
	// as with a disk that does not answer, of which the group knows what to do.
	scarceTimes = 1500
	scarceEvery = 20 * time.Millisecond
)

// scarce is told each time that a file could not be opened for want of a descriptor. It waits, and reports whether it is to be
// tried again.
func (n *Node) scarce(name string, err error, times int) (again bool) {
	d := &n.descriptors
	d.awaited.Add(1)
	if d.saidAwaited.Now() {
		held := 0
		if n.isReady() {
			held = n.door.Held()
		}
		n.log.Warn("a file cannot be opened for want of file descriptors, and is tried again: what needs it waits; "+descriptorAdvice,
			"file", name, "error", err, "descriptors", socket.Numbers(), "of_clients", held, "for_table_files", d.tables)
	}
	time.Sleep(scarceEvery)
	return times < scarceTimes
}

func (d *descriptors) metrics(m *metrics.Writer) {
	m.Set("trireme_tablespace_files_limit", float64(d.tables))
	m.Set("trireme_descriptors_refused_total", float64(d.refused.Load()))
	m.Set("trireme_descriptors_awaited_total", float64(d.awaited.Load()))
}

// programsPort is the gRPC port's listener. It has its share of descriptors, so that operators come in when clients have all of
// theirs; beyond that its connections are clients like others, and closed if there is no room.
type programsPort struct {
	net.Listener
	n *Node
}

// Accept implements net.Listener.
func (p *programsPort) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		d := &p.n.descriptors
		if d.programs.Add(1) <= int64(d.web) || p.n.hasRoom(c, p.n.door.Held()) {
			return &programsConn{Conn: c, n: p.n}, nil
		}
		d.programs.Add(-1)
		_ = c.Close()
	}
}

type programsConn struct {
	net.Conn
	n    *Node
	once sync.Once
}

// Close implements net.Conn.
func (c *programsConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.n.descriptors.programs.Add(-1) })
	return err
}
