package bodies

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

var someBody = entry.LargeBody{ID: entry.StreamID{Term: 1, Member: 2, Start: 3, Number: 4}, Stored: 5, Plain: 6, Events: 7,
	Offset: body.Offset, Frames: 8, Digest: [32]byte{9}}

// samples are one of each message, without checksums put in wrong.
func samples() (all [][]byte) {
	add := func(b []byte, data string) {
		fields := len(b)
		b = append(b, data...)
		seal(b, fields)
		all = append(all, b)
	}
	add(appendUints(beginMessage(nil, msgHello, 0), 1, 2, 3), "")
	add(beginMessage(nil, msgBegin, 9), "")
	add(appendUints(append(appendUints(beginMessage(nil, msgData, 9), 100), 2, 0), 41, 42), "bytes")
	add(appendUints(beginMessage(nil, msgTruncate, 9), 3, 100), "")
	add(entry.AppendLargeBody(beginMessage(nil, msgComplete, 4), &someBody), "")
	add(appendUints(append(beginMessage(nil, msgEnd, 9), endTaken), 8), "")
	return all
}

func requests() (all [][]byte) {
	l := list{term: 1, leader: 2, start: 3, have: []listed{{number: 4, synced: 5, points: []point{{100, 7}, {50, 8}}},
		{number: 6, skip: true}, {number: 7, whole: true}}}
	r := report{leader: 1, start: 2, have: []having{{3, 4, true}, {5, 6, false}}}
	q := request{want: someBody, index: 3, at: 4}
	return [][]byte{offer{1, 2}.append(nil), l.append(nil), r.append(nil), q.append(nil), wanted{1, 2, 3}.append(nil)}
}

// What is written is read, and no shorter, longer or changed form of it is.
func TestWire(t *testing.T) {
	for i, b := range samples() {
		m, err := parseMessage(b)
		if err != nil || m.kind != kind(i+1) {
			t.Fatalf("message %d: %+v, %v", i, m, err)
		}
		for cut := range b {
			if m, err := parseMessage(b[:cut]); err == nil && m.kind != msgData {
				t.Fatalf("message %d of %d bytes: %+v", i, cut, m)
			}
		}
		for at := range len(b) - len(m.data) {
			bad := bytes.Clone(b)
			bad[at] ^= 1
			if _, err := parseMessage(bad); err == nil {
				t.Fatalf("message %d, byte %d: the change was not seen", i, at)
			}
		}
	}
	m, _ := parseMessage(samples()[2])
	a, _ := m.after(1)
	if _, more := m.after(2); m.at != 100 || string(m.data) != "bytes" || a != 42 || more {
		t.Fatalf("%+v", m)
	}
	if m, _ = parseMessage(samples()[4]); m.body != someBody {
		t.Fatalf("%+v", m)
	}
	all := requests()
	l, err := parseList(all[1])
	if err != nil || len(l.have) != 3 || !reflect.DeepEqual(l.have[0].points, []point{{100, 7}, {50, 8}}) || !l.have[1].skip || !l.have[2].whole {
		t.Fatalf("%+v, %v", l, err)
	}
	if r, err := parseReport(all[2]); err != nil || !reflect.DeepEqual(r.have, []having{{3, 4, true}, {5, 6, false}}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if q, err := parseRequest(all[3]); err != nil || q != (request{someBody, 3, 4}) {
		t.Fatalf("%+v, %v", q, err)
	}
	if w, err := parseWanted(all[4]); err != nil || w != (wanted{1, 2, 3}) {
		t.Fatalf("%+v, %v", w, err)
	}
	for i, b := range all {
		for cut := range b {
			if parseAny(b[:cut])[i] == nil {
				t.Fatalf("request %d of %d bytes was read", i, cut)
			}
		}
	}
}

func parseAny(b []byte) [5]error {
	_, a := parseOffer(b)
	_, c := parseList(b)
	_, d := parseReport(b)
	_, e := parseRequest(b)
	_, f := parseWanted(b)
	return [5]error{a, c, d, e, f}
}

func FuzzParse(f *testing.F) {
	for _, b := range append(samples(), requests()...) {
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseAny(b)
		_, _ = parseMessage(b)
	})
}

// sink is a reader that takes everything.
type sink struct{ chunks int }

