package sqlerr

const (
	EECantCreateFile           Code = 1
	EERead                     Code = 2
	EEWrite                    Code = 3
	EEFileNotFound             Code = 29
	DBCreateExists             Code = 1007
	DBDropExists               Code = 1008
	DBDropRmdir                Code = 1010
	IllegalHA                  Code = 1031
	ConCountError              Code = 1040
	OutOfResources             Code = 1041
	HandshakeError             Code = 1043
	DBAccessDeniedError        Code = 1044
	AccessDeniedError          Code = 1045
	NoDBError                  Code = 1046
	UnknownComError            Code = 1047
	BadNullError               Code = 1048
	BadDBError                 Code = 1049
	TableExistsError           Code = 1050
	BadTableError              Code = 1051
	NonUniqError               Code = 1052
	ServerShutdown             Code = 1053
	BadFieldError              Code = 1054
	WrongFieldWithGroup        Code = 1055
	WrongGroupField            Code = 1056
	TooLongIdent               Code = 1059
	DupFieldName               Code = 1060
	DupKeyName                 Code = 1061
	DupEntry                   Code = 1062
	WrongFieldSpec             Code = 1063
	ParseError                 Code = 1064
	EmptyQuery                 Code = 1065
	NonUniqTable               Code = 1066
	InvalidDefault             Code = 1067
	MultiplePriKey             Code = 1068
	TooManyKeys                Code = 1069
	TooManyKeyParts            Code = 1070
	TooLongKey                 Code = 1071
	KeyColumnDoesNotExits      Code = 1072
	TooBigFieldLength          Code = 1074
	WrongAutoKey               Code = 1075
	WrongFieldTerminators      Code = 1083
	FileExistsError            Code = 1086
	WrongSubKey                Code = 1089
	CantRemoveAllFields        Code = 1090
	CantDropFieldOrKey         Code = 1091
	UpdateTableUsed            Code = 1093
	NoSuchThread               Code = 1094
	KillDeniedError            Code = 1095
	NoTablesUsed               Code = 1096
	TooBigSet                  Code = 1097
	TableNotLockedForWrite     Code = 1099
	TableNotLocked             Code = 1100
	BlobCantHaveDefault        Code = 1101
	WrongDBName                Code = 1102
	WrongTableName             Code = 1103
	UnknownError               Code = 1105
	UnknownTable               Code = 1109
	FieldSpecifiedTwice        Code = 1110
	InvalidGroupFuncUse        Code = 1111
	UnsupportedExtension       Code = 1112
	TableMustHaveColumns       Code = 1113
	RecordFileFull             Code = 1114
	UnknownCharacterSet        Code = 1115
	TooManyTables              Code = 1116
	TooManyFields              Code = 1117
	TooBigRowSize              Code = 1118
	CantOpenLibrary            Code = 1126
	PasswordNoMatch            Code = 1133
	WrongValueCountOnRow       Code = 1136
	InvalidUseOfNull           Code = 1138
	MixOfGroupFuncAndFields    Code = 1140
	NonExistingGrant           Code = 1141
	TableAccessDeniedError     Code = 1142
	ColumnAccessDeniedError    Code = 1143
	IllegalGrantForTable       Code = 1144
	NoSuchTable                Code = 1146
	NonExistingTableGrant      Code = 1147
	SyntaxError                Code = 1149
	NetPacketTooLarge          Code = 1153
	NetPacketsOutOfOrder       Code = 1156
	NetReadInterrupted         Code = 1159
	NetWriteInterrupted        Code = 1161
	WrongColumnName            Code = 1166
	BlobKeyWithoutLength       Code = 1170
	PrimaryCantHaveNull        Code = 1171
	TooManyRows                Code = 1172
	UpdateWithoutKeyInSafeMode Code = 1175
	KeyDoesNotExits            Code = 1176
	ErrorDuringCommit          Code = 1180
	LockOrActiveTransaction    Code = 1192
	UnknownSystemVariable      Code = 1193
	TransCacheFull             Code = 1197
)

