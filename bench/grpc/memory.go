package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// memory is what the server's process takes, in bytes.
type memory struct{ resident, heap int64 }

func (m memory) minus(o memory) memory { return memory{m.resident - o.resident, m.heap - o.heap} }

func (m memory) most(o memory) memory {
	return memory{max(m.resident, o.resident), max(m.heap, o.heap)}
}

func (m memory) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.1f MiB of Go's heap", float64(m.resident)/(1<<20), float64(m.heap)/(1<<20))
}

func (b *bench) get(path string) (io.ReadCloser, error) {
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", b.node.HTTP, path))
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		_ = r.Body.Close()
		return nil, fmt.Errorf("%s: %s", path, r.Status)
	}
	return r.Body, nil
}

// memory asks the server for its memory.
func (b *bench) memory() (m memory, err error) {
	body, err := b.get("metrics")
	if err != nil {
		return m, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		var n float64
		switch _, err := fmt.Sscan(value, &n); {
		case err != nil:
		case name == "process_resident_memory_bytes":
			m.resident = int64(n)
		case name == "go_heap_bytes":
			m.heap = int64(n)
		}
	}
	if m.resident == 0 || m.heap == 0 {
		return m, errors.Join(lines.Err(), errors.New("the server's metrics do not tell its memory"))
	}
	return m, lines.Err()
}

// settled is the memory after what is garbage was collected.
func (b *bench) settled() (memory, error) {
	for range 2 { // what the first collection finds in pools goes with the second
		body, err := b.get("debug/pprof/heap?gc=1")
		if err != nil {
			return memory{}, err
		}
		_, err = io.Copy(io.Discard, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return memory{}, err
		}
	}
	return b.memory()
}

// Idle sessions, as in the target.
const (
	idleConnections = 50
	idleSessions    = 100 // of each
)

// idle measures what sessions take that do nothing: those that have not read a table, which is the
// target's, and those that have.
func (b *bench) idle() error {
	for i, c := range []struct {
		name      string
		statement *pb.SqlStatement
	}{
		{"that have said SELECT 1", &pb.SqlStatement{Text: "SELECT 1"}},
		{"that have read a row, by a statement that stays prepared", &pb.SqlStatement{Text: pointRead, Params: []*pb.SqlValue{integer(1)}}},
	} {
		before, after, err := b.idleAfter(c.statement)
		if err != nil {
			return err
		}
		more := after.minus(before)
		b.report.atMost(fmt.Sprintf("%d idle sessions %s: Go's heap", idleConnections*idleSessions, c.name), more.heap, idleTarget)
		if i == 0 { // the second ones find memory that the first have left
			b.report.atMost("the same, resident", more.resident, idleTarget)
		}
		fmt.Fprintf(os.Stderr, "idle sessions %s: %v, without %v\n", c.name, after, before)
	}
	b.report.note("Idle sessions: %d connections with %d sessions each.", idleConnections, idleSessions)
	return nil
}

