package node_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// TestOwnClaimIsDeleted: a pod whose claim is being deleted says so in its log, and by an event where it may tell some; not where the set has no
// place for the pod, whose claim its leader deletes.
func TestOwnClaimIsDeleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, set, says string
		bare, quiet     bool
	}{
		{name: "whole", set: `{"spec": {"replicas": 1}}`, says: "is being deleted: Kubernetes keeps it"},
		{name: "bare", set: `{"spec": {"replicas": 1}}`, says: "is being deleted: Kubernetes keeps it", bare: true},
		{name: "no place", set: `{"spec": {"replicas": 1, "ordinals": {"start": 2}}}`, says: "it goes with the pod", quiet: true},
	} {
		bare := c.bare
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, settings := newKubernetes(t)
			k.claims, k.going, k.bare = []string{"data-db-0", "data-db-1"}, map[string]bool{"data-db-0": true}, bare
			k.say(c.set)
			if bare { // it looks at claims, and at nothing else
				settings = append(settings[1:], "--kubernetes-statefulsets=db")
			}
			addr := fmt.Sprintf("db-0.peers.test:%d", freePort(t))
			log := &heardLog{}
			all := append(append(args(t, t.TempDir(), []string{addr}, addr), settings...), "--report-host=db-0.peers.test")
			cfg, err := config.Load(config.Sources{Args: all})
			if err != nil {
				t.Fatal(err)
			}
			n, err := node.Open(cfg, slog.New(slog.NewTextHandler(log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			m := &member{n, all, t}
			t.Cleanup(m.stop)
			eventually(t, "the log says so", func() error {
				if text := log.String(); !strings.Contains(text, c.says) {
					return errors.New(text)
				}
				return nil
			})
			if text := log.String(); strings.Contains(text, "the claim data-db-0 of "+addr+" is being deleted") == c.quiet {
				t.Errorf("the log has %s", text)
			}
			if !bare && !c.quiet {
				if _, text := k.said(t, "ClaimDeleted"); !strings.Contains(text, "Do not hibernate the group") {
					t.Error(text)
				}
			}
			if k.refusals() > 0 {
				t.Errorf("it asked %d times for what it may not have", k.denied)
			}
		})
	}
}
