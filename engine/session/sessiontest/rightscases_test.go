package sessiontest_test

// rightsActor is an account that statements are tried as.
type rightsActor struct {
	name   string
	grants []string // @ stands for it
}

// rightsCase is a statement that is tried as each actor.
type rightsCase struct {
	text     string
	prepares bool   // it is prepared by the protocol, and not executed
	undo     string // what has to be made anew after it has succeeded: rows, tables, accounts
}

// rightsTables and rightsAccounts make what the statements are about.
var rightsTables = []string{
	"SET foreign_key_checks = 0", "DROP DATABASE IF EXISTS s1", "DROP DATABASE IF EXISTS s2", "DROP DATABASE IF EXISTS made", "CREATE DATABASE s1", "CREATE DATABASE s2",
	"CREATE TABLE s1.t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO s1.t VALUES (1, 1, 1)", "CREATE TABLE s1.u (id INT PRIMARY KEY, a INT)",
	"CREATE TABLE s2.t (id INT PRIMARY KEY, a INT)",
	"CREATE DEFINER = 'root'@'%' VIEW s1.v AS SELECT id, a FROM s1.t", "CREATE DEFINER = 'root'@'%' SQL SECURITY INVOKER VIEW s1.w AS SELECT id, a FROM s1.t",
}

// rightsRows makes rows anew.
var rightsRows = []string{"DELETE FROM s1.t", "INSERT INTO s1.t VALUES (1, 1, 1)", "DELETE FROM s1.u"}

// rightsPlain makes the account anew that statements mostly are about.
var rightsPlain = []string{"DROP USER IF EXISTS plain, made, renamed", "CREATE USER plain", "GRANT SELECT ON s1.t TO plain", "GRANT r_plain TO plain"}

var rightsAccounts = []string{
	"DROP USER IF EXISTS plain, sysuser, sysbyrole, made, renamed, r_plain, r_sys, r_more, r_sel, open_role, made_role",
	"CREATE USER plain, sysuser, sysbyrole, open_role", "CREATE ROLE r_plain, r_sys, r_more, r_sel",
	"GRANT SYSTEM_USER ON *.* TO sysuser, r_sys", "GRANT r_sys TO sysbyrole", "SET DEFAULT ROLE r_sys TO sysbyrole",
	"GRANT ALL ON s2.* TO r_more", "GRANT SELECT ON s1.* TO r_sel", "GRANT SELECT ON s1.t TO plain", "GRANT r_plain TO plain",
}

