// Package socket says how TCP connections are used: how soon the kernel gives one up whose other
// end is silent, and by which system calls an idle one is read and written ([Direct]).
//
// A host that lost its power or its network says nothing, and a program that waits for its answer
// would wait for a quarter of an hour. Only the other kernel has to answer, so that a program
// that is slow, or long at work, is not taken for a dead one.
package socket

import (
	"net"
	"time"
)

// Dialer dials connections that are given up after a silence. Sent data that nobody acknowledges
// end them as soon as it is over (on Linux), idle ones end at the fourth probe, which follow
// each other in half of the time, but not faster than one a second.
func Dialer(silence time.Duration) *net.Dialer {
	return &net.Dialer{Control: control(silence), KeepAliveConfig: keepAlive(silence)}
}

// Limit does the same for a connection that was accepted, if it is one of TCP.
func Limit(conn net.Conn, silence time.Duration) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(keepAlive(silence))
	if set := control(silence); set != nil {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = set("", "", raw)
		}
	}
}

// keepAlive lets the kernel probe an idle connection.
func keepAlive(silence time.Duration) net.KeepAliveConfig {
	every := max(silence/2, time.Second)
	return net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: 3}
}
