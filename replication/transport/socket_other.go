//go:build !linux

package transport

import (
	"syscall"
	"time"
)

// controlSocket does nothing here: signs of life find a dead connection.
func controlSocket(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
