"""The service's log: to stderr, as text or as JSON lines, or to systemd's journal with fields; each
message with its request's id."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from vmtune import tracing
from vmtune.api.serving.journal import (
    SOCKET,
    FieldsRenderer,
    JournalHandler,
    is_stderr_the_journal,
)

# Their own words about each request or command are for debugging them, not vmtune.
_QUIET = ("uvicorn", "alembic", "asyncio", "qemu", "dbos", "sqlalchemy")


_SECOND_S = 1.0


class Seldom:
    """Lets one of equal messages through in a second, and counts the others.

    :param clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}

    def allow(self, message: str) -> int | None:
        """How many equal ones were held back since the last that was let through; None where this
        one is held back too."""
        now = self._clock()
        last, held_back = self._last.get(message, (-math.inf, 0))
        if now - last < _SECOND_S:
            self._last[message] = last, held_back + 1
            return None
        self._last[message] = now, 0
        return held_back


class RareWarnings:
    """Warnings of which each is logged once a second, with the number of those between.

    :param log: where to.
    """

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log
        self._seldom = Seldom()

    def __call__(self, message: str, **details: object) -> None:
        """Warn, unless the same was said a moment ago."""
        others = self._seldom.allow(message)
        if others is not None:
            self._log.warning(message, **details, **({"others": others} if others else {}))


class _Rarely(logging.Filter):
    """The same for what libraries log of requests and handshakes that strangers break."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        return record.exc_info is not None or self._seldom.allow(str(record.msg)[:200]) is not None


def _in_one_line(
    logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A library's error reduced to its reason: vmtune logs the context in a record of its own."""
    failed = event.get("exc_info")
    if not failed or not str(event.get("logger", "")).startswith(_QUIET):
        return event
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        return event
    error = failed if isinstance(failed, BaseException) else failed[1]
    return {**event, "exc_info": None, "reason": f"{type(error).__name__}: {error}"}


def configure_logs(form: str, level: str, journal: Path = SOCKET) -> None:
    """Send structlog's and the standard library's messages to stderr or to the journal.

    :param form: ``console`` or ``json``; ``auto`` for fields of the journal where systemd reads
        stderr, and else ``console``.
    :param level: the least that is shown.
    :param journal: the journal's socket.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        tracing.note_trace,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    foreign = [*shared, _in_one_line]
    renderer: list[structlog.typing.Processor]
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if form == "auto" and is_stderr_the_journal(os.environ):
        handler = JournalHandler(journal)
        renderer = [FieldsRenderer()]
    elif form == "json":
        renderer = [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        renderer = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=plain, pad_event_to=0
            )
        ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=foreign,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.getLogger("uvicorn.error").filters = [_Rarely()]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
