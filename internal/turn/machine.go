package turn

import (
	"os"
	"runtime"
	"sync"
)

// machine is how many processors Go is told of.
var machine procs

// widest is how many times as many processors there are while somebody asks for more.
const widest = 4

type procs struct {
	mu    sync.Mutex
	asked int // by how many Processors: nodes of a test share a process
	were  int
}

// widen tells Go of more processors than there are, and returns how many there are.
func (m *procs) widen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked++; m.asked == 1 {
		m.were = runtime.GOMAXPROCS(0) // the container's limit may have changed
		runtime.GOMAXPROCS(widest * m.were)
	}
	return m.were
}

// restore takes back a widen.
func (m *procs) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked--; m.asked > 0 {
		return
	}
	if os.Getenv("GOMAXPROCS") != "" {
		runtime.GOMAXPROCS(m.were)
		return
	}
	runtime.SetDefaultGOMAXPROCS() // Go looks at the container's limit again, which may change
}
