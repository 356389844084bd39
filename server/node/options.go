package node

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/config"
)

// Version is the version of Trireme.
const Version = "0.1.0"

// host is the name by which others reach this node.
func host(cfg *config.Config) string {
	if h := cfg.String("report_host"); h != "" {
		return h
	}
	if ip := net.ParseIP(cfg.String("bind_address")); ip != nil && !ip.IsUnspecified() {
		return ip.String()
	}
	h, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return h
}

// statementFiles is the directory of secure_file_priv, or nil.
func statementFiles(cfg *config.Config) (*file.Confined, error) {
	dir := cfg.String("secure_file_priv")
	if dir == "" || strings.EqualFold(dir, "NULL") {
		return nil, nil
	}
	files, err := file.Confine(dir)
	if err != nil {
		return nil, fmt.Errorf("secure_file_priv: %w", err)
	}
	return files, nil
}

// peerAddress is the address of this node as the list of founders has it.
func peerAddress(cfg *config.Config) string {
	if a := cfg.String("peer_address"); a != "" {
		return a
	}
	return net.JoinHostPort(host(cfg), cfg.String("peer_port"))
}

// listenAddress is where to listen: "*" is everywhere.
func listenAddress(bind string, port int64) string {
	if bind == "*" {
		bind = ""
	}
	return net.JoinHostPort(bind, strconv.FormatInt(port, 10))
}

// founders is how many nodes found the group, as this node is to take it. A read replica is none of them: in etcd's registry those found a group that come first,
// and it would vote.
func founders(cfg *config.Config) int {
	if cfg.Bool("replica") && cfg.String("discovery") == "etcd" {
		return 0
	}
	return int(cfg.Int("discovery_expect"))
}

// discover returns how the node learns of others.
func discover(cfg *config.Config, log *slog.Logger) (discovery.Discovery, error) {
	name, addr, expect := cfg.String("cluster_name"), peerAddress(cfg), founders(cfg)
	switch cfg.String("discovery") {
	case "dns":
		return discovery.NewDNS(discovery.DNSOptions{Name: name, Expect: expect,
			Pattern: cfg.String("discovery_dns_pattern"), SRV: cfg.String("discovery_dns_srv"),
			Service: cfg.String("discovery_dns_service"), Members: cfg.String("discovery_dns_members")})
	case "etcd":
		secure, err := etcdTLS(cfg)
		if err != nil {
			return nil, err
		}
		return discovery.NewEtcd(discovery.EtcdOptions{Name: name, Addr: addr, Expect: expect, TLS: secure,
			Endpoints: cfg.List("etcd_endpoints"), Username: cfg.String("etcd_username"),
			Password: cfg.String("etcd_password"), Prefix: cfg.String("etcd_prefix"), Log: log})
	}
	nodes := cfg.List("founders")
	if len(nodes) == 0 {
		nodes = []string{addr}
	}
	return discovery.NewStatic(name, nodes)
}

// etcdTLS is how etcd's endpoints are spoken with over TLS. The node's own certificate is read at each connection: it ends
// sooner than the node.
func etcdTLS(cfg *config.Config) (*tls.Config, error) {
	ca, cert, key := cfg.String("etcd_tls_ca"), cfg.String("etcd_tls_cert"), cfg.String("etcd_tls_key")
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
		if _, err := c.GetClientCertificate(nil); err != nil {
			return nil, fmt.Errorf("etcd_tls_cert %s with etcd_tls_key %s: %w", cert, key, err)
		}
	}
	if ca == "" {
		return c, nil
	}
	b, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("etcd_tls_ca: %w", err)
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("etcd_tls_ca: %s has no certificate as PEM", ca)
	}
	return c, nil
}

// tlsOptions are those of TLS with clients.
func tlsOptions(cfg *config.Config, log *slog.Logger) auth.TLSOptions {
	o := auth.TLSOptions{CertFile: cfg.String("ssl_cert"), KeyFile: cfg.String("ssl_key"), Name: host(cfg),
		CAFile: cfg.String("ssl_ca"), CRLFile: cfg.String("ssl_crl"), Log: log}
	o.MinVersion, o.MaxVersion = cfg.TLSVersions()
	return o
}

// aloneName is the name in the certificate that a node makes for itself which is alone.
const aloneName = "trireme-alone"

