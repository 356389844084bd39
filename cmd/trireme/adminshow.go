package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/node"
)

// lower is the name of a value of an enum, less what all its names begin with.
func lower(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

func (a *admin) status([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.Status), &triremev1.AdminStatusRequest{})
	if err != nil {
		return err
	}
	if err := a.show(r, func(w io.Writer) { showGroup(w, r.GetGroup()) }); err != nil {
		return err
	}
	if g := r.GetGroup(); !g.GetWritable() || g.GetVotersOnline() < g.GetVoters() {
		return errFailed
	}
	return nil
}

// unary names a call for call.
func unary[Q, R any](fn func(triremev1.AdminClient, context.Context, Q, ...grpc.CallOption) (R, error)) func(triremev1.AdminClient) func(context.Context, Q, ...grpc.CallOption) (R, error) {
	return func(c triremev1.AdminClient) func(context.Context, Q, ...grpc.CallOption) (R, error) {
		return func(ctx context.Context, req Q, opts ...grpc.CallOption) (R, error) { return fn(c, ctx, req, opts...) }
	}
}

// lagColumns is a member's lag in words; empty: nobody knows. Of one that does not answer it is what the
// leader knows.
func lagColumns(m *triremev1.AdminMember) (lag, entries, bytes string) {
	if m.GetLagMs() >= 0 {
		lag = span(uint64(m.GetLagMs()))
	}
	if m.GetLagBytes() >= 0 {
		bytes = fmt.Sprint(m.GetLagBytes())
	}
	if m.GetLagEntries() > 0 || m.GetLagBytes() >= 0 {
		entries = fmt.Sprint(m.GetLagEntries())
	}
	return lag, entries, bytes
}

func showGroup(w io.Writer, g *triremev1.AdminGroup) {
	_, _ = fmt.Fprintf(w, "cluster %s, group %s, term %d, %s\n\n", g.GetCluster(), g.GetId(), g.GetTerm(), time.UnixMicro(g.GetTimeUs()).Format(time.RFC3339))
	row(w, "MEMBER", "ROLE", "STATE", "MYSQL", "GRPC", "VERSION", "TRANSACTION", "LAG", "ENTRIES", "BYTES", "DISK FREE", "CLIENTS")
	for _, m := range g.GetMembers() {
		state := lower(m.GetState().String(), "ADMIN_MEMBER_STATE_")
		lag, entries, bytes := lagColumns(m)
		if m.GetDraining() {
			state += ", draining"
		}
		disk := ""
		if m.GetDiskTotalBytes() > 0 {
			disk = size(m.GetDiskFreeBytes())
		}
		row(w, m.GetId(), lower(m.GetRole().String(), "ADMIN_ROLE_"), state, m.GetMysqlAddress(), m.GetGrpcAddress(), m.GetVersion(), m.GetAppliedNumber(),
			lag, entries, bytes, disk, m.GetConnections())
	}
	for _, m := range g.GetMembers() {
		if m.GetError() != "" {
			_, _ = fmt.Fprintf(w, "\nmember %d: %s", m.GetId(), m.GetError())
		}
	}
	if !g.GetWritable() {
		_, _ = fmt.Fprint(w, "\nno member takes writes")
		voters, answered := 0, 0
		for _, m := range g.GetMembers() {
			if r := m.GetRole(); r != triremev1.AdminRole_ADMIN_ROLE_LEARNER && r != triremev1.AdminRole_ADMIN_ROLE_REPLICA {
				voters++
				if m.GetState() != triremev1.AdminMemberState_ADMIN_MEMBER_STATE_UNREACHABLE {
					answered++
				}
			}
		}
		if text := node.NoMajority(voters, answered, ""); text != "" {
			_, _ = fmt.Fprint(w, "\n", text)
		}
	}
	_, _ = fmt.Fprintln(w)
}

