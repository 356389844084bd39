package node

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/server/adminapi"
	"github.com/triremedb/trireme/server/console"
)

// openConsole lets people in by the web console, if there is one.
func (n *Node) openConsole() {
	if n.web == nil || !n.cfg.Bool("http_console") {
		return
	}
	_, port := splitAddr(n.web.Addr().String())
	name, _ := os.Hostname()
	n.console.Store(console.New(console.Options{Admin: n.admin, Auth: n.auth, Sessions: &consoleSessions{doorBackend{n}}, Node: n.consoleNode, Numbers: n.numbers,
		As: func(ctx context.Context, c console.Caller) context.Context {
			return adminapi.As(ctx, adminapi.Caller(c))
		},
		Name: strconv.Itoa(port), Hosts: []string{strings.ToLower(name), strings.ToLower(host(n.cfg))}, TLS: n.tls != nil,
		Hold: holdSeat, RequireTLS: n.requiresTLS, AllowPlaintext: n.cfg.Bool("grpc_allow_plaintext"),
		IdleTimeout: n.cfg.Duration("http_console_timeout"), Log: n.log, Audit: n.audit.Operators()}))
}

// serveConsole hands a request to the console.
func (n *Node) serveConsole(w http.ResponseWriter, r *http.Request) {
	if c := n.console.Load(); c != nil {
		c.ServeHTTP(w, r)
		return
	}
	console.Starting(w, r)
}

// shutConsole closes the console; when ctx ends, who reads or writes slowly is cut off.
func (n *Node) shutConsole(ctx context.Context) {
	if n.http != nil {
		defer context.AfterFunc(ctx, func() { _ = n.http.Close() })()
	}
	n.closeConsole()
}

func (n *Node) closeConsole() {
	if c := n.console.Load(); c != nil {
		c.Close()
	}
}

// consoleSessions opens sessions for the console.
type consoleSessions struct{ doorBackend }

func (s *consoleSessions) Open(info session.ConnectionInfo) (console.Session, error) {
	q, err := s.n.sessions.Open(info)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (s *consoleSessions) Needs(id priv.ID, any priv.Mask, dynamic ...string) error {
	return s.n.sessions.Needs(id, any, dynamic...)
}

func (n *Node) consoleNode() console.Node {
	return console.Node{Member: n.group.ID(), Cluster: n.cfg.String("cluster_name"), Version: Version, Address: n.self().Addr}
}

// consoleCounters and consoleGauges are numbers of SHOW STATUS that the console shows.
var (
	consoleCounters = numberSet("Innodb_buffer_pool_reads Innodb_row_lock_waits Innodb_row_lock_time lock_deadlocks lock_timeouts Commit_transactions " +
		"Replica_transactions_applied Binlog_bytes_written Binlog_syncs Binlog_sync_time_us Innodb_pages_written")
	consoleGauges = numberSet("Innodb_page_size Innodb_buffer_pool_pages_total Innodb_buffer_pool_pages_free Innodb_buffer_pool_pages_data " +
		"Innodb_buffer_pool_pages_dirty Innodb_row_lock_current_waits trx_active_transactions trx_rseg_history_len log_lsn_checkpoint_age log_capacity " +
		"Binlog_files Binlog_file_bytes Innodb_tablespace_bytes Innodb_undo_tablespace_bytes purge_failing engine_halted Replica_applier_state")
)

func numberSet(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// numbers are those that the console's charts are made of.
func (n *Node) numbers() console.Numbers {
	statements, commits := n.sessions.Latencies()
	out := console.Numbers{TimeUS: time.Now().UnixMicro(), Statements: consoleLatencies(statements), Commits: consoleLatencies(commits),
		Counters: map[string]int64{}, Gauges: map[string]int64{}}
	take := func(name string, value int64) {
		switch {
		case consoleCounters[name]:
			out.Counters[name] = value
		case consoleGauges[name]:
			out.Gauges[name] = value
		}
	}
	if eng, err := n.group.Engine(); err == nil {
		stats := eng.Stats()
		stats.Each(take)
	}
	if stats, err := n.group.Stats(); err == nil {
		stats.Each(take)
	}
	out.Gauges["sessions"], out.Gauges["sessions_active"] = int64(n.sessions.Sessions()), int64(n.sessions.Active())
	return out
}

func consoleLatencies(l session.Latencies) console.Latencies {
	out := console.Latencies{Counts: l.Counts, Sum: l.Sum.Seconds()}
	for _, d := range l.Limits {
		out.Limits = append(out.Limits, d.Seconds())
	}
	return out
}
