package node

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/peer"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/adminapi"
	"github.com/triremedb/trireme/server/audit"
	"github.com/triremedb/trireme/server/config"
)

// openAudit opens the audit log. A name that is no path from the root is one of the data directory.
func (n *Node) openAudit() (err error) {
	o := audit.Options{File: auditFile(n.cfg), RotateSize: n.cfg.Int("audit_log_rotate_on_size"), Files: int(n.cfg.Int("audit_log_files")),
		Buffer: int(n.cfg.Int("audit_log_buffer_size")), Log: n.log}
	o.Waits = func() bool { return n.cfg.String("audit_log_strategy") == "ASYNCHRONOUS" }
	o.Logins = func(user, host string, refused bool) bool {
		return n.sessions == nil || n.sessions.AuditsLogin(user, host, refused)
	}
	n.audit, err = audit.Open(o)
	return err
}

// auditFile is the path of the audit log's file; empty: it goes to the node's log.
func auditFile(cfg *config.Config) string {
	name := cfg.String("audit_log")
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(cfg.String("datadir"), name)
}

// newAdmin makes the service for operators.
func (n *Node) newAdmin() *adminapi.Server {
	o := adminapi.Options{Group: n.group, Sessions: n.sessions, Config: n.cfg, Program: "trireme " + Version, Log: n.log, Authenticate: n.adminCaller, Member: n.about, Drain: n.drain}
	o.Audit = n.audit.Operators()
	return adminapi.New(o)
}

// adminCaller authenticates a call.
func (n *Node) adminCaller(ctx context.Context) (adminapi.Caller, error) {
	info, err := n.sqlapi.Identify(ctx)
	c := adminapi.Caller{User: info.User, Host: info.Host, AccountUser: info.AccountUser, AccountHost: info.AccountHost}
	if p, ok := peer.FromContext(ctx); ok {
		c.Address = p.Addr.String()
	}
	return c, err
}

// about is what a member tells the others of itself.
type about struct {
	contact
	Version     string        `json:"version"`
	DiskTotal   uint64        `json:"disk_total"`
	DiskFree    uint64        `json:"disk_free"`
	Draining    bool          `json:"draining"`
	Stopping    bool          `json:"stopping,omitempty"` // it does so now
	Blind       bool          `json:"blind,omitempty"`    // it is to be stopped, and is not told why
	Connections int           `json:"connections"`
	Uptime      time.Duration `json:"uptime"`
}

// ownAbout is the node's own.
func (n *Node) ownAbout() about {
	a := about{contact: n.self(), Version: Version, Draining: n.draining.Load(), Stopping: n.goes.Load(), Blind: n.blind.Load(), Uptime: time.Since(n.began)}
	a.DiskTotal, a.DiskFree = diskSpace(n.dir)
	if n.isReady() {
		a.Connections = n.clients()
	}
	return a
}

// clients counts the clients that are connected.
func (n *Node) clients() int { return n.door.Connections() + n.sqlapi.Sessions() }

// diskSpace is what the file system of a directory has; 0 where it does not say.
func diskSpace(dir string) (total, free uint64) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize)
}

// abouts remembers what members have said, for while they do not answer.
type abouts struct {
	mu    sync.Mutex
	known map[uint64]about
}

// about asks a member about itself.
func (n *Node) about(ctx context.Context, id uint64) (adminapi.Member, error) {
	if id == n.group.ID() {
		return n.ownAbout().member(), nil
	}
	a, err := n.askAbout(ctx, id)
	n.abouts.mu.Lock()
	defer n.abouts.mu.Unlock()
	if err != nil {
		before := n.abouts.known[id] // where it is may still hold
		return adminapi.Member{MySQL: before.Addr, ReadOnly: before.Reads, HTTP: before.HTTP, GRPC: before.GRPC, Version: before.Version}, err
	}
	if n.abouts.known == nil || len(n.abouts.known) >= contactsMax {
		n.abouts.known = make(map[uint64]about)
	}
	n.abouts.known[id] = a
	return a.member(), nil
}

// askAbout asks another member about itself.
func (n *Node) askAbout(ctx context.Context, id uint64) (a about, err error) {
	b, err := n.peers.Ask(ctx, transport.Call{To: id, Kind: askAbout, Timeout: contactAsk})
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	return a, err
}

func (a about) member() adminapi.Member {
	return adminapi.Member{MySQL: a.Addr, ReadOnly: a.Reads, HTTP: a.HTTP, GRPC: a.GRPC, Version: a.Version, DiskTotal: a.DiskTotal,
		DiskFree: a.DiskFree, Draining: a.Draining, Connections: a.Connections, Uptime: a.Uptime}
}

// handOverDrained has another member lead, if this one does. Who drains at the same moment hands over already: that is waited for,
// and that this node does not lead any more is what is wanted.
func (n *Node) handOverDrained() error {
	for until := time.Now().Add(drainPatience); n.group.Writable(); {
		err := n.group.Transfer(0)
		switch {
		case err == nil || errors.Is(err, group.ErrNotLeader):
			return nil
		case !errors.Is(err, group.ErrBusy) || time.Now().After(until):
			return err
		}
		select {
		case <-n.stopping:
			return err
		case <-time.After(forwardRetry):
		}
	}
	return nil
}

// drainPatience is how long a drain waits for somebody else's change of leader, or of members.
const drainPatience = 5 * time.Second

// drain makes the node ready to be stopped: it is not ready for clients, and whenever it leads
// it hands over. What clients have begun goes on, as far as it does not need this node to lead.
func (n *Node) drain(undo bool) (handedOver bool, connections int, err error) {
	n.draining.Store(!undo)
	if undo {
		n.log.Info("the node is not drained any more")
	} else {
		n.log.Info("the node is being drained")
		err = n.handOverDrained()
	}
	return !n.group.Writable(), n.clients(), err
}
