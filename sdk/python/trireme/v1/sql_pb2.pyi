from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SqlConsistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_CONSISTENCY_UNSPECIFIED: _ClassVar[SqlConsistency]
    SQL_CONSISTENCY_STRONG: _ClassVar[SqlConsistency]
    SQL_CONSISTENCY_AT_LEAST: _ClassVar[SqlConsistency]
    SQL_CONSISTENCY_BOUNDED: _ClassVar[SqlConsistency]
    SQL_CONSISTENCY_LOCAL: _ClassVar[SqlConsistency]

class SqlType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_TYPE_UNSPECIFIED: _ClassVar[SqlType]
    SQL_TYPE_NULL: _ClassVar[SqlType]
    SQL_TYPE_TINYINT: _ClassVar[SqlType]
    SQL_TYPE_SMALLINT: _ClassVar[SqlType]
    SQL_TYPE_MEDIUMINT: _ClassVar[SqlType]
    SQL_TYPE_INT: _ClassVar[SqlType]
    SQL_TYPE_BIGINT: _ClassVar[SqlType]
    SQL_TYPE_DECIMAL: _ClassVar[SqlType]
    SQL_TYPE_FLOAT: _ClassVar[SqlType]
    SQL_TYPE_DOUBLE: _ClassVar[SqlType]
    SQL_TYPE_BIT: _ClassVar[SqlType]
    SQL_TYPE_DATE: _ClassVar[SqlType]
    SQL_TYPE_TIME: _ClassVar[SqlType]
    SQL_TYPE_DATETIME: _ClassVar[SqlType]
    SQL_TYPE_TIMESTAMP: _ClassVar[SqlType]
    SQL_TYPE_YEAR: _ClassVar[SqlType]
    SQL_TYPE_CHAR: _ClassVar[SqlType]
    SQL_TYPE_VARCHAR: _ClassVar[SqlType]
    SQL_TYPE_TEXT: _ClassVar[SqlType]
    SQL_TYPE_BINARY: _ClassVar[SqlType]
    SQL_TYPE_VARBINARY: _ClassVar[SqlType]
    SQL_TYPE_BLOB: _ClassVar[SqlType]
    SQL_TYPE_ENUM: _ClassVar[SqlType]
    SQL_TYPE_SET: _ClassVar[SqlType]
    SQL_TYPE_JSON: _ClassVar[SqlType]

