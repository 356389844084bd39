package node_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// adminOf dials a member's service.
func adminOf(t *testing.T, m *member) triremev1.AdminClient {
	t.Helper()
	conn, err := grpc.NewClient(m.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return triremev1.NewAdminClient(conn)
}

func signedIn(user, password string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization",
		"Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// refusal is the detail of an error.
func refusal(err error) *triremev1.AdminError {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*triremev1.AdminError); ok {
			return e
		}
	}
	return &triremev1.AdminError{}
}

// wants checks an error's code, number and a part of its text.
func wants(t *testing.T, what string, err error, code codes.Code, number uint32, part string) {
	t.Helper()
	d := refusal(err)
	if status.Code(err) != code || d.GetNumber() != number || !strings.Contains(status.Convert(err).Message(), part) || len(d.GetSqlState()) != 5 {
		t.Errorf("%s: %v, number %d, SQLSTATE %q; want %v, %d, %q", what, err, d.GetNumber(), d.GetSqlState(), code, number, part)
	}
}

// calls makes every call there is, with requests that change nothing for those who may.
func calls(c triremev1.AdminClient, ctx context.Context) map[string]func() error {
	return map[string]func() error{
		"Status": func() error { _, err := c.Status(ctx, &triremev1.AdminStatusRequest{}); return err },
		"Watch": func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			w, err := c.Watch(ctx, &triremev1.AdminWatchRequest{})
			if err == nil {
				_, err = w.Recv()
			}
			return err
		},
		"AddMember":     func() error { _, err := c.AddMember(ctx, &triremev1.AdminAddMemberRequest{}); return err },
		"PromoteMember": func() error { _, err := c.PromoteMember(ctx, &triremev1.AdminPromoteMemberRequest{Id: 77}); return err },
		"RemoveMember":  func() error { _, err := c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: 77}); return err },
		"ReplaceMember": func() error {
			_, err := c.ReplaceMember(ctx, &triremev1.AdminReplaceMemberRequest{Id: 77, With: 78})
			return err
		},
		"Transfer":     func() error { _, err := c.Transfer(ctx, &triremev1.AdminTransferRequest{To: 77}); return err },
		"Drain":        func() error { _, err := c.Drain(ctx, &triremev1.AdminDrainRequest{Undo: true}); return err },
		"ListSettings": func() error { _, err := c.ListSettings(ctx, &triremev1.AdminListSettingsRequest{}); return err },
		"SetSetting": func() error {
			_, err := c.SetSetting(ctx, &triremev1.AdminSetSettingRequest{Name: "none", Value: "1"})
			return err
		},
		"ListSessions": func() error { _, err := c.ListSessions(ctx, &triremev1.AdminListSessionsRequest{}); return err },
		"KillSession": func() error {
			_, err := c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: 1 << 40})
			return err
		},
		"ListTransactions": func() error { _, err := c.ListTransactions(ctx, &triremev1.AdminListTransactionsRequest{}); return err },
		"ListLargeTransactions": func() error {
			_, err := c.ListLargeTransactions(ctx, &triremev1.AdminListLargeTransactionsRequest{})
			return err
		},
		"ListLockWaits":  func() error { _, err := c.ListLockWaits(ctx, &triremev1.AdminListLockWaitsRequest{}); return err },
		"ListStatements": func() error { _, err := c.ListStatements(ctx, &triremev1.AdminListStatementsRequest{}); return err },
		"ListTables":     func() error { _, err := c.ListTables(ctx, &triremev1.AdminListTablesRequest{}); return err },
		"ListBinlogs":    func() error { _, err := c.ListBinlogs(ctx, &triremev1.AdminListBinlogsRequest{}); return err },
		"PurgeBinlogs": func() error {
			_, err := c.PurgeBinlogs(ctx, &triremev1.AdminPurgeBinlogsRequest{To: "binlog.999999"})
			return err
		},
		"ReportBackup": func() error {
			_, err := c.ReportBackup(ctx, &triremev1.AdminReportBackupRequest{Error: "none was made"})
			return err
		},
		"Backup": func() error {
			in, err := c.Backup(ctx, &triremev1.AdminBackupRequest{})
			for err == nil {
				_, err = in.Recv()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
}

// privilegesOf are what calls need, one by one enough.
var privilegesOf = map[string][]string{
	"Status": {"PROCESS", "REPLICATION CLIENT"}, "Watch": {"PROCESS", "REPLICATION CLIENT"},
	"AddMember": {"GROUP_REPLICATION_ADMIN"}, "PromoteMember": {"GROUP_REPLICATION_ADMIN"}, "RemoveMember": {"GROUP_REPLICATION_ADMIN"},
	"ReplaceMember": {"GROUP_REPLICATION_ADMIN"}, "Transfer": {"GROUP_REPLICATION_ADMIN"}, "Drain": {"GROUP_REPLICATION_ADMIN"},
	"ListSettings": {"PROCESS", "REPLICATION CLIENT", "SYSTEM_VARIABLES_ADMIN"}, "SetSetting": {"SYSTEM_VARIABLES_ADMIN"},
	"ListSessions": {"PROCESS"}, "KillSession": {"CONNECTION_ADMIN"}, "ListTransactions": {"PROCESS"}, "ListLockWaits": {"PROCESS"},
	"ListLargeTransactions": {"PROCESS"}, "ListTables": {"PROCESS"}, "ListStatements": {"PROCESS"}, "ListBinlogs": {"REPLICATION CLIENT", "BINLOG_ADMIN"}, "PurgeBinlogs": {"BINLOG_ADMIN"},
	"Backup": {"BACKUP_ADMIN"}, "ReportBackup": {"BACKUP_ADMIN"},
}

func execAll(t *testing.T, db *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// TestAdminPrivileges makes every call as somebody unknown, as a user without privileges, as
// users with one that is enough, and as root.
func TestAdminPrivileges(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	m := alone(t, "--audit-log="+audit)
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	c := adminOf(t, m)
	if got := len(triremev1.Admin_ServiceDesc.Methods) + len(triremev1.Admin_ServiceDesc.Streams); got != len(privilegesOf) {
		t.Fatalf("the contract has %d calls, the test %d", got, len(privilegesOf))
	}
	for name, call := range calls(c, context.Background()) {
		wants(t, name+" by nobody", call(), codes.Unauthenticated, 1045, "authorization")
	}
	wants(t, "a wrong password", calls(c, signedIn("root", "wrong"))["SetSetting"](), codes.Unauthenticated, 1045, "Access denied for user 'root'@'localhost'")
	execAll(t, db, "CREATE USER plain IDENTIFIED BY 'p'")
	for name, call := range calls(c, signedIn("plain", "p")) {
		wants(t, name+" without privilege", call(), codes.PermissionDenied, 1227, privilegesOf[name][0])
	}
	users := map[string]context.Context{"root": signedIn("root", "secret")}
	for _, list := range privilegesOf {
		for _, p := range append(list, "SUPER") {
			name := strings.ToLower(strings.ReplaceAll(p, " ", "_"))
			if users[p] == nil {
				users[p] = signedIn(name, "p")
				execAll(t, db, "CREATE USER "+name+" IDENTIFIED WITH mysql_native_password BY 'p'", "GRANT "+p+" ON *.* TO "+name)
			}
		}
	}
	for who, ctx := range users {
		for name, call := range calls(c, ctx) {
			enough := who == "root" || slices.Contains(privilegesOf[name], who) || who == "SUPER" && !strings.HasPrefix(name, "List") && name != "Status" && name != "Watch" ||
				who == "SUPER" && (name == "ListSettings" || name == "ListBinlogs")
			err := call()
			if denied := status.Code(err) == codes.PermissionDenied; denied == enough {
				t.Errorf("%s by %s: %v", name, who, err)
			}
			if err != nil && (refusal(err).GetNumber() == 0 || status.Code(err) == codes.Internal) {
				t.Errorf("%s by %s: an error without a type: %v", name, who, err)
			}
		}
	}
	checkAudit(t, audit)
}

// auditSeen are the lines about operators: the call, the account and the beginning of the outcome.
func auditSeen(t *testing.T, name string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	seen := map[string]bool{}
	for line := range strings.Lines(string(whole)) {
		var l struct {
			Time  time.Time `json:"time"`
			Msg   string    `json:"msg"`
			Audit struct {
				Account, User, Address, Call, Outcome string
				Arguments                             map[string]any
			} `json:"audit"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l.Msg != "admin" {
			continue // logins and statements: TestAuditOfAllDoors
		}
		a := &l.Audit
		if a.Call == "" || a.Outcome == "" || a.Address == "" || l.Time.IsZero() || a.Arguments == nil {
			t.Errorf("incomplete: %s", line)
		}
		seen[a.Call+" "+a.Account+" "+a.Outcome[:min(10, len(a.Outcome))]] = true
	}
	return seen
}

// checkAudit looks at the lines that TestAdminPrivileges has caused.
func checkAudit(t *testing.T, name string) {
	t.Helper()
	var seen map[string]bool
	eventually(t, "all lines are there", func() error { // they are written a moment later
		seen = auditSeen(t, name)
		for _, want := range []string{"Drain 'root'@'%' done", "Drain 'plain'@'%' error 1227", "KillSession 'root'@'%' error 1094", "SetSetting  error 1045"} {
			if !seen[want] {
				return fmt.Errorf("no line of %q", want)
			}
		}
		return nil
	})
	for s := range seen {
		if s == "ListSettings 'root'@'%' done" || s == "ListSettings 'super'@'%' done" { // it shows those of the audit
			continue
		}
		if strings.HasPrefix(s, "List") || strings.HasPrefix(s, "Status") || strings.HasPrefix(s, "Watch") {
			t.Errorf("%q is no change", s)
		}
	}
}

// alone starts a node that is a group of its own, with settings.
func alone(t *testing.T, settings ...string) *member {
	t.Helper()
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	m, err := start(t, append(args(t, t.TempDir(), []string{peer}, peer), settings...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAdminAlone looks at one node: sessions, transactions, locks, settings, tables, binlogs.
func TestAdminAlone(t *testing.T) {
	m := alone(t, "--max-binlog-size=4K", "--max-connections=99")
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	c, ctx := adminOf(t, m), signedIn("root", "secret")
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.big (id INT PRIMARY KEY, s VARCHAR(2000))", "CREATE TABLE shop.small (id INT PRIMARY KEY, n INT)",
		"INSERT INTO shop.small VALUES (1, 1), (2, 2)")
	for i := range 20 {
		execAll(t, db, fmt.Sprintf("INSERT INTO shop.big VALUES (%d, REPEAT(UUID(), 50))", i))
	}
	t.Run("status", func(t *testing.T) {
		r, err := c.Status(ctx, &triremev1.AdminStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		g := r.GetGroup()
		one := g.GetMembers()[0]
		if !g.GetWritable() || g.GetVoters() != 1 || g.GetVotersOnline() != 1 || g.GetLeader() != one.GetId() || one.GetRole() != triremev1.AdminRole_ADMIN_ROLE_LEADER ||
			one.GetDiskTotalBytes() == 0 || one.GetVersion() == "" || one.GetMysqlAddress() != m.MainAddr() || one.GetAppliedNumber() == 0 || one.GetConnections() == 0 {
			t.Errorf("%v", g)
		}
		_, err = c.Watch(ctx, &triremev1.AdminWatchRequest{IntervalMs: 1})
		if err == nil {
			w, _ := c.Watch(ctx, &triremev1.AdminWatchRequest{IntervalMs: 1})
			_, err = w.Recv()
		}
		wants(t, "an interval too short", err, codes.InvalidArgument, 1210, "100 to 3600000")
		w, err := c.Watch(ctx, &triremev1.AdminWatchRequest{IntervalMs: 100})
		for range 3 {
			if err == nil {
				_, err = w.Recv()
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("sessions", func(t *testing.T) { adminSessions(t, m, db, c, ctx) })
	t.Run("settings", func(t *testing.T) { adminSettings(t, c, ctx) })
	t.Run("statements", func(t *testing.T) {
		r, err := c.ListStatements(ctx, &triremev1.AdminListStatementsRequest{Order: triremev1.AdminStatementOrder_ADMIN_STATEMENT_ORDER_COUNT, Limit: 1})
		if err != nil || len(r.GetStatements()) != 1 || r.GetTotal() < 5 {
			t.Fatalf("%v %v", r, err)
		}
		s := r.GetStatements()[0]
		if s.GetText() != "INSERT INTO `shop`.`big` VALUES ( ? , REPEAT ( UUID ( ) , ? ) )" || s.GetCount() != 20 || s.GetRowsAffected() != 20 || s.GetTotalUs() < s.GetMaxUs() ||
			s.GetMaxUs() < s.GetMinUs() || s.GetLastSeenUs() < s.GetFirstSeenUs() || len(s.GetDigest()) != 64 {
			t.Errorf("%v", s)
		}
		_, err = c.ListStatements(ctx, &triremev1.AdminListStatementsRequest{Order: 99})
		wants(t, "an order that is none", err, codes.InvalidArgument, 1210, "no order 99")
	})
	t.Run("tables", func(t *testing.T) {
		r, err := c.ListTables(ctx, &triremev1.AdminListTablesRequest{Schema: "shop"})
		if err != nil || len(r.GetTables()) != 2 || r.GetTables()[0].GetName() != "big" || r.GetTables()[0].GetDataBytes() == 0 {
			t.Errorf("%v %v", r, err)
		}
		if r, err := c.ListTables(ctx, &triremev1.AdminListTablesRequest{Limit: 1}); err != nil || len(r.GetTables()) != 1 {
			t.Errorf("%v %v", r, err)
		}
		_, err = c.ListTables(ctx, &triremev1.AdminListTablesRequest{Limit: 1e9})
		wants(t, "a limit too high", err, codes.InvalidArgument, 1210, "the most is 100000")
		if r, err := c.ListTables(ctx, &triremev1.AdminListTablesRequest{Schema: `' OR 1 = 1 -- \`}); err != nil || len(r.GetTables()) != 0 {
			t.Errorf("%v %v", r, err)
		}
	})
	t.Run("binlogs", func(t *testing.T) { adminBinlogs(t, db, c, ctx) })
	t.Run("members", func(t *testing.T) {
		id := must(c.Status(ctx, &triremev1.AdminStatusRequest{})).GetGroup().GetLeader()
		_, err := c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: id})
		wants(t, "remove the only member", err, codes.FailedPrecondition, 1105, "add another member first")
		_, err = c.Transfer(ctx, &triremev1.AdminTransferRequest{})
		wants(t, "transfer to nobody", err, codes.FailedPrecondition, 1105, "add another member first")
		_, err = c.Drain(ctx, &triremev1.AdminDrainRequest{})
		wants(t, "drain the only member", err, codes.FailedPrecondition, 1105, "the whole group")
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func adminSessions(t *testing.T, m *member, db *sql.DB, c triremev1.AdminClient, ctx context.Context) {
	first, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback() }()
	if _, err := first.Exec("UPDATE shop.small SET n = 5 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	second, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	var id uint64
	if err := second.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	const text = "UPDATE shop.small SET n = 6 WHERE id = 1"
	go func() {
		_, err := second.ExecContext(context.Background(), text)
		ended <- err
	}()
	eventually(t, "a lock wait is listed", func() error {
		r, err := c.ListLockWaits(ctx, &triremev1.AdminListLockWaitsRequest{})
		if err != nil {
			return err
		}
		if len(r.GetWaits()) != 1 {
			return fmt.Errorf("%v", r)
		}
		w := r.GetWaits()[0]
		if w.GetWaitingSession() != id || w.GetWaitingStatement() != text || w.GetBlockingSession() == 0 || w.GetTable() != "small" || w.GetIndex() != "PRIMARY" {
			return fmt.Errorf("%v", w)
		}
		return nil
	})
	locker, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	go func() {
		_, err := locker.ExecContext(context.Background(), "LOCK TABLES shop.small READ")
		locked <- err
	}()
	eventually(t, "a wait for a table is listed", func() error {
		list := must(c.ListLockWaits(ctx, &triremev1.AdminListLockWaitsRequest{})).GetWaits()
		if len(list) < 2 || list[len(list)-1].GetMetadata() != "TABLE" || list[len(list)-1].GetTable() != "small" || list[len(list)-1].GetBlockingSession() == 0 ||
			list[len(list)-1].GetWaitingStatement() != "LOCK TABLES shop.small READ" {
			return fmt.Errorf("%v", list)
		}
		_, err := c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: list[len(list)-1].GetWaitingSession()})
		return err
	})
	if err := <-locked; err == nil {
		t.Error("a session that was killed has locked a table")
	}
	_ = locker.Raw(func(any) error { return driver.ErrBadConn }) // the pool must not give it out while the server closes it
	transactions := must(c.ListTransactions(ctx, &triremev1.AdminListTransactionsRequest{})).GetTransactions()
	if len(transactions) != 2 || transactions[0].GetState() != "RUNNING" || transactions[1].GetState() != "LOCK WAIT" || transactions[1].GetSession() != id ||
		transactions[0].GetIsolation() != "REPEATABLE READ" || transactions[0].GetBeganUs() == 0 {
		t.Errorf("transactions: %v", transactions)
	}
	if r := must(c.ListTransactions(ctx, &triremev1.AdminListTransactionsRequest{MinAgeMs: 1 << 40})); len(r.GetTransactions()) != 0 {
		t.Errorf("transactions of an age: %v", r)
	}
	sessions := must(c.ListSessions(ctx, &triremev1.AdminListSessionsRequest{ActiveOnly: true, StatementBytes: 6}))
	if len(sessions.GetSessions()) != 1 || sessions.GetSessions()[0].GetId() != id || sessions.GetSessions()[0].GetStatement() != "UPDATE" ||
		!sessions.GetSessions()[0].GetStatementCut() || sessions.GetTotal() < 2 {
		t.Errorf("sessions: %v", sessions)
	}
	if r := must(c.ListSessions(ctx, &triremev1.AdminListSessionsRequest{User: "nobody"})); len(r.GetSessions()) != 0 {
		t.Errorf("sessions of nobody: %v", r)
	}
	var other uint64
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'").Scan(&other); err != nil || other != 1 {
		t.Errorf("INNODB_TRX: %d %v", other, err)
	}
	if _, err := c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: id, StatementOnly: true}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "1317") {
		t.Errorf("the statement that was killed: %v", err)
	}
	if _, err := c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session is gone", func() error {
		_, err := c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: id})
		if err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	_, err = c.KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: id})
	wants(t, "kill an unknown session", err, codes.NotFound, 1094, "sessions are of one node")
}