func (a *admin) watch([]string) error {
	stream, err := a.client.Watch(a.ctx, &triremev1.AdminWatchRequest{IntervalMs: uint32(a.interval.Milliseconds())})
	for err == nil {
		var r *triremev1.AdminWatchResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		if a.json {
			err = a.showJSON(r, "") // a line for each
		} else {
			err = a.show(r, func(w io.Writer) { showGroup(w, r.GetGroup()) })
		}
	}
	if a.ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// told shows an answer that has nothing to tell.
func (a *admin) told(err error, format string, v ...any) error {
	if err != nil {
		return err
	}
	if a.json {
		_, err = fmt.Fprintln(a.out, "{}")
		return err
	}
	_, err = fmt.Fprintf(a.out, format+"\n", v...)
	return err
}

func (a *admin) membersAdd(args []string) error {
	id, err := number("member", args[0])
	if err != nil {
		return err
	}
	_, err = callLeader(a, true, unary(triremev1.AdminClient.AddMember), &triremev1.AdminAddMemberRequest{Id: id, PeerAddress: args[1], Replica: a.replica})
	return a.told(err, "member %d is in the group at %s: a member that has voted goes on voting, any other is a learner until it is promoted", id, args[1])
}

func (a *admin) membersPromote(args []string) error {
	id, err := number("member", args[0])
	if err != nil {
		return err
	}
	_, err = callLeader(a, true, unary(triremev1.AdminClient.PromoteMember), &triremev1.AdminPromoteMemberRequest{Id: id, Force: a.force})
	return a.told(err, "member %d votes", id)
}

func (a *admin) membersRemove(args []string) error {
	id, err := number("member", args[0])
	if err != nil {
		return err
	}
	_, err = callLeader(a, true, unary(triremev1.AdminClient.RemoveMember), &triremev1.AdminRemoveMemberRequest{Id: id, Force: a.force})
	return a.told(err, "member %d has left the group; it may be stopped", id)
}

func (a *admin) membersReplace(args []string) error {
	old, err := number("member", args[0])
	if err != nil {
		return err
	}
	with, err := number("member", args[1])
	if err != nil {
		return err
	}
	_, err = callLeader(a, true, unary(triremev1.AdminClient.ReplaceMember), &triremev1.AdminReplaceMemberRequest{Id: old, With: with, Force: a.force})
	return a.told(err, "member %d votes in the place of member %d, which may be stopped", with, old)
}

func (a *admin) transfer(args []string) (err error) {
	var to uint64
	if len(args) > 0 {
		if to, err = number("member", args[0]); err != nil {
			return err
		}
	}
	r, err := callLeader(a, false, unary(triremev1.AdminClient.Transfer), &triremev1.AdminTransferRequest{To: to})
	if err != nil {
		return err
	}
	switch leader := r.GetLeader(); {
	case leader == 0:
		return errors.New("leadership was given up; who leads now is not known yet: see trireme status")
	case to != 0 && leader != to:
		return fmt.Errorf("leadership was given up, but member %d leads now", leader)
	}
	return a.show(r, func(w io.Writer) { _, _ = fmt.Fprintf(w, "member %d leads\n", r.GetLeader()) })
}

func (a *admin) drain([]string) error {
	until := time.Now().Add(a.wait)
	for {
		r, err := call(a, unary(triremev1.AdminClient.Drain), &triremev1.AdminDrainRequest{Undo: a.undo})
		done := a.undo || r.GetHandedOver() && (a.wait == 0 || r.GetConnections() == 0)
		left := time.Until(until)
		if err == nil && !done && left > 0 {
			select {
			case <-time.After(min(left, time.Second)):
				continue
			case <-a.ctx.Done():
				return a.ctx.Err()
			}
		}
		if err != nil {
			return err
		}
		err = a.show(r, func(w io.Writer) {
			switch {
			case a.undo:
				_, _ = fmt.Fprintln(w, "the node is not drained any more")
			case r.GetHandedOver():
				_, _ = fmt.Fprintf(w, "the node does not lead; clients connected: %d\n", r.GetConnections())
			default:
				_, _ = fmt.Fprintf(w, "the node still leads and goes on trying to hand over; clients connected: %d\n", r.GetConnections())
			}
		})
		if err == nil && !done {
			return errFailed
		}
		return err
	}
}

func (a *admin) settings(args []string) error {
	req := &triremev1.AdminListSettingsRequest{ChangedOnly: a.changed}
	if len(args) > 0 {
		req.Like = args[0]
	}
	r, err := call(a, unary(triremev1.AdminClient.ListSettings), req)
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) { showSettings(w, r.GetSettings()) })
}

