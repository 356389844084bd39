"""What the core needs of its surroundings. The core is written once, in coroutines. Under asyncio they
run as such; on the blocking side nothing in them ever waits by suspending, so that one step runs
them to their end (run)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, Union

import grpc
from google.protobuf.message import Message

from ..errors import Error
from ..v1 import sql_pb2 as pb

T = TypeVar("T")
M = TypeVar("M", bound=Message)

Part = Union[pb.SqlSessionsResponse, Error]

SERVICE = "/trireme.v1.Sql/"
HEALTH = "/grpc.health.v1.Health/Check"  # whose empty request asks for the process as a whole


def runs(e: grpc.RpcError) -> bool:
    """Whether an error was sent by the process that was called."""
    code = e.code() if hasattr(e, "code") else None
    return code not in (None, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


def same(b: bytes) -> bytes:
    """Encodes and decodes messages of which nobody wants to know more."""
    return b


class Inbox(Protocol):
    """Takes the parts of one answer. put may be called by any thread of the side."""

    def put(self, part: Part) -> None:
        """Adds a part."""

    async def get(self, until: float | None) -> Part:
        """Waits for the next part. TimeoutError: none has come until then, by the side's clock."""


class Link(Protocol):
    """A stream as gRPC has it. No method waits, and any thread of the side may call it."""

    def send(self, m: pb.SqlSessionsRequest) -> None:
        """Sends a message; after the end nothing happens."""

    def close(self) -> None:
        """Ends the stream."""


class Channel(Protocol):
    """A connection to a node."""

    def stream(
        self, metadata: list[tuple[str, str]], take: Callable[[pb.SqlSessionsResponse], None], end: Callable[[BaseException | None], None]
    ) -> Link:
        """Opens a stream. take is given what comes, then end why no more does."""

    async def call(self, method: str, request: Message, answer: type[M], metadata: list[tuple[str, str]], timeout: float) -> M:
        """A call with one request and one answer. grpc.RpcError: it failed."""

    def probe(self, timeout: float, done: Callable[[bool], None]) -> None:
        """Asks whether the process at the other end runs, without waiting. done is told whether it has answered, by any thread of
        the side."""

    async def pause(self, seconds: float, metadata: list[tuple[str, str]]) -> None:
        """Waits, and goes on connecting meanwhile."""

    def close(self) -> None:
        """Closes it without waiting."""


class Runtime(Protocol):
    """A side: blocking, or of an event loop."""

    def now(self) -> float:
        """Its clock, in seconds."""

    async def sleep(self, seconds: float) -> None:
        """Waits."""

    def inbox(self) -> Inbox:
        """A new one."""

    def lock(self) -> AbstractAsyncContextManager[Any]:
        """One that tasks may hold while they wait."""

    def channel(self, address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, Any]]) -> Channel:
        """Connects to a node; it does not wait."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does some work beside the caller's."""

    def check(self) -> None:
        """InterfaceError: the caller is not where the database was opened."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of the blocking side, in which nothing suspends."""
    try:
        work.send(None)
    except StopIteration as e:
        result: T = e.value
        return result
    work.close()
    raise RuntimeError("trireme: a coroutine of the blocking side has suspended")
