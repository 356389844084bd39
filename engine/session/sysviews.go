package session

import (
	"strings"
	"sync"
)

// shownSchemas leaves the schemas of the server out.
const shownSchemas = "NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"

// sysQueries are the queries of the views of sys that do not follow from another one: see sysQuery. The names of their
// columns are those of shapes.txt, in order.
var sysQueries = map[string]string{
	"version": "SELECT '2.1.3', CAST(SUBSTRING_INDEX(VERSION(), '-', 1) AS CHAR(7))",

	"x$schema_flattened_keys": `SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, MAX(NON_UNIQUE), MAX(SUB_PART IS NOT NULL),
		GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX)
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA ` + shownSchemas + `
		GROUP BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME`,
	"schema_redundant_indexes": `SELECT r.table_schema, r.table_name, r.index_name, r.index_columns, r.non_unique, d.index_name, d.index_columns, d.non_unique,
		GREATEST(r.subpart_exists, d.subpart_exists), CONCAT('ALTER TABLE ` + "`', r.table_schema, '`.`', r.table_name, '` DROP INDEX `', r.index_name, '`" + `')
		FROM sys.x$schema_flattened_keys r JOIN sys.x$schema_flattened_keys d
		ON d.table_schema = r.table_schema AND d.table_name = r.table_name AND d.index_name <> r.index_name
		WHERE r.index_columns = d.index_columns AND (r.non_unique > d.non_unique OR r.non_unique = d.non_unique AND r.index_name <> 'PRIMARY'
			AND (d.index_name = 'PRIMARY' OR r.index_name > d.index_name))
		OR r.non_unique = 1 AND LOCATE(CONCAT(r.index_columns, ','), d.index_columns) = 1
		OR d.non_unique = 0 AND r.index_name <> 'PRIMARY' AND LOCATE(CONCAT(d.index_columns, ','), r.index_columns) = 1`,
	"schema_unused_indexes": `SELECT u.OBJECT_SCHEMA, u.OBJECT_NAME, u.INDEX_NAME
		FROM performance_schema.table_io_waits_summary_by_index_usage u JOIN information_schema.STATISTICS s
		ON s.TABLE_SCHEMA = u.OBJECT_SCHEMA AND s.TABLE_NAME = u.OBJECT_NAME AND s.INDEX_NAME = u.INDEX_NAME AND s.SEQ_IN_INDEX = 1
		WHERE u.COUNT_STAR = 0 AND s.NON_UNIQUE = 1 AND u.OBJECT_SCHEMA <> 'mysql' ORDER BY u.OBJECT_SCHEMA, u.OBJECT_NAME`,
	"schema_auto_increment_columns": `SELECT g.s, g.t, g.c, g.d, g.ct, g.signed, g.un, g.most, g.n, g.n / g.most FROM (
		SELECT c.TABLE_SCHEMA s, c.TABLE_NAME t, c.COLUMN_NAME c, c.DATA_TYPE d, c.COLUMN_TYPE ct, LOCATE('unsigned', c.COLUMN_TYPE) = 0 signed,
		LOCATE('unsigned', c.COLUMN_TYPE) > 0 un, CAST(~0 AS UNSIGNED) >> (64 - CASE c.DATA_TYPE WHEN 'tinyint' THEN 8 WHEN 'smallint' THEN 16
		WHEN 'mediumint' THEN 24 WHEN 'int' THEN 32 ELSE 64 END + (LOCATE('unsigned', c.COLUMN_TYPE) = 0)) most, t.AUTO_INCREMENT n
		FROM information_schema.COLUMNS c JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
		WHERE c.EXTRA = 'auto_increment' AND t.TABLE_TYPE = 'BASE TABLE' AND c.TABLE_SCHEMA ` + shownSchemas + `) g
		ORDER BY g.n / g.most DESC, g.most`,
	"schema_object_overview": `SELECT TABLE_SCHEMA, CONCAT(TABLE_TYPE), COUNT(*) FROM information_schema.TABLES GROUP BY TABLE_SCHEMA, TABLE_TYPE
		UNION ALL SELECT TABLE_SCHEMA, CONCAT('INDEX (', INDEX_TYPE, ')'), COUNT(*) FROM information_schema.STATISTICS GROUP BY TABLE_SCHEMA, INDEX_TYPE
		ORDER BY 1, 2`,

	"x$innodb_lock_waits": `SELECT r.trx_wait_started, TIMEDIFF(NOW(), r.trx_wait_started), TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()),
		CONCAT('` + "`', l.OBJECT_SCHEMA, '`.`', l.OBJECT_NAME, '`" + `'), l.OBJECT_SCHEMA, l.OBJECT_NAME, l.PARTITION_NAME, l.SUBPARTITION_NAME, l.INDEX_NAME, l.LOCK_TYPE,
		r.trx_id, r.trx_started, TIMEDIFF(NOW(), r.trx_started), r.trx_rows_locked, r.trx_rows_modified, r.trx_mysql_thread_id, r.trx_query,
		l.ENGINE_LOCK_ID, l.LOCK_MODE, b.trx_id, b.trx_mysql_thread_id, b.trx_query, h.ENGINE_LOCK_ID, h.LOCK_MODE, b.trx_started, TIMEDIFF(NOW(), b.trx_started),
		b.trx_rows_locked, b.trx_rows_modified, CONCAT('KILL QUERY ', b.trx_mysql_thread_id), CONCAT('KILL ', b.trx_mysql_thread_id)
		FROM performance_schema.data_lock_waits w
		JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
		JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
		JOIN performance_schema.data_locks h ON h.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID
		JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
		ORDER BY r.trx_started`,
	"x$schema_table_lock_waits": `SELECT w.OBJECT_SCHEMA, w.OBJECT_NAME, w.OWNER_THREAD_ID, t.PROCESSLIST_ID, CONCAT(t.PROCESSLIST_USER, '@', t.PROCESSLIST_HOST),
		w.LOCK_TYPE, w.LOCK_DURATION, t.PROCESSLIST_INFO, t.PROCESSLIST_TIME, NULL, NULL, g.OWNER_THREAD_ID, b.PROCESSLIST_ID,
		CONCAT(b.PROCESSLIST_USER, '@', b.PROCESSLIST_HOST), g.LOCK_TYPE, g.LOCK_DURATION, CONCAT('KILL QUERY ', b.PROCESSLIST_ID), CONCAT('KILL ', b.PROCESSLIST_ID)
		FROM performance_schema.metadata_locks w JOIN performance_schema.metadata_locks g
		ON g.OBJECT_TYPE = w.OBJECT_TYPE AND g.OBJECT_SCHEMA = w.OBJECT_SCHEMA AND g.OBJECT_NAME = w.OBJECT_NAME AND g.OWNER_THREAD_ID <> w.OWNER_THREAD_ID
		JOIN performance_schema.threads t ON t.THREAD_ID = w.OWNER_THREAD_ID JOIN performance_schema.threads b ON b.THREAD_ID = g.OWNER_THREAD_ID
		WHERE w.LOCK_STATUS = 'PENDING' AND g.LOCK_STATUS = 'GRANTED' AND w.OBJECT_TYPE = 'TABLE'`,

	"x$schema_index_statistics": `SELECT OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, COUNT_FETCH, SUM_TIMER_FETCH, COUNT_INSERT, SUM_TIMER_INSERT, COUNT_UPDATE, SUM_TIMER_UPDATE,
		COUNT_DELETE, SUM_TIMER_DELETE FROM performance_schema.table_io_waits_summary_by_index_usage WHERE INDEX_NAME IS NOT NULL ORDER BY SUM_TIMER_WAIT DESC`,
	"x$schema_tables_with_full_table_scans": `SELECT OBJECT_SCHEMA, OBJECT_NAME, COUNT_READ, SUM_TIMER_WAIT
		FROM performance_schema.table_io_waits_summary_by_index_usage WHERE INDEX_NAME IS NULL AND COUNT_READ > 0 ORDER BY COUNT_READ DESC`,
	"x$ps_schema_table_statistics_io": `SELECT SUBSTRING_INDEX(d.NAME, '/', 1), SUBSTRING_INDEX(d.NAME, '/', -1), SUM(f.COUNT_READ), SUM(f.SUM_NUMBER_OF_BYTES_READ),
		SUM(f.SUM_TIMER_READ), SUM(f.COUNT_WRITE), SUM(f.SUM_NUMBER_OF_BYTES_WRITE), SUM(f.SUM_TIMER_WRITE), SUM(f.COUNT_MISC), SUM(f.SUM_TIMER_MISC)
		FROM performance_schema.file_summary_by_instance f JOIN information_schema.INNODB_TABLESPACES_BRIEF d
		ON SUBSTRING_INDEX(d.PATH, '/', -1) = SUBSTRING_INDEX(f.FILE_NAME, '/', -1) GROUP BY d.NAME`,
	"x$schema_table_statistics": `SELECT t.OBJECT_SCHEMA, t.OBJECT_NAME, t.SUM_TIMER_WAIT, t.COUNT_FETCH, t.SUM_TIMER_FETCH, t.COUNT_INSERT, t.SUM_TIMER_INSERT, t.COUNT_UPDATE,
		t.SUM_TIMER_UPDATE, t.COUNT_DELETE, t.SUM_TIMER_DELETE, f.count_read, f.sum_number_of_bytes_read, f.sum_timer_read, f.count_write,
		f.sum_number_of_bytes_write, f.sum_timer_write, f.count_misc, f.sum_timer_misc
		FROM performance_schema.table_io_waits_summary_by_table t LEFT JOIN sys.x$ps_schema_table_statistics_io f
		ON f.table_schema = t.OBJECT_SCHEMA AND f.table_name = t.OBJECT_NAME ORDER BY t.SUM_TIMER_WAIT DESC`,

	"x$io_global_by_file_by_bytes": `SELECT FILE_NAME, COUNT_READ, SUM_NUMBER_OF_BYTES_READ, IFNULL(SUM_NUMBER_OF_BYTES_READ / NULLIF(COUNT_READ, 0), 0), COUNT_WRITE,
		SUM_NUMBER_OF_BYTES_WRITE, IFNULL(SUM_NUMBER_OF_BYTES_WRITE / NULLIF(COUNT_WRITE, 0), 0), SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE,
		IFNULL(ROUND(100 * SUM_NUMBER_OF_BYTES_WRITE / NULLIF(SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE, 0), 2), 0)
		FROM performance_schema.file_summary_by_instance ORDER BY SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE DESC`,
	"x$io_global_by_file_by_latency": `SELECT FILE_NAME, COUNT_STAR, SUM_TIMER_WAIT, COUNT_READ, SUM_TIMER_READ, COUNT_WRITE, SUM_TIMER_WRITE, COUNT_MISC, SUM_TIMER_MISC
		FROM performance_schema.file_summary_by_instance ORDER BY SUM_TIMER_WAIT DESC`,
	"x$io_global_by_wait_by_bytes": `SELECT SUBSTR(EVENT_NAME, 14), COUNT_STAR, SUM_TIMER_WAIT, MIN_TIMER_WAIT, AVG_TIMER_WAIT, MAX_TIMER_WAIT, COUNT_READ,
		SUM_NUMBER_OF_BYTES_READ, IFNULL(SUM_NUMBER_OF_BYTES_READ / NULLIF(COUNT_READ, 0), 0), COUNT_WRITE, SUM_NUMBER_OF_BYTES_WRITE,
		IFNULL(SUM_NUMBER_OF_BYTES_WRITE / NULLIF(COUNT_WRITE, 0), 0), SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE
		FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0 ORDER BY SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE DESC`,
	"x$io_global_by_wait_by_latency": `SELECT SUBSTR(EVENT_NAME, 14), COUNT_STAR, SUM_TIMER_WAIT, AVG_TIMER_WAIT, MAX_TIMER_WAIT, SUM_TIMER_READ, SUM_TIMER_WRITE, SUM_TIMER_MISC,
		COUNT_READ, SUM_NUMBER_OF_BYTES_READ, IFNULL(SUM_NUMBER_OF_BYTES_READ / NULLIF(COUNT_READ, 0), 0), COUNT_WRITE, SUM_NUMBER_OF_BYTES_WRITE,
		IFNULL(SUM_NUMBER_OF_BYTES_WRITE / NULLIF(COUNT_WRITE, 0), 0)
		FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0 ORDER BY SUM_TIMER_WAIT DESC`,
	"x$waits_global_by_latency": `SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT, AVG_TIMER_WAIT, MAX_TIMER_WAIT
		FROM performance_schema.events_waits_summary_global_by_event_name WHERE SUM_TIMER_WAIT > 0 ORDER BY SUM_TIMER_WAIT DESC`,
	"x$memory_global_total": `SELECT SUM(CURRENT_NUMBER_OF_BYTES_USED) FROM performance_schema.memory_summary_global_by_event_name`,
	"x$memory_global_by_current_bytes": `SELECT EVENT_NAME, CURRENT_COUNT_USED, CURRENT_NUMBER_OF_BYTES_USED,
		IFNULL(CURRENT_NUMBER_OF_BYTES_USED / NULLIF(CURRENT_COUNT_USED, 0), 0), HIGH_COUNT_USED, HIGH_NUMBER_OF_BYTES_USED,
		IFNULL(HIGH_NUMBER_OF_BYTES_USED / NULLIF(HIGH_COUNT_USED, 0), 0)
		FROM performance_schema.memory_summary_global_by_event_name WHERE CURRENT_NUMBER_OF_BYTES_USED > 0 ORDER BY CURRENT_NUMBER_OF_BYTES_USED DESC`,

	"x$statement_analysis": `SELECT DIGEST_TEXT, SCHEMA_NAME, IF(SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED > 0, '*', ''), COUNT_STAR, COUNT_SECONDARY, SUM_ERRORS, SUM_WARNINGS,
		SUM_TIMER_WAIT, MAX_TIMER_WAIT, AVG_TIMER_WAIT, SUM_LOCK_TIME, SUM_CPU_TIME, SUM_ROWS_SENT, ROUND(SUM_ROWS_SENT / COUNT_STAR), SUM_ROWS_EXAMINED,
		ROUND(SUM_ROWS_EXAMINED / COUNT_STAR), SUM_ROWS_AFFECTED, ROUND(SUM_ROWS_AFFECTED / COUNT_STAR), SUM_CREATED_TMP_TABLES, SUM_CREATED_TMP_DISK_TABLES,
		SUM_SORT_ROWS, SUM_SORT_MERGE_PASSES, MAX_CONTROLLED_MEMORY, MAX_TOTAL_MEMORY, DIGEST, FIRST_SEEN, LAST_SEEN
		FROM performance_schema.events_statements_summary_by_digest ORDER BY SUM_TIMER_WAIT DESC`,
	"x$statements_with_errors_or_warnings": `SELECT DIGEST_TEXT, SCHEMA_NAME, COUNT_STAR, SUM_ERRORS, 100 * SUM_ERRORS / COUNT_STAR, SUM_WARNINGS, 100 * SUM_WARNINGS / COUNT_STAR,
		FIRST_SEEN, LAST_SEEN, DIGEST FROM performance_schema.events_statements_summary_by_digest
		WHERE SUM_ERRORS + SUM_WARNINGS > 0 ORDER BY SUM_ERRORS DESC, SUM_WARNINGS DESC`,
	"x$statements_with_full_table_scans": `SELECT DIGEST_TEXT, SCHEMA_NAME, COUNT_STAR, SUM_TIMER_WAIT, SUM_NO_INDEX_USED, SUM_NO_GOOD_INDEX_USED,
		ROUND(100 * SUM_NO_INDEX_USED / COUNT_STAR), SUM_ROWS_SENT, SUM_ROWS_EXAMINED, ROUND(SUM_ROWS_SENT / COUNT_STAR), ROUND(SUM_ROWS_EXAMINED / COUNT_STAR),
		FIRST_SEEN, LAST_SEEN, DIGEST FROM performance_schema.events_statements_summary_by_digest
		WHERE SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED > 0 AND DIGEST_TEXT NOT LIKE 'SHOW%' ORDER BY 7 DESC, SUM_TIMER_WAIT DESC`,
	"x$statements_with_sorting": `SELECT DIGEST_TEXT, SCHEMA_NAME, COUNT_STAR, SUM_TIMER_WAIT, SUM_SORT_MERGE_PASSES, ROUND(SUM_SORT_MERGE_PASSES / COUNT_STAR), SUM_SORT_SCAN,
		SUM_SORT_RANGE, SUM_SORT_ROWS, ROUND(SUM_SORT_ROWS / COUNT_STAR), FIRST_SEEN, LAST_SEEN, DIGEST
		FROM performance_schema.events_statements_summary_by_digest WHERE SUM_SORT_ROWS > 0 ORDER BY SUM_TIMER_WAIT DESC`,
	"x$statements_with_temp_tables": `SELECT DIGEST_TEXT, SCHEMA_NAME, COUNT_STAR, SUM_TIMER_WAIT, SUM_CREATED_TMP_TABLES, SUM_CREATED_TMP_DISK_TABLES,
		ROUND(SUM_CREATED_TMP_TABLES / COUNT_STAR), ROUND(100 * SUM_CREATED_TMP_DISK_TABLES / SUM_CREATED_TMP_TABLES), FIRST_SEEN, LAST_SEEN, DIGEST
		FROM performance_schema.events_statements_summary_by_digest WHERE SUM_CREATED_TMP_TABLES > 0 ORDER BY SUM_CREATED_TMP_DISK_TABLES DESC`,

	"x$user_summary":                      clientSummary("user", "host"),
	"x$host_summary":                      clientSummary("host", "user"),
	"x$user_summary_by_statement_type":    clientTypes("user"),
	"x$host_summary_by_statement_type":    clientTypes("host"),
	"x$user_summary_by_statement_latency": clientLatency("user"),
	"x$host_summary_by_statement_latency": clientLatency("host"),

	"x$processlist": `SELECT t.THREAD_ID, t.PROCESSLIST_ID, IF(t.PROCESSLIST_USER IS NULL, t.NAME, CONCAT(t.PROCESSLIST_USER, '@', t.PROCESSLIST_HOST)), t.PROCESSLIST_DB,
		t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE, t.PROCESSLIST_TIME, t.PROCESSLIST_INFO, t.EXECUTION_ENGINE, e.TIMER_WAIT, NULL, e.LOCK_TIME, NULL, NULL, NULL, NULL,
		NULL, NULL, 'NO', NULL, NULL, NULL, NULL, NULL, NULL, x.TIMER_WAIT, x.STATE, x.AUTOCOMMIT, p.ATTR_VALUE, n.ATTR_VALUE
		FROM performance_schema.threads t
		LEFT JOIN performance_schema.events_statements_current e ON e.THREAD_ID = t.THREAD_ID
		LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = t.THREAD_ID
		LEFT JOIN performance_schema.session_connect_attrs p ON p.PROCESSLIST_ID = t.PROCESSLIST_ID AND p.ATTR_NAME = '_pid'
		LEFT JOIN performance_schema.session_connect_attrs n ON n.PROCESSLIST_ID = t.PROCESSLIST_ID AND n.ATTR_NAME = 'program_name'
		ORDER BY t.PROCESSLIST_TIME DESC`,
	"x$session": "SELECT * FROM sys.x$processlist WHERE conn_id IS NOT NULL AND command <> 'Daemon'",
	"metrics": `SELECT LOWER(VARIABLE_NAME), CAST(VARIABLE_VALUE AS CHAR(1024)), 'Global Status', 'YES' FROM performance_schema.global_status
		UNION ALL SELECT NAME, COUNT, CONCAT('InnoDB Metrics - ', SUBSYSTEM), IF(STATUS = 'enabled', 'YES', 'NO') FROM information_schema.INNODB_METRICS
		UNION ALL SELECT 'memory_current_allocated', SUM(CURRENT_NUMBER_OF_BYTES_USED), 'Performance Schema', 'PARTIAL'
		FROM performance_schema.memory_summary_global_by_event_name
		UNION ALL SELECT 'now()', NOW(3), 'System Time', 'YES' UNION ALL SELECT 'unix_timestamp()', UNIX_TIMESTAMP(NOW(3)), 'System Time', 'YES' ORDER BY 3, 1`,
	"ps_check_lost_instrumentation": `SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status
		WHERE VARIABLE_NAME LIKE 'Performance\\_schema\\_%lost' AND VARIABLE_VALUE > 0`,
}

