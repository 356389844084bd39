// Package ports gives tests and measurements ports for servers that have to know theirs
// before they start, and have to find them free when they start again.
//
// Test programs run beside each other, and a port is not held while its server is down.
// A process therefore takes ports from blocks that it alone has: it listens on the first
// port of a block for as long as it lives. The blocks are below the ports that the kernel
// gives to connections.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

const (
	first     = 11000
	blocks    = 400
	blockSize = 50
)

var mine struct {
	sync.Mutex
	guards []net.Listener // on the first ports of the process's blocks
	next   int
	left   int
}

// Free finds a port of 127.0.0.1 on which nobody listens; no other process that asks here
// gets it while this one lives, nor is it given twice.
func Free() (int, error) {
	mine.Lock()
	defer mine.Unlock()
	for range 1000 {
		if mine.left == 0 {
			start := first + rand.IntN(blocks)*blockSize
			guard, err := listen(start)
			if err != nil {
				continue
			}
			mine.guards = append(mine.guards, guard)
			mine.next, mine.left = start+1, blockSize-1
		}
		port := mine.next
		mine.next, mine.left = mine.next+1, mine.left-1
		if l, err := listen(port); err == nil {
			_ = l.Close()
			return port, nil
		}
	}
	return 0, errors.New("no free port was found")
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
