package priv

import "strings"

// Mask is a set of static privileges.
type Mask uint64

// The static privileges, in the order of SHOW GRANTS.
const (
	Select Mask = 1 << iota
	Insert
	Update
	Delete
	Create
	Drop
	Reload
	Shutdown
	Process
	File
	References
	Index
	Alter
	ShowDatabases
	Super
	CreateTemporaryTables
	LockTables
	Execute
	ReplicationSlave
	ReplicationClient
	CreateView
	ShowView
	CreateRoutine
	AlterRoutine
	CreateUser
	Event
	Trigger
	CreateTablespace
	CreateRole
	DropRole
	GrantOption
)

// What can be granted at each level.
const (
	GlobalMask = GrantOption<<1 - 1
	SchemaMask = Select | Insert | Update | Delete | Create | Drop | References | Index | Alter | CreateTemporaryTables | LockTables |
		Execute | CreateView | ShowView | CreateRoutine | AlterRoutine | Event | Trigger | GrantOption
	TableMask = Select | Insert | Update | Delete | Create | Drop | References | Index | Alter | CreateView | ShowView | Trigger |
		GrantOption
	ColumnMask = Select | Insert | Update | References
)

// privilege is a static privilege: its name, the column of mysql.user and mysql.db that
// has it, and the member of the SETs of mysql.tables_priv.
type privilege struct {
	mask   Mask
	name   string
	column string
	member string
	about  string // where it applies, as SHOW PRIVILEGES says
	doc    string
}

