"""PEP 249, point by point."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import trireme


@pytest.fixture
def conn(db: trireme.Database) -> Any:
    c = db.connection()
    c.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(20))")
    c.execute("DELETE FROM t")
    c.commit()
    yield c
    c.close()


def test_module() -> None:
    assert trireme.apilevel == "2.0"
    assert trireme.threadsafety == 1
    assert trireme.paramstyle == "qmark"
    for name in ("InterfaceError", "DatabaseError"):
        assert issubclass(getattr(trireme, name), trireme.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):
        assert issubclass(getattr(trireme, name), trireme.DatabaseError)
        assert getattr(trireme.Connection, name) is getattr(trireme, name)
    assert not issubclass(trireme.Warning, trireme.Error)
    assert trireme.Date(2026, 1, 2) == dt.date(2026, 1, 2)
    assert trireme.Time(1, 2, 3) == dt.time(1, 2, 3)
    assert trireme.Timestamp(2026, 1, 2, 3, 4, 5) == dt.datetime(2026, 1, 2, 3, 4, 5)
    assert trireme.Binary(b"x") == b"x"
    now = time.time()
    assert trireme.DateFromTicks(now) == trireme.TimestampFromTicks(now).date()
    assert trireme.TimeFromTicks(now) == trireme.TimestampFromTicks(now).time()


def test_description(conn: trireme.Connection) -> None:
    cur = conn.cursor()
    assert cur.description is None
    cur.execute("SELECT id, s, 1.50 AS d, CAST('x' AS BINARY) AS b, NOW(3) AS now FROM t")
    assert cur.description is not None
    assert [d[0] for d in cur.description] == ["id", "s", "d", "b", "now"]
    assert all(len(d) == 7 for d in cur.description)
    codes = [d[1] for d in cur.description]
    assert codes[0] == trireme.NUMBER
    assert codes[0] != trireme.STRING
    assert codes == [trireme.NUMBER, trireme.STRING, trireme.NUMBER, trireme.BINARY, trireme.DATETIME]
    assert codes[0] != trireme.ROWID
    assert cur.description[0][6] is False
    assert cur.description[1][3] == 20
    assert cur.description[1][6] is True
    assert cur.description[2][4:6] == (3, 2)
    assert cur.description[4][5] == 3
    cur.execute("INSERT INTO t (n) VALUES (1)")
    assert cur.description is None


def test_fetch(conn: trireme.Connection) -> None:
    cur = conn.cursor()
    assert cur.rowcount == -1
    cur.executemany("INSERT INTO t (n, s) VALUES (?, ?)", [(i, f"s{i}") for i in range(10)])
    assert cur.rowcount == 10
    cur.execute("SELECT n FROM t ORDER BY n")
    assert cur.rowcount == 10
    assert cur.rownumber == 0
    assert cur.fetchone() == (0,)
    assert cur.rownumber == 1
    assert cur.fetchmany() == [(1,)]
    cur.arraysize = 3
    assert cur.fetchmany() == [(2,), (3,), (4,)]
    assert cur.fetchmany(2) == [(5,), (6,)]
    assert next(cur) == (7,)
    assert cur.fetchall() == [(8,), (9,)]
    assert cur.fetchone() is None
    assert cur.fetchmany(5) == []
    assert cur.fetchall() == []
    assert list(cur.execute("SELECT n FROM t WHERE n < ? ORDER BY n", (2,))) == [(0,), (1,)]
    cur.execute("SELECT n FROM t WHERE n = 1000")
    assert cur.fetchone() is None
    assert cur.nextset() is None  # type: ignore[func-returns-value]
    cur.setinputsizes([1])
    cur.setoutputsize(1, 0)


def test_no_rows(conn: trireme.Connection) -> None:
    cur = conn.cursor()
    for fetch in (cur.fetchone, cur.fetchmany, cur.fetchall):
        with pytest.raises(trireme.Error, match="has no rows"):
            fetch()
    cur.execute("INSERT INTO t (n) VALUES (1)")
    assert cur.rowcount == 1
    assert isinstance(cur.lastrowid, int)
    with pytest.raises(trireme.Error, match="has no rows"):
        cur.fetchone()
    assert cur.execute("UPDATE t SET n = 2 WHERE n = 1").rowcount == 1
    assert cur.lastrowid is None
    with pytest.raises(trireme.NotSupportedError):
        cur.callproc("p")


def test_transactions_begin_by_themselves(conn: trireme.Connection, db: trireme.Database) -> None:
    conn.execute("INSERT INTO t (n) VALUES (1)")
    assert conn.in_transaction
    assert db.fetchone("SELECT COUNT(*) FROM t") == (0,)
    conn.rollback()
    assert not conn.in_transaction
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)
    conn.execute("INSERT INTO t (n) VALUES (1)")
    conn.commit()
    assert db.fetchone("SELECT COUNT(*) FROM t", read=trireme.at_least(conn.gtid)) == (1,)
    conn.commit()  # of nothing
    conn.rollback()


def test_autocommit(conn: trireme.Connection, db: trireme.Database) -> None:
    conn.autocommit = True
    cur = conn.execute("INSERT INTO t (n) VALUES (1)")
    assert cur.gtid > 0
    assert not conn.in_transaction
    assert db.fetchone("SELECT COUNT(*) FROM t") == (1,)
    conn.execute("START TRANSACTION")
    assert conn.in_transaction
    conn.execute("INSERT INTO t (n) VALUES (2)")
    with pytest.raises(trireme.InterfaceError, match="in a transaction"):
        conn.autocommit = False
    conn.rollback()
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    conn.execute("BEGIN")
    conn.execute("INSERT INTO t (n) VALUES (3)")
    conn.commit()
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (2,)
    cur.executemany("INSERT INTO t (n) VALUES (?)", [(4,), (5,)])
    assert cur.gtid > 0
    with pytest.raises(trireme.IntegrityError):
        cur.executemany("INSERT INTO t (id) VALUES (?)", [(100,), (100,)])
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (4,)  # it was one transaction


def test_a_lost_transaction_of_statements(conn: trireme.Connection, db: trireme.Database) -> None:
    """Nothing of a transaction that START TRANSACTION began runs outside of it when its session is lost."""
    conn.autocommit = True
    for own in ("SELECT 1", "SET @x = 1"):
        conn.execute(own)
        conn.execute("START TRANSACTION")
        conn.execute("INSERT INTO t (n) VALUES (1)")
        db.execute(f"KILL {conn.connection_id}")
        for call in (
            lambda: conn.execute("INSERT INTO t (n) VALUES (2)"),
            lambda: conn.cursor().executemany("INSERT INTO t (n) VALUES (?)", [(3,), (4,)]),
            conn.ping,
            conn.commit,
            conn.commit,
        ):
            with pytest.raises(trireme.OperationalError) as e:
                call()
            assert e.value.retry is trireme.Retry.ELSEWHERE
            assert conn.in_transaction
        if own == "SELECT 1":
            conn.rollback()
            assert not conn.in_transaction
        else:
            with pytest.raises(trireme.OperationalError, match="what was SET"):
                conn.execute("ROLLBACK")
        assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)
    conn.execute("BEGIN")
    db.execute(f"KILL {conn.connection_id}")
    with pytest.raises(trireme.OperationalError):
        conn.commit()
    conn.execute("BEGIN")  # anew
    conn.execute("INSERT INTO t (n) VALUES (1)")
    conn.commit()
    assert db.fetchone("SELECT COUNT(*) FROM t") == (1,)


def test_a_deadlock_of_statements(conn: trireme.Connection, db: trireme.Database) -> None:
    """Nothing is run in autocommit behind a deadlock that has rolled back what START TRANSACTION began."""
    conn.execute("INSERT INTO t (id, n) VALUES (1, 0), (2, 0)")
    conn.commit()
    conn.autocommit = True
    with db.connection(autocommit=True) as other, ThreadPoolExecutor(1) as pool:
        for c, row in ((conn, 1), (other, 2)):
            c.execute("START TRANSACTION")
            c.execute("UPDATE t SET n = n + 1 WHERE id = ?", [row])

        def cross(c: trireme.Connection, row: int) -> trireme.Connection | None:
            """Returns the connection if it was chosen."""
            try:
                c.execute("UPDATE t SET n = n + 1 WHERE id = ?", [row])
            except trireme.TransactionRolledBack:
                return c
            return None

        waiting = pool.submit(cross, other, 1)
        chosen = cross(conn, 2) or waiting.result()
        assert chosen is not None
        for call in (lambda: chosen.execute("UPDATE t SET n = 100"), chosen.commit):
            with pytest.raises(trireme.TransactionRolledBack):
                call()
        chosen.rollback()
        (other if chosen is conn else conn).commit()
    assert db.fetchall("SELECT n FROM t ORDER BY id") == [(1,), (1,)]


@pytest.mark.parametrize("autocommit", [True, False])
def test_start_transaction_in_a_lost_session(conn: trireme.Connection, db: trireme.Database, monkeypatch: Any, autocommit: bool) -> None:
    """It has had no effect that a new session would miss."""
    conn.autocommit = autocommit
    conn.execute("SELECT 1")
    conn.commit()
    session = conn._core.session
    assert session is not None
    send = session.send

    def lost(m: Any) -> Any:
        session.end(trireme.ConnectionLost("lost", number=2013, retry=trireme.Retry.SAME_TOKEN, session_ended=True))
        return send(m)

    monkeypatch.setattr(session, "send", lost)
    conn.execute("START TRANSACTION")
    conn.execute("INSERT INTO t (n) VALUES (1)")
    conn.commit()
    assert db.fetchone("SELECT COUNT(*) FROM t") == (1,)


def test_a_lost_commit_behind_another(conn: trireme.Connection, db: trireme.Database, monkeypatch: Any) -> None:
    """A transaction that a statement began is not taken for the one before, whose token the leader knows."""

    def lose(sent: bool) -> trireme.Error:
        session = conn._core.session
        assert session is not None
        finish = session.finish

        async def lost(call: Any, until: Any) -> Any:
            if sent:
                await finish(call, until)
            session.close()
            raise trireme.ConnectionLost("lost", number=2013, retry=trireme.Retry.SAME_TOKEN, session_ended=True)

        monkeypatch.setattr(session, "finish", lost)
        send = session.send
        if not sent:
            monkeypatch.setattr(session, "send", lambda m: send(session.request()) if m.HasField("commit") else send(m))
        with pytest.raises(trireme.Error) as e:
            conn.commit()
        monkeypatch.undo()
        conn.rollback()
        return e.value

    conn.execute("START TRANSACTION")
    conn.execute("INSERT INTO t (n) VALUES (1)")
    assert not lose(True).retryable  # it was committed
    assert db.fetchone("SELECT COUNT(*) FROM t") == (1,)
    conn.execute("INSERT INTO t (n) VALUES (2)")
    conn.execute("COMMIT AND CHAIN")
    conn.execute("INSERT INTO t (n) VALUES (3)")
    assert not lose(False).retryable  # and this was not
    assert db.fetchone("SELECT COUNT(*) FROM t") == (2,)


def test_definitions_commit(conn: trireme.Connection) -> None:
    conn.execute("INSERT INTO t (n) VALUES (1)")
    conn.execute("CREATE TABLE IF NOT EXISTS other (id INT PRIMARY KEY)")
    assert not conn.in_transaction
    conn.rollback()
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    conn.execute("COMMIT")
    assert not conn.in_transaction


def test_executemany(conn: trireme.Connection) -> None:
    cur = conn.cursor()
    cur.executemany("INSERT INTO t (id, n) VALUES (?, ?)", ((i, i) for i in range(1, 301)))
    assert cur.rowcount == 300
    with pytest.raises(trireme.IntegrityError, match="parameters 3 of executemany") as e:
        cur.executemany("INSERT INTO t (id) VALUES (?)", [(1000,), (1001,), (1002,), (7,), (1003,)])
    assert (e.value.number, e.value.row) == (1062, 3)
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (303,)
    with pytest.raises(trireme.ProgrammingError) as e2:
        cur.executemany("INSERT INTO nothing VALUES (?)", [(1,), (2,)])
    assert e2.value.number == 1146
    with pytest.raises(trireme.ProgrammingError, match="sequence of sequences"):
        cur.executemany("INSERT INTO t (n) VALUES (?)", [(1,), "ab"])
    cur.executemany("INSERT INTO t (n) VALUES (?)", [])
    assert cur.rowcount == 0
    conn.rollback()
    assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)


def test_two_cursors(conn: trireme.Connection) -> None:
    """A cursor whose rows were not read yet keeps them when another one runs."""
    conn.cursor().executemany("INSERT INTO t (n, s) VALUES (?, ?)", [(i, "x" * 20) for i in range(500)])
    one = conn.execute("SELECT a.n, b.n, b.s FROM t a JOIN t b ON b.n < 20 ORDER BY a.n, b.n")
    assert one.rowcount == -1  # more is to come
    found = []
    for i, row in enumerate(one):
        found.append(row[0])
        if i % 2000 == 0:
            assert conn.execute("SELECT COUNT(*) FROM t").fetchone() == (500,)
    assert found == [i for i in range(500) for _ in range(20)]
    assert one.rowcount == 10000


def test_buffer_is_bounded(db: trireme.Database, group: Any) -> None:
    with group.connect(schema=db.options.schema, buffer=1 << 20, window=64 << 10) as c:
        rows = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 900)"
        one = c.execute(f"{rows} SELECT n, REPEAT('x', 5000) FROM r")
        assert one.fetchone()[0] == 1
        with pytest.raises(trireme.ProgrammingError, match=r"Options\.buffer") as e:
            c.execute("SELECT 1")
        assert e.value.number == 2014
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_closed(db: trireme.Database) -> None:
    c = db.connection()
    cur = c.execute("SELECT 1")
    cur.close()
    cur.close()
    with pytest.raises(trireme.InterfaceError, match="cursor is closed"):
        cur.fetchone()
    with pytest.raises(trireme.InterfaceError, match="cursor is closed"):
        cur.execute("SELECT 1")
    c.close()
    c.close()
    for call in (c.cursor, c.commit, c.rollback, lambda: c.execute("SELECT 1")):
        with pytest.raises(trireme.InterfaceError, match="connection is closed"):
            call()


def test_context(db: trireme.Database) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS w (n INT PRIMARY KEY)")
    with db.connection() as c, c.cursor() as cur:
        cur.execute("INSERT INTO w VALUES (1)")
    assert db.fetchall("SELECT n FROM w") == [(1,)]
    with pytest.raises(ZeroDivisionError), db.connection() as c:
        c.execute("INSERT INTO w VALUES (?)", [2 if c.execute("INSERT INTO w VALUES (2)").rowcount // 0 else 3])
    assert db.fetchall("SELECT n FROM w") == [(1,)]


def test_connect_by_url(group: Any) -> None:
    from urllib.parse import quote

    import servers

    url = f"trireme://root:{quote(servers.PASSWORD)}@{','.join(group.addresses)}/shop?connect_timeout=60"
    with trireme.connect(url) as c:
        assert c.execute("SELECT DATABASE()").fetchone() == ("shop",)
        assert c.connection_id > 0
        c.ping()
        assert servers.PASSWORD not in repr(c)


@pytest.mark.parametrize(
    ("sql", "kind", "number"),
    [
        ("NONSENSE", trireme.ProgrammingError, 1064),
        ("", trireme.ProgrammingError, 1065),
        ("SELECT * FROM nothing", trireme.ProgrammingError, 1146),
        ("SELECT nothing FROM t", trireme.ProgrammingError, 1054),
        ("INSERT INTO t (id) VALUES (1), (1)", trireme.IntegrityError, 1062),
        ("INSERT INTO t (s) VALUES (REPEAT('x', 100))", trireme.DataError, 1406),
        ("INSERT INTO t (n) VALUES (99999999999)", trireme.DataError, 1264),
        ("SELECT CAST('x' AS JSON)", trireme.DataError, 3141),
        ("KILL 99999999", trireme.ProgrammingError, 1094),
        ("SET GLOBAL sync_binlog = 0", trireme.DatabaseError, None),
    ],
)
def test_errors(conn: trireme.Connection, sql: str, kind: type[trireme.Error], number: int | None) -> None:
    with pytest.raises(kind) as e:
        conn.execute(sql)
    if number is not None:
        assert e.value.number == number
        assert e.value.args[0] == number
        assert len(e.value.sqlstate) == 5
        assert str(number) in str(e.value)
    assert not e.value.retryable
    again = pickle.loads(pickle.dumps(e.value))
    assert (type(again), str(again), again.number) == (type(e.value), str(e.value), e.value.number)
    conn.rollback()


def test_parameters_are_a_sequence(conn: trireme.Connection) -> None:
    for bad in ("x", b"x", {"a": 1}, 5, {1}):
        with pytest.raises(trireme.ProgrammingError, match="sequence of values"):
            conn.execute("SELECT ?", bad)  # type: ignore[arg-type]
    with pytest.raises(trireme.ProgrammingError, match="2 values"):
        conn.execute("SELECT ?", [1, 2])
    conn.rollback()
    assert conn.execute("SELECT ?", [1]).fetchone() == (1,)
