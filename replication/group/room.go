package group

import (
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// leastRoom is how many bytes have to be free on a disk that has room, or a hundredth of a small one. A member without goes on as long as
// its files have room for the log, and tables for rows; it can neither lead for long nor be relied on.
const leastRoom = 16 << 20

// NoRoom reports whether a disk has no room to speak of. Of one whose size is 0 nobody knows.
func NoRoom(total, free uint64) bool { return total != 0 && free < min(leastRoom, total/100) }

// room is what the disk had when it was asked last.
type room struct{ total, free uint64 }

// roomEvery is how often it is asked.
const roomEvery = time.Second

// watchRoom is the task that asks the disk what it has: a call that does not return keeps nobody waiting who tells how this member stands.
func (c *core) watchRoom() {
	for !c.isStopped() {
		total, free := c.opt.DiskSpace()
		c.room.Store(&room{total, free})
		c.measures.ParkFor(env.Beat(c.env, roomEvery))
	}
}

// roomNow is what the disk had a moment ago; zero: nobody knows.
func (c *core) roomNow() room {
	if r := c.room.Load(); r != nil {
		return *r
	}
	return room{}
}
