package sqlerr

const (
	GetStackedDAWithoutActiveHandler                    Code = 3004
	WarnLegacySyntaxConverted                           Code = 3005
	FKDepthExceeded                                     Code = 3008
	InvalidFieldSize                                    Code = 3013
	InvalidArgumentForLogarithm                         Code = 3020
	QueryTimeout                                        Code = 3024
	AggregateOrderForUnion                              Code = 3028
	UserLockWrongName                                   Code = 3057
	UserLockDeadlock                                    Code = 3058
	IllegalUserVar                                      Code = 3061
	IncorrectType                                       Code = 3064
	FieldInOrderNotSelect                               Code = 3065
	TransactionRollbackDuringCommit                     Code = 3101
	WrongFKOptionForGeneratedColumn                     Code = 3104
	NonDefaultValueForGeneratedColumn                   Code = 3105
	UnsupportedActionOnGeneratedColumn                  Code = 3106
	GeneratedColumnNonPrior                             Code = 3107
	DependentByGeneratedColumn                          Code = 3108
	GeneratedColumnRefAutoInc                           Code = 3109
	AccountHasBeenLocked                                Code = 3118
	WrongFileName                                       Code = 3121
	WarnUnsupportedMaxExecutionTime                     Code = 3125
	WarnConflictingHint                                 Code = 3126
	InvalidJSONText                                     Code = 3140
	InvalidJSONTextInParam                              Code = 3141
	InvalidJSONPath                                     Code = 3143
	InvalidJSONCharset                                  Code = 3144
	InvalidTypeForJSON                                  Code = 3146
	InvalidJSONPathWildcard                             Code = 3149
	JSONValueTooBig                                     Code = 3150
	JSONKeyTooBig                                       Code = 3151
	JSONUsedAsKey                                       Code = 3152
	JSONVacuousPath                                     Code = 3153
	JSONBadOneOrAllArg                                  Code = 3154
	InvalidJSONValueForCast                             Code = 3156
	JSONDocumentTooDeep                                 Code = 3157
	JSONDocumentNullKey                                 Code = 3158
	SecureTransportRequired                             Code = 3159
	NoSecureTransportsConfigured                        Code = 3160
	UserDoesNotExist                                    Code = 3162
	UserAlreadyExists                                   Code = 3163
	InvalidJSONPathArrayCell                            Code = 3165
	CapacityExceeded                                    Code = 3170
	InvalidEncryptionOption                             Code = 3184
	CannotFindKeyInKeyring                              Code = 3185
	UnsupportedIndexAlgorithm                           Code = 3502
	TablespaceMissingWithName                           Code = 3510
	InvalidBitwiseOperandsSize                          Code = 3513
	InvalidBitwiseAggregateOperandsSize                 Code = 3514
	PKIndexCantBeInvisible                              Code = 3522
	UnknownAuthID                                       Code = 3523
	ComponentsCantLoad                                  Code = 3529
	RoleNotGranted                                      Code = 3530
	RenameRole                                          Code = 3532
	ComponentsUnloadNotLoaded                           Code = 3537
	NoSystemSchemaAccess                                Code = 3552
	UnresolvedTableLock                                 Code = 3568
	LockNoWait                                          Code = 3572
	CTERecursiveRequiresNonrecursiveFirst               Code = 3574
	CTERecursiveForbidsAggregation                      Code = 3575
	WindowNoSuchWindow                                  Code = 3579
	WindowCircularityInWindowGraph                      Code = 3580
	WindowNoChildPartitioning                           Code = 3581
	WindowNoInheritFrame                                Code = 3582
	WindowNoRedefineOrderBy                             Code = 3583
	WindowFrameStartIllegal                             Code = 3584
	WindowFrameEndIllegal                               Code = 3585
	WindowFrameIllegal                                  Code = 3586
	WindowRangeFrameOrderType                           Code = 3587
	WindowRangeFrameTemporalType                        Code = 3588
	WindowRangeFrameNumericType                         Code = 3589
	WindowRangeBoundNotConstant                         Code = 3590
	WindowDuplicateName                                 Code = 3591
	WindowIllegalOrderBy                                Code = 3592
	WindowInvalidWindowFuncUse                          Code = 3593
	WindowInvalidWindowFuncAliasUse                     Code = 3594
	WindowNestedWindowFuncUseInWindowSpec               Code = 3595
	WindowRowsIntervalUse                               Code = 3596
	FieldInGroupingNotGroupBy                           Code = 3602
	IllegalPrivilegeLevel                               Code = 3619
	MandatoryRole                                       Code = 3628
	CTEMaxRecursionDepth                                Code = 3636
	CredentialsContradictToHistory                      Code = 3638
	MissingJSONTableValue                               Code = 3665
	WrongJSONTableValue                                 Code = 3666
	TFMustHaveAlias                                     Code = 3667
	JTValueOutOfRange                                   Code = 3669
	ParseErrorInDigestFn                                Code = 3676
	RegexpIllegalArgument                               Code = 3685
	RegexpIndexOutOfBoundsError                         Code = 3686
	RegexpInternalError                                 Code = 3687
	RegexpRuleSyntax                                    Code = 3688
	RegexpBadEscapeSequence                             Code = 3689
	RegexpUnimplemented                                 Code = 3690
	RegexpMismatchedParen                               Code = 3691
	RegexpBadInterval                                   Code = 3692
	RegexpMaxLtMin                                      Code = 3693
	RegexpInvalidBackRef                                Code = 3694
	RegexpLookBehindLimit                               Code = 3695
	RegexpMissingCloseBracket                           Code = 3696
	RegexpInvalidRange                                  Code = 3697
	RegexpStackOverflow                                 Code = 3698
	RegexpTimeOut                                       Code = 3699
	RegexpPatternTooBig                                 Code = 3700
	FKCannotDropParent                                  Code = 3730
	FKNoColumnParent                                    Code = 3734
	TableWithoutPK                                      Code = 3750
	FunctionalIndexOnJSONOrGeometryFunction             Code = 3753
	FunctionalIndexRefAutoIncrement                     Code = 3754
	FunctionalIndexPrimaryKey                           Code = 3756
	FunctionalIndexOnLOB                                Code = 3757
	FulltextFunctionalIndex                             Code = 3759
	GeneratedColumnNamedFunctionIsNotAllowed            Code = 3763
	DefaultValGeneratedNonPrior                         Code = 3767
	DefaultValGeneratedRefAutoInc                       Code = 3768
	DefaultValGeneratedFunctionIsNotAllowed             Code = 3769
	DefaultValGeneratedVariables                        Code = 3772
	DefaultAsValGenerated                               Code = 3773
	UnsupportedActionOnDefaultValGenerated              Code = 3774
	FKIncompatibleColumns                               Code = 3780
	ColumnCheckConstraintReferencesOtherColumn          Code = 3813
	CheckConstraintRefersAutoIncrementColumn            Code = 3818
	CheckConstraintViolated                             Code = 3819
	CheckConstraintRefersUnknownColumn                  Code = 3820
	CheckConstraintNotFound                             Code = 3821
	CheckConstraintDupName                              Code = 3822
	DependentByFunctionalIndex                          Code = 3837
	InvalidJSONType                                     Code = 3853
	SecondPasswordCannotBeEmpty                         Code = 3878
	DBAccessDenied                                      Code = 3879
	DAAuthIDWithSystemUserPrivInMandatoryRoles          Code = 3880
	RegexpInvalidCaptureGroupName                       Code = 3887
	DASSLLibraryError                                   Code = 3888
	IncorrectCurrentPassword                            Code = 3891
	MissingCurrentPassword                              Code = 3892
	CurrentPasswordNotRequired                          Code = 3893
	PasswordCannotBeRetainedOnPluginChange              Code = 3894
	CurrentPasswordCannotBeRetained                     Code = 3895
	PartialRevokesExist                                 Code = 3896
	CannotGrantSystemPrivToMandatoryRole                Code = 3897
	RegexpInvalidFlag                                   Code = 3900
	ConstraintNotFound                                  Code = 3940
	TableValueConstructorMustHaveColumns                Code = 3942
	ClientLocalFilesDisabled                            Code = 3948
	MisplacedInto                                       Code = 3954
	UserAccessDeniedForUserAccountBlockedByPasswordLock Code = 3955
	DependentByCheckConstraint                          Code = 3959
	MissingJSONValue                                    Code = 3966
	MultipleJSONValues                                  Code = 3967
	EngineAttributeNotSupported                         Code = 3981
	InvalidUserAttributeJSON                            Code = 3982
	ImplicitComparisonForJSON                           Code = 3986
	ImpossibleStringConversion                          Code = 3988
	CharacterSetMismatch                                Code = 3995
	UserReferencedAsDefiner                             Code = 4005
	CannotUserReferencedAsDefiner                       Code = 4006
	RegexNumberTooBig                                   Code = 4007
	RoleGrantedToItself                                 Code = 4027
	TableMustHaveAVisibleColumn                         Code = 4028
	ClientInteractionTimeout                            Code = 4031
	TooManyWindows                                      Code = 4086
	ExplainIntoImplicitFormatNotSupported               Code = 6006
	ExplainIntoFormatNotSupported                       Code = 6007
	ExplainAnalyzeJSONFormatVersionNotSupported         Code = 6412
)

