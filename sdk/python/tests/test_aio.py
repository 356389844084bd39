"""The side of asyncio. What both sides share is tested on the blocking one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import servers

import trireme
from trireme import aio

NUMBERS = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000)"

Opened = Callable[[], Any]


@pytest.fixture
def opened(db: trireme.Database, group: servers.Group) -> Opened:
    db.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, n INT NOT NULL)")
    db.execute("DELETE FROM t")
    db.execute("INSERT INTO t VALUES (1, 0), (2, 0)")

    @asynccontextmanager
    async def one() -> AsyncIterator[aio.Database]:
        async with aio.open(group.addresses, **group.options(schema=db.options.schema)) as adb:
            yield adb

    return one


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, servers.PATIENCE))


def test_statements(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as db:
            r = await db.execute("UPDATE t SET n = n + ? WHERE id = 1", [5])
            assert r.affected_rows == 1
            assert await db.fetchone("SELECT n FROM t WHERE id = 1", read=trireme.at_least(r.gtid)) == (5,)
            async with db.query("SELECT id, n FROM t ORDER BY id") as rows:
                assert [c.name for c in rows.columns] == ["id", "n"]
                assert [row async for row in rows] == [(1, 5), (2, 0)]
            rows = await db.query("SELECT id FROM t ORDER BY id")
            assert await rows.fetchmany(1) == [(1,)]
            await rows.close()
            assert (await db.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(10, 20)])).affected_rows == 10

            async def move(tx: aio.Transaction) -> str:
                await tx.execute("UPDATE t SET n = n - 1 WHERE id = 1")
                async with tx.query("SELECT n FROM t WHERE id = 1") as rows:
                    assert await rows.fetchall() == [(4,)]
                return "moved"

            assert await db.run_in_transaction(move) == "moved"
            with pytest.raises(trireme.IntegrityError) as e:
                await db.execute("INSERT INTO t VALUES (1, 1)")
            assert e.value.number == 1062
            assert servers.PASSWORD not in repr(db)

    run(main())


def test_connection(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as db:
            async with db.connection() as c, c.cursor() as cur:
                await cur.execute("INSERT INTO t VALUES (5, 5)")
                assert cur.rowcount == 1
                assert c.in_transaction
                await c.rollback()
                await cur.executemany("INSERT INTO t VALUES (?, ?)", [(6, 6), (7, 7)])
                await cur.execute("SELECT id FROM t WHERE id > 2 ORDER BY id")
                assert cur.description is not None
                assert cur.description[0][0] == "id"
                assert await cur.fetchone() == (6,)
                assert await cur.fetchall() == [(7,)]
                async with c.execute("SELECT 1") as other:
                    assert [row async for row in other] == [(1,)]
            assert await db.fetchone("SELECT COUNT(*) FROM t") == (4,)
            c = await db.connection(autocommit=True)
            await c.ping()
            await c.close()
            with pytest.raises(trireme.InterfaceError, match="closed"):
                await c.execute("SELECT 1")

    run(main())


def test_connect(group: servers.Group) -> None:
    async def main() -> None:
        async with aio.connect(group.addresses, **group.options()) as c:
            assert await (await c.execute("SELECT 1")).fetchone() == (1,)
        with pytest.raises(trireme.OperationalError, match="Access denied") as e:
            await aio.open(group.addresses, user="root", password="wrong")
        assert e.value.number == 1045

    run(main())


def test_many_tasks(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as db:

            async def work(i: int) -> None:
                await db.execute("INSERT INTO t VALUES (?, ?)", [100 + i, i])

                async def add(tx: aio.Transaction) -> None:
                    await tx.execute("UPDATE t SET n = n + 1 WHERE id = 1")

                await db.run_in_transaction(add)
                assert await db.fetchone("SELECT n FROM t WHERE id = ?", [100 + i]) == (i,)

            await asyncio.gather(*(work(i) for i in range(50)))
            assert await db.fetchone("SELECT n FROM t WHERE id = 1") == (50,)

    run(main())


def test_a_cancelled_task_interrupts_its_statement(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as db:
            task = asyncio.create_task(db.execute("SELECT SLEEP(1000)"))
            running = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
            while await db.fetchone(running) == (0,):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while await db.fetchone(running) != (0,):
                await asyncio.sleep(0.01)
            with pytest.raises(trireme.StatementTimeout):
                await db.execute("SELECT SLEEP(1000)", timeout=0.05)
            c = await db.connection()
            asyncio.get_running_loop().call_later(0.05, c.cancel)
            with pytest.raises(trireme.StatementCancelled):
                await c.execute("SELECT SLEEP(1000)")
            await c.rollback()
            await c.close()

    run(main())


def test_large_results(opened: Opened) -> None:
    """Rows come as they are read; those that nobody reads stop nobody."""

    async def main() -> None:
        async with opened() as db:
            unread = await db.query(f"{NUMBERS} SELECT n, REPEAT('x', 5000) AS s FROM r")
            count = 0
            async with db.query(f"{NUMBERS} SELECT n, REPEAT('x', 5000) AS s FROM r") as rows:
                async for batch in rows.batches():
                    assert list(batch.columns[0].numbers()) == list(range(count + 1, count + 1 + len(batch)))
                    count += len(batch)
            assert count == 1000
            await unread.close()

    run(main())


def test_another_loop(group: servers.Group) -> None:
    async def leave() -> aio.Database:
        return await aio.open(group.addresses, **group.options())

    async def use(db: aio.Database) -> None:
        with pytest.raises(trireme.InterfaceError, match="another event loop"):
            await db.execute("SELECT 1")

    first = asyncio.new_event_loop()
    db = first.run_until_complete(leave())
    asyncio.run(use(db))
    first.run_until_complete(db.close())
    first.close()


def test_the_loop_goes_on(opened: Opened) -> None:
    """Nothing blocks the event loop while a statement runs."""

    async def main() -> None:
        async with opened() as db:
            task = asyncio.create_task(db.fetchone("SELECT SLEEP(0.5)"))
            ticks = 0
            began = time.monotonic()
            while not task.done():
                await asyncio.sleep(0.001)
                ticks += 1
            assert time.monotonic() - began >= 0.4
            assert ticks > 5

    run(main())
