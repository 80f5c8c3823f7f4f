"""Boots: their scenarios and records, read strictly and kept whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.runs.boot_record import BootEnd, BootMark, BootMarkName, BootRecord
from vmtune.bench.model.scenario import boot
from vmtune.bench.model.scenario.boot import SETTABLE, BootScenario, why_not
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BootCell, BootGuest, Firmware
from vmtune.bench.model.scenario.parts import MIB
from vmtune.documents import dataclass_json as documents
from vmtune.errors import InvalidInput

POSSIBLE = [(g, f) for g in BootGuest for f in Firmware if not why_not(g, f)]

cells = st.builds(
    lambda pair, accelerator, vcpus, mib: BootCell(*pair, accelerator, vcpus, mib * MIB),
    st.sampled_from(POSSIBLE),
    st.sampled_from(Accelerator),
    st.integers(1, 1024),
    st.integers(192, 1 << 20),
)
scenarios = st.builds(
    BootScenario,
    cell=cells,
    title=st.text(max_size=20),
    why=st.text(max_size=20),
    count_regions=st.booleans(),
    max_seconds=st.integers(1, 3600),
)
counts = st.integers(0, 1 << 53)
times = st.floats(0, 1e9)
records = st.builds(
    BootRecord,
    end=st.sampled_from(BootEnd),
    ended_ms=times,
    marks=st.lists(
        st.builds(BootMark, st.sampled_from(BootMarkName), times, st.none() | counts), max_size=5
    ).map(tuple),
    region_updates=st.none() | st.dictionaries(st.text(max_size=9), counts, max_size=3),
    cpu_ms=st.none() | times,
    qemu=st.text(max_size=20),
    kernel=st.text(max_size=20),
    firmware=st.text(max_size=20),
    host_kernel=st.text(max_size=20),
    srcutree=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    serial_tail=st.text(max_size=50),
)


def refused(raw: object) -> dict[str, str]:
    """The problems' codes by their fields."""
    with pytest.raises(InvalidInput) as caught:
        boot.from_json(raw, "setup")
    assert all(problem.remedy for problem in caught.value.problems)
    return {problem.field: problem.code for problem in caught.value.problems}


@given(scenarios)
def test_read_back(scenario: BootScenario) -> None:
    written = boot.to_json(scenario)
    assert written["kind"] == "boot"
    assert written["name"].startswith(f"boot/{scenario.cell.name}")
    assert boot.from_json(written) == scenario


@given(records)
def test_record_read_back(record: BootRecord) -> None:
    assert documents.from_json(BootRecord, documents.to_json(record)) == record


