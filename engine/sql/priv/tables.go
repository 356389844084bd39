package priv

import "strings"

// Schema is the schema of the system tables.
const Schema = "mysql"

// Tables are the statements that make the system tables, in order. The first one is
// that of accounts, whose definition changes with each change of any of them: so
// every node learns of it.
func Tables() []string {
	const yes = " enum('N','Y') COLLATE utf8mb4_general_ci NOT NULL DEFAULT 'N'"
	const host, user = "char(255) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT ''", "char(32) COLLATE utf8mb4_bin NOT NULL DEFAULT ''"
	const name = "char(64) COLLATE utf8mb4_bin NOT NULL DEFAULT ''"
	const members = "'Select','Insert','Update','Delete','Create','Drop','Grant','References','Index','Alter','Create View','Show view','Trigger'"
	var global, schema strings.Builder
	for i := range privileges {
		p := &privileges[i]
		global.WriteString("`" + p.column + "`" + yes + ",\n")
		if p.mask&SchemaMask != 0 {
			schema.WriteString("`" + p.column + "`" + yes + ",\n")
		}
	}
	return []string{
		"CREATE TABLE mysql.user (Host " + host + ", User " + user + ",\n" + global.String() +
			"ssl_type enum('','ANY','X509','SPECIFIED') NOT NULL DEFAULT '', ssl_cipher text NOT NULL, x509_issuer text NOT NULL, " +
			"x509_subject text NOT NULL, max_questions int unsigned NOT NULL DEFAULT '0', max_updates int unsigned NOT NULL DEFAULT '0', " +
			"max_connections int unsigned NOT NULL DEFAULT '0', max_user_connections int unsigned NOT NULL DEFAULT '0', " +
			"plugin char(64) NOT NULL DEFAULT 'caching_sha2_password', authentication_string text COLLATE utf8mb4_bin, " +
			"password_expired" + yes + ", password_last_changed timestamp NULL DEFAULT NULL, password_lifetime smallint unsigned DEFAULT NULL, " +
			"account_locked" + yes + ", Password_reuse_history smallint unsigned DEFAULT NULL, Password_reuse_time smallint unsigned DEFAULT NULL, " +
			"Password_require_current enum('N','Y') COLLATE utf8mb4_general_ci DEFAULT NULL, User_attributes json DEFAULT NULL, PRIMARY KEY (Host, User)) COMMENT='Users and global privileges'",
		"CREATE TABLE mysql.db (Host " + host + ", Db " + name + ", User " + user + ",\n" + schema.String() +
			"PRIMARY KEY (Host, User, Db), KEY User (User)) COMMENT='Database privileges'",
		"CREATE TABLE mysql.tables_priv (Host " + host + ", Db " + name + ", User " + user + ", Table_name " + name + ", Grantor varchar(288) NOT NULL DEFAULT '', " +
			"Timestamp timestamp NULL DEFAULT NULL, Table_priv set(" + members + ") NOT NULL DEFAULT '', " +
			"Column_priv set('Select','Insert','Update','References') NOT NULL DEFAULT '', " +
			"PRIMARY KEY (Host, User, Db, Table_name)) COMMENT='Table privileges'",
		"CREATE TABLE mysql.columns_priv (Host " + host + ", Db " + name + ", User " + user + ", Table_name " + name + ", Column_name char(64) NOT NULL DEFAULT '', " +
			"Timestamp timestamp NULL DEFAULT NULL, Column_priv set('Select','Insert','Update','References') NOT NULL DEFAULT '', " +
			"PRIMARY KEY (Host, User, Db, Table_name, Column_name)) COMMENT='Column privileges'",
		"CREATE TABLE mysql.global_grants (USER " + user + ", HOST " + host + ", PRIV char(32) NOT NULL DEFAULT '', WITH_GRANT_OPTION" + yes + ", " +
			"PRIMARY KEY (USER, HOST, PRIV)) COMMENT='Extended global grants'",
		"CREATE TABLE mysql.role_edges (FROM_HOST " + host + ", FROM_USER " + user + ", TO_HOST " + host + ", TO_USER " + user + ", WITH_ADMIN_OPTION" + yes + ", " +
			"PRIMARY KEY (FROM_HOST, FROM_USER, TO_HOST, TO_USER)) COMMENT='Role hierarchy and role grants'",
		"CREATE TABLE mysql.default_roles (HOST " + host + ", USER " + user + ", DEFAULT_ROLE_HOST char(255) CHARACTER SET ascii COLLATE ascii_general_ci " +
			"NOT NULL DEFAULT '%', DEFAULT_ROLE_USER " + user + ", PRIMARY KEY (HOST, USER, DEFAULT_ROLE_HOST, DEFAULT_ROLE_USER)) COMMENT='Default roles'",
		"CREATE TABLE mysql.password_history (Host " + host + ", User " + user + ", Password_timestamp timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), " +
			"Password text COLLATE utf8mb4_bin, PRIMARY KEY (Host, User, Password_timestamp DESC)) COMMENT='Password history for user accounts'",
		"CREATE TABLE mysql.component (component_id int unsigned NOT NULL AUTO_INCREMENT, component_group_id int unsigned NOT NULL, " +
			"component_urn text NOT NULL, PRIMARY KEY (component_id)) COMMENT='Components'",
	}
}

// Added reports whether a system table is one that groups of before do not have until a leader has added it.
func Added(name string) bool { return name == "password_history" || name == "component" }

// AddColumns is the statement that adds to mysql.user what it does not have there: AddedColumn and others.
const AddColumns = "ALTER TABLE mysql.user ADD COLUMN Password_reuse_history smallint unsigned DEFAULT NULL AFTER account_locked, " +
	"ADD COLUMN Password_reuse_time smallint unsigned DEFAULT NULL AFTER Password_reuse_history, " +
	"ADD COLUMN Password_require_current enum('N','Y') COLLATE utf8mb4_general_ci DEFAULT NULL AFTER Password_reuse_time, ALGORITHM=INSTANT"

// AddedColumn is the first column of AddColumns.
const AddedColumn = "Password_reuse_history"

// TableNames are the names of the system tables, in the order of Tables.
var TableNames = []string{"user", "db", "tables_priv", "columns_priv", "global_grants", "role_edges", "default_roles", "password_history", "component"}
