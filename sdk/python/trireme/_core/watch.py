"""Notices a node whose process stands still.

A process may stand still while its kernel does not: it was stopped, its container is frozen, it gets no processor. Its
kernel goes on to acknowledge what is sent to it and accepts connections for it, so that TCP notices nothing.

Once a call has waited for two looks (a look is 250 ms), its node is watched until no such call waits any more. The watch asks the
node's health service, which a process that runs answers at once, whatever its statements do; every message of
the node is as good as that answer. After seven silent looks the others are asked who leads. If one says that it does,
and the next look is silent too, the node is given up: its calls end with ConnectionLost.

So a leader is never given up for being slow: it has to have lost its leadership. Looks are counted, not time: a
program that itself stood still for long has missed one look. Nothing is sent while no call waits.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ..errors import ConnectionLost, Error, InterfaceError, Retry

if TYPE_CHECKING:
    from .stream import Node

log = logging.getLogger("trireme")

SILENCE = 2.0  # seconds
LOOKS = 8  # in the silence
PROBE_AT = 2  # the silent look at which the node is asked


def doubt() -> float:
    """How many seconds a call waits before its node is watched."""
    return SILENCE / LOOKS * PROBE_AT


class Watch:
    """Of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = threading.RLock()
        self._heard = 0  # messages of the node
        self._waiting = 0  # calls
        self._probing = False
        self._running = False

    def hear(self) -> None:
        """Notes a sign of life."""
        self._heard += 1  # one that gets lost beside another one is no loss

    def __enter__(self) -> None:
        """Notes that a call waits, and has done so for a while."""
        with self._lock:
            self._waiting += 1
            start = not self._running
            self._running = True
        if start:
            self._node.group.runtime.spawn(self._run)

    def __exit__(self, *exc: object) -> None:
        """Notes that it waits no more."""
        with self._lock:
            self._waiting -= 1

    def probe(self) -> None:
        """Asks the node whether it runs, unless that question is still open. Until the answer, the node is watched."""
        with self._lock:
            if self._probing:
                return
            self._probing = True
        self.__enter__()
        try:
            self._node.channel.probe(4 * SILENCE, self._probed)
        except InterfaceError:  # the database was closed
            self._probed(False)

    def _probed(self, answered: bool) -> None:
        if answered:
            self.hear()
        self._probing = False
        self.__exit__()

    async def _run(self) -> None:
        try:
            await self._look()
        except Error as e:
            log.debug("watching %s: %s", self._node.address, e)  # the database was closed
            self._running = False

    async def _look(self) -> None:
        group = self._node.group
        heard = self._heard
        silent = PROBE_AT  # that long the call has waited
        leader: str | None = None
        self.probe()
        while not group.closed:
            await group.runtime.sleep(SILENCE / LOOKS)
            with self._lock:
                if self._waiting == 0:
                    self._running = False
                    return
            if self._heard != heard:
                heard, silent, leader = self._heard, 0, None
                continue
            silent += 1
            if silent == PROBE_AT:
                self.probe()
            elif silent >= LOOKS and leader is not None:
                group.give_up(self._node, leader)
                return
            elif silent >= LOOKS - 1:
                leader = await group.led_by_other(self._node.address)


def silent(address: str) -> Error:
    """The error of what waited for a node that is given up."""
    return ConnectionLost(
        f"Lost connection to {address}: it is silent, and another member leads",
        number=2013,
        sqlstate="08S01",
        retry=Retry.SAME_TOKEN,
        session_ended=True,
    )
