package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Options configure a node's transport. The zero value of a field means what its
// comment says.
type Options struct {
	// Listen is the address to listen on, as "host:port". Listener, if set, is used
	// instead and closed with the transport.
	Listen   string
	Listener net.Listener
	// Advertise is the address by which the others reach the node; empty: the
	// listener's. It is the address that the group's membership has for the node.
	Advertise string

	// Identity is zero for a node that belongs to no group yet.
	Identity Identity
	// LogFormat are the versions of the log's format that the node reads and writes.
	LogFormat Versions
	// Build is the node's build, for people.
	Build string

	// TLS is how nodes prove who they are to each other. Without it AllowPlaintext must be set:
	// then anyone who reaches the port can read and write the database.
	TLS            *TLS
	AllowPlaintext bool

	// HandshakeTimeout is how long a new connection may take to say who it is; 0: 2 s.
	HandshakeTimeout time.Duration
	// DialTimeout is how long a connection attempt may take; 0: 1 s.
	DialTimeout time.Duration
	// LinkTimeout is how long a connection may be silent before it is given up; nodes
	// give a sign of life four times as often. 0: 2 s, at least 200 ms. It has no part
	// in elections.
	LinkTimeout time.Duration
	// AskTimeout is how long a question waits for its answer; 0: 5 s.
	AskTimeout time.Duration
	// BulkStall is how long the reader of a bulk stream may take nothing of it before the stream is
	// ended: what is read from would be kept for it. 0: 30 s.
	BulkStall time.Duration
	// RetryMin and RetryMax bound the pause between attempts to connect, which doubles;
	// 0: 10 and 500 ms. For RetryFast after a connection was lost (0: 5 s) the
	// pause is at most 50 ms, so that a dead leader is noticed at once. After a refusal that
	// somebody has to do something about it is at most RetryRefused, at any time; 0: 5 s.
	RetryMin, RetryMax, RetryFast, RetryRefused time.Duration

	// ControlQueue and EntriesQueue limit what waits for one peer; 0: 4096 messages and
	// 4 MiB, 4096 messages and 64 MiB. One message may always wait, however long.
	ControlQueue, EntriesQueue Limit

	// MaxConnections is the most accepted connections, MaxNewcomers the most among
	// them that have not yet said who they are; 0: 512 and 64.
	MaxConnections, MaxNewcomers int
	// MaxAsks is the most questions that are answered at a time, MaxBulks the most bulk
	// streams that are served, MaxBulksEach the most of them for one member; 0: 256, 32 and 8.
	MaxAsks, MaxBulks, MaxBulksEach int

	// Logger is told of connections that come, go and are refused; nil: nobody is.
	Logger *slog.Logger

	// protocol replaces ProtocolMin and ProtocolMax in tests.
	protocol Versions
}

// Limit is how much a queue holds.
type Limit struct{ Messages, Bytes int }

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Check says what New would refuse of the options, their certificates included. It opens no port.
func (o Options) Check() error {
	if err := o.fill(); err != nil || o.TLS == nil {
		return err
	}
	_, err := loadCertificates(o.TLS, o.Logger)
	return err
}

// fill checks the options and puts the defaults in.
func (o *Options) fill() error {
	if o.TLS == nil && !o.AllowPlaintext {
		return errors.New("transport: no TLS is configured for the connections between nodes; " +
			"give certificates, or allow plaintext explicitly on a network that you trust")
	}
	if o.TLS != nil && o.AllowPlaintext {
		return errors.New("transport: TLS and plaintext between nodes exclude each other")
	}
	if o.Listener == nil && o.Listen == "" {
		return errors.New("transport: no address to listen on")
	}
	if !o.LogFormat.valid() {
		return fmt.Errorf("transport: log format versions %d to %d", o.LogFormat.Min, o.LogFormat.Max)
	}
	if o.Identity.Group == (GroupID{}) && o.Identity.Member != 0 {
		return fmt.Errorf("transport: member id %d without a group", o.Identity.Member)
	}
	if len(o.Advertise) > maxAddr || len(o.Build) > maxBuild {
		return fmt.Errorf("transport: an address has at most %d bytes, a build %d", maxAddr, maxBuild)
	}
	o.HandshakeTimeout = or(o.HandshakeTimeout, 2*time.Second)
	o.DialTimeout = or(o.DialTimeout, time.Second)
	o.LinkTimeout = max(or(o.LinkTimeout, 2*time.Second), 200*time.Millisecond)
	o.BulkStall = or(o.BulkStall, 30*time.Second)
	o.AskTimeout = or(o.AskTimeout, 5*time.Second)
	o.RetryMin = or(o.RetryMin, 10*time.Millisecond)
	o.RetryMax = max(or(o.RetryMax, 500*time.Millisecond), o.RetryMin)
	o.RetryFast = or(o.RetryFast, 5*time.Second)
	o.RetryRefused = max(or(o.RetryRefused, 5*time.Second), o.RetryMax)
	o.ControlQueue = Limit{or(o.ControlQueue.Messages, 4096), or(o.ControlQueue.Bytes, 4<<20)}
	o.EntriesQueue = Limit{or(o.EntriesQueue.Messages, 4096), or(o.EntriesQueue.Bytes, 64<<20)}
	o.MaxConnections, o.MaxNewcomers = or(o.MaxConnections, 512), or(o.MaxNewcomers, 64)
	o.MaxAsks, o.MaxBulks, o.MaxBulksEach = or(o.MaxAsks, 256), or(o.MaxBulks, 32), or(o.MaxBulksEach, 8)
	o.protocol = or(o.protocol, Versions{ProtocolMin, ProtocolMax})
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
