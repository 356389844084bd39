package adminapi

import (
	"context"
	"strings"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
)

// query runs a statement as the caller, by the privileges of his account, on this node as it
// is, and returns its first rows.
func (s *Server) query(ctx context.Context, c *Caller, sql string, most int) ([][]types.Value, error) {
	q, err := s.opt.Sessions.Open(session.ConnectionInfo{User: c.User, Host: c.Host, AccountUser: c.AccountUser, AccountHost: c.AccountHost,
		Admin: true, ReadOnly: true, Attributes: map[string]string{"program_name": "trireme-admin"}, Door: "admin"})
	if err != nil {
		return nil, err
	}
	// Interrupt ends what waits for no context; when nothing runs it has no effect.
	stop := context.AfterFunc(ctx, q.Interrupt)
	keep := &rows{most: most}
	err = q.Query(ctx, sql, keep)
	stop()
	if e := q.Close(); err == nil {
		err = e
	}
	return keep.list, err
}

// rows is a session.ResultWriter that keeps rows.
type rows struct {
	most int
	list [][]types.Value
}

func (k *rows) Columns([]session.ResultColumn) error { return nil }

func (k *rows) Rows(b *types.Batch) error {
	for i := 0; i < b.Len() && len(k.list) < k.most; i++ {
		row := b.Row(nil, i)
		for c := range row {
			row[c] = row[c].Clone()
		}
		k.list = append(k.list, row)
	}
	return nil
}

func (k *rows) Done(session.Outcome) error { return nil }

// text and number are a row's values; NULL is empty, or 0.
func text(v types.Value) string {
	if v.IsNull() {
		return ""
	}
	return valid(string(v.Bytes()))
}

func number(v types.Value) uint64 {
	switch v.Class() {
	case types.ClassInt:
		return uint64(max(v.Int(), 0))
	case types.ClassUint:
		return v.Uint()
	}
	return 0
}

// valid makes a text fit for the contract, whose texts are UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
