"""OpenTelemetry traces, switched on by its own environment variables.

Off, which is the default, a span is one comparison and nothing is imported. On, spans go out by
OTLP over HTTP, in a thread of its own; a collector that does not answer holds nothing up.

``OTEL_TRACES_EXPORTER`` is ``otlp``, ``console`` or ``none``; without it, setting
``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` switches traces on.
``OTEL_SDK_DISABLED=true`` switches them off. All else (headers, sampling, resource attributes,
batches) the SDK reads itself (OpenTelemetry specification, "Environment Variable Specification").
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

REMEDY = "pip install 'vmtune[otel]', or unset the variables OTEL_..."
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS = ("otlp", "console")
_ENDS_WITHIN_S = 1.0
_OFF: AbstractContextManager[None] = nullcontext()


class NotTraced(Exception):
    """The variables ask for traces and there cannot be any; says why, and what mends it."""


class _State:
    """The one tracer of this process; None while traces are off."""

    provider: TracerProvider | None = None
    tracer: Tracer | None = None


_state = _State()
_trace_of: ContextVar[int | None] = ContextVar("trace_of", default=None)


def wanted(environment: Mapping[str, str]) -> str:
    """Which exporter the variables ask for; empty for none.

    :raise NotTraced: one that there is not.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named == "none" or not (named or any(environment.get(one) for one in _ENDPOINTS)):
        return ""
    exporter = named or "otlp"
    if exporter not in _EXPORTERS:
        raise NotTraced(
            f"OTEL_TRACES_EXPORTER={exporter} is not one of {', '.join(_EXPORTERS)}, none"
        )
    protocol = next((environment[one] for one in _PROTOCOLS if environment.get(one)), "")
    if exporter == "otlp" and protocol not in ("", "http/protobuf"):
        raise NotTraced(
            f"{protocol} is not a protocol that vmtune sends traces by: set "
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and the collector's port for it (4318)"
        )
    return exporter


def start(environment: Mapping[str, str], version: str, service: str = "") -> bool:
    """Switch traces on, if the variables ask for it.

    :param service: the name among others; ``service.instance.id``.
    :return: whether they are on.
    :raise NotTraced: they ask, and the extra ``otel`` is not installed, or for what is not there.
    """
    exporter = wanted(environment)
    if not exporter:
        return False
    try:
        provider = _make(exporter, version, service)
    except ImportError as error:
        raise NotTraced(f"OpenTelemetry is not installed ({error.name}): {REMEDY}") from error
    # Of a collector that does not answer one line a batch is enough, not one a try.
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    _state.provider = provider
    _state.tracer = provider.get_tracer("vmtune", version)
    return True


def stop() -> None:
    """Send what is left, within a second, and switch traces off."""
    provider, _state.provider, _state.tracer = _state.provider, None, None
    if provider is not None:
        # A collector that hangs keeps its thread; the process ends all the same.
        ending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(_ENDS_WITHIN_S)


def provider() -> TracerProvider | None:
    """For libraries that trace by themselves; None while traces are off."""
    return _state.provider


def span(name: str, **attributes: str | int) -> AbstractContextManager[Span | None]:
    """A span for as long as the block runs, below whatever span is open."""
    if _state.tracer is None:
        return _OFF
    return _state.tracer.start_as_current_span(name, attributes=_named(attributes))


def job_span(
    name: str, job_id: str, **attributes: str | int
) -> AbstractContextManager[Span | None]:
    """Likewise, in the trace of a job: its id is the job's, without dashes, so that all phases
    are in one trace, whichever service ran them, and a record's id leads to it."""
    if _state.tracer is None:
        return _OFF
    return _job_span(_state.tracer, name, job_id, attributes)


@contextmanager
def _job_span(
    tracer: Tracer, name: str, job_id: str, attributes: Mapping[str, str | int]
) -> Iterator[Span]:
    from opentelemetry.context import Context  # noqa: PLC0415 - only where traces are on

    token = _trace_of.set(_number(job_id))
    try:
        opened = tracer.start_as_current_span(
            name, context=Context(), attributes=_named({**attributes, "job_id": job_id})
        )
        with opened as found:
            _trace_of.set(None)
            yield found
    finally:
        _trace_of.reset(token)


def note_trace(
    _logger: object,
    _method: str,
    event: MutableMapping[str, Any],  # any: structlog's
) -> MutableMapping[str, Any]:
    """A processor of structlog's: the id of the trace that a line belongs to, if there is one."""
    if _state.tracer is not None:
        from opentelemetry.trace import get_current_span  # noqa: PLC0415 - likewise

        context = get_current_span().get_span_context()
        if context.is_valid:
            event["trace_id"] = f"{context.trace_id:032x}"
    return event


def _named(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    return {f"vmtune.{name}": value for name, value in attributes.items()}


def _number(job_id: str) -> int | None:
    """A job's id as that of a trace; None where it is no UUID."""
    try:
        return UUID(job_id).int or None
    except ValueError:
        return None


def _make(exporter: str, version: str, service: str) -> TracerProvider:
    """:raise ImportError: the extra is not installed."""
    from opentelemetry.sdk.resources import (  # noqa: PLC0415 - an extra, and 0.2 s
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SpanExporter,
    )
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

    class Ids(RandomIdGenerator):
        """Random, but for traces of jobs."""

        def generate_trace_id(self) -> int:
            return _trace_of.get() or super().generate_trace_id()

    attributes = {"service.name": "vmtune", "service.version": version}
    if service:
        attributes["service.instance.id"] = service
    sender: SpanExporter
    if exporter == "console":
        sender = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )

        sender = OTLPSpanExporter()
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what is set here.
    resource = Resource.create(attributes).merge(OTELResourceDetector().detect())
    made = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(sender))
    return made
