package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/server/config"
	kubernetesapi "github.com/triremedb/trireme/server/kubernetes"
	"github.com/triremedb/trireme/server/node"
)

// TestNoGroupBesideClaims: a pod with an empty volume founds no group while there is a claim of another pod that is none of the founders
// any more, and not there: it may have the group's data. An event names the claim.
func TestNoGroupBesideClaims(t *testing.T) {
	t.Parallel()
	for _, claim := range []string{"data-db-2", "data-db-read-0"} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			k, settings := newKubernetes(t)
			k.claims = []string{"data-db-0", claim}
			port := freePort(t)
			all := slices.DeleteFunc(args(t, t.TempDir(), nil, fmt.Sprintf("db-0.peers.test:%d", port)), func(s string) bool { return s == "--founders=" })
			all = append(append(all, settings...), "--kubernetes-statefulsets=db,db-read", "--report-host=db-0.peers.test", "--discovery=dns", "--discovery-expect=1",
				fmt.Sprintf("--discovery-dns-pattern=db-{}.peers.test:%d", port))
			started := make(chan *member, 1)
			go func() {
				m, err := start(t, all)
				if err != nil {
					t.Error(err)
				}
				started <- m
			}()
			for _, sets := range [][2]string{{`{"spec": {"replicas": 1}}`, ""}, {`{"spec": {"replicas": 3}}`, `{"spec": {"replicas": 1}}`}} { // its pod is not there yet
				k.sayBoth(sets[0], sets[1])
				asked := k.looks(claim)
				eventually(t, "the claims are looked at again", func() error {
					if k.looks(claim) < asked+3 {
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
			if _, text := k.said(t, "FoundingWaits"); !strings.Contains(text, "the claim "+claim) || !strings.Contains(text, "delete it") ||
				strings.Contains(text, "restore that into a new release") != strings.Contains(claim, "read") {
				t.Error(text)
			}
			k.setBusy(true) // which is another reason for a moment
			time.Sleep(time.Second)
			k.setBusy(false)
			asked := k.looks(claim)
			eventually(t, "the claim is looked at again", func() error {
				if k.looks(claim) < asked+2 {
					return errors.New("it is not")
				}
				return nil
			})
			k.mu.Lock()
			k.claims = []string{"data-db-0"}
			k.mu.Unlock()
			m := <-started
			if m == nil {
				return
			}
			leaderOf(t, []*member{m})
			k.said(t, "FoundingGoesOn")
		})
	}
}

// looks is how often it was asked for a claim.
func (k *kubernetes) looks(claim string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.looked {
		if c == claim {
			n++
		}
	}
	return n
}

// registry is a discovery that tells what it was told; with names everybody who is there.
type registry struct {
	names          bool
	nodes, members []string
	registered     bool
	others         []string                   // that have come when this node had registered
	states         map[string]discovery.State // of pods that answer
}

func (r *registry) Plan(context.Context) (*discovery.Plan, error) {
	r.registered = true
	return discovery.NewPlan("db", append(slices.Clone(r.nodes), r.others...), 9)
}
func (r *registry) Contacts(context.Context) ([]string, error) {
	return append(slices.Clone(r.nodes), r.members...), nil
}
func (r *registry) Everybody(context.Context) ([]string, bool, error) { return r.nodes, r.names, nil }
func (r *registry) Announce(context.Context, discovery.Announcement) error {
	return nil
}
func (r *registry) View(context.Context) (v discovery.View, err error) {
	for i, m := range r.members {
		v.Members = append(v.Members, discovery.Announcement{ID: uint64(i + 1), Addr: m})
	}
	return v, nil
}
func (r *registry) Close() error { return nil }

// guard is what a pod db-0 asks in the place of a registry.
func guard(t *testing.T, r *registry, settings ...string) (discovery.Discovery, error) {
	t.Helper()
	cfg, err := config.Load(config.Sources{Args: append([]string{"--report-host=db-0.peers.test", "--peer-address=db-0.peers.test:17100", "--cluster-name=db", "--discovery-expect=1",
		"--discovery-dns-pattern=db-{}.peers.test:17100", "--etcd-endpoints=http://127.0.0.1:1"}, settings...)})
	if err != nil {
		t.Fatal(err)
	}
	return node.Guard(cfg, r, func(addr string) (s discovery.Status, err error) {
		state, ok := r.states[addr]
		if s.State = state; !ok {
			err = errors.New("no answer")
		}
		return s, err
	})
}

// census is what a discovery is asked before a group is founded.
type census interface {
	Everybody(context.Context) ([]string, bool, error)
}

// TestClaimsInTheWay: which claims keep a pod from founding a group: those of all sets, up to the last one that there may be, whose pods are not there and
// that may have data. A pod that may not look founds nothing; nor does one that may do nothing else, beside a claim.
func TestClaimsInTheWay(t *testing.T) {
	t.Parallel()
	last := fmt.Sprintf("data-db-read-%d", kubernetesapi.PodsMax-1)
	for name, c := range map[string]struct {
		claims, there []string
		phase         string
		shut          bool
		etcd          bool
		states        map[string]discovery.State
		way           string
	}{
		"none":                                 {claims: []string{"data-db-0", "data-other-1"}},
		"of a member":                          {claims: []string{"data-db-1"}, way: "data-db-1"},
		"of a member whose pod is there":       {claims: []string{"data-db-1"}, there: []string{"db-1.peers.test:1"}},
		"of a read replica":                    {claims: []string{"data-db-read-0"}, way: "data-db-read-0"},
		"of a read replica whose pod is there": {claims: []string{"data-db-read-0"}, there: []string{"db-read-0.peers.test:1"}},
		"of another one":                       {claims: []string{"data-db-read-1", "data-db-read-0"}, there: []string{"db-read-0.peers.test:1"}, way: "data-db-read-1"},
		"of the last one":                      {claims: []string{last}, way: last},
		"of the last member":                   {claims: []string{fmt.Sprintf("data-db-%d", kubernetesapi.PodsMax-1)}, way: fmt.Sprintf("data-db-%d", kubernetesapi.PodsMax-1)},
		"without a volume":                     {claims: []string{"data-db-1", "data-db-read-0"}, phase: "Pending"},
		"with one":                             {claims: []string{"data-db-1"}, phase: "Bound", way: "data-db-1"},
		"whose volume is lost":                 {claims: []string{"data-db-1"}, phase: "Lost", way: "data-db-1"},
		"nobody may look":                      {shut: true, way: "403"},
		"of one that does not answer":          {etcd: true, claims: []string{"data-db-read-0"}, there: []string{"db-read-0.peers.test:17100"}, way: "data-db-read-0"},
		"of one that says that it is empty":    {etcd: true, claims: []string{"data-db-read-0", "data-db-1"}, states: map[string]discovery.State{"db-read-0.peers.test:17100": discovery.Empty, "db-1.peers.test:17100": discovery.Prepared}},
		"of one that has data":                 {etcd: true, claims: []string{"data-db-read-0"}, states: map[string]discovery.State{"db-read-0.peers.test:17100": discovery.Begun}, way: "data-db-read-0"},
	} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bare=%v", name, bare), func(t *testing.T) {
				t.Parallel()
				k, settings := newKubernetes(t)
				k.claims, k.phase, k.shut, k.bare = c.claims, c.phase, c.shut, bare
				k.sayBoth(`{"spec": {"replicas": 99}}`, `{"spec": {"replicas": 99}}`) // it says nothing of who is there
				settings = append(settings, "--kubernetes-statefulsets=db,db-read", "--discovery=dns")
				if bare {
					settings = slices.DeleteFunc(settings, func(s string) bool { return s == "--kubernetes-statefulset=db" })
				}
				r := &registry{names: true, nodes: c.there}
				if c.etcd {
					r = &registry{members: c.there, states: c.states}
					settings = append(settings, "--discovery=etcd")
				}
				d, err := guard(t, r, settings...)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time what was found is looked at first
					if _, _, err := d.(census).Everybody(t.Context()); c.way == "" && err != nil || c.way != "" && (err == nil || !strings.Contains(err.Error(), c.way)) {
						t.Errorf("it says %v", err)
					}
				}
				if k.refusals() != 0 && !c.shut {
					t.Errorf("it asked %d times for what it may not have", k.denied)
				}
				if c.way != "" && !c.shut && k.looks(c.way) != 2 {
					t.Errorf("it asked for %q", k.looked)
				}
			})
		}
	}
}

