package session

import (
	"strings"

	"errors"
	"fmt"
	"math"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/types"
)

// transactionVariables are those that the next transaction is begun with. The two names of
// each share one value.
func transactionVariables() []*variable {
	isolation := func(name string) *variable {
		return enumVar(name, both, isoRepeatableRead, isolationNames...).onApply(func(s *Session, x varValue) { s.opt.isolation = uint8(x.n) })
	}
	readOnly := func(name string) *variable {
		return boolVar(name, both, false).onApply(func(s *Session, x varValue) { s.opt.readOnly = x.n != 0 })
	}
	return []*variable{isolation("transaction_isolation"), isolation("tx_isolation"),
		readOnly("transaction_read_only"), readOnly("tx_read_only"),
		enumVar("trireme_read_consistency", both, 0, "STRONG", "AT_LEAST", "BOUNDED", "LOCAL").
			onApply(func(s *Session, x varValue) { s.opt.consistency = Consistency(x.n) }),
		enumVar("trireme_read_port_consistency", inGlobal, uint64(Local), "STRONG", "AT_LEAST", "BOUNDED", "LOCAL"),
		boolVar("trireme_innodb_only", both, false),
		uintVar("trireme_read_bound", both, 1000, 0, math.MaxUint32).
			onApply(func(s *Session, x varValue) { s.opt.readBound = time.Duration(x.n) * time.Millisecond }),
		uintVar("trireme_read_wait", both, 5000, 1, math.MaxUint32).
			onApply(func(s *Session, x varValue) { s.opt.readWait = time.Duration(x.n) * time.Millisecond }),
		stringVar("trireme_read_gtid", inSession, "").onCheck(checkReadGTID).onApply(func(s *Session, x varValue) { s.opt.readAtLeast = x.s }),
		uintVar("trireme_statement_memory", both, 256<<20, 1<<20, maxUint).guard().onApply(func(s *Session, x varValue) { s.opt.memoryMax = int64(min(x.n, math.MaxInt64)) }),
		uintVar("max_tmp_session_space_usage", both, math.MaxInt64, 1<<20, math.MaxInt64).guard().onApply(func(s *Session, x varValue) { s.disk.Limit = int64(x.n) }),
		uintVar("max_tmp_total_space_usage", inGlobal, 0, 0, math.MaxInt64).with(func(v *variable) {
			v.appliedGlobal = func(m *Manager, x varValue) { m.disk.SetLimit(int64(x.n)) }
		}),
		uintVar("trireme_tmp_account_space_usage", inGlobal, 0, 0, math.MaxInt64).with(func(v *variable) {
			v.appliedGlobal = func(m *Manager, x varValue) { m.disk.SetOwnerLimit(int64(x.n)) }
		}),
		uintVar("trireme_undo_history_space", inGlobal, 0, 0, math.MaxInt64).onCheck(checkHistorySpace),
		uintVar("trireme_short_statement_time", inGlobal, 5, 0, 3600_000).with(func(v *variable) { v.appliedGlobal = (*Manager).setShort }),
		uintVar("trireme_client_check_interval", inGlobal, 100, 0, 3600_000),
		uintVar("trireme_read_lock_limit", inGlobal, 600, 0, 31536000),
		uintVar("trireme_plan_cache_size", inGlobal, 1024, 0, 1<<20).with(func(v *variable) {
			v.appliedGlobal = func(m *Manager, x varValue) { m.plans.setSize(int(x.n)) }
		}),
	}
}

// aliases are variables that share one value.
var aliases = map[string]string{"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only"}

// checkReadGTID wants a GTID of the group or a number.
func checkReadGTID(s *Session, v *varValue) error {
	if _, err := s.gtidNumber(v.s); errorNumber(err) == sqlerr.UnknownError {
		return err // it says that it is of another group
	} else if err != nil {
		return variables["trireme_read_gtid"].wrongValue(v.s)
	}
	return nil
}

