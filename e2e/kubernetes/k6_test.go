//go:build kubernetes

package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// loadTime is how long k6 begins operations: longer than an upgrade takes.
const loadTime = "60s"

// millisLine is a line of the load's table: the operation and its 99th percentile.
var millisLine = regexp.MustCompile(`(?m)^(?:mixed)?\s+(read|write|transaction)\s+\d+\s+\d+\s+[\d.]+ ms\s+[\d.]+ ms\s+([\d.]+ ms)`)

// k6 lets k6's mixed load go on until the returned function is called, which waits for its
// end and says what 99 of 100 operations took at most. Without -e2e.k6 neither does anything.
func (g *group) k6(t *testing.T) (ended func() string) {
	if !*k6 {
		return func() string { return "" }
	}
	var addresses []string
	for _, p := range g.members() {
		addresses = append(addresses, fmt.Sprintf("%s.%s-peers.%s.svc.%s:17000", p.Meta.Name, name, namespace, domain))
	}
	// Names are the cluster's, for programs that are none of this test as well.
	names := filepath.Join(g.cluster.dir, "resolv.conf")
	g.must(os.WriteFile(names, []byte("nameserver "+switchIP+"\n"), 0o644))
	g.cluster.run("mount", "--bind", names, "/etc/resolv.conf")
	var out bytes.Buffer
	cmd := exec.Command("go", "run", "./e2e/k6")
	cmd.Dir = "../.."
	cmd.Stdout, cmd.Stderr = &out, &out
	// Processors are shared with a whole cluster: how long operations take is told, not demanded.
	cmd.Env = append(os.Environ(), "ADDRESS="+strings.Join(addresses, ","), "USERNAME=root", "PASSWORD="+g.password, "TLS=skip-verify",
		"SCENARIO=mixed", "DURATION="+loadTime, "VUS=4", "PACE=20ms", "LIMITS=off")
	g.must(cmd.Start())
	return func() string {
		if err := cmd.Wait(); err != nil {
			t.Errorf("k6: %v\n%s", err, out.Bytes())
		}
		t.Logf("k6:\n%s", out.Bytes())
		said := ""
		for _, m := range millisLine.FindAllStringSubmatch(out.String(), -1) {
			said += fmt.Sprintf(", %s p99 %s", m[1], m[2])
		}
		return said
	}
}
