package mysqlwire

import (
	"net"
	"sync"
)

// Held is how many connections the server has: of clients, let in or not, and to members to which sessions went.
func (s *Server) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) + s.upstreams
}

// hold counts a connection to another member until it is closed.
func (s *Server) hold(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	s.mu.Lock()
	s.upstreams++
	s.mu.Unlock()
	return &held{TCPConn: tcp, s: s}
}

// held is a connection to another member.
type held struct {
	*net.TCPConn
	s    *Server
	once sync.Once
}

// Close implements net.Conn.
func (h *held) Close() error {
	err := h.TCPConn.Close()
	h.once.Do(func() {
		h.s.mu.Lock()
		h.s.upstreams--
		h.s.mu.Unlock()
	})
	return err
}
