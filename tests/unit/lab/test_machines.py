"""What a machine's root has to have before anything of a lab is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmtune.errors import InvalidInput, LabError
from vmtune.lab import LabSettings
from vmtune.lab.host import plan_hosts
from vmtune.lab.machines import require_bases


def test_a_root_that_lacks_what_runs_on_a_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError) as refused:
        require_bases(LabSettings(machines=True, root_b=tmp_path))
    (problem,) = refused.value.problems
    assert problem.field == "root_b"
    assert f"{tmp_path} has no /usr/sbin/sshd" in problem.message


def test_this_machines_own_root_is_taken_as_it_is() -> None:
    require_bases(LabSettings(machines=True))


def test_a_root_is_an_absolute_path() -> None:
    with pytest.raises(InvalidInput) as refused:
        LabSettings(machines=True, root_a=Path("sid"))
    assert refused.value.problems[0].field == "root_a"


def test_each_host_gets_its_own() -> None:
    settings = LabSettings(machines=True, hosts=3, root_b=Path("/sid"))
    assert [str(host.base) for host in plan_hosts(settings)] == ["/", "/sid", "/"]
