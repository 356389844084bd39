"""Connections and cursors as those of PEP 249, for asyncio."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from .._core.asyncio import Loop
from .._core.connection import CoreConnection
from ..columns import Batch, Row
from ..dbapi import CursorState
from ..options import Read
from ._opening import Opening

Params = Sequence[Any]


class Cursor(CursorState, AbstractAsyncContextManager["Cursor"]):
    """Runs statements of a connection. One task uses it, and its connection, at a time."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """Its connection."""
        return self._connection

    async def execute(
        self, operation: str, parameters: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Cursor:
        """Runs a statement, with a ? for each parameter. read says what it may miss; timeout is in seconds."""
        await self._begin()
        self._rows = await self._connection._core.execute(operation, parameters, read, timeout)
        return self

    async def executemany(self, operation: str, seq_of_parameters: Iterable[Params], *, timeout: float | None = None) -> Cursor:
        """Runs a statement with many sets of parameters, without waiting for each answer. In autocommit they are one
        transaction. If one fails, the error's row says which, and those after it are not run."""
        await self._begin()
        self._result = await self._connection._core.execute_many(operation, seq_of_parameters, timeout)
        return self

    async def _begin(self) -> None:
        self._open()
        rows, self._rows, self._result, self._given = self._rows, None, None, 0
        if rows is not None:
            await rows.close()

    async def fetchone(self) -> Row | None:
        """The next row; None: there is none."""
        rows = self._set()
        while (row := rows.take()) is None:
            if not await rows.more():
                return None
        self._given += 1
        return row

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, arraysize of them unless size is given."""
        self._set()
        size = self.arraysize if size is None else size
        found: list[Row] = []
        while len(found) < size and (row := await self.fetchone()) is not None:
            found.append(row)
        return found

    async def fetchall(self) -> list[Row]:
        """All rows that are left."""
        self._set()
        return [row async for row in self]

    async def batches(self) -> AsyncIterator[Batch]:
        """The rows that are left as batches of columns, as they have come: no row is made of them."""
        rows = self._set()
        while True:
            batch = rows.take_batch()
            if batch is not None:
                self._given += len(batch)
                yield batch
            elif not await rows.more():
                return

    def __aiter__(self) -> Cursor:
        return self

    async def __anext__(self) -> Row:
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def close(self) -> None:
        """Ends the cursor. Rows that were not read are not sent any more."""
        if not self._closed:
            if not self._connection._core.closed:
                await self._begin()
            self._closed = True

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class Connection(AbstractAsyncContextManager["Connection"]):
    """A session, in which transactions begin by themselves, unless autocommit is on. One task uses it at a time, but for
    cancel()."""

    def __init__(self, core: CoreConnection, owner: bool = False) -> None:
        self._core = core
        self._owner = owner  # of the group

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._core.check()
        return Cursor(self)

    def execute(
        self, operation: str, parameters: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Opening[Cursor]:
        """Runs a statement in a cursor of its own."""
        return Opening(self.cursor().execute(operation, parameters, read=read, timeout=timeout))

    async def commit(self) -> None:
        """Commits the transaction, if there is one. If the answer is lost, the leader is asked what became of it: an
        UnknownOutcome says that nobody could be asked, any other error that it is not committed."""
        await self._core.commit()

    async def rollback(self) -> None:
        """Rolls the transaction back, if there is one. After an error that has done so already, the next one may begin."""
        await self._core.rollback()

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction."""
        return self._core.autocommit

    async def set_autocommit(self, on: bool) -> None:
        """Changes autocommit, between transactions."""
        await self._core.set_autocommit(on)

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

    async def ping(self, timeout: float | None = None) -> None:
        """Asks the server for an answer."""
        await self._core.ping(timeout)

    def cancel(self) -> None:
        """Interrupts the statement that runs, which then fails with StatementCancelled. Any task of the loop may call it."""
        self._core.cancel()

    async def close(self) -> None:
        """Rolls back and ends the connection."""
        try:
            await self._core.close()
        finally:
            if self._owner:
                self._core.group.close()
                runtime = self._core.group.runtime
                if isinstance(runtime, Loop):
                    await runtime.drain()

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Commits, or rolls back if there was an exception, and closes."""
        try:
            if kind is None and not self._core.closed:
                await self.commit()
        finally:
            await self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and not core.closed and not core.group.closed:
            warnings.warn("a trireme.aio.Connection was not closed", ResourceWarning, stacklevel=1, source=self)

    def __repr__(self) -> str:
        session = self._core.session
        where = session.node.address if session else "no node"
        return f"<trireme.aio.Connection to {where} user={self._core.group.options.user!r}{' closed' if self._core.closed else ''}>"
