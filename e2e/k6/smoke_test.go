//go:build load

package main

import (
	"strings"
	"testing"
)

// brief makes runs so short that only what they find counts, not how fast it was.
func brief(t *testing.T) *config {
	t.Helper()
	for name, value := range map[string]string{"ADDRESS": "", "SCENARIO": strings.Join(scenarios, ","), "DURATION": "2s", "VUS": "4", "ROWS": "1000",
		"PACE": "1ms", "LIMITS": "off"} {
		t.Setenv(name, value)
	}
	c, err := configure()
	if err != nil {
		t.Fatal(err)
	}
	c.k6, c.scripts = "../../bin/k6", "."
	return c
}

// do runs a scenario, which must not find anything.
func do(t *testing.T, c *config, g *target, name string) {
	t.Helper()
	r, err := c.scenario(t.Context(), g, name, t.TempDir())
	if err != nil {
		t.Fatalf("%v\n%s", err, g.lastWords())
	}
	for _, m := range r.missed() {
		t.Error(m)
	}
	show(t.Output(), []*result{r})
}

// TestScripts runs every script for a moment, the last of them as on somebody else's group with TLS.
func TestScripts(t *testing.T) {
	c := brief(t)
	g, err := newTarget(t.Context(), c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for _, name := range c.scenarios {
		t.Run(name, func(t *testing.T) { do(t, c, g, name) })
	}
	t.Run("TLS", func(t *testing.T) {
		c.address = g.addrs[1]
		for name, value := range map[string]string{"USERNAME": user, "PASSWORD": password, "TLS": "skip-verify"} {
			t.Setenv(name, value)
		}
		theirs, err := newTarget(t.Context(), c, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.close()
		do(t, c, theirs, "mixed")
	})
}
