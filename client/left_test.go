package client

import (
	"testing"
)

// A node that has left the group is forgotten, and its connection closed. Who was about to call it
// goes on to another, and does not take that for an end of its own.
func TestLeft(t *testing.T) {
	db := &DB{nodes: map[string]*node{}, dial: dialTCP, silence: silence}
	n, err := db.node("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.openStream(); retryable(elsewhere(err)) != Elsewhere {
		t.Errorf("a stream to who has left: %v", err)
	}
}