class SqlRetry(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_RETRY_UNSPECIFIED: _ClassVar[SqlRetry]
    SQL_RETRY_STATEMENT: _ClassVar[SqlRetry]
    SQL_RETRY_TRANSACTION: _ClassVar[SqlRetry]
    SQL_RETRY_ELSEWHERE: _ClassVar[SqlRetry]
    SQL_RETRY_SAME_TOKEN: _ClassVar[SqlRetry]

class SqlIsolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_ISOLATION_UNSPECIFIED: _ClassVar[SqlIsolation]
    SQL_ISOLATION_READ_UNCOMMITTED: _ClassVar[SqlIsolation]
    SQL_ISOLATION_READ_COMMITTED: _ClassVar[SqlIsolation]
    SQL_ISOLATION_REPEATABLE_READ: _ClassVar[SqlIsolation]
    SQL_ISOLATION_SERIALIZABLE: _ClassVar[SqlIsolation]
SQL_CONSISTENCY_UNSPECIFIED: SqlConsistency
SQL_CONSISTENCY_STRONG: SqlConsistency
SQL_CONSISTENCY_AT_LEAST: SqlConsistency
SQL_CONSISTENCY_BOUNDED: SqlConsistency
SQL_CONSISTENCY_LOCAL: SqlConsistency
SQL_TYPE_UNSPECIFIED: SqlType
SQL_TYPE_NULL: SqlType
SQL_TYPE_TINYINT: SqlType
SQL_TYPE_SMALLINT: SqlType
SQL_TYPE_MEDIUMINT: SqlType
SQL_TYPE_INT: SqlType
SQL_TYPE_BIGINT: SqlType
SQL_TYPE_DECIMAL: SqlType
SQL_TYPE_FLOAT: SqlType
SQL_TYPE_DOUBLE: SqlType
SQL_TYPE_BIT: SqlType
SQL_TYPE_DATE: SqlType
SQL_TYPE_TIME: SqlType
SQL_TYPE_DATETIME: SqlType
SQL_TYPE_TIMESTAMP: SqlType
SQL_TYPE_YEAR: SqlType
SQL_TYPE_CHAR: SqlType
SQL_TYPE_VARCHAR: SqlType
SQL_TYPE_TEXT: SqlType
SQL_TYPE_BINARY: SqlType
SQL_TYPE_VARBINARY: SqlType
SQL_TYPE_BLOB: SqlType
SQL_TYPE_ENUM: SqlType
SQL_TYPE_SET: SqlType
SQL_TYPE_JSON: SqlType
SQL_RETRY_UNSPECIFIED: SqlRetry
SQL_RETRY_STATEMENT: SqlRetry
SQL_RETRY_TRANSACTION: SqlRetry
SQL_RETRY_ELSEWHERE: SqlRetry
SQL_RETRY_SAME_TOKEN: SqlRetry
SQL_ISOLATION_UNSPECIFIED: SqlIsolation
SQL_ISOLATION_READ_UNCOMMITTED: SqlIsolation
SQL_ISOLATION_READ_COMMITTED: SqlIsolation
SQL_ISOLATION_REPEATABLE_READ: SqlIsolation
SQL_ISOLATION_SERIALIZABLE: SqlIsolation

class SqlRead(_message.Message):
    __slots__ = ("consistency", "at_least", "bound_ms", "wait_ms")
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    BOUND_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    consistency: SqlConsistency
    at_least: int
    bound_ms: int
    wait_ms: int
    def __init__(self, consistency: _Optional[_Union[SqlConsistency, str]] = ..., at_least: _Optional[int] = ..., bound_ms: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class SqlValue(_message.Message):
    __slots__ = ("int", "uint", "double", "text", "blob", "decimal", "date", "datetime", "time", "bool")
    INT_FIELD_NUMBER: _ClassVar[int]
    UINT_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_FIELD_NUMBER: _ClassVar[int]
    DATE_FIELD_NUMBER: _ClassVar[int]
    DATETIME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    BOOL_FIELD_NUMBER: _ClassVar[int]
    int: int
    uint: int
    double: float
    text: str
    blob: bytes
    decimal: str
    date: str
    datetime: str
    time: str
    bool: bool
    def __init__(self, int: _Optional[int] = ..., uint: _Optional[int] = ..., double: _Optional[float] = ..., text: _Optional[str] = ..., blob: _Optional[bytes] = ..., decimal: _Optional[str] = ..., date: _Optional[str] = ..., datetime: _Optional[str] = ..., time: _Optional[str] = ..., bool: bool = ...) -> None: ...

class SqlStatement(_message.Message):
    __slots__ = ("text", "handle", "params", "read", "commit_token", "again", "timeout_ms", "traceparent")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    text: str
    handle: int
    params: _containers.RepeatedCompositeFieldContainer[SqlValue]
    read: SqlRead
    commit_token: bytes
    again: bool
    timeout_ms: int
    traceparent: str
    def __init__(self, text: _Optional[str] = ..., handle: _Optional[int] = ..., params: _Optional[_Iterable[_Union[SqlValue, _Mapping]]] = ..., read: _Optional[_Union[SqlRead, _Mapping]] = ..., commit_token: _Optional[bytes] = ..., again: bool = ..., timeout_ms: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class SqlColumn(_message.Message):
    __slots__ = ("name", "type", "unsigned", "not_null", "length", "precision", "scale", "schema", "table", "original_table", "original_name", "primary_key", "unique_key", "multiple_key", "auto_increment")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    UNSIGNED_FIELD_NUMBER: _ClassVar[int]
    NOT_NULL_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_TABLE_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_NAME_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_KEY_FIELD_NUMBER: _ClassVar[int]
    MULTIPLE_KEY_FIELD_NUMBER: _ClassVar[int]
    AUTO_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: SqlType
    unsigned: bool
    not_null: bool
    length: int
    precision: int
    scale: int
    schema: str
    table: str
    original_table: str
    original_name: str
    primary_key: bool
    unique_key: bool
    multiple_key: bool
    auto_increment: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[SqlType, str]] = ..., unsigned: bool = ..., not_null: bool = ..., length: _Optional[int] = ..., precision: _Optional[int] = ..., scale: _Optional[int] = ..., schema: _Optional[str] = ..., table: _Optional[str] = ..., original_table: _Optional[str] = ..., original_name: _Optional[str] = ..., primary_key: bool = ..., unique_key: bool = ..., multiple_key: bool = ..., auto_increment: bool = ...) -> None: ...

class SqlVector(_message.Message):
    __slots__ = ("nulls", "ints", "uints", "doubles", "floats", "lengths", "bytes")
    NULLS_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    UINTS_FIELD_NUMBER: _ClassVar[int]
    DOUBLES_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    nulls: bytes
    ints: _containers.RepeatedScalarFieldContainer[int]
    uints: _containers.RepeatedScalarFieldContainer[int]
    doubles: _containers.RepeatedScalarFieldContainer[float]
    floats: _containers.RepeatedScalarFieldContainer[float]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    bytes: bytes
    def __init__(self, nulls: _Optional[bytes] = ..., ints: _Optional[_Iterable[int]] = ..., uints: _Optional[_Iterable[int]] = ..., doubles: _Optional[_Iterable[float]] = ..., floats: _Optional[_Iterable[float]] = ..., lengths: _Optional[_Iterable[int]] = ..., bytes: _Optional[bytes] = ...) -> None: ...

class SqlBatch(_message.Message):
    __slots__ = ("rows", "columns", "window_bytes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: _containers.RepeatedCompositeFieldContainer[SqlVector]
    window_bytes: int
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[SqlVector, _Mapping]]] = ..., window_bytes: _Optional[int] = ...) -> None: ...

