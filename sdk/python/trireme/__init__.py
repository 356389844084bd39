"""Trireme, a replicated SQL database, over gRPC.

    import trireme

    with trireme.open("127.0.0.1:17000,127.0.0.1:17001", user="root", password="...", schema="shop") as db:
        r = db.execute("INSERT INTO orders (note) VALUES (?)", ["first"])
        n = db.fetchone("SELECT COUNT(*) FROM orders", read=trireme.at_least(r.gtid))

connect() is that of PEP 249 (DB-API 2.0), trireme.aio the same for asyncio.
"""

from ._core.rows import Result
from ._core.statements import new_token
from .columns import Batch, Column, Row, Vector
from .database import Database, Rows, Transaction, connect, open
from .dbapi import (
    Binary,
    Connection,
    Cursor,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from .errors import (
    ConnectionLost,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Retry,
    StatementCancelled,
    StatementTimeout,
    TransactionRolledBack,
    UnknownOutcome,
    Warning,
)
from .options import LOCAL, STRONG, TLS, Options, Read, at_least, bounded
from .trace import Span, Trace
from .values import BINARY, DATETIME, NUMBER, ROWID, STRING, Json, Type, Value

apilevel = "2.0"
threadsafety = 1  # threads share the module and a Database, but not a connection
paramstyle = "qmark"
__version__ = "0.1.0"

__all__ = [
    "BINARY",
    "DATETIME",
    "LOCAL",
    "NUMBER",
    "ROWID",
    "STRING",
    "STRONG",
    "TLS",
    "Batch",
    "Binary",
    "Column",
    "Connection",
    "ConnectionLost",
    "Cursor",
    "DataError",
    "Database",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Json",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "ProgrammingError",
    "Read",
    "Result",
    "Retry",
    "Row",
    "Rows",
    "Span",
    "StatementCancelled",
    "StatementTimeout",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Trace",
    "Transaction",
    "TransactionRolledBack",
    "Type",
    "UnknownOutcome",
    "Value",
    "Vector",
    "Warning",
    "apilevel",
    "at_least",
    "bounded",
    "connect",
    "new_token",
    "open",
    "paramstyle",
    "threadsafety",
]
