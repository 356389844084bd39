package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/console"
)

// Report is what /status tells.
type Report struct {
	Version  string `json:"version"`
	Cluster  string `json:"cluster"`
	Starting bool   `json:"starting,omitempty"`
	// Recovery is what the node did, or does, to have again what it had when it ended.
	Recovery    group.RecoveryStatus `json:"recovery"`
	Group       string               `json:"group,omitempty"`
	Member      uint64               `json:"member,omitempty"`
	Addr        string               `json:"addr,omitempty"`
	ReadAddr    string               `json:"read_addr,omitempty"`
	GRPCAddr    string               `json:"grpc_addr,omitempty"`
	Connections int                  `json:"connections"`
	Status      group.Status         `json:"status"`
	Members     []MemberReport       `json:"members,omitempty"`
	// Protocol and LogFormat tell who may stand beside this node: programs before an upgrade ask for them.
	Protocol  Formats `json:"protocol"`
	LogFormat Formats `json:"log_format"`
	// PeerTLS is how the node talks to others, which do not hear it if they do otherwise; empty: an older program.
	PeerTLS string `json:"peer_tls,omitempty"`
	// PeerAuthorities are those by which the node and its peers prove who they are; empty: there are none, or this is an older program.
	PeerAuthorities Authorities `json:"peer_authorities,omitzero"`
	// Empty says that a node that is starting has no data: it waits for others to found a group with it, or to take it in. Only nodes in pods
	// that may found a group say so.
	Empty bool `json:"empty,omitempty"`
}

// MemberReport is a member in a Report.
type MemberReport struct {
	ID       uint64       `json:"id"`
	Addr     string       `json:"addr"` // among members
	Learner  bool         `json:"learner,omitempty"`
	State    string       `json:"state"`
	MySQL    string       `json:"mysql,omitempty"`
	ReadOnly string       `json:"read_only,omitempty"`
	HTTP     string       `json:"http,omitempty"`
	GRPC     string       `json:"grpc,omitempty"`
	Status   group.Status `json:"status"`
}

// serveHTTP tells how the node stands: /healthz, /readyz, /status, /metrics; with http_pprof what it
// is doing; and has the web console. Clients speak with TLS or without.
func (n *Node) serveHTTP() {
	if n.web == nil {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if n.isReady() && n.group.Err() != nil {
			http.Error(w, n.group.Err().Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := n.unready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	reports, known := newSeats(httpReports), bearer(n.cfg.String("http_token_file"))
	mux.Handle("GET /status", known(reports.taking(httpAnswer, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(n.report())
	})))
	mux.Handle("GET /metrics", known(reports.taking(httpAnswer, n.serveMetrics)))
	if n.cfg.Bool("http_pprof") {
		profiles := newSeats(httpProfiles)
		profile := func(pattern string, h http.HandlerFunc) { mux.Handle(pattern, known(profiles.taking(httpProfile, h))) }
		profile("GET /debug/pprof/", pprof.Index)
		profile("GET /debug/pprof/cmdline", pprof.Cmdline)
		profile("GET /debug/pprof/profile", pprof.Profile)
		profile("GET /debug/pprof/symbol", pprof.Symbol)
		profile("POST /debug/pprof/symbol", pprof.Symbol)
		profile("GET /debug/pprof/trace", pprof.Trace)
	}
	if n.cfg.Bool("http_console") {
		mux.HandleFunc(console.Path, n.serveConsole)
		mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusFound))
	}
	var config func() *tls.Config
	if n.tls != nil {
		config = n.tls.Config
	}
	n.http = &http.Server{Handler: inTime(mux, httpBody, httpAnswer), ReadHeaderTimeout: httpHeader, IdleTimeout: httpIdle, MaxHeaderBytes: 64 << 10,
		ConnContext: withSeat, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: httpStreams, MaxReceiveBufferPerConnection: 128 << 10, MaxReceiveBufferPerStream: 64 << 10,
			SendPingTimeout: httpAnswer, PingTimeout: httpAnswer / 2, WriteByteTimeout: httpAnswer / 2}}
	l := newEitherPort(n.web, int(n.descriptors.web), config, n.log)
	n.tasks.Add(1)
	go func() {
		defer n.tasks.Done()
		if err := n.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.log.Error("the HTTP port", "error", err)
		}
	}()
}

func (n *Node) report() Report {
	r := Report{Version: Version, Cluster: n.cfg.String("cluster_name"), Starting: !n.isReady(), Recovery: n.recovery(),
		Protocol: Protocol(), LogFormat: LogFormat(), PeerTLS: PeerTLS(n.cfg), PeerAuthorities: PeerAuthorities(n.cfg)}
	if r.Starting {
		r.Empty = n.empty.Load()
		return r
	}
	self := n.self()
	r.Group, r.Member, r.Addr, r.ReadAddr, r.GRPCAddr = uuid(n.group.Group()), n.group.ID(), self.Addr, self.Reads, self.GRPC
	r.Connections, r.Status = n.door.Connections()+n.sqlapi.Sessions(), n.group.Status()
	if s, err := n.group.Stats(); err == nil {
		r.LogFormat.Written = uint32(s.Log.Version)
	}
	states := n.group.GroupStatus()
	for _, m := range n.group.Members() {
		mr := MemberReport{ID: m.ID, Addr: m.Addr, Learner: m.Learner, State: "UNREACHABLE", Status: group.Status{ID: m.ID, Lag: group.UnknownLag}}
		for i := range states {
			if states[i].ID == m.ID {
				mr.Status, mr.State = states[i], memberState(&states[i])
			}
		}
		if c, err := n.contact(context.Background(), m.ID); err == nil {
			mr.MySQL, mr.ReadOnly, mr.HTTP, mr.GRPC = c.Addr, c.Reads, c.HTTP, c.GRPC
		}
		r.Members = append(r.Members, mr)
	}
	return r
}
