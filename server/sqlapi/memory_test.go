package sqlapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

func (m *memory) now() (taken, held int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken, m.held
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if runtime.GC(); time.Now().After(until) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// TestMemory: what is taken beyond what is free is held of the budget, and all of it is given back.
func TestMemory(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	b := new(temptable.Budget)
	b.SetLimit(64 << 20)
	m := &memory{budget: b}
	all, one := m.most()
	conns := [3]connection{}
	var each [3][]int64
	refused := 0
	for range 20_000 {
		i := r.IntN(len(conns))
		c, list := &conns[i], &each[i]
		if n := int64(r.IntN(4 << 20)); r.IntN(2) == 0 {
			if m.take(c, n) {
				*list = append(*list, n)
			} else {
				refused++
			}
		} else if k := len(*list); k > 0 {
			m.take(c, -(*list)[k-1])
			*list = (*list)[:k-1]
		}
		if c.taken > one || m.taken > all || b.Used() != max(m.taken-memoryFree, 0) || b.Used() != m.held {
			t.Fatalf("seed %d: %d of a connection, %d of all, %d held, %d in the budget", seed, c.taken, m.taken, m.held, b.Used())
		}
	}
	for i := range conns {
		for _, n := range each[i] {
			m.take(&conns[i], -n)
		}
	}
	if m.force(nil, 80<<20); m.taken != 80<<20 || b.Used() != 0 || m.take(nil, 1) {
		t.Errorf("%d taken, %d in the budget", m.taken, b.Used())
	}
	if m.take(nil, -80<<20); m.taken != 0 || m.held != 0 || b.Used() != 0 || refused == 0 {
		t.Errorf("seed %d: %d taken, %d held, refused %d times", seed, m.taken, m.held, refused)
	}
}

// slowPipe is a call whose message comes in part.
type slowPipe struct {
	header []byte
	data   []byte
	more   chan struct{} // closed when the rest may come
	at     int
	stops  int    // where it waits
	packed string // by what it is compressed
}

func (p *slowPipe) ReadMessageHeader(h []byte) error {
	if p.header == nil {
		return io.EOF
	}
	copy(h, p.header)
	p.header = nil
	return nil
}

func (p *slowPipe) Read(n int) (mem.BufferSlice, error) {
	if p.at+n > p.stops {
		<-p.more
	}
	switch {
	case p.at == len(p.data):
		return nil, io.EOF
	case p.at+n > len(p.data):
		return nil, io.ErrUnexpectedEOF
	}
	p.at += n
	return mem.BufferSlice{mem.SliceBuffer(p.data[p.at-n : p.at])}, nil
}

func (p *slowPipe) RecvCompress() string { return p.packed }

func (p *slowPipe) Context() context.Context { return context.Background() }
func (p *slowPipe) RecvMsg(any) error        { return errors.New("unused") }

func pipeOf(t *testing.T, m proto.Message, stops int) *slowPipe {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &slowPipe{header: binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), data: b, more: make(chan struct{}), stops: stops}
}

