package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/mysqlwire"
)

// Questions that nodes ask each other beside the group's own.
const (
	askContact  = "node/contact"
	askHandover = "node/handover"
	askAbout    = "node/about"
	askLeave    = "node/leave"
	askSpare    = "node/spare"
)

// contact is how clients and other members reach a member.
type contact struct {
	Addr  string `json:"addr"` // of the main port
	Reads string `json:"reads,omitempty"`
	HTTP  string `json:"http,omitempty"`
	GRPC  string `json:"grpc,omitempty"`
	// Certificate is the fingerprint of what the main port shows; empty: no TLS.
	Certificate []byte `json:"certificate,omitempty"`
}

// self is the node's own.
func (n *Node) self() contact {
	at := func(l net.Listener) string {
		if l == nil {
			return ""
		}
		_, port := splitAddr(l.Addr().String())
		return net.JoinHostPort(host(n.cfg), strconv.Itoa(port))
	}
	c := contact{Addr: at(n.main), Reads: at(n.reads), HTTP: at(n.web), GRPC: at(n.programs)}
	if n.tls != nil {
		c.Certificate = n.tls.Fingerprint()
	}
	return c
}

// handler answers the node's own questions, and hands on the others.
type handler struct {
	transport.Handler
	n *Node
}

// Answer implements transport.Handler.
func (h *handler) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	switch kind {
	case askContact:
		return json.Marshal(h.n.self())
	case askAbout:
		return json.Marshal(h.n.ownAbout())
	case askHandover:
		return h.n.issue(ctx, payload)
	case askLeave:
		return h.n.letGo(ctx)
	case askSpare:
		return h.n.answerSpare(ctx, payload)
	}
	return h.Handler.Answer(ctx, kind, payload)
}

// contacts remembers what members have said.
type contacts struct {
	mu    sync.Mutex
	known map[uint64]knownContact
}

type knownContact struct {
	contact
	at time.Time
}

const (
	contactKept = 5 * time.Second
	contactAsk  = 500 * time.Millisecond
	contactsMax = 1000
)

// contact asks a member how it is reached.
func (n *Node) contact(ctx context.Context, id uint64) (contact, error) {
	if id == n.group.ID() {
		return n.self(), nil
	}
	n.contacts.mu.Lock()
	k, ok := n.contacts.known[id]
	n.contacts.mu.Unlock()
	if ok && time.Since(k.at) < contactKept {
		return k.contact, nil
	}
	b, err := n.peers.Ask(ctx, transport.Call{To: id, Kind: askContact, Timeout: contactAsk})
	var c contact
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return k.contact, err // what it said before may still hold
	}
	n.contacts.mu.Lock()
	defer n.contacts.mu.Unlock()
	if n.contacts.known == nil || len(n.contacts.known) >= contactsMax {
		n.contacts.known = make(map[uint64]knownContact)
	}
	n.contacts.known[id] = knownContact{c, time.Now()}
	return c, nil
}

// tickets are sessions that other members have announced.
type tickets struct {
	mu  sync.Mutex
	all map[string]ticket
}

type ticket struct {
	session *mysqlwire.Handover
	until   time.Time
}

const (
	ticketSize = 32
	ticketLife = 10 * time.Second
	ticketsMax = 10_000
)

func (t *tickets) init() { t.all = make(map[string]ticket) }

// issue remembers a session and returns its ticket.
func (t *tickets) issue(h *mysqlwire.Handover) []byte {
	b := make([]byte, ticketSize)
	_, _ = rand.Read(b) // crypto/rand does not fail
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= ticketsMax {
		for k, v := range t.all {
			if now.After(v.until) {
				delete(t.all, k)
			}
		}
		if len(t.all) >= ticketsMax {
			return nil
		}
	}
	t.all[string(b)] = ticket{h, now.Add(ticketLife)}
	return b
}

