"""What traces are told."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import trireme
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
