"""A database that threads share: transactions, reads anywhere, large results, interrupts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import servers

import trireme

NUMBERS = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000)"


@pytest.fixture
def table(db: trireme.Database) -> str:
    db.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, n INT NOT NULL)")
    db.execute("DELETE FROM t")
    db.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    return "t"


def eventually(what: Callable[[], bool]) -> None:
    end = time.monotonic() + servers.PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_results(db: trireme.Database, table: str) -> None:
    r = db.execute("UPDATE t SET n = n + 1 WHERE id < ?", [10])
    assert (r.affected_rows, r.repeated) == (2, False)
    assert r.info == "Rows matched: 2  Changed: 2  Warnings: 0"
    assert db.last_gtid >= r.gtid > 0
    with db.query("SELECT id, n FROM t ORDER BY id") as rows:
        assert [c.name for c in rows.columns] == ["id", "n"]
        assert rows.columns[0].original_table == "t"
        assert rows.fetchmany(1) == [(1, 1)]
        assert list(rows) == [(2, 1)]
        assert rows.result is not None
    assert db.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(10, 20)]).affected_rows == 10


def test_reads_anywhere(db: trireme.Database, table: str) -> None:
    seen = set()
    for n in range(1, 7):
        gtid = db.execute("UPDATE t SET n = ? WHERE id = 1", [n]).gtid
        row = db.fetchone("SELECT n, @@port FROM t WHERE id = 1", read=trireme.at_least(gtid))
        assert row is not None
        assert row[0] == n
        seen.add(row[1])
        assert db.fetchone("SELECT n FROM t WHERE id = 1", read=trireme.STRONG) == (n,)
        local = db.fetchone("SELECT n FROM t WHERE id = 1", read=trireme.LOCAL)
        assert local is not None
        assert local[0] <= n
        assert db.fetchone("SELECT n FROM t WHERE id = 1", read=trireme.bounded(60)) is not None
    assert len(seen) > 1
    with pytest.raises(trireme.OperationalError) as e:
        db.fetchone("UPDATE t SET n = 100", read=trireme.LOCAL)
    assert e.value.number == 1290
    with pytest.raises(trireme.OperationalError) as e:  # no node has it: all were asked
        db.fetchone("SELECT 1 FROM t", read=trireme.at_least(1 << 60, wait=0.05))
    assert e.value.number == 1205
    with db.connection(read=trireme.at_least(db.last_gtid)) as c:
        assert c.execute("SELECT n FROM t WHERE id = 1").fetchone() == (6,)
        with pytest.raises(trireme.OperationalError):
            c.execute("UPDATE t SET n = 100")
        c.rollback()


def test_run_in_transaction(db: trireme.Database, table: str) -> None:
    seen: list[trireme.Transaction] = []

    def move(tx: trireme.Transaction) -> str:
        seen.append(tx)
        tx.execute("UPDATE t SET n = n - 1 WHERE id = 1")
        tx.executemany("UPDATE t SET n = n + ? WHERE id = ?", [(1, 2), (0, 1)])
        assert tx.fetchone("SELECT n FROM t WHERE id = 2") == (1,)
        return "moved"

    assert db.run_in_transaction(move) == "moved"
    assert seen[0].gtid > 0
    assert db.fetchall("SELECT n FROM t ORDER BY id") == [(-1,), (1,)]
    with pytest.raises(trireme.InterfaceError, match="transaction is over"):
        seen[0].execute("SELECT 1")

    def fail(tx: trireme.Transaction) -> None:
        tx.execute("UPDATE t SET n = 100")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        db.run_in_transaction(fail)
    for text in ("START TRANSACTION", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "COMMIT"):

        def another(tx: trireme.Transaction, text: str = text) -> None:
            tx.execute(text)
            tx.execute("UPDATE t SET n = 200")

        with pytest.raises(trireme.ProgrammingError, match="commits by itself"):
            db.run_in_transaction(another)
    assert db.fetchall("SELECT n FROM t ORDER BY id") == [(-1,), (1,)]
    with pytest.raises(trireme.ProgrammingError, match="commits by itself"):
        db.run_in_transaction(lambda tx: [tx.execute("CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY)"), tx.execute("SELECT 1")])
    assert db.fetchall("SELECT n FROM t ORDER BY id") == [(-1,), (1,)]
    assert db.run_in_transaction(lambda tx: tx.fetchall("SELECT COUNT(*) FROM t"), read_only=True, read=trireme.STRONG) == [(2,)]
    with pytest.raises(trireme.InterfaceError, match="SERIALIZABLE"):
        db.run_in_transaction(lambda tx: None, isolation="CHAOS")


def test_deadlocks_are_tried_again(db: trireme.Database, table: str) -> None:
    both = threading.Barrier(2, timeout=servers.PATIENCE)
    tries = {1: 0, 2: 0}

    def work(first: int, second: int) -> None:
        def change(tx: trireme.Transaction) -> None:
            tries[first] += 1
            tx.execute("UPDATE t SET n = n + 1 WHERE id = ?", [first])
            if tries[first] == 1:
                both.wait()
            try:
                tx.execute("UPDATE t SET n = n + 1 WHERE id = ?", [second])
            except trireme.Error:
                with pytest.raises(trireme.TransactionRolledBack):  # nothing goes on in what was rolled back
                    tx.execute("UPDATE t SET n = n + 1000")
                raise RuntimeError("hidden") from None

        db.run_in_transaction(change)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, 1, 2), pool.submit(work, 2, 1)]:
            done.result()
    assert sum(tries.values()) > 2
    assert db.fetchall("SELECT n FROM t ORDER BY id") == [(2,), (2,)]


def test_a_deadlock_ends_a_connections_transaction(db: trireme.Database, table: str) -> None:
    """Statements after it do not run by themselves, until rollback() was called."""
    a, b = db.connection(), db.connection()
    a.execute("UPDATE t SET n = 10 WHERE id = 1")
    b.execute("UPDATE t SET n = 20 WHERE id = 2")
    waits = threading.Thread(target=lambda: outcome.append(attempt(a, "UPDATE t SET n = 10 WHERE id = 2")))
    outcome: list[trireme.Error | None] = []
    waits.start()
    eventually(lambda: db.fetchone("SELECT COUNT(*) FROM performance_schema.data_lock_waits") == (1,))
    outcome.append(attempt(b, "UPDATE t SET n = 20 WHERE id = 1"))
    waits.join()
    errors = [e for e in outcome if e is not None]
    assert [e.number for e in errors] == [1213]
    loser = a if attempt(a, "UPDATE t SET n = 11 WHERE id = 1") is not None else b
    with pytest.raises(trireme.TransactionRolledBack, match=r"call rollback\(\)"):
        loser.commit()
    loser.rollback()
    (b if loser is a else a).commit()
    assert loser.execute("SELECT COUNT(DISTINCT n) FROM t").fetchone() == (2 if loser is b else 1,)
    a.close()
    b.close()


def attempt(c: trireme.Connection, sql: str) -> trireme.Error | None:
    try:
        c.execute(sql)
    except trireme.Error as e:
        return e
    return None


def test_isolation(db: trireme.Database, table: str) -> None:
    with db.connection(isolation="REPEATABLE READ") as rr, db.connection(isolation="read committed") as rc:
        for c in (rr, rc):
            assert c.execute("SELECT n FROM t WHERE id = 1").fetchone() == (0,)
        db.execute("UPDATE t SET n = 5 WHERE id = 1")
        assert rr.execute("SELECT n FROM t WHERE id = 1").fetchone() == (0,)
        assert rc.execute("SELECT n FROM t WHERE id = 1").fetchone() == (5,)


def test_sessions_are_used_again_but_not_their_settings(db: trireme.Database) -> None:
    ids = {db.fetchone("SELECT CONNECTION_ID()") for _ in range(5)}
    assert len(ids) == 1
    db.execute("SET @mine = 1")
    assert db.fetchone("SELECT @mine") == (None,)
    with db.connection() as c:
        c.execute("SET @mine = 2")
        assert c.execute("SELECT @mine").fetchone() == (2,)


def test_a_killed_session_is_replaced(db: trireme.Database, table: str) -> None:
    with db.connection(autocommit=True) as c:
        before = c.connection_id
        db.execute(f"KILL {before}")
        eventually(lambda: db.fetchone("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", [before]) == (0,))
        assert c.execute("SELECT 1").fetchone() == (1,)
        assert c.connection_id != before
    with db.connection() as c:  # but not in a transaction
        c.execute("UPDATE t SET n = 7")
        db.execute(f"KILL {c.connection_id}")
        eventually(lambda: attempt(c, "SELECT 1") is not None)
        with pytest.raises(trireme.Error, match="rolled back"):
            c.commit()
        c.rollback()
        assert c.execute("SELECT SUM(n) FROM t").fetchone() == (0,)
    with db.connection(autocommit=True) as c:  # nor if something was set
        c.execute("SET @mine = 1")
        db.execute(f"KILL {c.connection_id}")
        eventually(lambda: "is gone" in str(attempt(c, "SELECT 1")))
        assert c.execute("SELECT @mine").fetchone() == (None,)


def test_cancel(db: trireme.Database) -> None:
    c = db.connection()
    timer = threading.Timer(0.05, c.cancel)
    timer.start()
    with pytest.raises(trireme.StatementCancelled) as e:
        c.execute("SELECT SLEEP(1000)")
    assert e.value.number == 1317
    timer.join()
    assert c.execute("SELECT 1").fetchone() == (1,)  # the session goes on
    c.close()


def test_deadline(db: trireme.Database) -> None:
    with pytest.raises(trireme.StatementTimeout) as e:
        db.fetchone("SELECT SLEEP(1000)", timeout=0.1)
    assert e.value.number == 3024
    assert isinstance(e.value, TimeoutError)
    with db.connection() as c:
        with pytest.raises(trireme.StatementTimeout):
            c.execute("SELECT SLEEP(1000)", timeout=0.05)
    with pytest.raises(trireme.InterfaceError, match="timeout=-1"):
        db.execute("SELECT 1", timeout=-1)
    eventually(
        lambda: db.fetchone("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'") == (0,)
    )


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_large_results_take_little_memory(db: trireme.Database) -> None:
    before = resident()
    most = count = size = 0
    with db.query(f"{NUMBERS} SELECT n, REPEAT('x', 80000) AS s FROM r") as rows:
        for n, s in rows:
            count += 1
            size += len(s)
            assert n == count
            if count % 20 == 0:
                most = max(most, resident() - before)
    assert (count, size) == (1000, 80_000_000)
    assert most < 40 << 20


def test_rows_that_nobody_reads_stop_nobody(db: trireme.Database) -> None:
    text = f"{NUMBERS} SELECT n, REPEAT('x', 20000) AS s FROM r"
    unread = [db.query(text) for _ in range(3)]
    assert db.fetchone("SELECT 1") == (1,)
    for rows in unread:
        assert rows.fetchmany(2)[1][0] == 2
    unread.pop().close()
    unread.pop()  # the garbage collector closes it
    unread.pop().fetchall()
    eventually(lambda: db.fetchone("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'WITH%'") == (0,))


def test_all_of_a_statement_is_run_whose_rows_nobody_wants(db: trireme.Database, table: str, group: servers.Group) -> None:
    db.executemany("INSERT INTO t VALUES (?, 0)", [(i,) for i in range(100, 200)])

    def lock(tx: trireme.Transaction) -> None:
        tx.execute("SELECT id, REPEAT('x', 5000) FROM t FOR UPDATE")
        with pytest.raises(trireme.OperationalError) as e:
            db.fetchone("SELECT n FROM t WHERE id = 199 FOR UPDATE NOWAIT")
        assert e.value.number == 3572

    with group.open(schema=db.options.schema, window=64 << 10) as narrow:
        narrow.run_in_transaction(lock)


def test_columns(db: trireme.Database) -> None:
    with db.query(f"{NUMBERS} SELECT n, n / 4e0 AS d, IF(n % 2, NULL, CONCAT('s', n)) AS s FROM r") as rows:
        numbers: list[int] = []
        texts: list[Any] = []
        for batch in rows.batches():
            n, d, s = batch.columns
            assert len(batch) == len(n) == len(n.numbers())
            numbers += n.numbers()
            assert list(d.numbers()) == [i / 4 for i in n.numbers()]
            at, data = s.offsets, s.data
            texts += [None if s.is_null(i) else data[at[i] : at[i + 1]].decode() for i in range(len(batch))]
            assert s.values() == texts[-len(batch) :]
            with pytest.raises(TypeError):
                s.numbers()
    assert numbers == list(range(1, 1001))
    assert texts == [None if i % 2 else f"s{i}" for i in range(1, 1001)]


def test_many_threads(db: trireme.Database, table: str) -> None:
    def work(worker: int) -> None:
        for i in range(5):
            key = 100 + worker * 10 + i
            db.execute("INSERT INTO t VALUES (?, ?)", [key, worker])
            db.run_in_transaction(lambda tx: tx.execute("UPDATE t SET n = n + 1 WHERE id = 1"))
            with db.connection() as c:
                assert c.execute("SELECT n FROM t WHERE id = ?", [key]).fetchone() == (worker,)

    with ThreadPoolExecutor(20) as pool:
        for done in [pool.submit(work, i) for i in range(20)]:
            done.result()
    assert db.fetchone("SELECT n FROM t WHERE id = 1") == (100,)
    assert db.fetchone("SELECT COUNT(*) FROM t WHERE id >= 100") == (100,)
