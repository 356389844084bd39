package adminapi

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// What lists give when nothing is said, and at most.
const (
	listUsual     = 1000
	listMost      = 100_000
	waitsMost     = 10_000
	largeMost     = 256
	statementUsed = 1024
	statementMost = 65536
)

// ListSessions implements the contract.
func (s *Server) ListSessions(ctx context.Context, req *triremev1.AdminListSessionsRequest) (*triremev1.AdminListSessionsResponse, error) {
	return serve(ctx, s, rightSessions, req, func(*Caller) (*triremev1.AdminListSessionsResponse, error) {
		most, err := limit(req.GetLimit(), listUsual, listMost)
		if err != nil {
			return nil, err
		}
		size, err := limit(req.GetStatementBytes(), statementUsed, statementMost)
		if err != nil {
			return nil, err
		}
		out := &triremev1.AdminListSessionsResponse{}
		for _, p := range s.opt.Sessions.Processes() {
			out.Total++
			if req.GetActiveOnly() && p.Command == "Sleep" || req.GetUser() != "" && p.User != req.GetUser() || len(out.Sessions) == most {
				continue
			}
			text := types.CutUTF8(p.Info, size)
			out.Sessions = append(out.Sessions, &triremev1.AdminSession{Id: p.ID, User: valid(p.User), Host: p.Host, Schema: p.Schema, Command: p.Command,
				TimeMs: uint64(max(p.Time, 0).Milliseconds()), State: p.State, Statement: valid(text), StatementCut: len(text) < len(p.Info), Transaction: p.Transaction})
		}
		return out, nil
	})
}

// KillSession implements the contract.
func (s *Server) KillSession(ctx context.Context, req *triremev1.AdminKillSessionRequest) (*triremev1.AdminKillSessionResponse, error) {
	return serve(ctx, s, rightKill, req, func(c *Caller) (*triremev1.AdminKillSessionResponse, error) {
		return &triremev1.AdminKillSessionResponse{}, s.opt.Sessions.KillAs(c.id(), req.GetId(), !req.GetStatementOnly())
	})
}

// ListTransactions implements the contract.
func (s *Server) ListTransactions(ctx context.Context, req *triremev1.AdminListTransactionsRequest) (*triremev1.AdminListTransactionsResponse, error) {
	return serve(ctx, s, rightTransactions, req, func(*Caller) (*triremev1.AdminListTransactionsResponse, error) {
		most, err := limit(req.GetLimit(), listUsual, listMost)
		if err != nil {
			return nil, err
		}
		out := &triremev1.AdminListTransactionsResponse{}
		for _, t := range s.opt.Sessions.Transactions() {
			age := uint64(max(t.Age, 0).Milliseconds())
			if age < req.GetMinAgeMs() || len(out.Transactions) == most {
				break // the oldest come first
			}
			state := "RUNNING"
			if t.Waits {
				state = "LOCK WAIT"
			}
			out.Transactions = append(out.Transactions, &triremev1.AdminTransaction{Id: t.ID, Session: t.Session, User: valid(t.User), Host: t.Host, BeganUs: t.Began.UnixMicro(),
				AgeMs: age, State: state, Isolation: t.Isolation, ReadOnly: t.ReadOnly, Statement: valid(types.CutUTF8(t.Statement, statementUsed))})
		}
		return out, nil
	})
}

// largeStates are the states of large transactions in the contract.
var largeStates = map[group.LargeState]triremev1.AdminLargeTransactionState{
	group.LargeAbsent:      triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_ABSENT,
	group.LargeRefused:     triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_REFUSED,
	group.LargeGrowing:     triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_GROWING,
	group.LargeComplete:    triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_COMPLETE,
	group.LargeFetching:    triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_FETCHING,
	group.LargeCommitting:  triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_COMMITTING,
	group.LargeApplying:    triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_APPLYING,
	group.LargeLogged:      triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_LOGGED,
	group.LargeRollingBack: triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_ROLLING_BACK,
	group.LargeUnreachable: triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_UNREACHABLE,
}

