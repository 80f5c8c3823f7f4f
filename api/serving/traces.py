"""The service's traces: switched on where it starts, and which requests are in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog
from starlette.types import Scope

from vmtune import __version__, tracing
from vmtune.api.routes.common import PREFIX

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

log = structlog.get_logger(__name__)

_LEFT_OUT = (
    f"{PREFIX}/events",  # lasts as long as its reader
    f"{PREFIX}/session/oidc",  # these addresses contain sign-in secrets
)


def start_traces(service: str) -> None:
    """Enable traces, if the environment requests them.

    :param service: its name in the traces; may be empty.
    """
    try:
        if tracing.start(os.environ, __version__, service):
            log.info("tracing enabled")
    except tracing.NotTraced as error:
        log.warning("tracing disabled", reason=str(error))


def traced() -> TelemetryConfig:
    """FastAPI's instrumentation: one span for each request, if traces are on."""
    return {
        "tracer_provider": tracing.provider(),
        "tracing": tracing.provider() is not None,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,
        "exclude": _is_left_out,
    }


def _is_left_out(scope: Scope) -> bool:
    return str(scope["path"]).startswith(_LEFT_OUT)
