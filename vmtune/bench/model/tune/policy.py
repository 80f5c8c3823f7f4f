"""What a study does next: a pure function of its order and its records.

The search goes in blocks. The first runs the default, the profile in use and the rivals. Each
further block runs the best so far again, some that may be as good, and new settings. It ends when
the budget does, when nothing new has been better by more than the margin for long enough, or when
nothing new could run for as long again: what is refused takes nothing of a budget. Then the best
few are run until each has enough runs to be chosen by, and the finalists are confirmed elsewhere.

The same records give the same step, and a block that was interrupted is gone on with.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune.estimates import Estimate, distrusted, estimates, pareto_front
from vmtune.bench.model.tune.records import DEFAULT, RIVAL, SAMPLED, TrialOutcome, TrialRecord
from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.space import same, settle
from vmtune.bench.model.tune.spec import CURRENT, Settings, StudySpec, Used
from vmtune.bench.model.tune.steps import Confirm, Finish, PlannedTrial, RunBlock, Step
from vmtune.model.tunables.registry import TunableRegistry

NEW_OF_A_BLOCK = 4
REPEATS_OF_A_BLOCK = 2
ENOUGH_RUNS = 5
"""Of a trial, to be chosen as a finalist by."""
SHORTLIST = 3
"""How many times as many as there are finalists are run that often."""
TRUSTED_AFTER = 3
"""A trial that may be as good as the best is run again until it has so many runs."""
_MOST_DISTRUSTED = 3
_PATIENCE = 2
"""How many times as many new trials have to be refused one after another as settle a search: they
cost no run, and the sampler learns to keep away from what is refused."""
_ASKS = 60
_MOST_BROKEN = 0.25
"""Of a finalist's runs: what breaks a constraint or fails more often is hardly ever confirmed."""


def next_step(
    spec: StudySpec,
    trials: Sequence[TrialRecord],
    used: Used | None = None,
    tunables: TunableRegistry | None = None,
) -> Step:
    """The next step of a study that is ready (:meth:`StudySpec.ready`).

    :param used: by all runs so far, in seconds too where the budget has some.
    :param tunables: the table; None for all that benchmarks can set.
    """
    assert spec.space is not None and spec.seed is not None, "the spec is not ready"
    table = tunables or settable()
    last = max((run.block for trial in trials for run in trial.runs), default=0)
    spent = used or Used(sum(len(one.runs) for one in trials))
    if last:
        plan = _Search(spec, _before(trials, last), spent, table).step()
        left = _left_of(plan, trials, last)
        if left is not None and left.trials:
            return left
    return _Search(spec, [one for one in trials if one.runs], spent, table).step()


def _before(trials: Sequence[TrialRecord], block: int) -> list[TrialRecord]:
    """The records as they were when *block* was planned."""
    kept = [
        replace(one, runs=tuple(run for run in one.runs if run.block < block)) for one in trials
    ]
    return [one for one in kept if one.runs]


def _left_of(plan: Step, trials: Sequence[TrialRecord], block: int) -> RunBlock | None:
    """What of a planned block has not been run; None where the records are of another plan, since
    the budget of time has changed it meanwhile: then the block ends with what it has."""
    if not isinstance(plan, RunBlock) or plan.block != block:
        return None
    planned = {one.number: one for one in plan.trials}
    ran = {one.number for one in trials if any(run.block == block for run in one.runs)}
    known = {one.number: one.settings for one in trials}
    if not ran <= planned.keys():
        return None
    if any(known[number] != planned[number].settings for number in ran):
        return None
    return replace(plan, trials=tuple(one for one in plan.trials if one.number not in ran))


