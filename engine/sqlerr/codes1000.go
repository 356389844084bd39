package sqlerr

const (
	DBCreateExists                Code = 1007
	DBDropExists                  Code = 1008
	DBDropRmdir                   Code = 1010
	DupKey                        Code = 1022
	IllegalHA                     Code = 1031
	OutOfMemory                   Code = 1037
	OutOfSortMemory               Code = 1038
	ConCountError                 Code = 1040
	OutOfResources                Code = 1041
	BadHostError                  Code = 1042
	HandshakeError                Code = 1043
	DBAccessDeniedError           Code = 1044
	AccessDeniedError             Code = 1045
	NoDBError                     Code = 1046
	UnknownComError               Code = 1047
	BadNullError                  Code = 1048
	BadDBError                    Code = 1049
	TableExistsError              Code = 1050
	BadTableError                 Code = 1051
	NonUniqError                  Code = 1052
	ServerShutdown                Code = 1053
	BadFieldError                 Code = 1054
	WrongFieldWithGroup           Code = 1055
	WrongGroupField               Code = 1056
	WrongSumSelect                Code = 1057
	WrongValueCount               Code = 1058
	TooLongIdent                  Code = 1059
	DupFieldName                  Code = 1060
	DupKeyName                    Code = 1061
	DupEntry                      Code = 1062
	WrongFieldSpec                Code = 1063
	ParseError                    Code = 1064
	EmptyQuery                    Code = 1065
	NonUniqTable                  Code = 1066
	InvalidDefault                Code = 1067
	MultiplePriKey                Code = 1068
	TooManyKeys                   Code = 1069
	TooManyKeyParts               Code = 1070
	TooLongKey                    Code = 1071
	KeyColumnDoesNotExits         Code = 1072
	BlobUsedAsKey                 Code = 1073
	TooBigFieldLength             Code = 1074
	WrongAutoKey                  Code = 1075
	ForcingClose                  Code = 1080
	IPSockError                   Code = 1081
	NoSuchIndex                   Code = 1082
	WrongFieldTerminators         Code = 1083
	BlobsAndNoTerminated          Code = 1084
	WrongSubKey                   Code = 1089
	CantRemoveAllFields           Code = 1090
	CantDropFieldOrKey            Code = 1091
	UpdateTableUsed               Code = 1093
	NoSuchThread                  Code = 1094
	KillDeniedError               Code = 1095
	NoTablesUsed                  Code = 1096
	TooBigSet                     Code = 1097
	TableNotLockedForWrite        Code = 1099
	TableNotLocked                Code = 1100
	BlobCantHaveDefault           Code = 1101
	WrongDBName                   Code = 1102
	WrongTableName                Code = 1103
	TooBigSelect                  Code = 1104
	UnknownError                  Code = 1105
	UnknownProcedure              Code = 1106
	WrongParamCountToProcedure    Code = 1107
	UnknownTable                  Code = 1109
	FieldSpecifiedTwice           Code = 1110
	InvalidGroupFuncUse           Code = 1111
	UnsupportedExtension          Code = 1112
	TableMustHaveColumns          Code = 1113
	RecordFileFull                Code = 1114
	UnknownCharacterSet           Code = 1115
	TooManyTables                 Code = 1116
	TooManyFields                 Code = 1117
	TooBigRowSize                 Code = 1118
	WrongOuterJoinUnused          Code = 1120
	NullColumnInIndex             Code = 1121
	CantOpenLibrary               Code = 1126
	PasswordAnonymousUser         Code = 1131
	PasswordNotAllowed            Code = 1132
	PasswordNoMatch               Code = 1133
	WrongValueCountOnRow          Code = 1136
	InvalidUseOfNull              Code = 1138
	RegexpError                   Code = 1139
	MixOfGroupFuncAndFields       Code = 1140
	NonExistingGrant              Code = 1141
	TableAccessDeniedError        Code = 1142
	ColumnAccessDeniedError       Code = 1143
	IllegalGrantForTable          Code = 1144
	GrantWrongHostOrUser          Code = 1145
	NoSuchTable                   Code = 1146
	NonExistingTableGrant         Code = 1147
	NotAllowedCommand             Code = 1148
	SyntaxError                   Code = 1149
	AbortingConnection            Code = 1152
	NetPacketTooLarge             Code = 1153
	NetReadErrorFromPipe          Code = 1154
	NetFcntlError                 Code = 1155
	NetPacketsOutOfOrder          Code = 1156
	NetUncompressError            Code = 1157
	NetReadError                  Code = 1158
	NetReadInterrupted            Code = 1159
	NetErrorOnWrite               Code = 1160
	NetWriteInterrupted           Code = 1161
	TooLongString                 Code = 1162
	TableCantHandleBlob           Code = 1163
	TableCantHandleAutoIncrement  Code = 1164
	WrongColumnName               Code = 1166
	WrongKeyColumn                Code = 1167
	DupUnique                     Code = 1169
	BlobKeyWithoutLength          Code = 1170
	PrimaryCantHaveNull           Code = 1171
	TooManyRows                   Code = 1172
	RequiresPrimaryKey            Code = 1173
	UpdateWithoutKeyInSafeMode    Code = 1175
	KeyDoesNotExits               Code = 1176
	CheckNoSuchTable              Code = 1177
	CheckNotImplemented           Code = 1178
	CantDoThisDuringAnTransaction Code = 1179
	ErrorDuringCommit             Code = 1180
	NewAbortingConnection         Code = 1184
	SourceNetRead                 Code = 1189
	SourceNetWrite                Code = 1190
	LockOrActiveTransaction       Code = 1192
	UnknownSystemVariable         Code = 1193
	TransCacheFull                Code = 1197
)

