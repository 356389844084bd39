package group

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
)

// reply is what somebody who has asked another task for something waits for.
type reply struct {
	err    error
	done   atomic.Bool
	parker env.Parker // of who waits
}

// answer ends the wait. Nothing of the reply may be written after it.
func (r *reply) answer(err error) {
	r.err = err
	r.done.Store(true)
	r.parker.Unpark()
}

// wait waits for the answer.
func (r *reply) wait() error {
	for !r.done.Load() {
		r.parker.Park()
	}
	return r.err
}
