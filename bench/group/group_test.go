package main

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
)

func TestPutRequest(t *testing.T) {
	seen := map[int64]bool{}
	for n := range uint64(1000) {
		id := scattered(n)
		if id < 0 || seen[id] {
			t.Fatalf("key %d of write %d", id, n)
		}
		seen[id] = true
		a, b := putRequest(id), putRequest(id)
		if len(a) != 8+valueBytes || !bytes.Equal(a, b) {
			t.Fatalf("write %d has %d bytes", n, len(a))
		}
	}
}

func TestTokensAreUUIDs(t *testing.T) {
	before := time.Now().UnixMilli()
	a, b := newToken(1), newToken(2)
	if a == b || a[6]>>4 != 7 || a[8]>>6 != 2 {
		t.Errorf("tokens %x and %x", a, b)
	}
	made := int64(0)
	for _, x := range a[:6] {
		made = made<<8 | int64(x)
	}
	if made < before || made > time.Now().UnixMilli() {
		t.Errorf("a token made at %d", made)
	}
}

func TestRoleGoesThroughArguments(t *testing.T) {
	want := roleFlags{name: "node", id: 4, data: "/d", listen: "h:1", peers: joinPeers([]peer{{1, "h:2"}, {4, "h:3"}}),
		join: true, contact: "h:2", plain: true, verbose: true, entries: 3}
	var got roleFlags
	old := flag.CommandLine
	defer func() { flag.CommandLine = old }()
	flag.CommandLine = flag.NewFlagSet("", flag.ContinueOnError)
	got.define()
	if err := flag.CommandLine.Parse(want.args()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	list, self, err := got.parsePeers()
	if err != nil || len(list) != 2 || self != (peer{4, "h:3"}) {
		t.Errorf("%v, %v, %v", list, self, err)
	}
}

func TestRawCodec(t *testing.T) {
	in, out := []byte("bytes"), []byte(nil)
	data, err := rawCodec{}.Marshal(&in)
	if err == nil {
		err = rawCodec{}.Unmarshal(append(data, mem.SliceBuffer("!")), &out)
	}
	if err != nil || string(out) != "bytes!" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestFigures(t *testing.T) {
	if got := median([]time.Duration{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	r := rounds{turns: [][]*turn{
		{{commits: 2, took: time.Second}, {commits: 40, took: time.Second}, {commits: 9, took: time.Second}},
		{{commits: 1, took: time.Second}, {commits: 10, took: time.Second}, {commits: 3, took: time.Second}}}}
	if got := r.over(0, 1, (*turn).rate); got != 3 {
		t.Errorf("ratio %v", got)
	}
	at := time.Now()
	w := crowd{acks: []ack{{at.Add(time.Second), 0}, {at.Add(2 * time.Second), 1}, {at.Add(6 * time.Second), 1}}}
	if got, begin := w.gap(at, at.Add(5*time.Second)); got != 3*time.Second || begin != 2*time.Second {
		t.Errorf("gap %v", got)
	}
	if got := w.rate(at, at.Add(5*time.Second)); got != 0.4 {
		t.Errorf("rate %v", got)
	}
	if got, err := w.waitAck(at, 0); got != 2*time.Second || err != nil {
		t.Errorf("another node answered after %v, %v", got, err)
	}
}
