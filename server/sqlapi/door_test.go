package sqlapi

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
)

// patience is how long anything may take that has to happen in the end.
const patience = 30 * time.Second

// rigBackend is a node without a group.
type rigBackend struct {
	*sessiontest.Rig
	away   bool
	packet int64 // 0: 4 MiB
}

func (b *rigBackend) NextID() uint64 { return b.Manager.NextID() }
func (b *rigBackend) Open(info session.ConnectionInfo) (Session, error) {
	s, err := b.Manager.Open(info)
	if err != nil {
		return nil, err
	}
	return s, nil
}
func (b *rigBackend) Serves() bool                           { return !b.away }
func (b *rigBackend) Leader() string                         { return "10.0.0.9:17000" }
func (b *rigBackend) Group() [16]byte                        { return [16]byte{1} }
func (b *rigBackend) Node() *pb.SqlNodeResponse              { return &pb.SqlNodeResponse{} }
func (b *rigBackend) Used(entry.Token) (uint64, bool, error) { return 0, false, nil }
func (b *rigBackend) MaxPacket() int64                       { return cmp.Or(b.packet, 4<<20) }

type noAccounts struct{}

func (noAccounts) Account(string, string, string) (auth.Account, bool, error) {
	return auth.Account{}, false, nil
}

func newDoor(t testing.TB, change ...func(*Options)) (*Door, *rigBackend) {
	t.Helper()
	b := &rigBackend{Rig: sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"max_connections": "100000"}})}
	a, err := auth.New(auth.Options{Source: noAccounts{}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Backend: b, Auth: a}
	for _, f := range change {
		f(&o)
	}
	d := New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		d.Shutdown(ctx)
	})
	b.CreateSchema("test")
	return d, b
}

// wire is a stream in memory.
type wire struct {
	t        testing.TB
	ctx      context.Context
	requests chan *pb.SqlSessionsRequest
	answers  chan *pb.SqlSessionsResponse
	over     chan error
	last     map[uint64]uint64
}

func (w *wire) Context() context.Context { return w.ctx }

func (w *wire) RecvMsg(m any) error {
	r, ok := <-w.requests
	if !ok {
		return io.EOF
	}
	proto.Merge(m.(*pb.SqlSessionsRequest), r)
	return nil
}

func (w *wire) SendMsg(m any) error {
	w.answers <- proto.Clone(m.(*pb.SqlSessionsResponse)).(*pb.SqlSessionsResponse)
	return nil
}

func connect(t testing.TB, d *Door) *wire {
	who := &caller{info: session.ConnectionInfo{User: "root", Host: "localhost", Collation: collation}}
	return connectAs(t, d, func() (*caller, error) { return who, nil })
}

func connectAs(t testing.TB, d *Door, prove func() (*caller, error)) *wire {
	w := &wire{t: t, ctx: context.Background(), requests: make(chan *pb.SqlSessionsRequest, 1000), answers: make(chan *pb.SqlSessionsResponse, 10000),
		over: make(chan error, 1), last: map[uint64]uint64{}}
	go func() { w.over <- d.carry(prove, w) }()
	return w
}

// end closes the stream and waits for its handler.
func (w *wire) end() error {
	close(w.requests)
	select {
	case err := <-w.over:
		return err
	case <-time.After(patience):
		w.t.Fatal("the stream does not end")
		return nil
	}
}

// send sends a request with the next number and returns that.
func (w *wire) send(session uint64, m *pb.SqlSessionsRequest) uint64 {
	w.last[session]++
	m.Session, m.Request = session, w.last[session]
	w.requests <- m
	return m.Request
}

func (w *wire) answer() *pb.SqlSessionsResponse {
	w.t.Helper()
	select {
	case r := <-w.answers:
		return r
	case <-time.After(patience):
		w.t.Fatal("no answer comes")
		return nil
	}
}

// ask sends a request and returns the last part of its answer.
func (w *wire) ask(session uint64, m *pb.SqlSessionsRequest) *pb.SqlSessionsResponse {
	w.t.Helper()
	n := w.send(session, m)
	for {
		r := w.answer()
		if r.Session != session || r.Request != n {
			w.t.Fatalf("%v answers request %d of session %d", r, n, session)
		}
		if res := r.GetResult(); res == nil || res.Done != nil {
			return r
		}
	}
}

func opening(o *pb.SqlOpen) *pb.SqlSessionsRequest {
	return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Open{Open: o}}
}

func text(sql string, params ...*pb.SqlValue) *pb.SqlSessionsRequest {
	return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: sql, Params: params}}}}
}