var rows1000 = []row{
	{EECantCreateFile, "EE_CANTCREATEFILE", "HY000", "Can't create/write to file '%s' (OS errno %d - %s)"},
	{EERead, "EE_READ", "HY000", "Error reading file '%s' (OS errno %d - %s)"},
	{EEWrite, "EE_WRITE", "HY000", "Error writing file '%s' (OS errno %d - %s)"},
	{EEFileNotFound, "EE_FILENOTFOUND", "HY000", "File '%s' not found (OS errno %d - %s)"},
	{DBCreateExists, "ER_DB_CREATE_EXISTS", "HY000", "Can't create database '%s'; database exists"},
	{DBDropExists, "ER_DB_DROP_EXISTS", "HY000", "Can't drop database '%s'; database doesn't exist"},
	{DBDropRmdir, "ER_DB_DROP_RMDIR", "HY000", "Error dropping database (can't rmdir '%s', errno: %d - %s)"},
	{1022, "ER_DUP_KEY", "23000", ""},
	{IllegalHA, "ER_ILLEGAL_HA", "HY000", "Table storage engine for '%s' doesn't have this option"},
	{1037, "ER_OUTOFMEMORY", "HY001", ""},
	{1038, "ER_OUT_OF_SORTMEMORY", "HY001", ""},
	{ConCountError, "ER_CON_COUNT_ERROR", "08004", "Too many connections"},
	{OutOfResources, "ER_OUT_OF_RESOURCES", "HY000",
		"Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to " +
			"use 'ulimit' to allow mysqld to use more memory or you can add more swap space"},
	{1042, "ER_BAD_HOST_ERROR", "08S01", ""},
	{HandshakeError, "ER_HANDSHAKE_ERROR", "08S01", "Bad handshake"},
	{DBAccessDeniedError, "ER_DBACCESS_DENIED_ERROR", "42000", "Access denied for user '%s'@'%s' to database '%s'"},
	{AccessDeniedError, "ER_ACCESS_DENIED_ERROR", "28000", "Access denied for user '%s'@'%s' (using password: %s)"},
	{NoDBError, "ER_NO_DB_ERROR", "3D000", "No database selected"},
	{UnknownComError, "ER_UNKNOWN_COM_ERROR", "08S01", "Unknown command"},
	{BadNullError, "ER_BAD_NULL_ERROR", "23000", "Column '%s' cannot be null"},
	{BadDBError, "ER_BAD_DB_ERROR", "42000", "Unknown database '%s'"},
	{TableExistsError, "ER_TABLE_EXISTS_ERROR", "42S01", "Table '%s' already exists"},
	{BadTableError, "ER_BAD_TABLE_ERROR", "42S02", "Unknown table '%s'"},
	{NonUniqError, "ER_NON_UNIQ_ERROR", "23000", "Column '%s' in %s is ambiguous"},
	{ServerShutdown, "ER_SERVER_SHUTDOWN", "08S01", "Server shutdown in progress"},
	{BadFieldError, "ER_BAD_FIELD_ERROR", "42S22", "Unknown column '%s' in '%s'"},
	{WrongFieldWithGroup, "ER_WRONG_FIELD_WITH_GROUP", "42000",
		"Expression #%d of %s is not in GROUP BY clause and contains nonaggregated column '%s' which is not " +
			"functionally dependent on columns in GROUP BY clause; this is incompatible with " +
			"sql_mode=only_full_group_by"},
	{WrongGroupField, "ER_WRONG_GROUP_FIELD", "42000", "Can't group on '%s'"},
	{1057, "ER_WRONG_SUM_SELECT", "42000", ""},
	{1058, "ER_WRONG_VALUE_COUNT", "21S01", ""},
	{TooLongIdent, "ER_TOO_LONG_IDENT", "42000", "Identifier name '%s' is too long"},
	{DupFieldName, "ER_DUP_FIELDNAME", "42S21", "Duplicate column name '%s'"},
	{DupKeyName, "ER_DUP_KEYNAME", "42000", "Duplicate key name '%s'"},
	{DupEntry, "ER_DUP_ENTRY", "23000", "Duplicate entry '%s' for key '%s'"},
	{WrongFieldSpec, "ER_WRONG_FIELD_SPEC", "42000", "Incorrect column specifier for column '%s'"},
	{ParseError, "ER_PARSE_ERROR", "42000", "%s near '%.80s' at line %d"},
	{EmptyQuery, "ER_EMPTY_QUERY", "42000", "Query was empty"},
	{NonUniqTable, "ER_NONUNIQ_TABLE", "42000", "Not unique table/alias: '%s'"},
	{InvalidDefault, "ER_INVALID_DEFAULT", "42000", "Invalid default value for '%s'"},
	{MultiplePriKey, "ER_MULTIPLE_PRI_KEY", "42000", "Multiple primary key defined"},
	{TooManyKeys, "ER_TOO_MANY_KEYS", "42000", "Too many keys specified; max %d keys allowed"},
	{TooManyKeyParts, "ER_TOO_MANY_KEY_PARTS", "42000", "Too many key parts specified; max %d parts allowed"},
	{TooLongKey, "ER_TOO_LONG_KEY", "42000", "Specified key was too long; max key length is %d bytes"},
	{KeyColumnDoesNotExits, "ER_KEY_COLUMN_DOES_NOT_EXITS", "42000", "Key column '%s' doesn't exist in table"},
	{1073, "ER_BLOB_USED_AS_KEY", "42000", ""},
	{TooBigFieldLength, "ER_TOO_BIG_FIELDLENGTH", "42000",
		"Column length too big for column '%s' (max = %d); use BLOB or TEXT instead"},
	{WrongAutoKey, "ER_WRONG_AUTO_KEY", "42000",
		"Incorrect table definition; there can be only one auto column and it must be defined as a key"},
	{1080, "ER_FORCING_CLOSE", "08S01", ""},
	{1081, "ER_IPSOCK_ERROR", "08S01", ""},
	{1082, "ER_NO_SUCH_INDEX", "42S12", ""},
	{WrongFieldTerminators, "ER_WRONG_FIELD_TERMINATORS", "42000",
		"Field separator argument is not what is expected; check the manual"},
	{1084, "ER_BLOBS_AND_NO_TERMINATED", "42000", ""},
	{FileExistsError, "ER_FILE_EXISTS_ERROR", "HY000", "File '%s' already exists"},
	{WrongSubKey, "ER_WRONG_SUB_KEY", "HY000",
		"Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or " +
			"the storage engine doesn't support unique prefix keys"},
	{CantRemoveAllFields, "ER_CANT_REMOVE_ALL_FIELDS", "42000",
		"You can't delete all columns with ALTER TABLE; use DROP TABLE instead"},
	{CantDropFieldOrKey, "ER_CANT_DROP_FIELD_OR_KEY", "42000", "Can't DROP '%s'; check that column/key exists"},
	{UpdateTableUsed, "ER_UPDATE_TABLE_USED", "HY000",
		"You can't specify target table '%s' for update in FROM clause"},
	{NoSuchThread, "ER_NO_SUCH_THREAD", "HY000", "Unknown thread id: %d"},
	{KillDeniedError, "ER_KILL_DENIED_ERROR", "HY000", "You are not owner of thread %d"},
	{NoTablesUsed, "ER_NO_TABLES_USED", "HY000", "No tables used"},
	{TooBigSet, "ER_TOO_BIG_SET", "HY000", "Too many strings for column %s and SET"},
	{TableNotLockedForWrite, "ER_TABLE_NOT_LOCKED_FOR_WRITE", "HY000",
		"Table '%s' was locked with a READ lock and can't be updated"},
	{TableNotLocked, "ER_TABLE_NOT_LOCKED", "HY000", "Table '%s' was not locked with LOCK TABLES"},
	{BlobCantHaveDefault, "ER_BLOB_CANT_HAVE_DEFAULT", "42000",
		"BLOB, TEXT, GEOMETRY or JSON column '%s' can't have a default value"},
	{WrongDBName, "ER_WRONG_DB_NAME", "42000", "Incorrect database name '%s'"},
	{WrongTableName, "ER_WRONG_TABLE_NAME", "42000", "Incorrect table name '%s'"},
	{1104, "ER_TOO_BIG_SELECT", "42000", ""},
	{UnknownError, "ER_UNKNOWN_ERROR", "HY000", "Unknown error"},
	{1106, "ER_UNKNOWN_PROCEDURE", "42000", ""},
	{1107, "ER_WRONG_PARAMCOUNT_TO_PROCEDURE", "42000", ""},
	{UnknownTable, "ER_UNKNOWN_TABLE", "42S02", "Unknown table '%s' in %s"},
	{FieldSpecifiedTwice, "ER_FIELD_SPECIFIED_TWICE", "42000", "Column '%s' specified twice"},
	{InvalidGroupFuncUse, "ER_INVALID_GROUP_FUNC_USE", "HY000", "Invalid use of group function"},
	{UnsupportedExtension, "ER_UNSUPPORTED_EXTENSION", "42000",
		"Table '%s' uses an extension that doesn't exist in this MySQL version"},
	{TableMustHaveColumns, "ER_TABLE_MUST_HAVE_COLUMNS", "42000", "A table must have at least 1 column"},
	{RecordFileFull, "ER_RECORD_FILE_FULL", "HY000", "The table '%s' is full"},
	{UnknownCharacterSet, "ER_UNKNOWN_CHARACTER_SET", "42000", "Unknown character set: '%s'"},
	{TooManyTables, "ER_TOO_MANY_TABLES", "HY000", "Too many tables; MySQL can only use %d tables in a join"},
	{TooManyFields, "ER_TOO_MANY_FIELDS", "HY000", "Too many columns"},
	{TooBigRowSize, "ER_TOO_BIG_ROWSIZE", "42000",
		"Row size too large. The maximum row size for the used table type, not counting BLOBs, is %d. This " +
			"includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"},
	{1120, "ER_WRONG_OUTER_JOIN_UNUSED", "42000", ""},
	{1121, "ER_NULL_COLUMN_IN_INDEX", "42000", ""},
	{CantOpenLibrary, "ER_CANT_OPEN_LIBRARY", "HY000", "Can't open shared library '%s' (errno: %d %s)"},
	{1131, "ER_PASSWORD_ANONYMOUS_USER", "42000", ""},
	{1132, "ER_PASSWORD_NOT_ALLOWED", "42000", ""},
	{PasswordNoMatch, "ER_PASSWORD_NO_MATCH", "42000", "Can't find any matching row in the user table"},
	{WrongValueCountOnRow, "ER_WRONG_VALUE_COUNT_ON_ROW", "21S01",
		"Column count doesn't match value count at row %d"},
	{InvalidUseOfNull, "ER_INVALID_USE_OF_NULL", "22004", "Invalid use of NULL value"},
	{1139, "ER_REGEXP_ERROR", "42000", ""},
	{MixOfGroupFuncAndFields, "ER_MIX_OF_GROUP_FUNC_AND_FIELDS", "42000",
		"In aggregated query without GROUP BY, expression #%d of %s contains nonaggregated column '%s'; this is " +
			"incompatible with sql_mode=only_full_group_by"},
	{NonExistingGrant, "ER_NONEXISTING_GRANT", "42000", "There is no such grant defined for user '%s' on host '%s'"},
	{TableAccessDeniedError, "ER_TABLEACCESS_DENIED_ERROR", "42000",
		"%s command denied to user '%s'@'%s' for table '%s'"},
	{ColumnAccessDeniedError, "ER_COLUMNACCESS_DENIED_ERROR", "42000",
		"%s command denied to user '%s'@'%s' for column '%s' in table '%s'"},
	{IllegalGrantForTable, "ER_ILLEGAL_GRANT_FOR_TABLE", "42000",
		"Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used"},
	{1145, "ER_GRANT_WRONG_HOST_OR_USER", "42000", ""},
	{NoSuchTable, "ER_NO_SUCH_TABLE", "42S02", "Table '%s.%s' doesn't exist"},
	{NonExistingTableGrant, "ER_NONEXISTING_TABLE_GRANT", "42000",
		"There is no such grant defined for user '%s' on host '%s' on table '%s'"},
	{1148, "ER_NOT_ALLOWED_COMMAND", "42000", ""},
	{SyntaxError, "ER_SYNTAX_ERROR", "42000",
		"You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for " +
			"the right syntax to use"},
	{1152, "ER_ABORTING_CONNECTION", "08S01", ""},
	{NetPacketTooLarge, "ER_NET_PACKET_TOO_LARGE", "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"},
	{1154, "ER_NET_READ_ERROR_FROM_PIPE", "08S01", ""},
	{1155, "ER_NET_FCNTL_ERROR", "08S01", ""},
	{NetPacketsOutOfOrder, "ER_NET_PACKETS_OUT_OF_ORDER", "08S01", "Got packets out of order"},
	{1157, "ER_NET_UNCOMPRESS_ERROR", "08S01", ""},
	{1158, "ER_NET_READ_ERROR", "08S01", ""},
	{NetReadInterrupted, "ER_NET_READ_INTERRUPTED", "08S01", "Got timeout reading communication packets"},
	{1160, "ER_NET_ERROR_ON_WRITE", "08S01", ""},
	{NetWriteInterrupted, "ER_NET_WRITE_INTERRUPTED", "08S01", "Got timeout writing communication packets"},
	{1162, "ER_TOO_LONG_STRING", "42000", ""},
	{1163, "ER_TABLE_CANT_HANDLE_BLOB", "42000", ""},
	{1164, "ER_TABLE_CANT_HANDLE_AUTO_INCREMENT", "42000", ""},
	{WrongColumnName, "ER_WRONG_COLUMN_NAME", "42000", "Incorrect column name '%s'"},
	{1167, "ER_WRONG_KEY_COLUMN", "42000", ""},
	{1169, "ER_DUP_UNIQUE", "23000", ""},
	{BlobKeyWithoutLength, "ER_BLOB_KEY_WITHOUT_LENGTH", "42000",
		"BLOB/TEXT column '%s' used in key specification without a key length"},
	{PrimaryCantHaveNull, "ER_PRIMARY_CANT_HAVE_NULL", "42000",
		"All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead"},
	{TooManyRows, "ER_TOO_MANY_ROWS", "42000", "Result consisted of more than one row"},
	{1173, "ER_REQUIRES_PRIMARY_KEY", "42000", ""},
	{UpdateWithoutKeyInSafeMode, "ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE", "HY000",
		"You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column."},
	{KeyDoesNotExits, "ER_KEY_DOES_NOT_EXITS", "HY000", "Key '%s' doesn't exist in table '%s'"},
	{1177, "ER_CHECK_NO_SUCH_TABLE", "42000", ""},
	{1178, "ER_CHECK_NOT_IMPLEMENTED", "42000", ""},
	{1179, "ER_CANT_DO_THIS_DURING_AN_TRANSACTION", "25000", ""},
	{ErrorDuringCommit, "ER_ERROR_DURING_COMMIT", "08007", "Got error %d - '%s' during COMMIT"},
	{1184, "ER_NEW_ABORTING_CONNECTION", "08S01", ""},
	{1189, "ER_SOURCE_NET_READ", "08S01", ""},
	{1190, "ER_SOURCE_NET_WRITE", "08S01", ""},
	{LockOrActiveTransaction, "ER_LOCK_OR_ACTIVE_TRANSACTION", "HY000",
		"Can't execute the given command because you have active locked tables or an active transaction"},
	{UnknownSystemVariable, "ER_UNKNOWN_SYSTEM_VARIABLE", "HY000", "Unknown system variable '%s'"},
	{TransCacheFull, "ER_TRANS_CACHE_FULL", "HY000",
		"Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this " +
			"mysqld variable and try again"},
}
