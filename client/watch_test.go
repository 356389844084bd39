package client_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers/ports"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/node"
)

// network is what a program's connections go through. Nodes can be frozen in it: as the kernel of a frozen
// process does, it takes what is sent to them and accepts connections, but nothing comes back, not even an end.
type network struct {
	mu     sync.Mutex
	frozen map[string]chan struct{} // closed when the node goes on
	dials  map[string]int
	sent   atomic.Int64 // bytes
}

func newNetwork() *network {
	return &network{frozen: map[string]chan struct{}{}, dials: map[string]int{}}
}

func (w *network) freeze(addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, addr := range addrs {
		w.frozen[addr] = make(chan struct{})
	}
}

func (w *network) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for addr, c := range w.frozen {
		close(c)
		delete(w.frozen, addr)
	}
}

// stands is closed when the node goes on; nil: it is not frozen.
func (w *network) stands(addr string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frozen[addr]
}

func (w *network) dialed(addr string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials[addr]
}

func (w *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dials[addr]++
	w.mu.Unlock()
	c := &link{w: w, addr: addr, closed: make(chan struct{})}
	var err error
	if c.Conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr); err != nil && w.stands(addr) == nil {
		return nil, err
	}
	if err != nil { // nobody listens any more, of which the program is to learn nothing
		a, b := net.Pipe()
		context.AfterFunc(ctx, func() { _ = b.Close() })
		c.Conn = a
	}
	return c, nil
}

type link struct {
	net.Conn
	w      *network
	addr   string
	closed chan struct{}
	once   sync.Once
}

func (c *link) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if stands := c.w.stands(c.addr); stands != nil {
		select {
		case <-stands:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func (c *link) Write(p []byte) (int, error) {
	c.w.sent.Add(int64(len(p)))
	if c.w.stands(c.addr) != nil {
		_, _ = c.Conn.Write(p)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *link) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// short is the silence in these tests: far below the 15 s after which gRPC's keepalive gives a connection up.
const short = 800 * time.Millisecond

// watched starts a group, and a program whose connections go through a network.
func watched(t *testing.T) (*network, []*node.Node, *client.DB) {
	t.Helper()
	nodes, err := startGroup(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			stop(n)
		}
	})
	w := newNetwork()
	t.Cleanup(w.thaw)
	return w, nodes, through(t, w, nodes)
}

func through(t *testing.T, w *network, nodes []*node.Node) *client.DB {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.GRPCAddr())
	}
	db, err := client.OpenWith(ctx, client.Options{Addrs: addrs, User: "root", Password: "secret", Patience: patience}, w.dial, short)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *client.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// TestFrozenLeader: the leader falls silent and another member is elected. All that a program can have under way at
