"""Migrations of drawn workloads, one at a time, for forecasts to be held against.

What is drawn is in tests.perf.forecasts.dataset_drawn. The guest of a workload is started, warmed
up and probed once, and then migrates from one QEMU of this machine to the next over loopback, held
at each migration's bandwidth. Each is appended to migrations.jsonl in the folder RESULTS as it
ends, with the probe, its samples, QEMU's totals, the guest's silences, and how busy the machine
was; a second call goes on where the first was stopped or killed, and the first one of the usual
SEED where the published dataset ends.

    python -m tests.perf.forecasts.dataset RESULTS [COUNT [SEED]]
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from tests.perf.forecasts import dataset_file
from tests.perf.forecasts.dataset_drawn import OF_ONE_WORKLOAD, SEED, Drawn, drawn, workload_of
from tests.perf.forecasts.dataset_guest import WanderingGuest, Went, wandering_guest
from vmtune.bench.model.runs.run import RunState
from vmtune.errors import SetupError, VmtuneError
from vmtune.forecast.probe import DirtyProbe

COUNT = 100
_WITHIN_S = 180
"""A probe and a migration take less by far: what takes longer hangs, and must not hold up the
rest."""
_NOT_RUN = "not run"
_GOES_ON = (RunState.COMPLETED, RunState.NOT_CONVERGED)
_Migration = dict[str, Any]  # any: JSON


async def migrate_all(
    group: Sequence[Drawn], at: Path, probed: _Migration | None, to: Callable[[_Migration], None]
) -> None:
    """Do those of one workload.

    :param at: where the guest's sockets are.
    :param probed: what the probe of the same workload said; None: it is to be made.
    :param to: takes each as it ends.
    :raise SetupError: the guest does not start, twice.
    """
    async with AsyncExitStack() as stack:
        guest: WanderingGuest | None = None
        for one in group:
            try:
                if guest is None:
                    guest = await _started(stack, one, at)
                async with asyncio.timeout(_WITHIN_S):
                    if probed is None:
                        probe, load = await guest.probe()
                        probed = _probed(one.number, probe, load)
                    went = await guest.migrate(one.scenario)
            except SetupError:
                raise
            except (VmtuneError, TimeoutError) as error:
                failure = str(error) or f"it took more than {_WITHIN_S} s"
                to(_not_run(one, failure))
                again = True
            else:
                to(_asked(one) | _seen(went) | {"probe": probed, "load": went.load})
                again = went.verdict.state not in _GOES_ON
            if again:  # who knows in which state the guest is
                await stack.aclose()
                guest = None


async def _started(stack: AsyncExitStack, one: Drawn, at: Path) -> WanderingGuest:
    try:
        return await stack.enter_async_context(wandering_guest(at, one.scenario))
    except SetupError:
        await asyncio.sleep(1)
        return await stack.enter_async_context(wandering_guest(at, one.scenario))


def _asked(one: Drawn) -> _Migration:
    return {
        "number": one.number,
        "profile": one.profile,
        "kind": one.kind,
        "memory_bytes": one.scenario.vm.memory_bytes,
        "vcpus": one.scenario.vm.vcpus,
        "workload": asdict(one.scenario.workload),
        "values": dict(one.scenario.values),
    }


def _not_run(one: Drawn, failure: str) -> _Migration:
    return _asked(one) | {"state": _NOT_RUN, "failure": failure}


def _probed(number: int, probe: DirtyProbe, load: dict[str, float | None]) -> _Migration:
    at = probe.measured_at.isoformat()
    return asdict(probe) | {"measured_at": at, "number": number, "load": load}


def _seen(went: Went) -> _Migration:
    record = went.record
    begun = record.migration_ms or 0
    return {
        "state": went.verdict.state.value,
        "failure": went.verdict.failure,
        "totals": asdict(record.totals) if record.totals else None,
        "ended_ms": None
        if record.migration_ended_ms is None
        else record.migration_ended_ms - begun,
        "beat_interval_ms": record.beat_interval_ms,
        "samples": [asdict(each) | {"at_ms": each.at_ms - begun} for each in record.samples],
        "silences": [asdict(each) for each in record.silences],
        "begun_ms": begun,
    }


def probe_of(
    wanted: Drawn,
    others: Iterable[_Migration | None],
) -> _Migration | None:
    """The probe of one of *others* whose guest does the same; None where it is to be made."""
    shape = {"memory_bytes": wanted.scenario.vm.memory_bytes, "vcpus": wanted.scenario.vm.vcpus}
    same = shape | {"workload": asdict(wanted.scenario.workload)}
    for one in others:
        if one and one.get("probe") and all(one.get(name) == same[name] for name in same):
            return dict(one["probe"])
    return None


def collect(results: Path, count: int, seed: int) -> list[_Migration]:
    """The first *count* migrations of *seed*, by number. Those that the file *results* does not
    have, or that the machine failed, are done and appended to it.

    :raise SetupError: another process does that, or the guests of two workloads in a row do not
        start.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a") as file:
        _hold(file)
        stored = {one["number"]: one for one in _stored(results)}
        have = {number: one for number, one in stored.items() if one["state"] != _NOT_RUN}
        missing = (number for number in range(count) if number not in have)
        started = True

        def done(found: _Migration) -> None:
            have[found["number"]] = found
            file.write(json.dumps(found) + "\n")
            file.flush()
            os.fsync(file.fileno())
            print(_line(found), flush=True)

        for _, numbers in groupby(missing, key=lambda number: workload_of(seed, number)):
            group = [drawn(seed, number) for number in numbers]
            alike = [have.get(group[0].number - back) for back in range(1, OF_ONE_WORKLOAD)]
            began = time.monotonic()
            at = results.parent.resolve() / "run"
            try:
                asyncio.run(migrate_all(group, at, probe_of(group[0], alike), done))
                started = True
            except SetupError as error:
                if not started:
                    raise
                started = False
                for one in group:
                    if one.number not in have:
                        done(_not_run(one, str(error)))
            took_s = (time.monotonic() - began) / len(group)
            print(f"{took_s:.1f} s for each of {len(group)}", flush=True)
    return [have[number] for number in range(count)]