func showSettings(w io.Writer, list []*triremev1.AdminSetting) {
	row(w, "NAME", "VALUE", "SCOPE", "ORIGIN", "WHERE", "CHANGEABLE")
	for _, s := range list {
		change := "restart"
		if s.GetChangeable() {
			change = "yes"
		}
		row(w, s.GetName(), line(s.GetValue(), 60), lower(s.GetScope().String(), "ADMIN_SCOPE_"), lower(s.GetOrigin().String(), "ADMIN_ORIGIN_"), s.GetOriginDetail(), change)
	}
}

func (a *admin) settingsSet(args []string) error {
	r, err := callLeader(a, false, unary(triremev1.AdminClient.SetSetting), &triremev1.AdminSetSettingRequest{Name: args[0], Value: args[1]})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) { showSettings(w, []*triremev1.AdminSetting{r.GetSetting()}) })
}

func (a *admin) sessions([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.ListSessions), &triremev1.AdminListSessionsRequest{ActiveOnly: a.active, Limit: uint32(a.limit)})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "SESSION", "USER", "HOST", "SCHEMA", "COMMAND", "TIME", "STATE", "TRANSACTION", "STATEMENT")
		for _, s := range r.GetSessions() {
			trx := ""
			if s.GetTransaction() != 0 {
				trx = fmt.Sprint(s.GetTransaction())
			}
			row(w, s.GetId(), s.GetUser(), s.GetHost(), s.GetSchema(), s.GetCommand(), span(s.GetTimeMs()), s.GetState(), trx, line(s.GetStatement(), 80))
		}
	})
}

func (a *admin) kill(args []string) error {
	id, err := number("session", args[0])
	if err != nil {
		return err
	}
	_, err = call(a, unary(triremev1.AdminClient.KillSession), &triremev1.AdminKillSessionRequest{Id: id, StatementOnly: a.statement})
	return a.told(err, "session %d was told to end", id)
}

func (a *admin) transactions([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.ListTransactions), &triremev1.AdminListTransactionsRequest{Limit: uint32(a.limit)})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "TRANSACTION", "SESSION", "USER", "HOST", "AGE", "STATE", "ISOLATION", "STATEMENT")
		for _, t := range r.GetTransactions() {
			row(w, t.GetId(), t.GetSession(), t.GetUser(), t.GetHost(), span(t.GetAgeMs()), t.GetState(), t.GetIsolation(), line(t.GetStatement(), 80))
		}
	})
}

func (a *admin) large([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.ListLargeTransactions), &triremev1.AdminListLargeTransactionsRequest{Limit: uint32(a.limit)})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "TRANSACTION", "LEADER", "SESSION", "AGE", "MEMBER", "STATE", "EVENTS", "BYTES", "STORED", "SYNCED", "WHOLE", "APPLIED", "ROWS APPLIED", "APPLIER WAITS FOR")
		for _, t := range r.GetTransactions() {
			for _, m := range t.GetMembers() {
				state := strings.ReplaceAll(lower(m.GetState().String(), "ADMIN_LARGE_TRANSACTION_STATE_"), "_", " ")
				row(w, t.GetId(), t.GetLeader(), t.GetSession(), span(t.GetAgeMs()), m.GetMember(), state, m.GetEvents(), size(m.GetEventBytes()), size(m.GetStoredBytes()),
					size(m.GetSyncedBytes()), m.GetWhole(), size(m.GetAppliedBytes()), m.GetAppliedRows(), m.GetApplierWaitsFor())
			}
		}
	})
}

