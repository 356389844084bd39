"""The side of an event loop: asyncio and gRPC's interface for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from ..errors import InterfaceError
from ..v1 import sql_pb2 as pb
from .runtime import SERVICE, Channel, Inbox, Link, M, Part


class LoopInbox:
    """Inbox of a task that waits."""

    __slots__ = ("_loop", "_parts", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parts: deque[Part] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, part: Part) -> None:
        self._parts.append(part)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self, until: float | None) -> Part:
        while not self._parts:
            self._waiter = self._loop.create_future()
            if until is None:
                await self._waiter
                continue
            left = until - self._loop.time()
            done, _ = await asyncio.wait({self._waiter}, timeout=max(left, 0))
            if not done and not self._parts:
                raise TimeoutError
        return self._parts.popleft()


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
        return result

    async def pause(self, seconds: float, metadata: list[tuple[str, str]]) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        task = self._loop.create_task(self._channel.close())
        self._keep.add(task)
        task.add_done_callback(self._keep.discard)


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
