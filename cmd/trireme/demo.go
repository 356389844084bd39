package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// demo is a group of child processes.
type demo struct {
	nodes                                   int
	dir, host, password                     string
	mysqlPort, readPort, httpPort, peerPort int
	grpcPort                                int
	extra, peers                            []string

	stopping chan struct{}
	tasks    sync.WaitGroup
	out      sync.Mutex
}

func runDemo(args []string) error {
	f := flags("demo [options] [-- --setting=value ...]", "Runs a group of nodes on this machine, each a process of its own, until it gets SIGINT or\n"+
		"SIGTERM. A directory that is there is gone on with. A node that ends is started again.\n"+
		"What follows -- goes to every node, see trireme server --help.")
	d := &demo{stopping: make(chan struct{})}
	f.IntVar(&d.nodes, "nodes", 3, "how many nodes")
	f.StringVar(&d.dir, "dir", "trireme-demo", "`directory` of all nodes: data and logs")
	f.StringVar(&d.host, "host", "127.0.0.1", "address on which the nodes listen")
	f.IntVar(&d.mysqlPort, "mysql-port", 13306, "MySQL port of node 0; node i has one that is i higher")
	f.IntVar(&d.readPort, "read-port", 13406, "the same for the MySQL port that only reads")
	f.IntVar(&d.grpcPort, "grpc-port", 17000, "the same for the gRPC port of programs")
	f.IntVar(&d.httpPort, "http-port", 18080, "the same for HTTP (/console/, /status)")
	f.IntVar(&d.peerPort, "peer-port", 17100, "the same for the nodes among themselves")
	f.StringVar(&d.password, "root-password", "", "of root when the group begins; empty: one is drawn. It is kept in the directory")
	if err := parse(f, args); err != nil {
		return err
	}
	d.extra = f.Args()
	if d.nodes < 1 || d.nodes > 9 {
		return misuse(f, "-nodes is %d: it must be 1 to 9", d.nodes)
	}
	for _, e := range d.extra {
		if !strings.HasPrefix(e, "-") {
			return misuse(f, "%q: settings of the nodes are given as -- --name=value", e)
		}
	}
	return d.run()
}