// redeem gives the session of a ticket, once.
func (t *tickets) redeem(b []byte) *mysqlwire.Handover {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.all[string(b)]
	delete(t.all, string(b))
	if !ok || time.Now().After(k.until) {
		return nil
	}
	return k.session
}

// issued answers askHandover.
type issued struct {
	contact
	Ticket  []byte        `json:"ticket"`
	Refused *sqlerr.Error `json:"refused,omitempty"` // why the client gets none; older members ask again until their time is up
}

// fromMember reports whether a member of the group asks, as this one knows the group: the transport lets in whoever has a certificate of
// the members' authority and says that it is one, since members may be newer than what this one has applied.
func (n *Node) fromMember(ctx context.Context) bool {
	caller := transport.CallerFrom(ctx)
	return caller.Member != 0 && caller.Group == transport.GroupID(n.group.Group()) &&
		slices.ContainsFunc(n.group.Members(), func(m group.Member) bool { return m.ID == caller.Member && m.Addr == caller.Addr })
}

// issue takes a session over from another member.
func (n *Node) issue(ctx context.Context, payload []byte) ([]byte, error) {
	select {
	case <-n.ready:
	default:
		return nil, &transport.Failure{Text: "this member is starting"}
	}
	if !n.fromMember(ctx) {
		return nil, &transport.Failure{Text: "only members hand sessions over"}
	}
	if !n.serves() {
		return nil, &transport.Failure{Text: "this member takes no writes"}
	}
	var h mysqlwire.Handover
	if err := json.Unmarshal(payload, &h); err != nil {
		return nil, err
	}
	if err := n.confirm(&h); err != nil {
		var refused *sqlerr.Error
		if errors.As(err, &refused) {
			return json.Marshal(issued{Refused: refused})
		}
		return nil, err
	}
	h.From = transport.CallerFrom(ctx).Member
	t := n.tickets.issue(&h)
	if t == nil {
		return nil, &transport.Failure{Text: "too many sessions are being handed over"}
	}
	return json.Marshal(issued{contact: n.self(), Ticket: t})
}

const (
	forwardRetry = 20 * time.Millisecond
	forwardAsk   = time.Second
)

// forward says which member a session of the main port goes to: nil, this one. While
// nobody leads it waits, so that a client that connects during an election need not try
// again.
func (n *Node) forward(ctx context.Context, h *mysqlwire.Handover) (*mysqlwire.Target, error) {
	payload, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	for {
		if n.serves() {
			return nil, n.confirm(h)
		}
		if leader, ok := n.group.Leader(); ok && leader.ID != n.group.ID() {
			if t, err := n.askTicket(ctx, leader.ID, payload); t != nil || err != nil {
				return t, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, sqlerr.Newf(sqlerr.ServerShutdown, "No member of the group takes writes at present: connect "+
				"again later")
		case <-n.stopping:
			return nil, sqlerr.New(sqlerr.ServerShutdown)
		case <-time.After(forwardRetry):
		}
	}
}

// askTicket asks a member for a ticket; nil: it gives none now. The error is what it says of the client.
func (n *Node) askTicket(ctx context.Context, leader uint64, payload []byte) (*mysqlwire.Target, error) {
	b, err := n.peers.Ask(ctx, transport.Call{To: leader, Kind: askHandover, Payload: payload, Timeout: forwardAsk})
	if err != nil {
		n.log.Debug("handing a session over", "to", leader, "error", err)
		return nil, nil
	}
	var i issued
	if err = json.Unmarshal(b, &i); err == nil && i.Refused != nil {
		return nil, i.Refused
	}
	if err != nil || i.Addr == "" {
		return nil, nil
	}
	t := &mysqlwire.Target{Member: leader, Addr: i.Addr, Ticket: i.Ticket}
	if len(i.Certificate) > 0 {
		t.TLS, t.AlwaysTLS = auth.Pinned(i.Certificate), n.cfg.String("peer_tls_cert") != ""
	}
	return t, nil
}
