package session

import (
	"math"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// The names of sql_mode's flags, in MySQL's order of bits; empty ones are not flags any
// more.
var sqlModeNames = []string{"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "NOT_USED", "ONLY_FULL_GROUP_BY",
	"NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "NOT_USED_9", "NOT_USED_10", "NOT_USED_11", "NOT_USED_12", "NOT_USED_13",
	"NOT_USED_14", "NOT_USED_15", "NOT_USED_16", "NOT_USED_17", "NOT_USED_18", "ANSI", "NO_AUTO_VALUE_ON_ZERO",
	"NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES",
	"ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "NOT_USED_29", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION",
	"PAD_CHAR_TO_FULL_LENGTH", "TIME_TRUNCATE_FRACTIONAL"}

// The flags of sql_mode that are used here.
const (
	modeRealAsFloat          = 1 << 0
	modePipesAsConcat        = 1 << 1
	modeANSIQuotes           = 1 << 2
	modeIgnoreSpace          = 1 << 3
	modeOnlyFullGroupBy      = 1 << 5
	modeNoUnsignedSubtract   = 1 << 6
	modeANSI                 = 1 << 18
	modeNoAutoValueOnZero    = 1 << 19
	modeNoBackslashEscapes   = 1 << 20
	modeStrictTransTables    = 1 << 21
	modeStrictAllTables      = 1 << 22
	modeNoZeroInDate         = 1 << 23
	modeNoZeroDate           = 1 << 24
	modeAllowInvalidDates    = 1 << 25
	modeErrorForDivision     = 1 << 26
	modeTraditional          = 1 << 27
	modeHighNotPrecedence    = 1 << 29
	modeNoEngineSubstitution = 1 << 30
	modePadChar              = 1 << 31
	modeTruncateFraction     = 1 << 32

	modeDefault = modeOnlyFullGroupBy | modeStrictTransTables | modeNoZeroInDate | modeNoZeroDate | modeErrorForDivision |
		modeNoEngineSubstitution
	modeUnusable = 0x3ffff&^0x6f&^0xf | 1<<28 // NOT_USED and NO_DIR_IN_CREATE
)

// checkSQLMode completes the modes that stand for several, and says which one does nothing.
func checkSQLMode(s *Session, v *varValue) error {
	if v.n&modePadChar != 0 && s != nil {
		s.diag.warn(sqlerr.Newf(sqlerr.NotSupportedYet,
			"The mode PAD_CHAR_TO_FULL_LENGTH is accepted for compatibility only and has no effect"))
	}
	if v.n&modeANSI != 0 {
		v.n |= modeRealAsFloat | modePipesAsConcat | modeANSIQuotes | modeIgnoreSpace | modeOnlyFullGroupBy
	}
	if v.n&modeTraditional != 0 {
		v.n |= modeStrictTransTables | modeStrictAllTables | modeNoZeroInDate | modeNoZeroDate | modeErrorForDivision | modeNoEngineSubstitution
	}
	if v.n&(1<<4|1<<28|0x3ff00) != 0 {
		return sqlerr.New(sqlerr.WrongValueForVar, "sql_mode", variables["sql_mode"].text(*v))
	}
	return nil
}

const maxUint = math.MaxUint64

var isolationNames = []string{"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}

const (
	isoReadUncommitted = iota
	isoReadCommitted
	isoRepeatableRead
	isoSerializable
)

// serverVariables are those of the server and its sessions.
func serverVariables() []*variable {
	list := []*variable{
		uintVar("auto_increment_increment", both, 1, 1, 65535),
		uintVar("auto_increment_offset", both, 1, 1, 65535),
		boolVar("autocommit", both, true).onApply(func(s *Session, x varValue) { s.opt.autocommit = x.n != 0 }),
		boolVar("automatic_sp_privileges", inGlobal|inert, true),
		uintVar("back_log", inGlobal|readOnly, 151, 1, 65535),
		boolVar("big_tables", both|inert, false),
		stringVar("bind_address", inGlobal|readOnly|atStart, "*"),
		enumVar("block_encryption_mode", both, 0, "aes-128-ecb", "aes-192-ecb", "aes-256-ecb", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc",
			"aes-128-cfb1", "aes-192-cfb1", "aes-256-cfb1", "aes-128-cfb8", "aes-192-cfb8", "aes-256-cfb8", "aes-128-cfb128",
			"aes-192-cfb128", "aes-256-cfb128", "aes-128-ofb", "aes-192-ofb", "aes-256-ofb"),
		uintVar("bulk_insert_buffer_size", both|inert, 8<<20, 0, maxUint),
		enumVar("completion_type", both, 0, "NO_CHAIN", "CHAIN", "RELEASE").onApply(func(s *Session, x varValue) { s.opt.completion = uint8(x.n) }),
		enumVar("concurrent_insert", inGlobal|inert, 1, "NEVER", "AUTO", "ALWAYS"),
		uintVar("connect_timeout", inGlobal, 10, 2, 31536000),
		uintVar("cte_max_recursion_depth", both, 1000, 0, math.MaxUint32),
		enumVar("default_storage_engine", both|fixedTo, 0, "InnoDB").with(engineNames),
		enumVar("default_tmp_storage_engine", both|fixedTo, 0, "InnoDB").with(engineNames),
		uintVar("default_week_format", both, 0, 0, 7).onApply(func(s *Session, x varValue) { s.x.DefaultWeekFormat = int(x.n) }),
		stringVar("default_authentication_plugin", inGlobal|readOnly, "caching_sha2_password"),
		uintVar("default_password_lifetime", inGlobal, 0, 0, math.MaxUint16),
		enumVar("delay_key_write", inGlobal|inert, 1, "OFF", "ON", "ALL"),
		boolVar("disconnect_on_expired_password", inGlobal|readOnly, true),
		uintVar("div_precision_increment", both, 4, 0, 30).onApply(func(s *Session, x varValue) { s.x.DivPrecisionIncrement = int(x.n) }),
		uintVar("eq_range_index_dive_limit", both|inert, 200, 0, math.MaxUint32),
		enumVar("explain_format", both, 0, explainFormats...).onApply(func(s *Session, x varValue) { s.opt.explainFormat = uint8(x.n) }),
		uintVar("explain_json_format_version", both, 1, 1, 2).onApply(func(s *Session, x varValue) { s.opt.explainJSON = uint8(x.n) }),
		uintVar("error_count", inSession|readOnly, 0, 0, maxUint).computed(func(s *Session, _ bool) varValue { return varValue{n: uint64(s.diag.lastFailures)} }),
		enumVar("event_scheduler", inGlobal|fixedTo, 0, "DISABLED", "OFF"),
		boolVar("explicit_defaults_for_timestamp", both|fixedTo, true),
		nullVar("external_user", inSession|readOnly),
		uintVar("flush_time", inGlobal|inert, 0, 0, 31536000),
		boolVar("flush", inGlobal|inert, false),
		boolVar("foreign_key_checks", both, true).onApply(func(s *Session, x varValue) { s.opt.foreignKeys = x.n != 0 }),
		stringVar("ft_boolean_syntax", inGlobal|readOnly, "+ -><()~*:\"\"&|"),
		uintVar("ft_max_word_len", inGlobal|readOnly, 84, 10, 84),
		uintVar("ft_min_word_len", inGlobal|readOnly, 4, 1, 82),
		stringVar("general_log_file", inGlobal|readOnly, ""),
		boolVar("general_log", inGlobal|fixedTo, false),
		uintVar("group_concat_max_len", both, 1024, 4, maxUint).onApply(func(s *Session, x varValue) { s.x.GroupConcatMaxLen = x.n }),
		enumVar("have_compress", inGlobal|readOnly, 0, "YES"),
		enumVar("have_dynamic_loading", inGlobal|readOnly, 0, "NO"),
		enumVar("have_geometry", inGlobal|readOnly, 0, "NO"),
		enumVar("have_profiling", inGlobal|readOnly, 0, "NO"),
		enumVar("have_query_cache", inGlobal|readOnly, 0, "NO"),
		enumVar("have_statement_timeout", inGlobal|readOnly, 0, "YES"),
		enumVar("have_symlink", inGlobal|readOnly, 0, "DISABLED"),
		uintVar("histogram_generation_max_mem_size", both|inert, 20000000, 1000000, maxUint),
		uintVar("host_cache_size", inGlobal|inert, 279, 0, 65536),
		intVar("identity", inSession, 0, 0, math.MaxInt64).with(lastInsertVariable),
		uintVar("information_schema_stats_expiry", both|inert, 86400, 0, 31536000),
		stringVar("init_connect", inGlobal|fixedTo, ""),
		stringVar("init_file", inGlobal|readOnly, ""),
		uintVar("insert_id", inSession, 0, 0, maxUint).computed(func(s *Session, _ bool) varValue { return varValue{n: s.opt.insertID} }).
			onApply(func(s *Session, x varValue) { s.opt.insertID = x.n }),
		uintVar("interactive_timeout", both, 28800, 1, 31536000),
		uintVar("join_buffer_size", both|inert, 256<<10, 128, maxUint),
		boolVar("keep_files_on_create", both|inert, false),
		uintVar("key_buffer_size", inGlobal|inert, 8<<20, 0, maxUint),
		boolVar("large_files_support", inGlobal|readOnly, true),
		uintVar("large_page_size", inGlobal|readOnly, 0, 0, maxUint),
		boolVar("large_pages", inGlobal|readOnly, false),
		intVar("last_insert_id", inSession, 0, 0, math.MaxInt64).with(lastInsertVariable),
		stringVar("lc_messages", both|fixedTo, "en_US").with(localeNames),
		stringVar("lc_time_names", both|fixedTo, "en_US").with(localeNames),
		stringVar("license", inGlobal|readOnly, "Apache-2.0"),
		boolVar("local_infile", inGlobal, false),
		uintVar("lock_wait_timeout", both, 31536000, 1, 31536000),
		boolVar("log_bin", inGlobal|readOnly, true),
		stringVar("log_bin_basename", inGlobal|readOnly, "binlog"),
		boolVar("log_bin_trust_function_creators", inGlobal|inert, false),
		stringVar("log_error", inGlobal|readOnly, "stderr"),
		uintVar("log_error_verbosity", inGlobal|inert, 2, 1, 3),
		setVar("log_output", inGlobal|fixedTo, 2, "TABLE", "FILE", "NONE"),
		boolVar("log_queries_not_using_indexes", inGlobal, false).with(func(v *variable) {
			v.appliedGlobal = func(m *Manager, x varValue) { m.logScans.Store(x.n != 0) }
		}),
		boolVar("log_replica_updates", inGlobal|readOnly, true),
		boolVar("log_slave_updates", inGlobal|readOnly, true),
		doubleVar("long_query_time", both, 10, 0, 31536000).
			onApply(func(s *Session, x varValue) {
				s.opt.slow = time.Duration(math.Float64frombits(x.n) * float64(time.Second))
			}),
		boolVar("low_priority_updates", both|inert, false),
		boolVar("lower_case_file_system", inGlobal|readOnly, false),
		uintVar("lower_case_table_names", inGlobal|readOnly, 0, 0, 2),
		stringVar("mandatory_roles", inGlobal, "").onCheck(checkMandatory).with(forgetsAccounts),
		uintVar("max_allowed_packet", inGlobal|inSession|sessionRO, 64<<20, 1024, 1<<30).with(func(v *variable) { v.block = 1024 }).
			onApply(func(s *Session, x varValue) { s.x.MaxAllowedPacket = x.n }),
		uintVar("max_connect_errors", inGlobal|inert, 100, 1, maxUint),
		uintVar("max_connections", inGlobal, 151, 1, 100000),
		uintVar("max_delayed_threads", both|inert, 20, 0, 16384),
		uintVar("max_digest_length", inGlobal|readOnly, 1024, 0, 1048576),
		uintVar("max_error_count", both, 1024, 0, 65535).onApply(func(s *Session, x varValue) { s.diag.limit = int(x.n) }),
		uintVar("max_execution_time", both, 0, 0, math.MaxUint32),
		uintVar("max_heap_table_size", both|inert, 16<<20, 16384, maxUint),
		uintVar("max_insert_delayed_threads", both|inert, 20, 0, 16384),
		uintVar("max_join_size", both|inert, maxUint, 1, maxUint),
		uintVar("max_length_for_sort_data", both|inert, 4096, 4, 8<<20),
		uintVar("max_points_in_geometry", both|inert, 65536, 3, 1048576),
		uintVar("max_prepared_stmt_count", inGlobal, 16382, 0, 4194304),
		uintVar("max_seeks_for_key", both|inert, maxUint, 1, maxUint),
		uintVar("max_sort_length", both|inert, 1024, 4, 8<<20),
		uintVar("max_sp_recursion_depth", both|inert, 0, 0, 255),
		uintVar("max_user_connections", inGlobal|inSession|sessionRO, 0, 0, math.MaxUint32),
		uintVar("max_write_lock_count", inGlobal|inert, maxUint, 1, maxUint),
		uintVar("min_examined_row_limit", both, 0, 0, maxUint).onApply(func(s *Session, x varValue) { s.opt.slowRows = x.n }),
		uintVar("net_buffer_length", inGlobal|inSession|sessionRO|inert, 16384, 1024, 1048576),
		uintVar("net_read_timeout", both, 30, 1, 31536000),
		uintVar("net_retry_count", both|inert, 10, 1, maxUint),
		uintVar("net_write_timeout", both, 60, 1, 31536000),
		boolVar("new", both|inert, false),
		boolVar("offline_mode", inGlobal|fixedTo, false),
		boolVar("old_alter_table", both|inert, false),
		uintVar("open_files_limit", inGlobal|readOnly|atStart, 1048576, 0, maxUint),
		uintVar("optimizer_prune_level", both|inert, 1, 0, 1),
		uintVar("optimizer_search_depth", both|inert, 62, 0, 62),
		stringVar("optimizer_switch", both|inert, defaultSwitch).with(func(v *variable) { v.flags = true }),
		stringVar("optimizer_trace", both|inert, "enabled=off,one_line=off").with(func(v *variable) { v.flags = true }),
		intVar("optimizer_trace_limit", both|inert, 1, 0, math.MaxInt32),
		uintVar("optimizer_trace_max_mem_size", both|inert, 1048576, 0, math.MaxUint32),
		boolVar("partial_revokes", inGlobal, false).onCheck(checkPartial).with(forgetsAccounts),
		boolVar("performance_schema", inGlobal|readOnly, true),
		uintVar("performance_schema_accounts_size", inGlobal|readOnly, clientsMax, clientsMax, clientsMax),
		uintVar("performance_schema_digests_size", inGlobal|readOnly|atStart, 2000, 0, 200_000),
		uintVar("performance_schema_hosts_size", inGlobal|readOnly, clientsMax, clientsMax, clientsMax),
		uintVar("performance_schema_max_digest_length", inGlobal|readOnly, digestText, digestText, digestText),
		uintVar("performance_schema_max_file_instances", inGlobal|readOnly, file.CountsMax, file.CountsMax, file.CountsMax),
		uintVar("performance_schema_max_table_instances", inGlobal|readOnly, table.UsageMax, table.UsageMax, table.UsageMax),
		uintVar("performance_schema_users_size", inGlobal|readOnly, clientsMax, clientsMax, clientsMax),
		stringVar("pid_file", inGlobal|readOnly, ""),
		stringVar("plugin_dir", inGlobal|readOnly, ""),
		uintVar("port", inGlobal|readOnly, 3306, 0, 65535).computed(func(s *Session, _ bool) varValue {
			return varValue{n: uint64(s.m.opt.Backend.Server().Port)}
		}),
		uintVar("preload_buffer_size", both|inert, 32768, 1024, 1<<30),
		boolVar("print_identified_with_as_hex", both|inert, false),
		boolVar("profiling", both|fixedTo, false),
		uintVar("profiling_history_size", both|inert, 15, 0, 100),
		uintVar("protocol_version", inGlobal|readOnly, 10, 10, 10),
		stringVar("proxy_user", inSession|readOnly|nullable, "").with(func(v *variable) { v.def.n = 1 }),
		uintVar("pseudo_thread_id", inSession|readOnly, 0, 0, maxUint).computed(func(s *Session, _ bool) varValue { return varValue{n: s.id} }),
		uintVar("query_alloc_block_size", both|inert, 8192, 1024, math.MaxUint32),
		uintVar("query_cache_limit", inGlobal|inert, 1<<20, 0, maxUint),
		uintVar("query_cache_size", inGlobal|fixedTo, 0, 0, 0),
		enumVar("query_cache_type", both|fixedTo, 0, "OFF"),
		uintVar("query_prealloc_size", both|inert, 8192, 8192, maxUint),
		uintVar("rand_seed1", inSession|inert, 0, 0, math.MaxUint32),
		uintVar("rand_seed2", inSession|inert, 0, 0, math.MaxUint32),
		uintVar("range_alloc_block_size", both|inert, 4096, 4096, maxUint),
		uintVar("range_optimizer_max_mem_size", both|inert, 8388608, 0, maxUint),
		uintVar("read_buffer_size", both|inert, 131072, 8192, 1<<31),
		boolVar("read_only", inGlobal|readOnly, false).computed(readOnlyNode),
		uintVar("read_rnd_buffer_size", both|inert, 262144, 1, 1<<31),
		boolVar("require_row_format", inSession|inert, false),
		boolVar("require_secure_transport", inGlobal, false).onCheck(checkSecureTransport),
		uintVar("resultset_metadata", inSession|fixedTo, 1, 1, 1).with(func(v *variable) { v.kind, v.names, v.def.n = varEnum, []string{"NONE", "FULL"}, 1 }),
		uintVar("schema_definition_cache", inGlobal|inert, 256, 256, 524288),
		stringVar("secure_file_priv", inGlobal|readOnly|nullable|atStart, "").with(func(v *variable) { v.def.n = 1 }),
		uintVar("select_into_buffer_size", both|inert, 131072, 8192, 1<<31),
		uintVar("server_id", inGlobal|readOnly, 1, 0, math.MaxUint32).computed(func(s *Session, _ bool) varValue {
			return varValue{n: s.m.opt.Backend.Server().ID}
		}),
		stringVar("server_uuid", inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue {
			return varValue{s: s.m.opt.Backend.Server().UUID}
		}),
		setVar("session_track_gtids", both, 0).with(func(v *variable) { v.kind, v.names = varEnum, []string{"OFF", "OWN_GTID", "ALL_GTIDS"} }).
			onApply(func(s *Session, x varValue) { s.opt.trackGTIDs = x.n != 0 }),
		boolVar("session_track_schema", both, true).onApply(func(s *Session, x varValue) { s.opt.trackSchema = x.n != 0 }),
		boolVar("session_track_state_change", both, false).onApply(func(s *Session, x varValue) { s.opt.trackState = x.n != 0 }),
		stringVar("session_track_system_variables", both|nullable, "time_zone,autocommit,character_set_client,character_set_results,character_set_connection").
			onCheck(checkTracked).onApply(func(s *Session, x varValue) { s.opt.trackVariables = strings.ToLower(x.s) }),
		enumVar("session_track_transaction_info", both, 0, "OFF", "STATE", "CHARACTERISTICS").onApply(func(s *Session, x varValue) { s.opt.trackTransaction = uint8(x.n) }),
		boolVar("sha256_password_proxy_users", inGlobal|fixedTo, false),
		boolVar("show_create_table_verbosity", both|inert, false),
		boolVar("show_gipk_in_create_table_and_information_schema", both|inert, true),
		boolVar("skip_external_locking", inGlobal|readOnly, true),
		boolVar("skip_name_resolve", inGlobal|readOnly, true),
		boolVar("skip_networking", inGlobal|readOnly, false),
		boolVar("skip_show_database", inGlobal|readOnly, false),
		uintVar("slow_launch_time", inGlobal|inert, 2, 0, 31536000),
		boolVar("slow_query_log", inGlobal, false),
		stringVar("slow_query_log_file", inGlobal|readOnly, ""),
		stringVar("socket", inGlobal|readOnly, ""),
		uintVar("sort_buffer_size", both|inert, 256<<10, 32<<10, maxUint),
		boolVar("sql_auto_is_null", both|fixedTo, false),
		boolVar("sql_big_selects", both|inert, true),
		boolVar("sql_buffer_result", both|inert, false),
		boolVar("sql_generate_invisible_primary_key", both|fixedTo, false),
		boolVar("sql_log_bin", inSession|inert, true).with(unmoved),
		boolVar("sql_log_off", both|fixedTo, false),
		setVar("sql_mode", both, modeDefault, sqlModeNames...).onCheck(checkSQLMode).onApply(func(s *Session, x varValue) { s.setSQLMode(x.n) }),
		boolVar("sql_notes", both, true).onApply(func(s *Session, x varValue) { s.diag.notes = x.n != 0 }),
		boolVar("sql_quote_show_create", both|inert, true),
		boolVar("sql_require_primary_key", both, false),
		boolVar("sql_safe_updates", both, false).onApply(func(s *Session, x varValue) { s.opt.safeUpdates = x.n != 0 }),
		uintVar("sql_select_limit", both, maxUint, 0, maxUint).onApply(func(s *Session, x varValue) { s.opt.selectLimit = x.n }),
		boolVar("sql_warnings", both|inert, false),
		stringVar("statement_id", inSession|readOnly, "0").with(func(v *variable) { v.kind = varUint }),
		uintVar("stored_program_cache", inGlobal|inert, 256, 16, 524288),
		boolVar("super_read_only", inGlobal|readOnly, false).computed(readOnlyNode),
		stringVar("system_time_zone", inGlobal|readOnly, "UTC"),
		uintVar("table_definition_cache", inGlobal|inert, 2000, 400, 524288),
		uintVar("table_open_cache", inGlobal|readOnly|atStart, 4000, 1, 1048576),
		uintVar("table_open_cache_instances", inGlobal|readOnly, 16, 1, 64),
		uintVar("thread_cache_size", inGlobal|inert, 9, 0, 16384),
		enumVar("thread_handling", inGlobal|readOnly, 0, "one-thread-per-connection"),
		uintVar("thread_stack", inGlobal|readOnly, 1<<20, 131072, maxUint),
		doubleVar("timestamp", inSession, 0, 0, math.MaxInt32).with(timestampVariable),
		uintVar("tmp_table_size", both|inert, 16<<20, 1024, maxUint),
		stringVar("tmpdir", inGlobal|readOnly, "tmp"),
		uintVar("transaction_alloc_block_size", both|inert, 8192, 1024, 131072),
		boolVar("transaction_allow_batching", inSession|inert, false),
		uintVar("transaction_prealloc_size", both|inert, 4096, 1024, 131072),
		boolVar("unique_checks", both|inert, true),
		boolVar("updatable_views_with_limit", both|inert, true),
		uintVar("wait_timeout", both, 28800, 1, 31536000),
		uintVar("warning_count", inSession|readOnly, 0, 0, maxUint).computed(func(s *Session, _ bool) varValue { return varValue{n: uint64(s.diag.lastTotal)} }),
		boolVar("windowing_use_high_precision", both|inert, true),
		boolVar("xa_detach_on_prepare", both|inert, true),
	}
	list = append(list, transactionVariables()...)
	list = append(list, charsetVariables()...)
	list = append(list, tlsVariables()...)
	return append(list, versionVariables()...)
}

const defaultSwitch = "index_merge=on,index_merge_union=on,index_merge_sort_union=on,index_merge_intersection=on,engine_condition_pushdown=on," +
	"index_condition_pushdown=on,mrr=on,mrr_cost_based=on,block_nested_loop=on,batched_key_access=off,materialization=on,semijoin=on," +
	"loosescan=on,firstmatch=on,duplicateweedout=on,subquery_materialization_cost_based=on,use_index_extensions=on,condition_fanout_filter=on," +
	"derived_merge=on,use_invisible_indexes=off,skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on," +
	"hypergraph_optimizer=off,derived_condition_pushdown=on"

func engineNames(v *variable) {
	v.unknown = func(name string) error { return sqlerr.New(sqlerr.UnknownStorageEngine, name) }
}

func localeNames(v *variable) {
	v.unknown = func(name string) error { return sqlerr.New(sqlerr.UnknownLocale, name) }
}

// unmoved keeps the value of a variable that dumps set, and that tools read, as it is: there is nothing that could
// be so.
func unmoved(v *variable) { v.computed(func(*Session, bool) varValue { return v.def }) }

func readOnlyNode(s *Session, _ bool) varValue {
	if s.m.opt.Backend.Writable() {
		return varValue{}
	}
	return varValue{n: 1}
}

func lastInsertVariable(v *variable) {
	v.get = func(s *Session, _ bool) varValue { return varValue{n: s.lastInsertID} }
	v.applied = func(s *Session, x varValue) { s.lastInsertID = x.n }
}

func timestampVariable(v *variable) {
	v.get = func(s *Session, _ bool) varValue { return varValue{n: floatBits(float64(s.now().UnixMicro()) / 1e6)} }
	v.applied = func(s *Session, x varValue) { s.opt.timestamp = int64(floatOf(x.n) * 1e6) }
}

// versionVariables tell what server this is.
func versionVariables() []*variable {
	backend := func(name string, get func(i ServerInfo) string) *variable {
		return stringVar(name, inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue {
			return varValue{s: get(s.m.opt.Backend.Server())}
		})
	}
	return []*variable{
		backend("version", func(i ServerInfo) string { return VersionString(i.Version) }),
		backend("trireme_version", func(i ServerInfo) string { return i.Version }),
		backend("hostname", func(i ServerInfo) string { return i.Hostname }),
		backend("datadir", func(i ServerInfo) string { return i.Datadir }),
		stringVar("basedir", inGlobal|readOnly, "/"),
		stringVar("version_comment", inGlobal|readOnly, "Trireme"),
		stringVar("version_compile_machine", inGlobal|readOnly, "x86_64"),
		stringVar("version_compile_os", inGlobal|readOnly, "Linux"),
		stringVar("version_compile_zlib", inGlobal|readOnly, "1.3"),
	}
}

// checkTracked tells which of the variables to be tracked there are none of.
func checkTracked(s *Session, v *varValue) error {
	for _, name := range strings.Split(v.s, ",") {
		name = strings.TrimSpace(name)
		if _, err := findVariable(name); err != nil && name != "" && name != "*" && s != nil {
			s.diag.warn(sqlerr.Newf(sqlerr.WrongValueForVar, "%s is not a valid system variable and will be ignored.",
				name))
		}
	}
	return nil
}

// VersionString is VERSION(): one that clients take for MySQL 8.0.
func VersionString(version string) string { return "8.0.36-trireme-" + version }

var _ = types.Null
