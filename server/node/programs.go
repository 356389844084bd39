package node

import (
	"context"
	"errors"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/sqlapi"
)

// openPrograms opens the gRPC door.
func (n *Node) openPrograms() {
	o := sqlapi.Options{Backend: &programs{doorBackend{n}}, Auth: n.auth, Log: n.log, Audit: n.audit, RequireTLS: n.requiresTLS,
		AllowPlaintext: n.cfg.Bool("grpc_allow_plaintext"), ConnectTimeout: n.cfg.Duration("connect_timeout"), Traced: n.traces != nil,
		NoReflection: !n.cfg.Bool("grpc_reflection"), Memory: n.sessions.StatementMemory()}
	if n.tls != nil {
		o.TLS = n.tls.Config
	}
	n.sqlapi = sqlapi.New(o)
	n.sqlapi.Offer(n.admin.Register)
	if n.programs == nil {
		return
	}
	// As on the port for reads: who has read here before the node was started again finds no less.
	restored := func() { _, _ = n.group.ReadPoint(group.ReadOptions{Consistency: group.Local}) }
	n.after(restored, func() {
		if err := n.sqlapi.Serve(n.programs); err != nil {
			n.log.Error("the gRPC port", "error", err)
		}
	})
}

// programs is the node as the gRPC door sees it.
type programs struct{ doorBackend }

// Open implements sqlapi.Backend.
func (p *programs) Open(info session.ConnectionInfo) (sqlapi.Session, error) {
	s, err := p.n.sessions.Open(info)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p *programs) Serves() bool    { return p.n.serves() }
func (p *programs) Group() [16]byte { return p.n.group.Group() }
func (p *programs) MaxPacket() int64 {
	return int64(p.n.sessions.GlobalNumber("max_allowed_packet"))
}

// Leader implements sqlapi.Backend.
func (p *programs) Leader() string {
	leader, ok := p.n.group.Leader()
	if !ok || leader.ID == p.n.group.ID() {
		return ""
	}
	c, _ := p.n.contact(context.Background(), leader.ID)
	return c.GRPC
}

// Node implements sqlapi.Backend.
func (p *programs) Node() *pb.SqlNodeResponse {
	g := p.n.group.Group()
	r := &pb.SqlNodeResponse{Version: Version, Group: g[:], Member: p.n.group.ID(), Leads: p.n.serves()}
	if r.Leader = p.Leader(); r.Leads {
		r.Leader = p.n.self().GRPC
	}
	for _, m := range p.n.group.Members() {
		if c, _ := p.n.contact(context.Background(), m.ID); c.GRPC != "" {
			r.Members = append(r.Members, c.GRPC)
		}
	}
	return r
}

// Used implements sqlapi.Backend.
func (p *programs) Used(t entry.Token) (number uint64, found bool, err error) {
	number, found, err = p.n.group.Used(t)
	switch {
	case err == nil:
		return number, found, nil
	case errors.Is(err, group.ErrNotLeader), errors.Is(err, group.ErrStopped):
		err = sqlerr.Newf(sqlerr.ServerShutdown, "This member does not lead the group: ask the leader")
	default:
		if told := (&backend{p.n}).Token(err); told != nil {
			return 0, false, told
		}
		err = sqlerr.Newf(sqlerr.ErrorDuringCommit, "What became of the commit token is not known yet, ask again: %s",
			err.Error())
	}
	return 0, false, err
}
