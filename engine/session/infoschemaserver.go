package session

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

var infoServer = []made{
	{infoSchema, "CHARACTER_SETS", "CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME, DESCRIPTION varchar(2048), MAXLEN int unsigned", rowsCharsets},
	{infoSchema, "COLLATIONS", "COLLATION_NAME, CHARACTER_SET_NAME, ID bigint unsigned, IS_DEFAULT varchar(3), IS_COMPILED varchar(3), SORTLEN int unsigned, PAD_ATTRIBUTE enum('PAD SPACE';'NO PAD')", rowsCollations},
	{infoSchema, "COLLATION_CHARACTER_SET_APPLICABILITY", "COLLATION_NAME, CHARACTER_SET_NAME", rowsCollationCharsets},
	{infoSchema, "ENGINES", "ENGINE, SUPPORT varchar(8), COMMENT varchar(80), TRANSACTIONS varchar(3), XA varchar(3), SAVEPOINTS varchar(3)", func(q *virtualRows) error {
		q.row("InnoDB", "DEFAULT", "Supports transactions, row-level locking, and foreign keys", "YES", "NO", "YES")
		return nil
	}},
	{infoSchema, "PROCESSLIST", "ID bigint unsigned, USER varchar(32), HOST varchar(261), DB varchar(64), COMMAND varchar(16), TIME int, STATE varchar(64), INFO longtext", rowsProcesses},
	{infoSchema, "KEYWORDS", "WORD varchar(128), RESERVED int", rowsKeywords},
	{infoSchema, "PLUGINS", "PLUGIN_NAME, PLUGIN_VERSION varchar(20), PLUGIN_STATUS varchar(10), PLUGIN_TYPE varchar(80), PLUGIN_TYPE_VERSION varchar(20), PLUGIN_LIBRARY, " +
		"PLUGIN_LIBRARY_VERSION varchar(20), PLUGIN_AUTHOR, PLUGIN_DESCRIPTION longtext, PLUGIN_LICENSE varchar(80), LOAD_OPTION varchar(64)", rowsPlugins},
	{infoSchema, "INNODB_TRX", "trx_id bigint unsigned, trx_state varchar(13), trx_started datetime, trx_requested_lock_id varchar(126), trx_wait_started datetime, trx_weight bigint unsigned, " +
		"trx_mysql_thread_id bigint unsigned, trx_query varchar(1024), trx_operation_state varchar(64), trx_tables_in_use bigint unsigned, trx_tables_locked bigint unsigned, " +
		"trx_lock_structs bigint unsigned, trx_lock_memory_bytes bigint unsigned, trx_rows_locked bigint unsigned, trx_rows_modified bigint unsigned, trx_concurrency_tickets bigint unsigned, " +
		"trx_isolation_level varchar(16), trx_unique_checks int, trx_foreign_key_checks int, trx_last_foreign_key_error varchar(256), trx_adaptive_hash_latched int, " +
		"trx_adaptive_hash_timeout bigint unsigned, trx_is_read_only int, trx_autocommit_non_locking int, trx_schedule_weight bigint unsigned", rowsTransactions},
}

