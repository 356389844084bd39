package node

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/mysqlwire"
)

// backend is the node as sessions see it.
type backend struct{ n *Node }

var _ session.Backend = (*backend)(nil)

func (b *backend) NewSession() (*txn.Session, error)          { return b.n.group.NewSession() }
func (b *backend) Engine() (*storage.Engine, error)           { return b.n.group.Engine() }
func (b *backend) Writable() bool                             { return b.n.group.Writable() }
func (b *backend) Group() [16]byte                            { return b.n.group.Group() }
func (b *backend) NotLeader() error                           { return group.ErrNotLeader }
func (b *backend) Stale() error                               { return group.ErrStale }
func (b *backend) NoQuorum() error                            { return group.ErrNoQuorum }
func (b *backend) ReadEnded() error                           { return group.ErrReadEnded }
func (b *backend) SetGroupSetting(name string, v int64) error { return b.n.group.Set(name, v) }

// Fail implements session.Backend.
func (b *backend) Fail(err error) {
	if advice := storage.Advice(err); advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	b.n.group.Fail(err)
}

func (b *backend) ReadPoint(opt session.ReadOptions) (uint64, error) {
	// The names are the same, and their order.
	return b.n.group.ReadPoint(group.ReadOptions{Consistency: group.Consistency(opt.Consistency),
		Number: opt.Number, Bound: opt.Bound, Wait: opt.Wait, Ended: opt.Ended})
}

// Away implements session.Backend.
func (b *backend) Away(err error) (why string, away bool) {
	switch {
	case errors.Is(err, group.ErrStopped):
		return "this node is stopping", true
	case errors.Is(err, group.ErrProvisioning):
		return "this node is being given its data", true
	case errors.Is(err, group.ErrRemoved):
		return "this node was removed from the group", true
	case errors.Is(err, group.ErrMaybeRemoved):
		return "other members say that this node was removed from the group; its status tells what to do", true
	}
	// Whatever stopped the node, clients go on elsewhere; its log and /healthz say what it was.
	if failed := b.n.failure(); failed != nil && errors.Is(err, failed) {
		return "this node has stopped because of an error", true
	}
	return "", false
}

// Token implements session.Backend.
func (b *backend) Token(err error) error {
	var used *commit.TokenUsedError
	switch {
	case errors.As(err, &used):
		return &session.TokenUsedError{Number: used.Number}
	case errors.Is(err, commit.ErrTokenInFlight):
		return sqlerr.Newf(sqlerr.ErrorDuringCommit, "A transaction with this commit token is being committed: its "+
			"outcome is not known yet, ask again")
	case errors.Is(err, commit.ErrTokenExpired):
		return sqlerr.Newf(sqlerr.WrongArguments, "Incorrect arguments: the commit token is older, by this node's clock, than "+
			"commit_token_life_seconds, or than some that were forgotten when that was smaller or a clock was wrong, "+
			"so that nobody knows whether a transaction was committed with it; nothing was executed")
	case errors.Is(err, commit.ErrTokenAhead):
		return sqlerr.Newf(sqlerr.WrongArguments, "Incorrect arguments: the commit token was made in the future by "+
			"this node's clock; set the clock that is wrong, the client's or this node's; nothing was executed")
	}
	return nil
}

// LeaderAddr implements session.Backend.
func (b *backend) LeaderAddr() string {
	leader, ok := b.n.group.Leader()
	if !ok {
		return ""
	}
	if leader.ID == b.n.group.ID() {
		return b.n.self().Addr
	}
	c, _ := b.n.contact(context.Background(), leader.ID)
	return c.Addr
}

// Server implements session.Backend.
func (b *backend) Server() session.ServerInfo {
	name, _ := os.Hostname()
	_, port := splitAddr(b.n.self().Addr)
	return session.ServerInfo{UUID: memberUUID(b.n.group.Group(), b.n.group.ID()), ID: b.n.group.ID() & (1<<32 - 1), Hostname: name,
		Port: port, Datadir: b.n.dir + string(os.PathSeparator), Version: Version, TLS: b.n.serverTLS()}
}

// serverTLS is what clients may know of the node's TLS.
func (n *Node) serverTLS() session.ServerTLS {
	if n.tls == nil {
		return session.ServerTLS{}
	}
	t := session.ServerTLS{Offered: true, CA: n.cfg.String("ssl_ca"), Cert: n.cfg.String("ssl_cert"), Key: n.cfg.String("ssl_key"),
		CRL: n.cfg.String("ssl_crl"), Versions: n.cfg.String("tls_version")}
	t.NotBefore, t.NotAfter = n.tls.Valid()
	return t
}

// ReloadTLS implements session.Backend.
func (b *backend) ReloadTLS() error {
	if b.n.tls == nil {
		return errors.New("this node has no TLS: set ssl_cert and ssl_key, or auto_generate_certs")
	}
	return b.n.tls.Reload()
}

// memberUUID is a member's server_uuid: one half from the group's id, the other its own.
func memberUUID(g [16]byte, id uint64) string {
	binary.BigEndian.PutUint64(g[8:], id)
	return uuid(g)
}

func uuid(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

func splitAddr(addr string) (host string, port int) {
	h, p, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0
	}
	port, _ = strconv.Atoi(p)
	return h, port
}

