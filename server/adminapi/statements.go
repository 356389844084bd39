package adminapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/session"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// statementOrders are what statements are compared by; the most comes first.
var statementOrders = map[triremev1.AdminStatementOrder]func(d *session.StatementDigest) uint64{
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_UNSPECIFIED: func(d *session.StatementDigest) uint64 { return uint64(d.TotalTime) },
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_COUNT:       func(d *session.StatementDigest) uint64 { return d.Count },
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_MAX:         func(d *session.StatementDigest) uint64 { return uint64(d.LongestTime) },
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_AVERAGE:     func(d *session.StatementDigest) uint64 { return uint64(d.TotalTime) / d.Count },
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_ROWS_EXAMINED: func(d *session.StatementDigest) uint64 {
		return d.RowsRead
	},
	triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_ERRORS: func(d *session.StatementDigest) uint64 { return d.Errors },
}

// ListStatements implements the contract.
func (s *Server) ListStatements(ctx context.Context, req *triremev1.AdminListStatementsRequest) (*triremev1.AdminListStatementsResponse, error) {
	return serve(ctx, s, rightStatements, req, func(*Caller) (*triremev1.AdminListStatementsResponse, error) {
		most, err := limit(req.GetLimit(), listUsual, listMost)
		if err != nil {
			return nil, err
		}
		by := statementOrders[req.GetOrder()]
		if by == nil {
			return nil, badArgument("there is no order %d", req.GetOrder())
		}
		list := s.opt.Sessions.Statements()
		out := &triremev1.AdminListStatementsResponse{Total: uint32(len(list))}
		if req.GetSchema() != "" {
			list = slices.DeleteFunc(list, func(d session.StatementDigest) bool { return d.Schema != req.GetSchema() })
		}
		slices.SortStableFunc(list, func(a, b session.StatementDigest) int { return cmp.Compare(by(&b), by(&a)) })
		us := func(d time.Duration) uint64 { return uint64(max(d, 0).Microseconds()) }
		for _, d := range list[:min(most, len(list))] {
			out.Statements = append(out.Statements, &triremev1.AdminStatement{Schema: d.Schema, Digest: d.ID, Text: valid(d.Text), Count: d.Count, Errors: d.Errors,
				Warnings: d.Warnings, TotalUs: us(d.TotalTime), MinUs: us(d.LeastTime), MaxUs: us(d.LongestTime), RowsAffected: d.RowsAffected, RowsSent: d.RowsSent,
				RowsExamined: d.RowsRead, FirstSeenUs: int64(d.FirstSeen), LastSeenUs: int64(d.LastSeen)})
		}
		return out, nil
	})
}
