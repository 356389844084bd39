"""Traces for OpenTelemetry, if its package opentelemetry-api is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import DatabaseError, InterfaceError
from .trace import Attribute, Span, Trace


def tracing(tracer_provider: Any = None) -> Trace:
    """A trace for Options.trace: a span of kind CLIENT for each call, which those of the server are part of. None: the
    global provider's. Neither texts of statements nor values are recorded."""
    try:
        from opentelemetry import trace as api
    except ImportError as e:
        raise InterfaceError("opentelemetry is not installed: pip install 'trireme[otel]'") from e
    tracer = api.get_tracer("trireme", tracer_provider=tracer_provider)

    class Recorded:
        def __init__(self, span: api.Span) -> None:
            self._span = span
            c = span.get_span_context()
            self.traceparent = f"00-{c.trace_id:032x}-{c.span_id:016x}-{c.trace_flags & 1:02x}" if c.is_valid else ""

        def set(self, name: str, value: Attribute) -> None:
            self._span.set_attribute(name, value)

    @contextlib.contextmanager
    def call(operation: str, attributes: Mapping[str, Attribute]) -> Iterator[Span]:
        with tracer.start_as_current_span(
            operation,
            kind=api.SpanKind.CLIENT,
            attributes=dict(attributes),
            record_exception=False,  # its text may have values
            set_status_on_exception=False,
        ) as span:
            try:
                yield Recorded(span)
            except BaseException as e:
                if isinstance(e, DatabaseError):
                    span.set_attribute("db.response.status_code", str(e.number))
                span.set_attribute("error.type", type(e).__name__)
                span.set_status(api.StatusCode.ERROR, type(e).__name__)
                raise

    return call
