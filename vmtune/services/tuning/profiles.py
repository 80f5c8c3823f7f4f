"""Profiles, their revisions, and their assignments to VMs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from vmtune.errors import InvalidInput, NotFound, Problem
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.intent import Intent, dump_intent, parse_intent
from vmtune.model.migration.steps import Step, accept_steps, dump_steps, parse_steps
from vmtune.model.profile import (
    Assignment,
    Explanation,
    Profile,
    Revision,
    Subject,
    Target,
    check_profile_name,
    explain,
    parse_selector,
)
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.services.events import EventBus
from vmtune.storage import Store

RawSteps = Sequence[object]
"""Steps as JSON; :mod:`vmtune.model.migration.steps` says how they are written."""


class ProfileService:
    """Writes profiles: every change makes a revision, none is ever altered."""

    def __init__(self, store: Store, bus: EventBus, tunables: TunableRegistry) -> None:
        """
        :param tunables: those that a profile can have, packs included.
        """
        self.tunables = tunables
        self._store = store
        self._bus = bus

    async def create(
        self,
        name: str,
        values: Mapping[str, object],
        description: str = "",
        note: str = "",
        steps: RawSteps = (),
        intent: object = None,
    ) -> Profile:
        """A new profile at revision 1.

        :param steps: convergence steps as JSON; see :mod:`vmtune.model.migration.steps`.
        :param intent: as JSON, what migrations with it have to keep; None for none.
        :raise InvalidInput: a bad name, or values or steps that are unknown, out of range or
            contradict each other.
        :raise DuplicateName: the name is taken.
        """
        accepted, taken = accept(values, steps, self.tunables)
        stated = None if intent is None else parse_intent(intent)
        profile = await asyncio.to_thread(
            self._store.profiles.create,
            check_profile_name(name),
            description,
            accepted,
            note,
            taken,
            stated,
        )
        await self._publish(profile, "created")
        return profile

    async def revise(
        self,
        name: str,
        values: Mapping[str, object],
        expected: int | None,
        note: str = "",
        description: str | None = None,
        steps: RawSteps = (),
        intent: object = None,
        *,
        keeps_intent: bool = False,
    ) -> Profile:
        """A new revision with *values*, *steps* and *intent*, all of them; the same make none.

        :param expected: the revision that the change was made on; None to skip the check.
        :param keeps_intent: *intent* is not given: the current one stays.
        :raise StaleRevision: the profile has a newer revision.
        """
        accepted, taken = accept(values, steps, self.tunables)
        if keeps_intent:
            current = (await asyncio.to_thread(self._store.profiles.get, name)).current
            stated = current.intent
            expected = current.number if expected is None else expected
        else:
            stated = None if intent is None else parse_intent(intent)
        profile = await asyncio.to_thread(
            self._store.profiles.revise,
            name,
            accepted,
            note,
            expected=expected,
            description=description,
            steps=taken,
            intent=stated,
        )
        await self._publish(profile, "revised")
        return profile

    async def amend(
        self,
        name: str,
        changes: Mapping[str, object],
        expected: int | None,
        note: str = "",
        description: str | None = None,
        steps: RawSteps | None = None,
        intent: object = None,
    ) -> Profile:
        """A new revision with *changes* applied to the current values; null unsets a tunable.

        :param steps: all of them; None keeps the current ones.
        :param intent: instead of the current one; None keeps that.
        :raise InvalidInput: no change, or a value that is refused.
        """
        if not changes and description is None and steps is None and intent is None:
            raise InvalidInput(
                "no change is given",
                field="values",
                remedy="name at least one tunable, steps, or a description",
            )
        current = await asyncio.to_thread(self._store.profiles.get, name)
        merged: dict[str, object] = {**current.current.values, **changes}
        # The merge used the current revision's values: they must not have changed meanwhile.
        seen = current.current.number if expected is None else expected
        kept = dump_steps(current.current.steps) if steps is None else steps
        if intent is None:
            intent = _dumped(current.current.intent)
        return await self.revise(name, merged, seen, note, description, kept, intent)

    async def restore(self, name: str, number: int, expected: int | None) -> Profile:
        """A new revision that has the values, steps and intent of an older one."""
        old = await self.revision(name, number)
        note, steps = f"values of revision {number}", dump_steps(old.steps)
        intent = _dumped(old.intent)
        return await self.revise(name, old.values, expected, note, None, steps, intent)

    async def delete(self, name: str) -> None:
        """Delete a profile; its revisions stay readable from what refers to them.

        :raise Conflict: assignments still name it.
        """
        await asyncio.to_thread(self._store.profiles.delete, name)
        await self._bus.publish(EventTopic.PROFILE, name, {"change": "deleted"})

    async def get(self, name: str) -> Profile:
        """:raise NotFound: no such profile."""
        return await asyncio.to_thread(self._store.profiles.get, name)

    async def revision(self, name: str, number: int) -> Revision:
        """:raise NotFound: no such profile or revision."""
        return await asyncio.to_thread(self._store.profiles.revision, name, number)

    async def _publish(self, profile: Profile, change: str) -> None:
        data = {"change": change, "revision": profile.current.number}
        await self._bus.publish(EventTopic.PROFILE, profile.name, data)


def _dumped(intent: Intent | None) -> object:
    return None if intent is None else dump_intent(intent)


def accept(
    values: Mapping[str, object], steps: RawSteps, tunables: TunableRegistry
) -> tuple[Mapping[str, Value], tuple[Step, ...]]:
    """Values and steps that may be stored together.

    :raise InvalidInput: with a problem for each that may not.
    """
    problems: list[Problem] = []
    try:
        accepted: Mapping[str, Value] = accept_values(values, tunables)
    except InvalidInput as error:
        problems += error.problems
        accepted = {}
    try:
        taken = parse_steps(steps) if problems else accept_steps(steps, accepted)
    except InvalidInput as error:
        problems += error.problems
        taken = ()
    if problems:
        raise InvalidInput("the profile cannot be accepted", problems=problems)
    return accepted, taken


@dataclass(frozen=True, slots=True)
class DesiredValues:
    """The values that a VM should have, and where they come from.

    :param profile: empty if no profile was named or assigned: untuned.
    :param steps: the convergence steps of its migration.
    :param intent: what its migration has to keep; None for none.
    """

    profile: str
    revision: int
    values: Mapping[str, Value]
    steps: tuple[Step, ...] = ()
    intent: Intent | None = None


UNTUNED = DesiredValues("", 0, {})


class AssignmentService:
    """Says which profile is for which VM."""

    def __init__(self, store: Store, bus: EventBus, profiles: ProfileService) -> None:
        self._store = store
        self._bus = bus
        self._profiles = profiles

    async def add(
        self, target: Target, key: str, profile: str, intent: object = None
    ) -> Assignment:
        """Assign a profile to a VM, a label selector, a host or everything else.

        :param intent: as JSON, what migrations of these VMs have to keep instead of the profile's
            intent; None for that.
        :raise InvalidInput: a key that does not fit the target, or an intent that cannot be
            accepted.
        :raise DuplicateName: that target has an assignment.
        :raise Conflict: some VM could match two selectors of different profiles.
        :raise NotFound: no such profile or host.
        """
        match target:
            case Target.VM:
                key = _uuid_text(key)
            case Target.SELECTOR:
                key = ",".join(f"{k}={v}" for k, v in sorted(parse_selector(key).items()))
            case Target.HOST:
                await asyncio.to_thread(self._store.hosts.get, key)
            case Target.DEFAULT if key:
                raise InvalidInput("the default takes no key", field="key", remedy="leave it out")
        stated = None if intent is None else parse_intent(intent)
        added = await asyncio.to_thread(self._store.assignments.add, target, key, profile, stated)
        data = {"change": "added", "target": target.value, "key": key, "profile": profile}
        await self._bus.publish(EventTopic.ASSIGNMENT, added.id, data)
        return added

    async def remove(self, assignment: int) -> None:
        """:raise NotFound: no such assignment."""
        await asyncio.to_thread(self._store.assignments.remove, assignment)
        await self._bus.publish(EventTopic.ASSIGNMENT, assignment, {"change": "removed"})

    async def explain(self, vm: UUID, host: str) -> Explanation:
        """Which assignment a VM on *host* gets, and why.

        :raise Conflict: two label selectors tie.
        """

        def look() -> Explanation:
            try:
                labels = self._store.vms.get(vm).labels
            except NotFound:  # never listed, so never labelled
                labels = {}
            return explain(self._store.assignments.all(), Subject(vm, host, labels))

        return await asyncio.to_thread(look)

    async def choose(
        self,
        vm: UUID,
        host: str,
        profile: str | None,
        revision: int | None = None,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
    ) -> DesiredValues:
        """The named profile's values, or those of the one assigned, or none.

        :param values: added to or replacing the profile's this time; None unsets.
        :param steps: replace the profile's this time.
        :raise NotFound: no such profile or revision.
        :raise InvalidInput: a revision without a profile, or values or steps that are refused.
        """
        chosen = await self._chosen(vm, host, profile, revision)
        if not values and steps is None:
            return chosen
        raw = dump_steps(chosen.steps) if steps is None else steps
        accepted, taken = accept({**chosen.values, **(values or {})}, raw, self._profiles.tunables)
        return DesiredValues(chosen.profile, chosen.revision, accepted, taken, chosen.intent)

    async def _chosen(
        self, vm: UUID, host: str, profile: str | None, revision: int | None = None
    ) -> DesiredValues:
        """Like :meth:`choose`, without values and steps for this time.

        :raise NotFound: no such profile or revision.
        :raise InvalidInput: a revision without a profile.
        """
        assigned: Intent | None = None
        if profile is None:
            if revision is not None:
                raise InvalidInput("a revision needs a profile", field="revision")
            winner = (await self.explain(vm, host)).winner
            if winner is None:
                return UNTUNED
            profile, assigned = winner.profile, winner.intent
        if revision is None:
            current = (await self._profiles.get(profile)).current
        else:
            current = await self._profiles.revision(profile, revision)
        intent = assigned or current.intent
        return DesiredValues(profile, current.number, current.values, current.steps, intent)


def _uuid_text(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidInput(
            f"{text[:60]!r} is not a UUID", field="key", remedy="name the VM by its UUID"
        ) from None