// TestRestoreBeforeFounding: a pod with an empty volume founds no group while a founder's claim says that a restore was begun, while one is
// wanted and not done, nor where one was done into its own claim.
func TestRestoreBeforeFounding(t *testing.T) {
	t.Parallel()
	const begun, done = "begun: ", "done: b of backups to its end: transaction 7"
	for name, c := range map[string]struct {
		pod      int
		wanted   string
		restores map[string]string
		says     string
	}{
		"nothing is said":              {},
		"begun":                        {restores: map[string]string{"data-db-0": begun}, says: "a restore into the claim data-db-0 was begun"},
		"begun for another":            {pod: 1, restores: map[string]string{"data-db-0": begun}, says: "all claims data-db-N but that one"},
		"of no founder":                {restores: map[string]string{"data-db-3": begun}},
		"done for another":             {pod: 1, wanted: "b", restores: map[string]string{"data-db-0": done}},
		"done, and nothing is there":   {restores: map[string]string{"data-db-0": done}, says: "this process has found nothing in its volume"},
		"wanted":                       {wanted: "db/latest", says: "restore.from is db/latest), and none was restored into the claim data-db-0"},
		"wanted for another":           {pod: 2, wanted: "b", says: "none was restored into the claim data-db-0"},
		"wanted, done for another one": {pod: 1, wanted: "b", restores: map[string]string{"data-db-1": done}, says: "data-db-0"},
	} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bare=%v", name, bare), func(t *testing.T) {
				t.Parallel()
				k, settings := newKubernetes(t)
				k.claims, k.restores, k.bare = []string{"data-db-0", "data-db-1", "data-db-2"}, c.restores, bare
				if c.restores["data-db-3"] != "" {
					k.claims = append(k.claims, "data-db-3")
				}
				settings = append(settings, "--kubernetes-statefulsets=db,db-read", "--discovery=dns", "--discovery-expect=3", "--kubernetes-restore="+c.wanted,
					fmt.Sprintf("--report-host=db-%d.peers.test", c.pod), fmt.Sprintf("--peer-address=db-%d.peers.test:17100", c.pod))
				if bare {
					settings = slices.DeleteFunc(settings, func(s string) bool { return s == "--kubernetes-statefulset=db" })
				}
				d, err := guard(t, &registry{names: true, nodes: []string{"db-3.peers.test:1"}}, settings...)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err = d.(census).Everybody(t.Context()); c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("it says %v", err)
				}
				if k.refusals() != 0 {
					t.Errorf("it asked %d times for what it may not have", k.denied)
				}
			})
		}
	}
}