var perfTables = []made{
	{perfSchema, "replication_group_members", "CHANNEL_NAME char(64), MEMBER_ID char(36), MEMBER_HOST char(255), MEMBER_PORT int, MEMBER_STATE char(64), MEMBER_ROLE char(64), MEMBER_VERSION char(64), " +
		"MEMBER_COMMUNICATION_STACK char(64)", rowsMembers},
	{perfSchema, "replication_group_member_stats", "CHANNEL_NAME char(64), VIEW_ID char(60), MEMBER_ID char(36), COUNT_TRANSACTIONS_IN_QUEUE bigint unsigned, COUNT_TRANSACTIONS_CHECKED bigint unsigned, " +
		"COUNT_CONFLICTS_DETECTED bigint unsigned, COUNT_TRANSACTIONS_ROWS_VALIDATING bigint unsigned, TRANSACTIONS_COMMITTED_ALL_MEMBERS longtext, LAST_CONFLICT_FREE_TRANSACTION text, " +
		"COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE bigint unsigned, COUNT_TRANSACTIONS_REMOTE_APPLIED bigint unsigned, COUNT_TRANSACTIONS_LOCAL_PROPOSED bigint unsigned, " +
		"COUNT_TRANSACTIONS_LOCAL_ROLLBACK bigint unsigned", rowsMemberStats},
	{perfSchema, "session_variables", "VARIABLE_NAME, VARIABLE_VALUE varchar(1024)", func(q *virtualRows) error { return rowsVariables(q, false) }},
	{perfSchema, "global_variables", "VARIABLE_NAME, VARIABLE_VALUE varchar(1024)", func(q *virtualRows) error { return rowsVariables(q, true) }},
	{perfSchema, "session_status", "VARIABLE_NAME, VARIABLE_VALUE varchar(1024)", func(q *virtualRows) error { return rowsStatus(q, false) }},
	{perfSchema, "global_status", "VARIABLE_NAME, VARIABLE_VALUE varchar(1024)", func(q *virtualRows) error { return rowsStatus(q, true) }},
	{perfSchema, "metadata_locks", "OBJECT_TYPE, OBJECT_SCHEMA name, OBJECT_NAME name, COLUMN_NAME, OBJECT_INSTANCE_BEGIN bigint unsigned, LOCK_TYPE varchar(32), LOCK_DURATION varchar(32), " +
		"LOCK_STATUS varchar(32), SOURCE, OWNER_THREAD_ID bigint unsigned, OWNER_EVENT_ID bigint unsigned", rowsMetadataLocks},
	{perfSchema, "data_locks", "ENGINE varchar(32), ENGINE_LOCK_ID varchar(128), ENGINE_TRANSACTION_ID bigint unsigned, THREAD_ID bigint unsigned, EVENT_ID bigint unsigned, OBJECT_SCHEMA name, " +
		"OBJECT_NAME name, PARTITION_NAME, SUBPARTITION_NAME, INDEX_NAME, OBJECT_INSTANCE_BEGIN bigint unsigned, LOCK_TYPE varchar(32), LOCK_MODE varchar(32), LOCK_STATUS varchar(32), LOCK_DATA varchar(8192)", rowsDataLocks},
	{perfSchema, "data_lock_waits", "ENGINE varchar(32), REQUESTING_ENGINE_LOCK_ID varchar(128), REQUESTING_ENGINE_TRANSACTION_ID bigint unsigned, REQUESTING_THREAD_ID bigint unsigned, " +
		"REQUESTING_EVENT_ID bigint unsigned, REQUESTING_OBJECT_INSTANCE_BEGIN bigint unsigned, BLOCKING_ENGINE_LOCK_ID varchar(128), BLOCKING_ENGINE_TRANSACTION_ID bigint unsigned, " +
		"BLOCKING_THREAD_ID bigint unsigned, BLOCKING_EVENT_ID bigint unsigned, BLOCKING_OBJECT_INSTANCE_BEGIN bigint unsigned", rowsDataLockWaits},
	{perfSchema, digestTable, digestColumns, rowsDigests},
	{perfSchema, "trireme_large_transactions", "TRANSACTION_ID varchar(96), LEADER_ID char(36), PROCESSLIST_ID bigint unsigned, TIME bigint unsigned, MEMBER_ID char(36), STATE varchar(16), " +
		"EVENTS bigint unsigned, EVENT_BYTES bigint unsigned, STORED_BYTES bigint unsigned, SYNCED_BYTES bigint unsigned, WHOLE varchar(3), " +
		"APPLIED_BYTES bigint unsigned, APPLIED_ROWS bigint unsigned, APPLIER_WAITS_FOR varchar(64)", rowsLarge},
}

func rowsCharsets(q *virtualRows) error {
	for _, c := range catalog.CharacterSets() {
		q.row(c.Name, collationText(c.Default), c.Description, c.Charset.MaxLen())
	}
	return nil
}

func rowsCollations(q *virtualRows) error {
	for _, c := range catalog.Collations() {
		pad, isDefault := "NO PAD", ""
		if c.PadSpace() {
			pad = "PAD SPACE"
		}
		if catalog.IsDefaultCollation(c.ID()) {
			isDefault = "Yes"
		}
		q.row(c.Name(), catalog.CharsetOf(c.ID()).Name, uint64(c.ID()), isDefault, "Yes", sortLength(c.Name()), pad)
	}
	return nil
}

