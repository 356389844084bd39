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

// TestOwnClaimIsDeleted: a pod whose claim is being deleted says so in its log, and by an event where it may tell some.
func TestOwnClaimIsDeleted(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare=%v", bare), func(t *testing.T) {
			t.Parallel()
			k, settings := newKubernetes(t)
			k.claims, k.going, k.bare = []string{"data-db-0", "data-db-1"}, map[string]bool{"data-db-0": true}, bare
			k.say(`{"spec": {"replicas": 1}}`)
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
				if text := log.String(); !strings.Contains(text, "the claim data-db-0 of "+addr+" is being deleted") {
					return errors.New(text)
				}
				return nil
			})
			if !bare {
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