// TestMessagesAreCountedAsTheyCome: messages that come in part take what has come, of what connections and the node may have; others are
// passed over, and say whose they are.
func TestMessagesAreCountedAsTheyCome(t *testing.T) {
	b := new(temptable.Budget)
	b.SetLimit(40 << 20)
	d := &Door{memory: memory{budget: b}}
	long := text("SELECT '" + strings.Repeat("x", 20<<20) + "'")
	long.Session, long.Request = 7, 8
	type answer struct {
		m   *pb.SqlSessionsRequest
		err error
	}
	receive := func(p *slowPipe, c *connection) chan answer {
		got := make(chan answer, 1)
		in := &intake{d: d, conn: c, link: p, pipe: p, most: func() int64 { return 64 << 20 }}
		go func() {
			m := new(pb.SqlSessionsRequest)
			err := in.receive(m)
			got <- answer{m, err}
		}()
		return got
	}
	// Much is promised, little comes.
	var pipes []*slowPipe
	var answers []chan answer
	for range 8 {
		p := pipeOf(t, long, 1<<20)
		pipes, answers = append(pipes, p), append(answers, receive(p, &connection{}))
	}
	eventually(t, "all wait for the rest", func() bool { taken, _ := d.memory.now(); return taken >= 8<<20 })
	if taken, _ := d.memory.now(); taken > 8*(1<<20+longPiece) {
		t.Errorf("%d bytes are taken for 8 MiB", taken)
	}
	// Now all come whole: there is no room for that.
	for _, p := range pipes {
		close(p.more)
	}
	for i, a := range answers {
		got := <-a
		var passed *refused
		if errors.As(got.err, &passed); got.err != nil && (passed == nil || passed.session != 7 || passed.request != 8 || pipes[i].at != len(pipes[i].data)) {
			t.Errorf("%v", got.err)
		}
	}
	taken, held := d.memory.now()
	if taken != 0 || held != 0 || b.Used() != 0 {
		t.Errorf("%d bytes are taken, %d held", taken, held)
	}
	// One alone, of a size that a connection may have, is taken.
	short := text(strings.Repeat("x", 5<<20))
	got := <-receive(pipeOf(t, short, 1<<30), &connection{})
	if got.err != nil || !proto.Equal(got.m, short) {
		t.Error(got.err)
	}
	// So many parameters that they would take more than their bytes let one think.
	many := text("")
	for range 1 << 20 {
		many.GetExecute().Statement.Params = append(many.GetExecute().Statement.Params, &pb.SqlValue{})
	}
	if got := <-receive(pipeOf(t, many, 1<<30), &connection{}); got.err == nil || !strings.Contains(got.err.Error(), "memory") {
		t.Errorf("a million parameters: %v", got.err)
	}
	if taken, _ := d.memory.now(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
	if got := <-receive(pipeOf(t, &pb.SqlSessionsRequest{Session: 3, Request: 4}, 1<<30), nil); got.err != nil || got.m.Session != 3 || got.m.Request != 4 {
		t.Errorf("%v, %v", got.m, got.err)
	}
}

// taking receives a message from a pipe.
func taking(d *Door, p *slowPipe) (*pb.SqlSessionsRequest, error) {
	in := &intake{d: d, conn: &connection{}, link: p, pipe: p, most: func() int64 { return 32 << 20 }}
	m := new(pb.SqlSessionsRequest)
	return m, in.receive(m)
}

// TestMessagesThatBreakOff: a client that ends its stream within a message has not ended it well, wherever that is.
func TestMessagesThatBreakOff(t *testing.T) {
	b := new(temptable.Budget)
	b.SetLimit(16 << 20)
	d := &Door{memory: memory{budget: b}}
	for _, c := range []struct{ size, sent int }{
		{1000, 0}, {1000, 10}, // a short one
		{1 << 20, 0}, {1 << 20, shortMessage}, {1 << 20, shortMessage + 1}, // a long one
		{30 << 20, 14 << 20}, {30 << 20, 14<<20 + 1}, // one that there is no room for
	} {
		p := pipeOf(t, text(strings.Repeat("x", c.size)), 1<<30)
		p.data = p.data[:c.sent]
		if _, err := taking(d, p); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "EOF") {
			t.Errorf("%+v: %v", c, err)
		}
		if taken, _ := d.memory.now(); taken != 0 {
			t.Errorf("%+v: %d bytes are taken", c, taken)
		}
	}
	if _, err := taking(d, &slowPipe{}); err != io.EOF {
		t.Errorf("between messages: %v", err)
	}
}

