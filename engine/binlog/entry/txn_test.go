package entry

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/internal/trace"
)

// randomTxn is a transaction as a leader may make it.
func randomTxn(rng *rand.Rand, number uint64, entryTime int64) Txn {
	t := Txn{Number: number, DependsOn: rng.Uint64N(number), Time: entryTime - rng.Int64N(1e6), Events: make([]byte, rng.IntN(300))}
	for i := range t.Events {
		t.Events[i] = byte(rng.Uint64())
	}
	if rng.IntN(2) == 0 {
		t.Flags |= TokenFlag
		t.Token = Token{byte(rng.Uint64()), 15: 1}
	}
	if rng.IntN(2) == 0 {
		t.Flags |= TraceFlag
		t.Trace = trace.Context{Trace: [16]byte{byte(rng.Uint64()), 15: 2}, Span: [8]byte{byte(rng.Uint64()), 7: 3}}
	}
	if rng.IntN(4) == 0 {
		t.Flags |= SchemaFlag
	}
	return t
}

func same(a, b *Txn) bool {
	return a.Number == b.Number && a.DependsOn == b.DependsOn && a.Time == b.Time && a.Flags == b.Flags &&
		a.Token == b.Token && a.Trace == b.Trace && bytes.Equal(a.Events, b.Events)
}

// What is appended is read, and takes no more room than was announced.
func TestTransactions(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e := Envelope{Kind: Transactions, First: 1 + rng.Uint64N(1<<40), Count: uint32(1 + rng.IntN(20)), Time: 1 << 50}
		var all []Txn
		var body []byte
		for i := range uint64(e.Count) {
			x := randomTxn(rng, e.First+i, e.Time)
			before := len(body)
			body = AppendTxn(body, &x, e.Time)
			if took := len(body) - before - len(x.Events); took > HeaderSpace {
				t.Fatalf("seed %d: a header of %d bytes, %d were announced", seed, took, HeaderSpace)
			}
			all = append(all, x)
		}
		r := NewReader(&e, body)
		var got Txn // its fields are those of the transaction before, where none of its own are set
		for i := range all {
			if more, err := r.Next(&got); !more || err != nil || !same(&got, &all[i]) {
				t.Fatalf("seed %d: transaction %d is %+v, not %+v (%v, %v)", seed, i, got, all[i], more, err)
			}
		}
		if more, err := r.Next(&got); more || err != nil {
			t.Fatalf("seed %d: behind the last one: %v, %v", seed, more, err)
		}
	}
}

// A trace context costs its own length, and nothing where there is none.
func TestTraceCost(t *testing.T) {
	x := Txn{Number: 9, DependsOn: 8, Time: 5, Events: []byte("events")}
	without := AppendTxn(nil, &x, 5)
	x.Flags, x.Trace = TraceFlag, trace.Context{Trace: [16]byte{1}, Span: [8]byte{2}}
	with := AppendTxn(nil, &x, 5)
	if len(with)-len(without) != trace.Size {
		t.Errorf("%d bytes with a trace, %d without", len(with), len(without))
	}
	if want := "\x21\x04\x01\x00\x01" + strings.Repeat("\x00", 15) + "\x02" + strings.Repeat("\x00", 7) + "events"; string(with) != want {
		t.Errorf("%x, want %x", with, want)
	}
}

