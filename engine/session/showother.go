package session

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// showCreate is SHOW CREATE.
func (s *Session) showCreate(st *ast.Show) error {
	if err := s.pointDefinitions(); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	switch st.Kind {
	case ast.ShowCreateSchema:
		return s.showCreateSchema(st)
	case ast.ShowCreateUser:
		return s.showCreateUser(st)
	case ast.ShowCreateProgram:
		return sqlerr.New(sqlerr.SPDoesNotExist, st.Name, st.Table.Name)
	}
	schema := st.Table.Schema
	if schema == "" {
		schema = s.schema
	}
	if schema == "" {
		return sqlerr.New(sqlerr.NoDBError)
	}
	if known, ok := virtualSchema(schema); ok || madeOf(schema, st.Table.Name) != nil {
		v := madeOf(schema, st.Table.Name)
		switch {
		case v == nil && known == sysSchema:
			return s.showCreateSys(st)
		case v == nil:
			return sqlerr.New(sqlerr.UnknownTable, st.Table.Name, known)
		}
		if err := s.privileges().MayDescribe(schema, v.Def.Name); err != nil {
			return err
		}
		return s.give([]column{{"Table", shortText}, {"Create Table", longText}}, []any{v.Def.Name, catalog.ShowCreateTable(v.Def, 0)})
	}
	if t := s.temporaryTable(schema, st.Table.Name); t != nil && st.Kind == ast.ShowCreateTable {
		return s.give([]column{{"Table", shortText}, {"Create Table", longText}}, []any{t.Schema.Name, createTemporaryText(t.Schema.Table, t.NextAuto())})
	}
	if a := s.privileges(); a.TableMask(schema, st.Table.Name)&(priv.TableMask&^priv.GrantOption) == 0 {
		return a.Table(schema, st.Table.Name, priv.Select, "SHOW")
	}
	h, err := s.eng.Catalog.OpenTable(nil, schema, st.Table.Name)
	if err != nil {
		return missingTable(err, schema, st.Table.Name)
	}
	defer h.Release()
	def := h.Table().Schema.Table
	if v, ok := catalog.ViewOf(def); ok {
		a := s.privileges()
		if err := a.Table(schema, def.Name, priv.ShowView, "SHOW VIEW"); err != nil {
			return err
		}
		if st.Kind == ast.ShowCreateView { // of a column is enough
			if err := a.AnyTable(schema, def.Name, priv.Select, "SHOW VIEW"); err != nil {
				return err
			}
		}
		if v.Schema != s.schema { // the text is for who has this schema
			v.Query = qualified(v.Query, v.Schema)
			def = def.Clone()
			catalog.SetView(def, v)
		}
		if broken, err := s.brokenView(def, v); err != nil {
			return err
		} else if broken != nil {
			s.diag.warn(broken)
		}
		text, _ := catalog.ShowCreateView(def, schema != s.schema)
		return s.give([]column{{"View", shortText}, {"Create View", longText}, {"character_set_client", shortText}, {"collation_connection", shortText}},
			[]any{def.Name, text, v.Client, v.Connection})
	}
	if st.Kind == ast.ShowCreateView {
		return sqlerr.New(sqlerr.WrongObject, schema, def.Name, "VIEW")
	}
	return s.give([]column{{"Table", shortText}, {"Create Table", longText}}, []any{def.Name, catalog.ShowCreateTable(def, h.Table().NextAuto())})
}

func (s *Session) showCreateSchema(st *ast.Show) error {
	name := st.Schema
	if known, ok := virtualSchema(name); ok {
		return s.give(textColumns("Database", "Create Database"),
			[]any{known, "CREATE DATABASE `" + known + "` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */"})
	}
	if err := s.privileges().MayUse(name); err != nil {
		return err
	}
	of, err := s.eng.Catalog.FindSchema(nil, name)
	if err != nil {
		return err
	}
	return s.give(textColumns("Database", "Create Database"), []any{of.Name, catalog.ShowCreateSchema(of, st.IfNotExists)})
}

// knownAccount is the account that SHOW names, if the session may see it.
func (s *Session) knownAccount(u *ast.User, may func(a *priv.Active) error) (*priv.Set, *priv.Account, error) {
	k, err := s.m.accounts()
	if err != nil {
		return nil, nil, err
	}
	id := s.accountID()
	if u != nil {
		if id, err = s.userID(*u); err != nil {
			return nil, nil, err
		}
	}
	if k.set == nil {
		return nil, nil, sqlerr.New(sqlerr.OptionPreventsStatement, "--skip-grant-tables")
	}
	if id != s.accountID() {
		if err := may(s.privileges()); err != nil {
			return nil, nil, err
		}
	}
	a := k.set.Account(id)
	if a == nil {
		return nil, nil, sqlerr.New(sqlerr.NonExistingGrant, id.Name, id.Host)
	}
	return k.set, a, nil
}