class SqlDone(_message.Message):
    __slots__ = ("affected_rows", "last_insert_id", "warnings", "info", "gtid", "in_transaction", "repeated")
    AFFECTED_ROWS_FIELD_NUMBER: _ClassVar[int]
    LAST_INSERT_ID_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    GTID_FIELD_NUMBER: _ClassVar[int]
    IN_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    affected_rows: int
    last_insert_id: int
    warnings: int
    info: str
    gtid: int
    in_transaction: bool
    repeated: bool
    def __init__(self, affected_rows: _Optional[int] = ..., last_insert_id: _Optional[int] = ..., warnings: _Optional[int] = ..., info: _Optional[str] = ..., gtid: _Optional[int] = ..., in_transaction: bool = ..., repeated: bool = ...) -> None: ...

class SqlResult(_message.Message):
    __slots__ = ("columns", "same_columns", "batch", "done")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SAME_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[SqlColumn]
    same_columns: bool
    batch: SqlBatch
    done: SqlDone
    def __init__(self, columns: _Optional[_Iterable[_Union[SqlColumn, _Mapping]]] = ..., same_columns: bool = ..., batch: _Optional[_Union[SqlBatch, _Mapping]] = ..., done: _Optional[_Union[SqlDone, _Mapping]] = ...) -> None: ...

class SqlError(_message.Message):
    __slots__ = ("number", "state", "message", "retry", "leader", "session_ended")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ENDED_FIELD_NUMBER: _ClassVar[int]
    number: int
    state: str
    message: str
    retry: SqlRetry
    leader: str
    session_ended: bool
    def __init__(self, number: _Optional[int] = ..., state: _Optional[str] = ..., message: _Optional[str] = ..., retry: _Optional[_Union[SqlRetry, str]] = ..., leader: _Optional[str] = ..., session_ended: bool = ...) -> None: ...

