package servers

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Relay carries bytes between two connections until one direction ends, and closes both. What was
// read goes on when out, from a to b, or back has returned true; false ends the relay.
func Relay(a, b net.Conn, out, back func() bool) {
	var both sync.WaitGroup
	both.Go(func() { Carry(a, b, out) })
	both.Go(func() { Carry(b, a, back) })
	both.Wait()
}

// Carry is one direction of a relay.
func Carry(from, to net.Conn, pass func() bool) {
	// Once one direction has ended neither is of use; whatever still comes is the end.
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if !pass() {
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Owner finds which of these processes has the other end of a connection over loopback.
func Owner(c net.Conn, pids []int) (which int, ok bool) {
	socket, ok := socketOf(c.RemoteAddr(), c.LocalAddr())
	if !ok {
		return 0, false
	}
	for i, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, f := range files {
			if target, err := os.Readlink(f); err == nil && target == "socket:["+socket+"]" {
				return i, true
			}
		}
	}
	return 0, false
}

// socketOf finds the kernel's number of the socket between two addresses.
func socketOf(local, remote net.Addr) (string, bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			f := strings.Fields(string(line))
			if len(f) > 9 && sameAddr(f[1], local) && sameAddr(f[2], remote) {
				return f[9], f[9] != "0"
			}
		}
	}
	return "", false
}

// sameAddr compares an address in the kernel's table, 0100007F:1F90, with one of Go's.
func sameAddr(listed string, a net.Addr) bool {
	ip, port, _ := strings.Cut(listed, ":")
	b, err := hex.DecodeString(ip)
	if err != nil || len(b)%4 != 0 {
		return false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	at, ok := netip.AddrFromSlice(b)
	want := a.(*net.TCPAddr).AddrPort()
	return ok && at.Unmap() == want.Addr().Unmap() && port == fmt.Sprintf("%04X", want.Port())
}