// TestPackedMessages: a message that is compressed may be as long as others, and takes as much room, whatever it was packed to.
func TestPackedMessages(t *testing.T) {
	b := new(temptable.Budget)
	b.SetLimit(24 << 20)
	d := &Door{memory: memory{budget: b}}
	pack := func(statement string) (*slowPipe, *pb.SqlSessionsRequest) {
		m := text(statement)
		m.Session, m.Request = 7, 8
		p := pipeOf(t, m, 1<<30)
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(p.data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		p.packed, p.data = "gzip", out.Bytes()
		p.header = binary.BigEndian.AppendUint32([]byte{1}, uint32(out.Len()))
		return p, m
	}
	packed := func(size int) (*slowPipe, *pb.SqlSessionsRequest) { return pack(strings.Repeat("x", size)) }
	for _, size := range []int{10, shortMessage, 3 << 20} {
		p, m := packed(size)
		if got, err := taking(d, p); err != nil || !proto.Equal(got, m) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	p, _ := packed(20 << 20)
	var passed *refused
	if _, err := taking(d, p); !errors.As(err, &passed) || passed.session != 7 || passed.request != 8 {
		t.Errorf("without room: %v", err)
	}
	// Nor does one end the stream that there is no room for as it comes; and short ones need none.
	random := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	p, _ = pack(base64.StdEncoding.EncodeToString(random))
	if passed = nil; len(p.data) < 18<<20 {
		t.Fatalf("it is packed to %d bytes", len(p.data))
	}
	if _, err := taking(d, p); !errors.As(err, &passed) || passed.session != 7 || passed.request != 8 {
		t.Errorf("without room for what comes: %v", err)
	}
	most, _ := d.memory.most()
	other := new(connection)
	d.memory.force(other, most)
	p, m := packed(1000)
	if got, err := taking(d, p); err != nil || !proto.Equal(got, m) {
		t.Errorf("a short one beside full memory: %v", err)
	}
	d.memory.take(other, -most)
	p, _ = packed(33 << 20)
	b.SetLimit(1 << 30)
	var told *sqlerr.Error
	if _, err := taking(d, p); !errors.As(err, &told) || told.Number != sqlerr.NetPacketTooLarge {
		t.Errorf("too long: %v", err)
	}
	for name, change := range map[string]func(*slowPipe){
		"half of it":              func(p *slowPipe) { p.data = p.data[:len(p.data)/2]; p.header[4] = byte(len(p.data)) },
		"another form":            func(p *slowPipe) { p.header[0] = 2 },
		"packed by nothing known": func(p *slowPipe) { p.packed = "" },
	} {
		p, _ := packed(100)
		change(p)
		if _, err := taking(d, p); status.Code(err) != codes.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if taken, _ := d.memory.now(); taken != 0 {
		t.Errorf("%d bytes are taken", taken)
	}
}

// TestClientsThatCompress: a client may compress its requests, in a stream and in calls.
func TestClientsThatCompress(t *testing.T) {
	d, _, _ := listening(t)
	c, ctx := dialed(t, d)
	statement := "SELECT LENGTH('" + strings.Repeat("x", 1<<20) + "')"
	s, err := pb.NewSqlClient(c).Sessions(ctx, grpc.UseCompressor("gzip"))
	if err != nil {
		t.Fatal(err)
	}
	say(t, s, 1, opening(&pb.SqlOpen{}))
	if r, err := s.Recv(); err != nil || r.GetOpened() == nil {
		t.Fatal(r, err)
	}
	say(t, s, 2, text(statement))
	if r, err := s.Recv(); err != nil || r.GetResult().GetBatch().GetColumns()[0].Ints[0] != 1<<20 {
		t.Error(r, err)
	}
	r, err := pb.NewSqlClient(c).Execute(ctx, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: statement}}, grpc.UseCompressor("gzip"))
	if err != nil || r.Batch.Columns[0].Ints[0] != 1<<20 {
		t.Error(r, err)
	}
}

// TestWideResultsAreGivenUp: of a result with thousands of columns a session keeps no more than of others.
func TestWideResultsAreGivenUp(t *testing.T) {
	cols := make([]session.ResultColumn, 4096)
	for i := range cols {
		cols[i].Type = &types.Type{Kind: types.KindInt}
	}
	var e encoder
	if e.begin(cols, time.UTC, nil, 1<<20); !e.isWide() {
		t.Errorf("%d columns are not wide", len(cols))
	}
	if e.shrink(); cap(e.vectors) > 2*keptVectors || len(e.vectors) != keptVectors {
		t.Errorf("%d vectors are kept, and room for %d", len(e.vectors), cap(e.vectors))
	}
	if e.begin(cols[:keptVectors], time.UTC, nil, 1<<20); e.isWide() {
		t.Error("what is kept is wide")
	}
	d, _ := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{}))
	if r := w.ask(1, text("SELECT 1"+strings.Repeat(", 1", 2000))); r.GetResult().GetDone() == nil {
		t.Fatalf("%.300v", r)
	}
	var s *sess
	for _, st := range d.all() {
		st.mu.Lock()
		s = st.sessions[1]
		st.mu.Unlock()
	}
	eventually(t, "the worker is done", func() bool {
		s.q.Lock()
		defer s.q.Unlock()
		return !s.scheduled
	})
	if len(s.out.enc.vectors) != keptVectors {
		t.Errorf("a session keeps %d vectors", len(s.out.enc.vectors))
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// dialed is a connection to a door of its own.
func dialed(t *testing.T, d *Door) (*grpc.ClientConn, context.Context) {
	t.Helper()
	addr := ""
	eventually(t, "the door listens", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.listener != nil {
			addr = d.listener.Addr().String()
		}
		return addr != ""
	})
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, metadata.AppendToOutgoingContext(context.Background(), "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:")))
}

