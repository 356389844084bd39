package group

import "time"

// handOvers are the attempts of a leader whose disk or network is bad to let another member lead, each after a longer pause than the one
// before: disks that are bad by turns do not keep the lead going round.
type handOvers struct {
	transfer *transferRequest // the last attempt, until its end is told
	last     uint64           // whom it was made with
	next     time.Duration    // when there may be another
	pause    time.Duration    // until the next one after that
}

// handOverPauseMax bounds the time between two attempts, which doubles. A member whose disk is well for that long
// begins anew.
const handOverPauseMax = time.Minute

// tick tells how an attempt ended.
func (h *handOvers) tick(t *raftTask) {
	r := h.transfer
	if r == nil || !r.done.Load() {
		return
	}
	if h.transfer, h.last = nil, r.to; r.err != nil {
		t.n.log.Warn("leadership was not handed over", "error", r.err)
	}
}

// due reports whether this member leads and it is time for an attempt.
func (h *handOvers) due(t *raftTask, now time.Duration) bool {
	return now >= h.next && h.transfer == nil && t.role.leads
}

// begin hands over to a member that has all that the group has agreed on, and to another one than the last time if it can.
func (h *handOvers) begin(t *raftTask, now time.Duration, why string) {
	h.start(t, now, why, &transferRequest{least: t.n.agreed.Load()})
}

// beginUnmet hands over to a member that cannot be sent what it lacks.
func (h *handOvers) beginUnmet(t *raftTask, now time.Duration, why string) {
	h.start(t, now, why, &transferRequest{least: t.longestOther(), unmet: true})
}

func (h *handOvers) start(t *raftTask, now time.Duration, why string, r *transferRequest) {
	h.pause = min(max(t.n.opt.stallLimit(), 2*h.pause), handOverPauseMax)
	h.next = now + h.pause
	t.n.log.Warn(why+": one of them is to lead", "again_in", h.pause)
	r.avoid, r.reply = h.last, reply{parker: t.env.NewParker()}
	h.transfer = r
	t.moves.startTransfer(t, r)
}

// forget begins anew, since the disk is well.
func (h *handOvers) forget() { h.next, h.pause, h.last = 0, 0, 0 }
