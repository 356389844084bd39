//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// olderRevision is the last one whose program knows version 1 of the log's files alone.
	olderRevision = "2b9a8caba683"
	olderTag      = "0.1.0-older"
	older         = "older" // the release
)

// olderProgram makes the image of an older revision, with which nodes are provided, and returns its chart.
func (g *group) olderProgram() (chart string) {
	g.t.Helper()
	source := filepath.Join(g.dir, "older")
	g.must(os.Mkdir(source, 0o755))
	archive := filepath.Join(g.dir, "older.tar")
	if out, err := exec.Command("git", "-C", "../..", "archive", "--output="+archive, olderRevision).CombinedOutput(); err != nil {
		g.t.Fatalf("the history up to %s is needed, for a program of before: %v\n%s", olderRevision, err, out)
	}
	g.run("tar", "-xf", archive, "-C", source)
	image := filepath.Join(g.dir, "older-image.tar")
	// Its speed is not looked at: what is compiled without a profile may be there already.
	_, _, err := buildImage(source, image, []string{"GOFLAGS=-pgo=off"}, repository+":"+olderTag)
	g.must(err)
	for _, m := range g.nodes {
		g.run("nsenter", "-t", m.first(), "-m", "--", "ctr", "-n", "k8s.io", "images", "import", image)
	}
	return filepath.Join(source, "charts/trireme")
}

// upgradedAndBack: a release of an older program and its chart is upgraded to this one under load, goes back, and is upgraded again. Once
// the log has files that the older one cannot read, going back stops one member, which says why, and no other.
func (g *group) upgradedAndBack(t *testing.T, outer *bank) string {
	chart := g.olderProgram()
	_, letGo := outer.hold() // one group is enough for the machine
	defer letGo()

	o := *g
	o.selector = "app.kubernetes.io/instance=" + older + ",app.kubernetes.io/component=member"
	const name = older + "-trireme"
	began := time.Now()
	g.helm("install", older, chart, "--namespace="+namespace, "--wait", "--timeout=5m", "--set=image.tag="+olderTag,
		"--set=resources.requests.cpu=100m,resources.requests.memory=512Mi,resources.limits.memory=1Gi")
	o.password = g.secret(name)
	o.whole(3)
	b := newBank(t, name+"."+namespace+".svc."+domain+":17000", "root", o.password)
	b.goesOn()
	first := g.revision(older)
	said := fmt.Sprintf("; there after %s", round(time.Since(began)))

	change := func(what, tag string, args ...string) {
		t.Helper()
		b.mark()
		began := time.Now()
		g.helm(append(args, "--namespace="+namespace, "--wait", "--timeout=5m")...)
		o.whole(3)
		took := time.Since(began)
		said += fmt.Sprintf(", %s in %s, no write for %s", what, round(took), round(b.goesOn()))
		for _, p := range b.paused() {
			t.Logf("%s: nothing was written from %s to %s", what, p.from.Format(time.StampMilli), p.to.Format(time.StampMilli))
		}
		for _, p := range o.members() {
			if image := p.Spec.Containers[0].Image; image != repository+":"+tag {
				t.Errorf("%s runs %s", p.Meta.Name, image)
			}
		}
		o.equal(b)
	}
	change("upgraded", version, "upgrade", older, chartDir, "--reset-then-reuse-values", "--set=image.tag="+version)
	o.format(1)
	change("back", olderTag, "rollback", older, first)
	change("upgraded again", version, "upgrade", older, chartDir, "--reset-then-reuse-values", "--set=image.tag="+version)

	good := g.revision(older)
	for _, size := range []string{"4096", "DEFAULT"} { // other files of the log begin
		b.sql("SET GLOBAL max_binlog_size = " + size)
		b.goesOn()
		if size == "4096" {
			o.format(3)
		}
	}
	before := o.members()
	g.helm("rollback", older, first, "--namespace="+namespace)
	last := before[len(before)-1]
	g.eventually(last.Meta.Name+" refuses to start", func() error {
		for _, p := range o.members() {
			if c := p.Status.Containers; p.Meta.Name != last.Meta.Name || p.Meta.UID == last.Meta.UID || len(c) != 1 || c[0].Restarts == 0 {
				continue
			}
			out, err := g.tool("kube", "kubectl", "-n", namespace, "logs", p.Meta.Name, "--previous")
			if err == nil && strings.Contains(out, "version 3") {
				return nil
			}
			return fmt.Errorf("it says %s (%w)", out, err)
		}
		return errors.New("it has not tried yet")
	})
	b.goesOn()
	for i, p := range o.members()[:len(before)-1] {
		if p.Meta.UID != before[i].Meta.UID {
			t.Errorf("%s was started anew with a program that cannot read its log", p.Meta.Name)
		}
	}
	change("and the newer one again", version, "rollback", older, good)

	b.halt()
	g.helm("uninstall", older, "--namespace="+namespace, "--wait")
	for _, claim := range g.claimsOf("data-" + name + "-") {
		g.kubectl("-n", namespace, "delete", "pvc", claim, "--timeout=1m")
	}
	return said
}

// format waits until the newest file of every member's log has a version.
func (g *group) format(version int) {
	g.t.Helper()
	for _, p := range g.members() {
		g.eventually(fmt.Sprintf("files of %s's log have version %d", p.Meta.Name, version), func() error {
			text, err := g.metrics(&p)
			if err == nil && !strings.Contains(text, fmt.Sprintf("\ntrireme_binlog_format_version %d\n", version)) {
				err = errors.New("they do not")
			}
			return err
		})
	}
}