// narrowOnly refuses the character sets in which no text is ASCII: statements are not read in these, as in MySQL, nor are texts that
// a connection makes of numbers and the like, which MySQL can do.
func narrowOnly(list ...*variable) {
	for _, v := range list {
		check := v.check
		v.onCheck(func(s *Session, x *varValue) error {
			given := x.s
			if err := check(s, x); err != nil || x.n == 1 {
				return err
			}
			set, _, _ := strings.Cut(x.s, "_")
			if cs, ok := types.CharsetByName(set); ok && cs.IsWide() {
				return v.wrongValue(given)
			}
			return nil
		})
	}
}

// charsetVariables are character sets and collations.
func charsetVariables() []*variable {
	charset := func(name string, scope varScope, def string) *variable {
		return stringVar(name, scope, def).onCheck(func(_ *Session, v *varValue) error {
			if v.n == 1 {
				if scope&nullable == 0 {
					return variables[name].wrongValue("NULL")
				}
				return nil
			}
			c, err := charsetNamed(v.s)
			if err == nil {
				v.s = c.name
			}
			return err
		})
	}
	collation := func(name string, def string) *variable {
		return stringVar(name, both, def).onCheck(func(_ *Session, v *varValue) error {
			c, err := collationNamed(v.s)
			if err == nil {
				v.s = c.Name()
			}
			return err
		})
	}
	pair := func(charsetName, collationName string, set func(s *Session, id types.CollationID)) []*variable {
		cs, co := charset(charsetName, both, "utf8mb4"), collation(collationName, "utf8mb4_0900_ai_ci")
		cs.applied = func(s *Session, x varValue) {
			c, err := charsetNamed(x.s)
			if err != nil {
				return
			}
			if current, err := collationNamed(s.value(co).s); err == nil && charsetName != "" && charsetOf(current) == c.name {
				set(s, current.ID())
				return
			}
			id := c.collation
			s.assign(co, varValue{s: types.CollationByID(id).Name()})
			set(s, id)
		}
		co.applied = func(s *Session, x varValue) {
			if c, err := collationNamed(x.s); err == nil {
				s.assign(cs, varValue{s: charsetOf(c)})
				set(s, c.ID())
			}
		}
		return []*variable{cs, co}
	}
	var list []*variable
	connection := pair("character_set_connection", "collation_connection", func(s *Session, id types.CollationID) { s.x.Collation = id })
	narrowOnly(connection...)
	list = append(list, connection...)
	list = append(list, pair("character_set_server", "collation_server", func(s *Session, id types.CollationID) {})...)
	list = append(list, pair("character_set_database", "collation_database", func(s *Session, id types.CollationID) {})...)
	client := charset("character_set_client", both, "utf8mb4")
	narrowOnly(client)
	client.applied = func(s *Session, x varValue) {
		if c, err := charsetNamed(x.s); err == nil {
			s.opt.client = c.charset
			s.mode = s.mode.WithClient(c.charset)
		}
	}
	results := charset("character_set_results", both|nullable, "utf8mb4")
	results.applied = func(s *Session, x varValue) {
		s.opt.results = 0
		if c, err := charsetNamed(x.s); x.n == 0 && err == nil {
			s.opt.results = c.collation
		}
	}
	return append(list, client, results,
		charset("character_set_filesystem", both|inert, "binary"),
		stringVar("character_set_system", inGlobal|readOnly, "utf8mb3"),
		stringVar("character_sets_dir", inGlobal|readOnly, ""),
		enumVar("default_collation_for_utf8mb4", both|fixedTo, 0, "utf8mb4_0900_ai_ci").with(func(v *variable) {
			v.unknown = func(name string) error { return sqlerr.New(sqlerr.UnknownCollation, name) }
		}),
		stringVar("time_zone", both, "SYSTEM").onCheck(func(s *Session, v *varValue) error {
			_, err := loadLocation(v.s)
			return err
		}).onApply(func(s *Session, x varValue) {
			if loc, err := loadLocation(x.s); err == nil {
				s.x.Location = loc
			}
		}))
}

