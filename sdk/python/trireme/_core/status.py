"""What gRPC says of a call that has failed."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from ..errors import ConnectionLost, Error, InternalError, OperationalError, Retry, StatementTimeout, told
from ..v1 import sql_pb2 as pb

_TLS_WORDS = ("certificate", "CERTIFICATE", "SSL_ERROR_SSL", "Peer name")  # not those of a connection that breaks meanwhile


def of_status(e: BaseException | None, address: str, reached: bool) -> Error:
    """The error of a call to a node, or of a stream; reached: it had answered before. Nobody knows whether what was under
    way had an effect, unless the node says so."""
    if isinstance(e, grpc.RpcError):
        found = _detail(e)
        if found is not None:
            return told(found)
        code = e.code() if hasattr(e, "code") else None
        text = (e.details() if hasattr(e, "details") else None) or str(code)
        if code is grpc.StatusCode.UNAVAILABLE and not reached and any(word in text for word in _TLS_WORDS):
            return OperationalError(
                f"No TLS with {address}: {text}; the server's certificate has to be signed by TLS.ca and to name the host "
                "(or TLS.server_name)",
                number=2026,
                session_ended=True,
            )
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return OperationalError(f"{address}: {text}", number=1045, sqlstate="28000", session_ended=True)
        if code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN) and not reached:
            return InternalError(f"{address} does not speak trireme.v1.Sql ({text}): is it the gRPC port of a node?", session_ended=True)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return StatementTimeout(f"{address} has not answered in time", number=3024, retry=Retry.SAME_TOKEN, session_ended=True)
    else:
        text = "the stream has ended" if e is None else f"{type(e).__name__}: {e}"
    if not reached:
        return ConnectionLost(
            f"Cannot reach {address}: {text}", number=2003, sqlstate="08001", retry=Retry.SAME_TOKEN, session_ended=True
        )
    return ConnectionLost(
        f"Lost connection to {address}: {text}", number=2013, sqlstate="08S01", retry=Retry.SAME_TOKEN, session_ended=True
    )


def _detail(e: grpc.RpcError) -> pb.SqlError | None:
    """The SqlError among the details of a status, which are a google.rpc.Status in the call's metadata."""
    if not hasattr(e, "trailing_metadata"):
        return None
    metadata: Any = e.trailing_metadata() or ()
    for key, value in metadata:
        if key != "grpc-status-details-bin":
            continue
        for field in _fields(value, 3):
            try:
                detail = AnyMessage.FromString(field)
                if detail.type_url.rpartition("/")[2] == pb.SqlError.DESCRIPTOR.full_name:
                    return pb.SqlError.FromString(detail.value)
            except DecodeError:
                continue
    return None


def _fields(b: bytes, number: int) -> list[bytes]:
    """The fields of bytes with a number in an encoded message."""
    found: list[bytes] = []
    at = 0

    def varint() -> int:
        nonlocal at
        n = shift = 0
        while True:
            byte = b[at]
            at += 1
            n |= (byte & 0x7F) << shift
            if byte < 0x80:
                return n
            shift += 7

    try:
        while at < len(b):
            tag = varint()
            match tag & 7:
                case 0:
                    varint()
                case 1:
                    at += 8
                case 2:
                    size = varint()
                    if tag >> 3 == number:
                        found.append(b[at : at + size])
                    at += size
                case 5:
                    at += 4
                case _:
                    return found
    except IndexError:
        pass
    return found
