"""The demo's migrations between the two libvirt hosts: one as it is, and one by intent."""

from __future__ import annotations

import contextlib
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document
from vmtune.client.views.forecast_checks import compared
from vmtune.client.views.output import Column, table
from vmtune.client.views.progress import viewer
from vmtune.client.views.render import milliseconds, shown, size
from vmtune.client.watch import watch_to_end
from vmtune.errors import SetupError

MIB = 1 << 20
LINK_MIB_PER_S = 32
STOCK_GIVEN_UP_S = 8.0
INTENT: Mapping[str, Any] = {  # any JSON
    "max_silence_ms": 500,
    "deadline_s": 30,
    "max_slowdown_percent": 99,
    "max_bandwidth_bytes_per_s": LINK_MIB_PER_S * MIB,
    "may": ["throttle", "postcopy"],
    "otherwise": "keep-trying",
}
_WIDTH = 78
OPTIONS = "--silence 500ms --within 30s --slowdown 99% --may throttle --may postcopy"
"""The same as options of the command, without the link's limit."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was stated, and what came of it.

    :param stock: the migration without an intent.
    :param kept: the one with it; *forecasts* are those that were kept with it.
    """

    stock: Document
    kept: Document
    forecasts: Sequence[Document] = ()

    @property
    def goals(self) -> Sequence[Document]:
        """Each goal with what was measured."""
        stated = self.kept["intent"]
        return () if stated is None else tuple(stated["goals"])


def measure(client: Client, vm: str, destination: str, verbose: bool) -> Promise:
    """Migrate without an intent, which is given up, and then by intent.

    :raise SetupError: a migration failed.
    """
    values = {"max_bandwidth_bytes_per_s": LINK_MIB_PER_S * MIB}
    order = {"vm": vm, "destination": destination, "values": values}
    stock = _migrated(client, order, verbose, STOCK_GIVEN_UP_S)
    if stock["state"] == "completed":
        destination = str(stock["source"])
    order = {"vm": vm, "destination": destination, "intent": INTENT}
    kept = _migrated(client, order, verbose, None)
    return Promise(stock, kept, client.get(f"/migrations/{kept['id']}/forecasts")["items"])


def _migrated(client: Client, order: Document, verbose: bool, given_up_s: float | None) -> Document:
    record = client.post("/migrations", order)

    def abort() -> None:
        with contextlib.suppress(ClientError):  # it has just ended
            client.delete(f"/migrations/{record['id']}")

    deadline = threading.Timer(given_up_s or 0.0, abort)
    if given_up_s is not None:
        deadline.start()
    try:
        with viewer(verbose) as watched:
            record = watch_to_end(client, record["id"], watched)
    finally:
        deadline.cancel()
    if record["state"] not in ("completed", "cancelled"):
        raise SetupError(
            f"the migration ended as {record['state']}: {record['failure']}",
            code="demo_migration",
            remedy="`vmtune doctor` says what this machine lacks",
        )
    return record


def lines(promise: Promise) -> Iterator[str]:
    """Both migrations, the promise in a line, and what QEMU was asked and ran with."""
    yield "3. A VM between two libvirt hosts: as it is, and by intent."
    destination = promise.kept["destination"]
    yield f"   vmtune migrate vmtune-demo {destination} --max-bandwidth {LINK_MIB_PER_S}MiB/s \\"
    yield f"       {OPTIONS}"
    yield ""
    columns = (
        Column("MIGRATION"),
        Column("ENDED"),
        Column("TOTAL TIME", right=True),
        Column("DOWNTIME", right=True),
        Column("SENT", right=True),
    )
    rows = [_row("stock", promise.stock), _row("by intent", promise.kept)]
    yield from table(columns, rows, "none")
    yield ""
    yield from textwrap.wrap(
        sentence(promise), _WIDTH, initial_indent="   ", subsequent_indent="   "
    )
    for text in _steps(promise.kept["step_records"]):
        yield from textwrap.wrap(text, _WIDTH, initial_indent="   - ", subsequent_indent="     ")
    yield from _forecast(promise.forecasts)
    yield ""
    yield "   What QEMU was asked, and what it ran with:"
    effects = (
        Column("TUNABLE"),
        Column("ASKED", right=True),
        Column("QEMU RAN WITH", right=True),
        Column("STATUS"),
    )
    outcomes = [
        (each["tunable"], shown(each["wanted"]), shown(each["seen"]), each["status"])
        for each in promise.kept["outcomes"]
    ]
    yield from table(effects, outcomes, "no values")


def _forecast(forecasts: Sequence[Document]) -> Iterator[str]:
    """What was expected before the migration, next to what happened."""
    before = next((each for each in forecasts if each["basis"] == "before"), None)
    rows = [] if before is None else list(compared(before))
    if rows and all(came == "-" for _, _, came in rows):  # it was helped: nothing to compare with
        yield ""
        said = ", ".join(f"{name} {text}" for name, text, _ in rows)
        text = f"Expected before it, if nothing had helped: {said}."
        yield from textwrap.wrap(text, _WIDTH, initial_indent="   ", subsequent_indent="   ")
    elif rows:
        yield ""
        yield "   What was expected before it, and what happened:"
        columns = Column("FIGURE"), Column("FORECAST", right=True), Column("CAME", right=True)
        yield from table(columns, rows, "")


def _row(name: str, record: Document) -> tuple[str, ...]:
    totals: Mapping[str, Any] = record["totals"] or {}
    ended = record["state"]
    if ended == "cancelled":
        ended = f"no, aborted after {STOCK_GIVEN_UP_S:g} s"
    return (
        name,
        ended,
        milliseconds(totals.get("total_time_ms")) if record["state"] == "completed" else "-",
        milliseconds(totals.get("downtime_ms")) if record["state"] == "completed" else "-",
        size(totals.get("transferred_bytes")),
    )


def _steps(steps: Sequence[Document]) -> Iterator[str]:
    """What was done and why; of several in a row for the same reason the last. Without the figures,
    which the migration's page has."""

    def reason_of(step: Document) -> str:
        return str(step["reason"]).partition("; expected: ")[0]

    for reason, same in groupby(steps, reason_of):
        *before, last = same
        times = f" ({len(before) + 1} times)" if before else ""
        yield f"{last['action']}: {reason}{times}"


def sentence(promise: Promise) -> str:
    """``Promised: 500 ms of silence, 30 s, 99 % slower; kept: 212 ms, 9.8 s, 70 %.``"""
    found = {goal["goal"]: goal for goal in promise.goals}
    silence, time = found.get("max_silence_ms"), found.get("deadline_s")
    if silence is None or time is None or promise.kept["state"] != "completed":
        return f"The migration by intent ended as {promise.kept['state']}."
    asked = [f"{milliseconds(round(silence['bound']))} of silence", f"{time['bound']:g} s"]
    took = [milliseconds(round(silence["measured"])), f"{time['measured']:.1f} s"]
    if (slower := found.get("max_slowdown_percent")) is not None:
        asked.append(f"{slower['bound']:g} % slower")
        measured = slower["measured"]
        took.append("not known" if measured is None else f"{measured:.0f} %")
    promised = (goal for goal in (silence, time, slower) if goal is not None)
    verdicts = [goal["kept"] for goal in promised]
    verdict = "kept" if all(verdicts) else "kept as far as is known"
    if False in verdicts:
        verdict = "not kept"
    return f"Promised: {', '.join(asked)}; {verdict}: {', '.join(took)}."
