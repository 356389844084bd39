"""Statements in autocommit and transactions, with what is tried again by itself."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..errors import (
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    Retry,
    TransactionRolledBack,
    UnknownOutcome,
    changed,
    copied,
    elsewhere,
)
from ..options import Read
from ..trace import begin as begin_trace
from ..trace import traceparent
from ..v1 import sql_pb2 as pb
from .group import Group, log
from .many import run_many
from .rows import CoreRows, Result, result_of
from .statements import Statement, new_token
from .stream import Call, Session

T = TypeVar("T")

ISOLATIONS = {
    None: pb.SQL_ISOLATION_UNSPECIFIED,
    "READ UNCOMMITTED": pb.SQL_ISOLATION_READ_UNCOMMITTED,
    "READ COMMITTED": pb.SQL_ISOLATION_READ_COMMITTED,
    "REPEATABLE READ": pb.SQL_ISOLATION_REPEATABLE_READ,
    "SERIALIZABLE": pb.SQL_ISOLATION_SERIALIZABLE,
}


def deadline(group: Group, timeout: float | None) -> float | None:
    """When a call has to have ended."""
    if timeout is None:
        timeout = group.options.timeout
    if timeout is None:
        return None
    if timeout <= 0:
        raise InterfaceError(f"timeout={timeout}: it is more than 0 seconds, or None")
    return group.runtime.now() + timeout


def left(group: Group, until: float | None) -> float | None:
    """How much time there is until then."""
    return None if until is None else until - group.runtime.now()


def message(s: Session, st: Statement, until: float | None, *, if_ok: bool = False) -> pb.SqlSessionsRequest:
    """A statement as it is sent."""
    m = s.request(if_ok)
    st.fill(m.execute.statement, left(s.group, until))
    m.execute.window_bytes = s.group.options.window
    s.own = s.own or st.stateful
    return m


async def query(group: Group, text: str, params: Sequence[Any] | None, read: Read | None, timeout: float | None) -> CoreRows:
    """Runs a statement in autocommit, up to its columns, in a session of its own until its rows are closed."""
    group.check()
    st = Statement(text, params, group.zone, read)
    until = deadline(group, timeout)
    if st.changes and read is None:
        st.token = new_token()
    behind: set[str] = set()  # nodes that did not have in time what is to be read

    async def once() -> CoreRows:
        s = await (group.writer(until) if read is None else group.reader(until, behind))
        s.own = s.own or st.begins  # nobody would end it
        try:
            rows = CoreRows(s, s.send(message(s, st, until)), until, group.put)
            await rows.part()
            return rows
        except Error as e:
            group.put(s)
            if e.number == 1205 and read is not None:
                behind.add(s.node.address)
                if any(a not in behind for a in group.candidates()):
                    raise changed(e, Retry.ELSEWHERE) from None
                raise
            raise after(e, st) from None
        except BaseException:
            s.close()
            raise

    with begin_trace(group.options.trace, st.word or "statement", group.options.schema) as span:
        st.traceparent = traceparent(span)
        try:
            rows = await group.patiently(once, until)
        except Error as e:
            raise unknown(e, st.token) from None
        span.set("server.address", rows.session.node.address)
    return rows


def after(e: Error, st: Statement) -> Error:
    """What an error of a statement in autocommit means for trying it again."""
    if e.retry is Retry.SAME_TOKEN and st.reads:
        return elsewhere(e)
    if e.retry is Retry.SAME_TOKEN and st.token is None:
        return changed(e, Retry.NEVER)
    if e.retry in (Retry.SAME_TOKEN, Retry.ELSEWHERE):
        st.again = st.token is not None
    return e


def unknown(e: Error, token: bytes | None) -> Error:
    """An error whose outcome nobody could be asked about tells its token."""
    if e.retry is not Retry.SAME_TOKEN or token is None:
        return e
    u = UnknownOutcome(e.message, number=e.number, sqlstate=e.sqlstate, retry=Retry.SAME_TOKEN, session_ended=e.session_ended)
    u.token = token
    return u


async def execute(group: Group, text: str, params: Sequence[Any] | None, timeout: float | None) -> Result:
    """Runs a statement in autocommit whose rows nobody wants."""
    rows = await query(group, text, params, None, timeout)
    await rows.finish()
    return rows.result or Result()


class Transaction:
    """One that goes on in a session. One task uses it at a time."""

    def __init__(
        self,
        group: Group,
        session: Session,
        *,
        token: bytes | None,
        isolation: str | None = None,
        read_only: bool = False,
        read: Read | None = None,
        noted: Callable[[pb.SqlDone], None] | None = None,
    ) -> None:
        if isolation is not None:
            isolation = isolation.upper().replace("-", " ").replace("_", " ")
        if isolation not in ISOLATIONS:
            raise InterfaceError(f"isolation={isolation!r}: there are {', '.join(repr(k) for k in ISOLATIONS if k)}")
        self.group = group
        self.session = session
        self.token = token
        self.broken: Error | None = None  # it has been rolled back
        self.over = False
        self.result: Result | None = None  # of the commit
        self.rows: CoreRows | None = None
        self.active = False  # begin has been sent
        self._noted = noted  # is told how statements end; None: one that ends the transaction is an error
        self._isolation = ISOLATIONS[isolation]
        self._read_only = read_only
        self._read = read

    def send_begin(self, parent: str, again: bool = False) -> Call:
        """Begins it, as part of what the traceparent names."""
        m = self.session.request()
        m.begin.traceparent = parent
        m.begin.isolation = self._isolation
        m.begin.read_only = self._read_only
        if self._read is not None:
            self._read.fill(m.begin.read)
        if self.token is not None and not self._read_only and not self.session.read_only:
            m.begin.commit_token = self.token
            m.begin.again = again
        self.active = True
        return self.session.send(m)

    async def settle(self) -> None:
        """Takes what is left of the statement before."""
        rows, self.rows = self.rows, None
        if rows is not None and not rows.complete:
            await rows.keep()

    def ready(self) -> None:
        """Error: nothing can be run in it any more."""
        if self.over:
            raise InterfaceError("the transaction is over: begin another one")
        if self.broken is not None:
            raise copied(self.broken)
        self.group.runtime.check()

    def failed(self, e: Error, commits: bool = False) -> Error:
        """Notes an error after which the transaction is gone: it has no effect, unless it was of a statement that commits."""
        if self.session.ended is not None or e.session_ended or e.retry in (Retry.TRANSACTION, Retry.ELSEWHERE):
            e = unknown(e, self.token) if commits else elsewhere(e)
            self.broken = e
        return e

    def note(self, done: pb.SqlDone) -> None:
        """Notices a statement that has ended it."""
        if self._noted is not None:
            self._noted(done)
        elif not done.in_transaction and not self.over:
            self._ended()

    def _ended(self) -> None:
        self.broken = ProgrammingError(
            "the transaction was ended by a statement that commits by itself, such as CREATE or COMMIT: run it outside"
        )

    def _another(self) -> None:
        """Notes that a statement has ended the transaction, and that another one may go on, which has no token."""
        self.token = None
        if self._noted is None:
            self._ended()

    async def _begun(self, call: Call | None, until: float | None) -> None:
        """Waits until it has begun."""
        if call is not None:
            try:
                await self.session.finish(call, until)
            except Error as e:
                self.broken = elsewhere(e)
                raise

    async def execute(self, st: Statement, until: float | None) -> CoreRows:
        """Runs a statement, up to its columns."""
        self.ready()
        await self.settle()
        with begin_trace(self.group.options.trace, st.word or "statement", self.group.options.schema) as span:
            span.set("server.address", self.session.node.address)
            st.traceparent = traceparent(span)
            m = message(self.session, st, until, if_ok=not self.active)
            commits = st.commits and (self.active or not st.begins)
            try:
                begun = None if self.active else self.send_begin(st.traceparent)
                call = self.session.send(m)
                await self._begun(begun, until)
                rows = CoreRows(self.session, call, until, lambda s: None, self.note, lambda e: self.failed(e, commits))
                await rows.part()
                if st.chains or (rows.result is not None and rows.result.gtid):
                    self._another()
            except Error as e:
                raise self.failed(e, commits) from None
            except BaseException:
                self.session.close()
                self.broken = _gone()
                raise
        self.rows = rows
        return rows

    async def execute_many(self, text: str, params: Iterable[Sequence[Any]], until: float | None) -> Result:
        """Runs a statement with many sets of parameters, without waiting for each answer."""
        self.ready()
        await self.settle()
        with begin_trace(self.group.options.trace, "executemany", self.group.options.schema) as span:
            parent = traceparent(span)
            try:
                await self._begun(None if self.active else self.send_begin(parent), until)
                result, done = await run_many(self.session, text, params, self.group.zone, until, parent)
            except Error as e:
                raise self.failed(e) from None
            except BaseException:
                self.session.close()
                self.broken = _gone()
                raise
            if done is not None:
                self.note(done)
            return result

    async def commit(self) -> Result:
        """Commits it. An answer that is lost is asked for; OperationalError says whether it is committed."""
        if self.broken is not None and not self.over:
            self.over = True
            raise copied(self.broken)
        self.ready()
        await self.settle()
        self.over = True
        if not self.active:
            self.result = Result()
            return self.result
        until = deadline(self.group, None)
        m = self.session.request()
        m.commit.SetInParent()
        with begin_trace(self.group.options.trace, "COMMIT", self.group.options.schema) as span:
            m.commit.traceparent = traceparent(span)
            try:
                self.result = result_of(await self.session.finish(self.session.send(m), until))
            except Error as e:
                if e.retry is not Retry.SAME_TOKEN:
                    raise
                self.result = await self._outcome(e)
        self.group.note(self.result.gtid)
        return self.result

    async def _outcome(self, e: Error) -> Result:
        if self._read_only or self.session.read_only:
            raise _rolled_back(e)
        if self.token is None:
            raise changed(e, Retry.NEVER)  # nobody knows
        log.debug("asking what became of a commit: %s", e)
        try:
            gtid = await self.group.outcome(self.token, None)
        except Error as asked:
            u = unknown(changed(e, Retry.SAME_TOKEN), self.token)
            u.message += f"; nobody could be asked whether it was committed: {asked}"
            raise u from None
        if gtid is not None:
            return Result(gtid=gtid, repeated=True)
        raise _rolled_back(e)

    async def rollback(self) -> None:
        """Ends it without effect. A session that is gone has rolled it back already."""
        if self.over:
            return
        self.over = True
        rows, self.rows = self.rows, None
        try:
            if rows is not None:
                await rows.close()
            if self.active and self.session.ended is None:
                m = self.session.request()
                m.rollback.SetInParent()
                await self.session.finish(self.session.send(m), None)
        except Error as e:
            log.debug("rolling back: %s", e)
            self.session.close()  # which rolls back as well


def _rolled_back(e: Error) -> Error:
    text = f"The transaction was not committed: {e.message}"
    return TransactionRolledBack(text, number=e.number, sqlstate=e.sqlstate, retry=Retry.ELSEWHERE, session_ended=True)


def _gone() -> Error:
    return OperationalError("the transaction was rolled back: a statement of it was given up", number=1317, sqlstate="70100")


async def open_transaction(
    group: Group,
    token: bytes,
    again: bool,
    isolation: str | None,
    read_only: bool,
    read: Read | None,
    until: float | None,
    parent: str = "",
) -> Transaction:
    """Begins a transaction, in a session of its own. Its result is set if it was committed with its token before. parent is
    the traceparent of what it is part of."""

    async def once() -> Transaction:
        s = await (group.reader(until) if read_only and read is not None else group.writer(until))
        try:
            tx = Transaction(group, s, token=token, isolation=isolation, read_only=read_only, read=read)
            if again:  # otherwise it is begun with its first statement
                done = await s.finish(tx.send_begin(parent, again=True), until)
                if done.repeated:
                    tx.over, tx.result = True, result_of(done)
            return tx
        except Error as e:
            group.put(s)
            raise elsewhere(e) from None  # nothing has been done yet
        except BaseException:
            s.close()
            raise

    group.check()
    return await group.patiently(once, until)


async def run_in_transaction(
    group: Group,
    fn: Callable[[Transaction], Awaitable[T]],
    *,
    isolation: str | None,
    read_only: bool,
    read: Read | None,
    timeout: float | None,
) -> T:
    """Runs fn in a transaction and commits it, again while that fails for reasons that pass. Of all these transactions one
    is committed: they have one commit token."""
    group.check()
    until = deadline(group, timeout)
    token = new_token()
    end = group.runtime.now() + group.options.patience
    if until is not None:
        end = min(end, until)
    pause = 0.002
    again = False
    value: T | None = None
    with begin_trace(group.options.trace, "transaction", group.options.schema) as span:
        attempts = 0
        while True:
            attempts += 1
            span.set("trireme.attempts", attempts)
            tx: Transaction | None = None
            try:
                tx = await open_transaction(group, token, again, isolation, read_only, read, until, traceparent(span))
                if tx.result is not None:
                    group.note(tx.result.gtid)
                    return value  # type: ignore[return-value]  # it was that attempt's, whose commit was sent
                value = await _call(tx, fn)
                await tx.commit()
                return value
            except Error as e:
                if e.retry in (Retry.NEVER, Retry.STATEMENT):
                    raise
                wait = pause * random.uniform(0.5, 1)
                if group.runtime.now() + wait > end:
                    raise unknown(e, token) from None
                log.debug("running a transaction again in %.0f ms: %s", wait * 1000, e)
            finally:
                if tx is not None:
                    await tx.rollback()
                    group.put(tx.session)
            again = True
            await group.runtime.sleep(wait)
            pause = min(2 * pause, 0.1)


async def _call(tx: Transaction, fn: Callable[[Transaction], Awaitable[T]]) -> T:
    try:
        return await fn(tx)
    except Exception:
        if tx.broken is not None and tx.broken.retryable:
            raise copied(tx.broken) from None  # what fn makes of it may say less
        raise


async def execute_many(group: Group, text: str, params: Iterable[Sequence[Any]], timeout: float | None) -> Result:
    """Runs a statement with many sets of parameters as one transaction, committed once."""
    every = params if isinstance(params, (list, tuple)) else list(params)
    until = deadline(group, timeout)
    result = Result()
    last: Transaction | None = None

    async def work(tx: Transaction) -> None:
        nonlocal result, last
        last = tx
        result = await tx.execute_many(text, every, until)

    await run_in_transaction(group, work, isolation=None, read_only=False, read=None, timeout=timeout)
    gtid = last.result.gtid if last is not None and last.result is not None else 0
    return dataclasses.replace(result, gtid=gtid)
