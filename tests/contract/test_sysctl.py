"""Raising sysctls and putting them back: on a tree of files, and on the kernel's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.qemus.map_count import map_count_held
from vmtune.api.wiring.limits import apply_limits
from vmtune.errors import CommandRefused, SetupError
from vmtune.hypervisor.linux.sysctl import (
    FILE_NAME,
    PROC_SYS,
    Sysctls,
    WishFile,
    read_journal,
    read_wishes,
    write_wishes,
)
from vmtune.hypervisor.linux.sysctl_unit import UnitSysctls
from vmtune.model.host.limits import SYSCTLS, Entry, Floor, Wish

MAPS = "vm_max_map_count"
REAL = PROC_SYS / SYSCTLS[MAPS].path


@dataclass
class Machine:
    """Where the sysctls are, and where sysctl.d is."""

    folder: Path
    proc: Path
    before: int

    @property
    def etc(self) -> Path:
        return self.folder / "sysctl.d"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.json"

    @property
    def sysctls(self) -> Sysctls:
        return Sysctls(self.journal, self.proc, self.etc)

    @property
    def live(self) -> int:
        return int((self.proc / SYSCTLS[MAPS].path).read_text())

    @property
    def kept(self) -> str:
        file = self.etc / FILE_NAME
        return file.read_text() if file.exists() else ""

    def left(self) -> tuple[int, str, dict[str, Entry]]:
        return self.live, self.kept, self.sysctls.journal()


def files(folder: Path) -> Machine:
    for row, value in zip(SYSCTLS.values(), (65530, 131072), strict=True):
        path = folder / "sys" / row.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return Machine(folder, folder / "sys", 65530)


@pytest.fixture(params=["files", "kernel"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "sysctl.d").mkdir()
    if request.param == "files":
        yield files(tmp_path)
        return
    if os.geteuid() != 0 or not os.access(REAL, os.W_OK):
        pytest.skip("only root can set the kernel's sysctls")
    with map_count_held():
        before = int(REAL.read_text())
        try:
            yield Machine(tmp_path, PROC_SYS, before)
        finally:
            REAL.write_text(f"{before}\n")
            assert int(REAL.read_text()) == before


@pytest.fixture
def tree(tmp_path: Path) -> Machine:
    (tmp_path / "sysctl.d").mkdir()
    return files(tmp_path)


def asks(machine: Machine, more: int, owner: str = "a", floor: int = 0) -> dict[str, Wish]:
    claims = {owner: machine.before + more} if more else {}
    return {MAPS: Wish(claims, Floor(machine.before + floor, "a VM") if floor else None)}


class TestBoth:
    def test_a_limit_is_raised_kept_and_put_back(self, machine: Machine) -> None:
        nothing = machine.left()
        machine.sysctls.reach(asks(machine, 8))
        assert machine.live == machine.before + 8
        assert machine.kept.splitlines()[1:] == [f"vm.max_map_count = {machine.before + 8}"]
        assert machine.sysctls.journal() == {MAPS: Entry(machine.before, (machine.before + 8,))}
        machine.sysctls.reach({})
        assert machine.left() == nothing

    def test_it_follows_the_greatest_claim(self, machine: Machine) -> None:
        nothing = machine.left()
        for more in (4, 16, 2):
            machine.sysctls.reach(asks(machine, more))
            assert machine.live == machine.before + more
        machine.sysctls.reach({})
        assert machine.left() == nothing

    def test_what_a_vm_needs_is_kept_until_it_has_ended(self, machine: Machine) -> None:
        nothing = machine.left()
        machine.sysctls.reach(asks(machine, 16))
        machine.sysctls.reach(asks(machine, 0, floor=6))
        assert machine.live == machine.before + 6
        assert f"= {machine.before + 6}" in machine.kept
        machine.sysctls.reach({})
        assert machine.left() == nothing

    def test_what_is_enough_is_left_alone(self, machine: Machine) -> None:
        nothing = machine.left()
        machine.sysctls.reach({MAPS: Wish({"a": machine.before})})
        assert machine.left() == nothing

    def test_killed_anywhere_it_is_ended_or_put_back_by_the_next(self, machine: Machine) -> None:
        nothing = machine.left()
        wishes = machine.folder / "wishes.json"
        write_wishes(wishes, asks(machine, 8))
        seen = set()
        for at in range(1, 9):
            died = _run_and_kill(machine, wishes, at)
            if not died:
                break
            seen.add(machine.live - machine.before)
            machine.sysctls.reach(asks(machine, 8))
            assert machine.live == machine.before + 8
            machine.sysctls.reach({})
            assert machine.left() == nothing
            _run_and_kill(machine, wishes, at)
            machine.sysctls.reach({})
            assert machine.left() == nothing
        else:
            raise AssertionError("it never came to its end")
        machine.sysctls.reach({})
        assert seen >= {0}
        assert machine.left() == nothing


def _run_and_kill(machine: Machine, wishes: Path, at: int) -> bool:
    """Carry wishes out in a process that kills itself before the *at*-th write; whether it did."""
    program = """
