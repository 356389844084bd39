"""What is stored comes back, by its Python type."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import struct
import time
import uuid
from decimal import Decimal
from typing import Any

import pytest

import trireme
from trireme.v1 import sql_pb2 as pb
from trireme.values import timedelta_of, widen

D, T = dt.datetime, dt.timedelta

# type, what is stored, what comes back if it is something else
ROUND: list[tuple[str, list[Any], list[Any] | None]] = [
    ("TINYINT", [-128, 127, True], [-128, 127, 1]),
    ("BOOL", [True, False], [1, 0]),
    ("INT", [-(2**31), 2**31 - 1], None),
    ("BIGINT", [-(2**63), 2**63 - 1, 0], None),
    ("BIGINT UNSIGNED", [2**63, 2**64 - 1, 0], None),
    ("DOUBLE", [0.1, -1e308, 5e-324, -0.0, 3], [0.1, -1e308, 5e-324, -0.0, 3.0]),
    ("FLOAT", [0.1, 16777216.0, 3.4028234e38, 1e-45], [0.1, 16777216.0, 3.4028235e38, 1.4013e-45]),
    ("DECIMAL(65,30)", [Decimal("-12345678901234567890123456789012345.000000000000000000000000000001"), Decimal("0.5")], None),
    ("DECIMAL(30,0)", [10**29, Decimal("1E+3")], [Decimal(10**29), Decimal(1000)]),
    ("BIT(1)", [1, True, 0], [1, 1, 0]),
    ("BIT(64)", [2**64 - 1, 0, 258], None),
    ("DATE", [dt.date(1000, 1, 1), dt.date(9999, 12, 31)], None),
    ("DATETIME", [D(2026, 11, 21, 19, 20, 21), dt.date(2026, 11, 21)], [D(2026, 11, 21, 19, 20, 21), D(2026, 11, 21)]),
    ("DATETIME(6)", [D(2026, 11, 21, 19, 20, 21, 1), D(9999, 12, 31, 23, 59, 59, 999999)], None),
    ("DATETIME(3)", [D(2026, 11, 21, 19, 20, 21, 500000, dt.timezone(T(hours=2)))], [D(2026, 11, 21, 17, 20, 21, 500000)]),
    ("TIMESTAMP(6)", [D(2026, 11, 21, 19, 20, 21, 123456), D(1970, 1, 1, 0, 0, 1)], None),
    ("TIME", [T(hours=838, minutes=59, seconds=59), -T(hours=838, minutes=59, seconds=59), T(0)], None),
    ("TIME(6)", [-T(microseconds=1), T(days=3, microseconds=7)], None),
    ("TIME(6)", [dt.time(1, 2, 3, 4)], [T(hours=1, minutes=2, seconds=3, microseconds=4)]),
    ("YEAR", [1901, 2155], None),
    ("CHAR(10)", ["größer", ""], None),
    ("VARCHAR(50)", ["größer 🐟", "a'b\\c\"?", "x\0y", uuid.UUID(int=5)], ["größer 🐟", "a'b\\c\"?", "x\0y", str(uuid.UUID(int=5))]),
    ("VARCHAR(50) CHARACTER SET latin1", ["größer"], None),
    ("LONGTEXT", ["x" * 100_000], None),
    ("BINARY(4)", [b"\0\1\2\xff"], None),
    ("VARBINARY(50)", [b"", b"\0\xff", bytearray(b"ab"), memoryview(b"cd")], [b"", b"\0\xff", b"ab", b"cd"]),
    ("LONGBLOB", [bytes(range(256)) * 1000], None),
    ("ENUM('a','ö')", ["ö"], None),
    ("SET('a','b','c')", ["a,c", ""], None),
]  # fmt: skip


def test_round(db: trireme.Database) -> None:
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _, _) in enumerate(ROUND))
    db.execute(f"CREATE TABLE v (id INT PRIMARY KEY, {columns})")
    for n in range(max(len(stored) for _, stored, _ in ROUND)):
        row: list[Any] = [n, *(stored[n % len(stored)] for _, stored, _ in ROUND)]
        db.execute(f"INSERT INTO v VALUES ({', '.join('?' * len(row))})", row)
        got = db.fetchone("SELECT * FROM v WHERE id = ?", [n])
        assert got is not None
        for value, (kind, stored, back) in zip(got[1:], ROUND):
            want = (back or stored)[n % len(stored)]
            assert value == want, kind
            assert type(value) is type(want), kind
            if isinstance(want, float):
                assert math.copysign(1, value) == math.copysign(1, want), kind
    db.execute("INSERT INTO v (id) VALUES (?)", [1000])
    got = db.fetchone("SELECT * FROM v WHERE id = 1000")
    assert got == (1000, *([None] * len(ROUND)))
    db.execute(f"INSERT INTO v VALUES (1001{', ?' * len(ROUND)})", [None] * len(ROUND))
    with db.query("SELECT * FROM v ORDER BY id") as rows:
        assert len([c.type for c in rows.columns]) == len(ROUND) + 1
        assert rows.fetchall()[-1] == (1001, *([None] * len(ROUND)))


def test_parameters_as_values(db: trireme.Database) -> None:
    """Values that were never in a table."""
    values: list[Any] = [None, 1, -1, 2**64 - 1, 10**64, 0.5, Decimal("1.50"), "ä", b"\0", dt.date(2026, 2, 3), D(2026, 2, 3, 4, 5, 6, 7)]
    for value in values:
        row = db.fetchone("SELECT ?", [value])
        assert row == (Decimal(value) if value == 10**64 else value,)


def test_dates_that_python_cannot_hold(db: trireme.Database) -> None:
    """They come as text, and go as text."""
    c = db.connection(autocommit=True)
    c.execute("SET sql_mode = ''")
    c.execute("CREATE TABLE zero (id INT PRIMARY KEY, d DATE, t DATETIME(3))")
    c.execute("INSERT INTO zero VALUES (1, '0000-00-00', '0000-00-00 00:00:00'), (2, ?, ?)", ["2026-02-00", "0000-01-01 01:02:03.5"])
    assert c.execute("SELECT d, t FROM zero ORDER BY id").fetchall() == [
        ("0000-00-00", "0000-00-00 00:00:00.000"),
        ("2026-02-00", "0000-01-01 01:02:03.500"),
    ]
    c.close()


def test_json(db: trireme.Database, group: Any) -> None:
    value = {"a": [1, 2.5, None, True, "ä"], "b": {}}
    db.execute("CREATE TABLE j (id INT PRIMARY KEY, j JSON)")
    db.execute("INSERT INTO j VALUES (1, ?), (2, ?), (3, NULL)", [trireme.Json(value), trireme.Json("text")])
    rows = db.fetchall("SELECT j FROM j ORDER BY id")
    assert [None if r[0] is None else json.loads(r[0]) for r in rows] == [value, "text", None]
    with group.open(schema=db.options.schema, decode_json=True) as decoded:
        assert decoded.fetchall("SELECT j FROM j ORDER BY id") == [(value,), ("text",), (None,)]


def test_time_zones(db: trireme.Database, group: Any) -> None:
    """A TIMESTAMP is a point in time: it is in the zone of the session."""
    db.execute("CREATE TABLE z (id INT PRIMARY KEY, t TIMESTAMP, d DATETIME)")
    when = D(2026, 7, 1, 12, 0, 0, 0, dt.timezone.utc)
    with group.open(schema=db.options.schema, time_zone="+05:30", aware_timestamps=True) as there:
        there.execute("INSERT INTO z VALUES (1, ?, ?)", [when, when])
        row = there.fetchone("SELECT t, d FROM z")
        assert row == (when, D(2026, 7, 1, 17, 30))
        assert row is not None
        assert row[0].utcoffset() == T(hours=5, minutes=30)
    assert db.fetchone("SELECT t, d FROM z") == (D(2026, 7, 1, 12), D(2026, 7, 1, 17, 30))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "nan is no SQL number"),
        (math.inf, "inf is no SQL number"),
        (Decimal("NaN"), "NaN is no SQL number"),
        (Decimal("1E+400"), "more than 65 digits"),
        (10**65, "more than 65 digits"),
        (T(hours=839), "838:59:59"),
        (dt.time(1, tzinfo=dt.timezone.utc), "time zone"),
        ("\ud800", "surrogates"),
        ([1, 2], r"IN \(...\) needs a \? for each value"),
        ({"a": 1}, r"trireme.Json\(\)"),
        (object(), "builtins.object is no parameter"),
    ],
)
def test_bad_parameters(db: trireme.Database, value: object, why: str) -> None:
    with pytest.raises(trireme.ProgrammingError, match=f"^parameter 2: .*{why}"):
        db.execute("SELECT ?, ?", [1, value])


def test_floats_have_their_digits() -> None:
    seed = int(time.time())
    random.seed(seed)
    for _ in range(2000):
        bits = random.getrandbits(32)
        v = pb.SqlVector()
        (f,) = struct.unpack("<f", struct.pack("<I", bits))
        if not math.isfinite(f):
            continue
        v.floats.append(f)
        short = widen(v.floats[0])
        assert struct.pack("<f", short) == struct.pack("<f", f), f"seed {seed}"
        assert len(repr(short)) <= len(repr(f)), f"seed {seed}"


def test_times() -> None:
    assert timedelta_of("-838:59:59.000001") == -T(hours=838, minutes=59, seconds=59, microseconds=1)
    assert timedelta_of("00:00:00.5") == T(microseconds=500000)
