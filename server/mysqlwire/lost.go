package mysqlwire

import (
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/internal/socket"
)

// lostIdle is how often the watch looks whether it is to look at all.
const lostIdle = time.Second

// watchLost ends what sessions run whose clients are gone: nobody hears of the answer, and what they have locked others wait for. Who is in a
// read notices by itself.
func (s *Server) watchLost() {
	defer s.tasks.Done()
	for {
		every := s.opt.ClientCheck()
		looks := every > 0
		if !looks {
			every = lostIdle
		}
		tick := env.NewTicker(every)
		select {
		case <-s.stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		if !looks {
			continue
		}
		for _, c := range s.all() {
			c.lookForClient()
		}
	}
}

// lookForClient ends a session that runs something if its client was found gone at the last look already: a statement that was sent
// right before the end, as by programs that wait for no answer, has had some time.
func (c *conn) lookForClient() {
	if !c.local.Load() || c.idleSince.Load() != 0 || !socket.Lost(c.nc) {
		c.wasLost = false
		return
	}
	if c.wasLost {
		c.cut()
	}
	c.wasLost = true
}
