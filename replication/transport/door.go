package transport

import (
	"maps"
	"slices"
	"sync"
)

// Door decides which callers a node lets in. It holds what a node knows of itself
// and its peers, and who is inside.
//
// Invariants: of one member only one process is inside, and of one process at
// most one connection for control and one for entries; the newest counts.
type Door struct {
	mu       sync.Mutex
	maxBulks int   // of one member
	self     Hello // To is unused
	peers    map[uint64]string
	removed  map[uint64]bool
	guests   map[uint64]*guest
}

// guest is a member that is or was inside.
type guest struct {
	incarnation uint64
	addr        string
	inside      [ForBulk]*visit // by purpose
	bulks       []*visit
	replaced    []uint64 // incarnations that had to make room, oldest first
}

type visit struct{ evict func() }

// maxReplaced is how many processes of a member that had to make room are remembered.
const maxReplaced = 16

// maxStrangers is how many members are let in that are no known peers: new ones
// that the node has not heard of yet.
const maxStrangers = 16

// NewDoor returns the door of a node that presents itself by self.
// maxBulks is how many bulk streams one member may have.
func NewDoor(self Hello, maxBulks int) *Door {
	return &Door{self: self, maxBulks: maxBulks, peers: map[uint64]string{}, removed: map[uint64]bool{}, guests: map[uint64]*guest{}}
}

// SetIdentity tells which member of which group the node is. It may be said again,
// but not changed.
func (d *Door) SetIdentity(id Identity) *Rejection {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.self.Identity == id {
		return nil
	}
	if d.self.Member != 0 || d.self.Group != (GroupID{}) && d.self.Group != id.Group {
		return rejectf(ReasonIdentity, "the node is member %d of group %s and cannot become member %d of group %s",
			d.self.Member, d.self.Group, id.Member, id.Group)
	}
	d.self.Identity = id
	return nil
}

// RequireLogFormat refuses callers that do not know this version of the log's format.
func (d *Door) RequireLogFormat(version uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.self.LogFormat.Min = min(max(d.self.LogFormat.Min, version), d.self.LogFormat.Max)
}

// Hello is how the node presents itself to another.
func (d *Door) Hello(to uint64) Hello {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.self
	h.To = to
	return h
}

// SetPeers makes these the known peers.
func (d *Door) SetPeers(peers []Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.peers)
	for _, p := range peers {
		d.peers[p.ID] = p.Addr
		delete(d.removed, p.ID)
	}
}

// AddPeer makes a member known. A process of it that is inside from another address is shown out: the
// member has moved, and of one member only one process is inside.
func (d *Door) AddPeer(id uint64, addr string) {
	d.mu.Lock()
	d.peers[id] = addr
	delete(d.removed, id)
	g := d.guests[id]
	if g == nil || g.addr == addr {
		g = nil
	} else {
		delete(d.guests, id)
	}
	d.mu.Unlock()
	g.showOut()
}

// RemovePeer refuses a member from now on and shows it out.
func (d *Door) RemovePeer(id uint64) {
	d.mu.Lock()
	delete(d.peers, id)
	d.removed[id] = true
	g := d.guests[id]
	delete(d.guests, id)
	d.mu.Unlock()
	g.showOut()
}

// showOut ends all visits. The guest may be nil.
func (g *guest) showOut() {
	if g == nil {
		return
	}
	for _, v := range append(g.inside[:], g.bulks...) {
		if v != nil {
			v.evict()
		}
	}
}

// Admit decides on one call.
func (d *Door) Admit(h Hello, p Purpose) (Welcome, *Rejection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.admit(&h, p)
}

