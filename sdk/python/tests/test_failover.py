"""Money is moved while leaders are killed: what was acknowledged is there, once, and the clients go on by themselves."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import servers

import trireme
from trireme import aio

ACCOUNTS = 6
START = 1000
MORE = 8  # acknowledged transfers of each worker before and after a kill

DEBIT = "UPDATE account SET balance = balance - ? WHERE id = ?"
CREDIT = "UPDATE account SET balance = balance + ? WHERE id = ?"
LOG = "INSERT INTO transfer (worker, n, source, target, amount) VALUES (?, ?, ?, ?, ?)"


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Group]:
    g = servers.Group(tmp_path_factory.mktemp("doomed"))
    g.start()
    yield g
    g.stop()


class Bank:
    """What the workers have had acknowledged."""

    def __init__(self, group: servers.Group, schema: str) -> None:
        self.group = group
        self.schema = schema
        self.acknowledged: dict[str, int] = {}
        self.over = threading.Event()
        with group.open() as db:
            db.execute(f"CREATE DATABASE {schema}")
        with group.open(schema=schema) as db:
            db.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)")
            db.execute(
                "CREATE TABLE transfer (id BIGINT PRIMARY KEY AUTO_INCREMENT, worker VARCHAR(20), n INT, "
                "source INT, target INT, amount INT)"
            )
            db.executemany("INSERT INTO account VALUES (?, ?)", [(i, START) for i in range(ACCOUNTS)])

    def draw(self) -> tuple[int, int, int]:
        source, target = random.sample(range(ACCOUNTS), 2)
        return source, target, random.randint(1, 50)

    def advance(self, workers: list[str], failed: list[BaseException]) -> None:
        """Waits until every worker has had some more acknowledged."""
        goals = {w: self.acknowledged.get(w, 0) + MORE for w in workers}
        end = time.monotonic() + 2 * servers.PATIENCE
        while any(self.acknowledged.get(w, 0) < goal for w, goal in goals.items()):
            assert not failed, failed
            assert time.monotonic() < end, (self.acknowledged, goals)
            time.sleep(0.01)

    def torment(self, workers: list[str], failed: list[BaseException]) -> None:
        """Kills the leader, and starts it again."""
        try:
            self.advance(workers, failed)
            leader = self.group.leader()
            leader.kill()
            self.advance(workers, failed)
            leader.start()
            self.advance(workers, failed)
        finally:
            self.over.set()

    def check(self) -> None:
        with self.group.open(schema=self.schema) as db:
            assert db.fetchone("SELECT SUM(balance) FROM account") == (ACCOUNTS * START,)
            for worker, n in self.acknowledged.items():
                found = db.fetchone("SELECT COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM transfer WHERE worker = ?", [worker])
                assert found == (n, n, 0, n - 1), worker
            balances: dict[int, int] = dict(db.fetchall("SELECT id, balance FROM account"))
            for source, target, amount in db.fetchall("SELECT source, target, amount FROM transfer"):
                balances[source] += amount
                balances[target] -= amount
            assert balances == dict.fromkeys(range(ACCOUNTS), START)


def test_threads(doomed: servers.Group) -> None:
    bank = Bank(doomed, "threads")
    failed: list[BaseException] = []

    def transfers(worker: str, db: trireme.Database) -> None:
        """By run_in_transaction."""
        n = 0
        while not bank.over.is_set():
            source, target, amount = bank.draw()

            def move(tx: trireme.Transaction, n: int = n, s: int = source, t: int = target, a: int = amount) -> None:
                tx.execute(LOG, [worker, n, s, t, a])
                tx.execute(DEBIT, [a, s])
                tx.execute(CREDIT, [a, t])

            db.run_in_transaction(move)
            n += 1
            bank.acknowledged[worker] = n

    def inserts(worker: str, db: trireme.Database) -> None:
        """Single statements in autocommit, which move nothing."""
        n = 0
        while not bank.over.is_set():
            db.execute(LOG, [worker, n, 0, 0, 1])
            n += 1
            bank.acknowledged[worker] = n

    def connection(worker: str, db: trireme.Database) -> None:
        """A connection of PEP 249, whose user tries again what has failed for a reason that passes."""
        n = 0
        with db.connection() as c:
            while not bank.over.is_set():
                source, target, amount = bank.draw()
                try:
                    c.cursor().execute(DEBIT, [amount, source])
                    c.execute(CREDIT, [amount, target])
                    c.execute(LOG, [worker, n, source, target, amount])
                    c.commit()
                except trireme.OperationalError as e:
                    assert e.retryable, e
                    assert not isinstance(e, trireme.UnknownOutcome), e
                    c.rollback()
                    continue
                n += 1
                bank.acknowledged[worker] = n

    work = {"one": transfers, "two": transfers, "plain": inserts, "dbapi": connection}
    with doomed.open(schema=bank.schema) as db, ThreadPoolExecutor(len(work) + 1) as pool:

        def guarded(worker: str) -> None:
            try:
                work[worker](worker, db)
            except BaseException as e:
                failed.append(e)
                raise

        tasks = [pool.submit(guarded, worker) for worker in work]
        bank.torment(list(work), failed)
        for task in tasks:
            task.result()
    bank.check()


def test_asyncio(doomed: servers.Group) -> None:
    bank = Bank(doomed, "loop")
    workers = [f"task{i}" for i in range(4)]
    failed: list[BaseException] = []

    async def transfers(worker: str, db: aio.Database) -> None:
        n = 0
        while not bank.over.is_set():
            source, target, amount = bank.draw()

            async def move(tx: aio.Transaction, n: int = n, s: int = source, t: int = target, a: int = amount) -> None:
                await tx.execute(LOG, [worker, n, s, t, a])
                await tx.executemany("UPDATE account SET balance = balance + ? WHERE id = ?", [(-a, s), (a, t)])

            await db.run_in_transaction(move)
            n += 1
            bank.acknowledged[worker] = n

    async def guarded(worker: str, db: aio.Database) -> None:
        try:
            await transfers(worker, db)
        except BaseException as e:
            failed.append(e)
            raise

    async def main() -> None:
        async with aio.open(doomed.addresses, **doomed.options(schema=bank.schema)) as db:
            tormenting = asyncio.get_running_loop().run_in_executor(None, bank.torment, workers, failed)
            await asyncio.gather(tormenting, *(guarded(w, db) for w in workers))

    asyncio.run(main())
    bank.check()
