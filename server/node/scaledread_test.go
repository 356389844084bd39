package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestReadReplicasGo: a set of read replicas that is gone is one that was set aside, whose members stay, unless the members' set says
// that there is to be none: then those that are stopped leave, those that are away are taken out, and their claims go.
func TestReadReplicasGo(t *testing.T) {
	t.Parallel()
	const both = `{"metadata": {"annotations": {"trireme.io/sets": "db,db-read"}}, "spec": {"replicas": 1}}`
	k, settings := newKubernetes(t)
	k.claims = []string{"data-db-0", "data-db-read-0", "data-db-read-1", "data-db-read-7"}
	k.sayBoth(both, `{"spec": {"replicas": 2}}`)
	settings = append(settings, "--kubernetes-statefulsets=db,db-read", "--kubernetes-delete-claims", "--shutdown-timeout=1s")
	voter := pods(t, 1, settings...)[0]
	var read []*member
	for i := range 2 {
		addr := fmt.Sprintf("db-read-%d.peers.test:%d", i, freePort(t))
		a := append(args(t, t.TempDir(), []string{voter.report(t).Members[0].Addr}, addr), settings...)
		m, err := start(t, append(a, "--replica", "--kubernetes-statefulset=db-read", "--report-host="+fmt.Sprintf("db-read-%d.peers.test", i)))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, m)
	}
	consists := func(of, online int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d members, %d of them online", of, online), func() error {
			r, n := voter.report(t), 0
			for _, m := range r.Members {
				if m.State == "ONLINE" {
					n++
				}
			}
			if len(r.Members) != of || n != online {
				return fmt.Errorf("%+v", r.Members)
			}
			return nil
		})
	}
	consists(3, 3)
	read[1].stop()
	consists(3, 2)
	// Set aside, also while the members' set is; of a chart that says nothing; and while all sleeps: members stay, and whoever is stopped.
	for _, set := range []string{both, "", `{"spec": {"replicas": 1}}`, `{"metadata": {"annotations": {"trireme.io/sets": "db"}}, "spec": {"replicas": 0}}`} {
		k.sayBoth(set, "")
		read[0].stop()
		var err error
		if read[0], err = start(t, read[0].args); err != nil {
			t.Fatal(err)
		}
		asked := k.count()
		eventually(t, "the leader has looked", func() error {
			if k.count() < asked+6 {
				return errors.New("it has not")
			}
			return nil
		})
		consists(3, 2)
	}
	if did := k.has(); len(did) != 0 {
		t.Fatalf("%q", did)
	}
	k.sayBoth(`{"metadata": {"annotations": {"trireme.io/sets": "db"}}, "spec": {"replicas": 1}}`, `{"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"replicas": 2}}`)
	read[0].stop()
	consists(2, 1)
	k.sayBoth(`{"metadata": {"annotations": {"trireme.io/sets": "db"}}, "spec": {"replicas": 1}}`, "")
	eventually(t, "all have left, and their claims are deleted", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !slices.Equal(k.claims, []string{"data-db-0", "data-db-read-7"}) { // of which nobody knows that its member has left
			return fmt.Errorf("%q", k.claims)
		}
		return nil
	})
	consists(1, 1)
	if did := k.has(); !slices.Contains(did, "MemberRemoved") || len(did) != 3 {
		t.Errorf("%q", did)
	}
}
