package expr

import (
	"strings"
	"testing"
)

// TestZonesKept: a time zone is kept once, however its name is written, and no other path of its file is a name.
func TestZonesKept(t *testing.T) {
	LoadZone("Europe/Paris")
	zones.mu.Lock()
	before := len(zones.known)
	zones.mu.Unlock()
	for _, name := range []string{"Europe/Paris", "europe/paris", "EUROPE/PARIS"} {
		loc, ok := LoadZone(name)
		if again, _ := LoadZone(name); !ok || loc.String() != "Europe/Paris" || again != loc {
			t.Errorf("%s: %v, then %v", name, loc, again)
		}
	}
	for _, name := range []string{"Europe//Paris", "Europe/./Paris", "/Europe/Paris", "Europe/Paris/", "Europe/../Europe/Paris", "Europe" + strings.Repeat("/", 40) + "Paris",
		"Local", "local", "", "/"} {
		if loc, ok := LoadZone(name); ok {
			t.Errorf("%s is %v", name, loc)
		}
	}
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if len(zones.known) != before {
		t.Errorf("%d zones are kept, %d before", len(zones.known), before)
	}
}
