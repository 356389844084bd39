"""The blocking side: threads and gRPC's blocking interface."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from ..errors import InterfaceError
from ..v1 import sql_pb2 as pb
from .runtime import HEALTH, SERVICE, Channel, Inbox, Link, M, Part, run, runs, same


class BlockingInbox:
    """Inbox of a thread that waits."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: queue.SimpleQueue[Part] = queue.SimpleQueue()

    def put(self, part: Part) -> None:
        self._parts.put(part)

    async def get(self, until: float | None) -> Part:
        if until is None:
            return self._parts.get()
        try:
            return self._parts.get(timeout=max(until - time.monotonic(), 0))
        except queue.Empty:
            raise TimeoutError from None


class BlockingLink:
    """Link with a thread that receives; gRPC has one that sends."""

    def __init__(
        self,
        channel: grpc.Channel,
        metadata: list[tuple[str, str]],
        take: Callable[[pb.SqlSessionsResponse], None],
        end: Callable[[BaseException | None], None],
    ) -> None:
        self._out: queue.SimpleQueue[pb.SqlSessionsRequest | None] = queue.SimpleQueue()
        method = channel.stream_stream(
            SERVICE + "Sessions", pb.SqlSessionsRequest.SerializeToString, pb.SqlSessionsResponse.FromString
        )
        self._call: Any = method(cast(Any, self._requests()), metadata=tuple(metadata))
        threading.Thread(target=self._receive, args=(take, end), name="trireme-receive", daemon=True).start()

    def _requests(self) -> Iterator[pb.SqlSessionsRequest]:
        return iter(self._out.get, None)

    def _receive(self, take: Callable[[pb.SqlSessionsResponse], None], end: Callable[[BaseException | None], None]) -> None:
        why: BaseException | None = None
        try:
            for m in self._call:
                take(m)
        except BaseException as e:
            why = e
        self._out.put(None)
        end(why)

    def send(self, m: pb.SqlSessionsRequest) -> None:
        self._out.put(m)

    def close(self) -> None:
        self._out.put(None)
        self._call.cancel()


class BlockingChannel:
    """Channel of gRPC's blocking interface."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, Any]]) -> None:
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options)

    def stream(
        self, metadata: list[tuple[str, str]], take: Callable[[pb.SqlSessionsResponse], None], end: Callable[[BaseException | None], None]
    ) -> Link:
        try:
            return BlockingLink(self._channel, metadata, take, end)
        except ValueError:
            raise InterfaceError("the database is closed") from None

    async def call(self, method: str, request: Message, answer: type[M], metadata: list[tuple[str, str]], timeout: float) -> M:
        stub = self._channel.unary_unary(SERVICE + method, type(request).SerializeToString, answer.FromString)
        try:
            result: M = stub(request, timeout=timeout, metadata=tuple(metadata))
        except ValueError:  # of a channel that another thread has closed
            raise InterfaceError("the database is closed") from None
        return result

    def probe(self, timeout: float, done: Callable[[bool], None]) -> None:
        try:
            asked: Any = self._channel.unary_unary(HEALTH, same, same).future(b"", timeout=timeout)
        except ValueError:
            raise InterfaceError("the database is closed") from None

        def end(asked: Any) -> None:
            try:
                asked.result()
                done(True)
            except grpc.RpcError as e:
                done(runs(e))
            except grpc.FutureCancelledError:
                done(False)

        asked.add_done_callback(end)

    async def pause(self, seconds: float, metadata: list[tuple[str, str]]) -> None:
        # gRPC connects while some call waits, and only then: calls that fail at once would never see it connected.
        end = time.monotonic() + seconds
        stub = self._channel.unary_unary(SERVICE + "Node", pb.SqlNodeRequest.SerializeToString, pb.SqlNodeResponse.FromString)
        with contextlib.suppress(grpc.RpcError, ValueError):
            stub(pb.SqlNodeRequest(), timeout=seconds, metadata=tuple(metadata), wait_for_ready=True)
        time.sleep(max(end - time.monotonic(), 0))  # noqa: ASYNC251 (see run)

    def close(self) -> None:
        if not sys.is_finalizing():  # else gRPC waits for a thread that runs no more
            self._channel.close()


class _Lock(AbstractAsyncContextManager["_Lock"]):
    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> _Lock:
        self._lock.acquire()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._lock.release()


class Blocking:
    """Runtime of threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 (see run)

    def inbox(self) -> Inbox:
        return BlockingInbox()

    def lock(self) -> AbstractAsyncContextManager[Any]:
        return _Lock()

    def channel(self, address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, Any]]) -> Channel:
        return BlockingChannel(address, credentials, options)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        threading.Thread(target=lambda: run(work()), name="trireme-work", daemon=True).start()

    def check(self) -> None:
        if os.getpid() != self._pid:
            raise InterfaceError(f"this was opened in process {self._pid} and cannot be used after fork(): open it in the new process")
