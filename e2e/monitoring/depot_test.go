//go:build monitoring

package monitoring

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
	"github.com/triremedb/trireme/server/auth/authtest"
)

// depotParts are what a test can change about the group depot.
type depotParts struct {
	authority *authtest.Authority
	certs     string // directory of certificates
	relays    []*relay
	syncs     []*syncs
}

// settings are those of depot's nodes; their certificates are made for it.
func (d *depotParts) settings(t *testing.T) []string {
	d.authority, d.certs = authtest.NewAuthority(t, "depot"), t.TempDir()
	ca := authtest.File(t, filepath.Join(d.certs, "ca.pem"), d.authority.PEM())
	d.issue(t, "peers", goodFor)
	d.issue(t, "clients", goodFor)
	file := func(name string) string { return filepath.Join(d.certs, name) }
	return []string{"--ssl-cert=" + file("clients.pem"), "--ssl-key=" + file("clients-key.pem"),
		"--peer-tls-cert=" + file("peers.pem"), "--peer-tls-key=" + file("peers-key.pem"), "--peer-tls-ca=" + ca, "--peer-tls-server-name=localhost"}
}

// goodFor is how long a certificate is valid that is no reason to worry.
const goodFor = 90 * 24 * time.Hour

// issue gives the nodes a certificate.
func (d *depotParts) issue(t *testing.T, use string, valid time.Duration) {
	t.Helper()
	c := d.authority.Issue(pkix.Name{}, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(valid) })
	c.Write(t, d.certs, use)
}

// prepare puts relays between the members, and supervises their syncs.
func (d *depotParts) prepare(t *testing.T) func(*servers.Options) func(*servers.Group) {
	return func(o *servers.Options) func(*servers.Group) {
		o.Peer = func(_, port int) string {
			r := newRelay(t)
			r.serve(fmt.Sprintf("127.0.0.1:%d", port))
			d.relays = append(d.relays, r)
			return r.l.Addr().String()
		}
		return func(g *servers.Group) {
			for _, n := range g.Nodes {
				d.syncs = append(d.syncs, superviseSyncs(t, n))
			}
		}
	}
}

func (d *depotParts) of(n *servers.Node) *syncs { return d.syncs[n.Number-1] }

// instances are the nodes that alerts of a name are about.
func instances(all []alert, name string) (list []string) {
	for _, a := range all {
		if a.Labels["alertname"] == name {
			list = append(list, a.Labels["instance"])
		}
	}
	return list
}

// about fails the test if the alerts of a name are about others than these nodes.
func about(t *testing.T, all []alert, name string, nodes ...*servers.Node) {
	t.Helper()
	var want []string
	for _, n := range nodes {
		want = append(want, address(n))
	}
	if got := instances(all, name); !sameSet(got, want) {
		t.Errorf("%s is about %v, not %v", name, got, want)
	}
}

// sameSet reports whether two lists have the same elements.
func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// noBackup: backups are expected, every 30 seconds as one of the nodes is told, and nobody makes any.
func noBackup(t *testing.T, w *watched) {
	_, others := w.leader()
	restart := func(settings ...string) {
		others[0].Kill()
		others[0].Settings = settings
		w.start(others[0])
	}
	restart("--backup-max-age=30s")
	if all := w.only("TriremeBackupTooOld"); !strings.HasSuffix(all[0].Annotations["description"], "It may be 30s old (backup_max_age).") {
		t.Errorf("%v", all)
	}
	w.eventually("a backup", func() error { return w.backup(t.TempDir()) })
	w.only()
	restart()
}

// slow: the disks of both followers are slow, the leader's becomes full by and by, and certificates end
// soon. None of that disturbs the others. What fills the disk is a file beside the database's; the slow
// syncs are waits in the system call (see syncs); the certificates are such as the rules are for, in days.
func slow(t *testing.T, w *watched) {
	leader, others := w.leader()
	for _, n := range others {
		w.of(n).slower(1500 * time.Millisecond)
	}
	w.issue(t, "clients", 10*24*time.Hour)
	w.issue(t, "peers", 12*time.Hour)
	f := w.filler(leader)
	defer f.free()
	f.leave(t, 95<<20)
	var filling sync.WaitGroup
	end := make(chan struct{})
	filling.Go(func() {
		for left := uint64(95 << 20); left > 40<<20; left -= 512 << 10 {
			f.leave(t, left)
			select {
			case <-end:
				return
			case <-time.After(time.Second):
			}
		}
	})
	defer filling.Wait() // before f.free: it takes space in the file
	defer close(end)
	all := w.only("TriremeCommitsSlow", "TriremeLogSyncSlow", "TriremeDiskFillsSoon", "TriremeCertificateExpires", "TriremeCertificateExpired")
	about(t, all, "TriremeLogSyncSlow", others...)
	about(t, all, "TriremeDiskFillsSoon", leader)
	w.eventually("the alerts of both certificates of all nodes", func() error {
		_, all, err := w.firing()
		uses := map[string]int{}
		for _, a := range all {
			if use := a.Labels["use"]; use != "" {
				uses[a.Labels["alertname"]+" "+use]++
			}
		}
		if text := fmt.Sprint(uses); err == nil && text != "map[TriremeCertificateExpired peers:3 TriremeCertificateExpires clients:3 TriremeCertificateExpires peers:3]" {
			err = errors.New(text)
		}
		return err
	})
	for _, n := range others {
		w.of(n).slower(0)
	}
	w.issue(t, "clients", goodFor)
	w.issue(t, "peers", goodFor)
}

// leaderless: the members do not reach each other, and Prometheus reaches all.
func leaderless(_ *testing.T, w *watched) {
	for _, r := range w.relays {
		r.pull()
	}
	w.only("TriremeNoLeader")
	for _, r := range w.relays {
		r.plug()
	}
	w.start()
}