// TestNoRoomForMessages: who sends a message that there is no memory for hears so, and goes on; and nobody who has not said who he is
// sends a long one at all.
func TestNoRoomForMessages(t *testing.T) {
	budget := new(temptable.Budget)
	budget.SetLimit(24 << 20)
	d, b, call := listening(t, func(o *Options) { o.Memory = budget })
	b.packet = 64 << 20
	s := call()
	say(t, s, 1, opening(&pb.SqlOpen{}))
	expect := func(request uint64, number uint32) {
		t.Helper()
		r, err := s.Recv()
		if err != nil || r.Session != 1 || r.Request != request || r.GetError().GetNumber() != number {
			t.Errorf("%.300v, %v: not error %d for request %d", r, err, number, request)
		}
	}
	expect(1, 0)
	comment := func(n int) string { return "DO 1 /* " + strings.Repeat("x", n) + " */" }
	say(t, s, 2, text(comment(1<<20)))
	expect(2, 0)
	say(t, s, 3, text(comment(20<<20)))
	expect(3, 1041)
	m := text("DO 1")
	m.IfOk = true
	say(t, s, 4, m) // the one before has not run
	expect(4, 1317)
	say(t, s, 5, text("DO 1"))
	expect(5, 0)
	c, ctx := dialed(t, d)
	_, err := pb.NewSqlClient(c).Execute(ctx, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: comment(20 << 20)}})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "temptable_max_ram") {
		t.Errorf("%v", err)
	}
	if _, err := pb.NewSqlClient(c).Execute(ctx, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: comment(2 << 20)}}); err != nil {
		t.Error(err)
	}
	if _, err := pb.NewSqlClient(c).Node(ctx, &pb.SqlNodeRequest{}); err != nil {
		t.Error(err)
	}
	_, err = healthpb.NewHealthClient(c).Check(context.Background(), &healthpb.HealthCheckRequest{Service: strings.Repeat("x", otherMessage)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a stranger's long message: %v", err)
	}
	if _, err = healthpb.NewHealthClient(c).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	eventually(t, "all is given back", func() bool { taken, _ := d.memory.now(); return taken == 0 && budget.Used() == 0 })
}