func adminSettings(t *testing.T, c triremev1.AdminClient, ctx context.Context) {
	get := func(name string) *triremev1.AdminSetting {
		t.Helper()
		r, err := c.ListSettings(ctx, &triremev1.AdminListSettingsRequest{Like: name})
		if err != nil || len(r.GetSettings()) != 1 {
			t.Fatalf("%s: %v %v", name, r, err)
		}
		return r.GetSettings()[0]
	}
	check := func(name, value string, scope triremev1.AdminScope, origin triremev1.AdminOrigin, detail string, changeable bool) {
		t.Helper()
		if s := get(name); s.GetValue() != value || s.GetScope() != scope || s.GetOrigin() != origin || s.GetOriginDetail() != detail || s.GetChangeable() != changeable {
			t.Errorf("%v", s)
		}
	}
	const node, variable, group = triremev1.AdminScope_ADMIN_SCOPE_NODE, triremev1.AdminScope_ADMIN_SCOPE_VARIABLE, triremev1.AdminScope_ADMIN_SCOPE_GROUP
	check("initial_root_password", "********", node, triremev1.AdminOrigin_ADMIN_ORIGIN_CONFIGURATION, "--initial_root_password", false)
	check("cluster_name", "trireme", node, triremev1.AdminOrigin_ADMIN_ORIGIN_DEFAULT, "", false)
	check("max_connections", "99", variable, triremev1.AdminOrigin_ADMIN_ORIGIN_CONFIGURATION, "--max_connections", true)
	check("max_binlog_size", "4096", group, triremev1.AdminOrigin_ADMIN_ORIGIN_CONFIGURATION, "--max_binlog_size", true)
	for _, s := range [][2]string{{"binlog_keep_size", "1048576"}, {"wait_timeout", "77"}, {"sql-mode", "ANSI_QUOTES,STRICT_TRANS_TABLES"}, {"long_query_time", "1.5"}, {"general_log", "OFF"}} {
		if r, err := c.SetSetting(ctx, &triremev1.AdminSetSettingRequest{Name: s[0], Value: s[1]}); err != nil || !strings.HasPrefix(r.GetSetting().GetValue(), s[1]) {
			t.Errorf("%s: %v %v", s[0], r, err)
		}
	}
	check("binlog_keep_size", "1048576", group, triremev1.AdminOrigin_ADMIN_ORIGIN_GROUP, "", true)
	check("wait_timeout", "77", variable, triremev1.AdminOrigin_ADMIN_ORIGIN_SET_GLOBAL, "", true)
	for _, s := range must(c.ListSettings(ctx, &triremev1.AdminListSettingsRequest{ChangedOnly: true})).GetSettings() {
		if s.GetOrigin() == triremev1.AdminOrigin_ADMIN_ORIGIN_DEFAULT {
			t.Errorf("%v is at its default", s)
		}
	}
	set := func(name, value string) error {
		_, err := c.SetSetting(ctx, &triremev1.AdminSetSettingRequest{Name: name, Value: value})
		return err
	}
	wants(t, "an unknown setting", set("no_such", "1"), codes.NotFound, 1193, "the settings' list")
	wants(t, "a setting of the node", set("datadir", "/tmp"), codes.FailedPrecondition, 1105, "restart the node")
	wants(t, "a value that it cannot have", set("sql_mode", "x'y"), codes.InvalidArgument, 1231, "sql_mode")
	wants(t, "a variable that is fixed", set("sync_binlog", "0"), codes.InvalidArgument, 1231, "sync_binlog")
	wants(t, "no name", set("", "0"), codes.InvalidArgument, 1210, "has a name")
}

