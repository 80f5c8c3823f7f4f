"""Real QEMUs start with what a VM may be given on its arrival, and have it then."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.support.qemus import qemu
from vmtune.hypervisor.libvirt.domain_xml_edit import _GLOBALS
from vmtune.model.migration.arriving import GIVEN_ON_ARRIVAL
from vmtune.model.tunables.built_in import BUILT_IN

BUILDS = [
    pytest.param(
        build, id=build.label, marks=pytest.mark.skipif(bool(build.why_not), reason=build.why_not)
    )
    for build in qemu.builds()
]


def parameters(build: qemu.Build, *properties: str) -> dict[str, Any]:
    """What a QEMU that was started with *properties* says of its migrations."""
    asked = ("qmp_capabilities", "query-migrate-parameters", "quit")
    done = subprocess.run(
        [build.program, "-M", "none", "-nodefaults", "-display", "none", "-qmp", "stdio",
         *(word for text in properties for word in ("-global", text))],
        input="".join(json.dumps({"execute": command}) for command in asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    (found,) = (a["return"] for a in answers if a.get("return"))
    return dict(found)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_every_qemu_takes_all_of_each_range(build: qemu.Build, end: str) -> None:
    wanted = {name: getattr(BUILT_IN[name], end) for name in GIVEN_ON_ARRIVAL}
    found = parameters(build, *(f"{GIVEN_ON_ARRIVAL[name]}={v}" for name, v in wanted.items()))
    for name, value in wanted.items():
        row = BUILT_IN[name]
        assert row.qmp is not None
        assert found[row.qmp.name] == value, name


@pytest.mark.parametrize("build", BUILDS)
def test_what_its_own_migrations_may_be_given_has_the_right_name(build: qemu.Build) -> None:
    version = build.label.removeprefix("qemu-")
    for name, known in _GLOBALS.items():
        row = BUILT_IN[name]
        assert row.qmp is not None
        if row.until is not None and int(version.split(".")[0]) > row.until[0]:
            continue
        assert parameters(build, f"{known}=3")[row.qmp.name] == 3, name
