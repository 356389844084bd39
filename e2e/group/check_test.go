package group_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/triremedb/trireme/replication/group"
)

// checkAll waits until all members have the same, and compares them with each other
// and with what the clients know. Nothing is written meanwhile. The log is read as a
// whole on all members, or on one.
func (l *load) checkAll(everywhere bool) {
	l.gate.Lock()
	defer l.gate.Unlock()
	c := l.c
	number, ok := l.settle()
	if !ok {
		return
	}
	hashes := map[string]uint64{}
	files := map[string]fileSum{}
	for i, n := range c.members() {
		for _, consistency := range []group.Consistency{group.Strong, group.Local} {
			if !l.readFrom(n, request{Consistency: consistency, Limit: patience}) {
				c.failf("node %d: no answer to a read", n.ID)
			}
		}
		a := c.must(n, request{Do: "check", Number: number})
		hashes[a.Hash] = n.ID
		l.checkRows(n, a)
		l.checkMarks(n, a)
		c.checkFiles(n, a, files)
		if everywhere || i == int(number)%len(c.members()) {
			l.checkLog(n, c.must(n, request{Do: "history"}))
		}
		if c.failed() != "" {
			return
		}
	}
	if len(hashes) != 1 {
		c.failf("the members differ at transaction %d: %v", number, hashes)
	}
}

// settle waits until all members have applied the same transactions.
func (l *load) settle() (number uint64, ok bool) {
	c := l.c
	ok = c.eventually(func() bool {
		leads := false
		var numbers []uint64
		for _, n := range c.members() {
			a, err := c.ask(n, request{Do: "status"}, patience)
			if err == nil && a.Error != "" {
				c.failf("node %d has stopped: %s", n.ID, a.Error)
			}
			if err != nil || a.Status.Error != "" || a.Status.Provisioning {
				return false
			}
			leads = leads || a.Status.Writable
			numbers = append(numbers, a.Status.Number)
		}
		for _, other := range numbers {
			if other != numbers[0] {
				return false
			}
		}
		number = numbers[0]
		return leads
	})
	if !ok {
		c.failf("the members do not come together: %s", c.standing())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok && number < l.acked {
		c.failf("all members have transactions up to %d, but %d was acknowledged", number, l.acked)
	}
	return number, ok && c.failed() == ""
}

// checkRows compares the table of operations with what the clients know.
func (l *load) checkRows(n *node, a *answer) {
	there := map[uint64]bool{}
	for _, id := range a.Ids {
		there[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.ops {
		switch {
		case o.outcome == committed && !there[o.id]:
			l.c.failf("node %d: operation %x was acknowledged as transaction %d and has no row", n.ID, o.id, o.number)
		case o.outcome == refused && there[o.id]:
			l.c.failf("node %d: operation %x was refused and has a row", n.ID, o.id)
		}
	}
}

// checkLog compares a node's log with what the clients know.
func (l *load) checkLog(n *node, a *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.ops {
		number, there := a.Log[o.id]
		switch {
		case o.outcome == committed && there && number != o.number:
			l.c.failf("node %d: operation %x was acknowledged as transaction %d and is %d in the log", n.ID, o.id, o.number, number)
		case o.outcome == committed && !there && o.number >= a.LogFrom:
			l.c.failf("node %d: operation %x was acknowledged as transaction %d and is not in the log", n.ID, o.id, o.number)
		case o.outcome == refused && there:
			l.c.failf("node %d: operation %x was refused and is transaction %d in the log", n.ID, o.id, number)
		}
	}
}

type fileSum struct {
	node uint64
	hash [sha256.Size]byte
}

// checkFiles compares a node's closed files of the log with those of others.
func (c *cluster) checkFiles(n *node, a *answer, seen map[string]fileSum) {
	for _, name := range a.Closed {
		text, err := readBinlog(n, name)
		if err != nil {
			c.failf("node %d: %v", n.ID, err)
			return
		}
		sum := fileSum{n.ID, sha256.Sum256(text)}
		other, found := seen[name]
		if found && other.hash != sum.hash {
			c.failf("%s differs on node %d and node %d", name, other.node, n.ID)
		}
		if !found {
			seen[name] = sum
		}
	}
}

// readBinlog reads a file of the log from the node's directory.
func readBinlog(n *node, name string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(n.Dir, "data.*", "binlog", name))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%d files %s are there", len(found), name)
	}
	return os.ReadFile(found[0])
}