func (s *Session) showGrants(st *ast.Show) error {
	if err := s.pointDefinitions(); err != nil {
		return err
	}
	set, a, err := s.knownAccount(st.User, func(a *priv.Active) error { return a.Table(priv.Schema, "user", priv.Select, "SELECT") })
	if err != nil {
		return err
	}
	var using []priv.ID
	for _, r := range st.Using {
		role, err := s.userID(r)
		if err != nil {
			return err
		}
		if !set.HasRole(a, role) {
			return sqlerr.New(sqlerr.RoleNotGranted, role, a.ID)
		}
		using = append(using, role)
	}
	if st.User == nil && len(st.Using) == 0 {
		using = s.privileges().Roles
	}
	var rows [][]any
	own := st.User == nil || a.ID == s.accountID()
	for _, line := range set.Grants(a.ID, using, own) {
		rows = append(rows, []any{line})
	}
	return s.give([]column{{"Grants for " + a.Name + "@" + a.Host, longText}}, rows...)
}

func (s *Session) showCreateUser(st *ast.Show) error {
	_, a, err := s.knownAccount(st.User, func(a *priv.Active) error { return a.Schema(priv.Schema, priv.Select) })
	if err != nil {
		return err
	}
	text := "CREATE USER " + a.ID.String() + " IDENTIFIED WITH '" + a.Plugin + "'"
	if a.Hash != "" {
		text += " AS " + catalog.EscapeString(a.Hash)
	}
	for i, role := range a.DefaultRoles {
		if i == 0 {
			text += " DEFAULT ROLE "
		} else {
			text += ","
		}
		text += role.String()
	}
	switch a.TLS {
	case "":
		text += " REQUIRE NONE"
	case "ANY":
		text += " REQUIRE SSL"
	case "X509":
		text += " REQUIRE X509"
	default:
		text += " REQUIRE"
		if a.Subject == "" && a.Issuer == "" && a.Cipher == "" {
			text += " SUBJECT ''"
		}
		for _, p := range [][2]string{{" SUBJECT ", a.Subject}, {" ISSUER ", a.Issuer}, {" CIPHER ", a.Cipher}} {
			if p[1] != "" {
				text += p[0] + catalog.EscapeString(p[1])
			}
		}
	}
	limits, with := &a.Limits, " WITH"
	for _, l := range []struct {
		name string
		n    uint32
	}{{"MAX_QUERIES_PER_HOUR", limits.Questions}, {"MAX_UPDATES_PER_HOUR", limits.Updates}, {"MAX_CONNECTIONS_PER_HOUR", limits.Connections},
		{"MAX_USER_CONNECTIONS", limits.UserConnections}} {
		if l.n != 0 {
			text += with + " " + l.name + " " + strconv.FormatUint(uint64(l.n), 10)
			with = ""
		}
	}
	switch {
	case a.Expired:
		text += " PASSWORD EXPIRE"
	case a.Lifetime == 0:
		text += " PASSWORD EXPIRE NEVER"
	case a.Lifetime > 0:
		text += " PASSWORD EXPIRE INTERVAL " + strconv.Itoa(a.Lifetime) + " DAY"
	default:
		text += " PASSWORD EXPIRE DEFAULT"
	}
	if a.Locked {
		text += " ACCOUNT LOCK"
	} else {
		text += " ACCOUNT UNLOCK"
	}
	text += passwordRulesText(a)
	return s.give([]column{{"CREATE USER for " + a.Name + "@" + a.Host, longText}}, []any{text})
}

func (s *Session) showPrivileges() error {
	var rows [][]any
	for _, p := range priv.StaticPrivileges() {
		rows = append(rows, []any{p.Name, p.Context, p.Comment})
	}
	for _, d := range priv.DynamicPrivileges() {
		rows = append(rows, []any{d, "Server Admin", ""})
	}
	return s.give(textColumns("Privilege", "Context", "Comment"), rows...)
}