// sortLength is MySQL's measure of how long sort keys of a collation are.
func sortLength(name string) int {
	switch {
	case name == "utf8mb4_0900_bin":
		return 1
	case name == "utf8mb4_ja_0900_as_cs_ks":
		return 24
	case strings.Contains(name, "_0900_"):
		return 0
	case name == "tis620_thai_ci", name == "latin2_czech_cs":
		return 4
	case name == "latin1_german2_ci", name == "cp1250_czech_cs", name == "gb18030_chinese_ci":
		return 2
	}
	set, rest, _ := strings.Cut(name, "_")
	if cs, ok := types.CharsetByName(set); ok && cs.IsUnicode() && rest != "bin" && rest != "tolower_ci" && !strings.HasPrefix(rest, "general") ||
		rest == "unicode_520_ci" {
		return 8
	}
	return 1
}

func rowsCollationCharsets(q *virtualRows) error {
	for _, c := range catalog.Collations() {
		q.row(c.Name(), catalog.CharsetOf(c.ID()).Name)
	}
	return nil
}

// processes are the sessions that the session may see: its account's, with PROCESS all.
func (q *virtualRows) processes(fn func(p *Process)) {
	all := q.s.privileges().Global(priv.Process)
	for _, p := range q.s.m.Processes() {
		if all || p.User == q.s.info.User {
			fn(&p)
		}
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func rowsProcesses(q *virtualRows) error {
	q.processes(func(p *Process) {
		q.row(p.ID, p.User, p.Host, orNull(p.Schema), p.Command, int64(p.Time/time.Second), p.State, orNull(p.Info))
	})
	return nil
}

// rowsPlugins lists what clients look for.
func rowsPlugins(q *virtualRows) error {
	add := func(name, kind, doc string) {
		q.row(name, "1.0", "ACTIVE", kind, "1.0", nil, nil, "Trireme", doc, "Apache-2.0", "FORCE")
	}
	add("binlog", "STORAGE ENGINE", "The group's log")
	add("caching_sha2_password", "AUTHENTICATION", "Caching sha2 authentication")
	add("mysql_native_password", "AUTHENTICATION", "Native MySQL authentication")
	add("InnoDB", "STORAGE ENGINE", "Supports transactions, row-level locking, and foreign keys")
	return nil
}

var isolationTexts = map[trx.Isolation]string{trx.ReadUncommitted: "READ UNCOMMITTED", trx.ReadCommitted: "READ COMMITTED",
	trx.RepeatableRead: "REPEATABLE READ", trx.Serializable: "SERIALIZABLE"}

// rowsTransactions lists the transactions of the sessions. The one in which the list is asked
// for counts if it goes on. Error: 1227.
func rowsTransactions(q *virtualRows) error {
	if err := q.s.privileges().Needs(priv.Process); err != nil {
		return err
	}
	for _, t := range q.s.m.Transactions() {
		if t.Session == q.s.id && !q.s.trx.multi {
			continue
		}
		state, operation := "RUNNING", any(nil)
		if t.Waits {
			state, operation = "LOCK WAIT", "starting index read"
		}
		q.row(t.ID, state, q.time(t.Began.UnixMicro()), nil, nil, 0, t.Session, orNull(cutText(t.Statement, 1024)), operation, 0, 0, 0, 0, 0, 0, 0, t.Isolation, 1, 1, nil,
			0, 0, bit(t.ReadOnly), 0, nil)
	}
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rowsMembers(q *virtualRows) error {
	for _, m := range q.s.m.opt.Backend.Members() {
		q.row("group_replication_applier", m.ID, m.Host, m.Port, m.State, m.Role, m.Version, "XCom")
	}
	return nil
}

func rowsMemberStats(q *virtualRows) error {
	own := q.s.m.opt.Backend.Server().UUID
	for _, m := range q.s.m.opt.Backend.Members() {
		executed := ""
		if m.ID == own {
			executed = q.s.gtidExecuted()
		}
		q.row("group_replication_applier", "", m.ID, 0, 0, 0, 0, executed, "", 0, 0, 0, 0)
	}
	return nil
}

func rowsVariables(q *virtualRows, global bool) error {
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	sort.Strings(names)
	want, only := q.equal(0)
	for _, name := range names {
		v := variables[name]
		if global && v.scope&inGlobal == 0 || only && !strings.EqualFold(name, want) {
			continue
		}
		if q.s.seeVariable(v) != nil {
			continue
		}
		x := varValue{}
		if global {
			x = q.s.globalValue(v)
		} else {
			x = q.s.value(v)
		}
		q.row(name, cutText(v.text(x), 1024))
	}
	return nil
}

// cutText cuts a text off after n characters.
func cutText(text string, n int) string {
	return string(types.CharsetUTF8MB4.Prefix([]byte(text), n))
}

// rowsStatus lists the counters that there are.
func rowsStatus(q *virtualRows, global bool) error {
	m := q.s.m
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	list := map[string]string{"Threads_connected": number(int64(m.Sessions())), "Threads_running": number(int64(m.Active())), "Uptime": number(int64(m.Uptime() / time.Second)),
		"Prepared_stmt_count": number(m.prepared.Load()), "Slow_queries": number(m.Slow()), "Connections": number(int64(m.nextID.Load())),
		"group_replication_primary_member": primaryMember(m.opt.Backend.Members())}
	add := func(name string, value int64) { list[name] = number(value) }
	stats := q.s.eng.Stats()
	stats.Each(add)
	m.opt.Backend.Stats(add)
	m.kinds.each(add)
	q.toolStatus(&stats, add)
	tlsStatus(q.s, list)
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		q.row(name, list[name])
	}
	return nil
}

func primaryMember(members []Member) string {
	for _, m := range members {
		if m.Role == "PRIMARY" {
			return m.ID
		}
	}
	return ""
}

// metadataLocksMax is how many metadata locks are listed at most.
const metadataLocksMax = 10_000

// mayWatch checks that the session may see what others do in a table of performance_schema: with SELECT on that, or PROCESS.
// Error: 1142.
func (q *virtualRows) mayWatch(table string) error {
	a := q.s.privileges()
	if a.Global(priv.Process) || a.SchemaMask(perfSchema)&priv.Select != 0 {
		return nil
	}
	return sqlerr.New(sqlerr.TableAccessDeniedError, "SELECT", a.ID.Name, q.s.info.Host, table)
}

func rowsMetadataLocks(q *virtualRows) error {
	if err := q.mayWatch("metadata_locks"); err != nil {
		return err
	}
	for _, l := range q.s.m.opt.Backend.MetadataLocks(metadataLocksMax) {
		of := metadataKind(l.Name)
		mode, duration, status, owner := l.Mode.String(), "TRANSACTION", "PENDING", any(nil)
		switch {
		case of.kind == "TABLE" && l.Mode == txn.Shared:
			mode = "SHARED_READ"
		case of.kind == "SCHEMA" && l.Mode == txn.Shared:
			mode = "INTENTION_EXCLUSIVE"
		case of.kind == "USER LEVEL LOCK", (l.Name == txn.CommitLock || l.Name == txn.BackupLock) && l.Mode == txn.NoWrite:
			duration = "EXPLICIT"
		}
		if l.Granted {
			status = "GRANTED"
		}
		if l.Session != 0 {
			owner = l.Session
		}
		q.row(of.kind, orNull(of.schema), orNull(of.name), nil, 0, mode, duration, status, "", owner, nil)
	}
	return nil
}

// metadataObject is what a metadata lock is on, as MySQL calls it.
type metadataObject struct{ kind, schema, name string }

func metadataKind(n txn.Name) metadataObject {
	name, named := n.Named()
	switch {
	case named:
		return metadataObject{"USER LEVEL LOCK", "", name}
	case n == txn.CommitLock:
		return metadataObject{"COMMIT", "", ""}
	case n == txn.BackupLock:
		return metadataObject{"BACKUP LOCK", "", ""}
	case n.Table == "":
		return metadataObject{"SCHEMA", n.Schema, ""}
	}
	return metadataObject{"TABLE", n.Schema, n.Table}
}

// rowsLarge lists what members have of running large transactions. Error: 1142.
func rowsLarge(q *virtualRows) error {
	if err := q.mayWatch("trireme_large_transactions"); err != nil {
		return err
	}
	yes := map[bool]string{true: "YES", false: "NO"}
	for _, t := range q.s.m.opt.Backend.LargeTransactions() {
		session := any(nil)
		if t.Session != 0 {
			session = t.Session
		}
		age := int64(t.Age / time.Second)
		for _, m := range t.Members {
			if m.Answers {
				q.row(t.ID, t.Leader, session, age, m.ID, m.State, m.Events, m.Plain, m.Stored, m.Synced, yes[m.Whole], m.AheadBytes, m.AheadRows, orNull(m.Waits))
			} else {
				q.row(t.ID, t.Leader, session, age, m.ID, m.State, nil, nil, nil, m.Synced, yes[m.Whole], nil, nil, nil)
			}
		}
	}
	return nil
}

// rowsKeywords lists the reserved words.
func rowsKeywords(q *virtualRows) error {
	for _, w := range strings.Fields(ast.ReservedWords) {
		q.row(w, 1)
	}
	return nil
}