// TestManyStrangers: calls that anybody may make have so many places, and have them back.
func TestManyStrangers(t *testing.T) {
	d, _, _ := listening(t)
	c, _ := dialed(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	refused := 0
	for range maxOthers {
		w, err := healthpb.NewHealthClient(c).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Recv(); status.Code(err) == codes.ResourceExhausted {
			refused++
		}
	}
	if refused == 0 || refused > maxOthers/2 {
		t.Errorf("%d of %d are refused", refused, maxOthers)
	}
	cancel()
	eventually(t, "the places are free", func() bool { return d.others.Len() == 0 })
}

// TestAnswersNobodyTakes: a long answer is counted for as long as its client does not take it, also when the call has ended; after a while
// the connection is closed.
func TestAnswersNobodyTakes(t *testing.T) {
	budget := new(temptable.Budget)
	budget.SetLimit(256 << 20)
	d, b, _ := listening(t, func(o *Options) { o.Memory = budget })
	b.packet = 64 << 20
	const size = 6 << 20
	ask := func(how ...grpc.CallOption) (grpc.ClientStream, *grpc.ClientConn) {
		c, ctx := dialed(t, d)
		s, err := c.NewStream(ctx, &grpc.StreamDesc{}, pb.Sql_Execute_FullMethodName, how...)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.SendMsg(&pb.SqlExecuteRequest{MaxResultBytes: 10 << 20,
			Statement: &pb.SqlStatement{Text: fmt.Sprintf("SELECT REPEAT('x', %d)", size)}}), s.CloseSend()); err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	for _, how := range []string{"taken", "closed by the client", "closed", "compressed"} {
		var options []grpc.CallOption
		if how == "compressed" { // only the request: gRPC would keep a compressed answer that is not counted
			options = append(options, grpc.UseCompressor("gzip"))
		}
		s, c := ask(options...)
		eventually(t, "the answer waits", func() bool { taken, _ := d.memory.now(); return taken >= size })
		eventually(t, "the call has ended", func() bool { return b.Manager.Sessions() == 0 })
		if taken, _ := d.memory.now(); taken < size {
			t.Errorf("%s: %d bytes are counted when the call has ended", how, taken)
		}
		switch how {
		case "taken", "compressed":
			r := new(pb.SqlExecuteResponse)
			if err := s.RecvMsg(r); err != nil || len(r.Batch.Columns[0].Bytes) != size {
				t.Errorf("%v", err)
			}
		case "closed by the client":
			_ = c.Close()
		case "closed":
			d.sweepUnread(d.clock.Load() + unreadMax + 1)
			if err := s.RecvMsg(new(pb.SqlExecuteResponse)); status.Code(err) != codes.Unavailable {
				t.Errorf("%v", err)
			}
		}
		eventually(t, how+": all is given back", func() bool { taken, _ := d.memory.now(); return taken == 0 && budget.Used() == 0 })
	}
}

// TestLongRows: no more of a row is made than a packet, or the memory of statements, has room for; and nothing of it stays.
func TestLongRows(t *testing.T) {
	d, b := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{}))
	const columns = 60
	long := func(n int) string {
		return "SELECT j" + strings.Repeat(", j", columns-1) +
			fmt.Sprintf(" FROM (SELECT CAST(CONCAT('[', REPEAT('1,', %d), '1]') AS JSON) AS j UNION ALL SELECT '1') AS x", n)
	}
	used := b.Manager.StatementMemory().Used
	for i, c := range []struct {
		n      int
		packet int
		memory int
		number uint32
	}{
		{100_000, 4 << 20, 1 << 30, 1153}, // 18 MB
		{100_000, 64 << 20, 8 << 20, 3170},
		{1000, 64 << 20, 8 << 20, 0},
	} {
		w.ask(1, text(fmt.Sprintf("SET GLOBAL temptable_max_ram = %d, max_allowed_packet = %d", c.memory, c.packet)))
		id := uint64(i) + 2
		w.ask(id, opening(&pb.SqlOpen{}))
		n := w.send(id, text(long(c.n)))
		for {
			r := w.answer()
			if e := r.GetError(); r.Session != id || r.Request != n || e != nil || r.GetResult().GetDone() != nil {
				if e.GetNumber() != c.number {
					t.Errorf("%+v: %.300v", c, r)
				}
				break
			}
		}
		var s *sess
		for _, st := range d.all() {
			st.mu.Lock()
			s = st.sessions[id]
			st.mu.Unlock()
		}
		eventually(t, "the worker is done", func() bool {
			s.q.Lock()
			defer s.q.Unlock()
			return !s.scheduled
		})
		kept := 0
		for _, v := range s.out.enc.vectors {
			kept += cap(v.Bytes)
		}
		if used() != 0 || kept > keptInVectors || s.out.enc.held != 0 {
			t.Errorf("%+v: %d bytes are counted, %d kept", c, used(), kept)
		}
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}
