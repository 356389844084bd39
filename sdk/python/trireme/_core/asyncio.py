"""The side of an event loop: asyncio and gRPC's interface for it."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from ..errors import InterfaceError
from ..v1 import sql_pb2 as pb
from .runtime import HEALTH, SERVICE, Channel, Inbox, Link, M, Part, runs, same


class LoopInbox:
    """Inbox of a task that waits."""

    __slots__ = ("_loop", "_parts", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parts: deque[Part] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, part: Part) -> None:
        self._parts.append(part)
        if self._waiter is not None:
            _wake(self._waiter)

    async def get(self, until: float | None) -> Part:
        while not self._parts:
            if until is not None and self._loop.time() >= until:
                raise TimeoutError
            self._waiter = self._loop.create_future()
            timer = None if until is None else self._loop.call_at(until, _wake, self._waiter)
            try:
                await self._waiter
            finally:
                if timer is not None:
                    timer.cancel()
        return self._parts.popleft()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class LoopLink:
    """Link with a task that sends and one that receives."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        metadata: list[tuple[str, str]],
        take: Callable[[pb.SqlSessionsResponse], None],
        end: Callable[[BaseException | None], None],
        keep: set[asyncio.Task[None]],
    ) -> None:
        self._out: asyncio.Queue[pb.SqlSessionsRequest] = asyncio.Queue()
        method = channel.stream_stream(
            SERVICE + "Sessions", pb.SqlSessionsRequest.SerializeToString, pb.SqlSessionsResponse.FromString
        )
        self._call: Any = method(metadata=cast(Any, tuple(metadata)))
        self._loop = asyncio.get_running_loop()
        self._sending = self._loop.create_task(self._send_all())
        receiving = self._loop.create_task(self._receive(take, end))
        for task in (self._sending, receiving):
            keep.add(task)
            task.add_done_callback(keep.discard)

    async def _send_all(self) -> None:
        try:
            while True:
                await self._call.write(await self._out.get())
        except (grpc.RpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # the one that receives learns why

    async def _receive(self, take: Callable[[pb.SqlSessionsResponse], None], end: Callable[[BaseException | None], None]) -> None:
        why: BaseException | None = None
        try:
            while True:
                m = await self._call.read()
                if m is grpc.aio.EOF:
                    break
                take(m)
        except BaseException as e:
            why = e
        self._sending.cancel()
        end(why)

    def send(self, m: pb.SqlSessionsRequest) -> None:
        self._out.put_nowait(m)

    def close(self) -> None:
        self._call.cancel()


class LoopChannel:
    """Channel of gRPC's interface for asyncio."""

    def __init__(
        self, address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, Any]], keep: set[asyncio.Task[None]]
    ) -> None:
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options)
        else:
            self._channel = grpc.aio.secure_channel(address, credentials, options)
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def stream(
        self, metadata: list[tuple[str, str]], take: Callable[[pb.SqlSessionsResponse], None], end: Callable[[BaseException | None], None]
    ) -> Link:
        try:
            return LoopLink(self._channel, metadata, take, end, self._keep)
        except grpc.aio.UsageError:
            raise InterfaceError("the database is closed") from None

    async def call(self, method: str, request: Message, answer: type[M], metadata: list[tuple[str, str]], timeout: float) -> M:
        stub = self._channel.unary_unary(SERVICE + method, type(request).SerializeToString, answer.FromString)
        try:
            result: M = await stub(request, timeout=timeout, metadata=cast(Any, tuple(metadata)))
        except grpc.aio.UsageError:  # of a channel that another task has closed
            raise InterfaceError("the database is closed") from None
        except asyncio.CancelledError:
            if self._closed and not _cancelled():  # it is the call that was cancelled, with its channel
                raise InterfaceError("the database is closed") from None
            raise
        return result

    def probe(self, timeout: float, done: Callable[[bool], None]) -> None:
        async def ask() -> None:
            answered = False
            try:
                await self._channel.unary_unary(HEALTH, same, same)(b"", timeout=timeout)
                answered = True
            except grpc.RpcError as e:
                answered = runs(e)
            except (grpc.aio.UsageError, asyncio.CancelledError):  # the channel was closed
                pass
            finally:
                done(answered)

        task = self._loop.create_task(ask())
        self._keep.add(task)
        task.add_done_callback(self._keep.discard)

    async def pause(self, seconds: float, metadata: list[tuple[str, str]]) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        self._closed = True
        task = self._loop.create_task(self._channel.close())
        self._keep.add(task)
        task.add_done_callback(self._keep.discard)


def _cancelled() -> bool:
    """Whether the task that runs is to end (before Python 3.11: not known)."""
    task = asyncio.current_task()
    return task is not None and sys.version_info >= (3, 11) and task.cancelling() > 0


class Loop:
    """Runtime of the event loop that runs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def inbox(self) -> Inbox:
        return LoopInbox(self._loop)

    def lock(self) -> AbstractAsyncContextManager[Any]:
        return asyncio.Lock()

    def channel(self, address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, Any]]) -> Channel:
        return LoopChannel(address, credentials, options, self.tasks)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._loop.create_task(work())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def check(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise InterfaceError("this was opened in another event loop: open it in the one that uses it")

    async def drain(self) -> None:
        """Waits until what was begun has ended."""
        while self.tasks:
            await asyncio.wait(set(self.tasks))
