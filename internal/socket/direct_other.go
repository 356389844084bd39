//go:build !linux || race

package socket

import "net"

// Direct returns conn: see direct_linux.go.
func Direct(conn net.Conn) net.Conn { return conn }
