package node

import (
	"net/http"
	"os"
	"runtime"
	rmetrics "runtime/metrics"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/server/metrics"
)

// serveMetrics answers GET /metrics.
func (n *Node) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	m := metrics.NewWriter()
	m.Set("trireme_build_info", 1, "version", Version)
	m.Set("trireme_node_start_time_seconds", float64(n.began.UnixMilli())/1e3)
	m.Set("trireme_node_ready", metrics.On(n.unready() == nil))
	m.Set("trireme_node_draining", metrics.On(n.draining.Load()))
	r := n.recovery()
	m.Set("trireme_recovery_running", metrics.On(r.Doing() != ""))
	m.Set("trireme_recovery_redo_bytes", float64(r.Redo))
	m.Set("trireme_recovery_redo_applied_bytes", float64(r.RedoApplied))
	m.Set("trireme_recovery_entries", float64(r.Entries()))
	m.Set("trireme_recovery_entries_applied", float64(r.EntriesApplied))
	m.Set("trireme_recovery_transactions_left", float64(r.Unfinished-r.RolledBack))
	m.Set("trireme_recovery_duration_seconds", r.Time)
	total, free := diskSpace(n.dir)
	m.Set("trireme_disk_size_bytes", float64(total))
	m.Set("trireme_disk_free_bytes", float64(free))
	n.failureMetrics(m)
	n.expiryMetrics(m)
	n.usersMetrics(m)
	processMetrics(m)
	n.descriptors.metrics(m)
	if n.isReady() {
		a := n.audit.Stats()
		m.Set("trireme_audit_lines_total", float64(a.Written))
		m.Set("trireme_audit_lost_total", float64(a.Lost))
		m.Set("trireme_audit_failing", metrics.On(a.Failing))
	}
	if n.memory > 0 {
		m.Set("trireme_memory_limit_bytes", float64(n.memory))
	}
	if n.traces != nil {
		s := n.traces.Stats()
		m.Set("trireme_trace_spans_sent_total", float64(s.Sent))
		m.Set("trireme_trace_spans_dropped_total", float64(s.Full), "reason", "queue")
		m.Set("trireme_trace_spans_dropped_total", float64(s.Failed), "reason", "failed")
		m.Set("trireme_trace_spans_dropped_total", float64(s.Limited), "reason", "rate")
		m.Set("trireme_trace_spans_queued", float64(s.Queued))
	}
	if n.isReady() {
		n.groupMetrics(m)
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = m.WriteTo(w) // the client's connection
}

// peerAddress is where the group reaches this member.
func (n *Node) peerAddress() string {
	for _, m := range n.group.Members() {
		if m.ID == n.group.ID() {
			return m.Addr
		}
	}
	return ""
}

