package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// leads has a member lead the group.
func (m *member) leads(t *testing.T, members []*member) {
	t.Helper()
	to := m.report(t).Member
	eventually(t, "it leads", func() error {
		if m.Leads() {
			return nil
		}
		for _, o := range members {
			if o != m && o.Leads() {
				_, _ = adminOf(t, o).Transfer(signedIn("root", "secret"), &triremev1.AdminTransferRequest{To: to})
			}
		}
		return errors.New("another leads")
	})
}

// end stops a member whose group cannot go on, soon.
func (m *member) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = m.Stop(ctx)
	m.Node = nil
}

// alone waits until a member is a group's only one, and takes writes.
func (m *member) alone(t *testing.T) {
	t.Helper()
	eventually(t, "it is alone", func() error {
		if r := m.report(t); len(r.Members) != 1 || !m.Leads() {
			return fmt.Errorf("%+v", r.Members)
		}
		return nil
	})
}

// TestLeavesBeforeItStops: a member that is let go because it leaves has left when it stops, whatever
// comes then: two voters become one.
func TestLeavesBeforeItStops(t *testing.T) {
	for _, leader := range []int{0, 1} {
		k, settings := newKubernetes(t)
		k.say(`{"spec": {"replicas": 2}}`)
		members := pods(t, 2, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
		members[leader].leads(t, members)
		k.say(`{"spec": {"replicas": 1}}`)
		members[1].AwaitSpared(t.Context())
		k.shutOut(true)
		members[1].stop()
		members[0].alone(t)
		members[0].end(t)
	}
}

// TestLeavesLater: Kubernetes does not answer when a member is to be stopped. Of two voters it would take
// the other one with it if it stopped; and what was known stays known.
func TestLeavesLater(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 1}}`)
	members := pods(t, 2, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
	k.shutOut(true)
	spared := make(chan struct{})
	go func() {
		members[1].AwaitSpared(t.Context())
		close(spared)
	}()
	eventually(t, "Kubernetes was asked often", func() error {
		if n := k.refusals(); n < 8 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	select {
	case <-spared:
		t.Fatal("it stops, and leaves the other one without a majority")
	default:
	}
	k.shutOut(false)
	<-spared
	k.shutOut(true)
	members[1].stop()
	members[0].alone(t)
	members[0].end(t)
}

// TestAllStop: members that are stopped together and have lost their rights, as when a namespace ends, do not
// wait for each other.
func TestAllStop(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 2}}`)
	members := pods(t, 2, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
	k.shutOut(true)
	all := make(chan struct{}, len(members))
	for _, m := range members {
		go func() {
			m.AwaitSpared(t.Context())
			all <- struct{}{}
		}()
	}
	for range members {
		<-all
	}
}

// TestNamespaceEnds: members whose namespace is being deleted, which have their rights still, do not wait for each other: nobody comes back.
func TestNamespaceEnds(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
	k.mu.Lock()
	k.ends = true
	k.mu.Unlock()
	members[0].end(t)
	all := make(chan struct{}, 2)
	for _, m := range members[1:] {
		go func() {
			m.AwaitSpared(t.Context())
			all <- struct{}{}
		}()
	}
	for range 2 {
		<-all
	}
}

