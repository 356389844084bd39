package transport

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// Transport connects a node with the others of its group. All methods are safe
// for concurrent use.
type Transport interface {
	// Send queues messages, each for the peer that its To names, or for a member that is
	// none but is connected with this node. It never waits. What has no such peer, or does not fit the peer's queue, is dropped and reported by
	// Handler.ReportUnreachable. The messages must not change afterwards.
	Send(msgs []*raftpb.Message)

	// SetPeers makes these the peers, the node itself left out if it is among them.
	SetPeers(peers []Peer)
	// AddPeer adds a peer, or gives it another address.
	AddPeer(id uint64, addr string)
	// RemovePeer forgets a peer that left the group, and refuses it from now on.
	RemovePeer(id uint64)
	// Status lists the peers in the order of their ids.
	Status() []PeerStatus

	// Ask asks another node a small question and waits for its answer. A node that
	// belongs to no group yet may ask too, by address.
	Ask(ctx context.Context, c Call) ([]byte, error)
	// OpenBulk begins to read something large from another node.
	OpenBulk(ctx context.Context, c Call) (BulkReader, error)

	// SetIdentity tells which member of which group the node is, once a node that
	// began without a group knows it.
	SetIdentity(id Identity) error
	// RequireLogFormat refuses nodes from now on that do not know this version of the log's
	// format, which the node's log has come to. It never falls. Connections that there are
	// stay.
	RequireLogFormat(version uint32)
	// Addr is the address by which others reach the node.
	Addr() string
	// Close ends all connections and waits until no method of the handler runs.
	Close() error
}

// Handler is what a node offers to the others. Its methods are called from many
// tasks at once, except that Receive is called by one task at a time for each
// connection.
type Handler interface {
	// Receive takes messages of a peer, which its process of this incarnation has sent.
	// While it waits, the sender's connection is not read. What it has no room for it may
	// drop: Raft sends again.
	Receive(from, incarnation uint64, msgs []*raftpb.Message)
	// ReportUnreachable says that messages to a peer were lost. It must not wait.
	ReportUnreachable(id uint64)
	// ReportGone says that this incarnation of the peer's process has ended: it sends
	// nothing and answers nobody any more. What it sent before may still arrive, and a
	// later incarnation may be at work already. It is said at most once. It must not wait.
	ReportGone(id, incarnation uint64)
	// ReportRefused says that the peer's address refused a connection. The process may be
	// well: a firewall or a proxy may have refused for it. It is repeated while that is
	// so. It must not wait.
	ReportRefused(id uint64)
	// ReportConnected says that messages can reach a peer again. It must not wait.
	ReportConnected(id uint64)
	// ReportReached says that a peer has connected: what it sent before may be lost, and its
	// messages can come again. It must not wait.
	ReportReached(id uint64)
	// ReportRejected says that the peer refused this node's hello, or this node the
	// peer's welcome. It is repeated while that is so. It must not wait.
	ReportRejected(id uint64, r *Rejection)
	// Answer answers a question; CallerFrom(ctx) says whose. An error of type *Failure
	// reaches the asker as it is, of another its text does.
	Answer(ctx context.Context, kind string, payload []byte) ([]byte, error)
	// Bulk writes something large. An error ends the reader with a *Failure.
	Bulk(ctx context.Context, kind string, payload []byte, w BulkWriter) error
}

// Peer is a member of the group and where it listens.
type Peer struct {
	ID   uint64
	Addr string
}

// GroupID tells groups apart. The zero value is no group.
type GroupID [16]byte

