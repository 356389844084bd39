package group

import (
	"time"
	"unsafe"

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
		// It never blocks, so that the scheduler need not hear of it: see socket.Direct.
		if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
			panic("group: CLOCK_BOOTTIME: " + errno.Error()) // Linux has it since 2.6.39
		}
		return time.Duration(ts.Nano())
	}
}
