"""Progress of a migration: a bar on a terminal, plain lines elsewhere. Always on stderr."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.client.views import copied_disks
from vmtune.client.views.controllers import progress_part
from vmtune.client.views.outlook import COMPLETED, expected
from vmtune.client.views.render import milliseconds, rate, size
from vmtune.model.migration.record import progress as never_back

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import Progress, TaskID

_LINE_EVERY_S = 2.0
_PAUSE_SHARE = 0.05  # of the time so far, so that a migration of hours fills no log


def describe(data: Document, downtime_limit_ms: int | None = None) -> str:
    """The figures next to the bar, in one line."""
    if data.get("phase") == copied_disks.DISKS:
        return copied_disks.copying(data)
    if data.get("status") == COMPLETED:
        return expected(data)
    downtime = milliseconds(data.get("expected_downtime_ms"))
    limit = "" if downtime_limit_ms is None else f" (limit {milliseconds(downtime_limit_ms)})"
    throttle = data.get("throttle_percent")
    parts = [
        expected(data),
        f"iteration {data.get('iteration', 0)}",
        f"{size(data.get('remaining_bytes'))} left",
        f"dirty rate {_known(data.get('dirty_bytes_per_s'))}",
        f"throughput {_known(data.get('throughput_bytes_per_s'))}",
        f"throttle {throttle} %" if throttle else "",
        f"expected downtime {downtime}{limit}" if downtime != "-" else "",
        progress_part(data),
        copied_disks.ready(data.get("disks", ())),
    ]
    return ", ".join(part for part in parts if part)


def _known(bytes_per_s: int | None) -> str:
    return "not known yet" if bytes_per_s is None else rate(bytes_per_s)


class Progression:
    """The current progress; the share never decreases, also across a restart.

    :param downtime_limit_ms: the profile's value, if it has one.
    """

    def __init__(self, downtime_limit_ms: int | None = None) -> None:
        self.share = 0.0
        self.stage = "waiting"
        self.figures = ""
        self._downtime_limit_ms = downtime_limit_ms

    def read(self, record: Document) -> bool:
        """Take a record in; whether the stage has changed."""
        before = self.stage
        self.stage = str(record["state"])
        if record.get("queued"):
            self.stage = f"queued, {record['ahead']} ahead: {record['waiting_reason']}"
        if self.stage == "completed":
            self.share = 1.0
        limit = record["values"].get("downtime_limit_ms")
        self._downtime_limit_ms = limit if isinstance(limit, int) else self._downtime_limit_ms
        return self.stage != before

    def advance(self, data: Document) -> None:
        """Take a progress event in."""
        self.share = never_back(float(data.get("share", 0.0)), self.share)
        self.figures = describe(data, self._downtime_limit_ms)


class RunProgression(Progression):
    """Progress of a benchmark run, whose stages are its phases.

    :param title: what goes before the stage: which run of how many.
    """

    def __init__(self, title: str = "") -> None:
        super().__init__()
        self._title = title
        self.stage = self._titled(self.stage)

    def read(self, record: Document) -> bool:
        before = self.stage
        state, ahead = str(record["state"]), record["ahead"]
        if state == "queued" and ahead:
            state = f"waiting for {ahead} other run{'s' if ahead > 1 else ''}"
        if record["ended"]:
            self.share = 1.0
        if state != "running":
            self.stage = self._titled(state)
        return self.stage != before and not record["ended"]  # the result is printed separately

    def advance(self, data: Document) -> None:
        self.share = never_back(float(data["share"]), self.share)
        self.stage = self._titled(str(data["phase"]))
        migrates = data["phase"] == "migrating" and "iteration" in data
        self.figures = describe(data) if migrates else ""
        if "maps" in data:
            self.figures = f"QEMU has {data['maps']:,} maps, {size(data['rss_bytes'])} in memory"

    def _titled(self, stage: str) -> str:
        return f"{self._title}  {stage}" if self._title else stage


class Silent:
    """Shows no progress."""

    def state(self, record: Document) -> None:
        """Nothing to do."""

    def progress(self, data: Document) -> None:
        """Nothing to do."""

    def lost(self, error: ClientError) -> None:
        """Nothing to do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to do."""


class Lines(Silent):
    """A line when the state changes and every two seconds, in time less often."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, shown: Progression | None = None
    ) -> None:
        self._shown = shown or Progression()
        self._clock = clock
        self._begun = clock()
        self._next = self._begun
        self._said = ""
        self._lost = False

    def state(self, record: Document) -> None:
        self._lost = False
        if self._shown.read(record):
            click.echo(f"{self._shown.stage}", err=True)

    def progress(self, data: Document) -> None:
        self._shown.advance(data)
        now = self._clock()
        if now >= self._next:
            self._next = now + max(_LINE_EVERY_S, (now - self._begun) * _PAUSE_SHARE)
            said = f"{self._shown.share:4.0%}  {self._shown.figures or self._shown.stage}"
            if said != self._said:
                click.echo(said, err=True)
            self._said = said

    def lost(self, error: ClientError) -> None:
        if not self._lost:
            click.echo("the service does not answer: trying again for a minute", err=True)
        self._lost = True


class Bar(Silent):
    """A progress bar that is redrawn in place."""

    def __init__(self, shown: Progression | None = None) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._shown = shown or Progression()
        console = Console(stderr=True)
        self._bar: Progress = Progress(
            TextColumn("{task.fields[stage]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f}%"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task: TaskID = self._bar.add_task("", total=1.0, stage=self._shown.stage)
        self._live: Live = Live(get_renderable=self._render, console=console, transient=True)

    def _render(self) -> Group:
        """The bar, and below it the figures, in as many lines as they need."""
        from rich.console import Group
        from rich.text import Text

        return Group(self._bar.get_renderable(), Text(self._shown.figures))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def state(self, record: Document) -> None:
        self._shown.read(record)
        self._draw(self._shown.stage)

    def progress(self, data: Document) -> None:
        self._shown.advance(data)
        self._draw(self._shown.stage)

    def lost(self, error: ClientError) -> None:
        self._draw("the service does not answer")

    def _draw(self, stage: str) -> None:
        self._bar.update(self._task, completed=self._shown.share, stage=stage)


def viewer(verbose: bool, shown: Progression | None = None) -> Silent:
    """A bar on a terminal, lines elsewhere, nothing unless *verbose*.

    :param shown: the progress to show; None for a migration.
    """
    if not verbose:
        return Silent()
    return Bar(shown) if sys.stderr.isatty() else Lines(shown=shown)
