package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestNoGroupBesideClaims: a pod with an empty volume founds no group while there is a claim of another pod that is none of the founders
// any more, and not there: it may have the group's data.
func TestNoGroupBesideClaims(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.claims = []string{"data-db-0", "data-db-2"}
	port := freePort(t)
	all := slices.DeleteFunc(args(t, t.TempDir(), nil, fmt.Sprintf("db-0.peers.test:%d", port)), func(s string) bool { return s == "--founders=" })
	all = append(append(all, settings...), "--report-host=db-0.peers.test", "--discovery=dns", "--discovery-expect=1", fmt.Sprintf("--discovery-dns-pattern=db-{}.peers.test:%d", port))
	started := make(chan *member, 1)
	go func() {
		m, err := start(t, all)
		if err != nil {
			t.Error(err)
		}
		started <- m
	}()
	for _, set := range []string{`{"spec": {"replicas": 1}}`, `{"spec": {"replicas": 3}}`} { // its pod is not there yet
		k.say(set)
		asked := k.count()
		eventually(t, "the claims are looked at a second time", func() error {
			if k.count() < asked+3 {
				return errors.New("they are not")
			}
			return nil
		})
		select {
		case <-started:
			t.Fatal("it has founded a group")
		case <-time.After(time.Second):
		}
	}
	k.mu.Lock()
	k.claims = []string{"data-db-0"}
	k.mu.Unlock()
	m := <-started
	if m == nil {
		return
	}
	leaderOf(t, []*member{m})
}