func (*sink) Abort() {}

func (s *sink) Send([]byte) error {
	if s.chunks++; s.chunks > 1000 {
		return errors.New("enough")
	}
	return nil
}

// A member that says anything at all, in the right form, does no harm: no panic, no file
// that stays, and nothing that is had.
func TestHostile(t *testing.T) {
	for seed := range uint64(20) {
		run(t, seed, 2, simnettest.Options{}, func(r *rig) {
			rng := rand.New(rand.NewPCG(seed, 9))
			n := r.nodes[1]
			src := &source{id: entry.StreamID{Term: 5, Member: 1, Start: 3}, wake: r.sim.NewParker(), tries: map[uint64]int{}, running: true}
			n.store.src = src
			some := func() uint64 { return []uint64{0, 1, 2, 3, 20, 28, 1 << 30, 1 << 59, 1<<64 - 1}[rng.IntN(9)] }
			for range 300 {
				m := message{kind: kind(1 + rng.IntN(int(kinds)-1)), number: rng.Uint64N(4), term: 5, start: 3, oldest: some() % 4,
					at: int64(some() >> 4), frames: int(some() % maxFrames), afters: make([]byte, 8*rng.IntN(3)), data: make([]byte, 1+rng.IntN(50)),
					body: someBody, why: byte(rng.IntN(2))}
				if rng.IntN(2) == 0 {
					m.at = 0
				}
				if rng.IntN(2) == 0 { // a right frame
					var h body.Header
					m.data, h = body.AppendFrame(nil, nil, 0, m.data, 1)
					_ = h
				}
				if err := n.store.accept(src, &m); errors.Is(err, errStale) {
					r.fatalf("%v", err)
				}
			}
			for _, st := range n.store.staged {
				if st.whole {
					r.fatalf("it has %v", st.l)
				}
			}
			for range 300 {
				l := list{term: 4 + rng.Uint64N(3), leader: n.store.start, start: some()}
				rep := report{leader: n.store.start, start: l.start}
				for range rng.IntN(5) {
					l.have = append(l.have, listed{number: some(), skip: rng.IntN(5) == 0, whole: rng.IntN(5) == 0, synced: int64(some() >> 5),
						points: []point{{int64(some() >> 5), uint32(some())}}})
					rep.have = append(rep.have, having{some(), int64(some() >> 5), rng.IntN(2) == 0})
				}
				q := request{want: someBody, at: int64(rng.Uint64N(8))}
				for _, b := range [][]byte{offer{some(), some()}.append(nil), wanted{5, 3, some()}.append(nil), l.append(nil), rep.append(nil), q.append(nil)} {
					if rng.IntN(3) == 0 {
						b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
					}
					_, _, _ = n.store.HandleAsk(1, askOffer, b)
					_, _, _ = n.store.HandleAsk(1, askHave, b)
					_, _, _ = n.store.HandleAsk(1, askWant, b)
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					_, _ = n.store.HandleBulk(ctx, 1, bulkStream, b, &sink{})
					_, _ = n.store.HandleBulk(ctx, 1, bulkBody, b, &sink{})
				}
			}
			n.store.mu.Lock()
			n.store.src = nil
			n.store.mu.Unlock()
			n.store.DropBefore(1 << 63)
			r.until("nothing is left", func() bool { return len(n.files()) == 0 })
		})
	}
}

// Only members have a say, and other kinds are others'.
func TestKinds(t *testing.T) {
	e := env.Real()
	s := New(Options{Env: e, FS: simfile.New(e, 1), Member: 1})
	defer s.Close()
	if _, handled, err := s.HandleAsk(0, askOffer, nil); !handled || err == nil {
		t.Fatal("a stranger was answered")
	}
	if handled, err := s.HandleBulk(t.Context(), 0, bulkBody, nil, nil); !handled || err == nil {
		t.Fatal("a stranger was answered")
	}
	if _, handled, _ := s.HandleAsk(2, "group/status", nil); handled {
		t.Fatal("another's question was answered")
	}
	if handled, _ := s.HandleBulk(t.Context(), 2, "group/snapshot", nil, nil); handled {
		t.Fatal("another's request was answered")
	}
	var _ transport.BulkWriter = &sink{}
}