var rows3000 = []row{
	{GetStackedDAWithoutActiveHandler, "ER_GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER", "0Z002",
		"GET STACKED DIAGNOSTICS when handler not active"},
	{WarnLegacySyntaxConverted, "ER_WARN_LEGACY_SYNTAX_CONVERTED", "HY000",
		"%s is no longer supported. The statement was converted to %s."},
	{FKDepthExceeded, "ER_FK_DEPTH_EXCEEDED", "HY000", "Foreign key cascade delete/update exceeds max depth of %d."},
	{InvalidFieldSize, "ER_INVALID_FIELD_SIZE", "HY000", "Invalid size for column '%s'."},
	{InvalidArgumentForLogarithm, "ER_INVALID_ARGUMENT_FOR_LOGARITHM", "2201E", "Invalid argument for logarithm"},
	{QueryTimeout, "ER_QUERY_TIMEOUT", "HY000",
		"Query execution was interrupted, maximum statement execution time exceeded"},
	{AggregateOrderForUnion, "ER_AGGREGATE_ORDER_FOR_UNION", "HY000",
		"Expression #%d of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT"},
	{UserLockWrongName, "ER_USER_LOCK_WRONG_NAME", "42000",
		"Incorrect user-level lock name '%.200s'. The name is empty, NULL, or can not be expressed in the current " +
			"character-set."},
	{UserLockDeadlock, "ER_USER_LOCK_DEADLOCK", "HY000",
		"Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and " +
			"restarting lock acquisition."},
	{IllegalUserVar, "ER_ILLEGAL_USER_VAR", "42000", "User variable name '%.64s' is illegal"},
	{IncorrectType, "ER_INCORRECT_TYPE", "HY000", "Incorrect type for argument %s in function %s."},
	{FieldInOrderNotSelect, "ER_FIELD_IN_ORDER_NOT_SELECT", "HY000",
		"Expression #%d of ORDER BY clause is not in SELECT list, references column '%s' which is not in SELECT " +
			"list; this is incompatible with %s"},
	{TransactionRollbackDuringCommit, "ER_TRANSACTION_ROLLBACK_DURING_COMMIT", "40000",
		"Plugin instructed the server to rollback the current transaction."},
	{WrongFKOptionForGeneratedColumn, "ER_WRONG_FK_OPTION_FOR_GENERATED_COLUMN", "HY000",
		"Cannot define foreign key with %s clause on a generated column."},
	{NonDefaultValueForGeneratedColumn, "ER_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN", "HY000",
		"The value specified for generated column '%s' in table '%s' is not allowed."},
	{UnsupportedActionOnGeneratedColumn, "ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN", "HY000",
		"'%s' is not supported for generated columns."},
	{GeneratedColumnNonPrior, "ER_GENERATED_COLUMN_NON_PRIOR", "HY000",
		"Generated column can refer only to generated columns defined prior to it."},
	{DependentByGeneratedColumn, "ER_DEPENDENT_BY_GENERATED_COLUMN", "HY000",
		"Column '%s' has a generated column dependency."},
	{GeneratedColumnRefAutoInc, "ER_GENERATED_COLUMN_REF_AUTO_INC", "HY000",
		"Generated column '%s' cannot refer to auto-increment column."},
	{AccountHasBeenLocked, "ER_ACCOUNT_HAS_BEEN_LOCKED", "HY000",
		"Access denied for user '%s'@'%s'. Account is locked."},
	{WrongFileName, "ER_WRONG_FILE_NAME", "HY000", "Incorrect File Name '%s'."},
	{WarnUnsupportedMaxExecutionTime, "ER_WARN_UNSUPPORTED_MAX_EXECUTION_TIME", "HY000",
		"MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only"},
	{WarnConflictingHint, "ER_WARN_CONFLICTING_HINT", "HY000", "Hint %s is ignored as conflicting/duplicated"},
	{InvalidJSONText, "ER_INVALID_JSON_TEXT", "22032",
		"Invalid JSON text: \"%s\" at position %d in value for column '%s'."},
	{InvalidJSONTextInParam, "ER_INVALID_JSON_TEXT_IN_PARAM", "22032",
		"Invalid JSON text in argument %d to function %s: \"%s\" at position %d."},
	{InvalidJSONPath, "ER_INVALID_JSON_PATH", "42000",
		"Invalid JSON path expression. The error is around character position %d."},
	{InvalidJSONCharset, "ER_INVALID_JSON_CHARSET", "22032",
		"Cannot create a JSON value from a string with CHARACTER SET '%s'."},
	{InvalidTypeForJSON, "ER_INVALID_TYPE_FOR_JSON", "22032",
		"Invalid data type for JSON data in argument %d to function %s; a JSON string or JSON type is required."},
	{3147, "ER_INVALID_CAST_TO_JSON", "22032", ""},
	{3148, "ER_INVALID_JSON_PATH_CHARSET", "22032", ""},
	{InvalidJSONPathWildcard, "ER_INVALID_JSON_PATH_WILDCARD", "42000",
		"In this situation, path expressions may not contain the * and ** tokens or an array range."},
	{JSONValueTooBig, "ER_JSON_VALUE_TOO_BIG", "22032", "The JSON value is too big to be stored in a JSON column."},
	{JSONKeyTooBig, "ER_JSON_KEY_TOO_BIG", "22032", "The JSON object contains a key name that is too long."},
	{JSONUsedAsKey, "ER_JSON_USED_AS_KEY", "42000",
		"JSON column '%s' supports indexing only via generated columns on a specified JSON path."},
	{JSONVacuousPath, "ER_JSON_VACUOUS_PATH", "42000", "The path expression '$' is not allowed in this context."},
	{JSONBadOneOrAllArg, "ER_JSON_BAD_ONE_OR_ALL_ARG", "42000",
		"The oneOrAll argument to %s may take these values: 'one' or 'all'."},
	{InvalidJSONValueForCast, "ER_INVALID_JSON_VALUE_FOR_CAST", "22018",
		"Invalid JSON value for CAST to %s from column %s at row %d"},
	{JSONDocumentTooDeep, "ER_JSON_DOCUMENT_TOO_DEEP", "22032", "The JSON document exceeds the maximum depth."},
	{JSONDocumentNullKey, "ER_JSON_DOCUMENT_NULL_KEY", "22032", "JSON documents may not contain NULL member names."},
	{SecureTransportRequired, "ER_SECURE_TRANSPORT_REQUIRED", "HY000",
		"Connections using insecure transport are prohibited while --require_secure_transport=ON."},
	{NoSecureTransportsConfigured, "ER_NO_SECURE_TRANSPORTS_CONFIGURED", "HY000",
		"No secure transports (SSL or Shared Memory) are configured, unable to set --require_secure_transport=ON."},
	{UserDoesNotExist, "ER_USER_DOES_NOT_EXIST", "HY000", "Authorization ID %s does not exist."},
	{UserAlreadyExists, "ER_USER_ALREADY_EXISTS", "HY000", "Authorization ID %s already exists."},
	{InvalidJSONPathArrayCell, "ER_INVALID_JSON_PATH_ARRAY_CELL", "42000",
		"A path expression is not a path to a cell in an array."},
	{CapacityExceeded, "ER_CAPACITY_EXCEEDED", "HY000", "Memory capacity of %d bytes for '%s' exceeded. %s"},
	{InvalidEncryptionOption, "ER_INVALID_ENCRYPTION_OPTION", "HY000", "Invalid encryption option."},
	{CannotFindKeyInKeyring, "ER_CANNOT_FIND_KEY_IN_KEYRING", "HY000",
		"Can't find master key from keyring, please check in the server log if a keyring is loaded and initialized " +
			"successfully."},
	{UnsupportedIndexAlgorithm, "ER_UNSUPPORTED_INDEX_ALGORITHM", "HY000",
		"This storage engine does not support the %s index algorithm, storage engine default was used instead."},
	{TablespaceMissingWithName, "ER_TABLESPACE_MISSING_WITH_NAME", "HY000", "Tablespace %s doesn't exist."},
	{InvalidBitwiseOperandsSize, "ER_INVALID_BITWISE_OPERANDS_SIZE", "HY000",
		"Binary operands of bitwise operators must be of equal length"},
	{InvalidBitwiseAggregateOperandsSize, "ER_INVALID_BITWISE_AGGREGATE_OPERANDS_SIZE", "HY000",
		"Aggregate bitwise functions cannot accept arguments longer than %d bytes; consider using the SUBSTRING() " +
			"function"},
	{PKIndexCantBeInvisible, "ER_PK_INDEX_CANT_BE_INVISIBLE", "HY000", "A primary key index cannot be invisible"},
	{UnknownAuthID, "ER_UNKNOWN_AUTHID", "HY000", "Unknown authorization ID %s"},
	{ComponentsCantLoad, "ER_COMPONENTS_CANT_LOAD", "HY000", "Cannot load component from specified URN: '%s'."},
	{RoleNotGranted, "ER_ROLE_NOT_GRANTED", "HY000", "%s is not granted to %s"},
	{RenameRole, "ER_RENAME_ROLE", "HY000", "Renaming of a role identifier is forbidden"},
	{ComponentsUnloadNotLoaded, "ER_COMPONENTS_UNLOAD_NOT_LOADED", "HY000",
		"Component specified by URN '%s' to unload has not been loaded before."},
	{NoSystemSchemaAccess, "ER_NO_SYSTEM_SCHEMA_ACCESS", "HY000", "Access to system schema '%s' is rejected."},
	{UnresolvedTableLock, "ER_UNRESOLVED_TABLE_LOCK", "HY000", "Unresolved table name %s in locking clause."},
	{LockNoWait, "ER_LOCK_NOWAIT", "HY000",
		"Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."},
	{CTERecursiveRequiresNonrecursiveFirst, "ER_CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST", "HY000",
		"Recursive Common Table Expression '%s' should have one or more non-recursive query blocks followed by one " +
			"or more recursive ones"},
	{CTERecursiveForbidsAggregation, "ER_CTE_RECURSIVE_FORBIDS_AGGREGATION", "HY000",
		"Recursive Common Table Expression '%s' can contain neither aggregation nor window functions in recursive " +
			"query block"},
	{WindowNoSuchWindow, "ER_WINDOW_NO_SUCH_WINDOW", "HY000", "Window name '%s' is not defined."},
	{WindowCircularityInWindowGraph, "ER_WINDOW_CIRCULARITY_IN_WINDOW_GRAPH", "HY000",
		"There is a circularity in the window dependency graph."},
	{WindowNoChildPartitioning, "ER_WINDOW_NO_CHILD_PARTITIONING", "HY000",
		"A window which depends on another cannot define partitioning."},
	{WindowNoInheritFrame, "ER_WINDOW_NO_INHERIT_FRAME", "HY000",
		"Window '%s' has a frame definition, so cannot be referenced by another window."},
	{WindowNoRedefineOrderBy, "ER_WINDOW_NO_REDEFINE_ORDER_BY", "HY000",
		"Window '%s' cannot inherit '%s' since both contain an ORDER BY clause."},
	{WindowFrameStartIllegal, "ER_WINDOW_FRAME_START_ILLEGAL", "HY000",
		"Window '%s': frame start cannot be UNBOUNDED FOLLOWING."},
	{WindowFrameEndIllegal, "ER_WINDOW_FRAME_END_ILLEGAL", "HY000",
		"Window '%s': frame end cannot be UNBOUNDED PRECEDING."},
	{WindowFrameIllegal, "ER_WINDOW_FRAME_ILLEGAL", "HY000",
		"Window '%s': frame start or end is negative, NULL or of non-integral type"},
	{WindowRangeFrameOrderType, "ER_WINDOW_RANGE_FRAME_ORDER_TYPE", "HY000",
		"Window '%s' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric " +
			"or temporal type"},
	{WindowRangeFrameTemporalType, "ER_WINDOW_RANGE_FRAME_TEMPORAL_TYPE", "HY000",
		"Window '%s' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed."},
	{WindowRangeFrameNumericType, "ER_WINDOW_RANGE_FRAME_NUMERIC_TYPE", "HY000",
		"Window '%s' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed."},
	{WindowRangeBoundNotConstant, "ER_WINDOW_RANGE_BOUND_NOT_CONSTANT", "HY000",
		"Window '%s' has a non-constant frame bound."},
	{WindowDuplicateName, "ER_WINDOW_DUPLICATE_NAME", "HY000", "Window '%s' is defined twice."},
	{WindowIllegalOrderBy, "ER_WINDOW_ILLEGAL_ORDER_BY", "HY000",
		"Window '%s': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use " +
			"expression."},
	{WindowInvalidWindowFuncUse, "ER_WINDOW_INVALID_WINDOW_FUNC_USE", "HY000",
		"You cannot use the window function '%s' in this context.'"},
	{WindowInvalidWindowFuncAliasUse, "ER_WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE", "HY000",
		"You cannot use the alias '%s' of an expression containing a window function in this context.'"},
	{WindowNestedWindowFuncUseInWindowSpec, "ER_WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC", "HY000",
		"You cannot nest a window function in the specification of window '%s'."},
	{WindowRowsIntervalUse, "ER_WINDOW_ROWS_INTERVAL_USE", "HY000",
		"Window '%s': INTERVAL can only be used with RANGE frames."},
	{FieldInGroupingNotGroupBy, "ER_FIELD_IN_GROUPING_NOT_GROUP_BY", "HY000",
		"Argument #%d of GROUPING function is not in GROUP BY"},
	{IllegalPrivilegeLevel, "ER_ILLEGAL_PRIVILEGE_LEVEL", "HY000", "Illegal privilege level specified for %s"},
	{MandatoryRole, "ER_MANDATORY_ROLE", "HY000",
		"The role %s is a mandatory role and can't be revoked or dropped. The restriction can be lifted by " +
			"excluding the role identifier from the global variable mandatory_roles."},
	{CTEMaxRecursionDepth, "ER_CTE_MAX_RECURSION_DEPTH", "HY000",
		"Recursive query aborted after %d iterations. Try increasing @@cte_max_recursion_depth to a larger value."},
	{CredentialsContradictToHistory, "ER_CREDENTIALS_CONTRADICT_TO_HISTORY", "HY000",
		"Cannot use these credentials for '%s@%s' because they contradict the password history policy"},
	{MissingJSONTableValue, "ER_MISSING_JSON_TABLE_VALUE", "22035", "Missing value for JSON_TABLE column '%s'"},
	{WrongJSONTableValue, "ER_WRONG_JSON_TABLE_VALUE", "2203F",
		"Can't store an array or an object in the scalar JSON_TABLE column '%s'"},
	{TFMustHaveAlias, "ER_TF_MUST_HAVE_ALIAS", "42000", "Every table function must have an alias"},
	{JTValueOutOfRange, "ER_JT_VALUE_OUT_OF_RANGE", "22003", "Value is out of range for JSON_TABLE's column '%s'"},
	{ParseErrorInDigestFn, "ER_PARSE_ERROR_IN_DIGEST_FN", "HY000", "Could not parse argument to digest function: \"%s\"."},
	{RegexpIllegalArgument, "ER_REGEXP_ILLEGAL_ARGUMENT", "HY000", "Illegal argument to a regular expression."},
	{RegexpIndexOutOfBoundsError, "ER_REGEXP_INDEX_OUTOFBOUNDS_ERROR", "HY000",
		"Index out of bounds in regular expression search."},
	{RegexpInternalError, "ER_REGEXP_INTERNAL_ERROR", "HY000",
		"Internal error in the regular expression library."},
	{RegexpRuleSyntax, "ER_REGEXP_RULE_SYNTAX", "HY000",
		"Syntax error in regular expression on line %d, character %d."},
	{RegexpBadEscapeSequence, "ER_REGEXP_BAD_ESCAPE_SEQUENCE", "HY000",
		"Unrecognized escape sequence in regular expression."},
	{RegexpUnimplemented, "ER_REGEXP_UNIMPLEMENTED", "HY000",
		"The regular expression contains a feature that is not " + "implemented in this library version."},
	{RegexpMismatchedParen, "ER_REGEXP_MISMATCHED_PAREN", "HY000", "Mismatched parenthesis in regular expression."},
	{RegexpBadInterval, "ER_REGEXP_BAD_INTERVAL", "HY000", "Incorrect description of a {min,max} interval."},
	{RegexpMaxLtMin, "ER_REGEXP_MAX_LT_MIN", "HY000",
		"The maximum is less than the minumum in a {min,max} interval."},
	{RegexpInvalidBackRef, "ER_REGEXP_INVALID_BACK_REF", "HY000", "Invalid back-reference in regular expression."},
	{RegexpLookBehindLimit, "ER_REGEXP_LOOK_BEHIND_LIMIT", "HY000",
		"The look-behind assertion exceeds the limit in regular expression."},
	{RegexpMissingCloseBracket, "ER_REGEXP_MISSING_CLOSE_BRACKET", "HY000",
		"The regular expression contains an unclosed bracket expression."},
	{RegexpInvalidRange, "ER_REGEXP_INVALID_RANGE", "HY000",
		"The regular expression contains an [x-y] character range where x comes after y."},
	{RegexpStackOverflow, "ER_REGEXP_STACK_OVERFLOW", "HY000",
		"Overflow in the regular expression backtrack stack."},
	{RegexpTimeOut, "ER_REGEXP_TIME_OUT", "HY000", "Timeout exceeded in regular expression match."},
	{RegexpPatternTooBig, "ER_REGEXP_PATTERN_TOO_BIG", "HY000",
		"The regular expression pattern exceeds limits on size or complexity."},
	{FKCannotDropParent, "ER_FK_CANNOT_DROP_PARENT", "HY000",
		"Cannot drop table '%s' referenced by a foreign key constraint '%s' on table '%s'."},
	{FKNoColumnParent, "ER_FK_NO_COLUMN_PARENT", "HY000",
		"Failed to add the foreign key constraint. Missing column '%s' for constraint '%s' in the referenced table " +
			"'%s'"},
	{TableWithoutPK, "ER_TABLE_WITHOUT_PK", "HY000",
		"Unable to create or change a table without a primary key, when the system variable " +
			"'sql_require_primary_key' is set. Add a primary key to the table or unset this variable to avoid this " +
			"message. Note that tables without a primary key can cause performance problems in row-based replication, " +
			"so please consult your DBA before changing this setting."},
	{FunctionalIndexOnJSONOrGeometryFunction, "ER_FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION", "HY000",
		"Cannot create a functional index on a function that returns a JSON or GEOMETRY value."},
	{FunctionalIndexRefAutoIncrement, "ER_FUNCTIONAL_INDEX_REF_AUTO_INCREMENT", "HY000",
		"Functional index '%s' cannot refer to an auto-increment column."},
	{FunctionalIndexPrimaryKey, "ER_FUNCTIONAL_INDEX_PRIMARY_KEY", "HY000",
		"The primary key cannot be a functional index"},
	{FunctionalIndexOnLOB, "ER_FUNCTIONAL_INDEX_ON_LOB", "HY000",
		"Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST."},
	{FulltextFunctionalIndex, "ER_FULLTEXT_FUNCTIONAL_INDEX", "HY000", "Fulltext functional index is not supported."},
	{GeneratedColumnNamedFunctionIsNotAllowed, "ER_GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED", "HY000",
		"Expression of generated column '%s' contains a disallowed function: %s."},
	{DefaultValGeneratedNonPrior, "ER_DEFAULT_VAL_GENERATED_NON_PRIOR", "HY000",
		"Default value expression of column '%s' cannot refer to a column defined after it if that column is a " +
			"generated column or has an expression as default value."},
	{DefaultValGeneratedRefAutoInc, "ER_DEFAULT_VAL_GENERATED_REF_AUTO_INC", "HY000",
		"Default value expression of column '%s' cannot refer to an auto-increment column."},
	{DefaultValGeneratedFunctionIsNotAllowed, "ER_DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED", "HY000",
		"Default value expression of column '%s' contains a disallowed function."},
	{DefaultValGeneratedVariables, "ER_DEFAULT_VAL_GENERATED_VARIABLES", "HY000",
		"Default value expression of column '%s' cannot refer user or system variables."},
	{DefaultAsValGenerated, "ER_DEFAULT_AS_VAL_GENERATED", "HY000",
		"DEFAULT function cannot be used with default value expressions"},
	{UnsupportedActionOnDefaultValGenerated, "ER_UNSUPPORTED_ACTION_ON_DEFAULT_VAL_GENERATED", "HY000",
		"'%s' is not supported for default value expressions."},
	{FKIncompatibleColumns, "ER_FK_INCOMPATIBLE_COLUMNS", "HY000",
		"Referencing column '%s' and referenced column '%s' in foreign key constraint '%s' are incompatible."},
	{ColumnCheckConstraintReferencesOtherColumn, "ER_COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN", "HY000",
		"Column check constraint '%s' references other column."},
	{CheckConstraintRefersAutoIncrementColumn, "ER_CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN", "HY000",
		"Check constraint '%s' cannot refer to an auto-increment column."},
	{CheckConstraintViolated, "ER_CHECK_CONSTRAINT_VIOLATED", "HY000", "Check constraint '%s' is violated."},
	{CheckConstraintRefersUnknownColumn, "ER_CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN", "HY000",
		"Check constraint '%s' refers to non-existing column '%s'."},
	{CheckConstraintNotFound, "ER_CHECK_CONSTRAINT_NOT_FOUND", "HY000",
		"Check constraint '%s' is not found in the table."},
	{CheckConstraintDupName, "ER_CHECK_CONSTRAINT_DUP_NAME", "HY000", "Duplicate check constraint name '%s'."},
	{DependentByFunctionalIndex, "ER_DEPENDENT_BY_FUNCTIONAL_INDEX", "HY000",
		"Column '%s' has a functional index dependency and cannot be dropped or renamed."},
	{InvalidJSONType, "ER_INVALID_JSON_TYPE", "22032",
		"Invalid JSON type in argument %d to function %s; an %s is required."},
	{SecondPasswordCannotBeEmpty, "ER_SECOND_PASSWORD_CANNOT_BE_EMPTY", "HY000",
		"Empty password can not be retained as second password for user '%s'@'%s'."},
	{DBAccessDenied, "ER_DB_ACCESS_DENIED", "HY000", "Access denied for AuthId %s to database '%s'."},
	{DAAuthIDWithSystemUserPrivInMandatoryRoles, "ER_DA_AUTH_ID_WITH_SYSTEM_USER_PRIV_IN_MANDATORY_ROLES", "HY000",
		"Cannot set mandatory_roles: AuthId %s has '%s' privilege."},
	{RegexpInvalidCaptureGroupName, "ER_REGEXP_INVALID_CAPTURE_GROUP_NAME", "HY000",
		"A capture group has an invalid name."},
	{DASSLLibraryError, "ER_DA_SSL_LIBRARY_ERROR", "HY000",
		"Failed to set up SSL because of the following SSL library error: %s"},
	{IncorrectCurrentPassword, "ER_INCORRECT_CURRENT_PASSWORD", "HY000",
		"Incorrect current password. Specify the correct password which has to be replaced."},
	{MissingCurrentPassword, "ER_MISSING_CURRENT_PASSWORD", "HY000",
		"Current password needs to be specified in the REPLACE clause in order to change it."},
	{CurrentPasswordNotRequired, "ER_CURRENT_PASSWORD_NOT_REQUIRED", "HY000",
		"Do not specify the current password while changing it for other users."},
	{PasswordCannotBeRetainedOnPluginChange, "ER_PASSWORD_CANNOT_BE_RETAINED_ON_PLUGIN_CHANGE", "HY000",
		"Current password can not be retained for user '%s'@'%s' because authentication plugin is being changed."},
	{CurrentPasswordCannotBeRetained, "ER_CURRENT_PASSWORD_CANNOT_BE_RETAINED", "HY000",
		"Current password can not be retained for user '%s'@'%s' because new password is empty."},
	{PartialRevokesExist, "ER_PARTIAL_REVOKES_EXIST", "HY000",
		"At least one partial revoke exists on a database. The system variable '@@partial_revokes' must be set to " +
			"ON."},
	{CannotGrantSystemPrivToMandatoryRole, "ER_CANNOT_GRANT_SYSTEM_PRIV_TO_MANDATORY_ROLE", "HY000",
		"AuthId %s is set as mandatory_roles. Cannot grant the '%s' privilege."},
	{RegexpInvalidFlag, "ER_REGEXP_INVALID_FLAG", "HY000", "Invalid match mode flag in regular expression."},
	{ConstraintNotFound, "ER_CONSTRAINT_NOT_FOUND", "HY000", "Constraint '%s' does not exist."},
	{TableValueConstructorMustHaveColumns, "ER_TABLE_VALUE_CONSTRUCTOR_MUST_HAVE_COLUMNS", "HY000",
		"Each row of a VALUES clause must have at least one column, unless when used as source in an INSERT " +
			"statement."},
	{ClientLocalFilesDisabled, "ER_CLIENT_LOCAL_FILES_DISABLED", "42000",
		"Loading local data is disabled; this must be enabled on both the client and server sides"},
	{MisplacedInto, "ER_MISPLACED_INTO", "HY000",
		"Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses."},
	{UserAccessDeniedForUserAccountBlockedByPasswordLock, "ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK", "HY000",
		"Access denied for user '%s'@'%s'. Account is blocked for %s day(s) (%s day(s) remaining) due to %d " +
			"consecutive failed logins."},
	{DependentByCheckConstraint, "ER_DEPENDENT_BY_CHECK_CONSTRAINT", "HY000",
		"Check constraint '%s' uses column '%s', hence column cannot be dropped or renamed."},
	{MissingJSONValue, "ER_MISSING_JSON_VALUE", "22035", "No value was found by '%s' on the specified path."},
	{MultipleJSONValues, "ER_MULTIPLE_JSON_VALUES", "22034",
		"More than one value was found by '%s' on the specified path."},
	{EngineAttributeNotSupported, "ER_ENGINE_ATTRIBUTE_NOT_SUPPORTED", "HY000",
		"Storage engine '%s' does not support ENGINE_ATTRIBUTE."},
	{InvalidUserAttributeJSON, "ER_INVALID_USER_ATTRIBUTE_JSON", "HY000",
		"The user attribute must be a valid JSON object"},
	{ImplicitComparisonForJSON, "ER_IMPLICIT_COMPARISON_FOR_JSON", "HY000",
		"Evaluating a JSON value in SQL boolean context does an implicit comparison against JSON integer 0; if " +
			"this is not what you want, consider converting JSON to a SQL numeric type with JSON_VALUE RETURNING"},
	{ImpossibleStringConversion, "ER_IMPOSSIBLE_STRING_CONVERSION", "HY000",
		"Conversion from collation %s into %s impossible for %s"},
	{CharacterSetMismatch, "ER_CHARACTER_SET_MISMATCH", "HY000",
		"Character set '%s' cannot be used in conjunction with '%s' in call to %s."},
	{UserReferencedAsDefiner, "ER_USER_REFERENCED_AS_DEFINER", "HY000",
		"User %s is referenced as a definer account in %s."},
	{CannotUserReferencedAsDefiner, "ER_CANNOT_USER_REFERENCED_AS_DEFINER", "HY000",
		"Operation %s failed for %s as it is referenced as a definer account in %s."},
	{RegexNumberTooBig, "ER_REGEX_NUMBER_TOO_BIG", "HY000", "Decimal number in regular expression is too large."},
	{RoleGrantedToItself, "ER_ROLE_GRANTED_TO_ITSELF", "HY000",
		"User account %s is directly or indirectly granted to the role %s. The GRANT would create a loop"},
	{TableMustHaveAVisibleColumn, "ER_TABLE_MUST_HAVE_A_VISIBLE_COLUMN", "HY000", "A table must have at least one visible column."},
	{ClientInteractionTimeout, "ER_CLIENT_INTERACTION_TIMEOUT", "HY000",
		"The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout " +
			"for configuring this behavior."},
	{TooManyWindows, "ER_TOO_MANY_WINDOWS", "HY000",
		"Too many windows in SELECT: %d. Maximum allowed is %d. Use named windows to share windows between window " +
			"functions."},
	{ExplainIntoImplicitFormatNotSupported, "ER_EXPLAIN_INTO_IMPLICIT_FORMAT_NOT_SUPPORTED", "0A000", "EXPLAIN INTO does not support implicit FORMAT."},
	{ExplainIntoFormatNotSupported, "ER_EXPLAIN_INTO_FORMAT_NOT_SUPPORTED", "0A000", "EXPLAIN INTO does not support FORMAT=%s."},
	{ExplainAnalyzeJSONFormatVersionNotSupported, "ER_EXPLAIN_ANALYZE_JSON_FORMAT_VERSION_NOT_SUPPORTED", "0A000",
		"EXPLAIN ANALYZE does not support FORMAT=JSON with explain_json_format_version=1."},
}
