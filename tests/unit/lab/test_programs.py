"""Other programs: missing ones are named, none is waited for without end."""

from __future__ import annotations

import os
import re

import pytest

from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.programs import BOOTSTRAP, require_programs, run
from vmtune.lab.vms import VmStatus, parse_domstats


def test_missing_programs_are_named_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmtune.lab.programs._PATH", "/nowhere")
    with pytest.raises(LabError) as refused:
        require_programs("ip", "virsh", "sh-of-mine")
    ip, virsh, unknown = refused.value.problems
    assert "ip is not installed" in ip.message
    assert "iproute2" in ip.remedy
    assert "libvirt-clients" in virsh.remedy
    assert unknown.remedy == ""


def test_what_libvirts_hook_runs_is_in_each_list_of_packages() -> None:
    bootstrap = BOOTSTRAP.read_text()
    (plain,) = re.findall(r"^plain_packages='([^']*)'", bootstrap, re.MULTILINE)
    assert "curl" in plain.split()
    assert " curl:curl" in bootstrap  # where packages are not installed, what is missing is said


def test_present_programs_are_fine() -> None:
    require_programs("sh", "/bin/sh")


def test_a_failure_carries_the_programs_words() -> None:
    with pytest.raises(LabError, match="could not try: it broke"):
        run(["sh", "-c", "echo it broke >&2; exit 3"], doing="try", timeout_s=30)


def test_a_silent_failure_carries_its_status() -> None:
    with pytest.raises(LabError, match="status 3"):
        run(["sh", "-c", "exit 3"], doing="try", timeout_s=30)


def test_a_program_that_does_not_end_is_ended() -> None:
    with pytest.raises(LabError) as refused:
        run(["sleep", "1000"], doing="wait", timeout_s=0.1)
    assert refused.value.problems[0].code == "timeout"


def test_output_and_input() -> None:
    assert run(["cat"], doing="copy", timeout_s=30, stdin="text") == "text"


def test_domstats() -> None:
    text = "Domain: 'b'\n  state.state=5\n  state.reason=0\n\nDomain: 'a'\n  state.state=1\n\n"
    assert parse_domstats("h", text) == [
        VmStatus("a", "h", "running"),
        VmStatus("b", "h", "shut off"),
    ]
    assert parse_domstats("h", "\n") == []


def test_up_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError) as refused:
        lab.up()
    assert refused.value.problems[0].code == "not_root"
