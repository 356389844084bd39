package node

import "testing"

// TestAfter: a node that stops does not stay for what a task of it waits for. That ends with
// the group, after the tasks.
func TestAfter(t *testing.T) {
	n := &Node{stopping: make(chan struct{})}
	closed := make(chan struct{})
	n.after(func() { <-closed }, func() { t.Error("served by a node that stops") })
	close(n.stopping)
	n.tasks.Wait()
	close(closed)
	n.waits.Wait()

	n = &Node{stopping: make(chan struct{})}
	served := make(chan struct{})
	n.after(func() {}, func() { close(served) })
	<-served
	close(n.stopping)
	n.tasks.Wait()
	n.waits.Wait()
}
