package main

import (
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/auth/authtest"
	"github.com/triremedb/trireme/server/node"
)

// TestPreflightConfiguration: the configuration of nodes elsewhere is checked with their limits on memory.
func TestPreflightConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "trireme.cnf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		text, args string
		code       int
		want       string
	}{
		{"innodb_buffer_pool_size = 50%", "", 0, "is right"},
		{"innodb_buffer_pool_size = 50%", "--container-memory=2Gi,none", 0, "is right"},
		{"innodb_buffer_pool_size = 1500M", "--container-memory=2Gi", 0, "is right"},
		{"innodb_buffer_pool_size = 1500M", "--container-memory=2Gi,1Gi", 2, "limited to 1G (the container's limit)"},
		{"innodb_buffer_pool_size = 1500M\nmemory_limit = 1G", "--container-memory=2Gi", 2, "limited to 1G (memory_limit)"},
		{"bogus_setting = 1", "", 2, file + ":1: there is no setting or variable bogus_setting"},
		{"ssl_cert = /no/such/cert\nssl_key = /no/such/key", "", 0, "is right"}, // of a directory that is not here
		{"ssl_cert = " + dir + "/cert\nssl_key = " + dir + "/key", "", 2, "no such file"},
		{"kubernetes_statefulset = db", "", 0, "is right"},
		{"", "--container-memory=lots", 2, "no quantity"},
	} {
		write(c.text)
		if code, out := quiet(t, append([]string{"preflight", "--config=" + file}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q %s: %d\n%s", c.text, c.args, code, out)
		}
	}
	if code, out := quiet(t, "preflight"); code != 2 || !strings.Contains(out, "nothing to check") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := quiet(t, "preflight", "--", "--max-connections=abc"); code != 2 || !strings.Contains(out, "max_connections") {
		t.Errorf("%d %s", code, out)
	}
}

// standing is a group as its members report it: three voters, the first of which leads.
type standing map[string]*node.Report

func whole(voters int) standing {
	all := standing{}
	var members []node.MemberReport
	for i := range voters {
		s := group.Status{ID: uint64(i + 1), Term: 5, Leader: 1, Writable: i == 0}
		members = append(members, node.MemberReport{ID: s.ID, Addr: fmt.Sprintf("db-%d.peers:17100", i), State: "ONLINE", Status: s})
	}
	for i, m := range members {
		all[fmt.Sprintf("db-%d.peers:18080", i)] = &node.Report{Version: "9", Status: m.Status, Members: append([]node.MemberReport(nil), members...),
			Protocol: node.Protocol(), LogFormat: node.LogFormat(), PeerTLS: "on"}
	}
	return all
}

func (s standing) leader() *node.Report { return s["db-0.peers:18080"] }

// away takes a member away.
func (s standing) away(i int) {
	delete(s, fmt.Sprintf("db-%d.peers:18080", i))
	for _, r := range s {
		r.Members[i].State, r.Members[i].Status.Error = "UNREACHABLE", "no connection"
	}
}

// named notes that what gives members their names is there.
func (s standing) named() { s["named"] = nil }

// authorities gives all members' certificates those that have signed and those that are trusted.
func (s standing) authorities(signed, trusted string) {
	for _, r := range s {
		r.PeerAuthorities = node.Authorities{Signed: strings.Fields(signed), Trusted: strings.Fields(trusted)}
	}
}