func adminBinlogs(t *testing.T, db *sql.DB, c triremev1.AdminClient, ctx context.Context) {
	var files []*triremev1.AdminBinlog
	eventually(t, "several files that nobody needs", func() error {
		execAll(t, db, "UPDATE shop.big SET s = REPEAT(UUID(), 50)")
		files = must(c.ListBinlogs(ctx, &triremev1.AdminListBinlogsRequest{})).GetFiles()
		if len(files) < 4 || files[2].GetNeeded() {
			return fmt.Errorf("%v", files)
		}
		return nil
	})
	if files[0].GetBytes() == 0 || !files[0].GetClosed() || files[len(files)-1].GetClosed() || !files[len(files)-1].GetNeeded() || files[1].GetFirstNumber() != files[0].GetLastNumber()+1 {
		t.Errorf("%v", files)
	}
	purge := func(to string) ([]string, error) {
		r, err := c.PurgeBinlogs(ctx, &triremev1.AdminPurgeBinlogsRequest{To: to})
		return r.GetRemoved(), err
	}
	_, err := purge("binlog.999999")
	wants(t, "purge to a file that is not there", err, codes.NotFound, 1373, "the list of binlogs")
	if removed, err := purge(files[2].GetName()); err != nil || !slices.Equal(removed, []string{files[0].GetName(), files[1].GetName()}) {
		t.Errorf("%v %v", removed, err)
	}
	if removed, err := purge(files[2].GetName()); err != nil || len(removed) != 0 {
		t.Errorf("again: %v %v", removed, err)
	}
	var name, encrypted string
	var size int64
	if err := db.QueryRow("SHOW BINARY LOGS").Scan(&name, &size, &encrypted); err != nil || name != files[2].GetName() {
		t.Errorf("SHOW BINARY LOGS: %s %v", name, err)
	}
}
