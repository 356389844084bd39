"""Batches of columns, as results come, and the rows that are made of them when they are asked for."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from .errors import DataError, InternalError
from .v1 import sql_pb2 as pb
from .values import Type, Value, date_of, datetime_of, timedelta_of, widen

Row = tuple[Any, ...]

_INTS = frozenset({Type.TINYINT, Type.SMALLINT, Type.MEDIUMINT, Type.INT, Type.BIGINT})
_BINARY = frozenset({Type.BINARY, Type.VARBINARY, Type.BLOB})


class Column:
    """Describes a column of a result."""

    __slots__ = ("_c", "array", "type")

    def __init__(self, c: pb.SqlColumn) -> None:
        self._c = c
        self.type = Type(c.type)
        if self.type in _INTS:
            self.array = "uints" if c.unsigned else "ints"
        else:
            self.array = _ARRAYS.get(self.type, "bytes")

    @property
    def name(self) -> str:
        """The alias, or the text of the expression."""
        return self._c.name

    @property
    def unsigned(self) -> bool:
        """Whether the number has no sign."""
        return self._c.unsigned

    @property
    def not_null(self) -> bool:
        """Whether there is no NULL in it."""
        return self._c.not_null

    @property
    def length(self) -> int:
        """Characters of CHAR and VARCHAR, bytes of BINARY and VARBINARY, bits of BIT; 0 of others."""
        return self._c.length

    @property
    def precision(self) -> int:
        """Digits of DECIMAL."""
        return self._c.precision

    @property
    def scale(self) -> int:
        """Digits after the point of DECIMAL, and of a time's seconds."""
        return self._c.scale

    @property
    def schema(self) -> str:
        """Where the column is from; empty of an expression."""
        return self._c.schema

    @property
    def table(self) -> str:
        """The table's alias; empty of an expression."""
        return self._c.table

    @property
    def original_table(self) -> str:
        """The table's own name."""
        return self._c.original_table

    @property
    def original_name(self) -> str:
        """The column's own name."""
        return self._c.original_name

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.type.name})"


_ARRAYS = {Type.YEAR: "uints", Type.DOUBLE: "doubles", Type.FLOAT: "floats", Type.NULL: "nothing"}


class Reading:
    """How values are made of what came."""

    __slots__ = ("decode_json", "zone")

    def __init__(self, zone: dt.tzinfo | None, decode_json: bool) -> None:
        self.zone = zone
        self.decode_json = decode_json


class Vector:
    """A column's values in a batch."""

    __slots__ = ("_reading", "_rows", "_v", "column")

    def __init__(self, column: Column, v: pb.SqlVector, rows: int, reading: Reading) -> None:
        self.column = column
        self._v = v
        self._rows = rows
        self._reading = reading

    def __len__(self) -> int:
        return self._rows

    @property
    def nulls(self) -> bytes:
        """A bit for each value, the lowest of the first byte first; 1 is NULL, missing bytes are 0."""
        return self._v.nulls

    def is_null(self, i: int) -> bool:
        """Whether value i is NULL."""
        n = self._v.nulls
        return self.column.array == "nothing" or (i >> 3 < len(n) and n[i >> 3] >> (i & 7) & 1 == 1)

    def numbers(self) -> array.array[Any]:
        """The numbers of a column of numbers as an array of 64 bit, which numpy.frombuffer takes as it is: of integers,
        with or without a sign, or doubles. The number of a NULL means nothing. TypeError: the column has others."""
        match self.column.array:
            case "ints":
                return array.array("q", self._v.ints)
            case "uints":
                return array.array("Q", self._v.uints)
            case "doubles":
                return array.array("d", self._v.doubles)
            case "floats":
                return array.array("d", self._v.floats)
        raise TypeError(f"column {self.column.name!r} is of type {self.column.type.name}, whose values are in data")

    @property
    def data(self) -> bytes:
        """The bytes of all values of a column that has bytes or text, one after the other."""
        return self._v.bytes

    @property
    def offsets(self) -> array.array[int]:
        """Where in data the values begin, and at the end where the last one ends."""
        return array.array("I", accumulate(self._v.lengths, initial=0))

    def values(self) -> list[Value]:
        """The values as rows have them."""
        have = self._make()
        n = self._v.nulls
        if any(n):
            for at, byte in enumerate(n):
                for bit in range(8):
                    if byte >> bit & 1 and at * 8 + bit < self._rows:
                        have[at * 8 + bit] = None
        return have

    def _make(self) -> list[Any]:
        v = self._v
        match self.column.array:
            case "ints":
                return list(v.ints)
            case "uints":
                return list(v.uints)
            case "doubles":
                return list(v.doubles)
            case "floats":
                return [widen(f) for f in v.floats]
            case "nothing":
                return [None] * self._rows
        kind = self.column.type
        data = v.bytes
        ends = list(accumulate(v.lengths))
        if kind in _BINARY:
            return [data[end - n : end] for end, n in zip(ends, v.lengths)]
        if kind is Type.BIT:
            return [int.from_bytes(data[end - n : end], "big") for end, n in zip(ends, v.lengths)]
        try:
            return self._of_text([str(data[end - n : end], "utf-8") for end, n in zip(ends, v.lengths)])
        except UnicodeDecodeError as e:
            raise DataError(f"column {self.column.name!r} has text that is not UTF-8: select it with CAST(... AS BINARY)") from e

    def _of_text(self, texts: list[str]) -> list[Any]:
        match self.column.type:
            case Type.DECIMAL:
                return [decimal.Decimal(t) if t else None for t in texts]
            case Type.DATE:
                return [date_of(t) for t in texts]
            case Type.DATETIME:
                return [datetime_of(t) for t in texts]
            case Type.TIMESTAMP:
                return [datetime_of(t, self._reading.zone) for t in texts]
            case Type.TIME:
                return [timedelta_of(t) if t else None for t in texts]
            case Type.JSON if self._reading.decode_json:
                return [json.loads(t) if t else None for t in texts]
        return texts


class Batch:
    """Consecutive rows of a result, column by column."""

    __slots__ = ("_batch", "columns")

    def __init__(self, columns: Sequence[Column], batch: pb.SqlBatch, reading: Reading) -> None:
        self._batch = batch
        if len(batch.columns) != len(columns):
            raise InternalError(f"the server has sent {len(batch.columns)} columns instead of {len(columns)}")
        self.columns = [Vector(c, v, batch.rows, reading) for c, v in zip(columns, batch.columns)]
        for i, (c, v) in enumerate(zip(columns, batch.columns)):
            if c.array == "nothing":
                continue
            whole = len(v.lengths) == batch.rows and sum(v.lengths) == len(v.bytes)
            if not (whole if c.array == "bytes" else len(getattr(v, c.array)) == batch.rows):
                raise InternalError(f"column {i + 1} of a batch of {batch.rows} rows is not whole")

    def __len__(self) -> int:
        return self._batch.rows

    @property
    def bytes(self) -> int:
        """About how large it is."""
        return self._batch.window_bytes

    def rows(self) -> Iterator[Row]:
        """Its rows."""
        return zip(*[c.values() for c in self.columns])
