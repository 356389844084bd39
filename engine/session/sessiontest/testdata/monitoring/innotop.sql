SHOW /*innotop*/ ENGINE INNODB STATUS;
SHOW /*innotop*/ GLOBAL VARIABLES;
SHOW /*innotop*/ GLOBAL STATUS;
SHOW /*innotop*/ FULL PROCESSLIST;
SHOW /*innotop*/ OPEN TABLES;
SHOW /*innotop*/ COLUMNS FROM INFORMATION_SCHEMA.PROCESSLIST LIKE 'TIME_MS';
SELECT r.trx_mysql_thread_id, r.trx_query, b.trx_mysql_thread_id, b.trx_query, l.LOCK_MODE, l.OBJECT_NAME, l.INDEX_NAME FROM performance_schema.data_lock_waits w JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID;
SELECT m.MEMBER_HOST, s.COUNT_TRANSACTIONS_IN_QUEUE FROM performance_schema.replication_group_members m JOIN performance_schema.replication_group_member_stats s USING (MEMBER_ID);
SELECT * FROM performance_schema.replication_applier_status;
