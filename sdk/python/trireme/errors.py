"""The exceptions of PEP 249, with what the server says of an error: MySQL's number, SQLSTATE, and
whether what failed may be tried again."""

from __future__ import annotations

import enum
from typing import TypeVar

from .v1 import sql_pb2 as pb


class Retry(enum.IntEnum):
    """How something that failed may be tried again."""

    NEVER = 0
    """The statement has to be changed."""
    STATEMENT = 1
    """The statement, after a pause; the transaction goes on."""
    TRANSACTION = 2
    """The transaction from its beginning: it was rolled back."""
    ELSEWHERE = 3
    """The transaction from its beginning, in another session: it was rolled back."""
    SAME_TOKEN = 4
    """Nobody knows whether it was committed: only with the same commit token."""


class Warning(Exception):
    """Of PEP 249; it is not raised."""


class Error(Exception):
    """Everything that goes wrong.

    number is MySQL's (0: the error is the SDK's own), sqlstate five characters, message the
    text. token is the commit token of what nobody knows the outcome of. row is the number of
    the parameters of an executemany that failed, from 0 on.
    """

    def __init__(
        self,
        message: str = "",
        *,
        number: int = 0,
        sqlstate: str = "HY000",
        retry: Retry = Retry.NEVER,
        leader: str = "",
        session_ended: bool = False,
    ) -> None:
        super().__init__(number, message)
        self.message = message
        self.number = number
        self.sqlstate = sqlstate
        self.retry = retry
        self.leader = leader
        self.session_ended = session_ended
        self.token: bytes | None = None
        self.row: int | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same may go well later, as retry says how."""
        return self.retry is not Retry.NEVER

    def __str__(self) -> str:
        where = "" if self.row is None else f" [parameters {self.row} of executemany, counted from 0]"
        if self.number == 0:
            return self.message + where
        return f"{self.message}{where} (error {self.number}, SQLSTATE {self.sqlstate})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.message), self.__dict__


def _restore(kind: type[Error], message: str) -> Error:
    return kind(message)


class InterfaceError(Error):
    """The SDK was used wrongly."""


class DatabaseError(Error):
    """The database, or the way to it, has failed."""


class DataError(DatabaseError):
    """A value does not fit: too long, out of range, of the wrong form."""


class OperationalError(DatabaseError):
    """What is not the program's fault: deadlocks, lost connections, a leader that is gone."""


class IntegrityError(DatabaseError):
    """A constraint is violated."""


class InternalError(DatabaseError):
    """The server, or the SDK, has a bug."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or what it names is not there."""


class NotSupportedError(DatabaseError):
    """The server cannot do this."""


class StatementTimeout(OperationalError, TimeoutError):
    """The statement has taken longer than its timeout (error 3024)."""


class StatementCancelled(OperationalError):
    """The statement was interrupted by cancel() or KILL (error 1317)."""


class TransactionRolledBack(OperationalError):
    """The transaction has no effect; it may be tried again from its beginning."""


class ConnectionLost(OperationalError):
    """No answer has come (error 2013), or the node cannot be reached (2003)."""


class UnknownOutcome(OperationalError):
    """Nobody could be asked whether the transaction was committed. It may be tried again with the
    same commit token alone: Error.token."""


_INTEGRITY = frozenset({1022, 1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 1761, 1762, 3819})
_DATA = frozenset({1264, 1265, 1292, 1366, 1367, 1406, 1411, 1416, 1425, 1441, 1690, 3140, 3141, 3143, 3156})
_NOT_SUPPORTED = frozenset({1178, 1235, 1289})
_PROGRAMMING = frozenset(
    {1007, 1008, 1049, 1050, 1051, 1054, 1064, 1065, 1082, 1091, 1094, 1101, 1103, 1110, 1113, 1136, 1146, 1149}
    | {1210, 1243, 1305, 1390, 2014}
)
_OPERATIONAL = frozenset({1040, 1041, 1044, 1045, 1053, 1114, 1142, 1143, 1153, 1161, 1180, 1205, 1227, 1290, 1461})
_INTERNAL = frozenset({1105, 1815})

_BY_STATE: dict[str, type[DatabaseError]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "28": OperationalError,
    "3D": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
}


def class_of(number: int, sqlstate: str) -> type[DatabaseError]:
    """The class of an error of the server."""
    if number == 3024:
        return StatementTimeout
    if number == 1317:
        return StatementCancelled
    if number in (1213, 3101):
        return TransactionRolledBack
    for numbers, kind in (
        (_INTEGRITY, IntegrityError),
        (_DATA, DataError),
        (_NOT_SUPPORTED, NotSupportedError),
        (_PROGRAMMING, ProgrammingError),
        (_OPERATIONAL, OperationalError),
        (_INTERNAL, InternalError),
    ):
        if number in numbers:
            return kind
    return _BY_STATE.get(sqlstate[:2], OperationalError)


_RETRY = {
    pb.SQL_RETRY_STATEMENT: Retry.STATEMENT,
    pb.SQL_RETRY_TRANSACTION: Retry.TRANSACTION,
    pb.SQL_RETRY_ELSEWHERE: Retry.ELSEWHERE,
    pb.SQL_RETRY_SAME_TOKEN: Retry.SAME_TOKEN,
}


def told(e: pb.SqlError) -> DatabaseError:
    """An error that has come in an answer."""
    return class_of(e.number, e.state)(
        e.message,
        number=e.number,
        sqlstate=e.state,
        retry=_RETRY.get(e.retry, Retry.NEVER),
        leader=e.leader,
        session_ended=e.session_ended,
    )


_E = TypeVar("_E", bound=Error)


def changed(e: _E, retry: Retry) -> _E:
    """The same error, which may be tried again in another way."""
    clone = copied(e)
    clone.retry = retry
    return clone


def copied(e: _E) -> _E:
    """The same error for somebody else: an exception is raised by one task alone."""
    clone = type(e)(e.message)
    clone.args = e.args
    clone.__dict__.update(e.__dict__)
    return clone


def elsewhere(e: _E) -> _E:
    """Makes an error of what had no effect one after which another node is asked."""
    return changed(e, Retry.ELSEWHERE) if e.retry is Retry.SAME_TOKEN else e
