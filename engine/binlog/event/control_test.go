package event

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
)

// one cuts the only event out of b.
func one(t testing.TB, b []byte) *Event {
	t.Helper()
	r := NewReader(b)
	var e Event
	more, err := r.Next(&e)
	if !more || err != nil || len(r.rest) > 0 {
		t.Fatalf("not one event: %v", err)
	}
	return &e
}

func TestQueryRoundTrip(t *testing.T) {
	for _, q := range []Query{
		{},
		{Schema: "shop", Text: []byte("CREATE TABLE t (a INT)")},
		{Schema: strings.Repeat("s", 255), Text: []byte("x"), ThreadID: 1 << 31, ExecTime: 7, Error: 1317,
			Flags2: QueryNoForeignKeyChecks | QueryRelaxedUniqueChecks, SQLMode: 1<<40 | 1, Client: 255, Connection: 45, Server: 8,
			TimeZone: "Europe/Berlin", Micros: 999_999, XID: 1<<64 - 1, DefaultUTF8MB4: 255},
	} {
		e := one(t, AppendQuery(nil, 5, &q))
		got, err := ParseQuery(e)
		check(t, err)
		if string(got.Text) != string(q.Text) {
			t.Fatalf("%q", got.Text)
		}
		got.Text, q.Text = nil, nil
		if got.Schema != q.Schema || got.XID != q.XID || got.TimeZone != q.TimeZone || got.SQLMode != q.SQLMode ||
			got.Flags2 != q.Flags2 || got.Micros != q.Micros || got.Client != q.Client || got.Connection != q.Connection ||
			got.Server != q.Server || got.DefaultUTF8MB4 != q.DefaultUTF8MB4 || got.ThreadID != q.ThreadID ||
			got.ExecTime != q.ExecTime || got.Error != q.Error || e.Timestamp != 5 {
			t.Fatalf("%+v, want %+v", got, q)
		}
	}
	long := Query{Schema: strings.Repeat("s", 300), TimeZone: strings.Repeat("z", 300)}
	if got, err := ParseQuery(one(t, AppendQuery(nil, 5, &long))); err != nil || len(got.Schema) != 255 || len(got.TimeZone) != 255 {
		t.Fatal(err)
	}
	if q := (Query{Text: []byte("BEGIN")}); !q.IsBegin() || long.IsBegin() {
		t.Fatal("BEGIN")
	}
}

// Status variables of others, such as auto_increment_increment, end what is read.
func TestQueryUnknownVariable(t *testing.T) {
	b := AppendQuery(nil, 5, &Query{Text: []byte("x"), Flags2: 3, SQLMode: 9})
	at := HeaderSize + queryHeader + 1 + 4 // behind flags2
	b[at] = 99
	q, err := ParseQuery(one(t, b))
	if err != nil || q.Flags2 != 3 || q.SQLMode != 0 || string(q.Text) != "x" {
		t.Fatalf("%+v, %v", q, err)
	}
}

func TestGTIDRoundTrip(t *testing.T) {
	g := GTID{UUID: UUID{1, 2, 15: 16}, Number: 1<<63 - 1, LastCommitted: 5, Sequence: 6, CommitTime: 1_700_000_000_000_001,
		Length: 70_000, ServerVersion: 80400, Statement: true}
	got, err := ParseGTID(one(t, AppendGTID(nil, 5, &g)))
	if err != nil || got != g {
		t.Fatalf("%+v, %v", got, err)
	}
	// With an original commit's time of its own, as a replica's server writes it.
	b := AppendGTID(nil, 5, &g)
	at := HeaderSize + gtidHead
	b[at+6] |= 0x80
	b = append(b[:at+7:at+7], append(make([]byte, 7), b[at+7:]...)...)
	if got, err := ParseGTID(one(t, endEvent(b, 0))); err != nil || got != g {
		t.Fatalf("%+v, %v", got, err)
	}
}

// The length of a transaction counts the field that it stands in.
func TestLengthWithSelf(t *testing.T) {
	for _, rest := range []uint64{0, 1, 249, 250, 251, 1<<16 - 4, 1<<16 - 3, 1<<16 - 2, 1 << 16, 1<<24 - 5, 1<<24 - 4, 1<<24 - 3, 1 << 30} {
		n := lengthWithSelf(rest)
		if n != rest+uint64(len(appendPacked(nil, n))) {
			t.Errorf("rest %d: %d", rest, n)
		}
	}
}