// groupMetrics adds what an open node knows. What a node that is being given its data does not
// have is left out.
func (n *Node) groupMetrics(m *metrics.Writer) {
	s := n.group.Status()
	m.Set("trireme_node_leader", metrics.On(n.serves()))
	m.Set("trireme_node_voter", metrics.On(n.votes()))
	m.Set("trireme_node_provisioning", metrics.On(s.Provisioning))
	m.Set("trireme_node_failed", metrics.On(n.group.Err() != nil))
	m.Set("trireme_node_info", 1, "member", strconv.FormatUint(n.group.ID(), 10), "address", n.peerAddress())
	m.Set("trireme_group_term", float64(s.Term))
	m.Set("trireme_group_messages_damaged_total", float64(n.peers.Damaged()))
	m.Set("trireme_group_leader_known", metrics.On(s.Leader != 0))
	m.Set("trireme_disk_full", metrics.On(s.DiskFull))
	m.Set("trireme_disk_stalled_seconds", s.DiskStalled.Seconds())
	m.Set("trireme_group_undelivered_seconds", s.Undelivered.Seconds())
	voters := n.voters()
	m.Set("trireme_group_members", float64(voters), "role", "voter")
	m.Set("trireme_group_members", float64(len(n.group.Members())-voters), "role", "learner")
	m.Set("trireme_group_other_group", metrics.On(n.others.Load()))
	n.around.metrics(m)
	n.backupMetrics(m)
	m.Set("trireme_settings_fingerprint", float64(n.fingerprint()))
	m.Set("trireme_connections", float64(n.clients()))
	m.Set("trireme_connections_limit", float64(n.sessions.GlobalNumber("max_connections")))
	m.Set("trireme_sessions", float64(n.sessions.Sessions()))
	m.Set("trireme_sessions_active", float64(n.sessions.Active()))
	statements, commits := n.sessions.Latencies()
	observed(m, "trireme_statement_duration_seconds", statements)
	observed(m, "trireme_commit_duration_seconds", commits)
	m.Set("trireme_statement_errors_total", float64(n.sessions.Failed()))
	m.Set("trireme_statement_slow_total", float64(n.sessions.Slow()))
	m.Set("trireme_statement_panics_total", float64(n.sessions.Panics()))
	m.Set("trireme_statements_without_space_total", float64(n.sessions.OutOfSpace()))
	oldest := 0.0
	if list := n.sessions.Transactions(); len(list) > 0 {
		oldest = list[0].Age.Seconds()
	}
	m.Set("trireme_transactions_oldest_seconds", oldest)
	plans := n.sessions.PlanCache()
	memory := n.sessions.StatementMemory()
	m.Set("trireme_statement_memory_bytes", float64(memory.Used()))
	m.Set("trireme_statement_memory_limit_bytes", float64(memory.Limit()))
	m.Set("trireme_statement_memory_refused_total", float64(memory.Refused()))
	m.Set("trireme_temporary_file_bytes", float64(n.sessions.TemporaryFiles().Used()))
	tables, bytes := n.group.TemporaryTables()
	m.Set("trireme_temporary_tables", float64(tables))
	m.Set("trireme_temporary_table_bytes", float64(bytes))
	m.Set("trireme_temporary_file_refused_total", float64(n.sessions.TemporaryFiles().Refused()))
	processors := n.sessions.Processors()
	m.Set("trireme_processor_places", float64(processors.Places))
	m.Set("trireme_processor_waiting", float64(processors.Waiting))
	m.Set("trireme_processor_waits_total", float64(processors.Waits))
	m.Set("trireme_processor_wait_seconds_total", processors.Waited.Seconds())
	history := n.sessions.History()
	m.Set("trireme_undo_history_bytes", float64(history.Bytes))
	if history.Limit > 0 {
		m.Set("trireme_undo_history_limit_bytes", float64(history.Limit))
	}
	m.Set("trireme_snapshots_ended_total", float64(history.Ended))
	m.Set("trireme_plan_cache_plans", float64(plans.Plans))
	m.Set("trireme_plan_cache_bytes", float64(plans.Bytes))
	m.Set("trireme_plan_cache_hits_total", float64(plans.Hits))
	m.Set("trireme_plan_cache_misses_total", float64(plans.Misses))
	m.Set("trireme_plan_cache_evicted_total", float64(plans.Evicted))
	if eng, err := n.group.Engine(); err == nil {
		stats := eng.Stats()
		stats.Each(m.Stat)
	}
	if stats, err := n.group.Stats(); err == nil {
		stats.Each(m.Stat)
	}
	n.door.Stats(m.Stat)
}

// backupMetrics adds what the group remembers of its backups.
func (n *Node) backupMetrics(m *metrics.Writer) {
	if wanted := n.cfg.Duration("backup_max_age"); wanted > 0 {
		m.Set("trireme_backup_max_age_seconds", wanted.Seconds())
	}
	b, err := n.group.Backups()
	if err != nil {
		return
	}
	if !b.Succeeded.IsZero() {
		m.Set("trireme_backup_last_success_timestamp_seconds", float64(b.Succeeded.UnixMilli())/1e3)
		m.Set("trireme_backup_last_size_bytes", float64(b.Bytes))
		m.Set("trireme_backup_last_duration_seconds", b.Duration.Seconds())
	}
	if !b.Failed.IsZero() {
		m.Set("trireme_backup_last_failure_timestamp_seconds", float64(b.Failed.UnixMilli())/1e3)
	}
}

func observed(m *metrics.Writer, name string, l session.Latencies) {
	limits := make([]float64, len(l.Limits))
	for i, d := range l.Limits {
		limits[i] = d.Seconds()
	}
	m.Observed(name, limits, l.Counts, l.Sum.Seconds())
}

// processMetrics adds what the system says of the process; nothing where it does not.
func processMetrics(m *metrics.Writer) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		m.Set("process_cpu_seconds_total", float64(u.Utime.Nano()+u.Stime.Nano())/1e9)
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			m.Set("process_resident_memory_bytes", float64(pages)*float64(os.Getpagesize()))
		}
	}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		m.Set("process_open_fds", float64(len(list)))
	}
	if limit := socket.Numbers(); limit != 0 {
		m.Set("process_max_fds", float64(limit))
	}
	m.Set("go_goroutines", float64(runtime.NumGoroutine()))
	heap := []rmetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if rmetrics.Read(heap); heap[0].Value.Kind() == rmetrics.KindUint64 {
		m.Set("go_heap_bytes", float64(heap[0].Value.Uint64()))
	}
}