@dataclass(frozen=True, slots=True)
class _Search:
    spec: StudySpec
    trials: Sequence[TrialRecord]
    used: Used
    tunables: TunableRegistry

    def step(self) -> Step:
        block = 1 + max((run.block for one in self.trials for run in one.runs), default=0)
        if block == 1:
            return self._block(block, list(self._seeds()), "seeds")
        found = estimates(self.spec.goal, self.trials)
        left = self._runs_left()
        short = self._shortlist(found)
        missing = sum(max(0, ENOUGH_RUNS - found[one].trusted) for one in short)
        why = ""
        if left < 1:
            return self._end(found, "the budget for the search is used up")
        if left <= missing + 2:
            why = "the budget leaves just enough to choose by"
        elif self._all_refused(found):
            why = f"the last {_PATIENCE * self._settles_after} new ones were refused"
        elif self._settled(found):
            why = (
                f"nothing new was better by more than {self.spec.margin_percent:g} % for "
                f"{self._settles_after} trials"
            )
        if not why:
            planned = self._searched(block, found)
            if planned is not None:
                return self._block(block, _first(planned, left), "search")
            why = "all settings of the space have been tried"
        wanted = [one for one in short if self._wants(found[one])]
        if not wanted:
            return self._end(found, why)
        again = _first([self._planned(one) for one in wanted], left)
        return self._block(block, again, "more runs of the best")

    def _wants(self, known: Estimate) -> bool:
        """More runs, of which not too many were for nothing, or refused."""
        tries = len(self._trial(known.number).runs)
        return known.trusted < ENOUGH_RUNS and tries < ENOUGH_RUNS + _MOST_DISTRUSTED

    def _seeds(self) -> Iterator[PlannedTrial]:
        known: list[Settings] = []
        seeds = [(DEFAULT, {}), *((one.name, one.settings) for one in self.spec.seeds)]
        for name, given in self._kept(seeds):
            if any(same(given, one, self.spec.base, self.tunables) for one in known):
                if name != CURRENT:
                    continue
            known.append(given)
            origin = name if name in (DEFAULT, CURRENT) else RIVAL + name
            yield PlannedTrial(len(known) - 1, origin, given)

    def _kept(self, seeds: Sequence[tuple[str, Settings]]) -> Iterator[tuple[str, Settings]]:
        """Without those that break a rule beside the scenario's values; within the limits."""
        for name, given in seeds:
            settings, broken = settle(given, self.spec.base)
            if not broken or name in (DEFAULT, CURRENT):
                yield name, self._limited(settings)

    def _limited(self, settings: Settings) -> Settings:
        most = self.spec.limits.bandwidth_bytes_per_s
        return dict(settings) if most is None else self.spec.limits.kept(settings)

    @property
    def _settles_after(self) -> int:
        return max(16, 4 * len(self.spec.space or {}))

    def _runs_left(self) -> float:
        """Of the budget, for the search: what the confirmation takes is kept for it. Infinite
        where only time is limited, and no run has shown yet how long one takes."""
        left, budget = math.inf, self.spec.budget
        kept = self.spec.confirm_runs
        if budget.runs is not None:
            left = budget.runs - kept - self._runs
        if budget.seconds is not None and self.used.runs:
            each = self.used.seconds / self.used.runs
            if each > 0:
                left = min(left, (budget.seconds - self.used.seconds) / each - kept)
        return left

    @property
    def _runs(self) -> int:
        return sum(
            run.outcome is not TrialOutcome.PRUNED for one in self.trials for run in one.runs
        )

    def _settled(self, found: Mapping[int, Estimate]) -> bool:
        """Nothing new was better by more than the margin for long, by what may be hoped."""
        numbers = [one.number for one in self.trials if one.origin == SAMPLED]
        newest = set(numbers[-self._settles_after :])
        if len(numbers) < self._settles_after + NEW_OF_A_BLOCK:
            return False
        before = [one.score for n, one in found.items() if n not in newest and one.feasible]
        if not before:
            return False
        gain = math.log1p(self.spec.margin_percent / 100)
        best = min(before)
        return not any(
            found[n].feasible and found[n].hoped < best - gain for n in newest if n in found
        )

    def _all_refused(self, found: Mapping[int, Estimate]) -> bool:
        """Nothing new could run for long."""
        many = _PATIENCE * self._settles_after
        newest = [one.number for one in self.trials if one.origin == SAMPLED][-many:]
        return len(newest) == many and all(found[number].pruned for number in newest)

    def _refusal(self) -> str:
        """Why trials could not run, by what was said most often; empty where all could."""
        reasons = Counter(
            run.reason
            for one in self.trials
            for run in one.runs
            if run.outcome is TrialOutcome.PRUNED
        )
        return reasons.most_common(1)[0][0] if reasons else ""

    def _ranked(self, found: Mapping[int, Estimate]) -> list[Estimate]:
        """Feasible trials, the best first, by what is to be feared of few runs."""
        feasible = [one for one in found.values() if one.feasible]
        return sorted(feasible, key=lambda one: (one.score, one.number))

    def _shortlist(self, found: Mapping[int, Estimate]) -> list[int]:
        """Who may become a finalist, and the default and current profile that they have to beat."""
        ranked = [one for one in self._ranked(found) if not self._baseline(one.number)]
        best = ranked[: SHORTLIST * self.spec.finalists]
        if best:
            # Who is far behind needs no more runs to be told apart.
            bar = min(one.feared for one in best)
            best = [one for one in best if one.hoped - one.error <= bar]
        return [one.number for one in best]

    def _baseline(self, number: int) -> bool:
        return self._trial(number).origin in (DEFAULT, CURRENT)

    def _trial(self, number: int) -> TrialRecord:
        return next(one for one in self.trials if one.number == number)

    def _planned(self, number: int) -> PlannedTrial:
        one = self._trial(number)
        return PlannedTrial(number, one.origin, one.settings)

    def _searched(self, block: int, found: Mapping[int, Estimate]) -> list[PlannedTrial] | None:
        """The best so far, some that may be as good, and new settings; None without any new."""
        ranked = self._ranked(found)
        # Where nothing is feasible, the first of those that can run: what was refused stays so.
        can_run = ranked or [one for one in found.values() if not one.pruned]
        again = [one.number for one in can_run[:1]]
        if ranked:
            bar = ranked[0].score
            rivals = [
                one
                for one in sorted(ranked[1:], key=lambda one: (one.hoped, one.number))
                if one.trusted < TRUSTED_AFTER and one.hoped <= bar
            ]
            again += [one.number for one in rivals[:REPEATS_OF_A_BLOCK]]
        again += [n for n in self._untrusted(found) if n not in again][:REPEATS_OF_A_BLOCK]
        new = list(islice(self._new(block, found), NEW_OF_A_BLOCK))
        return [*(self._planned(n) for n in again), *new] if new else None

    def _untrusted(self, found: Mapping[int, Estimate]) -> list[int]:
        """Trials all of whose runs were under an outlying load."""
        bad = distrusted(self.trials)
        return [
            one.number
            for one in self.trials
            if found[one.number].trusted == 0
            and 0 < sum(run.run_id in bad for run in one.runs) < _MOST_DISTRUSTED
        ]

    def _new(self, block: int, found: Mapping[int, Estimate]) -> Iterator[PlannedTrial]:
        """Settings that break no rule and were not tried, drawn by what is known."""
        from vmtune.bench.model.tune.sampler import Sampler  # noqa: PLC0415 - Optuna takes long

        known: list[Settings] = [one.settings for one in self.trials]
        number = 1 + max(one.number for one in self.trials)
        sampler = Sampler(self.spec, self.trials, found, self.tunables, block)
        for drawn in islice(sampler.draws(), _ASKS):
            settings, broken = settle(drawn, self.spec.base)
            settings = dict(self._limited(settings))
            if broken or any(same(settings, one, self.spec.base, self.tunables) for one in known):
                continue
            known.append(settings)
            yield PlannedTrial(number, SAMPLED, settings)
            number += 1

    def _block(self, block: int, planned: Sequence[PlannedTrial], why: str) -> RunBlock:
        order = list(planned)
        random.Random(f"{self.spec.seed} {block}").shuffle(order)  # noqa: S311 - no secret
        return RunBlock(block, tuple(order), why)

    def _end(self, found: Mapping[int, Estimate], reason: str) -> Step:
        margin = self.spec.margin_percent
        if all(one.pruned for one in found.values()):
            return Finish(
                Finding.NOTHING_FEASIBLE,
                f"none of {len(found)} settings can run here: {self._refusal()}",
            )
        refused = sum(one.pruned for one in found.values())
        if refused:
            reason += f"; {refused} cannot run here: {self._refusal()}"
        if not any(one.feasible for one in found.values()):
            return Finish(
                Finding.NOTHING_FEASIBLE,
                f"none of {len(found)} settings keeps the constraints: {reason}",
            )
        finalists = finalists_of(self.spec, self.trials, found)
        if not finalists:
            return Finish(
                Finding.NO_BETTER,
                f"none of {len(found)} settings seems better than what there is: {reason}",
                margin,
            )
        return Confirm(tuple(self._planned(one) for one in finalists), reason)