func TestGTIDSets(t *testing.T) {
	a, b := UUID{1}, UUID{2}
	for _, test := range []struct {
		set  GTIDSet
		text string
	}{
		{nil, ""},
		{GTIDSet{{a, 1, 1}}, "01000000-0000-0000-0000-000000000000:1"},
		{GTIDSet{{a, 1, 5}, {a, 7, 9}, {b, 3, 3}}, "01000000-0000-0000-0000-000000000000:1-5:7-9,02000000-0000-0000-0000-000000000000:3"},
	} {
		if got := test.set.String(); got != test.text {
			t.Errorf("%s, want %s", got, test.text)
		}
		got, err := ParsePreviousGTIDs(one(t, AppendPreviousGTIDs(nil, 5, test.set)))
		if err != nil || got.String() != test.text {
			t.Errorf("%v, %v", got, err)
		}
	}
	for _, bad := range []GTIDSet{{{a, 0, 5}}, {{a, 2, 1}}, {{a, 1, 5}, {a, 6, 7}}, {{b, 1, 1}, {a, 1, 1}}, {{a, 1, 1<<64 - 1}}} {
		if _, err := ParseGTIDSet(AppendGTIDSet(nil, bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestControlRoundTrip(t *testing.T) {
	f := FormatDescription{ServerVersion: "8.4.0-x", Created: 9, Checksum: true}
	if got, err := ParseFormatDescription(one(t, AppendFormatDescription(nil, 5, &f))); err != nil || got != f {
		t.Fatalf("%+v, %v", got, err)
	}
	if xid, err := ParseXID(one(t, AppendXID(nil, 5, 77))); err != nil || xid != 77 {
		t.Fatal(xid, err)
	}
	if position, name, err := ParseRotate(one(t, AppendRotate(nil, 0, FlagArtificial, 4, "binlog.000002"))); err != nil || position != 4 || name != "binlog.000002" {
		t.Fatal(position, name, err)
	}
	e := one(t, AppendSchema(nil, 5, []byte{1, 2, 3}))
	if payload, err := ParseSchema(e); err != nil || !bytes.Equal(payload, []byte{1, 2, 3}) || e.Flags != FlagIgnorable {
		t.Fatal(payload, err)
	}
	if m, err := ParseTableMap(one(t, tableMapEvent())); err != nil || m != (TableMap{258, "shop", "t258", 3}) {
		t.Fatal(m, err)
	}
	if e := one(t, AppendStop(nil, 5)); e.Type != TypeStop || e.Type.String() != "Stop" || Type(99).String() != "Type_99" {
		t.Fatal(e)
	}
}

// parseAll calls every decoder of single events.
func parseAll(e *Event) (errs []error) {
	_, err1 := ParseQuery(e)
	_, err2 := ParseGTID(e)
	_, err3 := ParsePreviousGTIDs(e)
	_, err4 := ParseFormatDescription(e)
	_, _, err5 := ParseRotate(e)
	_, err6 := ParseXID(e)
	_, err7 := ParseSchema(e)
	_, err8 := e.TableID()
	_, err9 := ParseTableMap(e)
	return []error{err1, err2, err3, err4, err5, err6, err7, err8, err9}
}

// Events cut off anywhere, or with a bit turned, are read or refused with ErrCorrupt.
func TestDamagedControl(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, whole := range controlEvents() {
		for n := range len(whole) {
			b := bytes.Clone(whole[:n])
			if n >= HeaderSize {
				b = endEvent(b, 0)
			}
			damaged(t, b)
		}
		for range 500 {
			b := bytes.Clone(whole)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			damaged(t, b)
		}
	}
}

func damaged(t *testing.T, b []byte) {
	t.Helper()
	r := NewReader(b)
	var e Event
	for {
		more, err := r.Next(&e)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if !more || err != nil {
			return
		}
		for _, err := range parseAll(&e) {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	}
}

// controlEvents are one event of each type without rows.
func controlEvents() [][]byte {
	return [][]byte{
		AppendQuery(nil, 5, &Query{Schema: "shop", Text: []byte("DROP TABLE t"), TimeZone: "UTC", Micros: 3, XID: 9, DefaultUTF8MB4: 255}),
		AppendGTID(nil, 5, &GTID{UUID: UUID{1}, Number: 2, Length: 300}),
		AppendPreviousGTIDs(nil, 5, GTIDSet{{UUID{1}, 1, 5}, {UUID{1}, 7, 9}, {UUID{2}, 3, 3}}),
		AppendFormatDescription(nil, 5, &FormatDescription{ServerVersion: DefaultServerVersion}),
		AppendRotate(nil, 5, 0, 4, "binlog.000002"),
		AppendXID(nil, 5, 6),
		AppendSchema(nil, 5, []byte{1, 2}),
		AppendStop(nil, 5),
		tableMapEvent(),
	}
}

func tableMapEvent() []byte {
	l, err := NewLayout(smallTable(258), Options{FullMetadata: true})
	if err != nil {
		panic(err)
	}
	return l.AppendTableMap(nil, 5)
}

// pieces notes each call of Write.
type pieces struct{ all [][]byte }

func (p *pieces) Write(b []byte) (int, error) {
	p.all = append(p.all, bytes.Clone(b))
	return len(b), nil
}

// Each Write of a Writer is one event, with a position that is its end and a checksum
// that is right; a GTID's length is that of its transaction.
func TestWriter(t *testing.T) {
	l := newLayout(t, smallTable(1), Options{})
	for _, plain := range []bool{false, true} {
		var rows, out bytes.Buffer
		var r Rows
		r.Reset(&rows)
		r.Begin(1)
		check(t, r.Insert(l, smallRow(1, strings.Repeat("x", 250))))
		check(t, r.End())
		ddl := AppendQuery(AppendSchema(nil, 1, []byte("definition")), 1, &Query{Text: []byte("CREATE TABLE t (a INT)")})

		p := new(pieces)
		w := NewWriter(p, WriterOptions{ServerID: 3, NoChecksum: plain, ServerVersion: "8.0.11"})
		check(t, w.Begin(1, nil))
		for n, events := range [][]byte{rows.Bytes(), ddl, nil, AppendSchema(nil, 1, []byte("alone"))} {
			check(t, w.Transaction(&Transaction{Number: uint64(n + 1), Time: 1e6, Events: events}))
		}
		check(t, w.Rotate(1, "next"))
		for _, b := range p.all {
			out.Write(b)
		}
		var names []string
		var ends []uint64
		at := uint64(len(Magic))
		for i, b := range p.all[1:] {
			e := one(t, b)
			at += uint64(len(b))
			if uint64(e.LogPos) != at || e.ServerID != 3 {
				t.Fatalf("%v at %d, ends at %d, server %d", e.Type, e.LogPos, at, e.ServerID)
			}
			if tail := len(b) - checksumSize; !plain || i == 0 {
				if binary.LittleEndian.Uint32(b[tail:]) != crc32.ChecksumIEEE(b[:tail]) {
					t.Fatalf("%v: checksum", e.Type)
				}
			}
			names = append(names, e.Type.String())
			ends = append(ends, at)
		}
		if w.Position() != at || string(p.all[0]) != Magic {
			t.Fatal("position")
		}
		want := "Format_desc Previous_gtids Gtid Query Table_map Write_rows Xid Gtid Query Gtid Query Xid Gtid Query Xid Rotate"
		if got := strings.Join(names, " "); got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
		for i, last := range map[int]int{2: 6, 7: 8, 9: 11, 12: 14} {
			b := p.all[i+1]
			if !plain {
				b = endEvent(b[:len(b)-checksumSize], 0)
			}
			g, err := ParseGTID(one(t, b))
			check(t, err)
			if g.Length != ends[last]-ends[i-1] {
				t.Fatalf("transaction of %d bytes, should be %d", g.Length, ends[last]-ends[i-1])
			}
			if g.Statement != (i == 7) {
				t.Fatal("which one is a statement")
			}
		}
	}
}

// A dump over the network: a ROTATE that is in no file, then events from a position on.
func TestWriterDump(t *testing.T) {
	p := new(pieces)
	w := NewWriter(p, WriterOptions{})
	check(t, w.Announce(1000, "binlog.000007"))
	w.SetPosition(1000)
	check(t, w.Transaction(&Transaction{Number: 1}))
	first, second := one(t, p.all[0]), one(t, p.all[1])
	if first.LogPos != 0 || first.Flags != FlagArtificial || second.LogPos != 1000+second.Length {
		t.Fatal(first, second)
	}
}

func TestWriterErrors(t *testing.T) {
	w := NewWriter(new(pieces), WriterOptions{})
	if err := w.Transaction(&Transaction{Number: 1, Events: []byte("no event")}); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if w.Position() != 0 {
		t.Fatal("something was written")
	}
	rows := AppendXID(nil, 1, 1)
	for n := range 8 { // magic, description, previous, GTID, BEGIN, event, XID, rotate
		w := NewWriter(&failing{n: n}, WriterOptions{})
		err := errors.Join(w.Begin(1, nil), w.Transaction(&Transaction{Number: 1, Events: rows}), w.Rotate(1, "x"))
		if !errors.Is(err, errFull) {
			t.Fatalf("%d: %v", n, err)
		}
	}
}

func FuzzControl(f *testing.F) {
	for _, b := range controlEvents() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		damaged(t, b)
		if len(b) <= 1<<16 {
			damaged(t, endEvent(append(appendHeader(nil, Type(b2(b)), 1, 0), b...), 0))
		}
		if s, err := ParseGTIDSet(b); err == nil && !bytes.Equal(AppendGTIDSet(nil, s), b) {
			t.Fatalf("%v is written otherwise", s)
		}
	})
}

func b2(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}