// rightsActors returns the actors: levels of privileges on tables, on accounts, on the system tables.
func rightsActors() []rightsActor {
	list := []rightsActor{
		{"none", nil},
		{"g_dba", []string{"GRANT ALL ON *.* TO @ WITH GRANT OPTION"}},
		{"g_dba_nosys", []string{"GRANT ALL ON *.* TO @ WITH GRANT OPTION", "REVOKE SYSTEM_USER ON *.* FROM @"}},
		{"g_all", []string{"GRANT ALL ON *.* TO @"}},
		{"g_static", []string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, SHUTDOWN, PROCESS, FILE, REFERENCES, INDEX, ALTER, SHOW DATABASES, " +
			"CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, " +
			"ALTER ROUTINE, CREATE USER, EVENT, TRIGGER, CREATE TABLESPACE, CREATE ROLE, DROP ROLE ON *.* TO @ WITH GRANT OPTION"}},
		{"g_select", []string{"GRANT SELECT ON *.* TO @"}},
		{"g_sel_grant", []string{"GRANT SELECT ON *.* TO @ WITH GRANT OPTION"}},
		{"g_showdb", []string{"GRANT SHOW DATABASES ON *.* TO @"}},
		{"g_user", []string{"GRANT CREATE USER ON *.* TO @"}},
		{"g_user_grant", []string{"GRANT CREATE USER ON *.* TO @ WITH GRANT OPTION"}},
		{"g_user_sys", []string{"GRANT CREATE USER, SYSTEM_USER ON *.* TO @"}},
		{"g_user_role", []string{"GRANT CREATE USER ON *.* TO @", "GRANT ROLE_ADMIN ON *.* TO @"}},
		{"g_user_orphan", []string{"GRANT CREATE USER ON *.* TO @", "GRANT ALLOW_NONEXISTENT_DEFINER ON *.* TO @"}},
		{"g_create_role", []string{"GRANT CREATE ROLE ON *.* TO @"}},
		{"g_drop_role", []string{"GRANT DROP ROLE ON *.* TO @"}},
		{"g_roleadmin", []string{"GRANT ROLE_ADMIN ON *.* TO @"}},
		{"g_roleadmin_sys", []string{"GRANT ROLE_ADMIN, SYSTEM_USER ON *.* TO @"}},
		{"g_super", []string{"GRANT SUPER ON *.* TO @"}},
		{"g_super_grant", []string{"GRANT SUPER ON *.* TO @ WITH GRANT OPTION"}},
		{"g_conn", []string{"GRANT CONNECTION_ADMIN ON *.* TO @"}},
		{"g_conn_grant", []string{"GRANT CONNECTION_ADMIN ON *.* TO @ WITH GRANT OPTION"}},
		{"g_conn_sys", []string{"GRANT CONNECTION_ADMIN, SYSTEM_USER ON *.* TO @"}},
		{"g_process", []string{"GRANT PROCESS ON *.* TO @"}},
		{"g_reload", []string{"GRANT RELOAD ON *.* TO @"}},
		{"g_flush", []string{"GRANT FLUSH_PRIVILEGES, FLUSH_USER_RESOURCES ON *.* TO @"}},
		{"g_sysvar", []string{"GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO @"}},
		{"v_own", []string{"GRANT SELECT, CREATE VIEW, SHOW VIEW, DROP ON s1.* TO @"}},
		{"v_definer", []string{"GRANT SELECT, CREATE VIEW, SHOW VIEW, DROP ON s1.* TO @", "GRANT SET_ANY_DEFINER ON *.* TO @"}},
		{"v_orphan", []string{"GRANT SELECT, CREATE VIEW, SHOW VIEW, DROP ON s1.* TO @", "GRANT SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER ON *.* TO @"}},
		{"v_super", []string{"GRANT SELECT, CREATE VIEW, SHOW VIEW, DROP ON s1.* TO @", "GRANT SUPER ON *.* TO @"}},
		{"v_definer_sys", []string{"GRANT SELECT, CREATE VIEW, SHOW VIEW, DROP ON s1.* TO @", "GRANT SET_ANY_DEFINER, SYSTEM_USER ON *.* TO @"}},
		{"s_all", []string{"GRANT ALL ON s1.* TO @"}},
		{"s_all_grant", []string{"GRANT ALL ON s1.* TO @ WITH GRANT OPTION"}},
		{"s_grant", []string{"GRANT GRANT OPTION ON s1.* TO @"}},
		{"s_sel_grant", []string{"GRANT SELECT ON s1.* TO @ WITH GRANT OPTION"}},
		{"s_pattern", []string{"GRANT ALL ON `s_`.* TO @ WITH GRANT OPTION"}},
		{"s_altdrop", []string{"GRANT ALTER, DROP ON s1.* TO @"}},
		{"s_ren", []string{"GRANT ALTER, DROP, CREATE, INSERT ON s1.* TO @"}},
		{"s_create_ref", []string{"GRANT CREATE, REFERENCES ON s1.* TO @"}},
		{"s_create_sel", []string{"GRANT CREATE, SELECT, INSERT ON s1.* TO @"}},
		{"s_lock_sel", []string{"GRANT LOCK TABLES, SELECT ON s1.* TO @"}},
		{"t_all", []string{"GRANT ALL ON s1.t TO @"}},
		{"t_grant", []string{"GRANT GRANT OPTION ON s1.t TO @"}},
		{"t_sel_grant", []string{"GRANT SELECT ON s1.t TO @ WITH GRANT OPTION"}},
		{"t_miss", []string{"GRANT CREATE, SELECT ON s1.missing TO @"}},
		{"v_sel", []string{"GRANT SELECT ON s1.v TO @"}},
		{"v_sel_show", []string{"GRANT SELECT, SHOW VIEW ON s1.v TO @"}},
		{"v_sel_show_t", []string{"GRANT SELECT, SHOW VIEW ON s1.v TO @", "GRANT SELECT ON s1.t TO @"}},
		{"w_sel", []string{"GRANT SELECT ON s1.w TO @"}},
		{"c_sel", []string{"GRANT SELECT (id, a) ON s1.t TO @"}},
		{"c_ins", []string{"GRANT INSERT (id, a) ON s1.t TO @"}},
		{"c_upd", []string{"GRANT UPDATE (a) ON s1.t TO @"}},
		{"c_sel_upd", []string{"GRANT SELECT (id), UPDATE (a) ON s1.t TO @"}},
		{"c_ref", []string{"GRANT REFERENCES (id) ON s1.t TO @", "GRANT CREATE ON s2.* TO @"}},
		{"r_on", []string{"GRANT r_sel TO @", "SET DEFAULT ROLE r_sel TO @"}},
		{"r_off", []string{"GRANT r_sel TO @"}},
		{"r_admin", []string{"GRANT r_plain, r_sel TO @ WITH ADMIN OPTION"}},
		{"r_sysadm", []string{"GRANT r_sys TO @ WITH ADMIN OPTION"}},
		{"m_sel", []string{"GRANT SELECT ON mysql.* TO @"}},
		{"m_ins", []string{"GRANT INSERT ON mysql.* TO @"}},
		{"m_upd", []string{"GRANT UPDATE ON mysql.* TO @"}},
		{"m_all", []string{"GRANT ALL ON mysql.* TO @"}},
		{"m_upd_sys", []string{"GRANT UPDATE ON mysql.* TO @", "GRANT SYSTEM_USER ON *.* TO @"}},
		{"m_user_upd", []string{"GRANT SELECT, UPDATE ON mysql.user TO @"}},
		{"m_def_upd", []string{"GRANT UPDATE ON mysql.default_roles TO @"}},
		{"m_pattern", []string{"GRANT ALL ON `m%`.* TO @ WITH GRANT OPTION"}},
		{"all_pattern", []string{"GRANT ALL ON `%`.* TO @ WITH GRANT OPTION"}},
	}
	for _, p := range [...]string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "CREATE VIEW", "SHOW VIEW", "TRIGGER"} {
		name := "s_" + p[:3]
		if p == "CREATE VIEW" || p == "SHOW VIEW" {
			name = "s_" + p[:2] + "v"
		}
		list = append(list, rightsActor{name, []string{"GRANT " + p + " ON s1.* TO @"}},
			rightsActor{"t" + name[1:], []string{"GRANT " + p + " ON s1.t TO @"}})
	}
	return append(list, rightsActor{"s_LOC", []string{"GRANT LOCK TABLES ON s1.* TO @"}})
}

