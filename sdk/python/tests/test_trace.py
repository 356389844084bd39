"""What traces are told."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent import futures
from typing import Any

import grpc
import pytest
import servers
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import trireme
import trireme.aio
import trireme.otel


def test_hook(group: Any) -> None:
    calls: list[dict[str, Any]] = []

    class Told:
        def __init__(self, told: dict[str, Any]) -> None:
            self.told = told

        def set(self, name: str, value: Any) -> None:
            self.told[name] = value

    @contextlib.contextmanager
    def trace(operation: str, attributes: Mapping[str, Any]) -> Iterator[Told]:
        told = {"operation": operation, **attributes}
        calls.append(told)
        try:
            yield Told(told)
        except trireme.Error as e:
            told["error"] = e.number
            raise

    with group.open(schema="shop", trace=trace) as db:
        db.fetchone("SELECT ?", ["secret"])
        with pytest.raises(trireme.Error):
            db.execute("NONSENSE")
        db.run_in_transaction(lambda tx: tx.fetchone("SELECT 2"))
    assert [c["operation"] for c in calls] == ["SELECT", "NONSENSE", "transaction", "SELECT", "COMMIT"]
    assert calls[0]["db.namespace"] == "shop"
    assert calls[0]["server.address"] in group.addresses
    assert calls[1]["error"] == 1064
    assert calls[2]["trireme.attempts"] == 1
    assert "secret" not in repr(calls)


def test_opentelemetry(group: Any) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with group.open(trace=trireme.otel.tracing(provider)) as db:
        db.run_in_transaction(lambda tx: tx.fetchone("SELECT 2"))
        with pytest.raises(trireme.Error):
            db.execute("SELECT * FROM shop.nothing")
    spans = exporter.get_finished_spans()
    assert [s.name for s in spans] == ["SELECT", "COMMIT", "transaction", "SELECT"]
    parent, outer = spans[0].parent, spans[2].context
    assert parent is not None
    assert outer is not None
    assert parent.span_id == outer.span_id
    assert spans[3].attributes is not None
    assert spans[3].attributes["db.response.status_code"] == "1146"
    assert not spans[3].events
    provider.shutdown()


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(trireme.InterfaceError, match=r"pip install 'trireme\[otel\]'"):
        trireme.otel.tracing()


class Collector:
    """Keeps what nodes send to a collector of traces, as it comes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bodies = b""
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        handler = grpc.method_handlers_generic_handler(
            "opentelemetry.proto.collector.trace.v1.TraceService", {"Export": grpc.unary_unary_rpc_method_handler(self.export)}
        )
        self.server.add_generic_rpc_handlers((handler,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def export(self, body: bytes, _: grpc.ServicerContext) -> bytes:
        with self.lock:
            self.bodies += body
        return b""

    def await_child(self, name: str, context: Any) -> None:
        """Waits for a span of a node that is part of the one with the context."""
        trace = b"\x0a\x10" + context.trace_id.to_bytes(16, "big")
        parent = b"\x22\x08" + context.span_id.to_bytes(8, "big")
        end = time.monotonic() + servers.PATIENCE
        while time.monotonic() < end:
            with self.lock:
                if trace in self.bodies and parent in self.bodies:
                    return
            time.sleep(0.02)
        raise TimeoutError(f"no span of a node is part of {name}")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[servers.Group, Collector]]:
    collector = Collector()
    g = servers.Group(
        tmp_path_factory.mktemp("traced"), nodes=1, settings=(f"--trace-endpoint=127.0.0.1:{collector.port}", "--trace-sample-ratio=0")
    )
    g.start()
    with g.open() as db:
        db.execute("CREATE DATABASE shop")
        db.execute("CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, note TEXT)")
    yield g, collector
    g.stop()
    collector.server.stop(None)


@pytest.fixture
def exported() -> Iterator[tuple[InMemorySpanExporter, TracerProvider]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter, provider
    provider.shutdown()


def check(exporter: InMemorySpanExporter, collector: Collector, names: list[str]) -> None:
    spans = exporter.get_finished_spans()
    assert [s.name for s in spans] == names
    for s in spans:
        if s.name != "transaction":
            collector.await_child(s.name, s.context)


def test_context(traced: tuple[servers.Group, Collector], exported: tuple[InMemorySpanExporter, TracerProvider]) -> None:
    """The node's spans are part of the client's."""
    group, collector = traced
    exporter, provider = exported
    with group.open(schema="shop", trace=trireme.otel.tracing(provider)) as db:
        db.execute("INSERT INTO t (note) VALUES (?)", ["secret"])
        db.run_in_transaction(lambda tx: tx.execute("UPDATE t SET note = ?", ["secret"]))
        db.executemany("INSERT INTO t (note) VALUES (?)", [["secret"], ["secret"]])
    check(exporter, collector, ["INSERT", "UPDATE", "COMMIT", "transaction", "executemany", "COMMIT", "transaction"])
    exporter.clear()
    with group.connect(schema="shop", trace=trireme.otel.tracing(provider)) as connection:
        connection.cursor().execute("SELECT note FROM t")
        connection.commit()
    check(exporter, collector, ["SELECT", "COMMIT"])
    assert b"secret" not in collector.bodies


def test_context_asyncio(traced: tuple[servers.Group, Collector], exported: tuple[InMemorySpanExporter, TracerProvider]) -> None:
    group, collector = traced
    exporter, provider = exported

    async def work() -> None:
        options = group.options(schema="shop", trace=trireme.otel.tracing(provider))
        async with await trireme.aio.open(group.addresses, **options) as db:
            await db.execute("INSERT INTO t (note) VALUES (?)", ["secret"])
            await db.run_in_transaction(lambda tx: tx.execute("UPDATE t SET note = ?", ["secret"]))

    asyncio.run(work())
    check(exporter, collector, ["INSERT", "UPDATE", "COMMIT", "transaction"])


def test_no_context(traced: tuple[servers.Group, Collector]) -> None:
    """Hooks that know of no contexts are as good as before."""
    group, _ = traced
    with group.open(trace=lambda operation, attributes: contextlib.nullcontext(Quiet())) as db:
        assert db.fetchone("SELECT 1") is not None


class Quiet:
    def set(self, name: str, value: Any) -> None:
        pass