// clientSummary is the query of x$user_summary, or of x$host_summary. Files and memory are not counted by account.
func clientSummary(by, other string) string {
	return `SELECT a.` + by + `, MAX(s.total), MAX(s.total_latency), IFNULL(MAX(s.total_latency) / NULLIF(MAX(s.total), 0), 0), MAX(s.full_scans), 0, 0,
		SUM(a.CURRENT_CONNECTIONS), SUM(a.TOTAL_CONNECTIONS), COUNT(DISTINCT a.` + other + `), 0, 0
		FROM performance_schema.accounts a LEFT JOIN sys.x$` + by + `_summary_by_statement_latency s ON s.` + by + ` = a.` + by + `
		GROUP BY a.` + by + ` ORDER BY MAX(s.total_latency) DESC`
}

func clientTypes(by string) string {
	return `SELECT ` + by + `, SUBSTR(EVENT_NAME, 15), COUNT_STAR, SUM_TIMER_WAIT, MAX_TIMER_WAIT, SUM_LOCK_TIME, SUM_CPU_TIME, SUM_ROWS_SENT, SUM_ROWS_EXAMINED,
		SUM_ROWS_AFFECTED, SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED
		FROM performance_schema.events_statements_summary_by_` + by + `_by_event_name WHERE COUNT_STAR > 0 ORDER BY ` + by + `, SUM_TIMER_WAIT DESC`
}