func (d *demo) run() error {
	if err := d.portsFree(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	password, err := d.rootPassword()
	if err != nil {
		return err
	}
	if d.peers, err = d.peerArguments(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	for i := range d.nodes {
		d.tasks.Add(1)
		go d.keep(i)
	}
	go d.announce(password)
	<-signals
	d.say("stopping the nodes")
	close(d.stopping)
	d.tasks.Wait()
	return nil
}

// rootPassword is kept beside the nodes, so that it can be told again. Once the group has begun it is not to be chosen any more.
func (d *demo) rootPassword() (string, error) {
	name := d.passwordFile()
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	begun, beginErr := d.begun()
	if beginErr != nil {
		return "", beginErr
	}
	kept := strings.TrimSpace(string(b))
	switch {
	case err == nil && begun && d.password != "" && d.password != kept:
		d.say("-root-password is left out: the group in %s has begun before, and its root has the password in %s, or the one that it was given since", d.dir, name)
		return kept, nil
	case err == nil && (begun || d.password == ""):
		return kept, nil
	case begun && d.password == "":
		return "", fmt.Errorf("%s is missing, and the group in %s has begun before: say the password of its root (-root-password)", name, d.dir)
	case d.password == "":
		d.password = rand.Text()[:16]
	}
	return d.password, os.WriteFile(name, []byte(d.password+"\n"), 0o600)
}

// portsWait is how long ports may be taken by nodes of a demo that has just ended.
const portsWait = 5 * time.Second

// portsFree looks whether nobody else listens where the nodes are to. What answers there would be taken for them, and be told of with the
// password of another group.
func (d *demo) portsFree() error {
	for end := time.Now().Add(portsWait); ; time.Sleep(100 * time.Millisecond) {
		err := d.listen()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (d *demo) listen() error {
	for _, p := range []struct {
		option string
		first  int
	}{{"mysql-port", d.mysqlPort}, {"read-port", d.readPort}, {"grpc-port", d.grpcPort}, {"http-port", d.httpPort}, {"peer-port", d.peerPort}} {
		for i := range d.nodes {
			l, err := net.Listen("tcp", d.addr(p.first, i))
			if err != nil {
				return fmt.Errorf("node %d cannot have its port: %w; end what listens there (ss -ltnp, another demo?), or give other ports: -%s", i, err, p.option)
			}
			_ = l.Close()
		}
	}
	return nil
}

func (d *demo) passwordFile() string { return filepath.Join(d.dir, "root-password") }

func (d *demo) say(format string, a ...any) {
	d.out.Lock()
	defer d.out.Unlock()
	fmt.Printf(format+"\n", a...)
}

func (d *demo) addr(port, i int) string { return d.host + ":" + strconv.Itoa(port+i) }

// arguments of node i.
func (d *demo) arguments(i int) []string {
	var founders []string
	for j := range d.nodes {
		founders = append(founders, d.addr(d.peerPort, j))
	}
	number := func(port int) string { return strconv.Itoa(port + i) }
	extra := append(shareMemory(thisMachine(), d.nodes, d.extra), d.peers...)
	extra = append(extra, d.extra...)
	return append([]string{"server", "--datadir=" + filepath.Join(d.dir, "node"+strconv.Itoa(i)), "--cluster-name=demo",
		"--bind-address=" + d.host, "--report-host=" + d.host, "--port=" + number(d.mysqlPort),
		"--read-only-port=" + number(d.readPort), "--grpc-port=" + number(d.grpcPort), "--http-port=" + number(d.httpPort),
		"--peer-bind=" + d.host, "--peer-port=" + number(d.peerPort), "--peer-address=" + d.addr(d.peerPort, i),
		"--founders=" + strings.Join(founders, ","),
		"--initial-root-password-file=" + d.passwordFile()}, extra...)
}

// keep runs node i, again and again until the demo stops.
func (d *demo) keep(i int) {
	defer d.tasks.Done()
	for {
		began := time.Now()
		err := d.once(i)
		select {
		case <-d.stopping:
			if err != nil {
				d.say("node %d: %v; see %s", i, err, d.logFile(i))
			}
			return
		default:
		}
		d.say("node %d has ended (%v), it is started again; see %s", i, err, d.logFile(i))
		pause := time.Second
		if time.Since(began) < 5*time.Second {
			pause = 5 * time.Second
		}
		select {
		case <-d.stopping:
			return
		case <-time.After(pause):
		}
	}
}

func (d *demo) logFile(i int) string { return filepath.Join(d.dir, fmt.Sprintf("node%d.log", i)) }

// once runs node i to its end.
func (d *demo) once(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(d.logFile(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(self, d.arguments(i)...)
	cmd.Stdout, cmd.Stderr = log, log
	// In a group of its own: a ^C at the terminal is for the demo, which stops the nodes.
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			err = fmt.Errorf("it stopped")
		}
		return err
	case <-d.stopping:
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("it did not stop in time and was killed")
	}
}

// announce tells how to connect, once the nodes are ready.
func (d *demo) announce(password string) {
	d.say("starting %d nodes in %s", d.nodes, d.dir)
	for i := range d.nodes {
		for !d.ready(i) {
			select {
			case <-d.stopping:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nThe group is ready. Connect to any node:\n\n")
	fmt.Fprintf(&b, "  %-6s %-22s %-22s %-22s %s\n", "node", "MySQL", "MySQL, read-only", "gRPC", "console")
	for i := range d.nodes {
		fmt.Fprintf(&b, "  %-6d %-22s %-22s %-22s http://%s/console/\n", i, d.addr(d.mysqlPort, i), d.addr(d.readPort, i), d.addr(d.grpcPort, i), d.addr(d.httpPort, i))
	}
	fmt.Fprintf(&b, "\n  user root, password %s (in %s)\n\n", password, d.passwordFile())
	fmt.Fprintf(&b, "  trireme sql --port %d --password-file %s\n", d.mysqlPort, d.passwordFile())
	fmt.Fprintf(&b, "  mysql --host %s --port %d --user root --password=%s\n", d.host, d.mysqlPort, password)
	fmt.Fprintf(&b, "  trireme status --http %s\n\n", d.addr(d.httpPort, 0))
	fmt.Fprintf(&b, "Ctrl-C stops the nodes; their data stay in %s.", d.dir)
	d.say("%s", b.String())
}

func (d *demo) ready(i int) bool {
	c := http.Client{Timeout: time.Second}
	r, err := c.Get("http://" + d.addr(d.httpPort, i) + "/readyz")
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}