// undelivered: what the leader sends to the only follower that is there is lost, but for heartbeats. It cannot do without that one, and leads on.
func undelivered(t *testing.T, w *watched) {
	leader, others := w.leader()
	gone, deaf := others[0], w.relays[others[1].Number-1]
	gone.Kill()
	deaf.swallow(true)
	if a := w.fires("TriremeEntriesUndelivered"); a.Labels["instance"] != address(leader) {
		t.Errorf("%v", a)
	}
	deaf.swallow(false)
	w.start(gone)
}

// stuck: a follower's disk hangs, half a minute at a time, so that it falls behind, and then so that a start
// does not end. Meanwhile it answers Prometheus and the leader.
func stuck(t *testing.T, w *watched) {
	_, others := w.leader()
	still := others[0]
	w.of(still).slower(30 * time.Second)
	if a := w.fires("TriremeDiskStalled"); a.Labels["instance"] != address(still) {
		t.Errorf("%v", a)
	}
	if a := w.fires("TriremeReplicaLags"); !strings.HasSuffix(a.Labels["address"], w.relays[still.Number-1].l.Addr().String()) {
		t.Errorf("%v", a)
	}
	still.Kill()
	if err := still.Start(); err != nil {
		t.Fatal(err)
	}
	if a := w.fires("TriremeNodeNotReady"); a.Labels["instance"] != address(still) {
		t.Errorf("%v", a)
	}
	w.of(still).slower(0)
	still.Kill()
	w.start(still)
}

// unread: the disk of a follower gives errors for reads of a table that does not fit into memory.
func unread(t *testing.T, w *watched) {
	leader, others := w.leader()
	bad := others[0]
	db := servers.Open(t, leader.DSN("", limits))
	w.run(db, "CREATE TABLE bank.cold (id INT PRIMARY KEY, b VARBINARY(60000) NOT NULL)",
		"INSERT INTO bank.cold SELECT id, REPEAT('x', 50000) FROM bank.account", "INSERT INTO bank.cold SELECT id + 1000, b FROM bank.cold")
	if err := bad.Stop(patience); err != nil { // so that all of it is in its file
		t.Fatal(err)
	}
	table := filepath.Base(largestTable(t, bad.Dir))
	w.start(bad)
	w.of(bad).failReads(table)
	reads := servers.Open(t, bad.ReadDSN("bank", limits))
	var reading sync.WaitGroup
	end := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
			}
			var n int
			if err := reads.QueryRow("SELECT SUM(CRC32(b)) FROM cold").Scan(&n); err == nil {
				t.Errorf("a table is read of which the disk gives nothing: %d", n)
				return
			}
		}
	})
	about(t, w.only("TriremeDiskReadsFail"), "TriremeDiskReadsFail", bad)
	close(end)
	reading.Wait() // the disk is well from then on
	w.of(bad).failReads("")
	w.run(db, "DROP TABLE bank.cold")
}

// broken: the disk of a follower gives errors: syncs of its tablespaces fail with EIO. Its process ends, and is
// started again as by a supervisor.
func broken(t *testing.T, w *watched) {
	_, others := w.leader()
	bad := others[0]
	w.of(bad).fail("/spaces/")
	p := bad.Process()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	w.of(bad).fail("")
	w.start(bad)
	all := w.only("TriremeNodeBroken")
	about(t, all, "TriremeNodeBroken", bad)
	if r := all[0].Labels["reason"]; r != "its storage engine has halted" {
		t.Errorf("the reason is said to be that %s", r)
	}
}

// rotten: the disk of a follower gives back other bytes than were written, in a table. Its process ends whenever it
// applies a change there, and is started again as by a supervisor, until it is rebuilt.
func rotten(t *testing.T, w *watched) {
	_, others := w.leader()
	bad := others[0]
	if err := bad.Stop(patience); err != nil {
		t.Fatal(err)
	}
	rot(t, bad.Dir)
	w.eventually("the alert of a damaged page", func() error {
		if err := bad.StartAgain(); err != nil {
			return err
		}
		_, all, err := w.firing()
		for _, a := range all {
			if a.Labels["alertname"] == "TriremeNodeBroken" && a.Labels["reason"] == "a page of its data is damaged" && a.Labels["instance"] == address(bad) {
				w.fired["TriremeNodeBroken"] = true
				return nil
			}
		}
		return fmt.Errorf("%v fire (%w)", all, err)
	})
	bad.Kill()
	if err := os.RemoveAll(bad.Dir); err != nil {
		t.Fatal(err)
	}
	w.start(bad)
}

// largestTable is the file of the largest table in a directory.
func largestTable(t *testing.T, dir string) (largest string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "data.*", "spaces", "0000*.trd"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables in %s (%v)", dir, err)
	}
	var size int64
	for _, name := range tables {
		if filepath.Base(name) == "00000000.trd" {
			continue // the system's
		}
		if info, err := os.Stat(name); err == nil && info.Size() > size {
			size, largest = info.Size(), name
		}
	}
	return largest
}

// rot changes a byte in each page but the first of the largest table in a directory, and takes the copies away
// of which a page is healed that was written in part.
func rot(t *testing.T, dir string) {
	t.Helper()
	largest := largestTable(t, dir)
	text := []byte(read(t, largest))
	const pageSize = 16 << 10
	for i := pageSize + 100; i < len(text); i += pageSize {
		text[i] ^= 4
	}
	if err := os.WriteFile(largest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(filepath.Dir(largest), "..", "doublewrite.trd"), 0); err != nil {
		t.Fatal(err)
	}
}