// Members implements session.Backend: it asks all of them.
func (b *backend) Members() []session.Member {
	members, states := b.n.group.Members(), b.n.group.GroupStatus()
	leader, _ := b.n.group.Leader()
	all := make([]session.Member, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		all[i] = session.Member{ID: memberUUID(b.n.group.Group(), m.ID), State: "UNREACHABLE", Role: "SECONDARY", Version: "8.0.36"}
		if m.ID == leader.ID {
			all[i].Role = "PRIMARY"
		}
		all[i].Host, _ = splitAddr(m.Addr)
		for _, s := range states {
			if s.ID == m.ID {
				all[i].State = memberState(&s)
			}
		}
		asking.Add(1)
		go func() {
			defer asking.Done()
			if c, err := b.n.contact(context.Background(), m.ID); err == nil {
				all[i].Host, all[i].Port = splitAddr(c.Addr)
			}
		}()
	}
	asking.Wait()
	return all
}

// memberState is a member's state as Group Replication calls it.
func memberState(s *group.Status) string {
	switch {
	case s.Provisioning:
		return "RECOVERING"
	case s.Error != "":
		return "UNREACHABLE"
	}
	return "ONLINE"
}

// GroupSetting implements session.Backend.
func (b *backend) GroupSetting(name string) (int64, bool) {
	all, err := b.n.group.Settings()
	if err != nil {
		return 0, false
	}
	for _, s := range all {
		if s.Name == name {
			return s.Value, true
		}
	}
	return 0, false
}

// BinaryLogs lists the files of the log, for SHOW BINARY LOGS.
func (b *backend) BinaryLogs() ([]session.BinaryLog, error) {
	l := b.n.group.Log()
	if l == nil {
		return nil, group.ErrProvisioning
	}
	var list []session.BinaryLog
	for _, f := range l.Files() {
		list = append(list, session.BinaryLog{Name: f.Name, Size: f.Size})
	}
	return list, nil
}

// panicked logs a bug that a statement has met, and that the node survives.
func (n *Node) panicked(value any, stack []byte) {
	n.log.Error("a statement has met a bug of this server; its session ends", "panic", fmt.Sprint(value), "stack", string(stack))
}

// slow logs a statement that took long.
func (n *Node) slow(st session.SlowStatement) {
	n.log.Info("slow statement", "took", st.Took, "session", st.Session, "user", st.User, "host", st.Host, "schema", st.Schema,
		"rows_sent", st.RowsSent, "rows_read", st.RowsRead, "rows_affected", st.RowsAffected, "error", st.Error, "scans", st.Scans, "text", st.Text)
}

// deadlocked logs a deadlock.
func (n *Node) deadlocked(d session.Deadlock) {
	n.log.Info("deadlock", "session", d.Session, "user", d.User, "host", d.Host, "schema", d.Schema, "text", d.Text, "cycle", d.Cycle)
}

// Stats implements session.Backend.
func (b *backend) Stats(fn func(name string, value int64)) {
	if stats, err := b.n.group.Stats(); err == nil {
		stats.Each(fn)
	}
	if d := b.n.door; d != nil {
		d.Stats(fn)
	}
}

// MetadataLocks implements session.Backend.
func (b *backend) MetadataLocks(max int) []txn.MetadataLock { return b.n.group.MetadataLocks(max) }

// MetadataWaits implements session.Backend.
func (b *backend) MetadataWaits(max int) []txn.MetadataWait { return b.n.group.MetadataWaits(max) }

// LargeTransactions implements session.Backend.
func (b *backend) LargeTransactions() []session.LargeTransaction {
	g := b.n.group.Group()
	list := b.n.group.LargeTransactions()
	out := make([]session.LargeTransaction, len(list))
	for i, t := range list {
		out[i] = session.LargeTransaction{ID: t.ID.String(), Leader: memberUUID(g, t.ID.Member), Session: t.Session, Age: t.Age}
		for _, m := range t.Members {
			out[i].Members = append(out[i].Members, session.LargeMember{ID: memberUUID(g, m.Member), State: strings.ToUpper(string(m.State)),
				Answers: m.State != group.LargeUnreachable, Events: m.Events, Plain: m.Plain, Stored: m.Stored, Synced: m.Synced, Whole: m.Whole,
				AheadBytes: m.AheadBytes, AheadRows: m.AheadRows, Waits: m.Waits})
		}
	}
	return out
}

// doorBackend opens sessions for the MySQL door.
type doorBackend struct{ n *Node }

// Connection numbers are of one member: a session keeps the number that its client was
// told when it is handed to another. The upper byte is the member's.
const numberBits = 24

func (d *doorBackend) NextID() uint64 {
	return d.n.group.ID()&0xff<<numberBits | d.n.sessions.NextID()&(1<<numberBits-1)
}

func (d *doorBackend) Open(info session.ConnectionInfo) (mysqlwire.Session, error) {
	s, err := d.n.sessions.Open(info)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d *doorBackend) Statistics() string {
	uptime, questions, open := time.Since(d.n.began).Seconds(), d.n.sessions.Questions(), 0
	if eng, err := d.n.group.Engine(); err == nil {
		open = eng.Catalog.Stats().Cached
	}
	return fmt.Sprintf("Uptime: %d  Threads: %d  Questions: %d  Slow queries: %d  Opens: 0  Flush tables: 0  Open tables: %d  Queries per second avg: %.3f",
		int(uptime), d.n.door.Connections(), questions, d.n.sessions.Slow(), open, float64(questions)/max(uptime, 1))
}