// TestRestoreIsAwaited: a pod waits while its claim says that a restore was begun, an event says what to do, and it goes on when the annotation is taken away.
func TestRestoreIsAwaited(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.claims, k.restores = []string{"data-db-0"}, map[string]string{"data-db-0": "begun: "}
	k.sayBoth(`{"spec": {"replicas": 1}}`, "")
	port, web := freePort(t), freePort(t)
	all := slices.DeleteFunc(args(t, t.TempDir(), nil, fmt.Sprintf("db-0.peers.test:%d", port)), func(s string) bool { return s == "--founders=" })
	all = append(append(all, settings...), fmt.Sprintf("--http-port=%d", web), "--kubernetes-statefulsets=db", "--report-host=db-0.peers.test", "--discovery=dns", "--discovery-expect=1",
		fmt.Sprintf("--discovery-dns-pattern=db-{}.peers.test:%d", port))
	started := make(chan *member, 1)
	go func() {
		m, err := start(t, all)
		if err != nil {
			t.Error(err)
		}
		started <- m
	}()
	if _, text := k.said(t, "FoundingWaits"); !strings.Contains(text, "a restore into the claim data-db-0 was begun and is not done") ||
		!strings.Contains(text, "helm uninstall") || !strings.Contains(text, "Restoring") {
		t.Error(text)
	}
	select {
	case <-started:
		t.Fatal("it has founded a group")
	default:
	}
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/status", web))
	if err != nil {
		t.Fatal(err)
	}
	var r node.Report
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&r), resp.Body.Close()); err != nil || !r.Empty || !r.Starting {
		t.Errorf("%+v, %v", r, err)
	}
	k.mu.Lock()
	k.restores = nil
	k.mu.Unlock()
	m := <-started
	if m == nil {
		return
	}
	leaderOf(t, []*member{m})
	k.said(t, "FoundingGoesOn")
	if r := m.report(t); r.Empty {
		t.Errorf("it has founded a group: %+v", r)
	}
}

// TestReplicasFoundNothing: a read replica is none of those that come first in etcd's registry and found the group, where it would vote.
func TestReplicasFoundNothing(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]int{"--discovery=etcd": 3, "--discovery=etcd --replica": 0, "--discovery=dns --replica": 3} {
		cfg, err := config.Load(config.Sources{Args: append(strings.Fields(settings), "--discovery-expect=3", "--discovery-dns-pattern=db-{}.peers.test:17100", "--etcd-endpoints=http://127.0.0.1:1")})
		if err != nil {
			t.Fatal(err)
		}
		if got := node.Founders(cfg); got != want {
			t.Errorf("%s: %d", settings, got)
		}
	}
}

// TestNoTokenNoGroup: a pod that is to look at claims and has no token founds nothing, and goes on otherwise. Where there is no Kubernetes nothing is asked.
func TestNoTokenNoGroup(t *testing.T) {
	t.Parallel()
	none := "--kubernetes-credentials=" + t.TempDir()
	d, err := guard(t, &registry{names: true}, "--discovery=dns", "--kubernetes-statefulsets=db,db-read", none)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.(census).Everybody(t.Context()); err == nil || !strings.Contains(err.Error(), "what claims there are cannot be asked") {
		t.Error(err)
	}
	if d, err = guard(t, &registry{names: true}, "--discovery=dns", none); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.(census).Everybody(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := guard(t, &registry{}, "--discovery=dns", "--kubernetes-statefulsets=other", none); err == nil || !strings.Contains(err.Error(), "begins with no pod of other") {
		t.Error(err)
	}
}
