package main

import (
	"sync"
	"time"
)

// memory is the resident memory of a contender's processes.
type memory struct {
	idle   []int64 // after loading, the leader's first
	phases []phase
}

// phase is what they had at most while something was measured.
type phase struct {
	name string
	most []int64
}

const sampleEvery = 100 * time.Millisecond

// watch samples the memory until it is told to end.
func (t *turn) watch(name string) (end func() phase) {
	p := phase{name: name, most: t.server.RSS()}
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			for i, n := range t.server.RSS() {
				p.most[i] = max(p.most[i], n)
			}
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	return func() phase {
		close(stop)
		sampling.Wait()
		return p
	}
}

// growth is by how many MiB the leader was above what it had when idle, and by how many the
// one of the others that was most.
func (m *memory) growth(p phase) (leader, others float64) {
	for i, n := range p.most {
		grown := max(float64(n-m.idle[i])/(1<<20), 0)
		if i == 0 {
			leader = grown
		} else {
			others = max(others, grown)
		}
	}
	return leader, others
}