// ListLargeTransactions implements the contract.
func (s *Server) ListLargeTransactions(ctx context.Context, req *triremev1.AdminListLargeTransactionsRequest) (*triremev1.AdminListLargeTransactionsResponse, error) {
	return serve(ctx, s, rightLarge, req, func(*Caller) (*triremev1.AdminListLargeTransactionsResponse, error) {
		most, err := limit(req.GetLimit(), largeMost, largeMost)
		if err != nil {
			return nil, err
		}
		list := s.opt.Group.LargeTransactions()
		out := &triremev1.AdminListLargeTransactionsResponse{}
		for _, t := range list[:min(most, len(list))] {
			one := &triremev1.AdminLargeTransaction{Id: t.ID.String(), Leader: t.ID.Member, Session: t.Session, AgeMs: uint64(max(t.Age, 0).Milliseconds())}
			for _, m := range t.Members {
				one.Members = append(one.Members, &triremev1.AdminLargeTransactionMember{Member: m.Member, State: largeStates[m.State], Events: uint64(m.Events),
					EventBytes: uint64(m.Plain), StoredBytes: uint64(m.Stored), SyncedBytes: uint64(m.Synced), Whole: m.Whole, AppliedBytes: uint64(m.AheadBytes),
					AppliedRows: m.AheadRows, ApplierWaitsFor: valid(types.CutUTF8(m.Waits, statementUsed))})
			}
			out.Transactions = append(out.Transactions, one)
		}
		return out, nil
	})
}

// ListLockWaits implements the contract.
func (s *Server) ListLockWaits(ctx context.Context, req *triremev1.AdminListLockWaitsRequest) (*triremev1.AdminListLockWaitsResponse, error) {
	return serve(ctx, s, rightLockWaits, req, func(*Caller) (*triremev1.AdminListLockWaitsResponse, error) {
		most, err := limit(req.GetLimit(), listUsual, waitsMost)
		if err != nil {
			return nil, err
		}
		waits, err := s.opt.Sessions.LockWaits(most)
		if err != nil {
			return nil, err
		}
		out := &triremev1.AdminListLockWaitsResponse{LeaderAddress: s.leaderAddress(ctx)}
		if len(waits) == 0 {
			return out, nil
		}
		by, texts := byID(s.opt.Sessions.Transactions()), map[uint64]string{}
		for _, p := range s.opt.Sessions.Processes() {
			texts[p.ID] = p.Info
		}
		for _, w := range waits {
			if w.Metadata == "" {
				w.WaitingSession, w.BlockingSession = by[w.Waiting].Session, by[w.Blocking].Session
			}
			out.Waits = append(out.Waits, &triremev1.AdminLockWait{Waiting: w.Waiting, WaitingSession: w.WaitingSession,
				WaitingStatement: valid(types.CutUTF8(texts[w.WaitingSession], statementUsed)), Blocking: w.Blocking, BlockingSession: w.BlockingSession,
				BlockingStatement: valid(types.CutUTF8(texts[w.BlockingSession], statementUsed)), Schema: w.Schema, Table: valid(w.Table), Index: w.Index, Key: w.Key, Metadata: w.Metadata})
		}
		return out, nil
	})
}

// byID finds transactions. One that waits for its first lock has the id 0: if there are several,
// nobody knows which of them it is.
func byID(list []session.Transaction) map[uint64]session.Transaction {
	by := map[uint64]session.Transaction{}
	first := 0
	for _, t := range list {
		if t.ID == 0 && !t.Waits {
			continue
		}
		if t.ID == 0 {
			first++
		}
		by[t.ID] = t
	}
	if first > 1 {
		delete(by, 0)
	}
	return by
}

// ListTables implements the contract.
func (s *Server) ListTables(ctx context.Context, req *triremev1.AdminListTablesRequest) (*triremev1.AdminListTablesResponse, error) {
	return serve(ctx, s, rightTables, req, func(c *Caller) (*triremev1.AdminListTablesResponse, error) {
		most, err := limit(req.GetLimit(), listUsual, listMost)
		if err != nil {
			return nil, err
		}
		where := "TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema')"
		if schema := req.GetSchema(); schema != "" {
			if len(schema) > 256 {
				return nil, &Error{Code: codes.InvalidArgument, Number: sqlerr.WrongDBName,
					Message: "the schema's name is too long"}
			}
			where = "TABLE_SCHEMA = " + quote(schema)
		}
		rows, err := s.query(ctx, c, "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND "+
			where+" ORDER BY DATA_LENGTH + INDEX_LENGTH DESC, TABLE_SCHEMA, TABLE_NAME", most)
		if err != nil {
			return nil, err
		}
		out := &triremev1.AdminListTablesResponse{}
		for _, r := range rows {
			out.Tables = append(out.Tables, &triremev1.AdminTable{Schema: text(r[0]), Name: text(r[1]), Rows: number(r[2]), DataBytes: number(r[3]), IndexBytes: number(r[4])})
		}
		return out, nil
	})
}
