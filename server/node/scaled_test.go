package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// TestMain lets the names of pods mean this machine, and starts the API of Kubernetes. Both last until the process ends:
// a connection that a test's nodes were opening may still ask for a name when the test has ended.
func TestMain(m *testing.M) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	go answerNames(conn)
	theAPI.start()
	os.Exit(m.Run())
}

// answerNames answers 127.0.0.1 for names in test, and that there are no others.
func answerNames(conn net.PacketConn) {
	for b := make([]byte, 1<<12); ; {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA && strings.HasSuffix(q.Name.String(), ".test.") {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// pods starts a group whose members are pods of the StatefulSet db.
func pods(t *testing.T, count int, settings ...string) []*member {
	t.Helper()
	var addrs []string
	for i := range count {
		addrs = append(addrs, fmt.Sprintf("db-%d.peers.test:%d", i, freePort(t)))
	}
	var all [][]string
	for i, addr := range addrs {
		all = append(all, append(append(args(t, t.TempDir(), addrs, addr), settings...), fmt.Sprintf("--report-host=db-%d.peers.test", i)))
	}
	members := startAll(t, all)
	leaderOf(t, members)
	return members
}

// TestScaled: the leader takes out whom the StatefulSet has no place for and who does not leave by
// itself; a claim is deleted when its member has left, and never before.
func TestScaled(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.claims = []string{"data-db-0", "data-db-1", "data-db-2", "data-db-5"}
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--kubernetes-delete-claims")...)
	lost := slices.IndexFunc(members, func(m *member) bool { return !m.Leads() })
	if lost != 2 { // the last pod is not to lead
		members[2].transfer(t, members[:2])
	}
	members[2].stop() // it stays a member
	k.mu.Lock()
	k.anew = "data-db-2" // as if its pod had come back meanwhile
	k.mu.Unlock()
	// Sets that are to have no pods, that end or are gone say nothing of members.
	for _, set := range []string{`{"spec": {"replicas": 0}}`, `{"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"replicas": 1}}`, ""} {
		k.say(set)
		asked := k.count()
		eventually(t, "the leader has looked twice", func() error {
			if k.count() < asked+2 {
				return errors.New("it has not")
			}
			return nil
		})
	}
	if did := k.has(); len(did) != 0 {
		t.Fatalf("a set without pods: %q", did)
	}
	k.say(`{"spec": {"replicas": 2}}`)
	eventually(t, "the member that is away is taken out, and its claim deleted", func() error {
		if len(k.has()) < 3 {
			return fmt.Errorf("%q", k.has())
		}
		return nil
	})
	// Whose data are in a claim that none of the members had nobody knows; nor in one that nobody has looked at.
	if did := k.has(); !slices.Equal(did, []string{"MemberRemoved", "not data-db-2", "data-db-2"}) {
		t.Errorf("%q", did)
	}
}

// TestScaledStays: a member that the others cannot do without stays one, and its claim stays.
func TestScaledStays(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.claims = []string{"data-db-0", "data-db-1", "data-db-2"}
	k.say(`{"spec": {"replicas": 3}}`)
	members := pods(t, 3, append(settings, "--kubernetes-delete-claims", "--shutdown-timeout=1s", "--stop-wait=1h")...)
	if members[0].Leads() {
		members[0].transfer(t, members[1:])
	}
	members[0].stop()
	k.say(`{"spec": {"replicas": 1}}`)
	stopped := make(chan struct{}, 2)
	for _, m := range members[1:] {
		go func() {
			m.AwaitSpared(t.Context())
			stopped <- struct{}{}
		}()
	}
	eventually(t, "all say why they stay", func() error {
		for reason, times := range map[string]int{"StopWaits": 2, "MemberStays": 1} {
			count := 0
			for _, did := range k.has() {
				if did == reason {
					count++
				}
			}
			if count < times {
				return fmt.Errorf("%q", k.has())
			}
		}
		return nil
	})
	if did := k.has(); len(stopped) > 0 || slices.Contains(did, "data-db-2") || slices.Contains(did, "data-db-1") {
		t.Fatalf("%q; %d were let go", did, len(stopped))
	}
	k.say(`{"spec": {"replicas": 3}}`) // so that the first may be started
	var err error
	if members[0], err = start(t, members[0].args); err != nil {
		t.Fatal(err)
	}
	<-stopped
	select {
	case <-stopped:
		t.Error("two of three were let go at once")
	case <-time.After(3 * time.Second): // it asks each second
	}
	// Who was started again a moment before others left, or after that, knows of them, too.
	k.say(`{"spec": {"replicas": 1}}`)
	k.setBusy(true)
	members[2].stop()
	members[1].stop()
	eventually(t, "they have left", func() error {
		if r := members[0].report(t); len(r.Members) != 1 {
			return fmt.Errorf("%+v", r.Members)
		}
		return nil
	})
	members[0].stop()
	if members[0], err = start(t, members[0].args); err != nil {
		t.Fatal(err)
	}
	k.setBusy(false)
	eventually(t, "the claims of those that have left are deleted", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !slices.Equal(k.claims, []string{"data-db-0"}) {
			return fmt.Errorf("%q", k.claims)
		}
		return nil
	})
}

// heard is a log that tells when somebody has written a text to it.
type heard struct {
	text string
	once sync.Once
	done chan struct{}
}

func (h *heard) Write(b []byte) (int, error) {
	if strings.Contains(string(b), h.text) {
		h.once.Do(func() { close(h.done) })
	}
	return len(b), nil
}

// TestDeletedByForce: a pod whose directory another process uses yet, as the one that was deleted by force, waits until
// that has ended; elsewhere it is an error at once.
func TestDeletedByForce(t *testing.T) {
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 1}}`)
	m := pods(t, 1, settings...)[0]
	elsewhere := slices.DeleteFunc(slices.Clone(m.args), func(arg string) bool { return strings.HasPrefix(arg, "--kubernetes") })
	if _, err := start(t, elsewhere); !errors.Is(err, file.ErrLocked) {
		t.Fatalf("a node whose directory is in use: %v", err)
	}
	cfg, err := config.Load(config.Sources{Args: m.args})
	if err != nil {
		t.Fatal(err)
	}
	said := &heard{text: "another process uses the directory", done: make(chan struct{})}
	next, opened := &member{args: m.args, t: t}, make(chan error, 1)
	t.Cleanup(next.stop)
	go func() {
		n, err := node.Open(cfg, slog.New(slog.NewTextHandler(said, nil)))
		if err == nil {
			next.Node = n
		}
		opened <- err
	}()
	select {
	case <-said.done:
	case err := <-opened:
		t.Fatalf("it does not wait: %v", err)
	}
	m.stop()
	if err := <-opened; err != nil {
		t.Errorf("the next pod: %v", err)
	}
}
