package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// roleFlags say what a server process is. They are internal: the benchmark starts
// its servers with them.
type roleFlags struct {
	name    string // node, etcd or replay; empty: the benchmark itself
	id      uint64
	data    string
	listen  string // for clients
	peers   string // of the members: 1=host:port,2=host:port
	join    bool
	contact string
	plain   bool // the log is not compressed
	verbose bool
	entries int // commit.Options.Outstanding
}

func (f *roleFlags) define() {
	flag.StringVar(&f.name, "role", "", "internal: what this process is")
	flag.Uint64Var(&f.id, "id", 0, "internal: of the member")
	flag.StringVar(&f.data, "data", "", "internal: the member's directory")
	flag.StringVar(&f.listen, "listen", "", "internal: address for clients")
	flag.StringVar(&f.peers, "peers", "", "internal: members and their addresses")
	flag.BoolVar(&f.join, "join", false, "internal: become a member of a group that exists")
	flag.StringVar(&f.contact, "contact", "", "internal: address of a member")
	flag.BoolVar(&f.plain, "plain", false, "internal: without compression")
	flag.IntVar(&f.entries, "outstanding", 0, "entries on their way at a time, of our nodes; 0: the default")
	flag.BoolVar(&f.verbose, "rolelog", false, "internal: log to standard error")
}

// args are the arguments that make another process what f says.
func (f *roleFlags) args() []string {
	args := []string{"-role", f.name, "-id", strconv.FormatUint(f.id, 10), "-data", f.data, "-listen", f.listen, "-peers", f.peers,
		"-outstanding", strconv.Itoa(f.entries)}
	if f.join {
		args = append(args, "-join", "-contact", f.contact)
	}
	if f.plain {
		args = append(args, "-plain")
	}
	if f.verbose {
		args = append(args, "-rolelog")
	}
	return args
}

// peer is a member and its address for other members.
type peer struct {
	id   uint64
	addr string
}

func joinPeers(list []peer) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, fmt.Sprintf("%d=%s", p.id, p.addr))
	}
	return strings.Join(parts, ",")
}

func (f *roleFlags) parsePeers() (list []peer, self peer, err error) {
	for _, part := range strings.Split(f.peers, ",") {
		id, addr, _ := strings.Cut(part, "=")
		p := peer{addr: addr}
		if p.id, err = strconv.ParseUint(id, 10, 64); err != nil {
			return nil, self, fmt.Errorf("-peers %q: %w", f.peers, err)
		}
		list = append(list, p)
		if p.id == f.id {
			self = p
		}
	}
	return list, self, nil
}

func (f *roleFlags) logger() *slog.Logger {
	if !f.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("member", f.id)
}

// serve is what a server process does until it is told to end.
func serve(f *roleFlags) error {
	switch f.name {
	case "node":
		return serveNode(f)
	case "etcd":
		return serveEtcd(f)
	case "replay":
		return replay(f)
	}
	return fmt.Errorf("there is no role %q", f.name)
}

// told returns a channel that gets something when the process is told to end, or
// when the benchmark is gone: it holds the other end of standard input.
func told() <-chan struct{} {
	end := make(chan struct{}, 2)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		end <- struct{}{}
	}()
	go func() {
		var b [1]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				end <- struct{}{}
				return
			}
		}
	}()
	return end
}

// ready tells the benchmark that the server takes calls.
func ready() { fmt.Println("ready") }
