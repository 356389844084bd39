"""Values both ways, and the types of columns.

| SQL | Python |
|---|---|
| TINYINT to BIGINT, YEAR, BIT | int, unsigned 64 bit included |
| FLOAT, DOUBLE | float; a FLOAT has the digits that it has as 32 bit |
| DECIMAL | decimal.Decimal |
| DATE | datetime.date |
| DATETIME, TIMESTAMP | datetime.datetime without a time zone; see Options.aware_timestamps |
| TIME | datetime.timedelta, since it goes from -838 to 838 hours |
| CHAR, VARCHAR, TEXT, ENUM, SET | str |
| BINARY, VARBINARY, BLOB | bytes |
| JSON | str, its text; json.loads makes of it what it is (Options.decode_json) |
| a date that Python cannot hold, such as 0000-00-00 or 2026-02-00 | str, as the server writes it |
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import math
import struct
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, Union

from .errors import InterfaceError
from .v1 import sql_pb2 as pb

Value = Union[None, int, float, decimal.Decimal, str, bytes, dt.date, dt.datetime, dt.timedelta]
"""What a row consists of. With decode_json also what JSON consists of."""


class Type(enum.IntEnum):
    """The type of a column: type_code of a cursor's description."""

    NULL = 1
    TINYINT = 2
    SMALLINT = 3
    MEDIUMINT = 4
    INT = 5
    BIGINT = 6
    DECIMAL = 7
    FLOAT = 8
    DOUBLE = 9
    BIT = 10
    DATE = 11
    TIME = 12
    DATETIME = 13
    TIMESTAMP = 14
    YEAR = 15
    CHAR = 16
    VARCHAR = 17
    TEXT = 18
    BINARY = 19
    VARBINARY = 20
    BLOB = 21
    ENUM = 22
    SET = 23
    JSON = 24
    UNKNOWN = 0

    @classmethod
    def _missing_(cls, value: object) -> Type:
        return cls.UNKNOWN


class TypeSet(frozenset[int]):
    """A type object of PEP 249: it equals the types that belong to it."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return other in self
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = frozenset.__hash__


STRING = TypeSet({Type.CHAR, Type.VARCHAR, Type.TEXT, Type.ENUM, Type.SET, Type.JSON})
BINARY = TypeSet({Type.BINARY, Type.VARBINARY, Type.BLOB})
NUMBER = TypeSet(
    {Type.TINYINT, Type.SMALLINT, Type.MEDIUMINT, Type.INT, Type.BIGINT, Type.DECIMAL, Type.FLOAT, Type.DOUBLE}
    | {Type.BIT, Type.YEAR}
)
DATETIME = TypeSet({Type.DATE, Type.TIME, Type.DATETIME, Type.TIMESTAMP})
ROWID = TypeSet()


class Json:
    """A parameter that is sent as a JSON document."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Json({self.value!r})"


def zone_of(name: str) -> dt.tzinfo:
    """The time zone that a session's time_zone means."""
    if name.upper() == "UTC":
        return dt.timezone.utc
    try:
        if len(name) == 6 and name[0] in "+-" and name[3] == ":" and (name[1:3] + name[4:]).isdigit():
            offset = dt.timedelta(hours=int(name[1:3]), minutes=int(name[4:]))
            return dt.timezone(-offset if name[0] == "-" else offset)
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as e:  # OSError: of a directory, such as Europe
        raise InterfaceError(
            f"time_zone={name!r}: Python knows no such time zone: give an offset such as '+02:00', or a name such as "
            "'Europe/Berlin' (package tzdata has them where the system has none)"
        ) from e