var rows1000 = []row{
	{DBCreateExists, "ER_DB_CREATE_EXISTS", "HY000", "Can't create database '%s'; database exists"},
	{DBDropExists, "ER_DB_DROP_EXISTS", "HY000", "Can't drop database '%s'; database doesn't exist"},
	{DBDropRmdir, "ER_DB_DROP_RMDIR", "HY000", "Error dropping database (can't rmdir '%s', errno: %d - %s)"},
	{DupKey, "ER_DUP_KEY", "23000", "Can't write; duplicate key in table '%s'"},
	{IllegalHA, "ER_ILLEGAL_HA", "HY000", "Table storage engine for '%s' doesn't have this option"},
	{OutOfMemory, "ER_OUTOFMEMORY", "HY001", "Out of memory; restart server and try again (needed %d bytes)"},
	{OutOfSortMemory, "ER_OUT_OF_SORTMEMORY", "HY001",
		"Out of sort memory, consider increasing server sort buffer size"},
	{ConCountError, "ER_CON_COUNT_ERROR", "08004", "Too many connections"},
	{OutOfResources, "ER_OUT_OF_RESOURCES", "HY000",
		"Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to " +
			"use 'ulimit' to allow mysqld to use more memory or you can add more swap space"},
	{BadHostError, "ER_BAD_HOST_ERROR", "08S01", "Can't get hostname for your address"},
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
	{WrongSumSelect, "ER_WRONG_SUM_SELECT", "42000", "Statement has sum functions and columns in same statement"},
	{WrongValueCount, "ER_WRONG_VALUE_COUNT", "21S01", "Column count doesn't match value count"},
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
	{BlobUsedAsKey, "ER_BLOB_USED_AS_KEY", "42000",
		"BLOB column '%s' can't be used in key specification with the used table type"},
	{TooBigFieldLength, "ER_TOO_BIG_FIELDLENGTH", "42000",
		"Column length too big for column '%s' (max = %d); use BLOB or TEXT instead"},
	{WrongAutoKey, "ER_WRONG_AUTO_KEY", "42000",
		"Incorrect table definition; there can be only one auto column and it must be defined as a key"},
	{ForcingClose, "ER_FORCING_CLOSE", "08S01", "%s: Forcing close of thread %d  user: '%s'"},
	{IPSockError, "ER_IPSOCK_ERROR", "08S01", "Can't create IP socket"},
	{NoSuchIndex, "ER_NO_SUCH_INDEX", "42S12",
		"Table '%s' has no index like the one used in CREATE INDEX; recreate the table"},
	{WrongFieldTerminators, "ER_WRONG_FIELD_TERMINATORS", "42000",
		"Field separator argument is not what is expected; check the manual"},
	{BlobsAndNoTerminated, "ER_BLOBS_AND_NO_TERMINATED", "42000",
		"You can't use fixed rowlength with BLOBs; please use 'fields terminated by'"},
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
	{TooBigSelect, "ER_TOO_BIG_SELECT", "42000",
		"The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or " +
			"SET MAX_JOIN_SIZE=# if the SELECT is okay"},
	{UnknownError, "ER_UNKNOWN_ERROR", "HY000", "Unknown error"},
	{UnknownProcedure, "ER_UNKNOWN_PROCEDURE", "42000", "Unknown procedure '%s'"},
	{WrongParamCountToProcedure, "ER_WRONG_PARAMCOUNT_TO_PROCEDURE", "42000",
		"Incorrect parameter count to procedure '%s'"},
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
	{WrongOuterJoinUnused, "ER_WRONG_OUTER_JOIN_UNUSED", "42000",
		"Cross dependency found in OUTER JOIN; examine your ON conditions"},
	{NullColumnInIndex, "ER_NULL_COLUMN_IN_INDEX", "42000",
		"Table handler doesn't support NULL in given index. Please change column '%s' to be NOT NULL or use " +
			"another handler"},
	{CantOpenLibrary, "ER_CANT_OPEN_LIBRARY", "HY000", "Can't open shared library '%s' (errno: %d %s)"},
	{PasswordAnonymousUser, "ER_PASSWORD_ANONYMOUS_USER", "42000",
		"You are using MySQL as an anonymous user and anonymous users are not allowed to change passwords"},
	{PasswordNotAllowed, "ER_PASSWORD_NOT_ALLOWED", "42000",
		"You must have privileges to update tables in the mysql database to be able to change passwords for others"},
	{PasswordNoMatch, "ER_PASSWORD_NO_MATCH", "42000", "Can't find any matching row in the user table"},
	{WrongValueCountOnRow, "ER_WRONG_VALUE_COUNT_ON_ROW", "21S01",
		"Column count doesn't match value count at row %d"},
	{InvalidUseOfNull, "ER_INVALID_USE_OF_NULL", "22004", "Invalid use of NULL value"},
	{RegexpError, "ER_REGEXP_ERROR", "42000", "Got error '%s' from regexp"},
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
	{GrantWrongHostOrUser, "ER_GRANT_WRONG_HOST_OR_USER", "42000", "The host or user argument to GRANT is too long"},
	{NoSuchTable, "ER_NO_SUCH_TABLE", "42S02", "Table '%s.%s' doesn't exist"},
	{NonExistingTableGrant, "ER_NONEXISTING_TABLE_GRANT", "42000",
		"There is no such grant defined for user '%s' on host '%s' on table '%s'"},
	{NotAllowedCommand, "ER_NOT_ALLOWED_COMMAND", "42000", "The used command is not allowed with this MySQL version"},
	{SyntaxError, "ER_SYNTAX_ERROR", "42000",
		"You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for " +
			"the right syntax to use"},
	{AbortingConnection, "ER_ABORTING_CONNECTION", "08S01", "Aborted connection %d to db: '%s' user: '%s' (%s)"},
	{NetPacketTooLarge, "ER_NET_PACKET_TOO_LARGE", "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"},
	{NetReadErrorFromPipe, "ER_NET_READ_ERROR_FROM_PIPE", "08S01", "Got a read error from the connection pipe"},
	{NetFcntlError, "ER_NET_FCNTL_ERROR", "08S01", "Got an error from fcntl()"},
	{NetPacketsOutOfOrder, "ER_NET_PACKETS_OUT_OF_ORDER", "08S01", "Got packets out of order"},
	{NetUncompressError, "ER_NET_UNCOMPRESS_ERROR", "08S01", "Couldn't uncompress communication packet"},
	{NetReadError, "ER_NET_READ_ERROR", "08S01", "Got an error reading communication packets"},
	{NetReadInterrupted, "ER_NET_READ_INTERRUPTED", "08S01", "Got timeout reading communication packets"},
	{NetErrorOnWrite, "ER_NET_ERROR_ON_WRITE", "08S01", "Got an error writing communication packets"},
	{NetWriteInterrupted, "ER_NET_WRITE_INTERRUPTED", "08S01", "Got timeout writing communication packets"},
	{TooLongString, "ER_TOO_LONG_STRING", "42000", "Result string is longer than 'max_allowed_packet' bytes"},
	{TableCantHandleBlob, "ER_TABLE_CANT_HANDLE_BLOB", "42000",
		"The used table type doesn't support BLOB/TEXT columns"},
	{TableCantHandleAutoIncrement, "ER_TABLE_CANT_HANDLE_AUTO_INCREMENT", "42000",
		"The used table type doesn't support AUTO_INCREMENT columns"},
	{WrongColumnName, "ER_WRONG_COLUMN_NAME", "42000", "Incorrect column name '%s'"},
	{WrongKeyColumn, "ER_WRONG_KEY_COLUMN", "42000", "The used storage engine can't index column '%s'"},
	{DupUnique, "ER_DUP_UNIQUE", "23000", "Can't write, because of unique constraint, to table '%s'"},
	{BlobKeyWithoutLength, "ER_BLOB_KEY_WITHOUT_LENGTH", "42000",
		"BLOB/TEXT column '%s' used in key specification without a key length"},
	{PrimaryCantHaveNull, "ER_PRIMARY_CANT_HAVE_NULL", "42000",
		"All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead"},
	{TooManyRows, "ER_TOO_MANY_ROWS", "42000", "Result consisted of more than one row"},
	{RequiresPrimaryKey, "ER_REQUIRES_PRIMARY_KEY", "42000", "This table type requires a primary key"},
	{UpdateWithoutKeyInSafeMode, "ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE", "HY000",
		"You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column."},
	{KeyDoesNotExits, "ER_KEY_DOES_NOT_EXITS", "HY000", "Key '%s' doesn't exist in table '%s'"},
	{CheckNoSuchTable, "ER_CHECK_NO_SUCH_TABLE", "42000", "Can't open table"},
	{CheckNotImplemented, "ER_CHECK_NOT_IMPLEMENTED", "42000", "The storage engine for the table doesn't support %s"},
	{CantDoThisDuringAnTransaction, "ER_CANT_DO_THIS_DURING_AN_TRANSACTION", "25000",
		"You are not allowed to execute this command in a transaction"},
	{ErrorDuringCommit, "ER_ERROR_DURING_COMMIT", "08007", "Got error %d - '%s' during COMMIT"},
	{NewAbortingConnection, "ER_NEW_ABORTING_CONNECTION", "08S01",
		"Aborted connection %d to db: '%s' user: '%s' host: '%s' (%s)"},
	{SourceNetRead, "ER_SOURCE_NET_READ", "08S01", "Net error reading from source"},
	{SourceNetWrite, "ER_SOURCE_NET_WRITE", "08S01", "Net error writing to source"},
	{LockOrActiveTransaction, "ER_LOCK_OR_ACTIVE_TRANSACTION", "HY000",
		"Can't execute the given command because you have active locked tables or an active transaction"},
	{UnknownSystemVariable, "ER_UNKNOWN_SYSTEM_VARIABLE", "HY000", "Unknown system variable '%s'"},
	{TransCacheFull, "ER_TRANS_CACHE_FULL", "HY000",
		"Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this " +
			"mysqld variable and try again"},
}
