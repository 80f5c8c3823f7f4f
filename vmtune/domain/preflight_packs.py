"""The preflight of tunables that packs add."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.domain.findings import Finding
from vmtune.domain.pack import needed_consents
from vmtune.domain.pack_access import QomAccess, consent_to_qom
from vmtune.domain.situation import Situation
from vmtune.domain.tunables import Tunable, Value


def check_pack(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """What a pack sets needs the operator's consent, and an object that has the property."""
    if tunable.access is None:
        return
    missing = needed_consents(tunable) - situation.permissions.pack_consents
    objects = consent_to_qom("")
    for name in sorted(missing):
        of_object = name.startswith(objects)
        yield Finding(
            "pack_needs_consent",
            tunable.name,
            {
                "pack": tunable.pack,
                "name": name.removeprefix(objects),
                "setting": "allow_qom" if of_object else "allow_qmp_commands",
            },
        )
    if isinstance(tunable.access, QomAccess) and not tunable.access.create:
        if tunable.name in situation.vm.pack_offers and not situation.reading(tunable).parts:
            part = f"a {tunable.access.types[0]}"
            yield Finding("no_such_part", tunable.name, {"part": part})
