package sqlerr

const (
	TooManyUserConnections              Code = 1203
	LockWaitTimeout                     Code = 1205
	LockTableFull                       Code = 1206
	WrongArguments                      Code = 1210
	LockDeadlock                        Code = 1213
	CannotAddForeign                    Code = 1215
	WrongUsage                          Code = 1221
	WrongNumberOfColumnsInSelect        Code = 1222
	CantUpdateWithReadLock              Code = 1223
	DupArgument                         Code = 1225
	UserLimitReached                    Code = 1226
	SpecificAccessDeniedError           Code = 1227
	LocalVariable                       Code = 1228
	GlobalVariable                      Code = 1229
	WrongValueForVar                    Code = 1231
	WrongTypeForVar                     Code = 1232
	NotSupportedYet                     Code = 1235
	IncorrectGlobalLocalVar             Code = 1238
	WrongFKDef                          Code = 1239
	OperandColumns                      Code = 1241
	SubqueryNo1Row                      Code = 1242
	UnknownStmtHandler                  Code = 1243
	AutoConvert                         Code = 1246
	IllegalReference                    Code = 1247
	DerivedMustHaveAlias                Code = 1248
	TableNameNotAllowedHere             Code = 1250
	NotSupportedAuthMode                Code = 1251
	CollationCharsetMismatch            Code = 1253
	TooBigForUncompress                 Code = 1256
	ZLIBZDataError                      Code = 1259
	CutValueGroupConcat                 Code = 1260
	WarnTooFewRecords                   Code = 1261
	WarnTooManyRecords                  Code = 1262
	WarnDataOutOfRange                  Code = 1264
	WarnDataTruncated                   Code = 1265
	WarnUsingOtherHandler               Code = 1266
	CantAggregate2Collations            Code = 1267
	RevokeGrants                        Code = 1269
	CantAggregate3Collations            Code = 1270
	CantAggregateNCollations            Code = 1271
	UnknownCollation                    Code = 1273
	WrongNameForIndex                   Code = 1280
	UnknownKeyCache                     Code = 1284
	UnknownStorageEngine                Code = 1286
	NonUpdatableTable                   Code = 1288
	OptionPreventsStatement             Code = 1290
	DuplicatedValueInType               Code = 1291
	TruncatedWrongValue                 Code = 1292
	InvalidOnUpdate                     Code = 1294
	UnsupportedPS                       Code = 1295
	UnknownTimeZone                     Code = 1298
	InvalidCharacterString              Code = 1300
	WarnAllowedPacketOverflowed         Code = 1301
	SPDoesNotExist                      Code = 1305
	QueryInterrupted                    Code = 1317
	SPCondMismatch                      Code = 1319
	SPUndeclaredVar                     Code = 1327
	SPFetchNoData                       Code = 1329
	ViewNoExplain                       Code = 1345
	WrongObject                         Code = 1347
	NonUpdateableColumn                 Code = 1348
	ViewSelectVariable                  Code = 1351
	ViewSelectTmpTable                  Code = 1352
	ViewWrongList                       Code = 1353
	ViewInvalid                         Code = 1356
	NoDefaultForField                   Code = 1364
	DivisionByZero                      Code = 1365
	TruncatedWrongValueForField         Code = 1366
	IllegalValueForType                 Code = 1367
	ViewNonUpdCheck                     Code = 1368
	ViewCheckFailed                     Code = 1369
	ProcAccessDeniedError               Code = 1370
	UnknownTargetBinlog                 Code = 1373
	LogInUse                            Code = 1378
	NoBinaryLogging                     Code = 1381
	PSManyParam                         Code = 1390
	KeyPart0                            Code = 1391
	ViewMultiUpdate                     Code = 1393
	ViewDeleteMergeView                 Code = 1395
	CannotUser                          Code = 1396
	DataTooLong                         Code = 1406
	SPBadSQLState                       Code = 1407
	CantCreateUserWithGrant             Code = 1410
	WrongValueForType                   Code = 1411
	TableDefChanged                     Code = 1412
	StmtHasNoOpenCursor                 Code = 1421
	NoDefaultForViewField               Code = 1423
	TooBigScale                         Code = 1425
	TooBigPrecision                     Code = 1426
	MBiggerThanD                        Code = 1427
	StackOverrunNeedMore                Code = 1436
	TooBigDisplayWidth                  Code = 1439
	DatetimeFunctionOverflow            Code = 1441
	NoSuchUser                          Code = 1449
	ForbidSchemaChange                  Code = 1450
	RowIsReferenced2                    Code = 1451
	NoReferencedRow2                    Code = 1452
	MaxPreparedStmtCountReached         Code = 1461
	AutoIncReadFailed                   Code = 1467
	WrongStringLength                   Code = 1470
	NonInsertableTable                  Code = 1471
	TooHighLevelOfNestingForSelect      Code = 1473
	AmbiguousFieldTerm                  Code = 1475
	IllegalHACreateOption               Code = 1478
	PluginIsNotLoaded                   Code = 1524
	WrongValue                          Code = 1525
	DropIndexFK                         Code = 1553
	CantChangeTxCharacteristics         Code = 1568
	WrongParamCountToNativeFct          Code = 1582
	WrongParametersToNativeFct          Code = 1583
	WarnOptionIgnored                   Code = 1618
	TooLongTableComment                 Code = 1628
	TooLongFieldComment                 Code = 1629
	FuncInexistentNameCollision         Code = 1630
	WarnNonASCIISeparatorNotImplemented Code = 1638
	DupSignalSet                        Code = 1641
	SignalWarn                          Code = 1642
	SignalNotFound                      Code = 1643
	SignalException                     Code = 1644
	ResignalWithoutActiveHandler        Code = 1645
	WarnCondItemTruncated               Code = 1647
	CondItemTooLong                     Code = 1648
	UnknownLocale                       Code = 1649
	WarnDeprecatedSyntaxNoReplacement   Code = 1681
	TooLongIndexComment                 Code = 1688
	DataOutOfRange                      Code = 1690
	TruncateIllegalFK                   Code = 1701
	MultiUpdateKeyConflict              Code = 1706
	DAInvalidConditionNumber            Code = 1758
	MalformedGTIDSetSpecification       Code = 1772
	UnknownExplainFormat                Code = 1791
	CantExecuteInReadOnlyTransaction    Code = 1792
	InnoDBOnlineLogTooBig               Code = 1799
	UnknownAlterAlgorithm               Code = 1800
	InvalidYearColumnLength             Code = 1818
	NotValidPassword                    Code = 1819
	MustChangePassword                  Code = 1820
	FKNoIndexParent                     Code = 1822
	FKCannotOpenParent                  Code = 1824
	FKDupName                           Code = 1826
	PasswordFormat                      Code = 1827
	FKColumnCannotDrop                  Code = 1828
	FKColumnCannotDropChild             Code = 1829
	FKColumnNotNull                     Code = 1830
	MalformedPacket                     Code = 1835
	AlterOperationNotSupported          Code = 1845
	AlterOperationNotSupportedReason    Code = 1846
	MustChangePasswordLogin             Code = 1862
	AESInvalidIV                        Code = 1882
)

