"""Hooks for traces: what is told of the calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol, Union

Attribute = Union[str, int, float, bool]


class Span(Protocol):
    """One call that goes on. It may have an attribute traceparent, a str as W3C Trace Context writes it in the header
    of that name: the server's spans are part of the span that it names."""

    def set(self, name: str, value: Attribute) -> None:
        """Adds an attribute."""


class Trace(Protocol):
    """Is called when a call begins. What it returns is entered then, and left when the call ends, with the exception
    if there was one. It must not block, nor raise."""

    def __call__(self, operation: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[Span]:
        """operation is such as "INSERT" or "transaction". The values of parameters are not among the attributes."""


def traceparent(span: Span) -> str:
    """What the span is called where its context is passed on; empty: it does not say."""
    return getattr(span, "traceparent", None) or ""


class _Nothing:
    def set(self, name: str, value: Attribute) -> None:
        pass

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


_NOTHING = _Nothing()


def begin(trace: Trace | None, operation: str, schema: str) -> AbstractContextManager[Span]:
    """The span of a call; one that does nothing without a trace."""
    if trace is None:
        return _NOTHING
    return trace(operation, {"db.system.name": "trireme", "db.operation.name": operation, "db.namespace": schema})
