//go:build kubernetes

package kubernetes

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const rootSecret = name + "-root"

// passwordChanged gives root another password by its Secret, as kubectl does it, and goes back to the revision before: neither
// an upgrade nor a rollback, by hand or after a failure, changes the Secret or fails because of it. An upgrade makes one
// that somebody has deleted.
func (g *group) passwordChanged(t *testing.T, _ *bank) string {
	fresh := fmt.Sprintf("rotated-%d", time.Now().UnixNano())
	g.setPassword(fresh)
	g.taken(fresh)
	before := g.revision(release)
	g.upgrade("--set=settings.max_connections=240")
	g.helm("rollback", release, before, "--namespace="+namespace, "--wait", "--timeout=5m")
	g.whole(3)
	g.same(t, fresh)

	out, err := g.tool("helm", "upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--wait", "--timeout=5m", "--rollback-on-failure",
		"--set=settings.bogus_setting=1")
	if err == nil || strings.Contains(out, "conflict") {
		t.Errorf("a bad setting: %v\n%s", err, out)
	}
	g.same(t, fresh)
	g.whole(3)

	g.kubectl("-n", namespace, "delete", "secret", rootSecret)
	g.upgrade("--set=settings.max_connections=241")
	made := g.secret(name)
	if made == fresh || made == "" {
		t.Errorf("the Secret that was made anew has the password %q", made)
	}
	g.taken(made)
	g.whole(3)
	return ""
}

// setPassword gives root's Secret a password.
func (g *group) setPassword(password string) {
	g.t.Helper()
	g.kubectl("-n", namespace, "patch", "secret", rootSecret, "--type=merge", fmt.Sprintf(`--patch={"stringData":{"root-password":%q}}`, password))
}

// same demands that the Secret has a password and the release is in force.
func (g *group) same(t *testing.T, password string) {
	t.Helper()
	if got := g.secret(name); got != password {
		t.Errorf("the Secret has the password %q", got)
	}
	var s struct {
		Info struct {
			Status string `json:"status"`
		} `json:"info"`
	}
	g.must(json.Unmarshal([]byte(g.helm("status", release, "--namespace="+namespace, "--output=json")), &s))
	if s.Info.Status != "deployed" {
		t.Errorf("the release is %s", s.Info.Status)
	}
}

// taken waits until a password of the Secret is root's, by which the group is looked after from then on.
func (g *group) taken(password string) {
	g.t.Helper()
	tries := 0
	g.eventually("root has the new password", func() error {
		if tries++; tries%100 == 1 {
			g.nudge(g.members()...)
		}
		db, err := sql.Open("mysql", fmt.Sprintf("root:%s@tcp(%s.%s.svc.%s:3306)/?tls=skip-verify&timeout=2s", password, name, namespace, domain))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	})
	g.password = password
}