func byHandle(n uint32, params ...*pb.SqlValue) *pb.SqlSessionsRequest {
	return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Handle: n, Params: params}}}}
}

func integer(n int64) *pb.SqlValue { return &pb.SqlValue{Kind: &pb.SqlValue_Int{Int: n}} }

func prepare(n uint32, sql string) *pb.SqlSessionsRequest {
	return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Prepare{Prepare: &pb.SqlPrepare{Handle: n, Text: sql}}}
}

// TestBadInput: every mistake has an early answer that says what to change, and the session goes on.
func TestBadInput(t *testing.T) {
	d, _ := newDoor(t)
	w := connect(t, d)
	if r := w.ask(1, opening(&pb.SqlOpen{Schema: "test"})); r.GetOpened() == nil {
		t.Fatal(r)
	}
	if r := w.ask(1, prepare(1, "SELECT ?")); r.GetPrepared().GetParams() != 1 {
		t.Fatal(r)
	}
	token := func(b []byte) *pb.SqlSessionsRequest {
		return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: "DO 1", CommitToken: b}}}}
	}
	value := func(v *pb.SqlValue) *pb.SqlSessionsRequest { return text("SELECT ?", v) }
	many := make([]*pb.SqlValue, maxParams+1)
	for i := range many {
		many[i] = integer(1)
	}
	read := func(c pb.SqlConsistency) *pb.SqlSessionsRequest {
		return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: "SELECT 1", Read: &pb.SqlRead{Consistency: c}}}}}
	}
	for _, c := range []struct {
		m      *pb.SqlSessionsRequest
		number uint32
		words  string
	}{
		{&pb.SqlSessionsRequest{}, 1210, "kind"},
		{&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{}}, 1210, "no statement"},
		{text(""), 1065, "empty"},
		{text("SELECT 1; SELECT 2"), 1064, "syntax"},
		{text("SELECT ?"), 1064, "'?'"},
		{text("SELECT ?", integer(1), integer(2)), 1210, "has 1 parameters, but 2"},
		{byHandle(1), 1210, "has 1 parameters, but 0"},
		{byHandle(7), 1243, "(7)"},
		{prepare(0, "SELECT 1"), 1210, "handle is 0"},
		{prepare(1, "SELECT 1"), 1210, "in use"},
		{prepare(2, "NONSENSE"), 1064, "syntax"},
		{byHandle(2), 1243, "its preparation failed"},
		{&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_ClosePrepared{ClosePrepared: &pb.SqlClosePrepared{Handle: 9}}}, 1243, "(9)"},
		{value(&pb.SqlValue{Kind: &pb.SqlValue_Decimal{Decimal: "1e400"}}), 1210, "parameter 1"},
		{value(&pb.SqlValue{Kind: &pb.SqlValue_Date{Date: "tomorrow"}}), 1210, "2026-11-21"},
		{value(&pb.SqlValue{Kind: &pb.SqlValue_Datetime{Datetime: "2026-11-21T10:00:00+02:00"}}), 1210, "no offset"},
		{value(&pb.SqlValue{Kind: &pb.SqlValue_Time{Time: "999:00:00"}}), 1210, "838:59:59"},
		{text("SELECT 1", many...), 1210, "has 0 parameters"},
		{token([]byte("short")), 1210, "16 bytes"},
		{token(make([]byte, 16)), 1210, "version 7"},
		{read(99), 1210, "consistency"},
		{&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{Isolation: 99}}}, 1210, "isolation"},
		{text(strings.Repeat("x", 5<<20)), 1153, "max_allowed_packet"},
		{opening(&pb.SqlOpen{}), 1210, "is open"},
		{text("SELECT * FROM nothing"), 1146, "nothing"},
	} {
		n := c.m.GetRequest()
		r := w.ask(1, c.m)
		if e := r.GetError(); e.GetNumber() != c.number || !strings.Contains(e.GetMessage(), c.words) || e.GetSessionEnded() {
			t.Errorf("request %d: %v, not %d with %q", n, r, c.number, c.words)
		}
	}
	// The numbers of requests rise, and are not 0; sessions have to be open.
	for _, m := range []*pb.SqlSessionsRequest{{Session: 1, Request: 1}, {Session: 1}, {Session: 2, Request: 1}, {Request: 1}} {
		m.Kind = &pb.SqlSessionsRequest_Ping{Ping: &pb.SqlPing{}}
		w.requests <- m
		if e := w.answer().GetError(); e == nil || e.Number != 1210 && e.Number != 1094 {
			t.Errorf("%v: %v", m, e)
		}
	}
	if r := w.ask(1, byHandle(1, integer(7))); r.GetResult().GetBatch().GetColumns()[0].GetInts()[0] != 7 {
		t.Error(r)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// TestPipeline: requests are answered in order; after one that fails those that depend on it are
// not run; cancelled ones neither.
func TestPipeline(t *testing.T) {
	d, _ := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{Schema: "test"}))
	w.ask(1, text("CREATE TABLE t (id INT PRIMARY KEY)"))
	ifOK := func(m *pb.SqlSessionsRequest) *pb.SqlSessionsRequest { m.IfOk = true; return m }
	sleep := w.send(1, text("SELECT SLEEP(1000)"))
	w.send(1, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{}}})
	w.send(1, ifOK(text("INSERT INTO t VALUES (1)")))
	w.send(1, ifOK(text("INSERT INTO t VALUES (1)")))
	w.send(1, ifOK(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Commit{Commit: &pb.SqlCommit{}}}))
	rollback := w.send(1, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Rollback{Rollback: &pb.SqlRollback{}}})
	dropped := w.send(1, text("INSERT INTO t VALUES (2)"))
	count := w.send(1, text("SELECT COUNT(*) FROM t"))
	for _, n := range []uint64{dropped, sleep} {
		w.requests <- &pb.SqlSessionsRequest{Session: 1, Kind: &pb.SqlSessionsRequest_Cancel{Cancel: &pb.SqlCancel{Request: n}}}
	}
	want := []uint32{1317, 0, 0, 1062, 1317, 0, 1317, 0}
	for i, number := range want {
		r := w.answer()
		if r.Request != sleep+uint64(i) || r.GetError().GetNumber() != number {
			t.Errorf("answer %d: %v, not error %d", i, r, number)
		}
		if r.Request == count && r.GetResult().Batch.Columns[0].Ints[0] != 0 {
			t.Error(r)
		}
	}
	_ = rollback
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// TestWindow: a client that takes nothing gets no more than its window, and stops nobody else.
func TestWindow(t *testing.T) {
	d, b := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{}))
	w.ask(1, text("SET SESSION cte_max_recursion_depth = 100000"))
	m := text("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT n, REPEAT('x', 100) AS s FROM r")
	m.GetExecute().WindowBytes = 1 // the least is more
	request := w.send(1, m)
	var taken uint64
	rows := uint32(0)
	take := func() *pb.SqlResult {
		r := w.answer()
		if r.Request != request || r.Session != 1 {
			t.Fatal(r)
		}
		taken += r.GetResult().GetBatch().GetWindowBytes()
		rows += r.GetResult().GetBatch().GetRows()
		return r.GetResult()
	}
	for take(); len(w.answers) > 0; {
		take()
	}
	if taken > minWindow {
		t.Errorf("%d bytes came, the window is %d", taken, minWindow)
	}
	if r := func() *pb.SqlSessionsResponse { w.ask(2, opening(&pb.SqlOpen{})); return w.ask(2, text("SELECT 1")) }(); r.GetResult() == nil {
		t.Error(r)
	}
	if n := len(b.Manager.Processes()); n != 2 {
		t.Errorf("%d sessions are in the process list", n)
	}
	credit := uint64(0)
	for done := false; !done; {
		w.requests <- &pb.SqlSessionsRequest{Session: 1, Kind: &pb.SqlSessionsRequest_Credit{Credit: &pb.SqlCredit{Request: request, Bytes: taken - credit}}}
		credit = taken
		done = take().Done != nil
	}
	if rows != 20000 {
		t.Errorf("%d rows", rows)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// TestEnds: a stream's end, the loss of the lead, KILL and a shutdown end sessions, and roll back.
func TestEnds(t *testing.T) {
	d, b := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{Schema: "test"}))
	w.ask(1, text("CREATE TABLE t (id INT PRIMARY KEY)"))
	w.ask(1, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{}}})
	w.ask(1, text("INSERT INTO t VALUES (1)"))
	w.send(1, text("SELECT SLEEP(1000)"))
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if n := b.Manager.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	w = connect(t, d)
	id := w.ask(1, opening(&pb.SqlOpen{Schema: "test"})).GetOpened().GetConnectionId()
	if r := w.ask(1, text("SELECT COUNT(*) FROM t")); r.GetResult().GetBatch().GetColumns()[0].GetInts()[0] != 0 {
		t.Error(r)
	}
	w.ask(2, opening(&pb.SqlOpen{ReadOnly: true}))
	w.ask(3, opening(&pb.SqlOpen{}))
	ended := func(r *pb.SqlSessionsResponse, session uint64, number uint32) {
		t.Helper()
		if r.Session != session || r.Request != 0 || r.GetError().GetNumber() != number || !r.GetError().GetSessionEnded() {
			t.Errorf("%v, not the end of session %d by %d", r, session, number)
		}
		if number == 1053 && (r.GetError().GetLeader() == "" || r.GetError().GetRetry() != pb.SqlRetry_SQL_RETRY_ELSEWHERE) {
			t.Error(r)
		}
	}
	killing := w.send(3, text(fmt.Sprint("KILL ", id)))
	killed, end := w.answer(), w.answer()
	if killed.Session != 3 { // two sessions: either may be heard of first
		killed, end = end, killed
	}
	if killed.Session != 3 || killed.Request != killing || killed.GetResult().GetDone() == nil {
		t.Errorf("%v does not answer KILL", killed)
	}
	ended(end, 1, 1317)
	b.away = true
	d.DropWriters()
	ended(w.answer(), 3, 1053)
	if e := w.ask(4, opening(&pb.SqlOpen{})).GetError(); e.GetNumber() != 1053 || e.GetLeader() == "" {
		t.Error(e)
	}
	if r := w.ask(2, text("SELECT 1")); r.GetResult() == nil {
		t.Error(r)
	}
	go d.Shutdown(context.Background())
	ended(w.answer(), 2, 1053)
	if err := <-w.over; d.known(err).Number != 1053 {
		t.Error(err)
	}
	close(w.requests)
}