func (g GroupID) String() string {
	if g == (GroupID{}) {
		return "none"
	}
	s := hex.EncodeToString(g[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// ParseGroupID reads what String writes.
func ParseGroupID(s string) (g GroupID, err error) {
	if s == "none" {
		return g, nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(g) {
		return g, fmt.Errorf("transport: %q is no group id", s)
	}
	return GroupID(b), nil
}

// MarshalText implements [encoding.TextMarshaler].
func (g GroupID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (g *GroupID) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGroupID(string(b))
	return err
}

// Identity is which member of which group a node is.
type Identity struct {
	Group  GroupID
	Member uint64
}

// Call says whom to ask for what.
type Call struct {
	To      uint64        // a member; 0: whoever is at Addr
	Addr    string        // where; empty: To's address
	Kind    string        // which part of the node answers
	Payload []byte        // what that part understands
	Timeout time.Duration // of a question; 0: Options.AskTimeout
}

func (c *Call) String() string {
	switch {
	case c.Addr == "":
		return fmt.Sprintf("member %d", c.To)
	case c.To == 0:
		return c.Addr
	}
	return fmt.Sprintf("member %d at %s", c.To, c.Addr)
}

// BulkReader reads what another node's Handler.Bulk writes. It is used by one task
// at a time.
type BulkReader interface {
	// Next returns the next chunk, which stays valid until the next call. At the end it
	// returns io.EOF: everything has arrived. Any other error means a cut.
	Next() ([]byte, error)
	// Close ends the stream, early or not.
	Close() error
}

// BulkWriter takes chunks for a reader on another node.
type BulkWriter interface {
	// Send waits until there is room for the chunk, of at most MaxChunk bytes, and
	// copies it. An error means that the reader is gone, or has taken nothing for so long that the
	// stream was ended.
	Send(chunk []byte) error
	// Abort ends the stream, also a Send that waits. Any task may call it, more than once.
	Abort()
}

// MaxChunk is the longest chunk of bulk.
const MaxChunk = 1 << 20

// MaxAsk is the longest question and the longest answer.
const MaxAsk = 1 << 20

// Caller is who asks.
type Caller struct {
	Identity        // zero members: it belongs to no group yet
	Addr     string // where it says it can be dialed
	Build    string
}

type callerKey struct{}

// WithCaller returns a context that names the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom tells who asks, inside Handler.Answer and Handler.Bulk.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// PeerStatus is what is known of the connection to a peer.
type PeerStatus struct {
	Peer
	Connected      bool // for control and entries
	Build          string
	Protocol       uint32 // versions agreed on; 0 before the first handshake
	LogFormat      uint32
	QueuedMessages int
	QueuedBytes    int
	Dropped        uint64 // messages that did not fit the queues or had no connection
	SentBytes      uint64 // of frames
	ReceivedBytes  uint64
	Err            error // why it is not connected
	// Undelivered is for how long nothing of what is sent on the connection for entries has arrived, though it was given up and made
	// again, or could not be made; 0: something has, or the connection is only slow. A connection that took the place of a lost one
	// has to carry something first. It says nothing of the other connection, on which heartbeats may arrive.
	Undelivered time.Duration
}

var (
	// ErrUnreachable says that there is no connection to the node. Nothing is known
	// about whether a question was heard.
	ErrUnreachable = errors.New("transport: no connection")
	// ErrTimeout says that no answer came in time.
	ErrTimeout = errors.New("transport: no answer in time")
	// ErrClosed says that the transport is closed.
	ErrClosed = errors.New("transport: closed")
	// ErrTooLarge says that a question, an answer or a chunk is above its limit.
	ErrTooLarge = errors.New("transport: too large")
)

// Failure is an error of the part of another node that was asked.
type Failure struct {
	Code uint32 // as that part numbers its errors; 0: not numbered
	Text string
}

func (f *Failure) Error() string { return f.Text }

// failure returns err as it travels.
func failure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Text: err.Error()}
}

// ToReader reads chunks as one run of bytes.
func ToReader(r BulkReader) io.ReadCloser { return &chunkReader{from: r} }

type chunkReader struct {
	from BulkReader
	left []byte
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		chunk, err := c.from.Next()
		if err != nil {
			return 0, err
		}
		c.left = chunk
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *chunkReader) Close() error { return c.from.Close() }