func clientLatency(by string) string {
	return `SELECT ` + by + `, SUM(COUNT_STAR), SUM(SUM_TIMER_WAIT), MAX(MAX_TIMER_WAIT), SUM(SUM_LOCK_TIME), SUM(SUM_CPU_TIME), SUM(SUM_ROWS_SENT), SUM(SUM_ROWS_EXAMINED),
		SUM(SUM_ROWS_AFFECTED), SUM(SUM_NO_INDEX_USED) + SUM(SUM_NO_GOOD_INDEX_USED)
		FROM performance_schema.events_statements_summary_by_` + by + `_by_event_name GROUP BY ` + by + ` ORDER BY SUM(SUM_TIMER_WAIT) DESC`
}

// shapedTypes are the types of the columns of shapesText, by table and column.
var shapedTypes = sync.OnceValue(func() map[string][][2]string {
	list, table := map[string][][2]string{}, ""
	for line := range strings.Lines(shapesText) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(parts) == 1 {
			table = parts[0]
			continue
		}
		list[table] = append(list[table], [2]string{parts[0], parts[1]})
	}
	return list
})

// sysQuery is the query of a view of sys. One beside whose name there is another with x$ shows the same for people: times and
// sizes with their units, long statements cut, files below the node's directory as such.
func sysQuery(name string) (query string, ok bool) {
	if query, ok = sysQueries[name]; ok || strings.HasPrefix(name, "x$") {
		return query, ok
	}
	raw := shapedTypes()[sysSchema+".x$"+name]
	if raw == nil {
		return "", false
	}
	types := map[string]string{}
	for _, c := range raw {
		types[c[0]] = c[1]
	}
	var columns []string
	for _, c := range shapedTypes()[sysSchema+"."+name] {
		text := "`" + c[0] + "`"
		switch {
		case c[1] == "varchar(11)" && types[c[0]] != c[1] && strings.Contains(c[0], "latency"):
			text = "FORMAT_PICO_TIME(" + text + ")"
		case c[1] == "varchar(11)" && types[c[0]] != c[1]:
			text = "FORMAT_BYTES(" + text + ")"
		case c[0] == "query" || c[0] == "current_statement" || c[0] == "last_statement" || strings.HasSuffix(c[0], "ing_query"):
			text = "IF(CHAR_LENGTH(" + text + ") > 64, CONCAT(LEFT(" + text + ", 30), ' ... ', RIGHT(" + text + ", 30)), " + text + ")"
		case c[0] == "file":
			text = "IF(LOCATE(@@datadir, `file`) = 1, CONCAT('@@datadir/', TRIM(LEADING '/' FROM SUBSTR(`file`, CHAR_LENGTH(@@datadir) + 1))), `file`)"
		}
		columns = append(columns, text)
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM sys.`x$" + name + "`", true
}
