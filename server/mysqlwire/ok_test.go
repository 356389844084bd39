package mysqlwire

import "testing"

// TestOKWithoutSessionTrack: the text of an OK packet has its length before it, which
// Connector/J among others relies on.
func TestOKWithoutSessionTrack(t *testing.T) {
	r := serve(t, nil)
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command([]byte("\x03insert")...)
	if p, want := c.read(), "\x00\x03\x4d\x02\x00\x02\x00\x0aRecords: 3"; string(p) != want {
		t.Errorf("%q\n%q", p, want)
	}
}

// What a relayed session is told by itself has the number 0, as on every other door; what ends an
// answer has the next one.
func TestTracker(t *testing.T) {
	query := []byte{5, 0, 0, 0, 3, 'D', 'O', ' ', '1'}
	okay := []byte{7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}
	column := []byte{1, 0, 0, 1, 1}
	for _, c := range []struct {
		name    string
		framed  bool
		packets func(tr *tracker)
		seq     uint8
		waits   bool
	}{
		{"after an answer", false, func(tr *tracker) { tr.fromClient(query); tr.fromServer(okay) }, 0, false},
		{"before an answer", false, func(tr *tracker) { tr.fromServer(okay); tr.fromClient(query) }, 1, true},
		{"in an answer", false, func(tr *tracker) { tr.fromClient(query); tr.fromServer(column) }, 2, true},
		{"in a packet", false, func(tr *tracker) { tr.fromClient(query); tr.fromServer(okay[:6]) }, 0, false},
	} {
		tr := &tracker{framed: c.framed}
		c.packets(tr)
		if seq, waits := tr.waiting(); seq != c.seq || waits != c.waits {
			t.Errorf("%s: %d, %v", c.name, seq, waits)
		}
	}
}
