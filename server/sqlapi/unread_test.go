package sqlapi

import (
	"context"
	"encoding/base64"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
)

// onlyRoot is one account, without a password.
type onlyRoot struct{}

func (onlyRoot) Account(user, _, _ string) (auth.Account, bool, error) {
	return auth.Account{User: "root", Host: "%", Plugin: auth.SHA2}, user == "root", nil
}

// listening is a door that listens, and calls it by connections of their own.
func listening(t *testing.T, change ...func(*Options)) (*Door, *rigBackend, func() pb.Sql_SessionsClient) {
	t.Helper()
	a, err := auth.New(auth.Options{Source: onlyRoot{}})
	if err != nil {
		t.Fatal(err)
	}
	d, b := newDoor(t, append(change, func(o *Options) { o.Auth = a })...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Serve(l) }()
	return d, b, func() pb.Sql_SessionsClient {
		c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:")))
		s, err := pb.NewSqlClient(c).Sessions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// say sends a request of session 1.
func say(t *testing.T, s pb.Sql_SessionsClient, request uint64, m *pb.SqlSessionsRequest) {
	t.Helper()
	m.Session, m.Request = 1, request
	if err := s.Send(m); err != nil {
		t.Fatal(err)
	}
}

// heap is how much memory is in use, garbage not counted.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestKillOfUnread: a session whose client does not read its stream ends soon after a KILL, and gives back what it has.
func TestKillOfUnread(t *testing.T) {
	d, b, call := listening(t)
	s := call()
	say(t, s, 1, opening(&pb.SqlOpen{}))
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	m := text("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT REPEAT('x', 1000) AS s FROM r AS a, r AS b, r AS c")
	m.GetExecute().WindowBytes = maxWindow
	say(t, s, 2, m)
	eventually(t, "the stream stands still", func() bool {
		for _, st := range d.all() {
			if since := st.sendSince.Load(); since != 0 && d.clock.Load()-since > 1 {
				return true
			}
		}
		return false
	})
	if err := b.Manager.Kill(r.GetOpened().ConnectionId, true); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "the session is gone", func() bool { return b.Manager.Sessions() == 0 })
	if took := time.Since(began); took > stallMax/2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestUnread: clients that do not read a result of terabytes, one of them not even its stream, cost the node
// little memory; others go on meanwhile. They are ended, and leave nothing.
func TestUnread(t *testing.T) {
	d, b, call := listening(t)
	const (
		huge = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT REPEAT('x', 1000) AS s FROM r AS a, r AS b, r AS c"
		// allowed is what a client may cost: a window is sent, and not kept.
		allowed = 8 << 20
	)
	other := call()
	last := uint64(0)
	ask := func(m *pb.SqlSessionsRequest) {
		t.Helper()
		last++
		say(t, other, last, m)
		if r, err := other.Recv(); err != nil || r.Request != last || r.GetError() != nil {
			t.Fatal(r, err)
		}
	}
	ask(opening(&pb.SqlOpen{Schema: "test"}))
	ask(text("CREATE TABLE point (id INT PRIMARY KEY, s VARCHAR(20))"))
	ask(text("INSERT INTO point VALUES (1, 'one')"))
	reads := func() {
		t.Helper()
		for range 200 {
			ask(text("SELECT s FROM point WHERE id = ?", integer(1)))
		}
	}
	start := func() pb.Sql_SessionsClient {
		s := call()
		say(t, s, 1, opening(&pb.SqlOpen{}))
		if r, err := s.Recv(); err != nil || r.GetOpened() == nil {
			t.Fatal(r, err)
		}
		m := text(huge)
		m.GetExecute().WindowBytes = maxWindow
		say(t, s, 2, m)
		return s
	}
	reads()
	before := heap()
	start() // and is not read
	stingy := start()
	var taken atomic.Uint64
	var told *pb.SqlError
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			r, err := stingy.Recv()
			if err != nil {
				return
			}
			taken.Add(r.GetResult().GetBatch().GetWindowBytes())
			if told = r.GetError(); told.GetSessionEnded() {
				return
			}
		}
	})
	// Both stand still in the end, one in gRPC and one at its window, which has taken all that was sent: what is
	// on its way to it in this process is no memory of the node.
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		waits, stands := 0, 0
		for _, st := range d.all() {
			if st.sendSince.Load() != 0 {
				stands++
			}
			for _, s := range st.all() {
				s.q.Lock()
				sent := uint64(s.inFlight)
				s.q.Unlock()
				if s.waitSince.Load() != 0 && taken.Load() == sent {
					waits++
				}
			}
		}
		if waits == 1 && stands == 1 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d clients wait for credit, %d streams stand still", waits, stands)
		}
	}
	reads()
	if grown := heap() - before; grown > allowed {
		t.Errorf("two clients that do not read take %d KiB", grown>>10)
	}
	// After a minute they are ended.
	for _, st := range d.all() {
		if st.sendSince.Load() != 0 {
			st.sweep(d.clock.Load() + stallMax + 1)
			continue
		}
		for _, s := range st.all() {
			if most := s.waitMax.Load(); s.waitSince.Load() != 0 {
				s.sweep(d.clock.Load() + most + 1)
			}
		}
	}
	reading.Wait()
	if n := taken.Load(); told.GetNumber() != 1161 || n > maxWindow || n < maxWindow-2*partBytes {
		t.Errorf("%v, after %d bytes of a window of %d", told, n, maxWindow)
	}
	for until := time.Now().Add(patience); b.Manager.Sessions() != 1; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d sessions are left", b.Manager.Sessions()-1)
		}
	}
	reads()
}
