"""Connections and cursors of PEP 249."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from . import errors
from ._core.connection import CoreConnection
from ._core.rows import CoreRows, Result, no_rows
from ._core.runtime import run
from .columns import Batch, Column, Row
from .options import Read
from .values import Type

Params = Sequence[Any]

Description = list[tuple[str, Type, None, "int | None", "int | None", "int | None", bool]]


def describe(columns: list[Column]) -> Description | None:
    """A cursor's description of columns."""
    if not columns:
        return None
    return [
        (
            c.name,
            c.type,
            None,
            c.length or None,
            c.precision or None,
            c.scale if c.type in (Type.DECIMAL, Type.TIME, Type.DATETIME, Type.TIMESTAMP) else None,
            not c.not_null,
        )
        for c in columns
    ]


class CursorState:
    """What the cursors of both sides share: the last statement, and what it gave."""

    arraysize = 1

    def __init__(self) -> None:
        self._rows: CoreRows | None = None
        self._result: Result | None = None  # of executemany
        self._given = 0
        self._closed = False

    @property
    def description(self) -> Description | None:
        """Describes the columns, seven things of each; None: the last statement has no rows."""
        return describe(self._rows.columns) if self._rows else None

    @property
    def columns(self) -> list[Column]:
        """Describes the columns, with all that the server tells."""
        return self._rows.columns if self._rows else []

    @property
    def result(self) -> Result | None:
        """How the last statement ended; None: it has not yet, since not all rows have come."""
        return self._rows.result if self._rows else self._result

    @property
    def rowcount(self) -> int:
        """How many rows were changed, or come; -1: it is not known, or not yet, since not all rows have come."""
        rows, result = self._rows, self.result
        if result is None or result.repeated:
            return -1
        return rows.count if rows is not None and rows.columns else result.affected_rows

    @property
    def rownumber(self) -> int | None:
        """The number of the next row, from 0 on; None: there are none."""
        return self._given if self._rows is not None and self._rows.columns else None

    @property
    def lastrowid(self) -> int | None:
        """The first AUTO_INCREMENT value that the last statement has given."""
        result = self.result
        return result.last_insert_id or None if result else None

    @property
    def warnings(self) -> int:
        """How many conditions SHOW WARNINGS lists."""
        return self.result.warnings if self.result else 0

    @property
    def gtid(self) -> int:
        """The number of the transaction that the last statement has committed; 0: none. In a transaction see
        Connection.gtid after commit()."""
        return self.result.gtid if self.result else 0

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Of PEP 249; it does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Of PEP 249; it does nothing."""

    def nextset(self) -> None:
        """Of PEP 249: a statement has one set of rows."""
        self._open()

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> NoReturn:
        """Of PEP 249: the server has no stored procedures."""
        raise errors.NotSupportedError("callproc: the server has no stored procedures: execute the statements", number=1235)

    def _open(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed")

    def _set(self) -> CoreRows:
        self._open()
        if self._rows is None or not self._rows.columns:
            raise no_rows("fetch")
        if self._rows.closed:
            raise errors.InterfaceError("the rows are gone: the transaction has ended before they were read")
        return self._rows


class Cursor(CursorState):
    """Runs statements of a connection. One thread uses it, and its connection, at a time."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """Its connection."""
        return self._connection

    def execute(
        self, operation: str, parameters: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Cursor:
        """Runs a statement, with a ? for each parameter. read says what it may miss; timeout is in seconds."""
        self._begin()
        self._rows = run(self._connection._core.execute(operation, parameters, read, timeout))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Params], *, timeout: float | None = None) -> Cursor:
        """Runs a statement with many sets of parameters, without waiting for each answer. In autocommit they are one
        transaction. If one fails, the error's row says which, and those after it are not run."""
        self._begin()
        self._result = run(self._connection._core.execute_many(operation, seq_of_parameters, timeout))
        return self

    def _begin(self) -> None:
        self._open()
        rows, self._rows, self._result, self._given = self._rows, None, None, 0
        if rows is not None:
            run(rows.close())

    def fetchone(self) -> Row | None:
        """The next row; None: there is none."""
        rows = self._set()
        while (row := rows.take()) is None:
            if not run(rows.more()):
                return None
        self._given += 1
        return row

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, arraysize of them unless size is given."""
        self._set()
        size = self.arraysize if size is None else size
        found: list[Row] = []
        while len(found) < size and (row := self.fetchone()) is not None:
            found.append(row)
        return found

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        self._set()
        return list(self)

    def batches(self) -> Iterator[Batch]:
        """The rows that are left as batches of columns, as they have come: no row is made of them."""
        rows = self._set()
        while True:
            batch = rows.take_batch()
            if batch is not None:
                self._given += len(batch)
                yield batch
            elif not run(rows.more()):
                return

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def close(self) -> None:
        """Ends the cursor. Rows that were not read are not sent any more."""
        if not self._closed:
            if not self._connection._core.closed:
                self._begin()
            self._closed = True

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Connection:
    """A session, in which transactions begin by themselves, unless autocommit is on. One thread uses it at a time, but for
    cancel()."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, core: CoreConnection, owner: bool = False, database: object = None) -> None:
        self._core = core
        self._owner = owner  # of the group
        self._database = database  # which is not to be collected before

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._core.check()
        return Cursor(self)

    def execute(
        self, operation: str, parameters: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Cursor:
        """Runs a statement in a cursor of its own."""
        return self.cursor().execute(operation, parameters, read=read, timeout=timeout)

    def commit(self) -> None:
        """Commits the transaction, if there is one. If the answer is lost, the leader is asked what became of it: an
        UnknownOutcome says that nobody could be asked, any other error that it is not committed."""
        run(self._core.commit())

    def rollback(self) -> None:
        """Rolls the transaction back, if there is one. After an error that has done so already, the next one may begin."""
        run(self._core.rollback())

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction. It can be changed between transactions."""
        return self._core.autocommit

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        run(self._core.set_autocommit(on))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction goes on."""
        return self._core.in_transaction

    @property
    def gtid(self) -> int:
        """The number of the transaction that was committed last; 0: none. at_least(gtid) reads what it has written."""
        return self._core.gtid

    @property
    def connection_id(self) -> int:
        """CONNECTION_ID() of the session, as in the process list."""
        return self._core.session.connection_id if self._core.session else 0

    def ping(self, timeout: float | None = None) -> None:
        """Asks the server for an answer."""
        run(self._core.ping(timeout))

    def cancel(self) -> None:
        """Interrupts the statement that runs, which then fails with StatementCancelled. Any thread may call it."""
        self._core.cancel()

    def close(self) -> None:
        """Rolls back and ends the connection."""
        try:
            run(self._core.close())
        finally:
            if self._owner:
                self._core.group.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Commits, or rolls back if there was an exception, and closes."""
        try:
            if kind is None and not self._core.closed:
                self.commit()
        finally:
            self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and not core.closed and not core.group.closed:
            warnings.warn("a trireme.Connection was not closed", ResourceWarning, stacklevel=1, source=self)
            core.drop()
            if self._owner:
                core.group.close()

    def __repr__(self) -> str:
        session = self._core.session
        where = session.node.address if session else "no node"
        return f"<trireme.Connection to {where} user={self._core.group.options.user!r}{' closed' if self._core.closed else ''}>"


# The constructors of PEP 249.

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    """A date of seconds since 1970, in local time."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    """A time of day of seconds since 1970, in local time."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """A date and time of seconds since 1970, in local time."""
    return dt.datetime(*time.localtime(ticks)[:6])
