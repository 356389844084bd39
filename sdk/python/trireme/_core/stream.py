"""Sessions, and the streams that carry them to a node."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import Message

from ..columns import Column
from ..errors import ConnectionLost, Error, InterfaceError, InternalError, Retry, StatementTimeout, copied, elsewhere, told
from ..v1 import sql_pb2 as pb
from .runtime import Channel, Inbox, Link, M
from .status import of_status
from .watch import Watch, doubt, silent

if TYPE_CHECKING:
    from .group import Group

SESSIONS_PER_STREAM = 250  # before another one is opened
GRACE = 0.25  # seconds that an answer may come after its timeout, since the server says so itself


class Call:
    """A request whose answer comes."""

    __slots__ = ("inbox", "request", "taken")

    def __init__(self, request: int, inbox: Inbox) -> None:
        self.request = request
        self.inbox = inbox
        self.taken = 0  # bytes of the window that the server has not been told of


class Session:
    """One of a stream. One task uses it at a time."""

    def __init__(self, group: Group, node: Node, read_only: bool) -> None:
        self.group = group
        self.node = node
        self.read_only = read_only
        self.own = False  # it has state that others must not meet
        self.id = 0
        self.connection_id = 0
        self.max_message = 1 << 20
        self.running = 0  # the request whose answer is awaited, for cancel
        self.last = 0
        self.ended: Error | None = None
        self._stream: Stream | None = None
        self._lock = threading.RLock()  # as all of them: the garbage collector may close what is used no more, at any point
        self._calls: dict[int, Call] = {}
        self._handle = 0

    def place(self, stream: Stream, number: int) -> None:
        """Gives the session its place on a stream."""
        self._stream, self.id = stream, number

    def request(self, if_ok: bool = False) -> pb.SqlSessionsRequest:
        """A message of the session, whose kind is to be set."""
        return pb.SqlSessionsRequest(session=self.id, if_ok=if_ok)

    def send(self, m: pb.SqlSessionsRequest) -> Call:
        """Sends a request."""
        assert self._stream is not None
        self.last += 1
        m.request = self.last
        call = Call(self.last, self.group.runtime.inbox())
        with self._lock:
            if self.ended is not None:
                raise elsewhere(copied(self.ended))  # it was not sent
            self._calls[call.request] = call
        self.running = call.request
        self._stream.link.send(m)
        return call

    def signal(self, m: pb.SqlSessionsRequest) -> None:
        """Sends something that has no answer."""
        assert self._stream is not None
        self._stream.link.send(m)

    def take(self, m: pb.SqlSessionsResponse) -> None:
        """Passes an answer on."""
        if m.request == 0:
            e = told(m.error)
            e.session_ended = True
            if e.retry is Retry.NEVER:
                e.retry = Retry.SAME_TOKEN  # killed, or idle for too long: a new session is as good
            if self._stream is not None:
                self._stream.remove(self)
            self.end(e)
            return
        last = not m.HasField("result") or m.result.HasField("done")
        with self._lock:
            call = self._calls.get(m.request)
            if last:
                self._calls.pop(m.request, None)
            if m.HasField("error") and m.error.session_ended and self.ended is None:
                self.ended = told(m.error)
        if call is not None:
            call.inbox.put(m)

    def end(self, e: Error) -> None:
        """Fails what waits for answers."""
        with self._lock:
            if self.ended is None:
                self.ended = e
            calls, self._calls = self._calls, {}
        for call in calls.values():
            call.inbox.put(copied(e))

    async def part(self, call: Call, until: float | None) -> pb.SqlSessionsResponse:
        """Waits for the next part of an answer. Error: it is one, or it has taken too long."""
        try:
            part = await self._next(call, None if until is None else until + GRACE)
        except TimeoutError:
            self.node.watch.probe()  # for the next call
            self.abandon(call)
            raise StatementTimeout(
                f"{self.node.address} has not answered within the timeout; whether a change was committed is not known",
                number=3024,
                retry=Retry.NEVER,
                session_ended=True,
            ) from None
        except BaseException:  # the task was cancelled, the user has hit ^C
            self.abandon(call)
            raise
        if isinstance(part, Error):
            raise part
        if part.HasField("error"):
            raise told(part.error)
        return part

    async def _next(self, call: Call, until: float | None) -> pb.SqlSessionsResponse | Error:
        soon = self.group.runtime.now() + doubt()
        if until is None or soon < until:
            try:
                return await call.inbox.get(soon)
            except TimeoutError:
                pass
            with self.node.watch:
                return await call.inbox.get(until)
        return await call.inbox.get(until)

    async def finish(self, call: Call, until: float | None) -> pb.SqlDone:
        """Waits for the end of an answer whose rows nobody wants."""
        while True:
            m = await self.part(call, until)
            if not m.HasField("result"):
                return pb.SqlDone()
            if m.result.HasField("done"):
                return m.result.done
            self.credit(call, m.result.batch.window_bytes)

    def credit(self, call: Call, size: int) -> None:
        """Says that a batch was taken, once they are a good part of the window."""
        call.taken += size
        if call.taken >= self.group.options.window // 4:
            m = self.request()
            m.credit.request, m.credit.bytes = call.request, call.taken
            self.signal(m)
            call.taken = 0

    def cancel(self, request: int) -> None:
        """Interrupts a request; 0: all."""
        m = self.request()
        m.cancel.request = request
        self.signal(m)

    def abandon(self, call: Call) -> None:
        """Interrupts a request whose answer nobody waits for. The session ends."""
        self.cancel(call.request)
        self.close()

    def close(self) -> None:
        """Ends the session without waiting. It takes no lock of a stream: the garbage collector may call it."""
        over, self.ended = self.ended, self.ended or Error("the session was closed", retry=Retry.ELSEWHERE, session_ended=True)
        if self._stream is None:
            return
        if over is None:
            self.last += 1
            m = self.request()
            m.request = self.last
            m.close.SetInParent()
            self.signal(m)
        self._stream.remove(self)

    async def open(self, until: float | None) -> None:
        """Is the session's first request."""
        o = self.group.options
        m = self.request()
        m.open.schema, m.open.read_only = o.schema, self.read_only
        m.open.attributes["_client_name"] = "trireme-python"
        if o.program:
            m.open.attributes["program_name"] = o.program
        call = self.send(m)
        m = self.request(if_ok=True)
        m.execute.statement.text = "SET time_zone = '" + o.time_zone.replace("'", "''") + "'"
        zone = self.send(m)
        opened = await self.part(call, until)
        if not opened.HasField("opened"):
            raise InternalError(f"{self.node.address} has not answered what it was asked")
        self.connection_id = opened.opened.connection_id
        self.max_message = opened.opened.max_message_bytes
        await self.finish(zone, until)

    def prepare(self, text: str) -> tuple[Call, int]:
        """Sends a statement's preparation. The number that it returns names it in the session."""
        self._handle += 1
        m = self.request()
        m.prepare.handle, m.prepare.text = self._handle, text
        return self.send(m), self._handle