class SqlOpen(_message.Message):
    __slots__ = ("schema", "read_only", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    schema: str
    read_only: bool
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, schema: _Optional[str] = ..., read_only: bool = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SqlPrepare(_message.Message):
    __slots__ = ("handle", "text")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    handle: int
    text: str
    def __init__(self, handle: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class SqlClosePrepared(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: int
    def __init__(self, handle: _Optional[int] = ...) -> None: ...

class SqlBegin(_message.Message):
    __slots__ = ("isolation", "read_only", "read", "commit_token", "again", "traceparent")
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    isolation: SqlIsolation
    read_only: bool
    read: SqlRead
    commit_token: bytes
    again: bool
    traceparent: str
    def __init__(self, isolation: _Optional[_Union[SqlIsolation, str]] = ..., read_only: bool = ..., read: _Optional[_Union[SqlRead, _Mapping]] = ..., commit_token: _Optional[bytes] = ..., again: bool = ..., traceparent: _Optional[str] = ...) -> None: ...

class SqlExecute(_message.Message):
    __slots__ = ("statement", "window_bytes")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    statement: SqlStatement
    window_bytes: int
    def __init__(self, statement: _Optional[_Union[SqlStatement, _Mapping]] = ..., window_bytes: _Optional[int] = ...) -> None: ...

class SqlCommit(_message.Message):
    __slots__ = ("traceparent",)
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    traceparent: str
    def __init__(self, traceparent: _Optional[str] = ...) -> None: ...

class SqlRollback(_message.Message):
    __slots__ = ("traceparent",)
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    traceparent: str
    def __init__(self, traceparent: _Optional[str] = ...) -> None: ...

class SqlReset(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SqlPing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SqlCancel(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class SqlCredit(_message.Message):
    __slots__ = ("request", "bytes")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    request: int
    bytes: int
    def __init__(self, request: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class SqlClose(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SqlSessionsRequest(_message.Message):
    __slots__ = ("session", "request", "if_ok", "open", "execute", "prepare", "close_prepared", "begin", "commit", "rollback", "reset", "ping", "cancel", "credit", "close")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    IF_OK_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    CLOSE_PREPARED_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    session: int
    request: int
    if_ok: bool
    open: SqlOpen
    execute: SqlExecute
    prepare: SqlPrepare
    close_prepared: SqlClosePrepared
    begin: SqlBegin
    commit: SqlCommit
    rollback: SqlRollback
    reset: SqlReset
    ping: SqlPing
    cancel: SqlCancel
    credit: SqlCredit
    close: SqlClose
    def __init__(self, session: _Optional[int] = ..., request: _Optional[int] = ..., if_ok: bool = ..., open: _Optional[_Union[SqlOpen, _Mapping]] = ..., execute: _Optional[_Union[SqlExecute, _Mapping]] = ..., prepare: _Optional[_Union[SqlPrepare, _Mapping]] = ..., close_prepared: _Optional[_Union[SqlClosePrepared, _Mapping]] = ..., begin: _Optional[_Union[SqlBegin, _Mapping]] = ..., commit: _Optional[_Union[SqlCommit, _Mapping]] = ..., rollback: _Optional[_Union[SqlRollback, _Mapping]] = ..., reset: _Optional[_Union[SqlReset, _Mapping]] = ..., ping: _Optional[_Union[SqlPing, _Mapping]] = ..., cancel: _Optional[_Union[SqlCancel, _Mapping]] = ..., credit: _Optional[_Union[SqlCredit, _Mapping]] = ..., close: _Optional[_Union[SqlClose, _Mapping]] = ...) -> None: ...

class SqlOpened(_message.Message):
    __slots__ = ("connection_id", "group", "max_pending", "max_message_bytes")
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MAX_PENDING_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    connection_id: int
    group: bytes
    max_pending: int
    max_message_bytes: int
    def __init__(self, connection_id: _Optional[int] = ..., group: _Optional[bytes] = ..., max_pending: _Optional[int] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class SqlPrepared(_message.Message):
    __slots__ = ("handle", "params", "columns")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    handle: int
    params: int
    columns: _containers.RepeatedCompositeFieldContainer[SqlColumn]
    def __init__(self, handle: _Optional[int] = ..., params: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[SqlColumn, _Mapping]]] = ...) -> None: ...

class SqlSessionsResponse(_message.Message):
    __slots__ = ("session", "request", "opened", "prepared", "result", "error")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    session: int
    request: int
    opened: SqlOpened
    prepared: SqlPrepared
    result: SqlResult
    error: SqlError
    def __init__(self, session: _Optional[int] = ..., request: _Optional[int] = ..., opened: _Optional[_Union[SqlOpened, _Mapping]] = ..., prepared: _Optional[_Union[SqlPrepared, _Mapping]] = ..., result: _Optional[_Union[SqlResult, _Mapping]] = ..., error: _Optional[_Union[SqlError, _Mapping]] = ...) -> None: ...

class SqlExecuteRequest(_message.Message):
    __slots__ = ("statement", "schema", "read_only", "max_result_bytes")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    statement: SqlStatement
    schema: str
    read_only: bool
    max_result_bytes: int
    def __init__(self, statement: _Optional[_Union[SqlStatement, _Mapping]] = ..., schema: _Optional[str] = ..., read_only: bool = ..., max_result_bytes: _Optional[int] = ...) -> None: ...

class SqlExecuteResponse(_message.Message):
    __slots__ = ("columns", "batch", "done")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[SqlColumn]
    batch: SqlBatch
    done: SqlDone
    def __init__(self, columns: _Optional[_Iterable[_Union[SqlColumn, _Mapping]]] = ..., batch: _Optional[_Union[SqlBatch, _Mapping]] = ..., done: _Optional[_Union[SqlDone, _Mapping]] = ...) -> None: ...

class SqlOutcomeRequest(_message.Message):
    __slots__ = ("commit_token",)
    COMMIT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    commit_token: bytes
    def __init__(self, commit_token: _Optional[bytes] = ...) -> None: ...

class SqlOutcomeResponse(_message.Message):
    __slots__ = ("committed", "gtid")
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    GTID_FIELD_NUMBER: _ClassVar[int]
    committed: bool
    gtid: int
    def __init__(self, committed: bool = ..., gtid: _Optional[int] = ...) -> None: ...

class SqlNodeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SqlNodeResponse(_message.Message):
    __slots__ = ("version", "group", "member", "leads", "leader", "members")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    version: str
    group: bytes
    member: int
    leads: bool
    leader: str
    members: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[str] = ..., group: _Optional[bytes] = ..., member: _Optional[int] = ..., leads: bool = ..., leader: _Optional[str] = ..., members: _Optional[_Iterable[str]] = ...) -> None: ...