// What is no transaction is told as such.
func TestMalformed(t *testing.T) {
	e := Envelope{Kind: Transactions, First: 9, Count: 1, Time: 5}
	x := Txn{Number: 9, DependsOn: 8, Time: 5, Flags: TokenFlag | TraceFlag,
		Token: Token{1}, Trace: trace.Context{Trace: [16]byte{1}, Span: [8]byte{2}}}
	good := AppendTxn(nil, &x, 5)
	header := len(good)
	edit := func(fn func(b []byte)) []byte {
		b := bytes.Clone(good)
		fn(b)
		return b
	}
	for name, c := range map[string]struct {
		body []byte
		what string
	}{
		"unknown flag":         {edit(func(b []byte) { b[1] |= 8 }), "header"},
		"no token":             {[]byte{8, 1, 1, 0, 0, 0, 0, 0, 0}, "token"},
		"no trace":             {[]byte{8, 4, 1, 0, 1, 1, 1, 1, 1}, "trace context"},
		"a trace without id":   {edit(func(b []byte) { clear(b[header-24 : header-8]) }), "trace context"},
		"a span without id":    {edit(func(b []byte) { clear(b[header-8:]) }), "trace context"},
		"bytes behind":         {append(bytes.Clone(good), 0), "behind the last"},
		"depends on itself":    {edit(func(b []byte) { b[2] = 0 }), "header"},
		"depends on nothing":   {edit(func(b []byte) { b[2] = 10 }), "header"},
		"longer than the rest": {good[:header-1], "length"},
	} {
		r := NewReader(&e, c.body)
		var err error
		for more := true; more && err == nil; {
			more, err = r.Next(&x)
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An envelope names no more transactions than its body has room for.
func TestParseCount(t *testing.T) {
	x := Txn{Number: 9, DependsOn: 8, Time: 5}
	body := AppendTxn(nil, &x, 5)
	if len(body) != MinTxn {
		t.Errorf("the shortest transaction has %d bytes, not %d", len(body), MinTxn)
	}
	for count, good := range map[uint32]bool{1: true, 2: false, 1<<32 - 10: false} {
		for _, codec := range []Codec{Plain, Zstd} {
			e := Envelope{Kind: Transactions, Codec: codec, RawLength: uint32(len(body)), First: 9, Count: count, Time: 5}
			data := make([]byte, EnvelopeSize)
			e.Put(data)
			if _, _, err := Parse(append(data, body...)); good != (err == nil) || !good && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d transactions in %d bytes, codec %d: %v", count, len(body), codec, err)
			}
		}
	}
}

// A body comes back as it was before compression, into memory that has room for it; what is none
// is told as such.
func TestUnpack(t *testing.T) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBody))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	body := bytes.Repeat([]byte("a row much like the others "), 100)
	stored := w.EncodeAll(body, nil)
	plain := Envelope{Kind: Settings, RawLength: uint32(len(body))}
	if got, err := plain.Unpack(nil, body, nil); err != nil || &got[0] != &body[0] {
		t.Errorf("a plain body: %d bytes, %v", len(got), err)
	}
	packed := Envelope{Kind: Settings, Codec: Zstd, RawLength: uint32(len(body))}
	room := make([]byte, 3, len(body))
	got, err := packed.Unpack(r, stored, room)
	if err != nil || !bytes.Equal(got, body) || &got[0] != &room[0] {
		t.Errorf("a compressed body: %d bytes, %v", len(got), err)
	}
	for name, bad := range map[string][]byte{"no frame": body, "half of it": stored[:len(stored)/2], "another length": w.EncodeAll(body[1:], nil)} {
		if got, err := packed.Unpack(r, bad, nil); got != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// Whatever the bytes, they are refused, or read as what gives them again.
func FuzzTransactions(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	var body []byte
	for i := range uint64(3) {
		x := randomTxn(rng, 7+i, 1000)
		body = AppendTxn(body, &x, 1000)
	}
	f.Add(body, uint64(7), uint32(3))
	f.Add([]byte{3, 1, 1, 0}, uint64(1), uint32(1))
	f.Fuzz(func(t *testing.T, body []byte, first uint64, count uint32) {
		e := Envelope{Kind: Transactions, First: max(first, 1), Count: count, Time: 1000}
		r := NewReader(&e, body)
		var again []byte
		var x Txn
		for {
			more, err := r.Next(&x)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			if !more {
				break
			}
			if x.Flags&TraceFlag != 0 != x.Trace.Valid() || x.DependsOn >= x.Number {
				t.Fatalf("%+v", x)
			}
			again = AppendTxn(again, &x, e.Time)
		}
		r = NewReader(&e, again)
		for {
			more, err := r.Next(&x)
			if err != nil {
				t.Fatalf("what was read and written again: %v", err)
			}
			if !more {
				return
			}
		}
	})
}
