"""One statement with many sets of parameters, sent without waiting for each answer."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import Error, ProgrammingError
from ..v1 import sql_pb2 as pb
from .rows import Result
from .statements import Statement, fill_params
from .stream import Call, Session

UNDER_WAY = 100  # requests, of the 128 that may wait in a session
UNDER_WAY_BYTES = 4 << 20


async def run_many(
    s: Session, text: str, params: Iterable[Sequence[Any]], zone: dt.tzinfo, until: float | None, traceparent: str
) -> tuple[Result, pb.SqlDone | None]:
    """Runs it. After the first failure the rest is not run; the error's row says which parameters it was."""
    st = Statement(text, None, zone, None)
    s.own = s.own or st.stateful
    limit = min(UNDER_WAY_BYTES, s.max_message // 2)
    prepared, handle = s.prepare(text)
    preparing: Call | None = prepared
    waiting: deque[tuple[int, int, Call]] = deque()
    size = affected = warnings = last_id = 0
    done: pb.SqlDone | None = None

    async def take() -> None:
        nonlocal size, affected, warnings, last_id, done
        row, n, call = waiting.popleft()
        size -= n
        try:
            done = await s.finish(call, until)
        except Error as e:
            e.row = row
            raise
        affected += done.affected_rows
        warnings += done.warnings
        last_id = last_id or done.last_insert_id

    async def drop() -> None:
        """Takes the answers of what was sent behind the one that failed."""
        while waiting and s.ended is None:
            with contextlib.suppress(Error):
                await s.finish(waiting.popleft()[2], until)

    try:
        for row, values in enumerate(params):
            m = s.request(if_ok=True)
            m.execute.statement.handle = handle
            m.execute.statement.traceparent = traceparent
            if isinstance(values, (str, bytes, dict)) or not isinstance(values, Sequence):
                bad = ProgrammingError(f"executemany takes a sequence of sequences, and these parameters are a {type(values).__name__}")
                bad.row = row
                raise bad
            try:
                fill_params(m.execute.statement, values, zone)
            except Error as e:
                e.row = row
                raise
            if until is not None:
                m.execute.statement.timeout_ms = int(max((until - s.group.runtime.now()) * 1000, 1))
            n = m.ByteSize() + 512
            while waiting and (len(waiting) >= UNDER_WAY or size + n > limit):
                if preparing is not None:
                    await s.part(preparing, until)
                    preparing = None
                await take()
            size += n
            waiting.append((row, n, s.send(m)))
        if preparing is not None:
            await s.part(preparing, until)
            preparing = None
        while waiting:
            await take()
    except Error:
        await drop()
        raise
    m = s.request()
    m.close_prepared.handle = handle
    await s.finish(s.send(m), until)
    return Result(affected, last_id, warnings), done