import os, signal, sys
from pathlib import Path
from vmtune.hypervisor.linux import sysctl

left = int(sys.argv[5])

def dying(inner):
    def write(*arguments):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments)
    return write

sysctl.write_file = dying(sysctl.write_file)
sysctl.Sysctls._write = dying(sysctl.Sysctls._write)
wishes, *places = map(Path, sys.argv[1:5])
sysctl.Sysctls(*places).reach(sysctl.read_wishes(wishes))
"""
    arguments = (str(p) for p in (wishes, machine.journal, machine.proc, machine.etc))
    ran = subprocess.run([sys.executable, "-c", program, *arguments, str(at)], check=False)
    assert ran.returncode in (0, -9)
    return ran.returncode == -9


class TestFaults:
    def test_a_kernel_that_does_not_take_it_is_told_and_the_journal_stays(
        self, tree: Machine
    ) -> None:
        tree.sysctls.reach(asks(tree, 4))
        path = tree.proc / SYSCTLS[MAPS].path
        path.unlink()
        path.symlink_to("/dev/full")
        with pytest.raises(CommandRefused, match="No space left"):
            tree.sysctls._write(MAPS, 65538)
        path.unlink()
        path.write_text("65534")
        tree.sysctls.reach({})
        assert tree.left() == (tree.before, "", {})

    def test_a_value_that_does_not_stay_is_told(
        self, tree: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Path, "write_text", lambda self, text: len(text))
        with pytest.raises(CommandRefused, match=r"was set to 70000 and is 65530"):
            tree.sysctls._write(MAPS, 70000)

    def test_without_sysctl_d_nothing_is_set(self, tree: Machine) -> None:
        tree.etc.rmdir()
        with pytest.raises(CommandRefused, match="cannot be written") as refused:
            tree.sysctls.reach(asks(tree, 8))
        assert refused.value.problems[0].remedy
        assert tree.live == tree.before
        tree.etc.mkdir()
        tree.sysctls.reach({})
        assert tree.left() == (tree.before, "", {})

    def test_somebody_elses_file_is_not_replaced(self, tree: Machine) -> None:
        (tree.etc / FILE_NAME).write_text("vm.max_map_count = 1000000\n")
        with pytest.raises(CommandRefused) as refused:
            tree.sysctls.reach(asks(tree, 8))
        assert refused.value.problems[0].code == "foreign_file"
        assert tree.live == tree.before
        assert tree.kept == "vm.max_map_count = 1000000\n"

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "[]",
            '{"vm_max_map_count": 3}',
            '{"vm_max_map_count": {"before": "x"}}',
            "9" * 70000,
        ],
    )
    def test_a_damaged_journal_changes_nothing(self, tree: Machine, text: str) -> None:
        tree.journal.write_text(text)
        with pytest.raises(SetupError, match=r"journal.json cannot be understood"):
            tree.sysctls.reach(asks(tree, 8))
        assert tree.live == tree.before

    @pytest.mark.parametrize(
        "row",
        [
            {"claims": {"a": 100}},
            {"claims": {"a": 1 << 31}},
            {"claims": {"a": "65530"}},
            {"claims": {"a": True}},
            {"claims": []},
            {"claims": {}, "floor": {"value": -1, "why": ""}},
            {"claims": {}, "floor": {"value": 70000}},
            {},
        ],
    )
    def test_the_root_part_takes_no_wish_out_of_bounds(self, tree: Machine, row: object) -> None:
        wishes = tree.folder / "wishes.json"
        wishes.write_text(json.dumps({MAPS: row}))
        with pytest.raises(SetupError, match=r"wishes.json cannot be understood"):
            apply_limits(wishes, tree.journal, tree.proc, tree.etc)
        assert tree.left() == (tree.before, "", {})

    def test_the_root_part_follows_no_link(self, tree: Machine) -> None:
        wishes = tree.folder / "wishes.json"
        write_wishes(tree.folder / "other.json", asks(tree, 8))
        wishes.symlink_to(tree.folder / "other.json")
        with pytest.raises(SetupError):
            apply_limits(wishes, tree.journal, tree.proc, tree.etc)

    def test_without_wishes_the_root_part_does_nothing(self, tree: Machine) -> None:
        found = apply_limits(tree.folder / "none.json", tree.journal, tree.proc, tree.etc)
        assert found == {MAPS: 65530, "net_core_optmem_max_bytes": 131072}
        assert not tree.journal.exists()


def test_wishes_come_back_as_they_were_written(tmp_path: Path) -> None:
    file = WishFile(tmp_path / "wishes.json")
    assert file.read() == {}
    wishes = {MAPS: Wish({"a": 70000, "b": 80000}, Floor(66000, "why"))}
    file.write({**wishes, "net_core_optmem_max_bytes": Wish()})
    assert file.read() == read_wishes(tmp_path / "wishes.json") == wishes


class TestUnit:
    """A service without privileges, and the root part beside it."""

    def test_it_waits_for_the_root_part(self, tree: Machine) -> None:
        wishes = tree.folder / "wishes.json"

        def root_part(_: float) -> None:
            apply_limits(wishes, tree.journal, tree.proc, tree.etc)

        unit = UnitSysctls(tree.journal, tree.proc, sleep=root_part)
        for wanted, live in ((asks(tree, 8), 65538), (asks(tree, 0), 65530)):
            write_wishes(wishes, wanted)
            unit.reach(wanted)
            assert unit.live()[MAPS] == live
        assert unit.journal() == read_journal(tree.journal) == {}

    def test_a_change_that_systemd_forgets_is_told_again(self, tree: Machine) -> None:
        wishes = tree.folder / "wishes.json"
        wanted = asks(tree, 8)
        write_wishes(wishes, wanted)
        forgotten = wishes.stat().st_mtime_ns

        def path_unit(_: float) -> None:
            if wishes.stat().st_mtime_ns != forgotten:
                apply_limits(wishes, tree.journal, tree.proc, tree.etc)

        UnitSysctls(tree.journal, tree.proc, sleep=path_unit, wishes=wishes, tell_every_s=0).reach(
            wanted
        )
        assert Sysctls(tree.journal, tree.proc).live()[MAPS] == 65538

    def test_a_root_part_that_is_silent_is_told_with_its_remedy(self, tree: Machine) -> None:
        unit = UnitSysctls(tree.journal, tree.proc, within_s=0)
        with pytest.raises(CommandRefused) as refused:
            unit.reach(asks(tree, 8))
        (problem,) = refused.value.problems
        assert problem.code == "host_unit_silent"
        assert "vmtune-limits.path" in problem.remedy

    def test_what_is_enough_needs_no_root_part(self, tree: Machine) -> None:
        UnitSysctls(tree.journal, tree.proc, within_s=0).reach({MAPS: Wish({"a": tree.before})})
