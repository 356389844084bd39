"""How to reach a group, and what its sessions are like."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union
from urllib.parse import parse_qsl, unquote, urlsplit

import grpc

from .errors import InterfaceError, NotSupportedError
from .trace import Trace
from .v1 import sql_pb2 as pb
from .values import zone_of

Addresses = Union[str, Sequence[str]]

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]@]+):(\d{1,5})")


@dataclasses.dataclass(frozen=True)
class TLS:
    """TLS to the nodes: files in PEM, or their contents as bytes.

    ca is what the server's certificate has to be signed by (None: the authorities that gRPC brings along), cert and
    key prove who the client is. server_name is the name that has to be in the server's certificate, if it is another
    than that of the address.
    """

    ca: str | bytes | Path | None = None
    cert: str | bytes | Path | None = None
    key: str | bytes | Path | None = dataclasses.field(default=None, repr=False)
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC makes of it."""
        if (self.cert is None) != (self.key is None):
            raise InterfaceError("TLS: cert and key belong together: give both, or none")
        return grpc.ssl_channel_credentials(_pem("ca", self.ca), _pem("key", self.key), _pem("cert", self.cert))


def _pem(name: str, source: str | bytes | Path | None) -> bytes | None:
    if source is None:
        return None
    if not isinstance(source, bytes):
        try:
            source = Path(source).read_bytes()
        except OSError as e:
            raise InterfaceError(f"TLS: {name}: {e}") from e
    if b"-----BEGIN " not in source:
        raise InterfaceError(f"TLS: {name} is not in PEM: it has no line -----BEGIN ...")
    return source


@dataclasses.dataclass(frozen=True)
class Read:
    """What a read may miss. A read that says so is served by any node."""

    consistency: int
    gtid: int = 0
    bound_ms: int = 0
    wait: float = 0.0
    """How many seconds a node may take until it has it (0: trireme_read_wait); then the next one is asked."""

    def fill(self, r: pb.SqlRead) -> None:
        """Says so in the contract's words."""
        r.consistency = self.consistency  # type: ignore[assignment]
        r.at_least = self.gtid
        r.bound_ms = self.bound_ms
        r.wait_ms = int(self.wait * 1000)


STRONG = Read(pb.SQL_CONSISTENCY_STRONG)
"""Nothing that was acknowledged before the read began."""

LOCAL = Read(pb.SQL_CONSISTENCY_LOCAL)
"""What the node does not have yet."""


def at_least(gtid: int, wait: float = 0.0) -> Read:
    """Nothing up to a transaction: the gtid of an earlier write."""
    if not 0 <= gtid < 1 << 63:
        raise InterfaceError(f"at_least({gtid}): it is the gtid of a write, a number from 0 on")
    return Read(pb.SQL_CONSISTENCY_AT_LEAST, gtid=gtid, wait=wait)


def bounded(seconds: float, wait: float = 0.0) -> Read:
    """What was committed within the last seconds, which are counted in milliseconds."""
    if not 0 <= seconds < 2**31 / 1000:
        raise InterfaceError(f"bounded({seconds}): it is a time in seconds")
    return Read(pb.SQL_CONSISTENCY_BOUNDED, bound_ms=int(seconds * 1000), wait=wait)