def _hold(file: TextIO) -> None:
    """Two at a time would disturb each other, and clear each other's folder away."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SetupError(f"another process adds to {file.name}", code="in_use") from error


def _stored(results: Path) -> list[_Migration]:
    """Those of the file. A last line that was being written when it was stopped is cut off."""
    if not results.exists():
        return []
    whole, end, torn = results.read_text().rpartition("\n")
    if torn:
        os.truncate(results, len((whole + end).encode()))
    return [json.loads(line) for line in whole.splitlines()]


def _line(found: _Migration) -> str:
    took = found.get("totals") and f"{found['totals']['total_time_ms']} ms"
    what = (found["number"], found["kind"], found["profile"], found["state"])
    return " ".join(map(str, (*what, found["failure"][:80] or took)))


def main() -> None:
    """Do those that are not there yet."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    results = Path(sys.argv[1]) / "migrations.jsonl"
    if seed == SEED and not results.exists():
        dataset_file.unpack_lines(dataset_file.PUBLISHED, results)
    if others := of_other_draws(results, seed):
        sys.exit(f"{results} has migrations that are not drawn like this: {others[:10]}")
    try:
        collect(results, count, seed)
    except SetupError as error:
        sys.exit(str(error))


def of_other_draws(results: Path, seed: int) -> list[int]:
    """The numbers of those that are there and are not as they are drawn, by another seed or before
    drawing was changed: what is added to them could not be published."""
    return [one["number"] for one in _stored(results) if not dataset_file.is_drawn(one, seed)]


if __name__ == "__main__":
    main()
