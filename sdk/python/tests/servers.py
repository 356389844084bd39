"""Groups of servers for the tests: each node is a process of its own, on ports of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import trustme

import trireme

ROOT = Path(os.environ.get("TRIREME_ROOT", Path(__file__).parents[3]))
BINARY = ROOT / "bin" / "trireme"
PASSWORD = "it's \\ pass"
PATIENCE = 120.0  # seconds for what has to happen in the end

_guards: list[socket.socket] = []
_free: list[int] = []


def port() -> int:
    """A port that no other process which asks in this way gets: below those that the kernel gives to connections, in a
    block whose first port is held (package e2e/servers/ports does the same)."""
    while True:
        if not _free:
            start = 11000 + random.randrange(400) * 50
            guard = socket.socket()
            try:
                guard.bind(("127.0.0.1", start))
                guard.listen()
            except OSError:
                guard.close()
                continue
            _guards.append(guard)
            _free.extend(range(start + 1, start + 50))
        found = _free.pop(0)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", found))
            except OSError:
                continue
            return found


def certificates(directory: Path) -> Path:
    """Makes an authority in a new directory, and what it signs: a certificate of servers, for 127.0.0.1 and db.test, and one
    of clients; and one of clients that another authority has signed."""
    directory.mkdir(parents=True)
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name, issued in (
        ("server", authority.issue_cert("127.0.0.1", "db.test")),
        ("client", authority.issue_cert("client@db.test", common_name="app")),
        ("stranger", other.issue_cert("client@db.test", common_name="app")),
    ):
        issued.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")
        issued.private_key_pem.write_to_path(directory / f"{name}-key.pem")
    return directory


class Node:
    """A server: its directory outlives its process."""

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.dir = group.dir / f"node{number}"
        self.log = group.dir / f"node{number}.log"
        self.mysql, self.reads, self.http, self.grpc, self.peers = (port() for _ in range(5))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.grpc}"

    def start(self) -> None:
        founders = ",".join(f"127.0.0.1:{n.peers}" for n in self.group.nodes)
        args = [
            "setpriv", "--pdeathsig", "KILL",  # with the process of the tests
            str(BINARY), "server", f"--datadir={self.dir}", "--bind-address=127.0.0.1", "--report-host=127.0.0.1",
            f"--port={self.mysql}", f"--read-only-port={self.reads}", f"--http-port={self.http}", f"--grpc-port={self.grpc}",
            "--peer-bind=127.0.0.1", f"--peer-port={self.peers}", f"--peer-address=127.0.0.1:{self.peers}",
            "--peer-allow-plaintext", f"--founders={founders}", f"--initial-root-password={PASSWORD}",
            "--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=32M", "--max-connections=1000", *self.group.settings,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(args, stdout=log, stderr=log)

    def kill(self) -> None:
        """Ends the process at once, as kill -9 does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        """The process stands still; its kernel goes on. A signal only asks for that: until the thread that takes it has run,
        which may be long on a busy machine, the others go on serving."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def writable(self) -> bool:
        """Whether the node leads."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/status", timeout=5) as r:
                return bool(json.load(r)["status"]["writable"])
        except (OSError, ValueError, KeyError):
            return False


class Group:
    """A group of servers."""

    def __init__(self, directory: Path, nodes: int = 3, settings: tuple[str, ...] = (), tls: Path | None = None) -> None:
        self.dir = directory
        self.tls = tls  # of certificates()
        if tls is not None:
            settings += (f"--ssl-cert={tls / 'server.pem'}", f"--ssl-key={tls / 'server-key.pem'}", f"--ssl-ca={tls / 'ca.pem'}")
        self.settings = settings
        self.nodes: list[Node] = []
        self.nodes.extend(Node(self, i + 1) for i in range(nodes))

    @property
    def addresses(self) -> list[str]:
        return [n.address for n in self.nodes]

    def start(self) -> None:
        for n in self.nodes:
            n.start()
        try:
            self.leader()
            self.open().close()
        except BaseException:
            for n in self.nodes:
                print(n.log.read_text()[-2000:])
            self.stop()
            raise

    def leader(self) -> Node:
        """Waits until a node leads."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for n in self.nodes:
                if n.process is not None and n.writable():
                    return n
            time.sleep(0.02)
        raise TimeoutError("no node leads")

    def stop(self) -> None:
        for n in self.nodes:
            n.kill()

    def options(self, **more: object) -> dict[str, Any]:
        given: dict[str, Any] = {"user": "root", "password": PASSWORD, "patience": PATIENCE, "connect_timeout": PATIENCE}
        return given | more

    def open(self, **more: object) -> trireme.Database:
        return trireme.open(self.addresses, **self.options(**more))

    def connect(self, **more: object) -> trireme.Connection:
        options = self.options(**more)
        return trireme.connect(self.addresses, **options)