// rightsCases returns the statements.
func rightsCases() []rightsCase {
	var list []rightsCase
	add := func(undo string, texts ...string) {
		for _, text := range texts {
			list = append(list, rightsCase{text: text, undo: undo})
		}
	}
	// Rows.
	for _, of := range [...]string{"s1.t", "s1.missing", "nodb.t", "mysql.user"} {
		add("", "SELECT * FROM "+of, "SELECT COUNT(*) FROM "+of, "SELECT 1 FROM "+of+" WHERE nocolumn = 1")
		add("rows", "INSERT INTO "+of+" (id, a) VALUES (7, 7)", "UPDATE "+of+" SET a = 3", "DELETE FROM "+of+" WHERE id = 99")
		list = append(list, rightsCase{text: "SELECT * FROM " + of, prepares: true}, rightsCase{text: "SELECT nocolumn FROM " + of, prepares: true},
			rightsCase{text: "INSERT INTO " + of + " VALUES (1)", prepares: true}, rightsCase{text: "UPDATE " + of + " SET nocolumn = ?", prepares: true},
			rightsCase{text: "DELETE FROM " + of + " WHERE nocolumn = ?", prepares: true})
	}
	add("", "SELECT id FROM s1.t", "SELECT a FROM s1.t", "SELECT b FROM s1.t", "SELECT 1 FROM s1.t", "SELECT id FROM s1.t FOR UPDATE", "SELECT id FROM s1.t FOR SHARE",
		"SELECT t.id FROM s1.t JOIN s2.t AS o USING (id)", "SELECT (SELECT MAX(a) FROM s1.t)", "SELECT 1 WHERE EXISTS (SELECT 1 FROM s1.missing)",
		"WITH c AS (SELECT id FROM s1.t) SELECT * FROM c", "SELECT id FROM s1.t UNION SELECT id FROM s1.missing", "SELECT * FROM (SELECT a FROM s1.t) AS d",
		"SELECT * FROM s1.v", "SELECT id FROM s1.v", "SELECT * FROM s1.w", "DO (SELECT MAX(id) FROM s1.t)", "SET @x = (SELECT MAX(id) FROM s1.t)")
	add("rows", "INSERT INTO s1.t VALUES (8, 8, 8)", "INSERT INTO s1.t (id) VALUES (8)", "INSERT INTO s1.t (id, b) VALUES (8, 8)", "INSERT INTO s1.t (id, nocolumn) VALUES (8, 8)",
		"INSERT INTO s1.t (id) VALUES (8, 8)", "INSERT INTO s1.t SET id = 1, a = 1 ON DUPLICATE KEY UPDATE a = 2", "INSERT INTO s1.t (id, a) SELECT id + 100, a FROM s1.t",
		"INSERT INTO s1.u SELECT id, a FROM s1.t", "REPLACE INTO s1.t (id, a) VALUES (1, 2)", "UPDATE s1.t SET a = 4 WHERE id = 1", "UPDATE s1.t SET a = a + 1", "UPDATE s1.t SET b = 4",
		"UPDATE s1.t SET a = (SELECT MAX(id) FROM s1.u)", "UPDATE s1.t JOIN s1.u USING (id) SET t.a = 1", "DELETE FROM s1.t", "DELETE s1.t FROM s1.t JOIN s1.u USING (id)")
	// Definitions.
	add("tables", "CREATE DATABASE made", "DROP DATABASE s1", "DROP DATABASE nodb", "DROP DATABASE IF EXISTS nodb", "ALTER DATABASE s1 COLLATE utf8mb4_bin", "ALTER DATABASE nodb COLLATE utf8mb4_bin",
		"CREATE TABLE s1.made (id INT PRIMARY KEY)", "CREATE TABLE s1.t (id INT PRIMARY KEY)", "CREATE TABLE IF NOT EXISTS s1.t (id INT PRIMARY KEY)", "CREATE TABLE nodb.t (id INT PRIMARY KEY)",
		"CREATE TABLE s1.made LIKE s1.t", "CREATE TABLE s1.made LIKE s1.missing", "CREATE TABLE s1.made (PRIMARY KEY (id)) SELECT id FROM s1.t", "CREATE TABLE s1.made (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES s1.t (id))",
		"CREATE TABLE s2.made (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES s1.t (id))", "CREATE TABLE s1.made (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES s1.missing (id))",
		"DROP TABLE s1.t", "DROP TABLE s1.missing", "DROP TABLE IF EXISTS s1.missing", "DROP TABLE nodb.t", "DROP TABLE s1.t, s2.t", "TRUNCATE TABLE s1.t", "TRUNCATE TABLE s1.missing",
		"ALTER TABLE s1.t ADD COLUMN c INT", "ALTER TABLE s1.t DROP COLUMN b", "ALTER TABLE s1.missing ADD COLUMN c INT", "ALTER TABLE nodb.t ADD COLUMN c INT", "ALTER TABLE s1.t ADD INDEX (a)",
		"ALTER TABLE s1.t RENAME TO s1.made", "ALTER TABLE s1.u ADD FOREIGN KEY (id) REFERENCES s1.t (id)", "CREATE INDEX i ON s1.t (a)", "CREATE INDEX i ON s1.missing (a)", "DROP INDEX i ON s1.t",
		"RENAME TABLE s1.t TO s1.made", "RENAME TABLE s1.missing TO s1.made", "RENAME TABLE s1.t TO s2.made",
		"CREATE VIEW s1.made AS SELECT id FROM s1.t", "CREATE VIEW s1.made AS SELECT id FROM s1.missing", "CREATE VIEW s1.made AS SELECT 1 AS x", "CREATE OR REPLACE VIEW s1.v AS SELECT id FROM s1.t",
		"CREATE DEFINER = plain VIEW s1.made AS SELECT 1 AS x", "CREATE DEFINER = sysuser VIEW s1.made AS SELECT 1 AS x", "CREATE DEFINER = sysbyrole VIEW s1.made AS SELECT 1 AS x",
		"CREATE DEFINER = nobody VIEW s1.made AS SELECT 1 AS x", "ALTER VIEW s1.v AS SELECT id FROM s1.t", "ALTER DEFINER = plain VIEW s1.v AS SELECT 1 AS x", "DROP VIEW s1.v", "DROP VIEW s1.missing", "DROP VIEW IF EXISTS s1.missing")
	// What is there.
	add("", "USE s1", "USE nodb", "USE mysql", "SHOW TABLES FROM s1", "SHOW TABLES FROM nodb", "SHOW CREATE DATABASE s1", "SHOW CREATE DATABASE nodb", "SHOW CREATE TABLE s1.t", "SHOW CREATE TABLE s1.missing", "SHOW CREATE TABLE nodb.t",
		"SHOW CREATE VIEW s1.v", "SHOW CREATE VIEW s1.w", "SHOW CREATE TABLE s1.v", "SHOW COLUMNS FROM s1.t", "SHOW COLUMNS FROM s1.missing", "SHOW INDEX FROM s1.t", "SHOW INDEX FROM s1.missing", "DESCRIBE s1.t", "DESCRIBE nodb.t",
		"EXPLAIN SELECT * FROM s1.t", "EXPLAIN SELECT * FROM s1.missing", "EXPLAIN SELECT * FROM s1.v", "EXPLAIN SELECT * FROM s1.w", "EXPLAIN SELECT id FROM (SELECT id FROM s1.v) AS d", "EXPLAIN UPDATE s1.t SET a = 1",
		"EXPLAIN INSERT INTO s1.t VALUES (1, 1, 1)", "EXPLAIN DELETE FROM s1.t", "EXPLAIN UPDATE s1.missing SET a = 1",
		"ANALYZE TABLE s1.t", "CHECK TABLE s1.t", "CHECKSUM TABLE s1.t", "OPTIMIZE TABLE s1.t", "LOCK TABLES s1.t READ", "LOCK TABLES s1.t WRITE", "LOCK TABLES s1.missing READ",
		"SELECT COUNT(*) FROM performance_schema.metadata_locks", "SELECT COUNT(*) FROM performance_schema.data_locks", "SELECT COUNT(*) FROM performance_schema.data_lock_waits",
		"SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest", "SELECT COUNT(*) FROM performance_schema.threads", "SELECT COUNT(*) FROM performance_schema.global_variables",
		"SELECT COUNT(*) FROM performance_schema.session_variables", "SELECT COUNT(*) FROM performance_schema.global_status", "SELECT COUNT(*) FROM performance_schema.session_status",
		"SELECT COUNT(*) FROM performance_schema.replication_group_members", "SELECT COUNT(*) FROM performance_schema.replication_group_member_stats", "SELECT COUNT(*) FROM information_schema.INNODB_TRX", "SELECT COUNT(*) FROM information_schema.PROCESSLIST",
		"SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES", "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest", "SHOW PROCESSLIST", "SHOW ENGINE INNODB STATUS", "SHOW BINARY LOG STATUS",
		"SHOW GRANTS", "SHOW GRANTS FOR plain", "SHOW GRANTS FOR nobody", "SHOW GRANTS FOR r_plain", "SHOW CREATE USER plain", "SHOW CREATE USER nobody",
		"FLUSH PRIVILEGES", "FLUSH STATUS", "FLUSH TABLES", "FLUSH USER_RESOURCES", "SET GLOBAL max_user_connections = 0", "SET SESSION max_user_connections = 0", "KILL 999999")
	// Accounts.
	add("accounts", "CREATE USER made", "CREATE USER plain", "CREATE USER made DEFAULT ROLE r_plain", "CREATE USER made DEFAULT ROLE r_sys", "CREATE ROLE made_role", "CREATE ROLE plain", "DROP USER plain", "DROP USER sysuser", "DROP USER sysbyrole", "DROP USER nobody",
		"DROP USER plain, sysuser", "DROP USER r_plain", "DROP USER r_sys", "DROP ROLE r_plain", "DROP ROLE r_sys", "DROP ROLE plain", "DROP ROLE sysuser", "DROP ROLE open_role", "DROP ROLE nobody", "DROP ROLE IF EXISTS nobody",
		"RENAME USER plain TO renamed", "RENAME USER sysuser TO renamed", "RENAME USER nobody TO renamed", "RENAME USER r_plain TO renamed", "RENAME USER r_sys TO renamed",
		"ALTER USER plain IDENTIFIED BY 'Secret-1'", "ALTER USER sysuser IDENTIFIED BY 'Secret-1'", "ALTER USER sysbyrole IDENTIFIED BY 'Secret-1'", "ALTER USER nobody IDENTIFIED BY 'x'", "ALTER USER plain ACCOUNT LOCK", "ALTER USER sysuser ACCOUNT LOCK",
		"ALTER USER sysuser PASSWORD EXPIRE", "ALTER USER r_sys ACCOUNT UNLOCK", "ALTER USER CURRENT_USER() IDENTIFIED BY ''", "ALTER USER CURRENT_USER() ACCOUNT UNLOCK", "ALTER USER CURRENT_USER() WITH MAX_USER_CONNECTIONS 0",
		"ALTER USER CURRENT_USER() REQUIRE NONE", "ALTER USER CURRENT_USER() COMMENT 'x'", "ALTER USER plain WITH MAX_QUERIES_PER_HOUR 1", "ALTER USER plain DEFAULT ROLE r_plain", "ALTER USER sysuser DEFAULT ROLE NONE",
		"SET PASSWORD = ''", "SET PASSWORD FOR plain = 'Secret-1'", "SET PASSWORD FOR sysuser = 'Secret-1'", "SET PASSWORD FOR sysbyrole = 'Secret-1'", "SET PASSWORD FOR nobody = 'x'",
		"SET DEFAULT ROLE NONE TO plain", "SET DEFAULT ROLE r_plain TO plain", "SET DEFAULT ROLE r_more TO plain", "SET DEFAULT ROLE NONE TO sysuser", "SET DEFAULT ROLE NONE TO nobody",
		"SET ROLE r_more", "SET ROLE ALL", "SET ROLE r_sel")
	for _, who := range [...]string{"plain", "sysuser", "sysbyrole", "nobody", "CURRENT_USER()"} {
		add("accounts", "GRANT SELECT ON s1.t TO "+who, "GRANT SELECT ON s1.* TO "+who, "GRANT r_plain TO "+who, "REVOKE SELECT ON s1.t FROM "+who, "REVOKE ALL, GRANT OPTION FROM "+who)
	}
	add("accounts", "GRANT ALL ON *.* TO plain", "GRANT ALL ON *.* TO plain WITH GRANT OPTION", "GRANT SELECT ON *.* TO plain", "GRANT SELECT ON *.* TO plain WITH GRANT OPTION", "GRANT GRANT OPTION ON *.* TO plain", "GRANT USAGE ON *.* TO plain",
		"GRANT CREATE USER ON *.* TO plain", "GRANT SUPER ON *.* TO plain", "GRANT INSERT, SELECT ON *.* TO plain", "GRANT ALL ON s1.* TO plain", "GRANT ALL ON s1.* TO plain WITH GRANT OPTION", "GRANT INSERT ON s1.* TO plain", "GRANT SELECT ON s1.* TO plain WITH GRANT OPTION",
		"GRANT USAGE ON s1.* TO plain", "GRANT GRANT OPTION ON s1.* TO plain", "GRANT SELECT ON `s%`.* TO plain", "GRANT SELECT ON `s_`.* TO plain", "GRANT ALL ON `s_`.* TO plain", "GRANT SELECT ON nodb.* TO plain", "GRANT ALL ON s1.t TO plain", "GRANT ALL ON s1.t TO plain WITH GRANT OPTION", "GRANT INSERT ON s1.t TO plain",
		"GRANT USAGE ON s1.t TO plain", "GRANT GRANT OPTION ON s1.t TO plain", "GRANT SELECT (a) ON s1.t TO plain", "GRANT INSERT (a) ON s1.t TO plain", "GRANT SELECT (nocolumn) ON s1.t TO plain", "GRANT SELECT ON s1.missing TO plain", "GRANT CREATE ON s1.missing TO plain", "GRANT SELECT ON nodb.t TO plain",
		"GRANT SELECT ON s1.t TO plain, nobody", "GRANT SELECT ON s1.t TO plain, sysuser",
		"GRANT CONNECTION_ADMIN ON *.* TO plain", "GRANT CONNECTION_ADMIN ON *.* TO plain WITH GRANT OPTION", "GRANT SYSTEM_USER ON *.* TO plain", "GRANT ROLE_ADMIN ON *.* TO plain", "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO plain", "GRANT SET_ANY_DEFINER ON *.* TO plain",
		"GRANT CONNECTION_ADMIN, SELECT ON *.* TO plain", "GRANT SELECT ON mysql.* TO plain", "GRANT UPDATE ON mysql.user TO plain", "GRANT ALL ON mysql.* TO plain", "GRANT ALL ON `m%`.* TO plain",
		"REVOKE ALL ON *.* FROM plain", "REVOKE ALL ON *.* FROM sysuser", "REVOKE SYSTEM_USER ON *.* FROM sysuser", "REVOKE CONNECTION_ADMIN ON *.* FROM plain", "REVOKE SELECT ON *.* FROM plain", "REVOKE ALL ON s1.* FROM plain", "REVOKE SELECT ON s1.* FROM plain", "REVOKE ALL ON s1.t FROM plain",
		"REVOKE INSERT ON s1.t FROM plain", "REVOKE SELECT (a) ON s1.t FROM plain", "REVOKE SELECT ON s1.missing FROM plain", "REVOKE GRANT OPTION ON s1.t FROM plain", "REVOKE ALL, GRANT OPTION FROM plain, sysuser",
		"GRANT r_sys TO plain", "GRANT r_more TO plain", "GRANT r_sel TO plain", "GRANT r_plain TO plain WITH ADMIN OPTION", "GRANT r_plain, r_more TO plain", "GRANT r_sys TO sysuser", "GRANT plain TO sysuser", "GRANT sysuser TO plain", "GRANT nobody TO plain", "GRANT r_more TO CURRENT_USER()", "GRANT r_plain TO r_plain",
		"REVOKE r_plain FROM plain", "REVOKE r_more FROM plain", "REVOKE r_sys FROM sysbyrole", "REVOKE nobody FROM plain", "REVOKE r_plain FROM sysuser")
	// The system tables.
	add("accounts", "UPDATE mysql.user SET Select_priv = 'Y' WHERE User = 'plain'", "INSERT INTO mysql.global_grants (nocolumn) VALUES (1)", "DELETE FROM mysql.db WHERE User = 'plain'",
		"INSERT INTO mysql.default_roles (nocolumn) VALUES (1)", "UPDATE mysql.default_roles SET DEFAULT_ROLE_USER = 'r_plain' WHERE USER = 'nobody'", "ALTER TABLE mysql.user COMMENT 'Users and global privileges'")
	add("", "DROP TABLE mysql.nothing", "DROP DATABASE mysql", "CREATE TABLE IF NOT EXISTS mysql.made (id INT PRIMARY KEY)", "DROP TABLE IF EXISTS mysql.made")
	return list
}
