package sqlapi

import (
	"context"
	"errors"
	"io"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Calls with one request and one answer.

// receiveOne reads a call's request. Its memory is counted until done is called.
func (d *Door) receiveOne(who *caller, g grpc.ServerStream, m proto.Message, most func() int64) (done func(), err error) {
	err = d.intake(g, most).receive(m)
	if err == io.EOF {
		err = status.Error(codes.Internal, "the call has no request")
	}
	if err != nil {
		return nil, err
	}
	n := int64(0)
	if e, ok := m.(*pb.SqlExecuteRequest); ok {
		n = int64(statementSize(e.GetStatement()) + paramBytes*len(e.GetStatement().GetParams()))
	}
	if n <= shortMessage { // as many as there are calls
		return func() {}, nil
	}
	if !d.memory.take(who.conn, n) {
		return nil, errNoRoom(n)
	}
	return func() { d.memory.take(who.conn, -n) }, nil
}

// longest is how long a request may be, with what is around it.
func (d *Door) longest() int64 { return min(d.opt.Backend.MaxPacket()+64<<10, math.MaxInt32) }

// short is how long requests may be that have no text.
func short() int64 { return shortMessage }

const defaultResult = 4 << 20 // bytes

// serveExecute is Execute.
func (d *Door) serveExecute(who *caller, g grpc.ServerStream) error {
	m := new(pb.SqlExecuteRequest)
	done, err := d.receiveOne(who, g, m, d.longest)
	if err != nil {
		return err
	}
	defer done()
	if d.opt.Traced && m.Statement != nil && m.Statement.Traceparent == "" {
		if all := metadata.ValueFromIncomingContext(g.Context(), "traceparent"); len(all) == 1 {
			m.Statement.Traceparent = all[0]
		}
	}
	return d.execute(g.Context(), who, m, func(r *pb.SqlExecuteResponse) error {
		if r.Batch.GetWindowBytes() >= longAnswer {
			return g.SendMsg(&outgoing{r, who.conn})
		}
		return g.SendMsg(r)
	})
}

// execute runs a statement in a session that is as a new one.
func (d *Door) execute(ctx context.Context, who *caller, m *pb.SqlExecuteRequest, send func(*pb.SqlExecuteResponse) error) error {
	switch {
	case m.Statement == nil:
		return wrongArgument("there is no statement")
	case m.Statement.Handle != 0:
		return wrongArgument("handles are of sessions: send the statement's text")
	case !m.ReadOnly && !d.opt.Backend.Serves():
		return moved(movedText)
	}
	isPlain := plain(m.Statement.Text)
	v := d.visit(who.whose(m.Schema, m.ReadOnly), isPlain)
	d.mu.Lock()
	d.calls[v] = struct{}{}
	d.mu.Unlock()
	keep := false
	defer func() {
		d.mu.Lock()
		delete(d.calls, v)
		d.mu.Unlock()
		if !keep || !d.visits.put(v, d.clock.Load()) {
			v.close()
		}
	}()
	v.begin()
	if v.s == nil {
		if err := d.openVisit(v, who); err != nil {
			return err
		}
	}
	// The caller's end ends the statement; a commit that was handed to the group goes on by itself.
	alone := context.AfterFunc(ctx, func() {
		why := errInterrupted
		if ctx.Err() == context.DeadlineExceeded {
			why = errExpired
		}
		v.stop(why)
		v.cancel()
	})
	c := &v.answer
	c.begin(&v.runner, defaultResult)
	if m.MaxResultBytes != 0 {
		c.most = int(min(m.MaxResultBytes, uint64(d.opt.Backend.MaxPacket())))
	}
	repeated, err := v.statement(m.Statement, c)
	untouched := alone()
	why := v.end()
	switch {
	case err != nil:
		told := d.known(err)
		if why != nil && told.Number == errInterrupted.Number {
			told = why
		}
		return told
	case repeated != 0:
		return send(&pb.SqlExecuteResponse{Done: &pb.SqlDone{Gtid: repeated, Repeated: true}})
	}
	err = send(&c.out)
	c.end()
	keep = untouched && why == nil && isPlain && v.unchanged()
	return err
}

// visit returns a session that another call has left, if that will do, or one that is still to be opened.
func (d *Door) visit(of whose, used bool) *visit {
	if used {
		if v := d.visits.take(of, d.clock.Load()); v != nil {
			return v
		}
	}
	v := &visit{of: of}
	v.init(d, context.Background())
	return v
}

// openVisit opens the session.
func (d *Door) openVisit(v *visit, who *caller) error {
	v.opened = d.clock.Load()
	info := who.info
	info.ID, info.Schema, info.ReadOnly = d.opt.Backend.NextID(), v.of.schema, v.of.readOnly
	info.Disconnect = func() { go v.stop(errInterrupted) }
	err := v.open(info)
	var e *sqlerr.Error
	if errors.As(err, &e) && d.visits.drop(func(one *visit) bool { return one.inTheWay(v, e.Number) }) {
		err = v.open(info) // in the place of those that waited
	}
	return err
}

// inTheWay reports whether a session that waits is among those for which another one was refused.
func (v *visit) inTheWay(of *visit, why sqlerr.Code) bool {
	switch why {
	case errTooMany.Number:
		return true
	case sqlerr.TooManyUserConnections: // of the account: those of others make no room
		return v.of.accountUser == of.of.accountUser && v.of.accountHost == of.of.accountHost
	}
	return false
}

// serveOutcome is Outcome.
func (d *Door) serveOutcome(who *caller, g grpc.ServerStream) error {
	m := new(pb.SqlOutcomeRequest)
	if _, err := d.receiveOne(who, g, m, short); err != nil {
		return err
	}
	token, ok, err := parseToken(m.CommitToken)
	switch {
	case err != nil:
		return err
	case !ok:
		return errToken
	case !d.opt.Backend.Serves():
		return moved(movedText)
	}
	number, found, err := d.opt.Backend.Used(token)
	if err != nil {
		return err
	}
	return g.SendMsg(&pb.SqlOutcomeResponse{Committed: found, Gtid: number})
}

// serveNode is Node.
func (d *Door) serveNode(who *caller, g grpc.ServerStream) error {
	if _, err := d.receiveOne(who, g, new(pb.SqlNodeRequest), short); err != nil {
		return err
	}
	return g.SendMsg(d.opt.Backend.Node())
}
