package servers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

// Password is that of root in a group, unless Options say another: one that has to be quoted.
const Password = "it's \\ pass"

// Options say how a group is started.
type Options struct {
	Binary   string   // the server; Test builds it if there is none
	Dir      string   // for data and logs; Test makes one if there is none
	Nodes    int      // 0: 1
	Password string   // of root; empty: Password
	Settings []string // of every node, as --name=value

	// Data gives a node, counted from 0, another data directory than one in Dir.
	Data func(i int) string
	// Host is the address by which the others reach a node, counted from 0; nil:
	// 127.0.0.1, on which all of them listen.
	Host func(i int) string
	// Peer is the address by which the others reach a node's port for members, if that is not
	// Host and the port itself.
	Peer func(i, port int) string
	// Enter is the command that starts a node's process in a network of its own, where it
	// listens on Host's address; nil: on 127.0.0.1 of this one.
	Enter func(i int) []string
}

// Group is a group of servers.
type Group struct {
	Nodes []*Node

	options  Options
	founders string
}

// Node is a server: its directory outlives its process.
type Node struct {
	Number             int // from 1 on
	Dir                string
	Port, Reads, Peers int
	HTTP, GRPC         int

	// The next Start heeds what is set here.
	Settings []string // besides those of the group, as --name=value
	Binary   string   // the server, if not the group's
	Under    []string // a command that runs the process and becomes it

	g     *Group
	host  string
	peer  string   // where the others reach its port for members
	bind  string   // where it listens
	enter []string // what its process is started by
	log   string
	mu    sync.Mutex
	now   *Process // nil: it does not run
}

// New prepares a group; Start starts it.
func New(o Options) (*Group, error) {
	o.Nodes = max(o.Nodes, 1)
	if o.Password == "" {
		o.Password = Password
	}
	g := &Group{options: o}
	var founders []string
	for i := range o.Nodes {
		n := &Node{Number: i + 1, g: g, host: "127.0.0.1", bind: "127.0.0.1", Dir: filepath.Join(o.Dir, fmt.Sprintf("node%d", i+1))}
		n.log = n.Dir + ".log"
		if o.Data != nil {
			n.Dir = o.Data(i)
		}
		if o.Host != nil {
			n.host = o.Host(i)
		}
		if o.Enter != nil {
			n.bind, n.enter = n.host, o.Enter(i)
		}
		for _, port := range []*int{&n.Port, &n.Reads, &n.Peers, &n.HTTP, &n.GRPC} {
			var err error
			if *port, err = ports.Free(); err != nil {
				return nil, err
			}
		}
		n.peer = fmt.Sprintf("%s:%d", n.host, n.Peers)
		if o.Peer != nil {
			n.peer = o.Peer(i, n.Peers)
		}
		g.Nodes = append(g.Nodes, n)
		founders = append(founders, n.peer)
	}
	g.founders = strings.Join(founders, ",")
	return g, nil
}

// Launch makes a group and starts it, having built the server if the options name none. On
// an error nothing is left running.
func Launch(o Options, limit time.Duration) (*Group, error) {
	if o.Binary == "" {
		var err error
		if o.Binary, err = Build(o.Dir); err != nil {
			return nil, err
		}
	}
	g, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := g.Start(limit); err != nil {
		g.Kill()
		return nil, fmt.Errorf("trireme: %w\n%s", err, g.Nodes[0].LastWords())
	}
	return g, nil
}

// Version asks a server what it is.
func Version(dsn string) (version string, err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", err
	}
	defer db.Close()
	return version, db.QueryRow("SELECT VERSION()").Scan(&version)
}

// Start starts all nodes and waits until they take writes.
func (g *Group) Start(limit time.Duration) error {
	for _, n := range g.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return g.Await(limit)
}

// Await waits until every node takes writes, by itself or through the leader.
func (g *Group) Await(limit time.Duration) error {
	for _, n := range g.Nodes {
		if err := n.Await(limit); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all nodes at once.
func (g *Group) Kill() {
	for _, n := range g.Nodes {
		n.Kill()
	}
}

// Stop ends all nodes as an operator does.
func (g *Group) Stop(limit time.Duration) error {
	var errs []error
	for _, n := range g.Nodes {
		errs = append(errs, n.Stop(limit))
	}
	return errors.Join(errs...)
}

// Leader waits until there is a node that leads, and returns it.
func (g *Group) Leader(limit time.Duration) (*Node, error) {
	for until := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		var leader *Node
		var term uint64
		for _, n := range g.Nodes {
			if s, err := n.Status(); err == nil && s.Writable && s.Term > term {
				leader, term = n, s.Term
			}
		}
		if leader != nil {
			return leader, nil
		}
		if time.Now().After(until) {
			return nil, errors.New("no node leads")
		}
	}
}

// Start starts the node's process.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	binary := n.g.options.Binary
	if n.Binary != "" {
		binary = n.Binary
	}
	args := append(slices.Concat(n.enter, n.Under), binary, "server", "--datadir="+n.Dir, "--bind-address="+n.bind, "--report-host="+n.host,
		fmt.Sprintf("--port=%d", n.Port), fmt.Sprintf("--read-only-port=%d", n.Reads), fmt.Sprintf("--http-port=%d", n.HTTP),
		fmt.Sprintf("--grpc-port=%d", n.GRPC), "--peer-bind="+n.bind, fmt.Sprintf("--peer-port=%d", n.Peers), "--peer-address="+n.peer,
		"--peer-allow-plaintext", "--founders="+n.g.founders, "--initial-root-password="+n.g.options.Password)
	args = slices.Concat(args, n.g.options.Settings, n.Settings)
	p, err := StartProcess(n.log, args[0], args[1:]...)
	if err == nil {
		n.now = p
	}
	return err
}

