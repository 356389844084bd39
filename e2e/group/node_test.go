package group_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	_ "github.com/triremedb/trireme/engine/types/collation" // comparisons of text
	_ "github.com/triremedb/trireme/engine/types/json"      // and of documents
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// nodeVariable makes the program a node; its value is the node's setup.
const nodeVariable = "TRIREME_E2E_NODE"

// setup is what a node is told.
type setup struct {
	Group  [16]byte
	ID     uint64
	Dir    string
	Listen string
	// Advertise is a name behind a network of the test (relayName); empty: others reach the
	// node where it listens.
	Advertise string
	Founders  []group.Member
	Join      bool
	Contact   []string
	Sabotage  group.Sabotage
	// ElectionTicks is as in group.Options.
	ElectionTicks int
	Large         bool // transactions are large from largeThreshold bytes of events on
}

// started is a node's first line.
type started struct {
	Addr  string // of its control protocol
	Error string
}

// addr is where the others reach the node.
func (s *setup) addr() string {
	if s.Advertise != "" {
		return s.Advertise
	}
	return s.Listen
}

// options are small where limits should be met in a short test.
func (s *setup) options(log *slog.Logger) group.Options {
	o := group.Options{Env: env.Real(), FS: file.OS(s.Dir), Log: log, Group: s.Group, ID: s.ID,
		Founders: s.Founders, Join: s.Join, Contact: s.Contact, Sabotage: s.Sabotage, ElectionTicks: s.ElectionTicks,
		LogPreallocate: 256 << 10, LogCache: 256 << 10, LogFileSize: 64 << 10,
		Storage: storage.Options{BufferPoolSize: 16 << 20, RedoCapacity: 16 << 20, LockWait: 2 * time.Second},
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			return transport.New(transport.Options{Listen: s.Listen, Advertise: s.Advertise, Identity: id, AllowPlaintext: true,
				LogFormat: group.LogFormat, Logger: log}, h)
		}}
	if s.Large {
		o.LargeThreshold = largeThreshold
	}
	return o
}

// largeThreshold makes large transactions of about half of all transfers.
const largeThreshold = 500

// runNode is a node's process: it serves until its standard input ends.
func runNode(text string) int {
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return say(started{Error: err.Error()})
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if s.Advertise != "" {
		net.DefaultResolver = namesOf(s.ID)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return say(started{Error: err.Error()})
	}
	n, err := group.Open(s.options(log))
	if err != nil {
		return say(started{Error: err.Error()})
	}
	srv := &http.Server{Handler: &server{n}}
	go func() { _ = srv.Serve(lis) }()
	go tellProgress(n, log)
	say(started{Addr: lis.Addr().String()})
	_, _ = io.Copy(io.Discard, os.Stdin)
	err = n.Close()
	_ = srv.Close()
	if err = errors.Join(n.Err(), err); err != nil {
		log.Error("the node ended badly", "error", err)
		return 1
	}
	return 0
}

// tellProgress logs what goes wrong while the node is given its data.
func tellProgress(n *group.Node, log *slog.Logger) {
	var last string
	for {
		if p, ok := n.Progress(); ok && p.LastError != last {
			last = p.LastError
			log.Info("receiving", "progress", fmt.Sprintf("%+v", p))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func say(s started) (code int) {
	b, _ := json.Marshal(s)
	w := bufio.NewWriter(os.Stdout)
	_, _ = fmt.Fprintln(w, string(b))
	_ = w.Flush()
	return 1
}

// server is the control protocol on a node.
type server struct{ node *group.Node }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	a := &answer{}
	err := json.NewDecoder(r.Body).Decode(&q)
	if err == nil {
		fn := commands[q.Do]
		if fn == nil {
			err = fmt.Errorf("unknown command %q", q.Do)
		} else {
			err = fn(s.node, &q, a)
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	if m, ok := s.node.Leader(); ok {
		a.Leader = m.ID
	}
	_ = json.NewEncoder(w).Encode(a)
}
