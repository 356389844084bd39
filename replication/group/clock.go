package group

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/engine/env"
)

// leaseClock is the clock of leases: in the real world CLOCK_BOOTTIME, since the
// usual monotonic clock stands still while a machine is suspended, and a leader that
// wakes up would take its lease for young.
func leaseClock(e env.Env) func() time.Duration {
	if e != env.Real() {
		return e.Monotonic
	}
	return func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic("group: CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
		}
		return time.Duration(ts.Nano())
	}
}