var rows1200 = []row{
	{TooManyUserConnections, "ER_TOO_MANY_USER_CONNECTIONS", "42000",
		"User %s already has more than 'max_user_connections' active connections"},
	{LockWaitTimeout, "ER_LOCK_WAIT_TIMEOUT", "HY000", "Lock wait timeout exceeded; try restarting transaction"},
	{LockTableFull, "ER_LOCK_TABLE_FULL", "HY000", "The total number of locks exceeds the lock table size"},
	{1207, "ER_READ_ONLY_TRANSACTION", "25000", ""},
	{WrongArguments, "ER_WRONG_ARGUMENTS", "HY000", "Incorrect arguments to %s"},
	{1211, "ER_NO_PERMISSION_TO_CREATE_USER", "42000", ""},
	{LockDeadlock, "ER_LOCK_DEADLOCK", "40001", "Deadlock found when trying to get lock; try restarting transaction"},
	{CannotAddForeign, "ER_CANNOT_ADD_FOREIGN", "HY000", "Cannot add foreign key constraint"},
	{1216, "ER_NO_REFERENCED_ROW", "23000", ""},
	{1217, "ER_ROW_IS_REFERENCED", "23000", ""},
	{1218, "ER_CONNECT_TO_SOURCE", "08S01", ""},
	{WrongUsage, "ER_WRONG_USAGE", "HY000", "Incorrect usage of %s and %s"},
	{WrongNumberOfColumnsInSelect, "ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT", "21000",
		"The used SELECT statements have a different number of columns"},
	{CantUpdateWithReadLock, "ER_CANT_UPDATE_WITH_READLOCK", "HY000",
		"Can't execute the query because you have a conflicting read lock"},
	{DupArgument, "ER_DUP_ARGUMENT", "HY000", "Option '%s' used twice in statement"},
	{UserLimitReached, "ER_USER_LIMIT_REACHED", "42000",
		"User '%s' has exceeded the '%s' resource (current value: %d)"},
	{SpecificAccessDeniedError, "ER_SPECIFIC_ACCESS_DENIED_ERROR", "42000",
		"Access denied; you need (at least one of) the %s privilege(s) for this operation"},
	{LocalVariable, "ER_LOCAL_VARIABLE", "HY000",
		"Variable '%s' is a SESSION variable and can't be used with SET GLOBAL"},
	{GlobalVariable, "ER_GLOBAL_VARIABLE", "HY000",
		"Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL"},
	{1230, "ER_NO_DEFAULT", "42000", ""},
	{WrongValueForVar, "ER_WRONG_VALUE_FOR_VAR", "42000", "Variable '%s' can't be set to the value of '%s'"},
	{WrongTypeForVar, "ER_WRONG_TYPE_FOR_VAR", "42000", "Incorrect argument type to variable '%s'"},
	{1234, "ER_CANT_USE_OPTION_HERE", "42000", ""},
	{NotSupportedYet, "ER_NOT_SUPPORTED_YET", "42000", "This version of Trireme doesn't yet support '%s'"},
	{IncorrectGlobalLocalVar, "ER_INCORRECT_GLOBAL_LOCAL_VAR", "HY000", "Variable '%s' is a %s variable"},
	{WrongFKDef, "ER_WRONG_FK_DEF", "42000", "Incorrect foreign key definition for '%s': %s"},
	{OperandColumns, "ER_OPERAND_COLUMNS", "21000", "Operand should contain %d column(s)"},
	{SubqueryNo1Row, "ER_SUBQUERY_NO_1_ROW", "21000", "Subquery returns more than 1 row"},
	{UnknownStmtHandler, "ER_UNKNOWN_STMT_HANDLER", "HY000", "Unknown prepared statement handler (%s) given to %s"},
	{AutoConvert, "ER_AUTO_CONVERT", "HY000", "Converting column '%s' from %s to %s"},
	{IllegalReference, "ER_ILLEGAL_REFERENCE", "42S22", "Reference '%s' not supported (%s)"},
	{DerivedMustHaveAlias, "ER_DERIVED_MUST_HAVE_ALIAS", "42000", "Every derived table must have its own alias"},
	{1249, "ER_SELECT_REDUCED", "01000", ""},
	{TableNameNotAllowedHere, "ER_TABLENAME_NOT_ALLOWED_HERE", "42000",
		"Table '%s' from one of the SELECTs cannot be used in %s"},
	{NotSupportedAuthMode, "ER_NOT_SUPPORTED_AUTH_MODE", "08004",
		"Client does not support authentication protocol requested by server; consider upgrading MySQL client"},
	{1252, "ER_SPATIAL_CANT_HAVE_NULL", "42000", ""},
	{CollationCharsetMismatch, "ER_COLLATION_CHARSET_MISMATCH", "42000",
		"COLLATION '%s' is not valid for CHARACTER SET '%s'"},
	{TooBigForUncompress, "ER_TOO_BIG_FOR_UNCOMPRESS", "HY000",
		"Uncompressed data size too large; the maximum size is %d (probably, length of uncompressed data was " +
			"corrupted)"},
	{ZLIBZDataError, "ER_ZLIB_Z_DATA_ERROR", "HY000", "ZLIB: Input data corrupted"},
	{CutValueGroupConcat, "ER_CUT_VALUE_GROUP_CONCAT", "HY000", "Row %d was cut by GROUP_CONCAT()"},
	{WarnTooFewRecords, "ER_WARN_TOO_FEW_RECORDS", "01000", "Row %d doesn't contain data for all columns"},
	{WarnTooManyRecords, "ER_WARN_TOO_MANY_RECORDS", "01000",
		"Row %d was truncated; it contained more data than there were input columns"},
	{1263, "ER_WARN_NULL_TO_NOTNULL", "22004", ""},
	{WarnDataOutOfRange, "ER_WARN_DATA_OUT_OF_RANGE", "22003", "Out of range value for column '%s' at row %d"},
	{WarnDataTruncated, "WARN_DATA_TRUNCATED", "01000", "Data truncated for column '%s' at row %d"},
	{WarnUsingOtherHandler, "ER_WARN_USING_OTHER_HANDLER", "HY000", "Using storage engine %s for table '%s'"},
	{CantAggregate2Collations, "ER_CANT_AGGREGATE_2COLLATIONS", "HY000",
		"Illegal mix of collations %s and %s for operation '%s'"},
	{RevokeGrants, "ER_REVOKE_GRANTS", "HY000", "Can't revoke all privileges for one or more of the requested users"},
	{CantAggregate3Collations, "ER_CANT_AGGREGATE_3COLLATIONS", "HY000",
		"Illegal mix of collations %s, %s, %s for operation '%s'"},
	{CantAggregateNCollations, "ER_CANT_AGGREGATE_NCOLLATIONS", "HY000",
		"Illegal mix of collations for operation '%s'"},
	{UnknownCollation, "ER_UNKNOWN_COLLATION", "HY000", "Unknown collation: '%s'"},
	{1279, "ER_UNTIL_COND_IGNORED", "42000", ""},
	{WrongNameForIndex, "ER_WRONG_NAME_FOR_INDEX", "42000", "Incorrect index name '%s'"},
	{1281, "ER_WRONG_NAME_FOR_CATALOG", "42000", ""},
	{UnknownKeyCache, "ER_UNKNOWN_KEY_CACHE", "HY000", "Unknown key cache '%s'"},
	{UnknownStorageEngine, "ER_UNKNOWN_STORAGE_ENGINE", "42000", "Unknown storage engine '%s'"},
	{NonUpdatableTable, "ER_NON_UPDATABLE_TABLE", "HY000", "The target table %s of the %s is not updatable"},
	{OptionPreventsStatement, "ER_OPTION_PREVENTS_STATEMENT", "HY000",
		"The MySQL server is running with the %s option so it cannot execute this statement"},
	{DuplicatedValueInType, "ER_DUPLICATED_VALUE_IN_TYPE", "HY000", "Column '%s' has duplicated value '%s' in %s"},
	{TruncatedWrongValue, "ER_TRUNCATED_WRONG_VALUE", "22007", "Truncated incorrect %s value: '%s'"},
	{InvalidOnUpdate, "ER_INVALID_ON_UPDATE", "HY000", "Invalid ON UPDATE clause for '%s' column"},
	{UnsupportedPS, "ER_UNSUPPORTED_PS", "HY000",
		"This command is not supported in the prepared statement protocol yet"},
	{UnknownTimeZone, "ER_UNKNOWN_TIME_ZONE", "HY000", "Unknown or incorrect time zone: '%s'"},
	{InvalidCharacterString, "ER_INVALID_CHARACTER_STRING", "HY000", "Invalid %s character string: '%.64s'"},
	{WarnAllowedPacketOverflowed, "ER_WARN_ALLOWED_PACKET_OVERFLOWED", "HY000",
		"Result of %s() was larger than max_allowed_packet (%d) - truncated"},
	{1303, "ER_SP_NO_RECURSIVE_CREATE", "2F003", ""},
	{1304, "ER_SP_ALREADY_EXISTS", "42000", ""},
	{SPDoesNotExist, "ER_SP_DOES_NOT_EXIST", "42000", "%s %s does not exist"},
	{1308, "ER_SP_LILABEL_MISMATCH", "42000", ""},
	{1309, "ER_SP_LABEL_REDEFINE", "42000", ""},
	{1310, "ER_SP_LABEL_MISMATCH", "42000", ""},
	{1311, "ER_SP_UNINIT_VAR", "01000", ""},
	{1312, "ER_SP_BADSELECT", "0A000", ""},
	{1313, "ER_SP_BADRETURN", "42000", ""},
	{1314, "ER_SP_BADSTATEMENT", "0A000", ""},
	{1315, "ER_UPDATE_LOG_DEPRECATED_IGNORED", "42000", ""},
	{QueryInterrupted, "ER_QUERY_INTERRUPTED", "70100", "Query execution was interrupted"},
	{1318, "ER_SP_WRONG_NO_OF_ARGS", "42000", ""},
	{SPCondMismatch, "ER_SP_COND_MISMATCH", "42000", "Undefined CONDITION: %s"},
	{1322, "ER_SP_BAD_CURSOR_QUERY", "42000", ""},
	{1323, "ER_SP_BAD_CURSOR_SELECT", "42000", ""},
	{1324, "ER_SP_CURSOR_MISMATCH", "42000", ""},
	{1325, "ER_SP_CURSOR_ALREADY_OPEN", "24000", ""},
	{1326, "ER_SP_CURSOR_NOT_OPEN", "24000", ""},
	{SPUndeclaredVar, "ER_SP_UNDECLARED_VAR", "42000", "Undeclared variable: %s"},
	{SPFetchNoData, "ER_SP_FETCH_NO_DATA", "02000", "No data - zero rows fetched, selected, or processed"},
	{1330, "ER_SP_DUP_PARAM", "42000", ""},
	{1331, "ER_SP_DUP_VAR", "42000", ""},
	{1332, "ER_SP_DUP_COND", "42000", ""},
	{1333, "ER_SP_DUP_CURS", "42000", ""},
	{1335, "ER_SP_SUBSELECT_NYI", "0A000", ""},
	{1336, "ER_STMT_NOT_ALLOWED_IN_SF_OR_TRG", "0A000", ""},
	{1337, "ER_SP_VARCOND_AFTER_CURSHNDLR", "42000", ""},
	{1338, "ER_SP_CURSOR_AFTER_HANDLER", "42000", ""},
	{1339, "ER_SP_CASE_NOT_FOUND", "20000", ""},
	{ViewNoExplain, "ER_VIEW_NO_EXPLAIN", "HY000",
		"EXPLAIN/SHOW can not be issued; lacking privileges for underlying table"},
	{WrongObject, "ER_WRONG_OBJECT", "HY000", "'%s.%s' is not %s"},
	{NonUpdateableColumn, "ER_NONUPDATEABLE_COLUMN", "HY000", "Column '%s' is not updatable"},
	{ViewSelectVariable, "ER_VIEW_SELECT_VARIABLE", "HY000", "View's SELECT contains a variable or parameter"},
	{ViewSelectTmpTable, "ER_VIEW_SELECT_TMPTABLE", "HY000", "View's SELECT refers to a temporary table '%s'"},
	{ViewWrongList, "ER_VIEW_WRONG_LIST", "HY000",
		"In definition of view, derived table or common table expression, SELECT list and column names list have " +
			"different column counts"},
	{ViewInvalid, "ER_VIEW_INVALID", "HY000",
		"View '%s' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights " +
			"to use them"},
	{NoDefaultForField, "ER_NO_DEFAULT_FOR_FIELD", "HY000", "Field '%s' doesn't have a default value"},
	{DivisionByZero, "ER_DIVISION_BY_ZERO", "22012", "Division by 0"},
	{TruncatedWrongValueForField, "ER_TRUNCATED_WRONG_VALUE_FOR_FIELD", "HY000",
		"Incorrect %s value: '%s' for column '%s' at row %d"},
	{IllegalValueForType, "ER_ILLEGAL_VALUE_FOR_TYPE", "22007", "Illegal %s '%s' value found during parsing"},
	{ViewNonUpdCheck, "ER_VIEW_NONUPD_CHECK", "HY000", "CHECK OPTION on non-updatable view '%s.%s'"},
	{ViewCheckFailed, "ER_VIEW_CHECK_FAILED", "HY000", "CHECK OPTION failed '%s'"},
	{ProcAccessDeniedError, "ER_PROCACCESS_DENIED_ERROR", "42000",
		"%s command denied to user '%s'@'%s' for routine '%s'"},
	{UnknownTargetBinlog, "ER_UNKNOWN_TARGET_BINLOG", "HY000", "Target log not found in binlog index"},
	{LogInUse, "ER_LOG_IN_USE", "HY000", "A purgeable log is in use, will not purge"},
	{NoBinaryLogging, "ER_NO_BINARY_LOGGING", "HY000", "You are not using binary logging"},
	{PSManyParam, "ER_PS_MANY_PARAM", "HY000", "Prepared statement contains too many placeholders"},
	{KeyPart0, "ER_KEY_PART_0", "HY000", "Key part '%s' length cannot be 0"},
	{ViewMultiUpdate, "ER_VIEW_MULTIUPDATE", "HY000",
		"Can not modify more than one base table through a join view '%s.%s'"},
	{ViewDeleteMergeView, "ER_VIEW_DELETE_MERGE_VIEW", "HY000", "Can not delete from join view '%s.%s'"},
	{CannotUser, "ER_CANNOT_USER", "HY000", "Operation %s failed for %s"},
	{1397, "ER_XAER_NOTA", "XAE04", ""},
	{1398, "ER_XAER_INVAL", "XAE05", ""},
	{1399, "ER_XAER_RMFAIL", "XAE07", ""},
	{1400, "ER_XAER_OUTSIDE", "XAE09", ""},
	{1401, "ER_XAER_RMERR", "XAE03", ""},
	{1402, "ER_XA_RBROLLBACK", "XA100", ""},
	{1403, "ER_NONEXISTING_PROC_GRANT", "42000", ""},
	{DataTooLong, "ER_DATA_TOO_LONG", "22001", "Data too long for column '%s' at row %d"},
	{SPBadSQLState, "ER_SP_BAD_SQLSTATE", "42000", "Bad SQLSTATE: '%s'"},
	{CantCreateUserWithGrant, "ER_CANT_CREATE_USER_WITH_GRANT", "42000",
		"You are not allowed to create a user with GRANT"},
	{WrongValueForType, "ER_WRONG_VALUE_FOR_TYPE", "HY000", "Incorrect %s value: '%s' for function %s"},
	{TableDefChanged, "ER_TABLE_DEF_CHANGED", "HY000", "Table definition has changed, please retry transaction"},
	{1413, "ER_SP_DUP_HANDLER", "42000", ""},
	{1414, "ER_SP_NOT_VAR_ARG", "42000", ""},
	{1415, "ER_SP_NO_RETSET", "0A000", ""},
	{1416, "ER_CANT_CREATE_GEOMETRY_OBJECT", "22003", ""},
	{StmtHasNoOpenCursor, "ER_STMT_HAS_NO_OPEN_CURSOR", "HY000", "The statement (%d) has no open cursor."},
	{NoDefaultForViewField, "ER_NO_DEFAULT_FOR_VIEW_FIELD", "HY000",
		"Field of view '%s' underlying table doesn't have a default value"},
	{TooBigScale, "ER_TOO_BIG_SCALE", "42000", "Too big scale %d specified for column '%s'. Maximum is %d."},
	{TooBigPrecision, "ER_TOO_BIG_PRECISION", "42000", "Too-big precision %d specified for '%s'. Maximum is %d."},
	{MBiggerThanD, "ER_M_BIGGER_THAN_D", "42000",
		"For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '%s')."},
	{StackOverrunNeedMore, "ER_STACK_OVERRUN_NEED_MORE", "HY000",
		"Thread stack overrun:  %d bytes used of a %d byte stack, and %d bytes needed.  Use 'mysqld " +
			"--thread_stack=#' to specify a bigger stack."},
	{1437, "ER_TOO_LONG_BODY", "42000", ""},
	{TooBigDisplayWidth, "ER_TOO_BIG_DISPLAYWIDTH", "42000", "Display width out of range for column '%s' (max = %d)"},
	{1440, "ER_XAER_DUPID", "XAE08", ""},
	{DatetimeFunctionOverflow, "ER_DATETIME_FUNCTION_OVERFLOW", "22008", "Datetime function: %s field overflow"},
	{NoSuchUser, "ER_NO_SUCH_USER", "HY000", "The user specified as a definer (%s) does not exist"},
	{ForbidSchemaChange, "ER_FORBID_SCHEMA_CHANGE", "HY000", "Changing schema from '%s' to '%s' is not allowed."},
	{RowIsReferenced2, "ER_ROW_IS_REFERENCED_2", "23000",
		"Cannot delete or update a parent row: a foreign key constraint fails (%s)"},
	{NoReferencedRow2, "ER_NO_REFERENCED_ROW_2", "23000",
		"Cannot add or update a child row: a foreign key constraint fails (%s)"},
	{1453, "ER_SP_BAD_VAR_SHADOW", "42000", ""},
	{1458, "ER_SP_WRONG_NAME", "42000", ""},
	{1460, "ER_SP_NO_AGGREGATE", "42000", ""},
	{MaxPreparedStmtCountReached, "ER_MAX_PREPARED_STMT_COUNT_REACHED", "42000",
		"Can't create more than max_prepared_stmt_count statements (current value: %d)"},
	{1463, "ER_NON_GROUPING_FIELD_USED", "42000", ""},
	{AutoIncReadFailed, "ER_AUTOINC_READ_FAILED", "HY000", "Failed to read auto-increment value from storage engine"},
	{WrongStringLength, "ER_WRONG_STRING_LENGTH", "HY000",
		"String '%s' is too long for %s (should be no longer than %d)"},
	{NonInsertableTable, "ER_NON_INSERTABLE_TABLE", "HY000", "The target table %s of the %s is not insertable-into"},
	{TooHighLevelOfNestingForSelect, "ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT", "HY000",
		"Too high level of nesting for select"},
	{AmbiguousFieldTerm, "ER_AMBIGUOUS_FIELD_TERM", "HY000",
		"First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and non-empty FIELDS " +
			"ENCLOSED BY"},
	{IllegalHACreateOption, "ER_ILLEGAL_HA_CREATE_OPTION", "HY000",
		"Table storage engine '%s' does not support the create option '%s'"},
	{PluginIsNotLoaded, "ER_PLUGIN_IS_NOT_LOADED", "HY000", "Plugin '%s' is not loaded"},
	{WrongValue, "ER_WRONG_VALUE", "HY000", "Incorrect %s value: '%s'"},
	{DropIndexFK, "ER_DROP_INDEX_FK", "HY000", "Cannot drop index '%s': needed in a foreign key constraint"},
	{CantChangeTxCharacteristics, "ER_CANT_CHANGE_TX_CHARACTERISTICS", "25001",
		"Transaction characteristics can't be changed while a transaction is in progress"},
	{WrongParamCountToNativeFct, "ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT", "42000",
		"Incorrect parameter count in the call to native function '%s'"},
	{WrongParametersToNativeFct, "ER_WRONG_PARAMETERS_TO_NATIVE_FCT", "42000",
		"Incorrect parameters in the call to native function '%s'"},
	{1584, "ER_WRONG_PARAMETERS_TO_STORED_FCT", "42000", ""},
	{1586, "ER_DUP_ENTRY_WITH_KEY_NAME", "23000", ""},
	{WarnOptionIgnored, "WARN_OPTION_IGNORED", "HY000", "<%s> option ignored"},
	{TooLongTableComment, "ER_TOO_LONG_TABLE_COMMENT", "HY000", "Comment for table '%s' is too long (max = %d)"},
	{TooLongFieldComment, "ER_TOO_LONG_FIELD_COMMENT", "HY000", "Comment for field '%s' is too long (max = %d)"},
	{FuncInexistentNameCollision, "ER_FUNC_INEXISTENT_NAME_COLLISION", "42000",
		"FUNCTION %s does not exist. Check the 'Function Name Parsing and Resolution' section in the Reference " +
			"Manual"},
	{WarnNonASCIISeparatorNotImplemented, "WARN_NON_ASCII_SEPARATOR_NOT_IMPLEMENTED", "HY000",
		"Non-ASCII separator arguments are not fully supported"},
	{DupSignalSet, "ER_DUP_SIGNAL_SET", "42000", "Duplicate condition information item '%s'"},
	{SignalWarn, "ER_SIGNAL_WARN", "01000", "Unhandled user-defined warning condition"},
	{SignalNotFound, "ER_SIGNAL_NOT_FOUND", "02000", "Unhandled user-defined not found condition"},
	{SignalException, "ER_SIGNAL_EXCEPTION", "HY000", "Unhandled user-defined exception condition"},
	{ResignalWithoutActiveHandler, "ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER", "0K000", "RESIGNAL when handler not active"},
	{WarnCondItemTruncated, "WARN_COND_ITEM_TRUNCATED", "HY000", "Data truncated for condition item '%s'"},
	{CondItemTooLong, "ER_COND_ITEM_TOO_LONG", "HY000", "Data too long for condition item '%s'"},
	{UnknownLocale, "ER_UNKNOWN_LOCALE", "HY000", "Unknown locale: '%s'"},
	{WarnDeprecatedSyntaxNoReplacement, "ER_WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT", "HY000",
		"'%s' is deprecated and will be removed in a future release."},
	{1687, "ER_SPATIAL_MUST_HAVE_GEOM_COL", "42000", ""},
	{TooLongIndexComment, "ER_TOO_LONG_INDEX_COMMENT", "HY000", "Comment for index '%s' is too long (max = %d)"},
	{DataOutOfRange, "ER_DATA_OUT_OF_RANGE", "22003", "%s value is out of range in '%s'"},
	{TruncateIllegalFK, "ER_TRUNCATE_ILLEGAL_FK", "42000",
		"Cannot truncate a table referenced in a foreign key constraint (%s)"},
	{MultiUpdateKeyConflict, "ER_MULTI_UPDATE_KEY_CONFLICT", "HY000",
		"Primary key/partition key update is not allowed since the table is updated both as '%s' and '%s'."},
	{DAInvalidConditionNumber, "ER_DA_INVALID_CONDITION_NUMBER", "35000", "Invalid condition number"},
	{1761, "ER_FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO", "23000", ""},
	{1762, "ER_FOREIGN_DUPLICATE_KEY_WITHOUT_CHILD_INFO", "23000", ""},
	{MalformedGTIDSetSpecification, "ER_MALFORMED_GTID_SET_SPECIFICATION", "HY000",
		"Malformed GTID set specification '%.200s'."},
	{UnknownExplainFormat, "ER_UNKNOWN_EXPLAIN_FORMAT", "HY000", "Unknown EXPLAIN format name: '%.80s'"},
	{CantExecuteInReadOnlyTransaction, "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", "25006",
		"Cannot execute statement in a READ ONLY transaction."},
	{InnoDBOnlineLogTooBig, "ER_INNODB_ONLINE_LOG_TOO_BIG", "HY000",
		"Creating index '%s' required more than 'innodb_online_alter_log_max_size' bytes of modification log. " +
			"Please try again."},
	{UnknownAlterAlgorithm, "ER_UNKNOWN_ALTER_ALGORITHM", "HY000", "Unknown ALGORITHM '%s'"},
	{InvalidYearColumnLength, "ER_INVALID_YEAR_COLUMN_LENGTH", "HY000", "Supports only YEAR or YEAR(4) column."},
	{NotValidPassword, "ER_NOT_VALID_PASSWORD", "HY000",
		"Your password does not satisfy the current policy requirements"},
	{MustChangePassword, "ER_MUST_CHANGE_PASSWORD", "HY000",
		"You must reset your password using ALTER USER statement before executing this statement."},
	{FKNoIndexParent, "ER_FK_NO_INDEX_PARENT", "HY000",
		"Failed to add the foreign key constraint. Missing index for constraint '%s' in the referenced table '%s'"},
	{FKCannotOpenParent, "ER_FK_CANNOT_OPEN_PARENT", "HY000", "Failed to open the referenced table '%s'"},
	{FKDupName, "ER_FK_DUP_NAME", "HY000", "Duplicate foreign key constraint name '%s'"},
	{PasswordFormat, "ER_PASSWORD_FORMAT", "HY000", "The password hash doesn't have the expected format."},
	{FKColumnCannotDrop, "ER_FK_COLUMN_CANNOT_DROP", "HY000",
		"Cannot drop column '%s': needed in a foreign key constraint '%s'"},
	{FKColumnCannotDropChild, "ER_FK_COLUMN_CANNOT_DROP_CHILD", "HY000",
		"Cannot drop column '%s': needed in a foreign key constraint '%s' of table '%s'"},
	{FKColumnNotNull, "ER_FK_COLUMN_NOT_NULL", "HY000",
		"Column '%s' cannot be NOT NULL: needed in a foreign key constraint '%s' SET NULL"},
	{MalformedPacket, "ER_MALFORMED_PACKET", "HY000", "Malformed communication packet."},
	{AlterOperationNotSupported, "ER_ALTER_OPERATION_NOT_SUPPORTED", "0A000",
		"%s is not supported for this operation. Try %s."},
	{AlterOperationNotSupportedReason, "ER_ALTER_OPERATION_NOT_SUPPORTED_REASON", "0A000",
		"%s is not supported. Reason: %s. Try %s."},
	{1859, "ER_DUP_UNKNOWN_IN_INDEX", "23000", ""},
	{MustChangePasswordLogin, "ER_MUST_CHANGE_PASSWORD_LOGIN", "HY000",
		"Your password has expired. To log in you must change it using a client that supports expired passwords."},
	{1873, "ER_ACCESS_DENIED_CHANGE_USER_ERROR", "28000", ""},
	{AESInvalidIV, "ER_AES_INVALID_IV", "HY000",
		"The initialization vector supplied to %s is too short. Must be at least %d bytes long"},
}
