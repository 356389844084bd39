-- PMM's query analytics
SELECT COALESCE(SCHEMA_NAME, ''), COALESCE(DIGEST, ''), COALESCE(DIGEST_TEXT, ''), COUNT_STAR, SUM_TIMER_WAIT, MIN_TIMER_WAIT, MAX_TIMER_WAIT, SUM_LOCK_TIME, SUM_ERRORS, FIRST_SEEN, LAST_SEEN FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IS NOT NULL;
SELECT SQL_TEXT, DIGEST, CURRENT_SCHEMA FROM performance_schema.events_statements_history WHERE DIGEST IS NOT NULL AND SQL_TEXT IS NOT NULL;
SELECT NAME, ENABLED, TIMED FROM performance_schema.setup_instruments;
SELECT NAME, ENABLED FROM performance_schema.setup_consumers;
SELECT THREAD_ID, NAME, PROCESSLIST_ID, CONNECTION_TYPE FROM performance_schema.threads;
SELECT USER, HOST, CURRENT_CONNECTIONS, TOTAL_CONNECTIONS FROM performance_schema.accounts WHERE USER IS NOT NULL;
-- MySQL Workbench
SELECT * FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = CONNECTION_ID();
SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_INFO, t.INSTRUMENTED, a.ATTR_VALUE FROM performance_schema.threads t LEFT JOIN performance_schema.session_connect_attrs a ON t.PROCESSLIST_ID = a.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name' WHERE t.TYPE <> 'BACKGROUND';
SELECT st.* FROM performance_schema.events_statements_current st JOIN performance_schema.threads thr ON thr.thread_id = st.thread_id WHERE thr.processlist_id = CONNECTION_ID();
SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_STATUS FROM performance_schema.metadata_locks;
SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Innodb%' OR Variable_name LIKE 'Com_%';
SELECT VARIABLE_NAME, VARIABLE_SOURCE, SET_TIME FROM performance_schema.variables_info;
-- DBeaver
SELECT * FROM performance_schema.processlist;
SELECT DISTINCT s.TABLE_SCHEMA, s.TABLE_NAME, s.INDEX_NAME FROM information_schema.STATISTICS s JOIN performance_schema.table_io_waits_summary_by_index_usage u ON u.OBJECT_SCHEMA = s.TABLE_SCHEMA AND u.OBJECT_NAME = s.TABLE_NAME AND u.INDEX_NAME = s.INDEX_NAME;
SELECT * FROM mysql.func;
SELECT Name FROM mysql.time_zone_name ORDER BY Name;
SELECT * FROM sys.session;
SELECT * FROM sys.processlist;
SELECT * FROM sys.metrics;
SELECT * FROM sys.schema_object_overview;
SELECT * FROM sys.host_summary;
SELECT * FROM sys.schema_table_lock_waits;
-- pt-query-digest, pt-duplicate-key-checker, pt-index-usage, pt-kill, pt-mysql-summary, pt-config-diff
SHOW FULL PROCESSLIST;
SHOW KEYS FROM test.m;
SHOW CREATE TABLE test.m;
SELECT COUNT(*) FROM mysql.general_log;
SELECT start_time, query_time, sql_text FROM mysql.slow_log;
SELECT * FROM mysql.plugin;
SELECT * FROM mysql.servers;
SHOW DATABASES;
SHOW FULL TABLES FROM sys;
SHOW TABLE STATUS FROM performance_schema;
DESCRIBE sys.version;
SHOW CREATE VIEW sys.version;
SELECT t.NAME, i.NAME, f.NAME, f.POS, d.PATH, s.FILE_SIZE FROM information_schema.INNODB_TABLES t JOIN information_schema.INNODB_INDEXES i ON i.TABLE_ID = t.TABLE_ID JOIN information_schema.INNODB_FIELDS f ON f.INDEX_ID = i.INDEX_ID JOIN information_schema.INNODB_DATAFILES d ON d.SPACE = t.SPACE JOIN information_schema.INNODB_TABLESPACES s ON s.SPACE = t.SPACE;
SELECT POOL_ID, POOL_SIZE, FREE_BUFFERS, DATABASE_PAGES, HIT_RATE FROM information_schema.INNODB_BUFFER_POOL_STATS;
SELECT f.ID, f.FOR_NAME, f.REF_NAME, c.FOR_COL_NAME, c.REF_COL_NAME FROM information_schema.INNODB_FOREIGN f JOIN information_schema.INNODB_FOREIGN_COLS c ON c.ID = f.ID;