func TestPreflightGroup(t *testing.T) {
	for _, c := range []struct {
		name             string
		voters           int
		running, members int // running -1: the StatefulSet is gone
		change           func(s standing)
		want             string // a part of the refusal; empty: none
	}{
		{"whole", 3, 3, 3, func(standing) {}, ""},
		{"of one", 1, 1, 1, func(standing) {}, ""},
		{"grows", 3, 3, 5, func(standing) {}, ""},
		{"shrinks", 5, 5, 3, func(standing) {}, ""},
		{"it is not known how many run", 3, 0, 0, func(standing) {}, ""},
		{"away", 3, 3, 3, func(s standing) { s.away(2) }, "db-2 is away: lookup db-2.peers: no such host"},
		{"away, what runs is not known", 3, 0, 3, func(s standing) { s.away(2) }, "db-2, member 3, is UNREACHABLE: no connection"},
		{"away, and so is its set", 3, -1, 3, func(s standing) { s.away(2) }, ""},
		{"most are away, and so is the set", 3, -1, 3, func(s standing) { s.away(1); s.away(2); s.leader().Status.Writable = false }, ""},
		{"one is away, as its set, and another is behind", 3, -1, 3, func(s standing) { s.away(2); s.leader().Members[1].Status.Time = time.Minute }, "db-1, member 2, is 1m0s behind"},
		{"one is away, as its set, and another starts", 3, -1, 3, func(s standing) { s.away(2); *s["db-1.peers:18080"] = node.Report{Starting: true} }, "db-1 is starting"},
		{"fewer are wanted than there are, and all come back", 3, 1, 3, func(s standing) { s.away(1); s.away(2); s.leader().Status.Writable = false }, ""},
		{"fewer are wanted, and they lead", 3, 2, 3, func(s standing) { s.away(2) }, ""},
		{"fewer are wanted, and a majority comes back", 5, 1, 3, func(s standing) {
			for i := 1; i < 5; i++ {
				s.away(i)
			}
			s.leader().Status.Writable = false
		}, ""},
		{"fewer are wanted, and so few come back", 7, 1, 3, func(s standing) {
			for i := 1; i < 7; i++ {
				s.away(i)
			}
			s.leader().Status.Writable = false
		}, "no member takes writes: of 7 voting members 1 have pods, which are no majority. Have as many pods as members: kubectl scale statefulset/db --replicas=7"},
		{"fewer are wanted, and no more come", 3, 1, 1, func(s standing) { s.away(1); s.away(2); s.leader().Status.Writable = false }, "kubectl scale statefulset/db --replicas=3"},
		{"fewer are wanted, and another is away", 3, 2, 3, func(s standing) { s.away(1); s.away(2); s.leader().Status.Writable = false }, "db-1 is away"},
		{"fewer are wanted, and they lead no more", 5, 3, 5, func(s standing) { s.away(3); s.away(4); s.leader().Status.Writable = false }, "no member takes writes\n"},
		{"away, as its set, and it is not to come back", 5, -1, 3, func(s standing) { s.away(4) }, "db-4, member 5, is UNREACHABLE"},
		{"most are away, as their set, and so few come back", 7, -1, 3, func(s standing) {
			for i := 1; i < 7; i++ {
				s.away(i)
			}
			s.leader().Status.Writable = false
		}, "no member takes writes"},
		{"shrinks while one is away", 3, 3, 1, func(s standing) { s.away(1) }, "Repair it before 2 of 3 members are taken away"},
		{"nobody", 3, 3, 3, func(s standing) { clear(s) }, "no member answers"},
		{"nobody has a name", 3, 0, 3, func(s standing) { clear(s) }, ""},
		{"nobody ever ran", 3, 3, 3, func(s standing) { clear(s); s.named() }, ""},
		{"who runs has no data", 3, 3, 3, func(s standing) {
			clear(s)
			s["db-2.peers:18080"] = &node.Report{Starting: true, Empty: true}
		}, ""},
		{"one of two that run has data", 3, 3, 3, func(s standing) {
			clear(s)
			s["db-1.peers:18080"], s["db-2.peers:18080"] = &node.Report{Starting: true}, &node.Report{Starting: true, Empty: true}
		}, "db-1 is starting"},
		{"an authority that they do not trust", 3, 3, 3, func(s standing) { s.authorities("a", "a") }, "db-1 does not trust the authority of the new certificate, b, but a"},
		{"an authority that is trusted on one side", 3, 3, 3, func(s standing) { s.authorities("a", "a b") }, "db-0 has a certificate of the authority a, and the new ca.crt has b, c"},
		{"a bundle on their side, and the new certificate", 3, 3, 3, func(s standing) { s.authorities("b", "a b") }, ""},
		{"the same authority", 3, 3, 3, func(s standing) { s.authorities("b", "b") }, ""},
		{"older programs say nothing of authorities", 3, 3, 3, func(s standing) { s.authorities("", "") }, ""},
		{"another authority, of one", 1, 1, 1, func(s standing) { s.authorities("a", "a") }, ""},
		{"nobody leads", 3, 3, 3, func(s standing) { s.leader().Status.Writable = false }, "no member takes writes"},
		{"starts", 3, 3, 3, func(s standing) { *s["db-1.peers:18080"] = node.Report{Starting: true} }, "db-1 is starting"},
		{"is behind", 3, 3, 3, func(s standing) { s.leader().Members[1].Status.Time = time.Minute }, "db-1, member 2, is 1m0s behind"},
		{"is behind, not far", 3, 3, 3, func(s standing) { s.leader().Members[1].Status.Time = time.Second }, ""},
		{"knows nothing", 3, 3, 3, func(s standing) { s.leader().Members[1].Status.Time = -1 }, "does not know yet"},
		{"reads fail", 3, 3, 3, func(s standing) { s.leader().Members[2].Status.ReadsFail = true }, "db-2, member 3, has a disk that fails to give back its data"},
		{"a full disk", 3, 3, 3, func(s standing) { s.leader().Members[2].Status.DiskFull = true }, "db-2, member 3, has a full disk"},
		{"a full disk that grows", 3, 3, 3, func(s standing) {
			s["grows"] = nil
			s.leader().Members[2].Status.DiskFull, s.leader().Members[2].Status.Time = true, time.Hour
		}, ""},
		{"a full disk that grows and does not answer", 3, 3, 3, func(s standing) {
			s["grows"] = nil
			s.leader().Members[2].Status.DiskFull, s.leader().Members[2].Status.DiskStalled = true, time.Minute
		}, "db-2, member 3, has a full disk"},
		{"disks grow, and one member is behind", 3, 3, 3, func(s standing) {
			s["grows"] = nil
			s.leader().Members[1].Status.Time = time.Minute
		}, "db-1, member 2, is 1m0s behind"},
		{"gets its data", 3, 3, 3, func(s standing) { s.leader().Members[2].State = "RECOVERING" }, "is RECOVERING"},
		{"joins", 3, 3, 3, func(s standing) { s.leader().Members[2].Learner = true }, "of 3 members 2 vote"},
		{"a replica for reading is away", 4, 3, 3, func(s standing) { s.away(3); s.leader().Members[3].Learner = true }, ""},
		{"is gone for good", 4, 3, 3, func(s standing) { s.away(3) }, "trireme admin members remove"},
		{"a newer log", 3, 3, 3, func(s standing) { s.leader().LogFormat.Written = node.LogFormat().Max + 1 }, "its log has version"},
		{"newer programs, an old log", 3, 3, 3, func(s standing) { s.leader().LogFormat.Max += 5 }, ""},
		{"another protocol", 3, 3, 3, func(s standing) { s.leader().Protocol = node.Formats{Min: 90, Max: 91} }, "it speaks versions 90 to 91"},
		{"of another name", 3, 3, 3, func(s standing) { s["db-1.peers:18080"].Cluster = "other" }, `db-1 is of the cluster "other", and cluster_name is "db"`},
		{"peers would talk otherwise", 3, 3, 3, func(s standing) { s["db-1.peers:18080"].PeerTLS = "off" }, "db-1 has TLS with its peers off, and they would have it on"},
		{"how peers talk is to change", 3, 3, 3, func(s standing) {
			for _, r := range s {
				r.PeerTLS = "off"
			}
		}, "--set hibernate=true"},
		{"how peers talk, and there are none", 1, 1, 1, func(s standing) { s.leader().PeerTLS = "off" }, ""},
		{"an old program that tells nothing", 3, 3, 3, func(s standing) { s.leader().Protocol, s.leader().LogFormat = node.Formats{}, node.Formats{} }, ""},
	} {
		s := whole(c.voters)
		c.change(s)
		now := time.Now()
		var said []string
		_, named := s["named"]
		_, grows := s["grows"]
		delete(s, "named")
		delete(s, "grows")
		g := groupCheck{cluster: "db", peerTLS: "on", named: named, grows: grows, authorities: node.Authorities{Trusted: []string{"b", "c"}, Signed: []string{"b"}}, running: max(0, c.running), makes: c.running < 0, members: c.members, maxLag: 10 * time.Second, wait: 30 * time.Second, otherwise: "or else",
			now: func() time.Time { return now }, sleep: func(d time.Duration) { now = now.Add(d) }, say: func(text string) { said = append(said, text) },
			ask: func(addr string) (node.Report, error) {
				if r := s[addr]; r != nil {
					return *r, nil
				}
				host, _, _ := strings.Cut(addr, ":")
				return node.Report{}, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
			}}
		for i := range max(c.running, c.members, c.voters, 3) {
			g.addrs = append(g.addrs, fmt.Sprintf("db-%d.peers:18080", i))
		}
		out := outputOf(t, func() {
			if err := g.run(); err != nil && !errors.Is(err, errFailed) {
				t.Errorf("%s: %v", c.name, err)
			} else if (err != nil) != (c.want != "") {
				t.Errorf("%s: %v\n%v", c.name, err, said)
			}
		})
		if !strings.Contains(out, c.want) || c.want != "" && !strings.Contains(out, "or else") {
			t.Errorf("%s:\n%s", c.name, out)
		}
		if len(said) > 2 {
			t.Errorf("%s: the same again and again: %q", c.name, said)
		}
	}
}