// the old one ends or goes on, because the member that leads now says so.
func TestFrozenLeader(t *testing.T) {
	w, nodes, db := watched(t)
	exec(t, db, "CREATE DATABASE ice", "CREATE TABLE ice.t (id INT PRIMARY KEY, n INT)", "INSERT INTO ice.t VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
	i, lead := leader(t, nodes)
	held, err := db.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(ctx, "UPDATE ice.t SET n = n + 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	committing, err := db.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := committing.Exec(ctx, "UPDATE ice.t SET n = n + 1 WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(ctx, "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT a.n, REPEAT('x', 100) FROM s a, s b")
	if err != nil {
		t.Fatal(err)
	}
	other := through(t, w, nodes)
	exec(t, other, "DO 1") // in a session that waits for the next statement
	old := lead.GRPCAddr()
	w.freeze(old)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		if _, err := other.Exec(ctx, "SET @x = 1"); err == nil || !strings.Contains(err.Error(), "another member leads") {
			t.Errorf("a statement without a token: %v", err)
		}
	})
	tasks.Go(func() {
		if _, err := db.Exec(ctx, "UPDATE ice.t SET n = n + 1 WHERE id = 3"); err != nil {
			t.Errorf("a statement with a token: %v", err)
		}
	})
	tasks.Go(func() {
		if _, err := db.RunTx(ctx, nil, func(tx *client.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE ice.t SET n = n + 1 WHERE id = 4")
			return err
		}); err != nil {
			t.Errorf("RunTx: %v", err)
		}
	})
	tasks.Go(func() {
		_, err := held.Exec(ctx, "SELECT 1")
		var e *client.Error
		if !errors.As(err, &e) || e.Retry != client.Elsewhere {
			t.Errorf("a statement of a transaction: %v", err)
		}
	})
	tasks.Go(func() {
		_, err := committing.Commit(ctx)
		var e *client.Error
		if err != nil && (!errors.As(err, &e) || e.Retry != client.Elsewhere) {
			t.Errorf("COMMIT: %v", err)
		}
	})
	tasks.Go(func() {
		for rows.Next() {
		}
		if err := rows.Err(); err == nil || !strings.Contains(err.Error(), "another member leads") {
			t.Errorf("a result under way: %v", err)
		}
		_ = rows.Close()
	})
	over := make(chan struct{})
	go func() { tasks.Wait(); close(over) }()
	dials := w.dialed(old)
	select {
	case <-over:
		if lead.Leads() {
			t.Error("calls did not wait for a silent leader")
		}
	case <-time.After(3 * short):
		if got := w.dialed(old); got != dials && lead.Leads() {
			t.Errorf("%d connections to a leader that nobody has replaced, instead of %d", got, dials)
		}
	}
	cut, cancel := context.WithCancel(ctx)
	cancel()
	_ = lead.Stop(cut) // of which the program's network tells nothing
	nodes[i] = nodes[(i+1)%3]
	<-over
	fresh := through(t, w, nodes) // its first address falls silent as well
	for id, most := range []int{1: 0, 2: 1, 3: 1, 4: 1} {
		var n int
		if id == 0 {
			continue
		}
		if err := fresh.QueryRow(ctx, "SELECT n FROM ice.t WHERE id = ?", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > most || n < most && id > 2 {
			t.Errorf("row %d was changed %d times", id, n)
		}
	}
}

// TestFrozenLeaderOfOthers: the leader falls silent, and the member that is elected has joined since the program asked who
// is in the group.
func TestFrozenLeaderOfOthers(t *testing.T) {
	w, dir := newNetwork(), t.TempDir()
	nodes, err := startGroup(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, n := range nodes {
			stop(n)
		}
	}()
	db := through(t, w, nodes)
	exec(t, db, "CREATE DATABASE ice", "CREATE TABLE ice.t (id INT PRIMARY KEY)")
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	joined, err := start(dir+"/node3", founded[dir], fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	nodes = append(nodes, joined)
	_, lead := leader(t, nodes)
	w.freeze(lead.GRPCAddr())
	transfer(t, lead, joined)
	// The error tells why it was given up: in the end the keepalive of gRPC does so as well.
	if _, err := db.Exec(ctx, "SET @x = 1"); err == nil || !strings.Contains(err.Error(), "another member leads") {
		t.Errorf("a statement without a token: %v", err)
	}
	exec(t, db, "INSERT INTO ice.t VALUES (1)")
	w.thaw()
}

// transfer hands leadership to another member, as soon as it votes.
func transfer(t *testing.T, lead, to *node.Node) {
	t.Helper()
	var conns []*grpc.ClientConn
	for _, n := range []*node.Node{lead, to} {
		conn, err := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	as := metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:secret")))
	for until := time.Now().Add(patience); !to.Leads(); time.Sleep(10 * time.Millisecond) {
		r, err := pb.NewSqlClient(conns[1]).Node(as, &pb.SqlNodeRequest{})
		if err == nil {
			_, err = pb.NewAdminClient(conns[0]).Transfer(as, &pb.AdminTransferRequest{To: r.Member})
		}
		if err != nil && time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// TestFrozenFollower: reads at a follower that falls silent go on at others.
func TestFrozenFollower(t *testing.T) {
	w, nodes, db := watched(t)
	i, _ := leader(t, nodes)
	frozen := nodes[(i+1)%3]
	reader := db.Reader(client.Local())
	read := func() {
		var n int
		if err := reader.QueryRow(ctx, "SELECT 1").Scan(&n); err != nil {
			t.Errorf("a read: %v", err)
		}
	}
	for range 6 {
		read() // sessions at every member
	}
	dials := w.dialed(frozen.GRPCAddr())
	w.freeze(frozen.GRPCAddr())
	var tasks sync.WaitGroup
	for range 6 {
		tasks.Go(read)
	}
	tasks.Wait()
	if got := w.dialed(frozen.GRPCAddr()); got == dials {
		t.Error("the connection to the silent follower was not given up")
	}
	w.thaw()
}

// TestSlowIsNotFrozen: neither a statement that takes long, nor a program that hears nothing from anybody for a while,
// nor rows that nobody takes end a connection; and nothing is sent while no call waits.
func TestSlowIsNotFrozen(t *testing.T) {
	w, nodes, db := watched(t)
	exec(t, db, "CREATE DATABASE slow")
	var all []string
	total := func() (n int) {
		for _, addr := range all {
			n += w.dialed(addr)
		}
		return n
	}
	for _, n := range nodes {
		all = append(all, n.GRPCAddr())
	}
	dials := total()
	slow := fmt.Sprintf("SELECT SLEEP(%f)", (3 * short).Seconds())
	var tasks sync.WaitGroup
	for _, query := range []func(context.Context, string, ...any) *client.Row{db.QueryRow, db.Reader(client.Local()).QueryRow} {
		for range 3 {
			tasks.Go(func() {
				var n int
				if err := query(ctx, slow).Scan(&n); err != nil || n != 0 {
					t.Errorf("%s: %d (%v)", slow, n, err)
				}
			})
		}
	}
	tasks.Wait()
	_, lead := leader(t, nodes)
	tasks.Go(func() {
		var n int
		if err := db.QueryRow(ctx, "SELECT SLEEP(0.1)").Scan(&n); err != nil || n != 0 {
			t.Errorf("a program that heard nothing: %d (%v)", n, err)
		}
	})
	w.freeze(all...)
	time.Sleep(3 * short)
	w.thaw()
	tasks.Wait()
	rows, err := db.Query(ctx, "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 300) SELECT a.n, REPEAT('x', 100) FROM s a, s b")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * short)
	n := 0
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil || n != 300*300 {
		t.Errorf("%d rows (%v)", n, err)
	}
	_ = rows.Close()
	if got := total(); got != dials && lead.Leads() {
		t.Errorf("%d connections instead of %d", got, dials)
	}
	quiet := false
	for range 5 { // the group is asked for its members now and then
		before := w.sent.Load()
		time.Sleep(2 * short)
		quiet = quiet || w.sent.Load() == before
	}
	if !quiet {
		t.Error("something is sent all the time")
	}
}