// engineVariables are those of the engine, the log and the group.
func engineVariables() []*variable {
	return []*variable{
		enumVar("binlog_checksum", inGlobal|readOnly, 0, "CRC32"),
		uintVar("binlog_cache_size", inGlobal|readOnly|atStart, 32768, 4096, maxUint),
		enumVar("binlog_format", both|fixedTo, 0, "ROW"),
		enumVar("binlog_row_image", both|readOnly|atStart, 1, "FULL", "MINIMAL", "NOBLOB"),
		enumVar("binlog_row_metadata", inGlobal|readOnly, 0, "MINIMAL", "FULL"),
		boolVar("binlog_rows_query_log_events", both|fixedTo, false),
		setVar("binlog_row_value_options", both|fixedTo, 0, "PARTIAL_JSON"),
		enumVar("binlog_error_action", inGlobal|readOnly, 0, "ABORT_SERVER"),
		boolVar("binlog_transaction_compression", inGlobal|inGroup, true),
		uintVar("binlog_transaction_compression_level_zstd", inGlobal|inGroup, 1, 1, 22),
		uintVar("binlog_expire_logs_seconds", inGlobal|inGroup, 2592000, 1, 1<<32),
		uintVar("binlog_keep_size", inGlobal|inGroup, 4<<30, 1<<16, 1<<50),
		uintVar("commit_token_life_seconds", inGlobal|inGroup, 3600, 60, 1<<32),
		uintVar("binlog_large_commit_threshold", inGlobal|inGroup, 8<<20, 256<<10, 1<<40),
		uintVar("max_binlog_size", inGlobal|inGroup, 256<<20, 4096, 1<<40),
		uintVar("max_binlog_cache_size", inGlobal|readOnly|atStart, 1<<64-4096, 4096, maxUint),
		uintVar("max_binlog_stmt_cache_size", inGlobal|readOnly, 64<<20, 4096, maxUint),
		uintVar("expire_logs_days", inGlobal|readOnly, 0, 0, 99),
		uintVar("sync_binlog", inGlobal|fixedTo, 1, 0, math.MaxUint32),
		boolVar("enforce_gtid_consistency", inGlobal|fixedTo, true).with(func(v *variable) { v.kind, v.names, v.def.n = varEnum, []string{"OFF", "ON", "WARN"}, 1 }),
		enumVar("gtid_mode", inGlobal|fixedTo, 3, "OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"),
		stringVar("gtid_executed", inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue { return varValue{s: s.gtidExecuted()} }),
		stringVar("gtid_purged", inGlobal|inert, "").with(unmoved),
		stringVar("gtid_owned", both|readOnly, ""),
		stringVar("gtid_next", inSession|fixedTo, "AUTOMATIC"),
		uintVar("gtid_executed_compression_period", inGlobal|readOnly, 0, 0, math.MaxUint32),
		stringVar("group_replication_group_name", inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue {
			return varValue{s: uuidText(s.m.opt.Backend.Group())}
		}),
		boolVar("group_replication_single_primary_mode", inGlobal|readOnly, true),
		enumVar("group_replication_consistency", both|readOnly, 0, "BEFORE"),
		stringVar("trireme_leader", inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue { return varValue{s: s.m.opt.Backend.LeaderAddr()} }),
		uintVar("innodb_adaptive_hash_index", inGlobal|readOnly, 0, 0, 1).with(func(v *variable) { v.kind = varBool }),
		uintVar("innodb_autoinc_lock_mode", inGlobal|readOnly, 2, 0, 2),
		intVar("innodb_buffer_pool_size", inGlobal|atStart, 128<<20, 1<<20, math.MaxInt64).with(engineSize),
		uintVar("innodb_buffer_pool_instances", inGlobal|readOnly, 1, 1, 64),
		uintVar("innodb_buffer_pool_chunk_size", inGlobal|readOnly, 128<<20, 1<<20, maxUint),
		enumVar("innodb_checksum_algorithm", inGlobal|readOnly, 0, "crc32"),
		stringVar("innodb_data_file_path", inGlobal|readOnly, "ibdata1:12M:autoextend"),
		boolVar("innodb_deadlock_detect", inGlobal, true).with(func(v *variable) {
			v.get = func(s *Session, _ bool) varValue {
				if e, err := s.m.opt.Backend.Engine(); err == nil && !e.Settings().DeadlockDetect {
					return varValue{}
				}
				return varValue{n: 1}
			}
			v.appliedGlobal = func(m *Manager, x varValue) {
				if e, err := m.opt.Backend.Engine(); err == nil {
					set := e.Settings()
					set.DeadlockDetect = x.n != 0
					_ = e.Set(set) // this one setting has no impossible value
				}
			}
		}),
		enumVar("innodb_default_row_format", inGlobal|fixedTo, 0, "dynamic"),
		enumVar("innodb_doublewrite", inGlobal|fixedTo, 1, "OFF", "ON"),
		uintVar("innodb_fast_shutdown", inGlobal|inert, 1, 0, 2),
		boolVar("innodb_file_per_table", inGlobal|fixedTo, true),
		enumVar("innodb_flush_log_at_trx_commit", inGlobal|fixedTo, 1, "0", "1", "2").with(func(v *variable) { v.kind, v.names, v.max = varUint, nil, 2 }),
		uintVar("innodb_flush_log_at_timeout", inGlobal|readOnly|atStart, 1, 0, 2700),
		stringVar("innodb_flush_method", inGlobal|readOnly|atStart, "fsync"),
		uintVar("innodb_force_recovery", inGlobal|readOnly, 0, 0, 6),
		uintVar("innodb_io_capacity", inGlobal|readOnly|atStart, 2000, 100, maxUint),
		uintVar("innodb_io_capacity_max", inGlobal|readOnly|atStart, 20000, 100, maxUint),
		boolVar("innodb_large_prefix", inGlobal|readOnly, true),
		uintVar("innodb_lock_wait_timeout", both, 50, 1, 1073741824),
		uintVar("innodb_log_buffer_size", inGlobal|readOnly|atStart, 16<<20, 1<<20, math.MaxUint32),
		uintVar("innodb_log_file_size", inGlobal|readOnly, 50331648, 4<<20, maxUint),
		uintVar("innodb_log_files_in_group", inGlobal|readOnly, 2, 2, 100),
		uintVar("innodb_max_dirty_pages_pct", inGlobal|readOnly, 90, 0, 99),
		uintVar("innodb_online_alter_log_max_size", inGlobal, 128<<20, 65536, maxUint),
		uintVar("innodb_open_files", inGlobal|readOnly|atStart, 4000, 10, math.MaxInt32),
		uintVar("innodb_page_size", inGlobal|readOnly, 16384, 4096, 65536),
		boolVar("innodb_print_all_deadlocks", inGlobal, false),
		uintVar("innodb_purge_threads", inGlobal|readOnly|atStart, 2, 1, 32),
		uintVar("innodb_read_io_threads", inGlobal|readOnly, 4, 1, 64),
		boolVar("innodb_read_only", inGlobal|readOnly, false),
		uintVar("innodb_redo_log_capacity", inGlobal|readOnly|atStart, 100<<20, 8<<20, maxUint),
		boolVar("innodb_rollback_on_timeout", inGlobal|readOnly, false),
		boolVar("innodb_stats_auto_recalc", inGlobal|inert, true),
		boolVar("innodb_stats_on_metadata", inGlobal|inert, false),
		boolVar("innodb_stats_persistent", inGlobal|inert, true),
		boolVar("innodb_strict_mode", both, true),
		boolVar("innodb_table_locks", both|inert, true),
		boolVar("innodb_ft_enable_stopword", both|inert, true),
		uintVar("innodb_thread_concurrency", inGlobal|inert, 0, 0, 1000),
		uintVar("innodb_thread_sleep_delay", inGlobal|inert, 10000, 0, 1000000),
		uintVar("innodb_undo_tablespaces", inGlobal|readOnly|atStart, 2, 2, 127),
		boolVar("innodb_use_native_aio", inGlobal|readOnly, false),
		stringVar("innodb_version", inGlobal|readOnly, "8.0.36"),
		uintVar("innodb_write_io_threads", inGlobal|readOnly, 4, 1, 64),
		enumVar("internal_tmp_mem_storage_engine", both|fixedTo, 0, "TempTable"),
		uintVar("temptable_max_ram", inGlobal, 1<<30, 2<<20, math.MaxInt64).with(func(v *variable) {
			v.appliedGlobal = func(m *Manager, x varValue) { m.memory.SetLimit(int64(x.n)) }
		}),
		uintVar("temptable_max_mmap", inGlobal|inert, 0, 0, maxUint),
		boolVar("temptable_use_mmap", inGlobal|inert, false),
		uintVar("replica_parallel_workers", inGlobal|readOnly|atStart, 4, 0, 1024),
		uintVar("slave_parallel_workers", inGlobal|readOnly, 4, 0, 1024),
		boolVar("replica_preserve_commit_order", inGlobal|readOnly, true),
		uintVar("slave_max_allowed_packet", inGlobal|readOnly, 1<<30, 1024, 1<<30),
		enumVar("transaction_write_set_extraction", both|fixedTo, 0, "XXHASH64"),
		enumVar("default_table_encryption", both|fixedTo, 0, "OFF"),
		stringVar("disabled_storage_engines", inGlobal|readOnly, ""),
		uintVar("immediate_server_version", inSession|inert, 999999, 0, 999999),
		uintVar("original_server_version", inSession|inert, 999999, 0, 999999),
		uintVar("original_commit_timestamp", inSession|inert, 36028797018963968, 0, 36028797018963968),
		uintVar("pseudo_replica_mode", inSession|inert, 0, 0, 1).with(func(v *variable) { v.kind = varBool }),
		uintVar("pseudo_slave_mode", inSession|inert, 0, 0, 1).with(func(v *variable) { v.kind = varBool }),
		enumVar("terminology_use_previous", both|inert, 0, "NONE", "BEFORE_8_0_26"),
		uintVar("regexp_stack_limit", inGlobal, 8000000, 0, math.MaxInt32),
		intVar("regexp_time_limit", inGlobal, 32, 0, math.MaxInt32),
		uintVar("password_history", inGlobal, 0, 0, math.MaxUint32),
		uintVar("password_reuse_interval", inGlobal, 0, 0, math.MaxUint32),
		boolVar("password_require_current", inGlobal, false),
		uintVar("validate_password.changed_characters_percentage", inGlobal|fixedTo, 0, 0, 100),
		boolVar("validate_password.check_user_name", inGlobal, true),
		stringVar("validate_password.dictionary_file", inGlobal|readOnly, ""),
		uintVar("validate_password.length", inGlobal, 8, 0, math.MaxInt32).onCheck(func(s *Session, x *varValue) error {
			if s != nil { // else the configuration's: passwordLength sees to it
				x.n = max(x.n, s.m.passwordCounts())
			}
			return nil
		}),
		uintVar("validate_password.mixed_case_count", inGlobal, 1, 0, math.MaxInt32).with(longerPasswords),
		uintVar("validate_password.number_count", inGlobal, 1, 0, math.MaxInt32).with(longerPasswords),
		enumVar("validate_password.policy", inGlobal, 1, "LOW", "MEDIUM", "STRONG"),
		uintVar("validate_password.special_char_count", inGlobal, 1, 0, math.MaxInt32).with(longerPasswords),
		boolVar("activate_all_roles_on_login", inGlobal, false),
		boolVar("check_proxy_users", inGlobal|fixedTo, false),
		boolVar("end_markers_in_json", both|inert, false),
		uintVar("generated_random_password_length", both, 20, 5, 255),
		boolVar("core_file", inGlobal|readOnly, false),
		stringVar("admin_address", inGlobal|readOnly, ""),
		uintVar("admin_port", inGlobal|readOnly, 33062, 0, 65535),
		boolVar("create_admin_listener_thread", inGlobal|readOnly, false),
	}
}

// engineSize makes innodb_buffer_pool_size that of the engine.
func engineSize(v *variable) {
	v.get = func(s *Session, _ bool) varValue {
		e, err := s.m.opt.Backend.Engine()
		if err != nil {
			return v.def
		}
		return varValue{n: uint64(e.Settings().BufferPoolSize)}
	}
	v.check = func(s *Session, x *varValue) error {
		e, err := s.m.opt.Backend.Engine()
		if err != nil {
			return err
		}
		set := e.Settings()
		set.BufferPoolSize = int64(x.n)
		if err := e.Set(set); errors.Is(err, storage.ErrClosed) {
			return err
		} else if err != nil {
			return v.wrongValue(fmt.Sprint(x.n))
		}
		return nil
	}
}
