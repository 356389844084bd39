//go:build monitoring

package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

// fault is what a test does to a group, and the alerts that are for it.
type fault struct {
	name   string
	test   func(*testing.T, *watched)
	alerts []string
}

// shop and depot are two groups, which faults befall at the same time. Each begins and ends without
// an alert. The one of depot has certificates, disks that can be made slow, and a network that can be cut.
var shop = []fault{
	{"backups", backups, []string{"TriremeBackupFailed"}},
	{"queries", queries, nil},
	{"healthy", func(_ *testing.T, w *watched) { w.only() }, nil},
	{"connections", connections, []string{"TriremeConnectionsNearMax"}},
	{"descriptors", descriptors, []string{"TriremeDescriptorsScarce"}},
	{"unaudited", unaudited, []string{"TriremeAuditLinesLost"}},
	{"clients", clients, []string{"TriremeLongTransaction", "TriremeUndoBacklog", "TriremeUndoNearLimit", "TriremeLockWaits", "TriremeDeadlocks", "TriremeSettingsDiffer", "TriremeAccountsNotKept"}},
	{"forgotten", forgotten, []string{"TriremeLargeTransaction"}},
	{"away", away, []string{"TriremeMemberAway"}},
	{"frozen", frozen, []string{"TriremeMemberAway"}},
	{"another", another, []string{"TriremeMemberAway", "TriremeOtherGroup"}},
	{"disk", disk, []string{"TriremeDiskAlmostFull", "TriremeDiskFull"}},
	{"majority", majority, []string{"TriremeNoMajority"}},
	{"processes", processes, []string{"TriremeVersionsDiffer", "TriremeNodeRestarts", "TriremeMemoryNearLimit", "TriremeNotScraped"}},
}

var depot = []fault{
	{"backup", noBackup, []string{"TriremeBackupTooOld"}},
	{"slow", slow, []string{"TriremeCommitsSlow", "TriremeLogSyncSlow", "TriremeDiskFillsSoon", "TriremeCertificateExpires", "TriremeCertificateExpired"}},
	{"leaderless", leaderless, []string{"TriremeNoLeader"}},
	{"undelivered", undelivered, []string{"TriremeEntriesUndelivered"}},
	{"stuck", stuck, []string{"TriremeDiskStalled", "TriremeReplicaLags", "TriremeNodeNotReady"}},
	{"unsynced", unsynced, []string{"TriremeLargeBodyMissing"}},
	{"unread", unread, []string{"TriremeDiskReadsFail"}},
	{"broken", broken, []string{"TriremeNodeBroken"}},
	{"rotten", rotten, []string{"TriremeNodeBroken"}},
}

// Each alert of the rules is fired by a fault, and no fault waits for another one.
func TestFaultsFireAllAlerts(t *testing.T) {
	fired := map[string]bool{}
	for _, f := range slices.Concat(shop, depot) {
		for _, name := range f.alerts {
			fired[name] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(read(t, rulesFile), -1) {
		if !fired[m[1]] {
			t.Errorf("no fault fires %s", m[1])
		}
		delete(fired, m[1])
	}
	for name := range fired {
		t.Errorf("a fault is to fire %s, and there is no such alert", name)
	}
}

// Queries of rules and panels find something in a group that is at work, nothing fires in it, and
// each fault has its alert, which is gone when the fault is.
func TestLive(t *testing.T) {
	binary, err := servers.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]*watched{"shop": newWatched(t, binary, []string{"--backup-max-age=1h"}, nil)}
	d := &depotParts{}
	groups["depot"] = newWatched(t, binary, d.settings(t), d.prepare(t))
	groups["depot"].depotParts = d
	watch(t, groups)
	t.Run("groups", func(t *testing.T) {
		for job, faults := range map[string][]fault{"shop": shop, "depot": depot} {
			t.Run(job, func(t *testing.T) {
				t.Parallel()
				groups[job].befall(t, faults)
			})
		}
	})
}

// befall has faults befall a group one after the other.
func (w *watched) befall(t *testing.T, faults []fault) {
	for _, f := range faults {
		// What is told of a failure belongs to the part that found it.
		if !t.Run(f.name, func(t *testing.T) {
			p := *w.prometheus
			p.t, p.fired = t, map[string]bool{}
			part := *w
			part.t, part.prometheus = t, &p
			f.test(t, &part)
			part.only()
			for _, name := range f.alerts {
				if !p.fired[name] {
					t.Errorf("%s was not waited for", name)
				}
			}
		}) {
			return
		}
	}
}

// write replaces a file as a whole.
func write(t *testing.T, name, text string) {
	t.Helper()
	part := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.part", filepath.Base(name)))
	if err := os.WriteFile(part, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, name); err != nil {
		t.Fatal(err)
	}
}
