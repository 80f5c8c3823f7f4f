"""The tables of docs/benchmarks.md from what the comparison of intents has in RESULTS, with what
each rival sets and does.

python -m tests.perf.intents.intent_table RESULTS
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.perf.intents.intent_guest import MEMORY_BYTES
from tests.perf.intents.intent_results import (
    BY_HAND,
    OURS,
    Done,
    Results,
    could_be_kept,
    race,
    share,
    whole_blocks,
    workloads_of,
)
from vmtune.model.migration.step_text import spelled
from vmtune.model.profile_templates import profile_templates
from vmtune.model.tunables.built_in import BUILT_IN

_TENTHS = 20
_NAMES = {OURS: "**by intent**", BY_HAND: "throttled from the start by all that is allowed"}


def tables(done: Sequence[Done]) -> Iterator[str]:
    """Lines of Markdown: the arms, the workloads, and what else is asked of the figures. Only
    blocks count in which each arm was run."""
    arms = sorted({each.arm for each in done} - {BY_HAND}, key=lambda arm: arm != OURS)
    whole = whole_blocks(done, arms)
    blocks = {each.key[:3] for each in whole}
    by_hand = [each for each in done if each.arm == BY_HAND and each.key[:3] in blocks]
    found = workloads_of(whole)
    yield f"{len(found)} workloads, {len(blocks)} blocks of {len(arms)} migrations each."
    yield ""
    yield from _arms([*whole, *by_hand], [*arms, *([BY_HAND] if by_hand else [])])
    yield ""
    yield from _workloads(whole, found, arms)
    yield ""
    yield from _sentences(whole, arms, by_hand)
    yield ""
    yield from rivals(arms)


def _arms(whole: Sequence[Done], arms: Sequence[str]) -> Iterator[str]:
    """Those that kept the intent most often first."""
    yield "| Arm | Intent kept | Completed | Total time | Silence | 95 % of silences | Work lost |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    by_arm = {arm: [each for each in whole if each.arm == arm] for arm in arms}
    for arm, some in sorted(by_arm.items(), key=lambda one: -share(one[1])):
        ended = [each for each in some if each.state == "completed"]
        total = silence = most = "-"
        if ended:
            total = f"{statistics.median(each.total_ms for each in ended) / 1000:.1f} s"
            silences = [each.silence_ms for each in ended]
            silence = f"{statistics.median(silences):.0f} ms"
            most = f"{_high(silences):.0f} ms"
        lost = statistics.fmean(each.lost_s for each in some) if some else 0.0
        name = _NAMES.get(arm, f"`{arm}`")
        yield (
            f"| {name} | {_percent(share(some))} | {len(ended)} of {len(some)} | {total} | "
            f"{silence} | {most} | {lost:.2f} s |"
        )


def rivals(arms: Sequence[str]) -> Iterator[str]:
    """What the profiles of others set and do, as they are shipped, for a guest of the comparison:
    some wait for so many seconds per GiB."""
    found = {each.name: each for each in profile_templates(MEMORY_BYTES)}
    yield f"| Rival | Set at the start | Steps, {MEMORY_BYTES >> 20} MiB of memory | Source |"
    yield "| --- | --- | --- | --- |"
    for arm in arms:
        if arm == OURS:
            continue
        each = found[arm]
        values = (f"{name} {BUILT_IN[name].render(value)}" for name, value in each.values.items())
        steps = (spelled(step) for step in each.steps)
        yield (
            f"| `{arm}` | {', '.join(values) or 'nothing'} | {'; '.join(steps) or 'none'} | "
            f"{each.source} |"
        )


def _workloads(
    whole: Sequence[Done], found: Sequence[tuple[str, int, str]], arms: Sequence[str]
) -> Iterator[str]:
    """Each with the best rival that kept its intent as often."""
    yield "| Workload | Kept by intent | Total time | Best that kept it too | Its time | Verdict |"
    yield "| --- | ---: | ---: | --- | ---: | --- |"
    for workload in found:
        one = race(whole, workload, arms)
        took, its = (
            "-" if ms is None else f"{ms / 1000:.1f} s" for ms in (one.ours_ms, one.theirs_ms)
        )
        rival = f"`{one.rival}`" if one.rival else "none"
        verdict = "-" if one.verdict is None else str(one.verdict)
        yield f"| {one.kind} | {_percent(one.share)} | {took} | {rival} | {its} | {verdict} |"


def _sentences(
    whole: Sequence[Done], arms: Sequence[str], by_hand: Sequence[Done]
) -> Iterator[str]:
    ours = [each for each in whole if each.arm == OURS]
    could = could_be_kept(ours, by_hand)
    yield (
        f"- Kept: {sum(each.kept for each in ours)} of {len(ours)}; in the {len(could)} blocks in "
        f"which it was kept by hand, {sum(each.kept for each in could)}."
    )
    refused = [each.refused for each in ours if each.refused is not None]
    if refused:
        feasible, infeasible = (sum(one) for one in zip(*refused, strict=True))
        yield (
            f"- Refused beforehand: {infeasible} of {len(refused)} intents that could not be kept, "
            f"{feasible} of {len(refused)} that could."
        )
    lost = {arm: statistics.fmean(e.lost_s for e in whole if e.arm == arm) for arm in arms}
    if "auto-converge" in lost:
        yield (
            f"- Work lost: {lost[OURS]:.2f} s by intent, {lost['auto-converge']:.2f} s by "
            "auto-converge, on average."
        )
    cpu = 100 * sum(each.cpu_s for each in ours) / max(1e-9, sum(each.took_s for each in ours))
    yield f"- The service's CPU time while it steers: {cpu:.1f} % of a core for each migration."
    busy = _high([each.busy_percent for each in whole])
    yield f"- Busy of all cores while one migrated: {busy:.0f} % in 95 of 100."


def _high(values: Sequence[float]) -> float:
    """The 95th percentile; the highest of few."""
    if len(values) < _TENTHS:
        return max(values, default=0.0)
    return statistics.quantiles(values, n=_TENTHS)[-1]


def _percent(value: float) -> str:
    return f"{value:.0f} %"


def main() -> None:
    """Print them."""
    print("\n".join(tables(Results(Path(sys.argv[1])).done)))


if __name__ == "__main__":
    main()
