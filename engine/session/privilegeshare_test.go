package session

import (
	"strconv"
	"testing"

	"github.com/triremedb/trireme/engine/sql/priv"
)

// TestPrivilegesAreShared: sessions of one account with the same roles have one copy of what they may do, and
// nobody has another's.
func TestPrivilegesAreShared(t *testing.T) {
	set := priv.NewSet()
	a, b, r := priv.NewID("a", "%"), priv.NewID("b", "%"), priv.NewID("r", "%")
	for _, id := range []priv.ID{a, b, r} {
		set.Add(id)
	}
	if err := set.GrantRole(r, a, false); err != nil {
		t.Fatal(err)
	}
	k := &knownAccounts{set: set}
	plain := k.activeFor(a, "h", nil)
	if k.activeFor(a, "h", nil) != plain {
		t.Error("the same privileges are there twice")
	}
	for what, other := range map[string]*priv.Active{"another account": k.activeFor(b, "h", nil), "another host": k.activeFor(a, "i", nil), "a role": k.activeFor(a, "h", []priv.ID{r})} {
		if other == plain {
			t.Errorf("%s has the same", what)
		}
	}
	if on := k.activeFor(a, "h", []priv.ID{r}); len(on.Roles) != 1 {
		t.Errorf("the active roles are %v", on.Roles)
	}
	for i := range activeMost {
		k.activeFor(a, "host "+strconv.Itoa(i), nil)
	}
	if k.activeFor(a, "one more", nil).Host != "one more" || len(k.active) > activeMost {
		t.Errorf("%d are kept", len(k.active))
	}
}
