"""What the benchmark of intents keeps of its migrations, and what the figures have to hold."""

from __future__ import annotations

import json
import statistics
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.perf.report import Check
from vmtune.stats.compare import compare
from vmtune.stats.model import Criterion, Observation, Sample, Verdict

OURS = "intent"
BY_HAND = "by hand"
"""Of each block, one that is throttled from the start by all that the intent allows: whether it
could be kept then."""
REFUSED = "refused"
"""The state of a migration that was not begun, since its intent was refused."""
Key = tuple[str, int, int, str]
"""The seed, the workload's number, the block and the arm."""
_MARGIN = 0.1
_MOSTLY = 0.95
_ENOUGH_BLOCKS = 6
"""With fewer there is no verdict, and medians are held against each other."""
_GOOD = (Verdict.BETTER, Verdict.EQUIVALENT)


@dataclass(frozen=True, slots=True)
class Done:
    """One migration.

    :param number: of the workload, that *seed* draws.
    :param silence_ms: by the heartbeat; *lost_s*: seconds of the guest's work that were withheld.
    :param cpu_s: of the service, in the *took_s* since QEMU began, beyond what it uses with nothing
        to do.
    :param busy_percent: of all cores, how much was busy meanwhile: near 100, migrations side by
        side disturb each other.
    :param slowdown_percent: that the intent allows.
    :param refused: by intent: whether the plan refuses the intent that can be kept, and the one
        that cannot; None for others.
    """

    seed: str
    number: int
    kind: str
    block: int
    arm: str
    state: str
    total_ms: float
    silence_ms: float
    throttle_percent: int
    lost_s: float
    cpu_s: float
    took_s: float
    kept: bool
    refused: tuple[bool, bool] | None = None
    busy_percent: float = 0.0
    slowdown_percent: int = 0

    @property
    def key(self) -> Key:
        """No other has it."""
        return self.seed, self.number, self.block, self.arm


class Results:
    """The migrations of a campaign in a file, one a line, for lanes that run side by side."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.done: list[Done] = []
        if file.exists():
            text = file.read_text()
            whole = text.rpartition("\n")[0]
            if not text.endswith("\n"):  # a line that was cut off is not one
                file.write_text(whole + "\n" if whole else "")
            self.done = [_read(line) for line in whole.splitlines()]

    def has(self, key: Key) -> bool:
        """Whether it was done already."""
        return any(each.key == key for each in self.done)

    def slowdown_percent(self, seed: str, number: int) -> int | None:
        """What the intent of a workload allows; None where it was not migrated yet."""
        for each in self.done:
            if (each.seed, each.number) == (seed, number):
                return each.slowdown_percent
        return None

    def add(self, done: Done) -> None:
        """Keep it."""
        with self._lock:
            self.done.append(done)
            with self._file.open("a") as lines:
                lines.write(json.dumps(asdict(done)) + "\n")


def _read(line: str) -> Done:
    stored = json.loads(line)
    refused = stored.pop("refused")
    return Done(**stored, refused=None if refused is None else (refused[0], refused[1]))


def whole_blocks(done: Sequence[Done], arms: Sequence[str]) -> list[Done]:
    """Of a workload's blocks those in which each of the arms was run."""
    there: dict[tuple[str, int, int], set[str]] = {}
    for each in done:
        there.setdefault(each.key[:3], set()).add(each.arm)
    return [each for each in done if there[each.key[:3]] >= set(arms) and each.arm in arms]


def could_be_kept(done: Sequence[Done], by_hand: Sequence[Done]) -> list[Done]:
    """Those of *done* in whose block the intent was kept by hand, or nobody tried."""
    broken = {each.key[:3] for each in by_hand if not each.kept}
    return [each for each in done if each.key[:3] not in broken]


def checks_of(
    done: Sequence[Done], arms: Sequence[str], by_hand: Sequence[Done] = ()
) -> Iterator[Check]:
    """What the figures have to hold; prints the table of the arms and that of the workloads."""
    by_arm = {arm: [each for each in done if each.arm == arm] for arm in arms}
    ours = by_arm[OURS]
    _print_arms(by_arm | {BY_HAND: list(by_hand)})
    could = could_be_kept(ours, by_hand)
    yield Check("intent kept", share(could), "%", 95, "min")
    print(f"kept in all blocks: {share(ours):.0f} %; where it could be: {len(could)} blocks")
    best = max(share(some) for arm, some in by_arm.items() if arm != OURS)
    yield Check("more often than the best rival by", share(ours) - best, "points", 0, "min")
    workloads = workloads_of(done)
    good = sum(_as_fast(done, workload, arms) for workload in workloads)
    fast = good / len(workloads) * 6
    yield Check("workloads as fast as the best rival that kept it", fast, "of 6", 5, "min")
    refused = [each.refused for each in ours if each.refused is not None]
    feasible, infeasible = (100 * statistics.fmean(one) for one in zip(*refused, strict=True))
    yield Check("infeasible intents refused", infeasible, "%", 90, "min")
    yield Check("feasible intents refused", feasible, "%", 5, "max")
    lost, theirs = (
        statistics.fmean(each.lost_s for each in by_arm[arm]) for arm in (OURS, "auto-converge")
    )
    yield Check("lost work by auto-converge's", lost / max(0.01, theirs), "", 1, "max")
    cpu = 100 * sum(each.cpu_s for each in ours) / max(1e-9, sum(each.took_s for each in ours))
    yield Check("service's CPU while it migrates, of a core", cpu, "%", 2, "max")