def set_value(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    """Turns a Python value into a parameter. ValueError, TypeError: it cannot be one."""
    setter = _SETTERS.get(type(v))
    if setter is None:
        for kind, candidate in _SETTERS.items():
            if isinstance(v, kind):
                setter = candidate
                break
        else:
            raise TypeError(_why_not(v))
    setter(p, v, zone)


def _why_not(v: Any) -> str:
    if isinstance(v, (list, tuple, dict, set, frozenset)):
        return (
            f"a {type(v).__name__} is no parameter: wrap it in trireme.Json() to store it as a JSON document; "
            "IN (...) needs a ? for each value"
        )
    return f"a value of type {type(v).__module__}.{type(v).__qualname__} is no parameter: convert it first"


def _none(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    pass


def _bool(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    p.bool = v


def _int(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if -(1 << 63) <= v < 1 << 63:
        p.int = v
    elif 0 < v < 1 << 64:
        p.uint = v
    elif abs(v) < 10**65:
        p.decimal = str(int(v))
    else:
        raise ValueError("an int of more than 65 digits is no SQL number")


def _float(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if not math.isfinite(v):
        raise ValueError(f"{v} is no SQL number: send None for NULL")
    p.double = v


def _decimal(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if not v.is_finite():
        raise ValueError(f"{v} is no SQL number: send None for NULL")
    if v.adjusted() > 65 or (v.as_tuple().exponent < -65 and v):
        raise ValueError("a Decimal of more than 65 digits is no SQL number: round it first")
    p.decimal = format(v, "f")


def _str(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    try:
        p.text = v
    except (ValueError, UnicodeEncodeError):
        raise ValueError("the str has lone surrogates, which UTF-8 cannot hold: send bytes") from None


def _bytes(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    p.blob = bytes(v)


def _datetime(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if v.tzinfo is not None:
        v = v.astimezone(zone).replace(tzinfo=None)
    p.datetime = v.isoformat(" ")


def _date(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    p.date = v.isoformat()


_TIME_MAX = dt.timedelta(hours=838, minutes=59, seconds=59, microseconds=1)


def _timedelta(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if abs(v) >= _TIME_MAX:
        raise ValueError(f"{v} is no TIME, which goes from -838:59:59 to 838:59:59")
    sign = ""
    if v < dt.timedelta(0):
        sign, v = "-", -v
    seconds = v.days * 86400 + v.seconds
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    p.time = f"{text}.{v.microseconds:06d}" if v.microseconds else text


def _time(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    if v.tzinfo is not None:
        raise ValueError("a time with a time zone is no TIME: send it without")
    p.time = v.isoformat()


def _json(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    p.text = json.dumps(v.value, ensure_ascii=False, allow_nan=False)


def _uuid(p: pb.SqlValue, v: Any, zone: dt.tzinfo) -> None:
    p.text = str(v)


# Subclasses stand before what they are derived from.
_SETTERS: dict[type, Callable[[pb.SqlValue, Any, dt.tzinfo], None]] = {
    type(None): _none,
    bool: _bool,
    int: _int,
    str: _str,
    float: _float,
    bytes: _bytes,
    decimal.Decimal: _decimal,
    dt.datetime: _datetime,
    dt.date: _date,
    dt.timedelta: _timedelta,
    dt.time: _time,
    bytearray: _bytes,
    memoryview: _bytes,
    Json: _json,
    uuid.UUID: _uuid,
}


def date_of(text: str) -> dt.date | str:
    """A DATE; as text if Python has no such date."""
    try:
        return dt.date(int(text[:4]), int(text[5:7]), int(text[8:10]))
    except ValueError:
        return text


def datetime_of(text: str, zone: dt.tzinfo | None = None) -> dt.datetime | str:
    """A DATETIME; as text if Python has no such date."""
    try:
        micro = int(text[20:].ljust(6, "0")) if len(text) > 20 else 0
        return dt.datetime(
            int(text[:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]), int(text[17:19]), micro, zone
        )
    except ValueError:
        return text


def timedelta_of(text: str) -> dt.timedelta:
    """A TIME."""
    negative = text.startswith("-")
    hours, minutes, seconds = text[negative:].split(":")
    whole, _, fraction = seconds.partition(".")
    span = dt.timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(whole), microseconds=int(fraction.ljust(6, "0")) if fraction else 0
    )
    return -span if negative else span


_FLOAT = struct.Struct("<f")


def widen(f: float) -> float:
    """Gives a FLOAT, which came as 32 bit, the digits that it has as such."""
    short = float(f"{f:.6g}")
    if short == f:
        return f
    exact = _FLOAT.pack(f)
    for digits in (6, 7, 8):
        short = float(f"{f:.{digits}g}")
        try:
            if _FLOAT.pack(short) == exact:
                return short
        except OverflowError:  # rounded up beyond the largest
            continue
    return float(f"{f:.9g}")
