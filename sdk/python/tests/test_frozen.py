"""Processes stand still while their kernels go on: programs go on at other members, what was acknowledged is there, once, and
what is only slow is left alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import servers

import trireme
from trireme import aio
from trireme._core import watch
from trireme.v1 import sql_pb2 as pb

MANY = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 600) SELECT a.n, REPEAT('x', 100) FROM s a, s b"
INSERT = "INSERT INTO t (who, n) VALUES (?, ?)"


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Group]:
    g = servers.Group(tmp_path_factory.mktemp("cold"))
    g.start()
    with g.open() as db:
        db.execute("CREATE DATABASE ice")
        db.execute("CREATE TABLE ice.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, who VARCHAR(20), n INT)")
    yield g
    g.stop()


def served(g: servers.Group) -> servers.Node:
    """The leader, which programs have found."""
    with g.open(schema="ice") as db:
        db.fetchone("SELECT 1")
    return g.leader()


def count(g: servers.Group, who: str) -> tuple[int, int]:
    with g.open(schema="ice") as db:
        found = db.fetchone("SELECT COUNT(*), COUNT(DISTINCT n) FROM t WHERE who = ?", [who])
        assert found is not None
        return int(found[0]), int(found[1])


def test_leader_of_others(cold: servers.Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leads may have joined since the program asked who is in the group: others name it."""
    answers = {
        "old": pb.SqlNodeResponse(leader="gone"),
        "other": pb.SqlNodeResponse(leader="joined"),
        "joined": pb.SqlNodeResponse(leads=True, leader="joined"),
    }

    async def ask(address: str, timeout: float = 0) -> pb.SqlNodeResponse:
        if address not in answers:
            raise trireme.OperationalError(f"{address} does not answer")
        return answers[address]

    with cold.open() as db:
        monkeypatch.setattr(db._group, "_ask", ask)
        monkeypatch.setattr(db._group, "candidates", lambda: ["silent", "old", "other"])
        assert asyncio.run(db._group.led_by_other("silent")) == "joined"
        answers["joined"] = pb.SqlNodeResponse(leader="silent")
        assert asyncio.run(db._group.led_by_other("silent")) is None


def test_leader(cold: servers.Group) -> None:
    """All that a program can have under way at a leader that stands still."""
    served(cold)
    with (
        cold.open(schema="ice") as db,
        cold.open(schema="ice") as warm,
        cold.connect() as committing,
        cold.connect() as held,
        ThreadPoolExecutor(8) as pool,
    ):
        for c, who in ((committing, "committing"), (held, "held")):
            c.execute("USE ice")
            c.execute(INSERT, [who, 0])
        warm.fetchone("SELECT 1")
        rows = db.query(MANY)
        leader = next(n for n in cold.nodes if n.address == db._group._leader)
        leader.freeze()
        try:
            began = time.monotonic()

            def fresh() -> None:
                with cold.open(schema="ice") as another:
                    another.execute(INSERT, ["fresh", 0])

            tasks: dict[str, Future[object]] = {}

            def start(name: str, work: Callable[[], object]) -> None:
                def measured() -> object:
                    try:
                        return work()
                    finally:
                        print(f"{name}: {time.monotonic() - began:.2f} s")

                tasks[name] = pool.submit(measured)

            start("without a token", lambda: warm.execute("SET @x = 1"))
            start("execute", lambda: db.execute(INSERT, ["execute", 0]))
            start("transaction", lambda: db.run_in_transaction(lambda tx: tx.execute(INSERT, ["transaction", 0])))
            start("fresh", fresh)
            start("commit", committing.commit)
            start("held", lambda: held.execute("SELECT 1"))
            start("rows", lambda: sum(1 for _ in rows))
            for name in ("execute", "transaction", "fresh"):
                tasks[name].result()
            for name in ("without a token", "rows"):
                with pytest.raises(trireme.ConnectionLost, match="another member leads"):
                    tasks[name].result()
            with pytest.raises(trireme.OperationalError) as e:
                tasks["held"].result()
            assert e.value.retryable
            held.rollback()
            committed = True
            try:
                tasks["commit"].result()
            except trireme.TransactionRolledBack:
                committed = False
        finally:
            leader.thaw()
    assert count(cold, "committing")[0] == committed
    assert count(cold, "held")[0] == 0
    for who in ("execute", "transaction", "fresh"):
        assert count(cold, who) == (1, 1), who