// Enter decides on a connection and lets it in until leave is called. evict is
// called, at most once and by another task, when the connection must make room.
func (d *Door) Enter(h Hello, p Purpose, evict func()) (w Welcome, leave func(), r *Rejection) {
	d.mu.Lock()
	w, r = d.admit(&h, p)
	g := d.guests[h.Member]
	if r == nil && p == ForBulk && g != nil && g.incarnation == h.Incarnation && len(g.bulks) >= d.maxBulks {
		r = rejectf(ReasonTooMany, "member %d has %d bulk streams from node %s already", h.Member, d.maxBulks, d.self.Addr)
	}
	if r != nil {
		d.mu.Unlock()
		return Welcome{}, nil, r
	}
	if g == nil {
		g = &guest{incarnation: h.Incarnation}
		d.guests[h.Member] = g
	}
	out := &guest{}
	if g.incarnation != h.Incarnation {
		out.inside, out.bulks = g.inside, g.bulks
		g.inside, g.bulks = [ForBulk]*visit{}, nil
		if g.replaced = append(g.replaced, g.incarnation); len(g.replaced) > maxReplaced {
			g.replaced = g.replaced[1:]
		}
	}
	g.incarnation, g.addr = h.Incarnation, h.Addr
	v := &visit{evict: evict}
	if p == ForBulk {
		g.bulks = append(g.bulks, v)
	} else {
		if g.inside[p] != nil {
			out.inside[p] = g.inside[p]
		}
		g.inside[p] = v
	}
	d.mu.Unlock()
	out.showOut()
	return w, func() { d.leave(h.Member, p, v) }, nil
}

func (d *Door) leave(id uint64, p Purpose, v *visit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guests[id]
	if g == nil {
		return
	}
	if p == ForBulk {
		g.bulks = slices.DeleteFunc(g.bulks, func(w *visit) bool { return w == v })
	} else if g.inside[p] == v {
		g.inside[p] = nil
	}
	if _, known := d.peers[id]; !known && !g.present() {
		delete(d.guests, id)
	}
}

// present reports whether a process of the member is inside. The guest may be nil.
func (g *guest) present() bool {
	return g != nil && (g.inside[ForControl] != nil || g.inside[ForEntries] != nil || len(g.bulks) > 0)
}

// admit runs the checks in the order in which an operator wants to hear of them.
func (d *Door) admit(h *Hello, p Purpose) (Welcome, *Rejection) {
	w, r := d.agree(h)
	switch {
	case r == nil:
		r = d.checkGroup(h, p)
	case r.Reason != ReasonMalformed && h.Group == d.self.Group && d.removed[h.Member]:
		return Welcome{}, removed(h) // to upgrade it would be of no use
	}
	if r == nil && h.Member != 0 && d.self.Group != (GroupID{}) {
		r = d.checkMember(h)
	}
	if r != nil {
		return Welcome{}, r
	}
	w.Identity, w.Build, w.Incarnation, w.Process = d.self.Identity, d.self.Build, d.self.Incarnation, d.self.Process
	return w, nil
}

// agree negotiates the versions.
func (d *Door) agree(h *Hello) (w Welcome, r *Rejection) {
	if r = h.check(); r != nil {
		return w, r
	}
	var ok bool
	if w.Protocol, ok = d.self.Protocol.shared(h.Protocol); !ok {
		return w, rejectf(ReasonProtocolVersion, "node %s (%s) speaks %s of the protocol between nodes, node %s (%s) speaks %s: %s",
			h.Addr, h.Build, h.Protocol, d.self.Addr, d.self.Build, d.self.Protocol, upgrade(h.Protocol, d.self.Protocol, h, &d.self))
	}
	if w.LogFormat, ok = d.self.LogFormat.shared(h.LogFormat); !ok {
		return w, rejectf(ReasonLogFormatVersion, "node %s (%s) knows %s of the log's format, node %s (%s) knows %s: %s",
			h.Addr, h.Build, h.LogFormat, d.self.Addr, d.self.Build, d.self.LogFormat, upgrade(h.LogFormat, d.self.LogFormat, h, &d.self))
	}
	return w, nil
}

// upgrade says which of two nodes is too old.
func upgrade(caller, own Versions, h, self *Hello) string {
	if caller.Max < own.Min {
		return "upgrade " + h.Addr
	}
	return "upgrade " + self.Addr
}

