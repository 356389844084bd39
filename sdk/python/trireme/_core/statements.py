"""Statements: what their text says of them, their parameters, and commit tokens."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import time
from collections.abc import Sequence
from typing import Any

from ..errors import ProgrammingError
from ..options import Read
from ..v1 import sql_pb2 as pb
from ..values import set_value


def new_token() -> bytes:
    """Makes a commit token: a UUID of version 7 in 16 bytes. Of all transactions that have the same one, one is committed."""
    t = bytearray(int(time.time() * 1000).to_bytes(6, "big") + secrets.token_bytes(10))
    t[6] = t[6] & 0x0F | 0x70
    t[8] = t[8] & 0x3F | 0x80
    return bytes(t)


_SKIP = re.compile(r"(?:[\s(;]+|/\*.*?\*/|(?:#|--(?:[ \t]|$))[^\n]*(?:\n|$))*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]{1,32}(?![A-Za-z])")  # spans are named by it: what is longer is none


def first_word(text: str) -> str:
    """The keyword that a statement begins with, in upper case; empty: it begins with none."""
    at = _SKIP.match(text)
    word = _WORD.match(text, at.end() if at else 0)
    return word[0].upper() if word else ""


_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
_READS = frozenset({"SELECT", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "VALUES"})
_BEGINS = frozenset({"START", "BEGIN"})
_USER_VARIABLE = re.compile("(?<!@)@(?!@)")  # or an @ in a literal
_INNER = frozenset({"SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "USE", "DO", "WITH"})
_PLAIN = (
    _CHANGES
    | _READS
    | {"WITH", "ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "ANALYZE", "OPTIMIZE", "CHECK", "KILL", "FLUSH", "DO"}
    | {"COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"}
)


class Statement:
    """A statement that may be sent several times."""

    __slots__ = (
        "again", "begins", "chains", "changes", "commits", "params", "read", "reads",
        "stateful", "text", "token", "traceparent", "undoes", "word", "zone",
    )  # fmt: skip

    def __init__(self, text: str, params: Sequence[Any] | None, zone: dt.tzinfo, read: Read | None) -> None:
        if not isinstance(text, str):
            raise ProgrammingError(f"a statement is a str, not {type(text).__name__}")
        if params is not None and (isinstance(params, (str, bytes, dict)) or not isinstance(params, Sequence)):
            raise ProgrammingError(
                f"parameters are a sequence of values, one for each ?, not {type(params).__name__}; "
                "they have no names, and a single one is (value,)"
            )
        self.text = text
        self.params = params
        self.zone = zone
        self.read = read
        self.token: bytes | None = None
        self.again = False
        self.traceparent = ""
        word = self.word = first_word(text)
        # It changes rows, so that it can have a token; changes nothing, so that it can be sent again; leaves
        # something in its session that others would meet.
        self.changes = word in _CHANGES
        self.reads = word in _READS
        # It may commit the transaction that goes on, as COMMIT and CREATE do; ends it without effect; begins one; leaves
        # one behind that has no token.
        self.commits = not (self.changes or self.reads or word in _INNER)
        self.undoes = word == "ROLLBACK" and "TO" not in text.upper().split()
        self.begins = word in _BEGINS
        self.chains = self.begins or (word in ("COMMIT", "ROLLBACK") and "CHAIN" in text.upper().split())
        if word in _PLAIN:
            self.stateful = _USER_VARIABLE.search(text) is not None or (word in _READS and "_LOCK(" in text.upper())
        elif word == "CREATE":
            self.stateful = "TEMPORARY" in text[:200].upper()
        else:
            self.stateful = not self.begins

    def fill(self, st: pb.SqlStatement, timeout: float | None, handle: int = 0) -> None:
        """Says it in the contract's words. ProgrammingError: a parameter cannot be one."""
        if handle:
            st.handle = handle
        else:
            try:
                st.text = self.text
            except ValueError:
                raise ProgrammingError("the statement has lone surrogates, which UTF-8 cannot hold") from None
        if self.params:
            fill_params(st, self.params, self.zone)
        if self.read is not None:
            self.read.fill(st.read)
        if self.token is not None:
            st.commit_token = self.token
            st.again = self.again
        if self.traceparent:
            st.traceparent = self.traceparent
        if timeout is not None:
            st.timeout_ms = int(min(max(timeout * 1000, 1), 1 << 31))


def fill_params(st: pb.SqlStatement, params: Sequence[Any], zone: dt.tzinfo) -> None:
    """Adds parameters."""
    add = st.params.add
    for i, v in enumerate(params):
        try:
            set_value(add(), v, zone)
        except (ValueError, TypeError) as e:
            raise ProgrammingError(f"parameter {i + 1}: {e}", number=1210) from e