def test_what_is_left_out_is_usual() -> None:
    scenario = boot.from_json({"cell": {"guest": "linux", "memory_bytes": "1Gi"}})
    assert scenario == BootScenario(
        BootCell(BootGuest.LINUX, Firmware.SEABIOS, Accelerator.KVM, 1, 1024 * MIB)
    )
    assert scenario.longest_s == 300
    assert scenario.needs_kvm


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        ({}, {"setup.cell": "missing"}),
        ([], {"setup": "not_an_object"}),
        ({"cell": {"guest": "bsd"}}, {"setup.cell.guest": "not_a_choice"}),
        ({"cell": {"firmware": "ovmf"}}, {"setup.cell.firmware": "firmware_cannot_start_guest"}),
        ({"cell": {"vcpus": 0}}, {"setup.cell.vcpus": "invalid_value"}),
        ({"cell": {"memory_bytes": 64 * MIB + 1}}, {"setup.cell.memory_bytes": "not_whole_mib"}),
        ({"cell": {"guest": "linux", "memory_bytes": 64 * MIB}},
         {"setup.cell.memory_bytes": "too_little_memory"}),
        ({"cell": {"devices": 9}}, {"setup.cell.devices": "too_many_devices"}),
        ({"cell": {"devices": 40, "bridges": 1}}, {"setup.cell.devices": "too_many_devices"}),
        ({"cell": {"remaps": 5}}, {"setup.cell.remaps": "nothing_to_remap"}),
        ({"cell": {"remaps": 5, "devices": 1, "guest": "linux"}},
         {"setup.cell.remaps": "nothing_to_remap"}),
        ({"cell": {"remaps": 100_001, "devices": 1}}, {"setup.cell.remaps": "invalid_value"}),
        ({"cell": {"bridges": 17}}, {"setup.cell.bridges": "invalid_value"}),
        ({"cell": {"acpi": "off"}}, {"setup.cell.acpi": "invalid_value"}),
        ({"cell": {}, "max_seconds": 0}, {"setup.max_seconds": "invalid_value"}),
        ({"cell": {}, "count_regions": 1}, {"setup.count_regions": "invalid_value"}),
        ({"cell": {}, "kind": "block"}, {"setup.kind": "not_a_choice"}),
        ({"cell": {}, "name": "other"}, {"setup.name": "invalid_name"}),
        ({"cell": {}, "speed": 1}, {"setup.speed": "unknown_field"}),
        ({"cell": {}, "values": {"multifd": True}}, {"setup.values.multifd": "not_for_boots"}),
        ({"cell": {}, "values": {"multifdd": True}}, {"setup.values.multifdd": "unknown_tunable"}),
        ({"cell": {"accelerator": "tcg"}, "values": {"dirty_ring_size_entries": 4096}},
         {"setup.values.dirty_ring_size_entries": "needs_kvm"}),
        ({"cell": {"guest": 1}, "max_seconds": "soon"},
         {"setup.cell.guest": "not_a_choice", "setup.max_seconds": "invalid_value"}),
    ],
)  # fmt: skip
def test_refused_with_the_field(raw: object, problems: dict[str, str]) -> None:
    assert refused(raw) == problems


def test_an_arms_values_are_laid_over() -> None:
    ring = {"dirty_ring_size_entries": 4096}
    scenario = boot.from_json({"cell": {}}).with_values(ring)
    assert scenario.dirty_ring_entries == 4096
    assert set(ring) == SETTABLE
    with pytest.raises(InvalidInput, match="changes nothing about a boot"):
        scenario.with_values({"auto_converge": True})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"end": "well"}, "end"),
        ({"ended_ms": -1}, "ended_ms"),
        ({"marks": [{"name": "guest", "at_ms": "late"}]}, "marks.0.at_ms"),
        ({"marks": [{"name": "moon", "at_ms": 1}]}, "marks.0.name"),
        ({"region_updates": {"kvm_set_user_memory": -1}}, "region_updates.kvm_set_user_memory"),
        ({"cpu_ms": "much"}, "cpu_ms"),
        ({"srcutree": {"exp_holdoff": 1}}, "srcutree.exp_holdoff"),
        ({"serial_tail": "x" * 10_000}, "serial_tail"),
        ({"mood": "good"}, "mood"),
    ],
)
def test_a_damaged_record_is_refused(change: dict[str, Any], field: str) -> None:
    raw = documents.to_json(BootRecord(BootEnd.DIED, 1.0))
    with pytest.raises(InvalidInput) as caught:
        documents.from_json(BootRecord, {**raw, **change}, "record")
    assert [problem.field for problem in caught.value.problems] == [f"record.{field}"]


def test_what_a_machine_has_more_is_part_of_its_name() -> None:
    usual = BootCell(BootGuest.PROJECT, Firmware.SEABIOS, Accelerator.KVM, 1, 512 * MIB)
    assert BootScenario(usual).name == "boot/project-seabios-kvm-1-512m"
    more = replace(usual, acpi=False, bridges=1, devices=39)
    assert BootScenario(more).name == "boot/project-seabios-kvm-1-512m-noacpi-1bridge-39devices"
    assert boot.from_json(boot.to_json(BootScenario(more))) == BootScenario(more)
    mapped = BootScenario(replace(usual, devices=8, remaps=4500))
    assert mapped.name == "boot/project-seabios-kvm-1-512m-8devices-4500remaps"
