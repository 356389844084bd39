package node_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// said waits for an event, and returns how many there are of it and what the last one says.
func (k *kubernetes) said(t *testing.T, reason string) (count int, text string) {
	t.Helper()
	eventually(t, "the event "+reason, func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		count = 0
		told := 0
		for _, r := range k.done { // which has what was deleted, too
			if strings.Contains(r, "data-") {
				continue
			}
			if r == reason {
				count, text = count+1, k.told[told]
			}
			told++
		}
		if count == 0 {
			return fmt.Errorf("there are %q", k.done)
		}
		return nil
	})
	return count, text
}

// TestMajorityIsTold: a member that hears no majority says so by an event, once, with those that do not answer, and
// says when there is one again.
func TestMajorityIsTold(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 0}}`) // so that nobody leaves
	members := pods(t, 3, settings...)
	leaderOf(t, members)
	members[0].stop()
	members[2].stop()
	_, text := k.said(t, "NoMajority")
	for _, part := range []string{"1 of 3 voters answer", "not those at db-0.peers.test", "db-2.peers.test", "Writes wait", "If their pods were scaled away, scale up", "When the majority is lost"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q: %s", part, text)
		}
	}
	time.Sleep(5 * time.Second)
	if count, _ := k.said(t, "NoMajority"); count != 1 || slices.Contains(k.has(), "MajorityBack") {
		t.Errorf("%q", k.has())
	}
	members[1].stop()
	var err error
	if members[1], err = start(t, members[1].args); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says that it serves no reads, since it was started without a majority", func() error {
		if count, text := k.said(t, "NoMajority"); count != 2 || !strings.Contains(text, "the Services send no reads here either") {
			return fmt.Errorf("%d events, the last: %s", count, text)
		}
		return nil
	})
	if members[2], err = start(t, members[2].args); err != nil {
		t.Fatal(err)
	}
	if _, text := k.said(t, "MajorityBack"); !strings.Contains(text, "db-1.peers.test") {
		t.Error(text)
	}
}

// TestOtherGroupIsTold: two groups are made of one. The leader of each says that the other one answers, by an event and a metric.
func TestOtherGroupIsTold(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 0}}`)
	members := pods(t, 2, settings...)
	leaderOf(t, members)
	for _, m := range members {
		m.end(t)
	}
	for i, m := range members {
		cfg, err := config.Load(config.Sources{Args: m.args})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(node.Regroup).Run(cfg); err != nil {
			t.Fatal(err)
		}
		if members[i], err = start(t, m.args); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both lead", func() error {
		if !members[0].Leads() || !members[1].Leads() {
			return errors.New("they do not")
		}
		return nil
	})
	_, text := k.said(t, "OtherGroup")
	if !strings.Contains(text, "another group answers at db-") || !strings.Contains(text, "When the majority is lost") {
		t.Error(text)
	}
	for _, m := range members {
		eventually(t, "its metric says so", func() error {
			if _, text := m.get("metrics"); !strings.Contains(text, "\ntrireme_group_other_group 1\n") {
				return errors.New("it does not")
			}
			return nil
		})
	}
	members[1].stop()
	k.said(t, "OtherGroupGone")
	if _, text := members[0].get("metrics"); !strings.Contains(text, "\ntrireme_group_other_group 0\n") {
		t.Error("its metric says that there is another group")
	}
}

// TestVotersOfAnotherGroup: a read replica whose voters have become another group's says that, and not what is to be done where a majority is away.
func TestVotersOfAnotherGroup(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.sayBoth(`{"spec": {"replicas": 0}}`, `{"spec": {"replicas": 1}}`)
	settings = append(settings, "--kubernetes-statefulsets=db,db-read")
	voter := pods(t, 1, settings...)[0]
	addr := voter.report(t).Members[0].Addr
	a := slices.Concat(args(t, t.TempDir(), []string{addr}, fmt.Sprintf("db-read-0.peers.test:%d", freePort(t))), settings,
		[]string{"--replica", "--kubernetes-statefulset=db-read", "--report-host=db-read-0.peers.test"})
	replica, err := start(t, a)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are members", func() error {
		if r := replica.report(t); len(r.Members) != 2 || r.Status.Provisioning {
			return fmt.Errorf("%+v", r.Members)
		}
		return nil
	})
	replica.stop()
	voter.stop()
	voter.args[slices.IndexFunc(voter.args, func(s string) bool { return strings.HasPrefix(s, "--datadir=") })] = "--datadir=" + t.TempDir()
	if voter, err = start(t, voter.args); err != nil {
		t.Fatal(err)
	}
	leaderOf(t, []*member{voter})
	if replica, err = start(t, replica.args); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, text := k.said(t, "OtherGroup"); !strings.Contains(text, "hears no majority of its group, and another group answers at "+addr) || !strings.Contains(text, "regroup nothing") {
		t.Error(text)
	}
	if _, text := replica.get("metrics"); !strings.Contains(text, "\ntrireme_group_other_group 1\n") {
		t.Error("its metric does not say so")
	}
	time.Sleep(time.Until(began.Add(26 * time.Second))) // a member that lacks its majority says so after 20
	if slices.Contains(k.has(), "NoMajority") {
		t.Errorf("%q", k.has())
	}
}

// TestJoinWaitsIsTold: a pod that waits for the others says so.
func TestJoinWaitsIsTold(t *testing.T) {
	t.Cleanup(node.SetJoinPatience(time.Second))
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 2}}`)
	var addrs []string
	for i := range 2 {
		addrs = append(addrs, fmt.Sprintf("db-%d.peers.test:%d", i, freePort(t)))
	}
	opened := make(chan error, 1)
	first := &member{args: slices.Concat(args(t, t.TempDir(), addrs, addrs[0]), settings, []string{"--report-host=db-0.peers.test"}), t: t}
	cfg, err := config.Load(config.Sources{Args: first.args})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		var err error
		first.Node, err = node.Open(cfg, slog.New(slog.DiscardHandler))
		opened <- err
	}()
	if _, text := k.said(t, "JoinWaits"); !strings.Contains(text, addrs[0]) || !strings.Contains(text, "its log says which") {
		t.Error(text)
	}
	second, err := start(t, slices.Concat(args(t, t.TempDir(), addrs, addrs[1]), settings, []string{"--report-host=db-1.peers.test"}))
	if err != nil {
		t.Fatal(err)
	}
	defer second.end(t)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	defer first.end(t)
	k.said(t, "Joined")
}