// showConditions is SHOW WARNINGS and SHOW ERRORS.
func (s *Session) showConditions(st *ast.Show) error {
	all, failures := s.ConditionCount()
	if st.Count {
		name, n := "@@session.warning_count", all
		if st.Kind == ast.ShowErrors {
			name, n = "@@session.error_count", failures
		}
		return s.give([]column{{name, bigNumber}}, []any{n})
	}
	skip, left := uint64(0), uint64(math.MaxUint64)
	if st.Limit != nil {
		var err error
		if left, err = s.limitNumber(st.Limit.Count); err != nil {
			return err
		}
		if st.Limit.Offset != nil {
			if skip, err = s.limitNumber(st.Limit.Offset); err != nil {
				return err
			}
		}
	}
	var rows [][]any
	for _, c := range s.Conditions() {
		if st.Kind == ast.ShowErrors && c.Level != "Error" {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if left == 0 {
			break
		}
		left--
		rows = append(rows, []any{c.Level, int(c.Error.Number), c.Error.Message})
	}
	return s.give([]column{{"Level", shortText}, {"Code", bigNumber}, {"Message", shortText}}, rows...)
}

func (s *Session) limitNumber(e ast.Expr) (uint64, error) {
	v, _, err := s.evaluate(e)
	if err != nil {
		return 0, err
	}
	return v.Uint(), nil
}

// showEngine is SHOW ENGINE INNODB STATUS, in short.
func (s *Session) showEngine(st *ast.Show) error {
	if err := s.privileges().Needs(priv.Process); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	text := ""
	if st.What == "STATUS" {
		if d := s.eng.Locks.LastDeadlock(); d != nil {
			text += "------------------------\nLATEST DETECTED DEADLOCK\n------------------------\n" + d.String() + "\n"
		}
		n := func(v uint64) string { return strconv.FormatUint(v, 10) }
		text += "------------\nTRANSACTIONS\n------------\nLast committed transaction " + n(s.eng.Trx.LastCommitted()) + "\nOldest snapshot " + n(s.eng.Trx.OldestSnapshot()) +
			"\nTransactions " + strconv.Itoa(s.eng.Trx.Count()) + "\nLock memory " + strconv.FormatInt(s.eng.Locks.Memory(), 10) + "\n"
	}
	return s.give([]column{{"Type", shortText}, {"Name", shortText}, {"Status", longText}}, []any{"InnoDB", "", text})
}

// BinaryLog is a file of the group's log.
type BinaryLog struct {
	Name string
	Size int64
}

// binaryLogs is implemented by backends that can list the group's log.
type binaryLogs interface{ BinaryLogs() ([]BinaryLog, error) }

// showBinaryLogs is SHOW BINARY LOGS and SHOW BINARY LOG STATUS.
func (s *Session) showBinaryLogs(st *ast.Show) error {
	if err := s.privileges().Needs(priv.Super | priv.ReplicationClient); err != nil {
		return err
	}
	of, ok := s.m.opt.Backend.(binaryLogs)
	var logs []BinaryLog
	if ok {
		var err error
		if logs, err = of.BinaryLogs(); err != nil {
			return err
		}
	}
	if st.Kind == ast.ShowBinaryLogs {
		if !ok {
			return sqlerr.New(sqlerr.NoBinaryLogging)
		}
		var rows [][]any
		for _, l := range logs {
			rows = append(rows, []any{l.Name, l.Size, "No"})
		}
		return s.give([]column{{"Log_name", shortText}, {"File_size", bigNumber}, {"Encrypted", shortText}}, rows...)
	}
	columns := []column{{"File", shortText}, {"Position", bigNumber}, {"Binlog_Do_DB", shortText}, {"Binlog_Ignore_DB", shortText}, {"Executed_Gtid_Set", longText}}
	if len(logs) == 0 {
		return s.give(columns)
	}
	last := logs[len(logs)-1]
	return s.give(columns, []any{last.Name, last.Size, "", "", s.gtidExecuted()})
}

// showNothing gives the empty results of what there is none of.
func (s *Session) showNothing(st *ast.Show) error {
	switch st.Kind {
	case ast.ShowReplicas:
		return s.give(textColumns("Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"))
	case ast.ShowProfiles:
		return s.give(textColumns("Query_ID", "Duration", "Query"))
	case ast.ShowProfile:
		return s.give(textColumns("Status", "Duration"))
	case ast.ShowOpenTables:
		return s.give(textColumns("Database", "Table", "In_use", "Name_locked"))
	}
	return s.give(textColumns("Replica_IO_State", "Source_Host", "Source_User", "Source_Port", "Connect_Retry", "Source_Log_File", "Read_Source_Log_Pos", "Relay_Log_File", "Relay_Log_Pos",
		"Relay_Source_Log_File", "Replica_IO_Running", "Replica_SQL_Running", "Seconds_Behind_Source", "Executed_Gtid_Set"))
}

// maintain is ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.
func (s *Session) maintain(ctx context.Context, st *ast.Maintain) (Outcome, error) {
	if st.Kind != ast.Checksum {
		if err := s.implicitCommit(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if st.Kind == ast.Optimize || st.Kind == ast.Repair {
		if err := s.mayDefine(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if err := s.pointDefinitions(); err != nil {
		return Outcome{}, err
	}
	if err := s.connect(); err != nil {
		return Outcome{}, err
	}
	var rows [][]any
	for _, t := range st.Tables {
		schema, name, err := s.tableName(t)
		if err != nil {
			return Outcome{}, err
		}
		if err := s.mayMaintain(schema, name, st.Kind); err != nil {
			return Outcome{}, err
		}
		if st.Kind == ast.Checksum && slices.Contains(st.Options, "QUICK") { // nobody keeps one up to date
			rows = append(rows, []any{schema + "." + name, nil})
			continue
		}
		more, err := s.maintainTable(schema, name, st.Kind)
		if err != nil {
			return Outcome{}, err
		}
		rows = append(rows, more...)
	}
	if st.Kind == ast.Checksum {
		return Outcome{}, s.give([]column{{"Table", shortText}, {"Checksum", bigNumber}}, rows...)
	}
	return Outcome{}, s.give([]column{{"Table", shortText}, {"Op", shortText}, {"Msg_type", shortText}, {"Msg_text", longText}}, rows...)
}

var maintainOps = [...]string{ast.Analyze: "analyze", ast.Optimize: "optimize", ast.CheckTable: "check", ast.Repair: "repair", ast.Checksum: ""}

// mayMaintain asks whether the session may do so. Error besides: 1142.
func (s *Session) mayMaintain(schema, name string, kind ast.MaintainKind) error {
	if s.isTemporary(schema, name) {
		return nil
	}
	a := s.privileges()
	switch kind {
	case ast.CheckTable:
		return a.MayDescribe(schema, name)
	case ast.Checksum:
		return a.Some(schema, name, priv.Select)
	}
	if err := a.Table(schema, name, priv.Select, "SELECT"); err != nil {
		return err
	}
	return a.Table(schema, name, priv.Insert, "INSERT")
}

// maintainTable does the work for one table, and gives the rows of the answer.
func (s *Session) maintainTable(schema, name string, kind ast.MaintainKind) ([][]any, error) {
	full, op := schema+"."+name, maintainOps[kind]
	t := s.temporaryTable(schema, name)
	temporary := t != nil
	if !temporary {
		h, err := s.eng.Catalog.OpenTable(nil, schema, name)
		if err != nil {
			err = missingTable(err, schema, name)
			if errorNumber(err) != sqlerr.NoSuchTable {
				return nil, err
			}
			if kind == ast.Checksum {
				return [][]any{{full, nil}}, nil
			}
			return [][]any{{full, op, "Error", errorText(err)}, {full, op, "status", "Operation failed"}}, nil
		}
		defer h.Release()
		t = h.Table()
	}
	ok := []any{full, op, "status", "OK"}
	if v, is := catalog.ViewOf(t.Schema.Table); is {
		return s.maintainView(full, t.Schema.Table, v, kind)
	}
	switch kind {
	case ast.Analyze:
		t.ForgetStatistics()
		s.m.plans.forget()
	case ast.Optimize, ast.Repair:
		return [][]any{{full, op, "note", "The storage engine for the table doesn't support " + op}, ok}, nil
	case ast.Checksum:
		if temporary { // CHECKSUM tells of what members have in common
			s.note(sqlerr.Newf(sqlerr.NotSupportedYet, "CHECKSUM TABLE gives none of a temporary table, which no other member has"))
			return [][]any{{full, nil}}, nil
		}
		sum, err := s.checksum(schema, name)
		return [][]any{{full, sum}}, err
	case ast.CheckTable:
		return s.checkTable(full, t)
	}
	return [][]any{ok}, nil
}

// maintainView is what the statements say of a view with the full name: it has nothing to be maintained, but its text may name what is
// not there.
func (s *Session) maintainView(full string, def *record.Table, v catalog.View, kind ast.MaintainKind) ([][]any, error) {
	op := maintainOps[kind]
	notBase := sqlerr.New(sqlerr.WrongObject, def.Schema, def.Name, "BASE TABLE")
	switch kind {
	case ast.Checksum:
		s.diag.add("Error", notBase)
		return [][]any{{full, nil}}, nil
	case ast.CheckTable:
		broken, err := s.brokenView(def, v)
		switch {
		case err != nil:
			return nil, err
		case broken != nil:
			return [][]any{{full, op, "Error", broken.Message}, {full, op, "error", "Corrupt"}}, nil
		}
		return [][]any{{full, op, "status", "OK"}}, nil
	}
	return [][]any{{full, op, "Error", notBase.Message}, {full, op, "status", "Operation failed"}}, nil
}

// checkTable is CHECK TABLE of a table with the full name.
func (s *Session) checkTable(full string, t *table.Table) ([][]any, error) {
	var rows [][]any
	_, err := t.Check(table.CheckOptions{Stop: s.interrupted, Limit: 10}, func(f table.Finding) { rows = append(rows, []any{full, "check", "error", f.String()}) })
	if err != nil || len(rows) > 0 {
		return append(rows, []any{full, "check", "error", "Corrupt"}), err
	}
	return [][]any{{full, "check", "status", "OK"}}, nil
}

// checksum is a number that depends on the table's rows: the same on all members.
func (s *Session) checksum(schema, name string) (uint64, error) {
	if err := s.beginWork(); err != nil {
		return 0, err
	}
	sum, err := func() (uint64, error) {
		o, err := s.txn.Open(schema, name)
		if err != nil {
			return 0, err
		}
		number, err := s.txn.Snapshot()
		if err != nil {
			return 0, err
		}
		// Its own snapshot: that of the transaction ends with it, which may be at any time
		// when the engine is closed. READ UNCOMMITTED has no number.
		var view trx.View
		if err := s.eng.Trx.OpenSnapshotAt(&view, min(number, s.eng.Trx.LastCommitted())); err != nil {
			return 0, err
		}
		defer s.eng.Trx.CloseSnapshot(&view)
		view.Own = s.txn.Trx().ID()
		h, err := s.eng.Tables.NewWorker().Hash(o.Table(), &view.Snapshot, s.interrupted)
		if h.Rows == 0 {
			return 0, err // as in MySQL, no rows
		}
		return types.HashBytes(0, []byte(h.String())) & math.MaxUint32, err
	}()
	return sum, s.endWork(s.out.ctx, err, false)
}

// flush is FLUSH. What it asks for is mostly never needed here.
func (s *Session) flush(ctx context.Context, st *ast.Flush) error {
	var dynamic []string
	switch st.What {
	case "PRIVILEGES", "STATUS", "TABLES", "USER_RESOURCES":
		dynamic = []string{"FLUSH_" + st.What}
	case "OPTIMIZER_COSTS":
		dynamic = []string{"FLUSH_OPTIMIZER_COSTS"}
	}
	if err := s.privileges().Needs(priv.Reload, dynamic...); err != nil {
		return err
	}
	switch {
	case st.Export:
		return notSupported("FLUSH TABLES FOR EXPORT")
	case st.ReadLock:
		return s.readLock(ctx, st.Tables)
	}
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	switch st.What {
	case "USER_RESOURCES":
		s.m.uses.forget()
	case "PRIVILEGES", "TABLES":
	default:
		s.diag.warn(catalog.KeptOnly("FLUSH " + st.What))
	}
	if st.What != "PRIVILEGES" || s.info.ReadOnly {
		return nil
	}
	if k, err := s.m.accounts(); err != nil || k.set == nil {
		return err
	}
	return s.inTransaction(ctx, func() error { return touchAccounts(s.txn) })
}

// passwordRulesText is the end of SHOW CREATE USER.
func passwordRulesText(a *priv.Account) string {
	text := " PASSWORD HISTORY DEFAULT"
	if n := a.Rules.History; n >= 0 {
		text = " PASSWORD HISTORY " + strconv.Itoa(n)
	}
	if n := a.Rules.Reuse; n >= 0 {
		text += " PASSWORD REUSE INTERVAL " + strconv.Itoa(n) + " DAY"
	} else {
		text += " PASSWORD REUSE INTERVAL DEFAULT"
	}
	text += " PASSWORD REQUIRE CURRENT"
	switch a.Rules.RequireCurrent {
	case priv.ByServer:
		text += " DEFAULT"
	case 0:
		text += " OPTIONAL"
	}
	if n := a.Rules.Attempts; n > 0 {
		text += " FAILED_LOGIN_ATTEMPTS " + strconv.Itoa(n)
	}
	switch n := a.Rules.LockDays; {
	case n == priv.Unlimited:
		text += " PASSWORD_LOCK_TIME UNBOUNDED"
	case n > 0:
		text += " PASSWORD_LOCK_TIME " + strconv.Itoa(n)
	}
	if a.Metadata != "" {
		text += " ATTRIBUTE " + catalog.EscapeString(a.Metadata)
	}
	return text
}