func (a *admin) locks([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.ListLockWaits), &triremev1.AdminListLockWaitsRequest{Limit: uint32(a.limit)})
	if err != nil {
		return err
	}
	if leader := r.GetLeaderAddress(); leader != "" {
		fmt.Fprintf(os.Stderr, "this node does not lead: sessions of the main port, and their locks, are at the leader: ask %s\n", leader)
	}
	return a.show(r, func(w io.Writer) {
		row(w, "WAITING SESSION", "STATEMENT", "FOR SESSION", "STATEMENT", "LOCK", "ON", "INDEX", "KEY")
		for _, l := range r.GetWaits() {
			kind := "row"
			switch {
			case l.GetMetadata() != "":
				kind = "metadata: " + strings.ToLower(l.GetMetadata())
			case l.GetIndex() == "":
				kind = "rows of a table"
			}
			on := slices.DeleteFunc([]string{l.GetSchema(), l.GetTable()}, func(s string) bool { return s == "" })
			row(w, l.GetWaitingSession(), line(l.GetWaitingStatement(), 60), l.GetBlockingSession(), line(l.GetBlockingStatement(), 60),
				kind, line(strings.Join(on, "."), 80), l.GetIndex(), line(fmt.Sprintf("%x", l.GetKey()), 40))
		}
	})
}

// statementOrders are the values of -order.
var statementOrders = map[string]triremev1.AdminStatementOrder{
	"time":    triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_UNSPECIFIED,
	"count":   triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_COUNT,
	"max":     triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_MAX,
	"average": triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_AVERAGE,
	"rows":    triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_ROWS_EXAMINED,
	"errors":  triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_ERRORS,
}

func (a *admin) statements(args []string) error {
	order, ok := statementOrders[a.order]
	if !ok {
		return fmt.Errorf("-order=%s: it is time, count, max, average, rows or errors", a.order)
	}
	req := &triremev1.AdminListStatementsRequest{Limit: uint32(a.limit), Order: order}
	if len(args) > 0 {
		req.Schema = args[0]
	}
	r, err := call(a, unary(triremev1.AdminClient.ListStatements), req)
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "COUNT", "ERRORS", "TIME", "AVERAGE", "MAX", "AFFECTED", "SENT", "READ", "SCHEMA", "STATEMENT")
		us := func(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
		for _, s := range r.GetStatements() {
			text := line(s.GetText(), 100)
			if s.GetDigest() == "" {
				text = "(others)"
			}
			row(w, s.GetCount(), s.GetErrors(), us(s.GetTotalUs()), us(s.GetTotalUs()/max(s.GetCount(), 1)), us(s.GetMaxUs()), s.GetRowsAffected(), s.GetRowsSent(),
				s.GetRowsExamined(), s.GetSchema(), text)
		}
	})
}

func (a *admin) tables(args []string) error {
	req := &triremev1.AdminListTablesRequest{Limit: uint32(a.limit)}
	if len(args) > 0 {
		req.Schema = args[0]
	}
	r, err := call(a, unary(triremev1.AdminClient.ListTables), req)
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "TABLE", "ROWS", "DATA", "INDEXES")
		for _, t := range r.GetTables() {
			row(w, t.GetSchema()+"."+t.GetName(), t.GetRows(), size(t.GetDataBytes()), size(t.GetIndexBytes()))
		}
	})
}

func (a *admin) binlogList([]string) error {
	r, err := call(a, unary(triremev1.AdminClient.ListBinlogs), &triremev1.AdminListBinlogsRequest{})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		row(w, "FILE", "BYTES", "ENTRIES", "TRANSACTIONS", "CLOSED", "NEEDED")
		between := func(first, last uint64) string {
			if last < first {
				return ""
			}
			return fmt.Sprintf("%d-%d", first, last)
		}
		for _, f := range r.GetFiles() {
			row(w, f.GetName(), f.GetBytes(), between(f.GetFirstIndex(), f.GetLastIndex()), between(f.GetFirstNumber(), f.GetLastNumber()), f.GetClosed(), f.GetNeeded())
		}
	})
}

func (a *admin) binlogPurge(args []string) error {
	r, err := call(a, unary(triremev1.AdminClient.PurgeBinlogs), &triremev1.AdminPurgeBinlogsRequest{To: args[0]})
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) {
		for _, name := range r.GetRemoved() {
			_, _ = fmt.Fprintln(w, name)
		}
		_, _ = fmt.Fprintf(w, "%d %s removed\n", len(r.GetRemoved()), plural(len(r.GetRemoved()), "file"))
	})
}
