//go:build kubernetes

package kubernetes

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

const (
	repository = "triremedb/trireme" // of values.yaml
	version    = "0.1.0"             // of Chart.yaml
	nextTag    = "0.1.0-next"        // the same program
	imageMax   = 60 << 20
)

// table is what was measured.
type table struct{ rows []string }

// add adds what happened, how long nothing was acknowledged, and when all was as before.
func (r *table) add(t *testing.T, what, gap, whole string) {
	t.Helper()
	r.rows = append(r.rows, fmt.Sprintf("| %s | %s | %s |", what, gap, whole))
	t.Logf("%s: %s", what, strings.TrimLeft(gap+"; whole after "+whole, "; "))
}

// TestChart installs the chart and lets a load go on while its group lives through what
// happens on a Kubernetes.
func TestChart(t *testing.T) {
	if *combinations > 0 {
		return // there is room for one cluster
	}
	results := &table{}
	g := startGroup(t, 0)
	if *hold {
		defer g.holdUp()
	}
	g.install(t, results)
	g.loadAccount()
	b := newBank(t, address, loadUser, loadSecret)
	b.goesOn()
	g.whole(3)
	g.lives(t, b, results)
	b.halt()
	g.checkVolumes()
	if *report != "" {
		text := "| What happens | No write for | All members there after |\n|---|--:|---|\n" + strings.Join(results.rows, "\n") + "\n"
		g.must(os.WriteFile(*report, []byte(text), 0o644))
	}
}

// startGroup starts a cluster of three nodes, whose volumes have a size or share what there is (0), for a group that
// is not installed yet.
func startGroup(t *testing.T, volumes int64) *group {
	t.Helper()
	image := filepath.Join(*inside, "trireme.tar")
	files, size, err := buildImage("../..", image, nil, repository+":"+version, repository+":"+nextTag)
	if err != nil {
		t.Fatal(err)
	}
	if size > imageMax {
		t.Errorf("the image has %d bytes, more than %d", size, imageMax)
	}
	began := time.Now()
	c := startCluster(t, 3, volumes, image)
	t.Logf("three nodes are ready after %v; the image has %d MB", since(began), size>>20)
	return &group{cluster: c, selector: members, program: filepath.Join(files, "trireme"), http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// install installs the chart as its documentation does, with more values.
func (g *group) install(t *testing.T, results *table, values ...string) {
	t.Helper()
	g.must(g.api.create("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace,
		"labels": map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}))
	began := time.Now()
	g.helm(append([]string{"install", release, chartDir, "--namespace=" + namespace}, values...)...)
	g.eventually("the first answer", func() error {
		if g.password == "" {
			g.password = g.secret(name)
		}
		db, err := sql.Open("mysql", fmt.Sprintf("root:%s@tcp(%s.%s.svc.%s:3306)/?tls=skip-verify&timeout=2s", g.password, name, namespace, domain))
		if err != nil {
			return err
		}
		defer db.Close()
		got, err := servers.Rows(db, "SELECT 6*7")
		if err == nil && got != "42\n" {
			err = fmt.Errorf("6*7 is %q", got)
		}
		return err
	})
	results.add(t, "`helm install`, until the first statement is answered", "", round(time.Since(began)))
	g.kubectl("-n", namespace, "rollout", "status", "statefulset/"+name, "--timeout=4m")
	if out := g.helm("test", release, "--namespace="+namespace, "--logs", "--timeout=3m"); strings.Count(out, "ONLINE") != 3 {
		t.Errorf("helm test tells of other members than three:\n%s", out)
	}
	nodes := map[string]bool{}
	for _, p := range g.members() {
		nodes[p.Spec.Node] = true
		// Nodes that join ask each other by names, for which their certificates are.
		if said := g.kubectl("-n", namespace, "logs", p.Meta.Name); strings.Contains(said, "bad certificate") {
			t.Errorf("%s was called by somebody who took its certificate for another's:\n%s", p.Meta.Name, said)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("members are on %d nodes", len(nodes))
	}
}

// holdUp leaves the cluster up until ^C.
func (g *group) holdUp() {
	fmt.Printf("nsenter -t %d -n -m -p; KUBECONFIG=%s\n", os.Getppid(), g.cluster.admin)
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
}

// checkVolumes removes the release and checks what is on the members' volumes, which stay.
func (g *group) checkVolumes() {
	g.t.Helper()
	g.consists(3) // claims of members that have left go a while after them
	g.helm("uninstall", release, "--namespace="+namespace, "--wait")
	g.eventually("all pods have ended", func() error {
		if pods := g.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	var volumes list[volume]
	g.eventually("three volumes are left", func() error {
		if err := g.api.get("/api/v1/persistentvolumes", &volumes); err != nil || len(volumes.Items) == 3 {
			return err
		}
		return fmt.Errorf("there are %d", len(volumes.Items))
	})
	for _, v := range volumes.Items {
		g.run(g.program, "check", "-datadir="+filepath.Join(v.Spec.Local.Path, "data"))
	}
}

func round(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
