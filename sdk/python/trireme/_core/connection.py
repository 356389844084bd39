"""A connection as PEP 249 has it: a session, in which transactions begin by themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import Error, InterfaceError, OperationalError, Retry, changed, copied, elsewhere
from ..options import Read
from ..trace import begin as begin_trace
from ..trace import traceparent
from ..v1 import sql_pb2 as pb
from .group import Group
from .rows import CoreRows, Result
from .statements import Statement, new_token
from .stream import Session
from .work import Transaction, after, deadline, execute_many, message, unknown


class CoreConnection:
    """One task uses it at a time."""

    def __init__(self, group: Group, autocommit: bool, isolation: str | None, read: Read | None) -> None:
        self.group = group
        self.autocommit = autocommit
        self.isolation = isolation
        self.read = read
        self.closed = False
        self.rows: CoreRows | None = None
        self.gtid = 0  # of its last commit
        self._session: Session | None = None
        self._tx: Transaction | None = None
        self._manual = False  # a transaction was begun by a statement, such as START TRANSACTION
        self._lost: Error | None = None  # why that one was rolled back, until rollback()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction goes on, or has been rolled back without rollback() having been called."""
        return self._manual or self._lost is not None or (self._tx is not None and (self._tx.active or self._tx.broken is not None))

    @property
    def session(self) -> Session | None:
        """The session, if there is one."""
        return self._session

    def check(self) -> None:
        """InterfaceError: the connection is closed."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        self.group.check()

    async def open(self, until: float | None = None) -> Session:
        """Opens the session, if there is none, or it has ended."""
        s = self._session
        if s is not None and s.ended is None:
            return s
        if s is not None:
            why, own = s.ended, s.own
            if self._manual and why is not None:
                self._lose(why)
                self.ready()
            s.close()
            self._session = None
            if own:
                raise OperationalError(
                    f"the session has ended, and what was SET, USEd or made in it is gone: {why.message if why else ''}; do that "
                    "again: the next statement runs in a new session",
                    number=2013,
                    sqlstate="08S01",
                )

        async def once() -> Session:
            return await (self.group.writer(until) if self.read is None else self.group.reader(until))

        self._session = await self.group.patiently(once, until)
        return self._session

    def _lose(self, e: Error) -> None:
        """Notes that the transaction which a statement began is gone. What comes is not to run outside of it."""
        self._manual = False
        self._lost = changed(e, Retry.ELSEWHERE)

    def ready(self, st: Statement | None = None) -> None:
        """Error: the transaction that a statement began is gone, and the next one neither ends it nor begins another."""
        if st is not None and (st.undoes or st.begins):
            self._lost = None
        if self._lost is not None:
            e = copied(self._lost)
            e.message = f"the transaction was rolled back: {e.message}; call rollback() and run it again"
            raise e

    async def settle(self) -> None:
        """Takes what is left of the statement before, whose session is needed."""
        rows, self.rows = self.rows, None
        if rows is not None and not rows.complete:
            await rows.keep()

    async def execute(self, text: str, params: Sequence[Any] | None, read: Read | None, timeout: float | None) -> CoreRows:
        """Runs a statement, up to its columns."""
        self.check()
        await self.settle()
        until = deadline(self.group, timeout)
        st = Statement(text, params, self.group.zone, read or self.read)
        self.ready(st)
        if self._tx is not None:
            rows = await self._tx.execute(st, until)
        elif self.autocommit or self._manual:
            rows = await self._alone(st, until)
        else:
            rows = await self._first(st, until)
        self.rows = rows
        return rows

    def _note(self, done: pb.SqlDone) -> None:
        """Notices what a statement has done with the transaction."""
        if done.gtid:
            self.gtid = done.gtid
        if self._tx is not None and not done.in_transaction:
            self._tx = None  # it was a COMMIT, or a statement that commits by itself
        self._manual = done.in_transaction and self._tx is None

    def _begin(self, s: Session) -> Transaction:
        return Transaction(
            self.group, s, token=new_token(), isolation=self.isolation, read_only=s.read_only, read=self.read, noted=self._note
        )

    async def _first(self, st: Statement, until: float | None) -> CoreRows:
        """Runs the first statement of a transaction. If the session is lost, nothing has been done yet, unless the
        statement is one that commits by itself."""
        safe = True

        async def once() -> CoreRows:
            nonlocal safe
            s = await self.open(until)
            safe = not s.own and (st.reads or st.changes or st.begins)
            tx = self._tx = self._begin(s)
            try:
                return await tx.execute(st, until)
            except Error as e:
                if not tx.active or (safe and s.ended is not None and e.retry is Retry.ELSEWHERE):
                    self._tx = None
                elif not safe and s.ended is not None:
                    raise changed(e, Retry.NEVER) from None
                raise

        return await self.group.patiently(once, until, may=lambda e: safe and self._tx is None)

    async def _alone(self, st: Statement, until: float | None) -> CoreRows:
        """Runs a statement in autocommit, or in a transaction that was begun by a statement."""
        if st.changes and self.read is None and not self._manual:
            st.token = new_token()
        safe = True

        async def once() -> CoreRows:
            nonlocal safe
            safe = not self._manual
            s = await self.open(until)
            safe = True
            manual = self._manual
            own = s.own or st.stateful  # what a session has of its own is not to be had in another
            try:
                rows = CoreRows(s, s.send(message(s, st, until)), until, lambda s: None, self._note)
                await rows.part()
                return rows
            except Error as e:
                if s.ended is not None:
                    self._manual = False
                if manual:
                    safe = False
                    gone = e.retry in (Retry.TRANSACTION, Retry.ELSEWHERE)
                    e = after(e, st) if st.commits else elsewhere(e)  # what is not committed has no effect
                    if gone and st.word == "COMMIT":
                        self._manual = False
                    elif gone or (s.ended is not None and not st.commits):
                        self._lose(e)
                    raise e from None
                e = elsewhere(e) if st.begins else after(e, st)
                safe = not own and (s.ended is not None or e.retry is Retry.TRANSACTION)
                raise e from None

        with begin_trace(self.group.options.trace, st.word or "statement", self.group.options.schema) as span:
            st.traceparent = traceparent(span)
            try:
                rows = await self.group.patiently(once, until, may=lambda e: safe)
            except Error as e:
                raise unknown(e, st.token) from None
            span.set("server.address", rows.session.node.address)
            return rows

    async def execute_many(self, text: str, params: Iterable[Sequence[Any]], timeout: float | None) -> Result:
        """Runs a statement with many sets of parameters: of the transaction, or in autocommit as one of their own."""
        self.check()
        await self.settle()
        self.ready()
        own = self._session is not None and self._session.own
        if self.autocommit and not self._manual and self.read is None and not own:
            result = await execute_many(self.group, text, params, timeout)
            self.gtid = result.gtid or self.gtid
            return result
        until = deadline(self.group, timeout)
        if self._tx is None:
            self._tx = self._begin(await self.open(until))
        tx = self._tx
        if self._manual and not tx.active:
            tx.active, tx.token = True, None  # it was begun without one
        alone = self.autocommit and not self._manual
        try:
            result = await tx.execute_many(text, params, until)
        except Error:
            if alone:
                await self.rollback()
            elif not tx.active:
                self._tx = None
            raise
        if alone:
            await self.commit()
            result = dataclasses.replace(result, gtid=self.gtid)
        return result

    async def commit(self) -> None:
        """Commits the transaction, if there is one."""
        self.check()
        await self.settle()
        self.ready()
        tx = self._tx
        if self._manual:
            self._tx = None
            await self._plain("COMMIT")
            return
        if tx is None:
            return
        if tx.broken is not None:
            e = copied(tx.broken)
            if e.retry is Retry.SAME_TOKEN:
                raise e  # of a statement that may have committed it
            e.message = f"nothing was committed, the transaction was rolled back: {e.message}; call rollback() and run it again"
            raise e
        self._tx = None
        result = await tx.commit()
        self.gtid = result.gtid or self.gtid

    async def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        self.check()
        rows, self.rows = self.rows, None
        if rows is not None:
            await rows.close()
        tx, self._tx = self._tx, None
        self._lost = None
        if self._manual:
            self._manual = False
            s = self._session
            if s is not None and s.ended is None:
                await self._plain("ROLLBACK")
        elif tx is not None:
            await tx.rollback()

    async def _plain(self, text: str) -> None:
        rows = await self._alone(Statement(text, None, self.group.zone, None), None)
        await rows.close()

    async def set_autocommit(self, on: bool) -> None:
        """Changes it between transactions."""
        self.check()
        if self.in_transaction:
            raise InterfaceError("autocommit cannot be changed in a transaction: commit() or rollback() first")
        self.autocommit = on

    async def ping(self, timeout: float | None) -> None:
        """Asks the server for an answer."""
        self.check()
        await self.settle()
        self.ready()
        until = deadline(self.group, timeout)

        async def once() -> None:
            s = await self.open(until)
            m = s.request()
            m.ping.SetInParent()
            try:
                await s.finish(s.send(m), until)
            except Error as e:
                raise (changed(e, Retry.NEVER) if self.in_transaction or s.own else elsewhere(e)) from None

        await self.group.patiently(once, until, may=lambda e: self._lost is None)

    def cancel(self) -> None:
        """Interrupts what runs. Any task, or thread, may call it."""
        s = self._session
        if s is not None and s.ended is None:
            s.cancel(0)

    async def close(self) -> None:
        """Rolls back, and gives the session back."""
        if self.closed:
            return
        s = self._session
        try:
            if not self.group.closed:
                await self.rollback()
        except BaseException:
            if s is not None:
                s.close()  # it may be in the transaction still
            raise
        finally:
            self.closed = True
            self._session = None
            if s is not None:
                self.group.put(s)

    def drop(self) -> None:
        """Ends the session without waiting: of the garbage collector."""
        self.closed = True
        if self._session is not None:
            self._session.close()
