package client

import (
	"context"
	"errors"
	"fmt"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Rows are the rows of a result. They are received as they are read. One task uses them at a time.
type Rows struct {
	ctx  context.Context
	s    *session
	c    *call
	done func(*session)

	columns []*pb.SqlColumn
	batch   *pb.SqlBatch
	row     int     // of the batch; before Next: -1
	starts  [][]int // of the values in each column's bytes
	result  Result
	last    bool // the answer has ended
	outside bool // and with it, or before, the transaction
	err     error
	closed  bool
}

// Column describes a column.
type Column struct {
	Name      string
	Type      string // as "BIGINT", "VARCHAR"
	Unsigned  bool
	NotNull   bool
	Length    int
	Precision int
	Scale     int
	Table     string
	Schema    string
}

// Columns describes the columns; none: the statement has no rows.
func (r *Rows) Columns() []Column {
	list := make([]Column, len(r.columns))
	for i, c := range r.columns {
		list[i] = Column{Name: c.Name, Type: c.Type.String()[len("SQL_TYPE_"):], Unsigned: c.Unsigned, NotNull: c.NotNull, Length: int(c.Length),
			Precision: int(c.Precision), Scale: int(c.Scale), Table: c.OriginalTable, Schema: c.Schema}
	}
	return list
}

// part takes the next part of the answer.
func (r *Rows) part() error {
	m, err := r.c.part(r.ctx)
	if err != nil {
		r.last = true
		if r.ctx.Err() != nil {
			r.s.abandon(r.c)
		}
		return err
	}
	res := m.GetResult()
	if res == nil {
		return errors.New("client: the server has not answered what it was asked")
	}
	if p := r.c.prepared; p != nil && res.SameColumns {
		r.columns = p.columns
	} else if len(res.Columns) > 0 {
		r.columns = res.Columns
		if p != nil {
			p.columns = res.Columns
		}
	}
	r.batch, r.row = res.Batch, -1
	if res.Done != nil {
		r.last = true
		r.outside = !res.Done.InTransaction
		r.result = resultOf(res.Done)
	}
	return r.index()
}

// index finds where the values of columns of bytes begin, and checks that the batch is whole.
func (r *Rows) index() error {
	b := r.batch
	if b == nil {
		return nil
	}
	if len(b.Columns) != len(r.columns) {
		return fmt.Errorf("client: the server has sent %d columns instead of %d", len(b.Columns), len(r.columns))
	}
	if r.starts == nil {
		r.starts = make([][]int, len(b.Columns))
	}
	n := int(b.Rows)
	for i, v := range b.Columns {
		have := 0
		switch layoutOf(r.columns[i]) {
		case ints:
			have = len(v.Ints)
		case uints:
			have = len(v.Uints)
		case doubles:
			have = len(v.Doubles)
		case floats:
			have = len(v.Floats)
		case nothing:
			have = n
		default:
			have = len(v.Lengths)
			starts := append(r.starts[i][:0], 0)
			at := 0
			for _, l := range v.Lengths {
				at += int(l)
				starts = append(starts, at)
			}
			if r.starts[i] = starts; at != len(v.Bytes) {
				have = -1
			}
		}
		if have != n {
			return fmt.Errorf("client: column %d of a batch of %d rows is not whole", i+1, n)
		}
	}
	return nil
}

// Next goes to the next row. false: there is none, or Err tells what went wrong.
func (r *Rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	for r.batch == nil || r.row+1 >= int(r.batch.Rows) {
		if !r.last {
			r.s.credit(r.c, r.batch)
		}
		if r.last {
			r.batch = nil
			r.release()
			return false
		}
		if r.err = r.part(); r.err != nil {
			r.err = final(r.err) // some rows were seen
			r.release()
			return false
		}
	}
	r.row++
	return true
}

// release gives the session back.
func (r *Rows) release() {
	if r.done != nil {
		done := r.done
		r.done = nil
		done(r.s)
	}
}

// Err is what has ended the rows; nil: there are no more.
func (r *Rows) Err() error { return r.err }

// Result is how the statement ended, when Next has returned false.
func (r *Rows) Result() Result { return r.result }

// Close ends the rows. Those that were not read are not sent any more.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.batch = nil
	if !r.last {
		r.s.signal(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Cancel{Cancel: &pb.SqlCancel{Request: r.c.request}}})
		for !r.last {
			if err := r.part(); err != nil {
				break
			}
			r.s.credit(r.c, r.batch)
		}
		r.batch = nil
	}
	r.release()
	return nil
}

// Row is one row of a result.
type Row struct {
	rows *Rows
	err  error
}

// Scan stores the row's values. Without a row: ErrNoRows.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRows
	}
	return r.rows.Scan(dest...)
}
