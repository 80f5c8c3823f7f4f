"""``vmtune reference`` against the real application: tables that can be read, and the files."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.perf.__main__ import programs
from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.reference.files import scenario_files
from vmtune.reference.loading import references


def rows(text: str, first: str) -> list[str]:
    """The lines of the table whose heading begins with *first*."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(first))
    found = []
    for line in lines:
        if not line:
            break
        found.append(line)
    return found


def test_sources_are_listed(real: Api, vmtune: Vmtune) -> None:
    listed = vmtune("reference", "list")
    assert listed.code == 0
    assert [line.split()[0] for line in rows(listed.out, "ID")] == list(references())
    (ring,) = [line for line in listed.out.splitlines() if line.startswith("dirty-ring-reaper")]
    assert ring.split("  ")[-1].strip() == "60"
    assert "qemu-devel, 2022-04-02" in ring
    document = vmtune("reference", "list", "--json").document
    assert [row["id"] for row in document["items"]] == list(references())


def test_ten_rows_with_printed_and_recomputed_change(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("reference", "show", "coroutine-pool-global").out
    lines = rows(shown, "I/O")
    assert len(lines) == 10
    assert re.split(r"  +", lines[0]) == [
        "randread", "4 KiB", "1", "113,725", "117,451", "1.03", "+3.3%", "+3.3%", "yes",
        "26,200 (23,400 to 39,000) 1/s [a]", "34,600 (26,200 to 44,700) 1/s [a]", "1.12 to 1.51",
        "same direction [1]",
    ]  # fmt: skip
    assert [re.split(r"  +", line)[6:9] for line in lines] == [
        [change, change, "yes"]
        for change in ("+3.3%", "+2.9%", "+1.1%", "+1.3%", "+1.4%",
                       "-0.3%", "+0.0%", "+0.0%", "+0.0%", "+0.0%")
    ]  # fmt: skip
    assert "qemu-devel, 2024-03-18, 20240318183429.1039340-1-stefanha@redhat.com" in shown
    assert "in 1/s, higher is better" in shown


def test_thirty_rows_with_their_ratios(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("reference", "show", "dirty-ring-reaper", "--table", "drop").out
    lines = rows(shown, "VCPUS")
    assert len(lines) == 30
    ratio = r"(\d\.\d+|1 \(base\)|-)"
    assert all(re.search(f"{ratio} +{ratio} +\\S.* \\[\\d]$", line) for line in lines)
    assert re.split(r"  +", lines[2].strip())[:7] == [
        "2", "4 GiB", "3 GiB", "ring 4096, optimised", "5.5", "0.306", "0.239",
    ]  # fmt: skip
    assert "memory_update" not in shown
    assert "comparable metric of own runs: guest_drop_ms" in shown
    both = vmtune("reference", "show", "dirty-ring-reaper").out
    assert sum("optimised" in line for line in both.splitlines()) == 24


def test_what_does_not_come_out_and_what_was_never_reached(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("reference", "show", "coroutine-pool-resize", "--table", "vsz").out
    during = next(line for line in shown.splitlines() if line.startswith("during fio"))
    assert re.split(r"  +", during)[4:] == [
        "+ ~100 MB", "+1,042,420 KB", "no", "1,666 MiB [a]", "2.62", "same direction [1]",
    ]  # fmt: skip
    limit = vmtune("reference", "show", "dirty-limit-convergence").out
    assert re.split(r"  +", limit.splitlines()[-3].strip()) == [
        "110", "never", "7,660", "-", "-", "-", "-", "not reproducible here [1]",
    ]  # fmt: skip
    assert "not checked against the original text" in limit
    assert "not checked against" not in shown
    copied = vmtune("reference", "show", "zero-copy-multifd").out
    assert re.search(
        r"^synthetic +- +zero copy +13-22% +0\.780 to 0\.870 +- +- +not .*\[1]$", copied, re.M
    )


def test_every_source_can_be_shown_on_a_terminal(
    real: Api, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "110")
    for name, source in references().items():
        shown = vmtune("reference", "show", name)
        assert shown.code == 0, shown.err
        figures = [row.figure for table in source.tables.values() for row in table.rows]
        assert all(figure.printed in shown.out for figure in figures)
        assert vmtune("reference", "show", name, "--json").document["id"] == name


def test_what_is_not_there_is_told(real: Api, vmtune: Vmtune) -> None:
    wrong = vmtune("reference", "show", "dirty-ring")
    assert wrong.code == 1
    assert "error: id: " in wrong.err
    assert "dirty-ring-reaper" in wrong.err.split("remedy:")[1]
    wrong = vmtune("reference", "show", "dirty-ring-reaper", "--table", "iops")
    assert wrong.code == 1
    assert "it has drop, memory_update" in wrong.err


def test_the_files_are_listed_and_printed_without_a_service(vmtune: Vmtune) -> None:
    listed = vmtune("reference", "scenarios").out
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(scenario_files())
    for name, file in scenario_files().items():
        printed = vmtune("reference", "scenario", name).out
        assert tomllib.loads(printed) == tomllib.loads(file.text)
        assert vmtune("reference", "scenario", name, "--json").document["text"] == file.text
    kinds = {row["name"]: row["kind"] for row in
             vmtune("reference", "scenarios", "--json").document["items"]}  # fmt: skip
    assert kinds["srcu-boot"] == "boot"
    wrong = vmtune("reference", "scenario", "drop")
    assert wrong.code == 1
    assert "drop-duration" in wrong.err


def test_each_row_says_whether_and_how_it_is_measured_here(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("reference", "show", "dirty-ring-reaper", "--table", "drop").out
    lines = rows(shown, "VCPUS")
    beyond = [line for line in lines if re.search(r"(20|30) GiB", line)]
    assert len(beyond) == 10
    assert all(re.search(r"not reproducible here \[\d]$", line) for line in beyond)
    assert not any("not reproducible" in line for line in lines if line not in beyond)
    (way,) = [line for line in shown.splitlines() if line.startswith("[1] ")]
    assert way.startswith("[1] measured here: other size: ")
    assert way.endswith("; run: vmtune bench campaign drop-duration")
    document = vmtune("reference", "show", "srcu-boot-time", "--table", "cost_of_8000", "--json")
    (table,) = document.document["tables"]
    found = {row["arm"]: row["repeat"] for row in table["rows"]}
    assert found["5.18 method"]["command"] == "vmtune doctor --srcu"
    assert found["5.19-rc1 as is"]["measured"] == "no"


def test_each_row_has_what_was_measured_here_and_where(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("reference", "show", "coroutine-pool-resize", "--table", "iops").out
    (line,) = rows(shown, "BEFORE")
    assert re.split(r"  +", line.strip())[-5:] == [
        "~1.62", "33,600 (31,200 to 37,100) 1/s [a]",
        "184,000 (169,000 to 207,000) 1/s [a]", "5.05 to 5.95", "same direction [1]",
    ]  # fmt: skip
    (source,) = [line for line in shown.splitlines() if line.startswith("[a] ")]
    assert source.startswith("[a] 2026-11-26, QEMU 10.0.13 patched, ")
    assert source.endswith("; run: make bench NAME=patched_pool PART=guest")
    document = vmtune("reference", "show", "coroutine-pool-resize", "--table", "iops", "--json")
    (table,) = document.document["tables"]
    after = table["rows"][1]
    assert (after["own"]["value"], after["verdict"]) == (184000, "same direction")
    assert after["own"]["measurement"] == table["measurements"][0]["key"]
    assert after["own_ratios"][0]["low"] == 5.05
    assert table["rows"][0]["own_ratios"] == []


def test_the_commands_that_measure_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE)
    for of in references().values():
        for table in of.tables.values():
            for each in table.repeats:
                words = each.command.split()
                if words[:3] == ["vmtune", "bench", "campaign"]:
                    assert words[3:] == [name for name in words[3:] if name in scenario_files()]
                elif words[:1] == ["make"]:
                    name = words[2].removeprefix("NAME=")
                    assert words[1] in targets
                    assert name in programs()
                else:
                    assert each.command in ("", "vmtune doctor --srcu")
