package sqlapi

import (
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// results sends what a request of a stream gives. There is one for each session, whose message is
// used again for every part.
type results struct {
	s       *sess
	request uint64
	before  uint64 // the session's last GTID when the request began
	known   *handle
	rows    bool // there is a row set
	large   bool

	enc      encoder
	response pb.SqlSessionsResponse
	kind     pb.SqlSessionsResponse_Result
	result   pb.SqlResult
	done     pb.SqlDone
}

// begin prepares for a request.
func (r *results) begin(s *sess, request uint64) {
	r.s, r.request, r.known, r.rows = s, request, nil, false
	if s.s != nil {
		r.before = s.s.LastGTID()
	}
}

func (r *results) start(h *handle) { r.known = h }

// Columns implements session.ResultWriter.
func (r *results) Columns(cols []session.ResultColumn) error {
	r.rows = true
	r.enc.begin(cols, r.s.s.Location(), r.s.s, int(r.s.packet))
	r.large = r.large || r.enc.isWide()
	if r.known != nil && sameColumns(r.known.columns, cols) {
		r.result.SameColumns = true
		return nil
	}
	r.result.Columns = describe(cols)
	if r.known != nil {
		r.known.columns = r.result.Columns
	}
	return nil
}

// Rows implements session.ResultWriter.
func (r *results) Rows(b *types.Batch) error {
	large := r.enc.isLarge(b)
	for i := range b.Len() {
		if err := r.enc.append(b, i, large); err != nil {
			r.large = true
			return err
		}
		if r.enc.size >= partBytes {
			r.large = true
			if err := r.part(); err != nil {
				return err
			}
		}
	}
	return nil
}

// part sends the rows that are there, as soon as the client's window has room.
func (r *results) part() error {
	if err := r.takeWindow(); err != nil {
		return err
	}
	err := r.send()
	r.enc.clear()
	return err
}

func (r *results) takeWindow() error {
	if r.enc.batch.Rows == 0 {
		return nil
	}
	r.enc.batch.WindowBytes = uint64(r.enc.size)
	r.result.Batch = &r.enc.batch
	return r.s.takeWindow(int64(r.enc.size))
}

// send sends the message as it is.
func (r *results) send() error {
	r.kind.Result = &r.result
	r.response.Session, r.response.Request, r.response.Kind = r.s.id, r.request, &r.kind
	err := r.s.st.sendLong(&r.response, r.enc.size)
	r.result.Columns, r.result.SameColumns, r.result.Batch, r.result.Done = nil, false, nil, nil
	return err
}

// Done implements session.ResultWriter.
func (r *results) Done(o session.Outcome) error {
	d := &r.done
	d.AffectedRows, d.LastInsertId, d.Warnings, d.Info = o.AffectedRows, o.LastInsertID, uint32(o.Warnings), utf8(o.Info)
	d.Gtid, d.Repeated = 0, false
	return r.finish()
}

// finish sends the last part, whose done is filled but for what the session knows.
func (r *results) finish() error {
	if s := r.s.s; s != nil {
		r.done.InTransaction = s.Status()&session.StatusInTransaction != 0
		if g := s.LastGTID(); g != r.before {
			r.done.Gtid = g
		}
	}
	if err := r.takeWindow(); err != nil {
		return err
	}
	r.result.Done = &r.done
	err := r.send()
	r.forget()
	return err
}

// empty answers a request that has no result.
func (r *results) empty() error {
	r.done.Reset()
	return r.finish()
}

// repeated answers one whose token says that it was committed before.
func (r *results) repeated(number uint64) error {
	r.drop()
	r.done.Reset()
	r.done.Gtid, r.done.Repeated = number, true
	r.before = r.s.s.LastGTID()
	return r.finish()
}

// drop forgets what was gathered for an answer that is not given.
func (r *results) drop() {
	r.result.Columns, r.result.SameColumns, r.result.Batch, r.result.Done = nil, false, nil, nil
	r.forget()
}

// forget gives up what a result has gathered.
func (r *results) forget() {
	r.enc.clear()
	if r.large {
		r.large = false
		r.enc.shrink()
	}
	r.enc.free()
}

// collected gathers a whole result, for a call with one answer. Its memory is used again by the
// next call with the same session.
type collected struct {
	r       *runner
	before  uint64
	most    int
	columns []*pb.SqlColumn // of the last result
	enc     encoder
	out     pb.SqlExecuteResponse
	done    pb.SqlDone
}

// begin prepares for a call.
func (c *collected) begin(r *runner, most int) {
	c.r, c.before, c.most = r, r.s.LastGTID(), most
}

// end forgets the result.
func (c *collected) end() {
	c.out.Columns, c.out.Batch, c.out.Done = nil, nil, nil
	c.enc.shrink()
	c.enc.free()
}

func (c *collected) start(*handle) {}

// Columns implements session.ResultWriter.
func (c *collected) Columns(cols []session.ResultColumn) error {
	c.enc.begin(cols, c.r.s.Location(), c.r.s, c.most)
	if !sameColumns(c.columns, cols) {
		c.columns = describe(cols)
	}
	c.out.Columns, c.out.Batch = c.columns, &c.enc.batch
	return nil
}

// Rows implements session.ResultWriter.
func (c *collected) Rows(b *types.Batch) error {
	large := c.enc.isLarge(b)
	for i := range b.Len() {
		err := c.enc.append(b, i, large)
		if err == error(errRow) || c.enc.size > c.most {
			return sqlerr.Newf(sqlerr.NetPacketTooLarge, "The result is larger than max_result_bytes: ask for less, "+
				"raise it up to max_allowed_packet, or use the stream")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Done implements session.ResultWriter.
func (c *collected) Done(o session.Outcome) error {
	c.enc.batch.WindowBytes = uint64(c.enc.size)
	d := &c.done
	d.AffectedRows, d.LastInsertId, d.Warnings, d.Info, d.Gtid = o.AffectedRows, o.LastInsertID, uint32(o.Warnings), utf8(o.Info), 0
	if g := c.r.s.LastGTID(); g != c.before {
		d.Gtid = g
	}
	c.out.Done = d
	return nil
}
