package sqlapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/types"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Calls with one request and one answer.

// receiveOne reads a call's request.
func receiveOne(g grpc.ServerStream, m any) error {
	err := g.RecvMsg(m)
	if status.Code(err) == codes.ResourceExhausted {
		return &types.Error{Number: 1153, State: "08S01", Message: "Got a packet bigger than 'max_allowed_packet' bytes: " + status.Convert(err).Message()}
	}
	return err
}

const defaultResult = 4 << 20 // bytes

// serveExecute is Execute.
func (d *Door) serveExecute(who *caller, g grpc.ServerStream) error {
	m := new(pb.SqlExecuteRequest)
	if err := receiveOne(g, m); err != nil {
		return err
	}
	answer, err := d.execute(g.Context(), who, m)
	if err != nil {
		return err
	}
	return g.SendMsg(answer)
}

// execute runs a statement in a session of its own.
func (d *Door) execute(ctx context.Context, who *caller, m *pb.SqlExecuteRequest) (*pb.SqlExecuteResponse, error) {
	if m.Statement == nil {
		return nil, wrongArgument("there is no statement")
	}
	if m.Statement.Handle != 0 {
		return nil, wrongArgument("handles are of sessions: send the statement's text")
	}
	if !m.ReadOnly && !d.opt.Backend.Serves() {
		return nil, moved(movedText)
	}
	r := &runner{}
	r.init(d, context.WithoutCancel(ctx))
	defer r.close()
	d.mu.Lock()
	d.calls[r] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.calls, r)
		d.mu.Unlock()
	}()
	r.begin()
	info := who.info
	info.ID, info.Schema, info.ReadOnly = d.opt.Backend.NextID(), m.Schema, m.ReadOnly
	info.Disconnect = func() { go r.stop(errInterrupted) }
	if err := r.open(info); err != nil {
		return nil, err
	}
	// The caller's end ends the statement; a commit that was handed to the group goes on by itself.
	defer context.AfterFunc(ctx, func() {
		why := errInterrupted
		if ctx.Err() == context.DeadlineExceeded {
			why = errExpired
		}
		r.stop(why)
		r.cancel()
	})()
	c := &collected{r: r, before: r.s.LastGTID(), most: defaultResult}
	if m.MaxResultBytes != 0 {
		c.most = int(min(m.MaxResultBytes, uint64(d.opt.Backend.MaxPacket())))
	}
	repeated, err := r.statement(m.Statement, c)
	why := r.end()
	switch {
	case err != nil:
		told := d.known(err)
		if why != nil && told.Number == errInterrupted.Number {
			told = why
		}
		return nil, told
	case repeated != 0:
		return &pb.SqlExecuteResponse{Done: &pb.SqlDone{Gtid: repeated, Repeated: true}}, nil
	}
	return &c.out, nil
}

// serveOutcome is Outcome.
func (d *Door) serveOutcome(_ *caller, g grpc.ServerStream) error {
	m := new(pb.SqlOutcomeRequest)
	if err := receiveOne(g, m); err != nil {
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
func (d *Door) serveNode(_ *caller, g grpc.ServerStream) error {
	if err := receiveOne(g, new(pb.SqlNodeRequest)); err != nil {
		return err
	}
	return g.SendMsg(d.opt.Backend.Node())
}
