package adminapi

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// TestUnfit: leadership is handed to nobody who says that its disk is in trouble; what is wrong with others, or only the leader says, is no reason.
func TestUnfit(t *testing.T) {
	for want, s := range map[string]group.Status{
		"member 2 has a full disk":                             {ID: 2, DiskFull: true},
		"member 2 has a disk that has not answered for 7s":     {ID: 2, DiskStalled: 7 * time.Second},
		"member 2 has a disk that fails to give back its data": {ID: 2, ReadsFail: true},
	} {
		if err := unfit(2, []group.Status{{ID: 1}, s}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, not %s", err, want)
		}
		s.ID = 3
		if err := unfit(2, []group.Status{{ID: 2}, s}); err != nil {
			t.Errorf("another one %v", err)
		}
	}
	if err := unfit(2, []group.Status{{ID: 2, Error: "it does not answer"}}); err != nil {
		t.Errorf("whether one that does not answer can take over is found out: %v", err)
	}
}