def _first(planned: Sequence[PlannedTrial], left: float) -> Sequence[PlannedTrial]:
    """As many as *left* runs allow; all where that is infinite."""
    return planned[: int(left)] if math.isfinite(left) else planned


def finalists_of(
    spec: StudySpec, trials: Sequence[TrialRecord], found: Mapping[int, Estimate]
) -> list[int]:
    """The best few that seem better than the default and the current profile, the best first.

    Of several goals: of the Pareto front, that which is best in all together, then in each.
    """
    barred = {one.number for one in trials if one.origin in (DEFAULT, CURRENT)}
    bars = [found[n].score for n in barred if n in found and found[n].feasible]
    bar = min(bars, default=math.inf)
    gain = math.log1p(spec.margin_percent / 100) / 2
    several = len(spec.goal.goals) > 1
    front = pareto_front(list(found.values()))
    chosen = [
        one
        for one in (front if several else found.values())
        if one.feasible
        and one.number not in barred
        and max(one.broken_share, one.failed_share) <= _MOST_BROKEN
        and (several or one.score < bar - gain)
    ]
    chosen.sort(key=lambda one: (one.score + 0.5 * one.error, one.number))
    if several and chosen:
        ends = [min(chosen, key=lambda one: one.values[n]) for n in range(len(spec.goal.goals))]
        chosen = list(dict.fromkeys([chosen[0], *ends, *chosen]))
    return [one.number for one in chosen[: spec.finalists]]
