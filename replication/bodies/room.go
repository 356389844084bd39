package bodies

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
)

// room is what GiveRoom has done last. Guarded by Store.mu.
type room struct {
	gave     *body.File
	at       time.Duration
	removals int // tasks that remove files
}

// errRoom is why a body is not received that GiveRoom has removed.
var errRoom = errors.New("bodies: the disk is full, and the log needs the room")

// GiveRoom removes a body that is here only early, for whoever finds no space on the disk and will try again: what
// is committed comes before what may never be. It returns at once; the file goes when its readers have let
// go of it. One that still grows goes before one that is whole, a large one before a small one. What Raft has been
// given, or the log waits for, stays.
//
// The member acknowledges an entry only with its body, so nothing is lost: it gets the body when the log needs it, or
// when its leader finds no others for COMMIT.
func (s *Store) GiveRoom() {
	s.mu.Lock()
	now := s.opt.Env.Monotonic()
	if r := &s.room; r.gave != nil && now-r.at < roomAfter && (r.removals > 0 || !r.gave.Closed()) {
		s.mu.Unlock()
		return // that one's space is about to come
	}
	st := s.spare()
	if st == nil {
		s.mu.Unlock()
		return
	}
	s.room.gave, s.room.at = st.b, now
	src := st.from
	s.remove(st)
	if src != nil {
		s.shun(src, st.b.ID.Number)
	}
	s.mu.Unlock()
	s.unwanted(st.b.ID, errRoom)
}

// spare returns the body that is missed least, nil if there is none. REQUIRES: mu.
func (s *Store) spare() (spare *staged) {
	most := int64(0)
	for _, st := range s.staged {
		n := st.b.Status().Stored
		if s.needless(st) && (spare == nil || spare.whole && !st.whole || spare.whole == st.whole && n > most) {
			spare, most = st, n
		}
	}
	return spare
}
