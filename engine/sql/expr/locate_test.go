package expr

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/types"
)

// TestLocateBehindNoWeights: characters without weight are read once, not anew from each of them.
func TestLocateBehindNoWeights(t *testing.T) {
	c := types.CollationByID(types.CollationUTF8MB40900AI)
	x := &Context{}
	blank := strings.Repeat("\x01\u0301", 500_000)
	for text, want := range map[string]int64{blank: 0, "b" + blank + "é": 2, blank + "b" + blank + "é": 1_000_002, blank + "bé": 1_000_002, "é" + blank: 1} {
		began := time.Now()
		if got, err := locateText(x, c, []byte(text), []byte("e"), 1); err != nil || got != want {
			t.Errorf("%.10q: %d, want %d (%v)", text, got, want, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.10q: it has taken %v", text, took)
		}
	}
}