// idleAfter is the server's memory without sessions, and with those that have run a statement.
func (b *bench) idleAfter(st *pb.SqlStatement) (before, after memory, err error) {
	var all []*raw
	end := func() {
		for _, r := range all {
			r.close()
		}
		all = nil
	}
	defer end()
	open := func(connections int) error {
		for range connections {
			r, err := b.connect(idleSessions)
			if err != nil {
				return err
			}
			all = append(all, r)
			for _, s := range r.sessions {
				if _, err := s.ask(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: st}}}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = open(1) // what the server keeps anyhow
	end()
	if err == nil {
		before, err = b.settled()
	}
	if err == nil {
		err = open(idleConnections)
	}
	if err == nil {
		after, err = b.settled()
	}
	return before, after, err
}

// unreadCallers read beside the client that does not.
const unreadCallers = 8

// large is a result of 10 GB.
const (
	large      = "SELECT REPEAT('x', 1000) AS s FROM point AS a CROSS JOIN point AS b LIMIT 10000000"
	largeBytes = 10_000_000 * 1000
)

// unread measures what a client that does not read does to the others: one that does not read its
// stream, and one that takes all but says of no row that it has it.
func (b *bench) unread() error {
	call, end, err := b.bySDK(unreadCallers)
	if err != nil {
		return err
	}
	defer end()
	kinds := []struct {
		name  string
		start func() (stop func() error, err error)
	}{
		{"alone", nil},
		{"beside a client that does not read its stream", b.deaf},
		{"beside one that gives no credit", b.stingy},
	}
	samples, most := make([][]sample, len(kinds)), make([]memory, len(kinds))
	names := make([]contender, len(kinds))
	for round := range b.rounds + 1 { // the first does not count
		for i, k := range kinds {
			names[i] = contender{name: "point reads " + k.name}
			stop := func() error { return nil }
			if k.start != nil {
				if stop, err = k.start(); err != nil {
					return err
				}
			}
			peak, watched := b.watch()
			s, err := b.turn(b.node.Process(), unreadCallers, b.config.turn, call)
			close(watched)
			m, werr := peak()
			if err = errors.Join(err, werr, stop()); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			if round == 0 {
				continue
			}
			samples[i], most[i] = append(samples[i], s), most[i].most(m)
			fmt.Fprintf(os.Stderr, "%-62s %8.0f/s  p99 %-9v %v\n", names[i].name, s.rate, s.p99, m)
		}
	}
	b.report.beside(unreadCallers, names, samples)
	for i, k := range kinds[1:] {
		grown := most[i+1].minus(most[0])
		b.report.atMost("more resident memory "+k.name, grown.resident, unreadTarget)
		b.report.atMost("more of Go's heap "+k.name, grown.heap, unreadTarget)
	}
	b.report.note("The result that is not read: `%s`, %d GB. Memory is the most that was seen in any turn: %v without the client.", large, largeBytes/1_000_000_000, most[0])
	return nil
}

// watch asks for the server's memory until watched is closed; peak is the most of it.
func (b *bench) watch() (peak func() (memory, error), watched chan struct{}) {
	watched = make(chan struct{})
	var most memory
	var err error
	var task sync.WaitGroup
	task.Go(func() {
		for err == nil {
			var m memory
			m, err = b.memory()
			most = most.most(m)
			select {
			case <-watched:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() (memory, error) { task.Wait(); return most, err }, watched
}

// fills is how long a client is left alone that fills its window, before a turn begins.
const fills = 300 * time.Millisecond

// deaf starts a client that reads nothing of its stream once it has asked for the result.
func (b *bench) deaf() (stop func() error, err error) {
	conn, err := dial(b.address())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(asRoot(context.Background()))
	stop = func() error { cancel(); return conn.Close() }
	call, err := pb.NewSqlClient(conn).Sessions(ctx)
	if err == nil {
		err = call.Send(&pb.SqlSessionsRequest{Session: 1, Request: 1, Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{Schema: schema}}})
	}
	if err == nil {
		_, err = call.Recv()
	}
	if err == nil {
		err = call.Send(&pb.SqlSessionsRequest{Session: 1, Request: 2, Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{
			Statement: &pb.SqlStatement{Text: large}, WindowBytes: 16 << 20}}})
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	time.Sleep(fills)
	return stop, nil
}

// stingy starts one that reads what comes, and never says that it took it.
func (b *bench) stingy() (stop func() error, err error) {
	st, err := b.connect(1)
	if err != nil {
		return nil, err
	}
	s := st.sessions[0]
	const window = 16 << 20
	if err := s.send(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{
		Statement: &pb.SqlStatement{Text: large}, WindowBytes: window}}}); err != nil {
		st.close()
		return nil, err
	}
	var refused error
	var reading sync.WaitGroup
	var got uint64
	full := make(chan struct{})
	reading.Go(func() {
		for m := range s.answers {
			before := got
			if got += m.GetResult().GetBatch().GetWindowBytes(); before <= window/2 && got > window/2 {
				close(full)
			}
			if e := m.GetError(); e != nil {
				refused = fmt.Errorf("error %d: %s", e.Number, e.Message)
			}
		}
	})
	select {
	case <-full:
		time.Sleep(fills)
	case <-time.After(startLimit):
		st.close()
		return nil, errors.New("the result does not come")
	}
	return func() error {
		st.close()
		reading.Wait()
		return refused
	}, nil
}
