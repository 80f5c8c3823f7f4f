"""The preflight of tunables that packs add."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.packs.access import QomAccess, consent_to_qom
from vmtune.model.tunables.packs.pack import needed_consents
from vmtune.model.tunables.tunable import Tunable, Value


def check_pack(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """What a pack sets needs the operator's consent, and an object that has the property."""
    if tunable.access is None:
        return
    if tunable.name not in situation.vm.pack_offers:
        return  # which is reported already
    objects = consent_to_qom("")
    missing = sorted(needed_consents(tunable) - situation.permissions.pack_consents)
    for setting, of_objects in (("allow_qom", True), ("allow_qmp_commands", False)):
        names = [n.removeprefix(objects) for n in missing if n.startswith(objects) is of_objects]
        if names:
            yield Finding(
                "pack_needs_consent",
                tunable.name,
                {"pack": tunable.pack, "names": ", ".join(names), "setting": setting},
            )
    if isinstance(tunable.access, QomAccess) and not tunable.access.create:
        if not situation.reading(tunable).parts:
            part = f"an object of the type {tunable.access.types[0]}"
            yield Finding("no_such_part", tunable.name, {"part": part})