// transportOptions are those of the connections between members.
func transportOptions(cfg *config.Config, log *slog.Logger) (transport.Options, error) {
	o := transport.Options{Listen: listenAddress(cfg.String("peer_bind"), cfg.Int("peer_port")),
		Advertise: peerAddress(cfg), LogFormat: group.LogFormat, Build: Version, Logger: log}
	limit := socket.Numbers()
	o.MaxConnections, o.MaxNewcomers = shareOut(limit, uint64(cfg.Int("innodb_open_files"))).peers(limit)
	switch {
	case cfg.String("peer_tls_cert") != "":
		o.TLS = &transport.TLS{CertFile: cfg.String("peer_tls_cert"), KeyFile: cfg.String("peer_tls_key"),
			CAFile: cfg.String("peer_tls_ca"), ServerName: cfg.String("peer_tls_server_name"),
			RequireIdentity: cfg.String("peer_tls_identity") == "uri", RequireHost: cfg.String("peer_tls_identity") == "host"}
	case cfg.Bool("peer_allow_plaintext"):
		o.AllowPlaintext = true
	case alone(cfg):
		// Nobody is to be talked to, so nobody is listened to from elsewhere; nor are other users of this machine, who have no such certificate.
		own, err := auth.SelfSigned(aloneName, time.Now(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
		if err != nil {
			return o, err
		}
		o.TLS = &transport.TLS{Certificate: own, ServerName: aloneName}
		o.Listen = net.JoinHostPort("127.0.0.1", cfg.String("peer_port"))
	default:
		return o, fmt.Errorf("how members prove who they are is not set: give peer_tls_cert, peer_tls_key and peer_tls_ca, " +
			"or peer_allow_plaintext=ON where nobody else can reach the peer ports")
	}
	return o, nil
}

// PeerTLS says whether nodes of a configuration talk to each other with TLS: "on" or "off".
func PeerTLS(cfg *config.Config) string {
	if cfg.String("peer_tls_cert") != "" {
		return "on"
	}
	return "off"
}

// alone reports whether the configuration is that of a group of one.
func alone(cfg *config.Config) bool {
	f := cfg.List("founders")
	return cfg.String("discovery") == "static" && (len(f) == 0 || len(f) == 1 && f[0] == peerAddress(cfg))
}

// groupOptions are those of the group's node; its Transport and Bootstrap are set apart.
func groupOptions(cfg *config.Config, e env.Env, fs file.FS, log *slog.Logger) group.Options {
	o := group.Options{Env: e, FS: fs, Log: log,
		Tick: cfg.Duration("heartbeat_interval"), ElectionTicks: int(cfg.Int("election_ticks")), NoLease: !cfg.Bool("strong_read_lease"),
		LogFileSize: cfg.Int("max_binlog_size"), LogKeep: cfg.Int("binlog_keep_size"), LargeThreshold: cfg.Int("binlog_large_commit_threshold"),
		LogExpire: time.Duration(cfg.Int("binlog_expire_logs_seconds")) * time.Second,
		Workers:   int(cfg.Int("replica_parallel_workers")),
		Storage: storage.Options{BufferPoolSize: cfg.Int("innodb_buffer_pool_size"),
			RedoCapacity: cfg.Int("innodb_redo_log_capacity"), LogBufferSize: int(cfg.Int("innodb_log_buffer_size")),
			FlushInterval: cfg.Duration("innodb_flush_log_at_timeout"), DirectIO: cfg.String("innodb_flush_method") == "O_DIRECT",
			LockWait: cfg.Duration("innodb_lock_wait_timeout"), OpenFiles: OpenFiles(cfg.Int("innodb_open_files")),
			Cleaner: buffer.CleanerOptions{IOCapacity: int(cfg.Int("innodb_io_capacity")),
				IOCapacityMax: int(cfg.Int("innodb_io_capacity_max"))},
			PurgeTasks: int(cfg.Int("innodb_purge_threads")), UndoTablespaces: int(cfg.Int("innodb_undo_tablespaces")),
			TableCache: int(cfg.Int("table_open_cache"))},
		Session: txn.Options{CacheSize: int(cfg.Int("binlog_cache_size")), CacheMax: cfg.Int("max_binlog_cache_size"), TemporaryPool: cfg.Int("temporary_pool_size"), TemporaryFiles: temporaryFiles(cfg.Int("innodb_open_files"))},
	}
	o.Session.Events.Image, _ = event.ParseRowImage(cfg.String("binlog_row_image"))
	return o
}
