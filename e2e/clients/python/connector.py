"""Oracle's Connector/Python in Python: prepared statements, cursors, pools, warnings."""

import datetime
import decimal

import mysql.connector
import mysql.connector.pooling

from check import HOST, PASSWORD, PORT, USER, equal, raises, run

WHERE = dict(host=HOST, port=PORT, user=USER, password=PASSWORD, use_pure=True)


def connect(**more):
    return mysql.connector.connect(**WHERE, **more)


def setup():
    c = connect()
    cur = c.cursor()
    cur.execute("DROP DATABASE IF EXISTS con")
    cur.execute("CREATE DATABASE con")
    c.close()


def prepared():
    c = connect(database="con")
    cur = c.cursor(prepared=True)
    cur.execute("""CREATE TABLE p (id INT PRIMARY KEY AUTO_INCREMENT, bi BIGINT, d DECIMAL(20,5), db DOUBLE, dt DATE, dtm DATETIME(6), tm TIME(6),
        v VARCHAR(100), b BLOB)""")
    rows = [(2**63 - 1, decimal.Decimal("123456789012345.54321"), 0.1, datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
             datetime.timedelta(hours=30, microseconds=5), "żółw 🐢", b"\x00\x01\xff"), (None,) * 8]
    for r in rows:
        cur.execute("INSERT INTO p (bi, d, db, dt, dtm, tm, v, b) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", r)
    c.commit()
    cur.execute("SELECT bi, d, db, dt, dtm, tm, v, b FROM p WHERE id > ? ORDER BY id", (0,))
    equal(cur.fetchall(), rows)
    for i in (1, 2):
        cur.execute("SELECT id FROM p WHERE id = ?", (i,))
        equal(cur.fetchall(), [(i,)])
    c.close()


def cursors():
    c = connect(database="con", autocommit=True)
    cur = c.cursor(dictionary=True, buffered=True)
    cur.execute("CREATE TABLE c (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) UNIQUE)")
    cur.executemany("INSERT INTO c (name) VALUES (%(name)s)", [{"name": n} for n in ("a", "b", "c")])
    equal((cur.rowcount, cur.lastrowid), (3, 1))
    cur.execute("SELECT * FROM c ORDER BY id")
    equal(cur.fetchone(), {"id": 1, "name": "a"})
    raises(1062, cur.execute, "INSERT INTO c (name) VALUES ('A')")
    c.get_warnings = True
    cur = c.cursor(buffered=True)
    cur.execute("SELECT CAST('12x' AS SIGNED)")
    equal([w[1] for w in cur.fetchwarnings() or cur.warnings], [1292])
    c.close()


def transactions():
    a, b = connect(database="con"), connect(database="con")
    x, y = a.cursor(), b.cursor()
    x.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    a.start_transaction(isolation_level="READ COMMITTED")
    equal(a.in_transaction, True)
    x.execute("INSERT INTO t VALUES (1)")
    b.start_transaction(consistent_snapshot=True, readonly=True)
    y.execute("SELECT COUNT(*) FROM t")
    equal(y.fetchall(), [(0,)])
    raises(1792, y.execute, "INSERT INTO t VALUES (2)")
    a.commit()
    y.execute("SELECT COUNT(*) FROM t")
    equal(y.fetchall(), [(0,)], "the snapshot stays")
    b.rollback()
    y.execute("SELECT COUNT(*) FROM t")
    equal(y.fetchall(), [(1,)])
    a.close()
    b.close()


def pool():
    p = mysql.connector.pooling.MySQLConnectionPool(pool_name="p", pool_size=3, pool_reset_session=True, database="con", **WHERE)
    for i in range(9):
        c = p.get_connection()
        cur = c.cursor()
        cur.execute("SELECT @leftover")
        equal(cur.fetchall(), [(None,)], "a session is reset between uses")
        cur.execute("SET @leftover = 1")
        c.close()
    c = connect()
    c.cmd_change_user(USER, PASSWORD, "con")
    equal(c.database, "con")
    c.close()


def compressed():
    c = connect(compress=True, database="con")
    cur = c.cursor()
    cur.execute("SELECT REPEAT('x', 200000), 'y'")
    equal(cur.fetchall(), [("x" * 200000, "y")])
    c.close()


run(setup, prepared, cursors, transactions, pool, compressed)
