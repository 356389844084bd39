package node

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/tracing"
)

// Check tells what Open would refuse of a configuration, all of it. It opens neither data nor ports, and talks to nobody.
//
// elsewhere says that the node is to run on another machine: a file that is named is looked at only if its directory is
// there, and what a pod has by being one is not looked at.
func Check(cfg *config.Config, elsewhere bool) error {
	c := check{cfg: cfg, elsewhere: elsewhere, env: env.Real(), log: slog.New(slog.DiscardHandler)}
	_, err := cfg.Memory(os.DirFS("/"))
	c.add("", err)
	c.ports()
	c.files()
	c.peers()
	c.engine()
	return errors.Join(c.errs...)
}

type check struct {
	cfg       *config.Config
	elsewhere bool
	env       env.Env
	log       *slog.Logger
	errs      []error
}

func (c *check) add(what string, err error) {
	if err != nil && what != "" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// visible reports whether the files that settings name are to be looked at.
func (c *check) visible(settings ...string) bool {
	for _, s := range settings {
		name := c.cfg.String(s)
		if name == "" || !c.elsewhere {
			continue
		}
		if _, err := os.Stat(filepath.Dir(name)); err != nil {
			return false
		}
	}
	return true
}

// ports finds listeners that exclude each other.
func (c *check) ports() {
	taken := map[string]string{}
	for _, l := range []struct{ port, bind string }{{"port", "bind_address"}, {"read_only_port", "bind_address"}, {"http_port", "bind_address"},
		{"grpc_port", "bind_address"}, {"peer_port", "peer_bind"}} {
		n := c.cfg.Int(l.port)
		if n <= 0 {
			continue // none, or any that is free
		}
		at := listenAddress(c.cfg.String(l.bind), n)
		if other := taken[at]; other != "" {
			c.add("", fmt.Errorf("%s and %s are both %d: choose another %s", other, l.port, n, l.port))
		}
		taken[at] = l.port
	}
}

// files are those of TLS, keys, the audit and the pod.
func (c *check) files() {
	cfg := c.cfg
	if (cfg.String("ssl_cert") != "" || cfg.Bool("auto_generate_certs")) && c.visible("ssl_cert", "ssl_key", "ssl_ca", "ssl_crl") {
		_, err := auth.OpenTLS(tlsOptions(cfg, c.log))
		c.add("TLS for clients", err)
	}
	if c.visible("caching_sha2_password_private_key_path") {
		_, err := auth.New(auth.Options{KeyFile: cfg.String("caching_sha2_password_private_key_path"), Log: c.log})
		c.add("", err)
	}
	if name := cfg.String("audit_log"); filepath.IsAbs(name) && c.visible("audit_log") {
		_, err := os.Stat(filepath.Dir(name))
		c.add("audit_log", err)
	}
	if !c.elsewhere {
		_, err := (&Node{cfg: cfg}).newStatefulSet()
		c.add("", err)
	}
	if endpoint := cfg.String("trace_endpoint"); endpoint != "" {
		if err := tracing.CheckEndpoint(endpoint); err != nil {
			c.add("", fmt.Errorf("trace_endpoint %w", err))
		}
	}
}

// peers is how members find and trust each other.
func (c *check) peers() {
	d, err := discover(c.cfg, c.log)
	c.add("", err)
	if err == nil {
		c.add("", d.Close())
	}
	o, err := transportOptions(c.cfg, c.log)
	c.add("", err)
	if err != nil {
		return
	}
	if !c.visible("peer_tls_cert", "peer_tls_key", "peer_tls_ca") {
		o.TLS, o.AllowPlaintext = nil, true
	}
	c.add("", o.Check())
}

// engine is what the storage engine, the group and sessions are told.
func (c *check) engine() {
	o := groupOptions(c.cfg, c.env, file.OS(os.TempDir()), c.log)
	o.Transport = func(transport.Identity, transport.Handler) (transport.Transport, error) {
		return nil, errors.ErrUnsupported
	}
	c.add("", o.Validate())
	o.Storage.Env, o.Storage.FS = o.Env, o.FS
	c.add("", o.Storage.Validate())
	_, err := statementFiles(c.cfg)
	c.add("", err)
	_, err = session.NewManager(session.Options{Env: c.env, Variables: c.cfg.Variables()})
	c.add("", err)
}

// Formats are versions of what nodes send each other and write, in a Report.
type Formats struct {
	Min uint32 `json:"min"` // that this program knows
	Max uint32 `json:"max"`
	// Written is that of the newest file of the log; 0: not known yet, or of no file.
	Written uint32 `json:"written,omitempty"`
}

// Protocol and LogFormat are what this program knows of the contract between nodes and of the log.
func Protocol() Formats { return Formats{Min: transport.ProtocolMin, Max: transport.ProtocolMax} }

// LogFormat is Protocol for files of the log.
func LogFormat() Formats { return Formats{Min: group.LogFormat.Min, Max: group.LogFormat.Max} }

// Excludes says why this program cannot take the place of, or stand beside, the one that reported; empty: it can.
// A program that tells no versions is one of before they were told: nothing is said of it.
func (r *Report) Excludes(protocol, log Formats) string {
	var bad []string
	if r.Protocol.Max > 0 && (r.Protocol.Max < protocol.Min || r.Protocol.Min > protocol.Max) {
		bad = append(bad, fmt.Sprintf("it speaks versions %d to %d of the protocol between nodes, this program %d to %d", r.Protocol.Min, r.Protocol.Max, protocol.Min, protocol.Max))
	}
	if r.LogFormat.Max > 0 && (r.LogFormat.Max < log.Min || r.LogFormat.Min > log.Max) {
		bad = append(bad, fmt.Sprintf("it knows versions %d to %d of the log's format, this program %d to %d", r.LogFormat.Min, r.LogFormat.Max, log.Min, log.Max))
	}
	if w := r.LogFormat.Written; w > 0 && (w > log.Max || w < log.Min) {
		bad = append(bad, fmt.Sprintf("its log has version %d of the format, and this program reads %d to %d", w, log.Min, log.Max))
	}
	return strings.Join(bad, "; ")
}
