"""Results: rows that are received as they are read."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator

from ..columns import Batch, Column, Row
from ..errors import Error, InterfaceError, InternalError, ProgrammingError, Retry, changed
from ..v1 import sql_pb2 as pb
from .stream import Call, Session, columns_of


@dataclasses.dataclass(frozen=True)
class Result:
    """How a statement ended."""

    affected_rows: int = 0
    last_insert_id: int = 0
    """The first AUTO_INCREMENT value that it has given; 0: none."""
    warnings: int = 0
    """How many conditions SHOW WARNINGS lists."""
    info: str = ""
    """As MySQL's, such as "Rows matched: 1  Changed: 1  Warnings: 0"."""
    gtid: int = 0
    """The number of the transaction that it has committed; 0: none, or not yet. A read with at_least(gtid) sees it, on
    any node."""
    repeated: bool = False
    """The statement was found to have been committed when it was sent again, since its answer had been lost.
    affected_rows and last_insert_id are not known then."""


def result_of(d: pb.SqlDone) -> Result:
    """What a statement's end says."""
    return Result(d.affected_rows, d.last_insert_id, d.warnings, d.info, d.gtid, d.repeated)


class CoreRows:
    """The rows of a result. One task uses them at a time."""

    def __init__(
        self,
        session: Session,
        call: Call,
        until: float | None,
        release: Callable[[Session], None],
        note: Callable[[pb.SqlDone], None] | None = None,
        failing: Callable[[Error], object] | None = None,
    ) -> None:
        self.session = session
        self.call = call
        self.columns: list[Column] = []
        self.result: Result | None = None  # when the answer has ended
        self.closed = False
        self.failed: Error | None = None
        self.count = 0  # rows that have come
        self._until = until
        self._release: Callable[[Session], None] | None = release
        self._note = note
        self._failing = failing  # is told of an error that ends the answer
        self._last = False
        self._batches: deque[Batch] = deque()
        self._rows: Iterator[Row] = iter(())
        self._present: Batch | None = None  # whose rows are given, or are with the caller

    async def part(self) -> None:
        """Takes the next part of the answer."""
        try:
            m = await self.session.part(self.call, self._until)
            if not m.HasField("result"):
                raise InternalError(f"{self.session.node.address} has not answered what it was asked")
            result = m.result
            if len(result.columns) > 0:
                self.columns = columns_of(result)
            if result.HasField("batch"):
                batch = Batch(self.columns, result.batch, self.session.group.reading)
                self.count += len(batch)
                self._batches.append(batch)
        except BaseException as e:
            self._last = True
            if self._failing is not None and isinstance(e, Error):
                self._failing(e)
            raise
        if result.HasField("done"):
            self._last = True
            self.result = result_of(result.done)
            self.session.group.note(result.done.gtid)
            if self._note is not None:
                self._note(result.done)
            self.release()

    @property
    def complete(self) -> bool:
        """Whether all rows have come."""
        return self._last

    def take(self) -> Row | None:
        """The next row, if it has come."""
        while True:
            row = next(self._rows, None)
            if row is not None or not self._batches:
                return row
            self._rows = self._begin(self._batches.popleft()).rows()

    def take_batch(self) -> Batch | None:
        """The next batch, if it has come. The rows of the present one that were not read are passed over."""
        self._rows = iter(())
        return self._begin(self._batches.popleft()) if self._batches else None

    def _begin(self, batch: Batch) -> Batch:
        self._credit()
        self._present = batch
        return batch

    def _credit(self) -> None:
        if self._present is not None:
            if not self._last:
                self.session.credit(self.call, self._present.bytes)
            self._present = None

    async def more(self) -> bool:
        """Waits for more rows. False: there are none."""
        if self.failed is not None:
            raise self.failed
        self._credit()
        if self._last or self.closed:
            return False
        try:
            await self.part()
        except Error as e:
            self.failed = changed(e, Retry.NEVER)  # some rows were seen
            self.release()
            raise self.failed from None
        except BaseException:
            self.release()
            raise
        return True

    async def keep(self) -> None:
        """Takes the rest into memory, since the session is needed for something else."""
        most = self.session.group.options.buffer
        size = sum(b.bytes for b in self._batches)
        self._credit()
        for b in self._batches:
            self.session.credit(self.call, b.bytes)
        while not self._last and not self.closed:
            before = len(self._batches)
            if not await self.more():
                break
            for b in list(self._batches)[before:]:
                size += b.bytes
                if not self._last:
                    self.session.credit(self.call, b.bytes)
            if size > most:
                await self.close()
                self.failed = ProgrammingError(
                    f"the rows that were not read yet have more than {most} bytes (Options.buffer), and another statement came: "
                    "read them, or close the cursor, before it; or use another connection for it",
                    number=2014,
                )
                raise self.failed

    async def finish(self) -> None:
        """Waits for the end of a statement whose rows nobody wants: they are passed over, but all of it is run."""
        try:
            while self.take_batch() is not None or await self.more():
                pass
        finally:
            await self.close()

    def release(self) -> None:
        """Gives the session back."""
        release, self._release = self._release, None
        if release is not None:
            release(self.session)

    async def close(self) -> None:
        """Ends the rows. Those that were not read are not sent any more."""
        if self.closed:
            return
        self.closed = True
        self._rows, self._present = iter(()), None
        self._batches.clear()
        try:
            if not self._last and self.session.ended is None:
                self.session.cancel(self.call.request)
                while not self._last:
                    await self.part()
                    for b in self._batches:
                        self.session.credit(self.call, b.bytes)
                    self._batches.clear()
        except Error:
            pass  # such as that it was interrupted
        finally:
            self._last = True
            self.release()

    def drop(self) -> None:
        """Ends the rows, and their session, without waiting: of the garbage collector."""
        if not self._last and not self.closed:
            self.closed = self._last = True
            self.session.abandon(self.call)
            self._release = None


def no_rows(what: str) -> InterfaceError:
    """There is nothing to read."""
    return InterfaceError(f"{what}: the last statement has no rows: execute one that has")