class Stream:
    """Carries sessions."""

    def __init__(self, node: Node, channel: Channel, authorization: str) -> None:
        self.node = node
        self._lock = threading.RLock()
        self._sessions: dict[int, Session] = {}
        self._next = 0
        self._reached = False
        self.ended: Error | None = None
        self.link: Link = channel.stream([("authorization", authorization)], self._take, self._end)

    def _take(self, m: pb.SqlSessionsResponse) -> None:
        self._reached = True
        self.node.watch.hear()
        session = self._sessions.get(m.session)
        if session is not None:
            session.take(m)

    def _end(self, why: BaseException | None) -> None:
        e = of_status(why, self.node.address, self._reached)
        e.session_ended = True
        if e.retry is Retry.ELSEWHERE:
            e.retry = Retry.SAME_TOKEN  # a request may have been on its way
        self.end(e)

    def end(self, e: Error) -> None:
        """Fails what waits for answers. The stream takes no more sessions."""
        with self._lock:
            if self.ended is None:
                self.ended = e
            sessions, self._sessions = self._sessions, {}
        for s in list(sessions.values()):  # some may be removed meanwhile
            s.end(e)
        self.node.drop(self)

    def add(self, s: Session) -> bool:
        """Gives the stream a session. False: it is full, or has ended."""
        with self._lock:
            if self.ended is not None or len(self._sessions) >= SESSIONS_PER_STREAM:
                return False
            self._next += 1
            s.place(self, self._next)
            self._sessions[s.id] = s
            return True

    def remove(self, s: Session) -> None:
        """Forgets a session."""
        self._sessions.pop(s.id, None)


class Node:
    """A node of the group."""

    def __init__(self, group: Group, address: str, channel: Channel) -> None:
        self.group = group
        self.address = address
        self.channel = channel
        self._lock = threading.RLock()
        self.watch = Watch(self)
        self._opening = group.runtime.lock()
        self._streams: list[Stream] = []
        self._given_up: Error | None = None

    async def session(self, read_only: bool, until: float | None) -> Session:
        """Opens a session at the node."""
        s = Session(self.group, self, read_only)
        if not self._place(s):
            async with self._opening:
                if not self._place(s):  # somebody may have opened one meanwhile
                    self._open_stream(s)
        try:
            await s.open(until)
        except StatementTimeout:
            raise ConnectionLost(
                f"{self.address} has not opened a session in time", number=2013, sqlstate="08S01", retry=Retry.ELSEWHERE
            ) from None
        except Error as e:
            s.close()
            raise elsewhere(e) from None  # it had no effect
        except BaseException:
            s.close()
            raise
        return s

    async def call(self, method: str, request: Message, answer: type[M], timeout: float) -> M:
        """A call with one request and one answer. Error: it failed."""
        metadata = [("authorization", self.group.options.authorization())]
        try:
            return await self.channel.call(method, request, answer, metadata, timeout)
        except grpc.RpcError as e:
            raise of_status(e, self.address, False) from None
        except InterfaceError:
            self._check()
            raise

    def _check(self) -> None:
        """An error if the node was given up: its channel is closed, which says nothing of the database."""
        if self._given_up is not None:
            raise elsewhere(copied(self._given_up))

    def _open_stream(self, s: Session) -> None:
        try:
            stream = Stream(self, self.channel, self.group.options.authorization())
        except InterfaceError:
            self._check()
            raise
        with self._lock:
            self._streams.append(stream)
        if not stream.add(s):
            self.drop(stream)
            assert stream.ended is not None
            raise elsewhere(copied(stream.ended))

    def _place(self, s: Session) -> bool:
        with self._lock:
            return any(stream.add(s) for stream in self._streams)

    def drop(self, gone: Stream) -> None:
        """Forgets a stream."""
        with self._lock:
            if gone in self._streams:
                self._streams.remove(gone)

    def give_up(self) -> None:
        """Ends what waits for the node, as for one whose connection is lost."""
        self._given_up = silent(self.address)
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.end(copied(self._given_up))
            stream.link.close()
        self.close()

    def close(self) -> None:
        """Ends the streams."""
        with self._lock:
            streams, self._streams = self._streams, []
        for stream in streams:
            stream.link.close()
        self.channel.close()


def columns_of(result: pb.SqlResult) -> list[Column]:
    """The columns of a result's first part."""
    return [Column(c) for c in result.columns]
