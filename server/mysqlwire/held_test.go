package mysqlwire

import "testing"

// TestHeld: a relayed session counts as two connections where it is relayed, as one where it runs, and as none when it is over.
func TestHeld(t *testing.T) {
	leader, follower := relays(t, nil)
	db := follower.db(t, nil)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both ends are counted", func() bool { return follower.s.Held() == 2 && leader.s.Held() == 1 })
	_ = db.Close()
	eventually(t, "none is", func() bool { return follower.s.Held() == 0 && leader.s.Held() == 0 })
}
