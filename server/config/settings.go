package config

import "time"

// Kind is what values a setting has.
type Kind uint8

const (
	Text     Kind = iota
	Switch        // ON, OFF
	Number        // whole
	Bytes         // with K, M, G, T
	Duration      // "500ms", "10s"; a bare number is seconds
	List          // parted by commas
	Fraction      // from 0 to 1, as 0.01
)

// Setting is something a node can be told.
type Setting struct {
	Name    string
	Kind    Kind
	Default string
	Min     int64 // of numbers, bytes and durations (nanoseconds)
	Max     int64 // 0: no limit
	Choices []string
	Secret  bool // not printed
	// OfMemory: bytes may be given as a part of the memory that the process may use, "50%".
	OfMemory bool
	Doc      string
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40

	second = int64(time.Second)
	milli  = int64(time.Millisecond)
)

// Section is a group of settings.
type Section struct {
	Title    string
	Settings []Setting
}

// Sections are all settings, in the order in which they are printed.
var Sections = []Section{
	{"Where things are", []Setting{
		{Name: "datadir", Default: "data", Doc: "The node's directory: everything that it keeps. It is made if it is not there."},
		{Name: "log_level", Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Doc: "What is logged, to standard error."},
		{Name: "log_format", Default: "text", Choices: []string{"text", "json"}, Doc: "The form of a line of the log."},
	}},
	{"Clients", []Setting{
		{Name: "bind_address", Default: "*", Doc: "The address on which clients are served; * is all of them."},
		{Name: "port", Kind: Number, Default: "3306", Max: 65535, Doc: "Port of the MySQL protocol for reading and writing: on a node that does not lead the group sessions are passed on to the one that does. 0 is any free port."},
		{Name: "read_only_port", Kind: Number, Default: "3406", Min: -1, Max: 65535, Doc: "Port of the MySQL protocol for reading what this node has. 0 is any free port, -1 none."},
		{Name: "grpc_port", Kind: Number, Default: "17000", Min: -1, Max: 65535, Doc: "Port for programs that speak gRPC (docs/grpc.md). 0 is any free port, -1 none."},
		{Name: "grpc_reflection", Kind: Switch, Default: "ON", Doc: "Tell everybody who reaches the gRPC port which calls there are, as grpcurl asks."},
		{Name: "grpc_allow_plaintext", Kind: Switch, Default: "OFF", Doc: "Let programs on other machines use the gRPC port, and people the web console, without TLS: their passwords can be read on the way. Those on this machine always may, unless require_secure_transport is set."},
		{Name: "report_host", Doc: "The host name or address by which clients and other members reach this node's ports; empty: the host's name, or bind_address if it is one address."},
		{Name: "max_connections", Kind: Number, Default: "151", Min: 1, Max: 100_000, Doc: "Clients at a time. One more may come in who has CONNECTION_ADMIN."},
		{Name: "max_prepared_stmt_count", Kind: Number, Default: "16382", Max: 4_194_304, Doc: "Prepared statements of all clients together."},
		{Name: "connect_timeout", Kind: Duration, Default: "10s", Min: second, Max: 3600 * second, Doc: "How long a client may take to log in."},
		{Name: "initial_root_password", Secret: true, Doc: "The password of root@% when a group begins. Empty: that of root_password_file; without one it is drawn and printed once. Later starts do not look at it."},
		{Name: "initial_root_password_file", Doc: "A file with that password instead: its first line."},
		{Name: "root_password_file", Doc: "A file whose first line becomes the password of root@% whenever it changes, within seconds of that. What a statement has set stays until then."},
		{Name: "users_dir", Doc: "A directory that tells which accounts the leader makes, and keeps as it says: passwords, privileges (docs/operations-server.md). It is read again all the time. Empty: none."},
	}},
	{"TLS for clients", []Setting{
		{Name: "ssl_cert", Doc: "Certificate of the MySQL, gRPC and HTTP ports, as PEM. It is read again when the file changes."},
		{Name: "ssl_key", Doc: "Its key."},
		{Name: "ssl_ca", Doc: "The authorities that sign the certificates of clients, as PEM: a client that shows a certificate has to show one of theirs, and accounts may REQUIRE one (docs/security.md). Empty: clients are asked for none. It is read again when the file changes."},
		{Name: "ssl_crl", Doc: "Lists of the certificates that those authorities have taken back, as PEM, one for each authority. It is read again when the file changes."},
		{Name: "tls_version", Kind: List, Default: "TLSv1.2,TLSv1.3", Doc: "The versions of TLS that clients may use: TLSv1.2, TLSv1.3 or both."},
		{Name: "auto_generate_certs", Kind: Switch, Default: "ON", Doc: "Without ssl_cert: make a certificate at each start. It encrypts, but proves nothing."},
		{Name: "require_secure_transport", Kind: Switch, Default: "OFF", Doc: "Refuse clients without TLS. SET GLOBAL changes it."},
		{Name: "caching_sha2_password_private_key_path", Doc: "RSA key as PEM, for which clients without TLS encrypt their password; empty: one is made at each start."},
	}},
	{"The group", []Setting{
		{Name: "cluster_name", Default: "trireme", Doc: "Name of the cluster: nodes of others are refused, and so is a directory of another."},
		{Name: "peer_bind", Default: "*", Doc: "Address on which the other members are served."},
		{Name: "peer_port", Kind: Number, Default: "17100", Min: 1, Max: 65535, Doc: "Port for the other members."},
		{Name: "peer_address", Doc: "host:port by which the others reach this node, as the list of founders has it; empty: report_host or the host's name with peer_port."},
		{Name: "discovery", Default: "static", Choices: []string{"static", "dns", "etcd"}, Doc: "How nodes find each other."},
		{Name: "founders", Kind: List, Doc: "static: peer addresses of the nodes that found the group, the same list on every node. Empty: this node alone. A node that is not in it joins."},
		{Name: "discovery_dns_pattern", Doc: "dns: peer address of a founder with {} for its number from 0 on, as trireme-{}.trireme.prod.svc.cluster.local:17100."},
		{Name: "discovery_dns_srv", Doc: "dns: name of SRV records of the founders, instead of a pattern."},
		{Name: "discovery_dns_service", Doc: "dns: host:port of a name whose addresses are those of all members, for nodes that join."},
		{Name: "discovery_dns_members", Doc: "dns: name of SRV records of all nodes, founders or not, also of those that are not ready, as _peers._tcp.trireme-peers.prod.svc.cluster.local. Nodes that join ask them, and a group is founded only when all of them have answered that there is none."},
		{Name: "discovery_expect", Kind: Number, Default: "0", Max: 99, Doc: "dns, etcd: how many nodes found the group; etcd: 0 means that this node founds none."},
		{Name: "etcd_endpoints", Kind: List, Doc: "etcd: its addresses."},
		{Name: "etcd_username", Doc: "etcd: who this node is there."},
		{Name: "etcd_password", Secret: true, Doc: "etcd: and its password."},
		{Name: "etcd_tls_ca", Doc: "etcd: the authorities that sign its certificates, as PEM, for endpoints that begin with https://; empty: the machine's. It is read when the node starts."},
		{Name: "etcd_tls_cert", Doc: "etcd: the certificate that this node shows it, as PEM; empty: none. It is read at each connection."},
		{Name: "etcd_tls_key", Doc: "etcd: its key."},
		{Name: "etcd_prefix", Default: "/trireme/", Doc: "etcd: what all keys begin with."},
		{Name: "etcd_domain", Doc: "etcd: what follows the first part of the hosts' names of the group's nodes, as trireme-peers.prod.svc.cluster.local. A node that has no data neither joins nor founds a group in a registry that has nodes of other names under cluster_name, unless it has members of this domain. Empty: all may be one group."},
		{Name: "kubernetes_statefulset", Doc: "The StatefulSet that this node's pod, the first part of report_host, belongs to. A node that is stopped looks there whether it is to have fewer pods, and leaves the group for good if its own is not among them. Empty: it stays a member."},
		{Name: "kubernetes_credentials", Default: "/var/run/secrets/kubernetes.io/serviceaccount", Doc: "Directory with the token, ca.crt and namespace of its service account, which has to be allowed to get the StatefulSets, and to delete claims and create events if the leader is to. With discovery dns or etcd a pod looks at claims data-SET-N, N up to 98, of all sets before it founds a group, and has to be allowed to get them."},
		{Name: "kubernetes_statefulsets", Kind: List, Doc: "The StatefulSets of all members of the group. A leader in a pod looks there which members are to be: those of other pods that do not leave by themselves it takes out of the group. Given without kubernetes_statefulset a pod looks at claims before it founds a group, and at nothing else."},
		{Name: "kubernetes_restore", Doc: "What a Job is to restore into the claim of the first pod of the StatefulSet before the group is founded. While the claim's annotation trireme.io/restore does not say that it is done, a pod with discovery dns or etcd founds nothing. Empty: nothing is, and only a restore that was begun is waited for."},
		{Name: "kubernetes_delete_claims", Kind: Switch, Default: "OFF", Doc: "The leader deletes the claims data-SET-N, N up to 98, of members that have left the group and whose pods the StatefulSet is not to have any more. A pod that it is to have, and that finds the data of a member that has left, removes them and joins as a new member."},
		{Name: "replica", Kind: Switch, Default: "OFF", Doc: "A node that joins stays a replica for reading, and does not vote."},
		{Name: "peer_tls_cert", Doc: "Certificate by which the members know each other, for servers and clients, as PEM."},
		{Name: "peer_tls_key", Doc: "Its key."},
		{Name: "peer_tls_ca", Doc: "The authorities that sign the members' certificates."},
		{Name: "peer_tls_server_name", Doc: "The name that the others' certificates have; empty: the host that is dialed."},
		{Name: "peer_tls_identity", Default: "authority", Choices: []string{"authority", "host", "uri"}, Doc: "What the certificate of another member has to prove: only that an authority of peer_tls_ca has signed it; that it is for the host of the member that its node says it is, as the group knows the member's address; or, by a URI trireme://GROUP/MEMBER in it, that it is that member's."},
		{Name: "peer_allow_plaintext", Kind: Switch, Default: "OFF", Doc: "Members talk without TLS: whoever reaches the peer port can read and write everything."},
		{Name: "heartbeat_interval", Kind: Duration, Default: "50ms", Min: milli, Max: 10 * second, Doc: "Between signs of life of the leader, which sends every third one only while it is idle. The same on every member."},
		{Name: "election_ticks", Kind: Number, Default: "10", Min: 4, Max: 1000, Doc: "Heartbeats missed until an election, up to twice that. Members may differ while it is changed on one after the other: what the leader is set to counts, if it is more."},
		{Name: "strong_read_lease", Kind: Switch, Default: "ON", Doc: "The leader answers strong reads from a lease, without a message. OFF: each strong read asks a majority. A lease is counted on the machine's clock, so switch it off where that can stand still while other machines run: virtual machines that are paused, or migrated while they run."},
	}},
	{"The log", []Setting{
		{Name: "max_binlog_size", Kind: Bytes, Default: "256M", Min: 4096, Max: tib, Doc: "A new file begins about there. The group's once it runs: SET GLOBAL."},
		{Name: "binlog_keep_size", Kind: Bytes, Default: "4G", Min: 64 * kib, Doc: "Closed files beyond this go even if a member needs them, but not those that a backup needs, or a member that is being given its data, while a tenth of the disk is free. The group's."},
		{Name: "binlog_expire_logs_seconds", Kind: Number, Default: "2592000", Min: 1, Max: 1 << 32, Doc: "Closed files older than this go. The group's."},
		{Name: "binlog_row_image", Default: "minimal", Choices: []string{"minimal", "noblob", "full"}, Doc: "Which columns of a changed row are logged."},
		{Name: "binlog_large_commit_threshold", Kind: Bytes, Default: "8M", Min: 256 * kib, Max: tib, Doc: "A transaction with more bytes of events is streamed to the other members while it runs, and its commit renames a file. The group's once it runs: SET GLOBAL."},
		{Name: "binlog_cache_size", Kind: Bytes, Default: "32K", Min: 4 * kib, Max: gib, Doc: "A transaction's events in memory; more go to a file."},
		{Name: "max_binlog_cache_size", Kind: Bytes, Default: "0", Doc: "The largest transaction, in bytes of its events, at least 4K: error 1197. 0: no limit but the disk's."},
		{Name: "replica_parallel_workers", Kind: Number, Default: "4", Min: 1, Max: 1024, Doc: "Tasks that apply what other members committed."},
	}},
	{"The storage engine", []Setting{
		{Name: "innodb_buffer_pool_size", Kind: Bytes, OfMemory: true, Default: "128M", Min: mib, Max: 16 * tib, Doc: "Memory for pages: bytes, or a part of all that the process may use (memory_limit, or the container's limit, or the machine's memory) as 50%."},
		{Name: "temporary_pool_size", Kind: Bytes, Default: "8M", Min: mib, Max: 16 * tib, Doc: "Memory for pages of temporary tables (CREATE TEMPORARY TABLE) of all sessions, which is taken with the first one; what it has no room for is in files. It counts with innodb_buffer_pool_size."},
		{Name: "innodb_redo_log_capacity", Kind: Bytes, Default: "100M", Min: 4 * mib, Max: tib, Doc: "Size of the redo log."},
		{Name: "innodb_log_buffer_size", Kind: Bytes, Default: "16M", Min: mib, Max: 4 * gib, Doc: "Redo in memory."},
		{Name: "innodb_flush_log_at_timeout", Kind: Duration, Default: "1s", Min: milli, Max: 2700 * second, Doc: "How often redo is written; commits do not wait for it."},
		{Name: "innodb_flush_method", Default: "fsync", Choices: []string{"fsync", "O_DIRECT"}, Doc: "O_DIRECT passes by the system's cache."},
		{Name: "innodb_lock_wait_timeout", Kind: Duration, Default: "50s", Min: second, Max: 1073741824 * second, Doc: "How long a statement waits for a row lock."},
		{Name: "innodb_open_files", Kind: Number, Default: "4000", Min: 10, Max: 1<<31 - 1, Doc: "Files of tables that are kept open, if the process may have so many file descriptors."},
		{Name: "innodb_io_capacity", Kind: Number, Default: "2000", Min: 100, Max: 1 << 30, Doc: "Pages written each second in the background."},
		{Name: "innodb_io_capacity_max", Kind: Number, Default: "20000", Min: 100, Max: 1 << 30, Doc: "The same when there is need."},
		{Name: "innodb_purge_threads", Kind: Number, Default: "2", Min: 1, Max: 32, Doc: "Tasks that remove old row versions."},
		{Name: "innodb_undo_tablespaces", Kind: Number, Default: "2", Min: 1, Max: 127, Doc: "Fixed when the database is created."},
		{Name: "table_open_cache", Kind: Number, Default: "4000", Min: 1, Max: 1 << 20, Doc: "Table definitions in memory, as long as they take no more than an eighth of Go's heap (memory_limit)."},
	}},
	{"Traces", []Setting{
		{Name: "trace_endpoint", Doc: "Where spans of statements go, to a collector of OpenTelemetry's that takes OTLP over gRPC (docs/tracing.md): host:port or http://host:port without TLS, https://host:port with it. Empty: nothing is traced."},
		{Name: "trace_sample_ratio", Kind: Fraction, Default: "0.01", Doc: "How many of the statements are traced whose callers do not say whether they want it, of all of them. Those that do are obeyed."},
		{Name: "trace_max_per_second", Kind: Number, Default: "100", Min: 1, Max: 1_000_000, Doc: "Traces that requests of this node may begin in a second, those that callers ask for included."},
		{Name: "trace_queue_size", Kind: Number, Default: "2048", Min: 64, Max: 1_000_000, Doc: "Spans that may wait until the collector takes them; what is more is dropped and counted."},
		{Name: "trace_statement_text", Default: "digest", Choices: []string{"OFF", "digest"}, Doc: "Whether spans have the text of their statement: digest is the text with ? for each value."},
	}},
	{"Operation", []Setting{
		{Name: "http_port", Kind: Number, Default: "18080", Min: -1, Max: 65535, Doc: "Port of /healthz, /readyz, /status, /metrics and the web console, with TLS and without. 0 is any free port, -1 none."},
		{Name: "ready_max_lag", Kind: Duration, Default: "30s", Max: 24 * 3600 * second, Doc: "/readyz fails while the node knows a leader and is further behind what the group has committed, so that a Service sends nobody there. 0: it may be any time behind. After a start it fails until the node has caught up once, within about a second, whatever this says."},
		{Name: "ready_without_leader", Kind: Duration, Default: "1h", Max: 720 * 3600 * second, Doc: "How long a node that was ready stays so when it does not hear a leader any more, for those who read what it has. If other members answer that do hear one, /readyz fails within seconds. 0s: it fails at once."},
		{Name: "http_console", Kind: Switch, Default: "ON", Doc: "Serve the web console on http_port, for accounts of the database (docs/console.md)."},
		{Name: "http_console_timeout", Kind: Duration, Default: "30m", Min: 10 * second, Max: 12 * 3600 * second, Doc: "Who does nothing in the web console for so long is signed out."},
		{Name: "http_token_file", Doc: "A file whose first line is a token: /metrics, /status and /debug/pprof/ answer who sends it (Authorization: Bearer TOKEN), others hear 401. It is read again when it changes. Empty: they answer everybody."},
		{Name: "http_pprof", Kind: Switch, Default: "OFF", Doc: "Serve /debug/pprof/ on http_port, for go tool pprof: profiles tell of statements and memory, and taking them costs time."},
		{Name: "memory_limit", Kind: Bytes, Default: "0", Max: 16 * tib, Doc: "Memory of the process in all: what innodb_buffer_pool_size leaves of it is for Go's heap, see settings.md, and a third of that is what statements may keep together (temptable_max_ram). 0: the limit of its container, if it has one. GOMEMLIMIT, if set, is the heap's limit instead."},
		{Name: "secure_file_priv", Doc: "The directory, by an absolute path, in which SELECT .. INTO OUTFILE and DUMPFILE write files of this node, for accounts that hold FILE, and which LOAD_FILE() and LOAD DATA INFILE read (docs/sql.md). Nothing leads out of it, symbolic links neither. Empty or NULL: these statements are refused; 'everywhere', as an empty value has it in MySQL, there is not."},
		{Name: "audit_log", Default: "audit.log", Doc: "The file of the audit log (docs/audit.md): lines of JSON about who comes in, what operators change, and the statements that audit_log_events asks for. A name without a leading / is one in datadir. Empty: the lines go to the node's log."},
		{Name: "audit_log_rotate_on_size", Kind: Bytes, Default: "16M", Min: 64 * kib, Max: tib, Doc: "The audit log's file is renamed to audit.log.1, and a new one begun, when it would be larger than this."},
		{Name: "audit_log_files", Kind: Number, Default: "5", Max: 10_000, Doc: "How many renamed files of the audit log are kept."},
		{Name: "audit_log_buffer_size", Kind: Bytes, Default: "1M", Min: 64 * kib, Max: gib, Doc: "Lines of the audit log that may wait for its disk, in bytes; as much again may be on its way there."},
		{Name: "audit_log_strategy", Default: "PERFORMANCE", Choices: []string{"PERFORMANCE", "ASYNCHRONOUS"}, Doc: "What happens to lines of the audit log for which there is no room in its buffer, or no disk: PERFORMANCE drops and counts them, ASYNCHRONOUS lets them wait, and with them the sessions they are about, after their statement is done and before its answer."},
		{Name: "backup_max_age", Kind: Duration, Default: "0s", Max: 3660 * 24 * 3600 * second, Doc: "How old the last backup of the group that is kept (trireme backup --into) may become: the metrics tell it, and the alert TriremeBackupTooOld goes by it. 0: backups are not expected."},
		{Name: "shutdown_timeout", Kind: Duration, Default: "30s", Max: 3600 * second, Doc: "How long statements may go on when the node stops."},
		{Name: "stop_wait", Kind: Duration, Default: "0s", Max: 24 * 3600 * second, Doc: "How long a voter that is to be stopped goes on while the group cannot do without it, since others are away, behind, without space, or being stopped themselves, or while one that is stopped for good cannot leave it. 0: it stops at once. A second signal ends the wait."},
	}},
}

var byName = func() map[string]*Setting {
	all := make(map[string]*Setting)
	for i := range Sections {
		for j := range Sections[i].Settings {
			s := &Sections[i].Settings[j]
			all[s.Name] = s
		}
	}
	return all
}()

// shared are settings that are variables of sessions too: what is given for them goes
// there as well, so that SELECT @@name tells it.
var shared = map[string]bool{
	"bind_address": true, "max_connections": true, "max_prepared_stmt_count": true, "connect_timeout": true, "require_secure_transport": true,
	"innodb_buffer_pool_size": true, "innodb_redo_log_capacity": true, "innodb_log_buffer_size": true,
	"innodb_lock_wait_timeout": true, "innodb_open_files": true, "innodb_io_capacity": true,
	"innodb_io_capacity_max": true, "innodb_purge_threads": true, "innodb_undo_tablespaces": true,
	"innodb_flush_method": true, "innodb_flush_log_at_timeout": true, "table_open_cache": true,
	"binlog_row_image": true, "binlog_cache_size": true, "max_binlog_cache_size": true, "replica_parallel_workers": true,
	"secure_file_priv": true,
}

// Find returns the setting of a name, nil if there is none.
func Find(name string) *Setting { return byName[name] }