func (d *Door) checkGroup(h *Hello, p Purpose) *Rejection {
	none := GroupID{}
	switch {
	case h.Incarnation == d.self.Incarnation:
		return rejectf(ReasonOtherMember, "the address leads back to its caller, node %s", d.self.Addr)
	case h.Group == none && p != ForAsk:
		return rejectf(ReasonNotAMember, "node %s belongs to no group and wants %s", h.Addr, p)
	case h.Group != none && h.Member == 0 && p != ForAsk:
		return rejectf(ReasonNotAMember, "node %s has no member id and wants %s", h.Addr, p)
	case d.self.Group == none && p != ForAsk:
		return rejectf(ReasonNoGroup, "node %s belongs to no group yet", d.self.Addr)
	case h.Group != none && d.self.Group != none && h.Group != d.self.Group:
		return rejectf(ReasonOtherGroup, "node %s belongs to group %s, node %s to group %s",
			h.Addr, h.Group, d.self.Addr, d.self.Group)
	}
	return nil
}

func (d *Door) checkMember(h *Hello) *Rejection {
	self := &d.self
	switch {
	case h.To != 0 && h.To != self.Member:
		return rejectf(ReasonOtherMember, "node %s is member %d, not member %d", self.Addr, self.Member, h.To)
	case h.Member == self.Member:
		return rejectf(ReasonDuplicateMember, "node %s is member %d; node %s claims the same member id", self.Addr, self.Member, h.Addr)
	case d.removed[h.Member]:
		return removed(h)
	}
	addr, known := d.peers[h.Member]
	if known && addr != h.Addr {
		return rejectf(ReasonDuplicateMember, "member %d is at %s; node %s claims the same member id", h.Member, addr, h.Addr)
	}
	g := d.guests[h.Member]
	switch {
	case g == nil:
		if !known && d.strangers() >= maxStrangers {
			return rejectf(ReasonTooMany, "node %s: %d unknown members are connected already", self.Addr, maxStrangers)
		}
	case slices.Contains(g.replaced, h.Incarnation):
		return rejectf(ReasonDuplicateMember, "another process of member %d, at %s, took the place of this one", h.Member, g.addr)
	case g.incarnation != h.Incarnation && g.addr != h.Addr && g.present():
		return rejectf(ReasonDuplicateMember, "member %d is connected from %s; node %s claims the same member id", h.Member, g.addr, h.Addr)
	}
	return nil
}

func removed(h *Hello) *Rejection {
	return rejectf(ReasonRemoved, "member %d (%s) was removed from the group", h.Member, h.Addr)
}

// strangers counts the guests that are no known peers.
func (d *Door) strangers() int {
	n := 0
	for id := range d.guests {
		if _, known := d.peers[id]; !known {
			n++
		}
	}
	return n
}

// Stranger returns the address of a member that is inside and no known peer. The
// leader may be one, to a member that is so far behind that it has not heard of the
// leader's coming: it could never catch up if its answers went nowhere.
func (d *Door) Stranger(id uint64) (addr string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.peers[id]; known {
		return "", false
	}
	g := d.guests[id]
	if !g.present() {
		return "", false
	}
	return g.addr, true
}

// Forgotten reports whether a member is neither a known peer nor inside.
func (d *Door) Forgotten(id uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.peers[id]
	return !known && !d.guests[id].present()
}

// Known lists the known peers in the order of their ids.
func (d *Door) Known() []Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	var peers []Peer
	for _, id := range slices.Sorted(maps.Keys(d.peers)) {
		peers = append(peers, Peer{id, d.peers[id]})
	}
	return peers
}

// CheckWelcome is the caller's side: whether the node that answered is the one
// that h was meant for.
func CheckWelcome(h *Hello, w *Welcome) *Rejection {
	switch {
	case w.Protocol < h.Protocol.Min || w.Protocol > h.Protocol.Max || w.LogFormat < h.LogFormat.Min || w.LogFormat > h.LogFormat.Max:
		return rejectf(ReasonMalformed, "the welcome has protocol version %d and log format version %d", w.Protocol, w.LogFormat)
	case h.Group != (GroupID{}) && w.Group != (GroupID{}) && w.Group != h.Group:
		return rejectf(ReasonOtherGroup, "the node belongs to group %s, not to group %s", w.Group, h.Group)
	case h.To != 0 && w.Member != 0 && w.Member != h.To:
		return rejectf(ReasonOtherMember, "the node is member %d, not member %d", w.Member, h.To)
	}
	return nil
}
