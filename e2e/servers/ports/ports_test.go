package ports

import (
	"net"
	"testing"
)

// Ports are given once, and lie in blocks whose first port is held.
func TestFree(t *testing.T) {
	given := map[int]bool{}
	for range 3 * blockSize {
		port, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		if given[port] {
			t.Fatalf("%d is given twice", port)
		}
		given[port] = true
		guard := port - (port-first)%blockSize
		if l, err := listen(guard); err == nil {
			_ = l.Close()
			t.Fatalf("%d is given, and %d is not held", port, guard)
		}
	}
	seen := map[string]bool{}
	for _, g := range mine.guards {
		if addr := g.Addr().(*net.TCPAddr).String(); seen[addr] {
			t.Fatalf("the block of %s is taken twice", addr)
		} else {
			seen[addr] = true
		}
	}
}