@dataclasses.dataclass(frozen=True)
class Options:
    """How to reach a group. addresses and user are required. Times are seconds."""

    addresses: tuple[str, ...]
    """host:port of gRPC ports, of one node or more."""
    user: str
    password: str | Callable[[], str] = dataclasses.field(default="", repr=False)
    """It, or what returns it whenever a stream is opened."""
    schema: str = ""
    """The current schema."""
    tls: TLS | None = None
    """None: no TLS, which nodes take from their own machine only, unless they are told otherwise."""
    program: str = ""
    """The program's name, for the server's lists."""
    time_zone: str = "+00:00"
    """The time zone of sessions: of TIMESTAMP values, NOW(), and what datetimes with a time zone are converted to."""
    aware_timestamps: bool = False
    """TIMESTAMP values have the time zone with them."""
    decode_json: bool = False
    """JSON values are what json.loads makes of them."""
    timeout: float | None = None
    """How long a statement may take, unless a call says otherwise; None: no limit."""
    patience: float = 30.0
    """How long a call goes on trying while there is no leader, or its answer is lost."""
    connect_timeout: float = 10.0
    """How long to try until the first node has answered."""
    pool_size: int = 16
    """How many sessions of each kind are kept open for later calls."""
    window: int = 1 << 20
    """How many bytes of a result may be under way: 64 KiB to 16 MiB."""
    buffer: int = 64 << 20
    """How many bytes of a result that is not read yet a connection takes into memory when its next statement comes."""
    trace: Trace | None = None
    """What is told of each call, such as trireme.otel.tracing()."""

    def __post_init__(self) -> None:
        if not self.addresses:
            raise InterfaceError("addresses is empty: give the address of a gRPC port, such as '127.0.0.1:17000'")
        for address in self.addresses:
            found = _ADDRESS.fullmatch(address)
            if not found or not 0 < int(found[2]) < 65536:
                raise InterfaceError(f"the address {address!r} is not host:port, such as '127.0.0.1:17000'")
        if not self.user or ":" in self.user:
            raise InterfaceError("user is empty or has a colon: give the name of an account")
        if not 64 << 10 <= self.window <= 16 << 20:
            raise InterfaceError(f"window={self.window}: it is 65536 to 16777216 bytes")
        for name in ("patience", "connect_timeout", "pool_size", "buffer"):
            if getattr(self, name) < 0:
                raise InterfaceError(f"{name}={getattr(self, name)}: it is not negative")
        zone_of(self.time_zone)

    def authorization(self) -> str:
        """Who calls, in a call's metadata."""
        password = self.password() if callable(self.password) else self.password
        return "Basic " + base64.b64encode(f"{self.user}:{password}".encode()).decode()


_NAMES = {f.name for f in dataclasses.fields(Options)} - {"addresses"}


def options_of(addresses: Addresses, given: Mapping[str, Any]) -> Options:
    """Options of what open() and connect() are given: addresses, or a URL, and the rest by name."""
    values = dict(given)
    if isinstance(addresses, str):
        if "://" in addresses:
            of_url = _parse(addresses)
            addresses = of_url.pop("addresses")
            values = {**of_url, **values}
        else:
            addresses = [a.strip() for a in addresses.split(",")]
    for name in values:
        if name not in _NAMES:
            raise InterfaceError(f"there is no option {name}: there are {', '.join(sorted(_NAMES))}")
    if "user" not in values:
        raise InterfaceError("user is missing: give the name of an account")
    if values.get("tls") is True:
        values["tls"] = TLS()
    return Options(addresses=tuple(addresses), **values)


def _parse(url: str) -> dict[str, Any]:
    form = "a URL is trireme://user:password@host:port,host:port/schema?tls=true"
    try:
        u = urlsplit(url)
    except ValueError:
        raise InterfaceError(form) from None
    account, at, hosts = u.netloc.rpartition("@")
    if u.scheme != "trireme" or not at or not hosts:
        raise InterfaceError(form)
    user, _, password = account.partition(":")
    values: dict[str, Any] = {
        "addresses": hosts.split(","),
        "user": unquote(user),
        "password": unquote(password),
        "schema": unquote(u.path.lstrip("/")),
    }
    tls: dict[str, str] = {}
    for name, text in parse_qsl(u.query, keep_blank_values=True):
        if name in ("ca", "cert", "key", "server_name"):
            tls[name] = text
        elif name == "tls" and text in ("true", "false"):
            values["tls"] = text == "true"
        elif name in ("timeout", "patience", "connect_timeout"):
            try:
                values[name] = float(text)
            except ValueError:
                raise InterfaceError(f"{name}={text}: it is a number of seconds") from None
        elif name in ("program", "time_zone"):
            values[name] = text
        elif name == "tls" and text == "skip-verify":
            raise NotSupportedError("tls=skip-verify: gRPC for Python always checks the server's certificate: give its ca")
        else:
            raise InterfaceError(f"a URL has no parameter {name}={text}")
    if tls or values.get("tls"):
        values["tls"] = TLS(**tls)
    else:
        values["tls"] = None
    return values
