package mysqlwire

import "sync/atomic"

// counts are what a server has counted since it began.
type counts struct {
	abortedConnects atomic.Int64 // that were not let in
	abortedClients  atomic.Int64 // that went away without saying so, or were sent away
	tooMany         atomic.Int64 // that found no place
	maxUsed         int          // guarded by Server.mu
	// Connections with different numbers are seldom in each other's way.
	traffic [8]traffic
}

type traffic struct {
	received, sent atomic.Int64 // bytes: received as they come, sent as they were before TLS and compression
	_              [48]byte
}

// traffic is where a connection counts its bytes.
func (s *Server) traffic(id uint64) *traffic {
	return &s.counts.traffic[id%uint64(len(s.counts.traffic))]
}

// Stats calls fn with the numbers of connections under their names in SHOW STATUS.
func (s *Server) Stats(fn func(name string, value int64)) {
	c := &s.counts
	s.mu.Lock()
	most := c.maxUsed
	s.mu.Unlock()
	var received, sent int64
	for i := range c.traffic {
		received += c.traffic[i].received.Load()
		sent += c.traffic[i].sent.Load()
	}
	fn("Aborted_clients", c.abortedClients.Load())
	fn("Aborted_connects", c.abortedConnects.Load())
	fn("Bytes_received", received)
	fn("Bytes_sent", sent)
	fn("Connection_errors_max_connections", c.tooMany.Load())
	fn("Max_used_connections", int64(most))
}