def share(done: Sequence[Done]) -> float:
    """Of these, how many percent kept their intent."""
    return 100 * sum(each.kept for each in done) / len(done) if done else 0.0


def _print_arms(by_arm: dict[str, list[Done]]) -> None:
    """The arms, those that kept it most often first."""
    print(f"{'ARM':24} {'KEPT':>6} {'COMPLETED':>9} {'TOTAL':>8} {'SILENCE':>8} {'LOST':>7}")
    for arm, some in sorted(by_arm.items(), key=lambda one: -share(one[1])):
        ended = [each for each in some if each.state == "completed"]
        total = silence = "-"
        if ended:
            total = f"{statistics.median(each.total_ms for each in ended) / 1000:.1f} s"
            silence = f"{statistics.median(each.silence_ms for each in ended):.0f} ms"
        lost = statistics.fmean(each.lost_s for each in some) if some else 0.0
        count = f"{len(ended)} of {len(some)}"
        print(f"{arm:24} {share(some):4.0f} % {count:>9} {total:>8} {silence:>8} {lost:5.1f} s")


@dataclass(frozen=True, slots=True)
class Race:
    """A workload's total time by intent, beside the best rival's that kept the intent about as
    often.

    :param ours_ms: of the runs that kept it; None where none did. Likewise *theirs_ms*.
    :param rival: empty where none kept it as often.
    :param verdict: None without a rival.
    :param good: it is not worse.
    """

    kind: str
    share: float
    ours_ms: float | None
    rival: str
    theirs_ms: float | None
    verdict: Verdict | None
    good: bool


def race(done: Sequence[Done], workload: tuple[str, int, str], arms: Sequence[str]) -> Race:
    """Of one workload of *done*."""
    some = [each for each in done if (each.seed, each.number, each.kind) == workload]
    ours = [each for each in some if each.arm == OURS]
    often = min(share(ours), 100 * _MOSTLY)
    rivals: list[tuple[float, str, list[Done]]] = []
    for arm in arms:
        theirs = [each for each in some if each.arm == arm]
        kept = [each.total_ms for each in theirs if each.kept]
        if arm != OURS and kept and share(theirs) >= often:
            rivals.append((statistics.median(kept), arm, theirs))
    mine = [each.total_ms for each in ours if each.kept]
    took = statistics.median(mine) if mine else None
    if took is None or not rivals:
        return Race(workload[2], share(ours), took, "", None, None, bool(mine))
    least, arm, theirs = min(rivals, key=lambda one: one[:2])
    criterion = Criterion("total_ms", unit="ms", margin=_MARGIN)
    verdict = compare(_sample(theirs), _sample(ours), criterion).verdict
    good = verdict in _GOOD
    if len(ours) < _ENOUGH_BLOCKS:
        good = took <= least * (1 + _MARGIN)
    return Race(workload[2], share(ours), took, arm, least, verdict, good)


def workloads_of(done: Sequence[Done]) -> list[tuple[str, int, str]]:
    """Seed, number and kind of each, in order."""
    return sorted({(each.seed, each.number, each.kind) for each in done})


def _as_fast(done: Sequence[Done], workload: tuple[str, int, str], arms: Sequence[str]) -> bool:
    """Prints a workload's race, and says whether it is a good one."""
    one = race(done, workload, arms)
    if one.ours_ms is None or one.theirs_ms is None:
        print(f"{one.kind:8} kept {one.share:.0f} %, no rival that kept it as often")
    else:
        times = f"{one.ours_ms / 1000:.1f} s, {one.rival} {one.theirs_ms / 1000:.1f} s"
        print(f"{one.kind:8} {times}: {one.verdict}")
    return one.good


def _sample(done: Sequence[Done]) -> Sample:
    """Total times; one that did not keep the intent has failed."""
    return Sample(
        done[0].arm,
        tuple(
            Observation(each.total_ms, block=each.block)
            if each.kept
            else Observation(None, block=each.block, failure="not kept", failed=True)
            for each in done
        ),
    )