// TestPreflightPeerFiles: the new certificates are compared where they are not those of a configuration.
func TestPreflightPeerFiles(t *testing.T) {
	ca, dir := authtest.NewAuthority(t, "new"), t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": ca.Issue(pkix.Name{CommonName: "member"}, nil).Cert, "ca.crt": ca.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := node.AuthoritiesOf(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "ca.crt"))
	r := *whole(2).leader()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(r) }))
	defer s.Close()
	for _, c := range []struct {
		has  node.Authorities
		code int
		says string
	}{
		{own, 0, "the group is whole"},
		{node.Authorities{Trusted: []string{"old"}, Signed: []string{"old"}}, 1, "does not trust the authority of the new certificate, " + own.Signed[0]},
	} {
		r.PeerAuthorities = c.has
		if code, out := quiet(t, "preflight", "--http="+s.Listener.Addr().String(), "--peer-files="+dir, "--wait=0s"); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%d\n%s", code, out)
		}
	}
}

// A member that comes back ends the wait.
func TestPreflightWaits(t *testing.T) {
	s := whole(3)
	back := *s["db-2.peers:18080"]
	s.away(2)
	now := time.Now()
	began := now
	g := groupCheck{addrs: []string{"db-0.peers:18080", "db-1.peers:18080", "db-2.peers:18080"}, running: 3, maxLag: time.Second, wait: time.Minute,
		now: func() time.Time { return now }, say: func(string) {},
		sleep: func(d time.Duration) {
			if now = now.Add(d); now.Sub(began) > 20*time.Second {
				s = whole(3)
				s["db-2.peers:18080"] = &back
			}
		},
		ask: func(addr string) (node.Report, error) {
			if r := s[addr]; r != nil {
				return *r, nil
			}
			return node.Report{}, errors.New("no route")
		}}
	if err := g.run(); err != nil || now.Sub(began) < 20*time.Second || now.Sub(began) > 25*time.Second {
		t.Errorf("%v after %v", err, now.Sub(began))
	}
}

// outputOf is what fn writes to standard error.
func outputOf(t *testing.T, fn func()) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = f
	defer func() { os.Stderr = stderr; _ = f.Close() }()
	fn()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
