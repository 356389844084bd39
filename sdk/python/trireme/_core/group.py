"""A group of nodes: who leads, which sessions are open, and what is tried again."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..columns import Reading
from ..errors import Error, InterfaceError, Retry, elsewhere
from ..options import Options
from ..v1 import sql_pb2 as pb
from ..values import zone_of
from .runtime import Runtime
from .stream import Node, Session

T = TypeVar("T")

log = logging.getLogger("trireme")

REFRESH = 30.0  # seconds after which the group is asked for its members, when sessions are opened
AVOIDED = 5.0  # seconds for which a node is asked last that could not be reached
QUESTION = 5.0  # seconds that a node may take to answer who leads, or to open a session
SOON = 1.0  # the same for the first time, before the others are asked


class Group:
    """The nodes. Its methods are for any task of its side."""

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.runtime = runtime
        self.zone = zone_of(options.time_zone)
        self.reading = Reading(self.zone if options.aware_timestamps else None, options.decode_json)
        self.last_gtid = 0  # the greatest of what was committed here
        self.closed = False
        self._lock = threading.RLock()
        self._nodes: dict[str, Node] = {}
        self._known = list(options.addresses)  # those of the options first
        self._leader = ""  # where the last session was opened that may write; empty: not known
        self._asked = runtime.now()
        self._turn = 0
        self._bad: dict[str, float] = {}  # nodes that could not be reached, and until when they are avoided
        self._writers: list[Session] = []
        self._readers: list[Session] = []
        self._credentials = options.tls.credentials() if options.tls else None

    # Nodes

    def check(self) -> None:
        """InterfaceError: the group is not to be used, or not here."""
        if self.closed:
            raise InterfaceError("the database is closed")
        self.runtime.check()

    def node(self, address: str) -> Node:
        """The node at an address."""
        with self._lock:
            if self.closed:
                raise InterfaceError("the database is closed")
            n = self._nodes.get(address)
            if n is None:
                n = Node(self, address, self.runtime.channel(address, self._credentials, self._channel_options()))
                self._nodes[address] = n
            return n

    def _channel_options(self) -> list[tuple[str, int | str]]:
        options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", 6000),
            ("grpc.keepalive_timeout_ms", 4000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 2000),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if self.options.tls and self.options.tls.server_name:
            options.append(("grpc.ssl_target_name_override", self.options.tls.server_name))
        return options

    def candidates(self) -> list[str]:
        """The addresses to try: the leader's first, if it is known."""
        with self._lock:
            rest = [a for a in self._known if a != self._leader]
            return [self._leader, *rest] if self._leader else rest

    async def look(self) -> None:
        """Asks any node who is in the group."""

        timeout = SOON

        async def ask() -> None:
            nonlocal timeout
            last: Error | None = None
            within, timeout = timeout, QUESTION
            for address in self.candidates():
                try:
                    self._learn(await self._ask(address, within))
                    return
                except Error as e:
                    if e.retry is Retry.NEVER:
                        raise
                    last = elsewhere(e)
            assert last is not None
            raise last

        await self.patiently(ask, None, self.options.connect_timeout)

    async def _ask(self, address: str, timeout: float = QUESTION) -> pb.SqlNodeResponse:
        return await self.node(address).call("Node", pb.SqlNodeRequest(), pb.SqlNodeResponse, timeout)

    async def led_by_other(self, silent: str) -> str | None:
        """The address of a member other than a silent one that says that it leads. Whom others take for the leader is asked as
        well: it may have joined since the program asked for the members."""
        addresses = [a for a in self.candidates() if a != silent]
        for address in addresses:  # it grows
            try:
                r = await self._ask(address, SOON)
            except Error as e:
                log.debug("asking %s who leads instead of %s: %s", address, silent, e)
                continue
            if r.leads:
                return address
            if r.leader and r.leader != silent and r.leader not in addresses:
                addresses.append(r.leader)
        return None

    def give_up(self, node: Node, leader: str) -> None:
        """Ends what waits for a node that stands still."""
        log.info("%s is silent, and %s leads: it is given up", node.address, leader)
        with self._lock:
            if self._nodes.get(node.address) is node:
                del self._nodes[node.address]
            if self._leader == node.address:
                self._leader = leader
            self._bad[node.address] = self.runtime.now() + AVOIDED
        node.give_up()

    def _learn(self, r: pb.SqlNodeResponse) -> None:
        with self._lock:
            known = list(self.options.addresses)  # those that are members no more are forgotten
            for address in (r.leader, self._leader, *r.members):
                if address and address not in known:
                    known.append(address)
            self._known = known
            if not self._leader:
                self._leader = r.leader

    def _set_leader(self, address: str) -> None:
        now = self.runtime.now()
        with self._lock:
            ask = address != self._leader or now - self._asked > REFRESH
            if address != self._leader:
                log.info("the leader is at %s", address)
            if ask:
                self._asked = now
            self._leader = address
            if address not in self._known:
                self._known.append(address)
        if ask:
            self.runtime.spawn(lambda: self._refresh(address))

    async def _refresh(self, address: str) -> None:
        try:
            self._learn(await self._ask(address))
        except Error as e:
            log.debug("asking %s for the members: %s", address, e)

    async def outcome(self, token: bytes, until: float | None) -> int | None:
        """Asks the leader what became of a commit token: the transaction's number, or None."""

        timeout = SOON

        async def at(address: str) -> int | None:
            r = await self.node(address).call("Outcome", pb.SqlOutcomeRequest(commit_token=token), pb.SqlOutcomeResponse, timeout)
            return r.gtid if r.committed else None

        async def ask() -> int | None:
            nonlocal timeout
            try:
                return await self._at_leader(at)
            finally:
                timeout = QUESTION

        return await self.patiently(ask, until)

    # What is tried again

    async def patiently(
        self,
        work: Callable[[], Awaitable[T]],
        until: float | None,
        patience: float | None = None,
        may: Callable[[Error], bool] = lambda e: True,
    ) -> T:
        """Does some work until it succeeds, or fails for good, or there has been time enough. may says whether it may be
        done again after an error."""
        patience = self.options.patience if patience is None else patience
        end = self.runtime.now() + patience
        if until is not None:
            end = min(end, until)
        pause = 0.01
        while True:
            try:
                return await work()
            except Error as e:
                if e.retry in (Retry.NEVER, Retry.STATEMENT) or self.closed or not may(e):
                    raise
                wait = pause * random.uniform(0.5, 1)
                if self.runtime.now() + wait > end:
                    e.message += f" (tried again and again, for {patience:g} s at most: {', '.join(self.candidates())})"
                    raise
                log.debug("trying again in %.0f ms: %s", wait * 1000, e)
                lost = e.number == 2003
            if lost:
                metadata = [("authorization", self.options.authorization())]
                await self.node(self.candidates()[0]).channel.pause(wait, metadata)
            else:
                await self.runtime.sleep(wait)
            pause = min(2 * pause, 0.25)

    async def _at_leader(self, work: Callable[[str], Awaitable[T]]) -> T:
        """Does some work with the nodes, those first that others name as the leader, until it succeeds or fails for good."""
        tried: set[str] = set()
        queue = self.candidates()
        last: Error | None = None
        while queue:
            address = queue.pop(0)
            if address in tried:
                continue
            tried.add(address)
            try:
                return await work(address)
            except Error as e:
                if e.retry is Retry.NEVER:
                    raise
                last = elsewhere(e)
                if e.leader:
                    queue.insert(0, e.leader)
        assert last is not None
        raise last

    # Sessions

    async def writer(self, until: float | None) -> Session:
        """A session at the leader."""
        idle = self._idle(self._writers, -1)  # the one that came last is warm
        if idle is not None:
            return idle

        async def at(address: str) -> Session:
            s = await self.node(address).session(False, self._soon(until))
            self._set_leader(address)
            return s

        return await self._at_leader(at)

    async def reader(self, until: float | None, without: set[str] | None = None) -> Session:
        """A session that reads, at any node: another one each time. without: these are asked last."""
        now = self.runtime.now()
        with self._lock:
            self._turn += 1
            turn = self._turn
            bad = {a for a, end in self._bad.items() if end > now}
        addresses = sorted(set(self.candidates()))
        first = turn % len(addresses)
        addresses = addresses[first:] + addresses[:first]
        addresses.sort(key=lambda a: (without is not None and a in without, a in bad))
        last: Error | None = None
        for address in addresses:
            idle = self._idle(self._readers, 0, address)
            if idle is not None:
                return idle
            try:
                s = await self.node(address).session(True, self._soon(until))
                with self._lock:
                    self._bad.pop(address, None)
                return s
            except Error as e:
                last = elsewhere(e)
                if last.retry is Retry.NEVER:
                    raise
                with self._lock:
                    self._bad[address] = self.runtime.now() + AVOIDED
        assert last is not None
        raise last

    def _soon(self, until: float | None) -> float:
        soon = self.runtime.now() + QUESTION
        return soon if until is None else min(soon, until)

    def _idle(self, sessions: list[Session], at: int, address: str | None = None) -> Session | None:
        """Takes a session that waits for its next call, at the address if one is given."""
        with self._lock:
            sessions[:] = [s for s in sessions if s.ended is None]
            if address is None:
                return sessions.pop(at) if sessions else None
            for i, s in enumerate(sessions):
                if s.node.address == address:
                    return sessions.pop(i)
            return None

    def put(self, s: Session) -> None:
        """Gives a session back."""
        sessions = self._readers if s.read_only else self._writers
        with self._lock:
            keep = s.ended is None and not s.own and len(sessions) < self.options.pool_size and not self.closed
            if keep:
                sessions.append(s)
        if not keep:
            s.close()

    def note(self, gtid: int) -> None:
        """Remembers what was committed."""
        if gtid > self.last_gtid:
            with self._lock:
                self.last_gtid = max(self.last_gtid, gtid)

    def close(self) -> None:
        """Ends all sessions without waiting."""
        with self._lock:
            self.closed = True
            idle = self._writers + self._readers
            nodes, self._nodes = self._nodes, {}
            self._writers, self._readers = [], []
        for s in idle:
            s.close()
        for n in nodes.values():
            n.close()
