"""Does what the policy of steering wants, and tells it what came of that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from vmtune.engine.steps.executor import StepExecutor
from vmtune.errors import VmtuneError
from vmtune.intent.setbacks import came_of, in_force, left_to_others, too_late
from vmtune.intent.steering import Act, Relax, Steering, shadow, steer
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.record import QemuStatus, Sample

log = structlog.get_logger(__name__)

Recorded = Callable[[], Awaitable[Sequence[StepRecord]]]
"""All step records of the migration, what users have changed meanwhile included."""
Begin = Callable[[], Awaitable[Steering | None]]
"""What it is steered from, by what the source says is set; raises while that does not answer."""
_BEFORE_MEMORY = (QemuStatus.SETUP, QemuStatus.WAIT_UNPLUG)


class Steered:
    """One migration, steered towards its intent.

    :param start: what it is steered from, or how to find that out.
    :param recorded: None where nobody else changes anything.
    :param shadow: what would be done is recorded, and not done.
    """

    def __init__(
        self,
        start: Steering | Begin,
        executor: StepExecutor,
        recorded: Recorded | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        self._start = start
        self._begun = start if isinstance(start, Steering) else None
        self._executor = executor
        self._recorded = recorded
        self._shadow = shadow
        self._in_doubt: tuple[Act, Steering] | None = None

    @property
    def steering(self) -> Steering:
        """Where it stands; once it has begun."""
        assert self._begun is not None, "it has not begun"
        return self._begun

    @steering.setter
    def steering(self, now: Steering) -> None:
        self._begun = now

    async def _has_begun(self) -> bool:
        if self._begun is None and not isinstance(self._start, Steering):
            try:
                self._begun = await self._start()
            except VmtuneError as error:
                log.info("not steered yet: what is set cannot be read", reason=error.message)
        return self._begun is not None

    async def on_sample(self, sample: Sample) -> None:
        """Do what *sample* asks for."""
        if not await self._has_begun():
            return
        if self._shadow:
            self.steering, acts = shadow(self.steering, sample)
            for act in acts:
                await self._executor.act(sample.at_ms, sample.iteration, act, only_told=True)
            return
        if sample.status in _BEFORE_MEMORY:
            await self.waiting(sample.at_ms)
            return
        await self._look_up(sample)
        before = self.steering
        after, acts = steer(before, sample)
        if acts and self._recorded is not None:
            left = left_to_others(before, await self._recorded())
            if left != before:
                before = left
                after, acts = steer(before, sample)
        self.steering = after
        await self._act_all(before, acts, sample.at_ms, sample.iteration)

    async def waiting(self, at_ms: int) -> None:
        """Do what is due although QEMU does not send memory yet."""
        if self._shadow or not await self._has_begun():
            return
        before = self.steering
        self.steering, acts = too_late(before, at_ms)
        await self._act_all(before, acts, at_ms, 0)

    async def _act_all(
        self, before: Steering, acts: Sequence[Act], at_ms: int, iteration: int
    ) -> None:
        """Do one after the other, up to one that is not done: what follows supposes that it is."""
        for act in acts:
            if await self._act(before, act, at_ms, iteration) is not StepEffect.DONE:
                return

    async def _act(self, before: Steering, act: Act, at_ms: int, iteration: int) -> StepEffect:
        done = self.steering
        effect = await self._executor.act(at_ms, iteration, act)
        self.steering = came_of(before, done, act, effect, at_ms)
        self._in_doubt = (act, done) if effect is StepEffect.UNKNOWN else None
        return effect

    async def _look_up(self, sample: Sample) -> None:
        """What became of an action over which the connection was lost, before it is tried again."""
        if self._in_doubt is None or sample.at_ms < self.steering.waits_until_ms:
            return
        act, done = self._in_doubt
        if isinstance(act.action, Relax):
            return
        found = await self._executor.is_done(act.action, sample)
        if found is not None:
            self._in_doubt = None
        if found:
            # A goal is given up by an action of its own, which was not done yet.
            done = replace(done, relaxed=self.steering.relaxed)
            self.steering = replace(in_force(self.steering, done), failures=0)
