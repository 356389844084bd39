// Command grpc measures the gRPC door on a server of its own: single statements beside a gRPC
// service that does nothing, point reads on the stream beside the MySQL door, the memory of idle
// sessions, and what a client that does not read its result costs the others.
//
//	go -C bench run ./grpc          # a few minutes
//	go -C bench run ./grpc -quick   # one minute
//
// Whatever is compared takes turns in one run. Clients and servers are processes of this machine,
// which share its processors; a caller waits for each answer before it asks again, but where more
// is said. Connections are without TLS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/triremedb/trireme/bench/reportfile"
	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers"
)

type config struct {
	quick   bool
	rows    int
	turn    time.Duration
	rounds  int
	callers []int
	only    string
	report  string
	profile string
	dir     string
	binary  string

	echo   string // this process is the service that does nothing, and listens here
	answer int    // bytes of its answers
}

// The parts of the report.
const (
	partExecute = "execute"
	partStream  = "stream"
	partIdle    = "idle"
	partUnread  = "unread"
)

func main() {
	var c config
	callers := "1,8,32,128"
	flag.BoolVar(&c.quick, "quick", false, "short turns")
	flag.IntVar(&c.rows, "rows", 100_000, "rows of the table that is read")
	flag.DurationVar(&c.turn, "turn", 3*time.Second, "length of a turn")
	flag.IntVar(&c.rounds, "rounds", 5, "turns of each contender and number of callers")
	flag.StringVar(&callers, "callers", callers, "numbers of callers")
	flag.StringVar(&c.only, "only", "", "measure one part only: execute, stream, idle or unread")
	flag.StringVar(&c.report, "report", "report/grpc.md", "file to write; empty: none")
	flag.StringVar(&c.profile, "profile", "", "file for a CPU profile of the callers; the server has one at /debug/pprof/")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.echo, "echo", "", "internal: be the service that does nothing")
	flag.IntVar(&c.answer, "answer", 0, "internal: bytes of its answers")
	flag.Parse()
	if c.echo != "" {
		fail(serveEcho(c.echo, c.answer))
	}
	if c.quick {
		c.rows, c.turn, c.rounds = min(c.rows, 10_000), min(c.turn, time.Second), min(c.rounds, 2)
	}
	for _, text := range strings.Split(callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 500 {
			fail(fmt.Errorf("-callers: %q is no number from 1 to 500", text))
		}
		c.callers = append(c.callers, n)
	}
	fail(c.run())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
	password   = "benchmark"
	schema     = "bench"
)

func (c *config) run() (err error) {
	if c.dir, err = os.MkdirTemp("", "bench-grpc-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = os.RemoveAll(c.dir)
		os.Exit(1) // the servers end with this process
	}()
	g, err := servers.Launch(servers.Options{Binary: c.binary, Dir: c.dir, Password: password, Settings: []string{"--max-connections=6000",
		"--log-level=warn", "--http-pprof=ON", "--innodb-buffer-pool-size=256M", "--innodb-redo-log-capacity=256M"}}, startLimit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop(stopLimit)) }()
	b := &bench{config: c, node: g.Nodes[0], report: newReport(c)}
	if b.report.version, err = servers.Version(b.node.DSN("", nil)); err != nil {
		return err
	}
	if err := b.load(context.Background()); err != nil {
		return err
	}
	if c.profile != "" {
		f, err := os.Create(c.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, part := range []struct {
		name    string
		measure func() error
	}{{partIdle, b.idle}, {partExecute, b.execute}, {partStream, b.stream}, {partUnread, b.unread}} {
		if c.only != "" && c.only != part.name {
			continue
		}
		if err := part.measure(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	text := b.report.text()
	fmt.Print(text)
	if c.report == "" || c.quick || c.only != "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

// bench is a run.
type bench struct {
	*config
	node   *servers.Node
	report *report
}

func (b *bench) address() string { return fmt.Sprintf("127.0.0.1:%d", b.node.GRPC) }

// open opens the server by the SDK, which keeps as many sessions as there are callers.
func (b *bench) open(ctx context.Context, callers int) (*client.DB, error) {
	return client.Open(ctx, client.Options{Addrs: []string{b.address()}, User: "root", Password: password, Schema: schema, IdleSessions: callers})
}

// The row that is read is like sysbench's. Its value tells its key.
const (
	pointRead = "SELECT c FROM point WHERE id = ?"
	valueSize = 120
)

func value(id int) string { return fmt.Sprintf("%0*d", valueSize, id) }

// load makes the table.
func (b *bench) load(ctx context.Context) error {
	db, err := client.Open(ctx, client.Options{Addrs: []string{b.address()}, User: "root", Password: password})
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE " + schema, "CREATE TABLE bench.point (id INT NOT NULL PRIMARY KEY, c CHAR(120) NOT NULL)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			return err
		}
	}
	const many = 1000
	for id := 1; id <= b.rows; {
		text := []byte("INSERT INTO bench.point VALUES ")
		for n := 0; n < many && id <= b.rows; n++ {
			if n > 0 {
				text = append(text, ',')
			}
			text = fmt.Appendf(text, "(%d,'%s')", id, value(id))
			id++
		}
		if _, err := db.Exec(ctx, string(text)); err != nil {
			return err
		}
	}
	return nil
}
