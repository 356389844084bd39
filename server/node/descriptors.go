package node

import (
	"net"

	"github.com/triremedb/trireme/internal/socket"
)

// ownDescriptors are for what is neither a client nor a file of a table: the log, connections between
// members, sorts on disk.
const ownDescriptors = 256

// clientDescriptors is the lowest number of a descriptor that no client gets where the process may have so many: from
// there on they are kept for storage, which stops the node if it cannot open a file. Of few, half is kept.
func clientDescriptors(limit, openFiles uint64) uint64 {
	return limit - min(openFiles+ownDescriptors, limit/2)
}

// hasRoom reports whether a client's connection leaves enough descriptors. The limit may change at any time.
func (n *Node) hasRoom(c net.Conn) bool {
	number, limit := socket.Number(c), socket.Numbers()
	return number < 0 || limit == 0 || uint64(number) < clientDescriptors(limit, uint64(n.cfg.Int("innodb_open_files")))
}

// warnOfDescriptors says that not as many clients can come as max_connections lets in. On a member that does not lead
// a client needs two descriptors.
func (n *Node) warnOfDescriptors() {
	limit := socket.Numbers()
	if limit == 0 {
		return
	}
	clients, most := clientDescriptors(limit, uint64(n.cfg.Int("innodb_open_files"))), uint64(n.cfg.Int("max_connections"))
	if 2*most > clients {
		n.log.Warn("the process may have too few file descriptors for max_connections: clients beyond are refused with error 1040, so that files "+
			"can be opened; raise the limit (ulimit -n, LimitNOFILE) or lower max_connections",
			"descriptors", limit, "for_clients", clients, "max_connections", most, "needed", 2*most)
	}
}

// roomy is a listener that closes the connections for which there is no room.
type roomy struct {
	net.Listener
	hasRoom func(net.Conn) bool
}

// Accept implements net.Listener.
func (l *roomy) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.hasRoom(c) {
			return c, err
		}
		_ = c.Close()
	}
}