// StartAgain starts the node's process if it has ended by itself, or is none.
func (n *Node) StartAgain() error {
	if p := n.Process(); p != nil {
		select {
		case <-p.Exited():
		default:
			return nil
		}
	}
	return n.Start()
}

// Process is the node's process; nil if it has been ended.
func (n *Node) Process() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// Signal sends the process a signal.
func (n *Node) Signal(s syscall.Signal) {
	if p := n.Process(); p != nil {
		p.Signal(s)
	}
}

// Kill ends the process at once.
func (n *Node) Kill() {
	if p := n.take(); p != nil {
		p.Kill()
	}
}

// Stop asks the process to end, and reports how it did.
func (n *Node) Stop(limit time.Duration) error {
	if p := n.take(); p != nil {
		return p.Stop(limit)
	}
	return nil
}

func (n *Node) take() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.now
	n.now = nil
	return p
}

// LastWords are the end of the node's log.
func (n *Node) LastWords() string { return lastWords(n.log) }

// Says counts how often the logs of the node's processes have a text.
func (n *Node) Says(words string) (int, error) {
	text, err := os.ReadFile(n.log)
	return strings.Count(string(text), words), err
}

// DSN is the address of the main port for Go's driver.
func (n *Node) DSN(schema string, with func(*mysql.Config)) string {
	return n.dsn(n.Port, schema, with)
}

// ReadDSN is that of the port which only reads.
func (n *Node) ReadDSN(schema string, with func(*mysql.Config)) string {
	return n.dsn(n.Reads, schema, with)
}

func (n *Node) dsn(port int, schema string, with func(*mysql.Config)) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", n.g.options.Password, "tcp", fmt.Sprintf("%s:%d", n.bind, port), schema
	if with != nil {
		with(c)
	}
	return c.FormatDSN()
}

// Await waits until the node takes writes, by itself or through the leader.
func (n *Node) Await(limit time.Duration) error {
	p := n.Process()
	if p == nil {
		return fmt.Errorf("node %d does not run", n.Number)
	}
	err := awaitWritable(n.DSN("", nil), p, limit)
	if err != nil {
		return fmt.Errorf("node %d: %w", n.Number, err)
	}
	return nil
}

// Status is what a node says of itself at /status; see group.Status.
type Status struct {
	ID       uint64 `json:"id"`
	Term     uint64 `json:"term"`
	Leader   uint64 `json:"leader"`
	Writable bool   `json:"writable"`
	DiskFull bool   `json:"disk_full"`
	// Undelivered is for how long what the leader sends for the log has got to no majority.
	Undelivered time.Duration `json:"undelivered"`
}

// Status asks the node how it stands.
func (n *Node) Status() (Status, error) {
	var report struct {
		Status Status `json:"status"`
	}
	c := http.Client{Timeout: answerTime}
	defer c.CloseIdleConnections()
	r, err := c.Get(fmt.Sprintf("http://%s:%d/status", n.bind, n.HTTP))
	if err != nil {
		return Status{}, err
	}
	defer r.Body.Close()
	err = json.NewDecoder(r.Body).Decode(&report)
	return report.Status, err
}

// quiet is no log of the driver's while a server starts.
type quiet struct{}

func (quiet) Print(...any) {}

func init() { _ = mysql.SetLogger(quiet{}) }

// answerTime is how long a server may take to answer before it is asked anew.
const answerTime = 5 * time.Second

// awaitWritable waits until the server of a process takes writes.
func awaitWritable(dsn string, p *Process, limit time.Duration) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for until := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		var readOnly int
		err := db.QueryRowContext(ctx, "SELECT @@read_only").Scan(&readOnly)
		cancel()
		if err == nil && readOnly == 0 {
			return nil
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("it has ended:\n%s", p.LastWords())
		default:
		}
		if time.Now().After(until) {
			return fmt.Errorf("it takes no writes after %v: %w", limit, err)
		}
	}
}
