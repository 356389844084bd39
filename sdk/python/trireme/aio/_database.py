"""A group of nodes with a pool of sessions, which the tasks of an event loop share."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from .._core import work
from .._core.asyncio import Loop
from .._core.connection import CoreConnection
from .._core.group import Group
from .._core.rows import CoreRows, Result
from .._core.statements import Statement
from ..columns import Batch, Column, Row
from ..options import Addresses, Options, Read, options_of
from ._connection import Connection
from ._opening import Opening

T = TypeVar("T")

Params = Sequence[Any]


class Rows(AbstractAsyncContextManager["Rows"]):
    """The rows of a result, which are received as they are read. They have to be closed, as async with does, or read to
    their end. One task uses them at a time."""

    def __init__(self, core: CoreRows, alone: bool = False) -> None:
        self._core = core
        self._alone = alone  # the session is theirs

    @property
    def columns(self) -> list[Column]:
        """Describes the columns; none: the statement has no rows."""
        return self._core.columns

    @property
    def result(self) -> Result | None:
        """How the statement ended, when all rows have come."""
        return self._core.result

    def __aiter__(self) -> Rows:
        return self

    async def __anext__(self) -> Row:
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def fetchone(self) -> Row | None:
        """The next row; None: there is none."""
        core = self._core
        while True:
            row = core.take()
            if row is not None:
                return row
            if not await core.more():
                return None

    async def fetchmany(self, size: int) -> list[Row]:
        """The next rows, so many at most."""
        rows: list[Row] = []
        while len(rows) < size and (row := await self.fetchone()) is not None:
            rows.append(row)
        return rows

    async def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return [row async for row in self]

    async def batches(self) -> AsyncIterator[Batch]:
        """The rows that are left as batches of columns, as they have come: no row is made of them."""
        core = self._core
        while True:
            batch = core.take_batch()
            if batch is not None:
                yield batch
            elif not await core.more():
                return

    async def close(self) -> None:
        """Ends the rows. Those that were not read are not sent any more."""
        await self._core.close()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if self._alone:
            self._core.drop()


class Transaction:
    """What the function of run_in_transaction is given. One task uses it at a time."""

    def __init__(self, core: work.Transaction) -> None:
        self._core = core

    async def execute(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Result:
        """Runs a statement."""
        rows = await self._query(sql, params, timeout)
        await rows._core.finish()
        return rows.result or Result()

    async def executemany(self, sql: str, params: Iterable[Params], *, timeout: float | None = None) -> Result:
        """Runs a statement with many sets of parameters, without waiting for each answer."""
        return await self._core.execute_many(sql, params, work.deadline(self._core.group, timeout))

    async def _query(self, sql: str, params: Params | None, timeout: float | None) -> Rows:
        core = self._core
        st = Statement(sql, params, core.group.zone, None)
        return Rows(await core.execute(st, work.deadline(core.group, timeout)))

    def query(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Opening[Rows]:
        """Runs a statement and returns its rows."""
        return Opening(self._query(sql, params, timeout))

    async def fetchall(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> list[Row]:
        """Runs a statement and returns all rows."""
        async with self.query(sql, params, timeout=timeout) as rows:
            return await rows.fetchall()

    async def fetchone(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Row | None:
        """Runs a statement and returns its first row."""
        async with self.query(sql, params, timeout=timeout) as rows:
            return await rows.fetchone()

    @property
    def token(self) -> bytes | None:
        """Its commit token."""
        return self._core.token

    @property
    def gtid(self) -> int:
        """Its number, once it is committed and has changed something."""
        return self._core.result.gtid if self._core.result else 0


class Database(AbstractAsyncContextManager["Database"]):
    """A group of nodes. It finds the leader by itself and follows it, and keeps sessions open. The tasks of the event loop
    in which it was opened share it."""

    def __init__(self, group: Group) -> None:
        self._group = group

    @property
    def options(self) -> Options:
        """What it was opened with."""
        return self._group.options

    @property
    def last_gtid(self) -> int:
        """The number of the last transaction that was committed here: at_least(db.last_gtid) reads what was written."""
        return self._group.last_gtid

    async def execute(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Result:
        """Runs a statement in autocommit at the leader. One that changes rows is committed once, though it may be sent
        again."""
        return await work.execute(self._group, sql, params, timeout)

    async def executemany(self, sql: str, params: Iterable[Params], *, timeout: float | None = None) -> Result:
        """Runs a statement with many sets of parameters as one transaction, without waiting for each answer."""
        return await work.execute_many(self._group, sql, params, timeout)

    def query(
        self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Opening[Rows]:
        """Runs a statement and returns its rows. read says what they may miss, and sends it to any node; None: to the
        leader, and nothing."""

        async def opened() -> Rows:
            return Rows(await work.query(self._group, sql, params, read, timeout), alone=True)

        return Opening(opened())

    async def fetchall(
        self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> list[Row]:
        """Runs a statement and returns all rows."""
        async with self.query(sql, params, read=read, timeout=timeout) as rows:
            return await rows.fetchall()

    async def fetchone(
        self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Row | None:
        """Runs a statement and returns its first row."""
        async with self.query(sql, params, read=read, timeout=timeout) as rows:
            return await rows.fetchone()

    async def run_in_transaction(
        self,
        fn: Callable[[Transaction], Awaitable[T]],
        *,
        isolation: str | None = None,
        read_only: bool = False,
        read: Read | None = None,
        timeout: float | None = None,
    ) -> T:
        """Runs fn in a transaction, commits it, and returns what fn has returned.

        While that fails for reasons that pass, such as a deadlock or a leader that is gone, fn is called again, with
        pauses that grow; it must have no other effects. Of all these transactions one is committed: they have one commit
        token. What fn raises by itself rolls back and is raised.
        """

        async def call(tx: work.Transaction) -> T:
            return await fn(Transaction(tx))

        return await work.run_in_transaction(
            self._group, call, isolation=isolation, read_only=read_only, read=read, timeout=timeout
        )

    def connection(
        self, *, autocommit: bool = False, isolation: str | None = None, read: Read | None = None
    ) -> Opening[Connection]:
        """A connection with a session of the pool; close() gives it back. read sends it to any node, and writes fail."""

        async def opened() -> Connection:
            self._group.check()
            core = CoreConnection(self._group, autocommit, isolation, read)
            await core.open()
            return Connection(core)

        return Opening(opened())

    async def ping(self, timeout: float | None = None) -> None:
        """Asks the leader for an answer."""
        async with self.connection() as c:
            await c.ping(timeout)

    async def close(self) -> None:
        """Ends all sessions."""
        await _close(self._group)

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __del__(self) -> None:
        group = getattr(self, "_group", None)
        if group is not None and not group.closed:
            warnings.warn("a trireme.aio.Database was not closed", ResourceWarning, stacklevel=1, source=self)

    def __repr__(self) -> str:
        return f"<trireme.aio.Database {','.join(self.options.addresses)} user={self.options.user!r}>"


async def _close(group: Group) -> None:
    group.close()
    if isinstance(group.runtime, Loop):
        await group.runtime.drain()


async def _open(addresses: Addresses, options: dict[str, Any]) -> Group:
    group = Group(options_of(addresses, options), Loop())
    try:
        await group.look()
    except BaseException:
        await _close(group)
        raise
    return group


def open(addresses: Addresses, **options: Any) -> Opening[Database]:
    """Connects to a group, and waits until a node has answered that it knows the user: see trireme.open."""

    async def opened() -> Database:
        return Database(await _open(addresses, options))

    return Opening(opened())


def connect(
    addresses: Addresses, *, autocommit: bool = False, isolation: str | None = None, read: Read | None = None, **options: Any
) -> Opening[Connection]:
    """A connection to a group that is opened for it alone: see trireme.connect."""

    async def opened() -> Connection:
        group = await _open(addresses, options)
        try:
            core = CoreConnection(group, autocommit, isolation, read)
            await core.open()
        except BaseException:
            await _close(group)
            raise
        return Connection(core, owner=True)

    return Opening(opened())