def test_load(cold: servers.Group) -> None:
    """Single writes, one after the other, go on."""
    leader = served(cold)
    acknowledged, longest = 0, 0.0
    with cold.open(schema="ice") as db:
        end = None
        while end is None or acknowledged < end:
            if acknowledged == 20:
                leader.freeze()
            began = time.monotonic()
            db.execute(INSERT, ["load", acknowledged])
            longest = max(longest, time.monotonic() - began)
            acknowledged += 1
            if acknowledged == 40:
                leader.thaw()
                end = acknowledged + 20
    print(f"load: no write for {longest:.2f} s")
    assert count(cold, "load") == (acknowledged, acknowledged)


def test_asyncio(cold: servers.Group) -> None:
    leader = served(cold)

    async def main() -> None:
        async with aio.open(cold.addresses, **cold.options(schema="ice")) as db:
            await db.fetchone("SELECT 1")
            leader.freeze()
            try:
                began = time.monotonic()
                lost = asyncio.create_task(db.execute("SET @x = 1"))
                await asyncio.sleep(0)  # it takes the session that waits

                async def insert(n: int) -> None:
                    await db.execute(INSERT, ["loop", n])

                await asyncio.gather(*(insert(n) for n in range(5)))
                print(f"asyncio: {time.monotonic() - began:.2f} s")
                with pytest.raises(trireme.ConnectionLost, match="another member leads"):
                    await lost
            finally:
                leader.thaw()

    asyncio.run(main())
    assert count(cold, "loop") == (5, 5)


def test_follower(cold: servers.Group) -> None:
    """Reads of a follower that stands still go on at others."""
    leader = served(cold)
    follower = next(n for n in cold.nodes if n is not leader)
    with cold.open(schema="ice") as db:
        for _ in range(6):
            db.fetchone("SELECT 1", read=trireme.LOCAL)
        before = db._group.node(follower.address)
        follower.freeze()
        try:
            began = time.monotonic()
            for _ in range(6):
                assert db.fetchone("SELECT 1", read=trireme.LOCAL) == (1,)
            print(f"reads: {time.monotonic() - began:.2f} s")
        finally:
            follower.thaw()
        assert db._group.node(follower.address) is not before, "the connection was not given up"


def test_slow(cold: servers.Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a statement that takes long nor rows that nobody takes end a connection."""
    monkeypatch.setattr(watch, "SILENCE", 0.8)
    with cold.open(schema="ice") as db, ThreadPoolExecutor(6) as pool:
        db.fetchone("SELECT 1")
        for _ in range(6):
            db.fetchone("SELECT 1", read=trireme.LOCAL)
        leader = cold.leader()
        before = dict(db._group._nodes)
        tasks = [pool.submit(db.fetchone, "SELECT SLEEP(2.5)", read=read) for read in 2 * [None, trireme.LOCAL, trireme.LOCAL]]
        assert [t.result() for t in tasks] == 6 * [(0,)]
        rows = db.query(MANY)
        time.sleep(2.5)
        assert sum(1 for _ in rows) == 600 * 600
        if cold.leader() is leader:
            assert db._group._nodes == before


def test_short_timeouts(cold: servers.Group) -> None:
    """Calls that are given up sooner than their node still have it given up."""
    leader = served(cold)
    with cold.open(schema="ice") as db:
        db.fetchone("SELECT 1")
        before = db._group.node(leader.address)
        leader.freeze()
        try:
            with pytest.raises(trireme.OperationalError):
                db.execute("DO 1", timeout=0.1)
            end = time.monotonic() + servers.PATIENCE
            while db._group.node(leader.address) is before:
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            leader.thaw()