// TestIdleSessions: 5,000 sessions that do nothing cost little.
func TestIdleSessions(t *testing.T) {
	d, _ := newDoor(t)
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := memory()
	var streams []*wire
	for range 50 {
		w := connect(t, d)
		streams = append(streams, w)
		for n := uint64(1); n <= 100; n++ {
			w.ask(n, opening(&pb.SqlOpen{Schema: "test"}))
			w.ask(n, text("SELECT 1"))
		}
	}
	used := memory() - before
	t.Logf("%d KiB for each of 5,000 sessions", used/5000/1024)
	if used > 100<<20 {
		t.Errorf("5,000 idle sessions take %d MiB", used>>20)
	}
	for _, w := range streams {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzStream: whatever messages come, the stream ends well and leaves nothing behind.
func FuzzStream(f *testing.F) {
	add := func(all ...*pb.SqlSessionsRequest) {
		var b []byte
		for i, m := range all {
			if m.Session == 0 {
				m.Session, m.Request = 1, uint64(i+1)
			}
			one, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(one))), one...)
		}
		f.Add(b)
	}
	add(opening(&pb.SqlOpen{Schema: "test"}), text("CREATE TABLE t (id INT)"), prepare(1, "INSERT INTO t VALUES (?)"), byHandle(1, integer(1)), text("SELECT * FROM t WHERE id = ?", integer(1)))
	add(opening(&pb.SqlOpen{ReadOnly: true, Attributes: map[string]string{"a": "b"}}), &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{Isolation: 3, ReadOnly: true,
		Read: &pb.SqlRead{Consistency: 2, AtLeast: 1}}}}, text("SELECT 1"), &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Commit{}}, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Close{}})
	add(opening(nil), text("SELECT SLEEP(9)"), &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Cancel{Cancel: &pb.SqlCancel{Request: 2}}},
		&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Credit{Credit: &pb.SqlCredit{Request: 2, Bytes: 1 << 63}}}, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Reset_{}},
		&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Rollback{}}, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_ClosePrepared{}})
	add(opening(&pb.SqlOpen{}), &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: "SELECT ?, ?, ?, ?", TimeoutMs: 1,
		Params: []*pb.SqlValue{{Kind: &pb.SqlValue_Decimal{Decimal: "1.5"}}, {Kind: &pb.SqlValue_Date{Date: "2026-01-01"}}, {Kind: &pb.SqlValue_Time{Time: "1:2:3"}}, nil}}, WindowBytes: 1}}})
	d, b := newDoor(f)
	var once sync.Mutex
	f.Fuzz(func(t *testing.T, data []byte) {
		once.Lock()
		defer once.Unlock()
		w := connect(t, d)
		go func() {
			for range w.answers {
			}
		}()
		for n := 0; len(data) >= 2 && n < 50; n++ {
			size := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			m := new(pb.SqlSessionsRequest)
			if proto.Unmarshal(data[2:2+size], m) == nil {
				w.requests <- m
			}
			data = data[2+size:]
		}
		_ = w.end()
		close(w.answers)
		if n := b.Manager.Sessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}
