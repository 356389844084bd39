"""PyMySQL: the text protocol, escapes, types, transactions, errors."""

import datetime
import decimal

import pymysql
import pymysql.cursors

from check import HOST, PASSWORD, PORT, USER, equal, raises, run


def connect(**more):
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, **{"autocommit": True, **more})


def setup():
    with connect() as c, c.cursor() as cur:
        cur.execute("DROP DATABASE IF EXISTS py")
        cur.execute("CREATE DATABASE py CHARACTER SET utf8mb4")


def text_and_escapes():
    texts = ["", "'", '"', "\\", "\\'", "a\x00b", "\r\n\t\x1a", "%", "_", "100%% of %s", "żółć", "日本語", "🦑🚣", "`", "--", "/* */", ";",
             "\\%", "\\_", "a" * 70000]
    with connect(database="py") as c, c.cursor() as cur:
        cur.execute("CREATE TABLE texts (id INT PRIMARY KEY AUTO_INCREMENT, t LONGTEXT, b LONGBLOB)")
        for t in texts:
            cur.execute("INSERT INTO texts (t, b) VALUES (%s, %s)", (t, t.encode()))
        cur.execute("SELECT t, b FROM texts ORDER BY id")
        equal([r for r in cur.fetchall()], [(t, t.encode()) for t in texts])
        for t in texts:
            cur.execute("SELECT COUNT(*) FROM texts WHERE t = %s AND b = %s AND %s = BINARY t", (t, t.encode(), t))
            equal(cur.fetchone(), (1,), repr(t)[:60])
        every = bytes(range(256))
        cur.execute("INSERT INTO texts (b) VALUES (%s)", (every,))
        cur.execute("SELECT b, HEX(b) FROM texts WHERE id = LAST_INSERT_ID()")
        equal(cur.fetchone(), (every, every.hex().upper()))
        cur.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')")
        cur.execute("SELECT %s, %s", ("\\", "it's \\n"))
        equal(cur.fetchone(), ("\\", "it's \\n"))


def types():
    row = dict(ti=-128, tu=255, si=-32768, mi=8388607, i=-2147483648, bi=-9223372036854775808, bu=18446744073709551615,
               d=decimal.Decimal("-12345678901234567890.123456789"), f=1.5, db=-1.7976931348623157e308, y=2155,
               dt=datetime.date(9999, 12, 31), dtm=datetime.datetime(2024, 2, 29, 23, 59, 59, 123456),
               ts=datetime.datetime(2038, 1, 19, 3, 14, 7), tm=datetime.timedelta(hours=838, minutes=59, seconds=59),
               c="c", v="ü", vb=b"\x00\xff", e="two", s="a,c", j='{"a": [1, null, "x"]}', bt=b"\x05")
    with connect(database="py") as c, c.cursor(pymysql.cursors.DictCursor) as cur:
        cur.execute("""CREATE TABLE types (id INT PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, mi MEDIUMINT, i INT, bi BIGINT,
            bu BIGINT UNSIGNED, d DECIMAL(40,9), f FLOAT, db DOUBLE, y YEAR, dt DATE, dtm DATETIME(6), ts TIMESTAMP NULL, tm TIME, c CHAR(3), v VARCHAR(10),
            vb VARBINARY(10), e ENUM('one','two'), s SET('a','b','c'), j JSON, bt BIT(3))""")
        cur.execute("SET time_zone = '+00:00'")
        names = ", ".join(row)
        cur.execute(f"INSERT INTO types (id, {names}) VALUES (1, {', '.join(['%s'] * len(row))})", list(row.values()))
        cur.execute(f"INSERT INTO types (id) VALUES (2)")
        cur.execute(f"SELECT {names} FROM types ORDER BY id")
        equal(cur.fetchall(), [row, dict.fromkeys(row)])
        for name, value in row.items():
            if name not in ("f", "j", "bt"):  # which compare as other types
                cur.execute(f"SELECT id FROM types WHERE {name} = %s", (value,))
                equal(cur.fetchall(), [{"id": 1}], name)


def transactions():
    with connect(database="py", autocommit=False) as a, connect(database="py") as b, a.cursor() as x, b.cursor() as y:
        x.execute("CREATE TABLE trx (id INT PRIMARY KEY, v INT)")
        x.execute("INSERT INTO trx VALUES (1, 1), (2, 2)")
        y.execute("SELECT COUNT(*) FROM trx")
        equal(y.fetchone(), (0,), "what is not committed is not seen")
        a.commit()
        y.execute("SELECT COUNT(*) FROM trx")
        equal(y.fetchone(), (2,))
        x.execute("UPDATE trx SET v = v + 10")
        equal(x.rowcount, 2)
        x.execute("SAVEPOINT s")
        x.execute("DELETE FROM trx")
        x.execute("ROLLBACK TO SAVEPOINT s")
        y.execute("SET innodb_lock_wait_timeout = 1")
        raises(1205, y.execute, "UPDATE trx SET v = 0 WHERE id = 1")
        a.rollback()
        equal(y.execute("UPDATE trx SET v = 0 WHERE id = 1"), 1)
        x.execute("SELECT v FROM trx ORDER BY id")
        equal(x.fetchall(), ((0,), (2,)))


def errors():
    with connect(database="py") as c, c.cursor() as cur:
        cur.execute("CREATE TABLE errs (id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(2))")
        cur.execute("INSERT INTO errs VALUES (1, 1, 'a')")
        raises(1062, cur.execute, "INSERT INTO errs VALUES (1, 1, 'a')")
        raises(1048, cur.execute, "INSERT INTO errs VALUES (2, NULL, 'a')")
        raises(1406, cur.execute, "INSERT INTO errs VALUES (2, 2, 'abc')")
        raises(1364, cur.execute, "INSERT INTO errs (id) VALUES (2)")
        raises(1146, cur.execute, "SELECT * FROM nowhere")
        raises(1054, cur.execute, "SELECT nothing FROM errs")
        raises(1064, cur.execute, "SELEC 1")
        raises(1049, c.select_db, "nowhere")
        raises(1045, lambda: pymysql.connect(host=HOST, port=PORT, user=USER, password="wrong"))
        c.ping(reconnect=False)


def many_and_streams():
    with connect(database="py") as c:
        with c.cursor() as cur:
            cur.execute("CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(20))")
            equal(cur.executemany("INSERT INTO many VALUES (%s, %s)", [(i, f"v{i}") for i in range(5000)]), 5000)
            equal(cur.executemany("UPDATE many SET v = %s WHERE id = %s", [("x", 1), ("y", 2)]), 2)
            equal(cur.execute("INSERT INTO many VALUES (1, 'z') ON DUPLICATE KEY UPDATE v = VALUES(v)"), 2)
        with c.cursor(pymysql.cursors.SSCursor) as cur:
            cur.execute("SELECT id FROM many ORDER BY id")
            equal([r[0] for r in cur], list(range(5000)))


def several_statements():
    with connect(database="py", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS) as c, c.cursor() as cur:
        cur.execute("SELECT 1; SELECT 2, 3; SET @x = 4; SELECT @x")
        results = [cur.fetchall()]
        while cur.nextset():
            results.append(cur.fetchall())
        equal([list(r) for r in results], [[(1,)], [(2, 3)], [], [(4,)]])


def secure():
    with connect(ssl={"check_hostname": False, "verify_mode": "none"}) as c, c.cursor() as cur:
        cur.execute("SHOW STATUS LIKE 'Ssl_version'")
        equal(cur.fetchone()[1][:4], "TLSv")


run(setup, text_and_escapes, types, transactions, errors, many_and_streams, several_statements, secure)