// TestLeaderLeavesWhileOneIsAway: a leader that leaves hands over to a member that is there, while it serves, and has left
// when it stops; the next one is not let go while the rest is no majority without it.
func TestLeaderLeavesWhileOneIsAway(t *testing.T) {
	for _, gone := range []int{0, 1} {
		k, settings := newKubernetes(t)
		k.say(`{"spec": {"replicas": 4}}`)
		members := pods(t, 4, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
		members[3].leads(t, members)
		k.say(`{"spec": {"replicas": 0}}`) // so that it stays a member
		members[gone].stop()
		k.say(`{"spec": {"replicas": 3}}`)
		members[3].AwaitSpared(t.Context())
		members[3].stop()
		rest := slices.Delete(slices.Clone(members[:3]), gone, gone+1)
		leader, _ := leaderOf(t, rest)
		if r := leader.report(t); len(r.Members) != 3 {
			t.Errorf("db-%d away: db-3 has stopped, and these are members: %+v", gone, r.Members)
		}
		k.mu.Lock()
		if slices.ContainsFunc(k.told, func(m string) bool { return strings.Contains(m, "cannot be handed over") }) {
			t.Errorf("db-%d away: the leader did not find another one: %q", gone, k.told)
		}
		k.mu.Unlock()
		k.say("")
		for _, m := range rest {
			m.end(t)
		}
	}
}

// TestLetGoAndNeeded: a member was let go because it leaves, and while statements of its clients end another goes away.
// It stays a voter, which the group needs, until it can leave.
func TestLetGoAndNeeded(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--shutdown-timeout=1h", "--stop-wait=1h")...)
	members[1].leads(t, members)
	db, reads := open(t, members[1].MainAddr()), open(t, members[2].ReadAddr())
	eventually(t, "log in", reads.Ping)
	execAll(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT)")
	var executed string
	if err := db.QueryRow("SELECT @@gtid_executed").Scan(&executed); err != nil {
		t.Fatal(err)
	}
	uuid, _, _ := strings.Cut(executed, ":")
	last, err := strconv.Atoi(executed[strings.LastIndexAny(executed, "-:")+1:])
	if err != nil {
		t.Fatalf("%q: %v", executed, err)
	}
	read := make(chan error, 1)
	go func() { // it lasts until there are many more transactions
		_, err := reads.Exec(fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET('%s:1-%d')", uuid, last+50))
		read <- err
	}()
	eventually(t, "a statement lasts", func() error {
		var n int
		if err := reads.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT WAIT_FOR%'").Scan(&n); err != nil || n == 1 {
			return err
		}
		return errors.New("it does not")
	})
	k.say(`{"spec": {"replicas": 2}}`)
	spared := make(chan struct{})
	go func() {
		members[2].AwaitSpared(t.Context())
		close(spared)
	}()
	eventually(t, "it was let go", func() error {
		if err := members[2].readyz(); err == nil || !strings.Contains(err.Error(), "drained") {
			return fmt.Errorf("readiness: %v", err)
		}
		return nil
	})
	members[0].stop()
	for err := errors.New(""); err != nil; {
		if _, e := db.Exec("INSERT INTO d.t VALUES ()"); e != nil {
			t.Fatal(e)
		}
		select {
		case err = <-read:
			if err != nil {
				t.Fatalf("a statement was cut off: %v", err)
			}
		default:
		}
	}
	eventually(t, "it says that it waits", func() error {
		if !slices.Contains(k.has(), "StopWaits") {
			return fmt.Errorf("%q", k.has())
		}
		return nil
	})
	select {
	case <-spared:
		t.Fatal("it stops, and leaves the rest without a majority")
	default:
	}
	if members[0], err = start(t, members[0].args); err != nil {
		t.Fatal(err)
	}
	<-spared
	members[2].stop()
	leader, _ := leaderOf(t, members[:2])
	if r := leader.report(t); len(r.Members) != 2 {
		t.Errorf("members: %+v", r.Members)
	}
}

// TestStopKnowsWhatWasSaid: a member that could not leave within stop_wait tries once more when it stops, also if
// Kubernetes does not say again that it has no place.
func TestStopKnowsWhatWasSaid(t *testing.T) {
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--shutdown-timeout=1s", "--stop-wait=2s")...)
	members[1].leads(t, members)
	members[0].stop()
	k.say(`{"spec": {"replicas": 2}}`)
	members[2].AwaitSpared(t.Context())
	k.shutOut(true)
	var err error
	if members[0], err = start(t, members[0].args); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first is back", members[0].readyz)
	members[2].stop()
	if r := members[1].report(t); len(r.Members) != 2 {
		t.Errorf("members: %+v", r.Members)
	}
}

// TestLeaderStaysWithoutPlace: a leader that has no place goes on leading while nobody with a place is there, and does not
// try to hand over to one that is not.
func TestLeaderStaysWithoutPlace(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--shutdown-timeout=1s", "--stop-wait=1h")...)
	if members[0].Leads() {
		members[0].transfer(t, members[1:])
	}
	k.say("")
	members[0].stop()
	k.say(`{"spec": {"replicas": 1}}`)
	leader, _ := leaderOf(t, members[1:])
	self := fmt.Sprintf("member %d at ", leader.report(t).Member)
	eventually(t, "it says why it leads on", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !slices.ContainsFunc(k.told, func(m string) bool {
			return strings.HasPrefix(m, self) && strings.Contains(m, "cannot take over: it does not answer")
		}) {
			return fmt.Errorf("%q", k.told)
		}
		return nil
	})
	k.say("")
	for _, m := range members[1:] {
		m.end(t)
	}
}