var privileges = []privilege{
	{Select, "SELECT", "Select_priv", "Select", "Tables", "To retrieve rows from table"},
	{Insert, "INSERT", "Insert_priv", "Insert", "Tables", "To insert data into tables"},
	{Update, "UPDATE", "Update_priv", "Update", "Tables", "To update existing rows"},
	{Delete, "DELETE", "Delete_priv", "Delete", "Tables", "To delete existing rows"},
	{Create, "CREATE", "Create_priv", "Create", "Databases,Tables,Indexes", "To create new databases and tables"},
	{Drop, "DROP", "Drop_priv", "Drop", "Databases,Tables", "To drop databases, tables, and views"},
	{Reload, "RELOAD", "Reload_priv", "", "Server Admin", "To reload or refresh tables, logs and privileges"},
	{Shutdown, "SHUTDOWN", "Shutdown_priv", "", "Server Admin", "To shut down the server"},
	{Process, "PROCESS", "Process_priv", "", "Server Admin", "To view the plain text of currently executing queries"},
	{File, "FILE", "File_priv", "", "File access on server", "To read and write files on the server"},
	{References, "REFERENCES", "References_priv", "References", "Databases,Tables", "To have references on tables"},
	{Index, "INDEX", "Index_priv", "Index", "Tables", "To create or drop indexes"},
	{Alter, "ALTER", "Alter_priv", "Alter", "Tables", "To alter the table"},
	{ShowDatabases, "SHOW DATABASES", "Show_db_priv", "", "Server Admin", "To see all databases with SHOW DATABASES"},
	{Super, "SUPER", "Super_priv", "", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc."},
	{CreateTemporaryTables, "CREATE TEMPORARY TABLES", "Create_tmp_table_priv", "", "Databases", "To use CREATE TEMPORARY TABLE"},
	{LockTables, "LOCK TABLES", "Lock_tables_priv", "", "Databases", "To use LOCK TABLES (together with SELECT privilege)"},
	{Execute, "EXECUTE", "Execute_priv", "", "Functions,Procedures", "To execute stored routines"},
	{ReplicationSlave, "REPLICATION SLAVE", "Repl_slave_priv", "", "Server Admin", "To read binary log events from the source"},
	{ReplicationClient, "REPLICATION CLIENT", "Repl_client_priv", "", "Server Admin", "To ask where the slave or master servers are"},
	{CreateView, "CREATE VIEW", "Create_view_priv", "Create View", "Tables", "To create new views"},
	{ShowView, "SHOW VIEW", "Show_view_priv", "Show view", "Tables", "To see views with SHOW CREATE VIEW"},
	{CreateRoutine, "CREATE ROUTINE", "Create_routine_priv", "", "Databases", "To use CREATE FUNCTION/PROCEDURE"},
	{AlterRoutine, "ALTER ROUTINE", "Alter_routine_priv", "", "Functions,Procedures", "To alter or drop stored functions/procedures"},
	{CreateUser, "CREATE USER", "Create_user_priv", "", "Server Admin", "To create new users"},
	{Event, "EVENT", "Event_priv", "", "Server Admin", "To create, alter, drop and execute events"},
	{Trigger, "TRIGGER", "Trigger_priv", "Trigger", "Tables", "To use triggers"},
	{CreateTablespace, "CREATE TABLESPACE", "Create_tablespace_priv", "", "Server Admin", "To create/alter/drop tablespaces"},
	{CreateRole, "CREATE ROLE", "Create_role_priv", "", "Server Admin", "To create new roles"},
	{DropRole, "DROP ROLE", "Drop_role_priv", "", "Server Admin", "To drop roles"},
	{GrantOption, "GRANT OPTION", "Grant_priv", "Grant", "Databases,Tables,Functions,Procedures", "To give to other users those privileges you possess"},
}

// Static is a static privilege as SHOW PRIVILEGES lists it.
type Static struct{ Name, Context, Comment string }

// StaticPrivileges lists the static privileges.
func StaticPrivileges() []Static {
	var all []Static
	for _, p := range privileges {
		all = append(all, Static{p.name, p.about, p.doc})
	}
	return all
}

// dynamic are the dynamic privileges that can be granted: those of MySQL 9.7.
var dynamic = []string{"ALLOW_NONEXISTENT_DEFINER", "APPLICATION_PASSWORD_ADMIN", "AUDIT_ABORT_EXEMPT", "AUDIT_ADMIN", "AUTHENTICATION_POLICY_ADMIN",
	"BACKUP_ADMIN", "BINLOG_ADMIN", "BINLOG_ENCRYPTION_ADMIN", "CLONE_ADMIN", "CONNECTION_ADMIN", "CREATE_SPATIAL_REFERENCE_SYSTEM",
	"ENCRYPTION_KEY_ADMIN", "FIREWALL_EXEMPT", "FLUSH_OPTIMIZER_COSTS", "FLUSH_PRIVILEGES", "FLUSH_STATUS", "FLUSH_TABLES",
	"FLUSH_USER_RESOURCES", "GROUP_REPLICATION_ADMIN", "GROUP_REPLICATION_STREAM", "INNODB_REDO_LOG_ARCHIVE", "INNODB_REDO_LOG_ENABLE",
	"MANAGE_DATA_MASKING_POLICY", "OPTIMIZE_LOCAL_TABLE", "PASSWORDLESS_USER_ADMIN", "PERSIST_RO_VARIABLES_ADMIN", "REPLICATION_APPLIER",
	"REPLICATION_SLAVE_ADMIN", "RESOURCE_GROUP_ADMIN", "RESOURCE_GROUP_USER", "ROLE_ADMIN", "SENSITIVE_VARIABLES_OBSERVER",
	"SERVICE_CONNECTION_ADMIN", "SESSION_VARIABLES_ADMIN", setAnyDefiner, "SHOW_ROUTINE", SystemUser, "SYSTEM_VARIABLES_ADMIN",
	"TABLE_ENCRYPTION_ADMIN", "TELEMETRY_LOG_ADMIN", "TRANSACTION_GTID_TAG", "XA_RECOVER_ADMIN"}

// SystemUser is the privilege that makes an account a system account: who does not hold it changes and ends nothing
// of one that does.
const SystemUser = "SYSTEM_USER"

// OrphanDefiner allows views whose definer does not exist.
const OrphanDefiner = "ALLOW_NONEXISTENT_DEFINER"

const setAnyDefiner = "SET_ANY_DEFINER"

// retired is what the tables have of before there were the privileges of added: who holds it holds the first two, and
// who held all that there was the others too.
const retired = "SET_USER_ID"

var added = []string{setAnyDefiner, OrphanDefiner, "CREATE_SPATIAL_REFERENCE_SYSTEM", "FLUSH_PRIVILEGES", "MANAGE_DATA_MASKING_POLICY",
	"OPTIMIZE_LOCAL_TABLE", "TRANSACTION_GTID_TAG"}

// notBySuper are the dynamic privileges that SUPER does not stand for.
var notBySuper = map[string]bool{SystemUser: true, "FLUSH_OPTIMIZER_COSTS": true, "FLUSH_PRIVILEGES": true, "FLUSH_STATUS": true, "FLUSH_TABLES": true,
	"FLUSH_USER_RESOURCES": true, "OPTIMIZE_LOCAL_TABLE": true}

// DynamicPrivileges lists the dynamic privileges.
func DynamicPrivileges() []string { return dynamic }

func isDynamic(name string) bool {
	for _, d := range dynamic {
		if d == name {
			return true
		}
	}
	return false
}

// maskOf returns the privilege of a name as statements have it.
func maskOf(name string) (Mask, bool) {
	if name == "ALL" || name == "ALL PRIVILEGES" {
		return GlobalMask &^ GrantOption, true
	}
	if name == "USAGE" {
		return 0, true
	}
	for i := range privileges {
		if privileges[i].name == name {
			return privileges[i].mask, true
		}
	}
	return 0, false
}

// Names lists the privileges of a mask but GRANT OPTION.
func (m Mask) Names() []string {
	var names []string
	for i := range privileges {
		if p := &privileges[i]; m&p.mask != 0 && p.mask != GrantOption {
			names = append(names, p.name)
		}
	}
	return names
}

func (m Mask) String() string { return strings.Join(m.Names(), ", ") }

// members is a mask as the SETs of mysql.tables_priv have it.
func (m Mask) members() string {
	var names []string
	for i := range privileges {
		if p := &privileges[i]; m&p.mask != 0 && p.member != "" {
			names = append(names, p.member)
		}
	}
	return strings.Join(names, ",")
}

// maskOfMembers is the inverse of members.
func maskOfMembers(s string) Mask {
	var m Mask
	for _, name := range strings.Split(s, ",") {
		for i := range privileges {
			if privileges[i].member != "" && strings.EqualFold(privileges[i].member, name) {
				m |= privileges[i].mask
			}
		}
	}
	return m
}
