"""What a measurement of the block benchmark is: its rules, and what is said where one is broken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.scenario.block import (
    MAX_LOAD_S,
    MAX_NODE_BYTES,
    BlockRecord,
    BlockScenario,
    CpuMark,
    LoadPhase,
    PoolForecast,
    ProcessSample,
    from_json,
    settable,
    to_json,
)
from vmtune.bench.model.scenario.block_target import LiveTarget, vm_of_setup
from vmtune.bench.model.scenario.matrix_cells import (
    MAX_BLOCK_BYTES,
    MAX_IODEPTH,
    MAX_JOBS,
    BlockCell,
    IoPattern,
    NodeKind,
)
from vmtune.bench.model.scenario.parts import MIB
from vmtune.documents import dataclass_json as documents
from vmtune.errors import InvalidInput
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, Route

CELL = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 64, 1)
LEAST: dict[str, Any] = {"cell": {"node": "null-co", "rw": "randread"}}
NUMBERS = [
    row for row in BUILT_IN.values()
    if settable(row.name) and row.kind is Kind.INTEGER and not row.name.endswith("_thread_pool_min")
]  # fmt: skip

cells = st.builds(
    BlockCell,
    st.sampled_from(sorted(set(NodeKind) - {NodeKind.VM})),
    st.sampled_from(IoPattern),
    st.integers(512, MIB),
    st.integers(1, MAX_IODEPTH),
    st.integers(1, MAX_JOBS),
)
values = st.dictionaries(st.sampled_from([row.name for row in NUMBERS]), st.just(8))
scenarios = st.builds(
    BlockScenario,
    cells,
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(MIB, MAX_NODE_BYTES),
    st.integers(1, MAX_LOAD_S),
    st.integers(0, MAX_LOAD_S),
    st.just(True),
    values,
)


def problems(raw: object, where: str = "") -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        from_json(raw, where)
    assert all(p.message and p.remedy for p in caught.value.problems)
    return [(p.field, p.code) for p in caught.value.problems]


@given(scenarios)
def test_what_is_written_is_read_back(scenario: BlockScenario) -> None:
    document = json.loads(json.dumps(to_json(scenario)))
    assert from_json(document) == scenario
    assert document["kind"] == "block"
    assert scenario.family == "block"
    assert scenario.longest_s > scenario.ramp_s + scenario.runtime_s
    assert not scenario.needs_kvm


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3)
    | st.dictionaries(st.sampled_from([*to_json(BlockScenario(CELL)), "node", "rw", "x"]), part),
    max_leaves=8,
))  # fmt: skip
def test_nothing_else_is_taken_and_everything_is_answered(raw: object) -> None:
    try:
        made = from_json(raw, "scenario")
    except InvalidInput as error:
        assert error.problems
        assert all(p.field.startswith("scenario") and p.remedy for p in error.problems)
    else:
        assert isinstance(made, BlockScenario)


def test_what_is_left_out_is_as_usual() -> None:
    made = from_json(LEAST)
    assert made == BlockScenario(BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 1, 1))
    assert made.name == "block/null-co-randread-4k-1-1"


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"cell": {}}, "cell.node", "missing"),
        ({"cell": {"node": "raw", "rw": "trim"}}, "cell.rw", "not_a_choice"),
        ({"cell": {"node": "ram", "rw": "read"}}, "cell.node", "not_a_choice"),
        ({"cell": {**LEAST["cell"], "iodepth": 0}}, "cell.iodepth", "invalid_value"),
        ({"cell": {**LEAST["cell"], "numjobs": MAX_JOBS + 1}}, "cell.numjobs", "invalid_value"),
        ({"cell": {**LEAST["cell"], "block_size_bytes": MAX_BLOCK_BYTES + 1}},
         "cell.block_size_bytes", "invalid_value"),
        ({"cell": {**LEAST["cell"], "depth": 1}}, "cell.depth", "unknown_field"),
        ({"cell": {**LEAST["cell"], "block_size_bytes": "2Mi"}, "size_bytes": "1Mi"},
         "cell.block_size_bytes", "larger_than_node"),
        ({"size_bytes": 1}, "size_bytes", "invalid_value"),
        ({"runtime_s": 0}, "runtime_s", "invalid_value"),
        ({"ramp_s": True}, "ramp_s", "invalid_value"),
        ({"iothread": "yes"}, "iothread", "invalid_value"),
        ({"kind": "boot"}, "kind", "not_a_choice"),
        ({"values": {"multifd": True}}, "values.multifd", "not_settable"),
        ({"values": {"vm_max_map_count": 65530}}, "values.vm_max_map_count", "not_settable"),
        ({"values": {"nothing": 1}}, "values.nothing", "unknown_tunable"),
        ({"values": {"iothread_poll_max_ns": -1}}, "values.iothread_poll_max_ns", "invalid_value"),
        ({"values": {"iothread_thread_pool_min": 9, "iothread_thread_pool_max": 8}},
         "values.iothread_thread_pool_min", "min_above_max"),
        ({"values": {"iothread_poll_max_ns": 0}, "iothread": False},
         "values.iothread_poll_max_ns", "needs_iothread"),
        ({"more": 1}, "more", "unknown_field"),
    ],
)  # fmt: skip
def test_each_mistake_is_named(change: dict[str, Any], field: str, code: str) -> None:
    assert (field, code) in problems({**LEAST, **change})
    assert (f"runs.1.{field}", code) in problems({**LEAST, **change}, "runs.1")


def test_all_mistakes_are_named_at_once() -> None:
    raw = {"cell": {"node": "x", "rw": "y"}, "runtime_s": 0, "ramp_s": -1}
    assert [field for field, _ in problems(raw)] == ["cell.node", "cell.rw", "runtime_s", "ramp_s"]


VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
READS: dict[str, Any] = {"rw": "randread"}


@pytest.mark.parametrize(
    ("target", "cell", "kind"),
    [
        ({"node": "disk0"}, READS, NodeKind.VM),
        ({"device": "/dev/vdb"}, {**READS, "node": "vm"}, NodeKind.VM),
        ({}, {"node": "null-co", "rw": "randwrite"}, NodeKind.NULL),
    ],
)
def test_a_running_vm_is_named_by_its_target(
    target: dict[str, str], cell: dict[str, Any], kind: NodeKind
) -> None:
    made = from_json({"cell": cell, "target": {"vm": str(VM), **target}})
    assert (made.target, made.cell.node) == (LiveTarget(VM, **target), kind)
    document = json.loads(json.dumps(to_json(made)))
    assert from_json(document) == made
    assert vm_of_setup(document) == VM
    # It is compared with no run of another VM, and of no QEMU that was started for it.
    plain = from_json({"cell": {"node": "null-co", "rw": cell["rw"]}})
    other = replace(made, target=LiveTarget(UUID(int=1), **target), name="")
    assert len({made.name, plain.name, other.name}) == 3
    assert made.name.startswith(f"block/{kind}-{cell['rw']}-4k-1-1.")


@pytest.mark.parametrize(
    ("target", "change", "field", "code"),
    [
        ({"node": "disk0"}, {"cell": {"rw": "randrw"}}, "cell.rw", "read_only"),
        ({"device": "/dev/vdb"}, {"cell": {"rw": "write"}}, "cell.rw", "read_only"),
        ({"node": "disk0"}, {"cell": {**READS, "node": "raw"}}, "cell.node", "not_a_choice"),
        ({}, {"cell": {**READS, "node": "raw"}}, "cell.node", "needs_node"),
        ({}, {"cell": {**READS, "node": "vm"}}, "cell.node", "needs_node"),
        ({"node": "disk0", "device": "/dev/vdb"}, {}, "target", "one_of"),
        ({"device": "vdb"}, {}, "target.device", "invalid_value"),
        ({"device": "/" + "x" * 255}, {}, "target.device", "too_long"),
        ({"vm": "web1"}, {}, "target.vm", "invalid_value"),
        ({"vm": None}, {}, "target.vm", "invalid_value"),
        ({"disk": "x"}, {}, "target.disk", "unknown_field"),
        ({"node": "disk0"}, {"values": {"iothread_poll_max_ns": 0}}, "values", "not_settable"),
    ],
)
def test_what_a_running_vm_cannot_be_measured_with(
    target: dict[str, Any], change: dict[str, Any], field: str, code: str
) -> None:
    raw = {"cell": READS, "target": {"vm": str(VM), **target}, **change}
    assert (field, code) in problems(raw)


def test_a_vms_node_takes_its_vm() -> None:
    assert problems({"cell": {**READS, "node": "vm"}}) == [("target", "missing")]
    assert problems({"cell": {**READS, "node": "null-co"}, "target": {}}) == [
        ("target.vm", "missing")
    ]
    assert [vm_of_setup(setup) for setup in ({}, {"target": None}, {"target": {"vm": "x"}})] == [
        None, None, None,
    ]  # fmt: skip


def test_an_arm_is_laid_over_and_checked() -> None:
    base = BlockScenario(CELL, values={"iothread_poll_max_ns": 0, "main_loop_aio_max_batch": 4})
    arm = base.with_values({"iothread_poll_max_ns": 5})
    assert dict(arm.values) == {"iothread_poll_max_ns": 5, "main_loop_aio_max_batch": 4}
    with pytest.raises(InvalidInput, match="an iothread's"):
        replace(base, iothread=False).with_values({})
    with pytest.raises(InvalidInput, match="only serves blocks"):
        base.with_values({"auto_converge": True})


def test_what_is_live_or_makes_the_pool_can_be_set() -> None:
    live = {row.name for row in BUILT_IN.values() if row.route is Route.LIVE}
    found = {name for name in BUILT_IN if settable(name)}
    assert found == live | {"virtio_blk_queues", "virtio_blk_queue_size"}
    assert not settable("nothing")


def test_a_record_is_written_and_read_whole() -> None:
    record = BlockRecord(
        qemu="10.0.2",
        load_ms=1.5,
        measured_ms=(2.0, 3.0),
        fio={"fio version": "fio-3.33", "jobs": [{"x": None}]},
        fio_status=0,
        processes=(ProcessSample(0.5, LoadPhase.BEFORE, 300, 2, 1 << 30, 1 << 20),),
        cpu=(CpuMark(1.5, 12.25),),
        pool_forecast=PoolForecast("one", 16, 128, None, 256, 1000, 65530),
        qemu_ended="died of SIGABRT",
    )
    document = json.loads(json.dumps(documents.to_json(record)))
    assert documents.from_json(BlockRecord, document) == record
