"""The blocking side: a group of nodes with a pool of sessions, which threads share."""

from __future__ import annotations

import atexit
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ._core import work
from ._core.blocking import Blocking
from ._core.connection import CoreConnection
from ._core.group import Group
from ._core.rows import CoreRows, Result
from ._core.runtime import run
from ._core.statements import Statement
from .columns import Batch, Column, Row
from .dbapi import Connection
from .options import Addresses, Options, Read, options_of

T = TypeVar("T")

Params = Sequence[Any]


class Rows:
    """The rows of a result, which are received as they are read. They have to be closed, as a with statement does, or read
    to their end. One thread uses them at a time."""

    def __init__(self, core: CoreRows, database: object = None) -> None:
        self._core = core
        self._database = database  # whose session is theirs alone, and which is not to be collected before

    @property
    def columns(self) -> list[Column]:
        """Describes the columns; none: the statement has no rows."""
        return self._core.columns

    @property
    def result(self) -> Result | None:
        """How the statement ended, when all rows have come."""
        return self._core.result

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Row | None:
        """The next row; None: there is none."""
        core = self._core
        while True:
            row = core.take()
            if row is not None:
                return row
            if not run(core.more()):
                return None

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows, so many at most."""
        rows: list[Row] = []
        while len(rows) < size and (row := self.fetchone()) is not None:
            rows.append(row)
        return rows

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(self)

    def batches(self) -> Iterator[Batch]:
        """The rows that are left as batches of columns, as they have come: no row is made of them."""
        core = self._core
        while True:
            batch = core.take_batch()
            if batch is not None:
                yield batch
            elif not run(core.more()):
                return

    def close(self) -> None:
        """Ends the rows. Those that were not read are not sent any more."""
        run(self._core.close())

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._database is not None:
            self._core.drop()


class Transaction:
    """What the function of run_in_transaction is given. One thread uses it at a time."""

    def __init__(self, core: work.Transaction) -> None:
        self._core = core

    def execute(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Result:
        """Runs a statement."""
        with self.query(sql, params, timeout=timeout) as rows:
            run(rows._core.finish())
            return rows.result or Result()

    def executemany(self, sql: str, params: Iterable[Params], *, timeout: float | None = None) -> Result:
        """Runs a statement with many sets of parameters, without waiting for each answer."""
        return run(self._core.execute_many(sql, params, work.deadline(self._core.group, timeout)))

    def query(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Rows:
        """Runs a statement and returns its rows."""
        core = self._core
        st = Statement(sql, params, core.group.zone, None)
        return Rows(run(core.execute(st, work.deadline(core.group, timeout))))

    def fetchall(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> list[Row]:
        """Runs a statement and returns all rows."""
        with self.query(sql, params, timeout=timeout) as rows:
            return rows.fetchall()

    def fetchone(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Row | None:
        """Runs a statement and returns its first row."""
        with self.query(sql, params, timeout=timeout) as rows:
            return rows.fetchone()

    @property
    def token(self) -> bytes | None:
        """Its commit token."""
        return self._core.token

    @property
    def gtid(self) -> int:
        """Its number, once it is committed and has changed something."""
        return self._core.result.gtid if self._core.result else 0


class Database:
    """A group of nodes. It finds the leader by itself and follows it, and keeps sessions open. Threads share it."""

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

    def execute(self, sql: str, params: Params | None = None, *, timeout: float | None = None) -> Result:
        """Runs a statement in autocommit at the leader. One that changes rows is committed once, though it may be sent
        again."""
        return run(work.execute(self._group, sql, params, timeout))

    def executemany(self, sql: str, params: Iterable[Params], *, timeout: float | None = None) -> Result:
        """Runs a statement with many sets of parameters as one transaction, without waiting for each answer."""
        return run(work.execute_many(self._group, sql, params, timeout))

    def query(self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None) -> Rows:
        """Runs a statement and returns its rows. read says what they may miss, and sends it to any node; None: to the
        leader, and nothing."""
        return Rows(run(work.query(self._group, sql, params, read, timeout)), self)

    def fetchall(
        self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> list[Row]:
        """Runs a statement and returns all rows."""
        with self.query(sql, params, read=read, timeout=timeout) as rows:
            return rows.fetchall()

    def fetchone(
        self, sql: str, params: Params | None = None, *, read: Read | None = None, timeout: float | None = None
    ) -> Row | None:
        """Runs a statement and returns its first row."""
        with self.query(sql, params, read=read, timeout=timeout) as rows:
            return rows.fetchone()

    def run_in_transaction(
        self,
        fn: Callable[[Transaction], T],
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
            return fn(Transaction(tx))

        return run(
            work.run_in_transaction(
                self._group, call, isolation=isolation, read_only=read_only, read=read, timeout=timeout
            )
        )

    def connection(self, *, autocommit: bool = False, isolation: str | None = None, read: Read | None = None) -> Connection:
        """A connection as PEP 249 has it, with a session of the pool; close() gives it back. read sends it to any node,
        and writes fail."""
        self._group.check()
        core = CoreConnection(self._group, autocommit, isolation, read)
        run(core.open())
        return Connection(core, database=self)

    def ping(self, timeout: float | None = None) -> None:
        """Asks the leader for an answer."""
        with self.connection() as c:
            c.ping(timeout)

    def close(self) -> None:
        """Ends all sessions."""
        self._group.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        group = getattr(self, "_group", None)
        if group is not None and not group.closed:
            warnings.warn("a trireme.Database was not closed", ResourceWarning, stacklevel=1, source=self)
            group.close()

    def __repr__(self) -> str:
        return f"<trireme.Database {','.join(self.options.addresses)} user={self.options.user!r}>"


_groups: weakref.WeakSet[Group] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends what a program leaves open while gRPC's threads still run: it would wait for them forever later."""
    for group in list(_groups):
        group.close()


def open_group(addresses: Addresses, options: dict[str, Any]) -> Group:
    """Connects to a group."""
    group = Group(options_of(addresses, options), Blocking())
    _groups.add(group)
    try:
        run(group.look())
    except BaseException:
        group.close()
        raise
    return group


def open(addresses: Addresses, **options: Any) -> Database:
    """Connects to a group, and waits until a node has answered that it knows the user.

    addresses are host:port of gRPC ports, of one node or more, in a list or with commas between them, or a URL such as
    trireme://user:password@host:port,host:port/schema?tls=true. For options see Options.
    """
    return Database(open_group(addresses, options))


def connect(
    addresses: Addresses, *, autocommit: bool = False, isolation: str | None = None, read: Read | None = None, **options: Any
) -> Connection:
    """A connection as PEP 249 has it, to a group that is opened for it alone: see open. Programs with several connections
    open a Database and take its connections."""
    group = open_group(addresses, options)
    try:
        core = CoreConnection(group, autocommit, isolation, read)
        run(core.open())
    except BaseException:
        group.close()
        raise
    return Connection(core, owner=True)


