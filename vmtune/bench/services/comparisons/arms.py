"""Which runs a comparison is about: arms of a campaign, or filters over all runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from vmtune.bench.model.campaign.campaign import Arm, Campaign, OtherEnvironment
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.settable import settable
from vmtune.bench.report.report import ReportArm
from vmtune.errors import InvalidInput
from vmtune.model.tunables.tunable import Value
from vmtune.stats.model import MAX_RUNS
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter

KEYS = ("scenario", "family", "profile", "campaign", "arm", "fingerprint", "host")
COUNTED = tuple(state for state in RunState if state.counts)
_PART = re.compile(rf",\s*(?=(?:{'|'.join(KEYS)})=)")
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class RunArm:
    """Runs that are compared with others.

    :param name: as the report calls them.
    """

    name: str
    runs: tuple[Run, ...]


def is_filter(text: str) -> bool:
    """Whether it chooses runs by what they are, rather than being the name of an arm."""
    return text.partition("=")[0].strip() in KEYS and "=" in text


def read_filter(text: str, field: str, store: Store) -> RunFilter:
    """``scenario=plain/1gbs,profile=tuned`` as a filter.

    :raise InvalidInput: it is none.
    :raise NotFound: there is no such campaign.
    """
    found: dict[str, str] = {}
    for part in _PART.split(text):
        name, is_given, value = part.partition("=")
        name = name.strip()
        if not is_given or name not in KEYS or name in found or not value.strip():
            raise InvalidInput(
                f"{part.strip()[:60]!r} does not say which runs are meant",
                field=field,
                code="invalid_filter",
                remedy=f"write NAME=VALUE, separated by commas, each once; names are "
                f"{', '.join(KEYS)}. To compare arms of a campaign by their names, name it too",
            )
        found[name] = value.strip()
    campaign: UUID | None = None
    if "campaign" in found:
        campaign = store.campaigns.named(found.pop("campaign")).id
    return RunFilter(
        scenario=found.get("scenario"),
        family=found.get("family"),
        profile=found.get("profile"),
        states=COUNTED,
        fingerprint=found.get("fingerprint"),
        host=found.get("host"),
        campaign=campaign,
        arm=found.get("arm"),
    )


def runs_of(store: Store, wanted: RunFilter) -> Iterator[Run]:
    """The newest runs that are results of their arms, oldest first; warm-ups are left out."""
    found: list[Run] = []
    after: str | None = None
    while len(found) < MAX_RUNS:
        page = store.runs.list(wanted, after, _PAGE)
        found += [run for run in page.items if run.slot is None or run.slot.block]
        after = page.next
        if after is None:
            break
    yield from reversed(found[:MAX_RUNS])


def facts_of_arm(arm: Arm, runs: Sequence[Run] = ()) -> ReportArm:
    """What an arm of a campaign is, as people read it.

    :param runs: of that arm: what they were ordered with is all of its values, also those of the
        scenario and the profile.
    """
    facts = {
        "profile": f"{arm.profile} revision {arm.revision}" if arm.profile else "",
        "values": _each(words(run.values) for run in runs) or words(arm.values),
        "scenario": ", ".join(f"{name} {value}" for name, value in arm.scenario.items()),
        "testbed": arm.testbed.value,
        "QEMU": arm.qemu,
    }
    return ReportArm(arm.name, {name: text for name, text in facts.items() if text})


def facts_of_runs(name: str, runs: Sequence[Run]) -> ReportArm:
    """What runs that were chosen afterwards have in common, as people read it."""
    facts = {
        "profile": _each(f"{r.profile} revision {r.revision}" if r.profile else "" for r in runs),
        "values": _each(words(run.values) for run in runs),
        "testbed": _each(run.testbed.value for run in runs),
        "QEMU": _each(run.qemu for run in runs),
        "host": _each(run.host for run in runs),
    }
    return ReportArm(name, {name: text for name, text in facts.items() if text})


def words(values: Mapping[str, Value]) -> str:
    """Tunables as people read them."""
    known = settable()
    return ", ".join(
        f"{name} {known[name].render(value) if name in known else value}"
        for name, value in sorted(values.items())
    )


def _each(texts: Iterable[str]) -> str:
    """The text that all have; all of them where they differ, to three."""
    different = list(dict.fromkeys(texts))
    first = "; ".join(text or "none" for text in different[:3])
    if len(different) > 3:
        return f"{first}; and {len(different) - 3} others"
    return first if any(different) else ""


def expected_differences(campaign: Campaign) -> tuple[str, ...]:
    """In what its environments differ on purpose, as paths of an environment."""
    if campaign.other_environment is OtherEnvironment.ALLOW:
        return ("",)
    expected = []
    if len({arm.qemu for arm in campaign.arms}) > 1:
        expected.append("qemu")
    if len({arm.testbed for arm in campaign.arms}) > 1:
        expected += ["libvirt", "network"]
    boots = (campaign.scenario_of(c, arm) for c in campaign.all_cells for arm in campaign.arms)
    if len({boot.cell.accelerator for boot in boots if isinstance(boot, BootScenario)}) > 1:
        expected += ["accelerator", "kvm"]
    return tuple(expected)
