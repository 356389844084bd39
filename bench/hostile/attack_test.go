package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAttackersThatEnd: a process of hostile accounts that ends by itself is an error at once, whatever it has reported.
func TestAttackersThatEnd(t *testing.T) {
	var w world
	for _, does := range []string{"exit 3", "exit 0", `echo '{"done":7}'`} {
		if err := w.run(exec.Command("sh", "-c", does), make(chan struct{}), time.Minute); err == nil || !strings.Contains(err.Error(), "too early") {
			t.Errorf("%s: %v", does, err)
		}
	}
}

// TestAttackersThatStay: one that does not end when it is told to is killed, also where a child of it holds its output.
func TestAttackersThatStay(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	var w world
	for _, does := range []string{"exec sleep 5", "sleep 5; echo"} {
		if err := w.run(exec.Command("sh", "-c", does), stop, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s: %v", does, err)
		}
	}
	if err := w.run(exec.Command("sh", "-c", `cat; echo '{"done":7,"errors":{"1205":2}}'`), stop, time.Minute); err != nil || w.hostile.Done != 7 {
		t.Errorf("one that ends well: %v, %d are done", err, w.hostile.Done)
	}
	if err := w.run(exec.Command("sh", "-c", "cat; echo no JSON"), stop, time.Minute); err == nil {
		t.Error("a report that is no JSON is taken")
	}
}
