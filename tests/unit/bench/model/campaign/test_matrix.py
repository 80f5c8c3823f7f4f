"""Matrices of the block and the boot benchmark: read strictly, every combination a cell."""

from __future__ import annotations

import copy
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.campaign.campaign import PublishedChoice
from vmtune.bench.model.campaign.matrix import MatrixArm, from_json, read_toml
from vmtune.bench.model.campaign.matrix_kinds import BlockMatrix, BootMatrix
from vmtune.bench.model.scenario.matrix_cells import (
    Accelerator,
    BlockCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
)
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.documents.strict import MAX_FILE_CHARACTERS
from vmtune.errors import InvalidInput

BLOCK = """
name = "pool"
title = "Pool"
blocks = 6
seed = 1
margin_percent = 2
published = {reference = "coroutine-pool-global", table = "iops"}
arms = [
    {name = "QEMU 7.2", qemu = "qemu-7.2"},
    {name = "QEMU 10", values = {iothread_thread_pool_max = 8}},
]
[block]
nodes = ["null-co", "qcow2"]
rw = ["randread"]
block_size_bytes = ["4Ki", 131072]
iodepth = [1, 64]
numjobs = [1]
size_bytes = "2Gi"
runtime_s = 5
ramp_s = 0
iothread = false
"""


def test_a_block_matrix() -> None:
    plan = read_toml(BLOCK)
    assert plan.arms == (
        MatrixArm("QEMU 7.2", "qemu-7.2"),
        MatrixArm("QEMU 10", values={"iothread_thread_pool_max": 8}),
    )
    assert (plan.name, plan.title, plan.blocks, plan.seed) == ("pool", "Pool", 6, 1)
    assert (plan.margin_percent, plan.published) == (
        2,
        PublishedChoice("coroutine-pool-global", "iops"),
    )
    assert plan.matrix == BlockMatrix(
        (NodeKind.NULL, NodeKind.QCOW2), (IoPattern.RANDREAD,), (4096, 131072), (1, 64), (1,),
        2 * GIB, 5, 0, iothread=False,
    )  # fmt: skip
    assert plan.run_count == 6 * 2 * 8
    first = plan.matrix.cells[0]
    assert first == BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 1, 1)
    assert [cell.name for cell in plan.matrix.cells[:3]] == [
        "null-co-randread-4k-1-1",
        "null-co-randread-4k-64-1",
        "null-co-randread-128k-1-1",
    ]


def test_a_boot_matrix() -> None:
    plan = from_json(
        {
            "name": "boot",
            "arms": [{"name": "this host"}],
            "boot": {
                "guests": ["project", "linux"],
                "firmware": ["seabios", "ovmf"],
                "accelerators": ["kvm", "tcg"],
                "vcpus": [1, 2],
                "memory_bytes": ["512Mi"],
                "count_regions": False,
                "max_seconds": 60,
            },
        }
    )
    assert plan.matrix == BootMatrix(
        tuple(BootGuest), tuple(Firmware), tuple(Accelerator), (1, 2), (512 * MIB,), False, 60
    )
    # OVMF cannot start the project's guest.
    assert plan.run_count == 10 * 12
    assert plan.matrix.cells[0].name == "project-seabios-kvm-1-512m"
    assert len({cell.name for cell in plan.matrix.cells}) == 12


def test_defaults() -> None:
    plan = from_json({"name": "x", "arms": [{"name": "a"}], "block": {}})
    assert plan.matrix == BlockMatrix()
    assert (plan.blocks, plan.seed, plan.margin_percent, plan.published) == (10, None, 5, None)
    assert from_json({"name": "x", "arms": [{"name": "a"}], "boot": {}}).matrix == BootMatrix()
    more = {"acpi": [True, False], "bridges": [0, 2], "devices": [0, 8]}
    matrix = from_json({"name": "x", "arms": [{"name": "a"}], "boot": more}).matrix
    assert len({each.name for each in matrix.cells}) == 8
    more = {"guests": ["project", "linux"], "devices": [0, 8], "remaps": [0, 9]}
    matrix = from_json({"name": "x", "arms": [{"name": "a"}], "boot": more}).matrix
    assert [each.name for each in matrix.cells if each.remaps] == [
        "project-seabios-kvm-1-512m-8devices-9remaps"
    ]
    assert len(matrix.cells) == 5


@given(
    st.sets(st.sampled_from(sorted(set(NodeKind) - {NodeKind.VM})), min_size=1),
    st.sets(st.sampled_from(IoPattern), min_size=1),
    st.sets(st.integers(512, 1 << 25), min_size=1, max_size=4),
    st.sets(st.integers(1, 4096), min_size=1, max_size=4),
)
def test_every_combination_is_a_cell_once(
    nodes: set[Any], rw: set[Any], sizes: set[int], depths: set[int]
) -> None:
    lists = {"nodes": nodes, "rw": rw, "block_size_bytes": sizes, "iodepth": depths}
    document = {name: list(values) for name, values in lists.items()}
    plan = from_json({"name": "x", "arms": [{"name": "a"}], "block": document, "blocks": 1})
    cells = plan.matrix.cells
    assert len(cells) == prod(map(len, lists.values())) == len(set(cells))
    assert len({cell.name for cell in cells}) == len(cells)


def document(**changes: Any) -> Any:
    return {"name": "x", "arms": [{"name": "a"}], "block": {}, **changes}


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        ([], "", "not_an_object"),
        ({"arms": [], "block": {}}, "name", "missing"),
        (document(name="X"), "name", "invalid_input"),
        (document(arms=[]), "arms", "missing"),
        (document(arms=[{"name": "a"}, {"name": "a"}]), "arms.1.name", "duplicate_name"),
        (document(arms=[{"name": " "}]), "arms.0.name", "missing"),
        (document(arms=[{"name": "a", "qemu": "/bin/sh"}]), "arms.0.qemu", "invalid_input"),
        (document(arms=[{"name": "a", "values": {"multifdd": 1}}]), "arms.0.values.multifdd",
         "unknown_tunable"),
        (document(arms=[{"name": "a", "profile": "p"}]), "arms.0.profile", "unknown_field"),
        (document(boot={}), "block", "one_of"),
        ({"name": "x", "arms": [{"name": "a"}]}, "block", "one_of"),
        (document(block={"nodes": []}), "block.nodes", "missing"),
        (document(block={"nodes": ["floppy"]}), "block.nodes.0", "not_a_choice"),
        (document(block={"rw": ["randread", "randread"]}), "block.rw", "duplicate"),
        (document(block={"iodepth": 4}), "block.iodepth", "not_a_list"),
        (document(block={"iodepth": [0]}), "block.iodepth.0", "invalid_value"),
        (document(block={"block_size_bytes": ["4Kq"]}), "block.block_size_bytes.0",
         "invalid_value"),
        (document(block={"bs": [4096]}), "block.bs", "unknown_field"),
        (document(block={"iodepth": list(range(1, 40)), "numjobs": list(range(1, 40))},
                  blocks=100), "blocks", "too_many"),
        (document(blocks=0), "blocks", "invalid_value"),
        (document(seed=-1), "seed", "invalid_value"),
        (document(margin_percent=0), "margin_percent", "invalid_value"),
        (document(published={"table": "x"}), "published.reference", "missing"),
        (document(block=None), "block", "not_an_object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_field(raw: Any, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        from_json(copy.deepcopy(raw))
    assert (field, code) in [(each.field, each.code) for each in refused.value.problems]
    assert all(each.message and each.remedy for each in refused.value.problems)


def test_a_boot_needs_memory() -> None:
    raw = {"name": "x", "arms": [{"name": "a"}], "boot": {"memory_bytes": [1]}}
    with pytest.raises(InvalidInput) as refused:
        from_json(raw)
    assert refused.value.problems[0].field == "boot.memory_bytes.0"


@pytest.mark.parametrize("text", ["name = ", "x" * (MAX_FILE_CHARACTERS + 1), "a=" + "[" * 5000])
def test_what_is_no_toml_is_told(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_toml(text)
    assert refused.value.problems[0].field == "matrix"
    assert refused.value.problems[0].remedy


keys = st.sampled_from(
    ["name", "arms", "block", "boot", "nodes", "rw", "iodepth", "values", "multifd", "blocks",
     "null-co", "published", "reference", "x"]
)  # fmt: skip
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(keys, trees), st.booleans())
def test_whatever_is_given_is_read_or_refused(raw: dict[str, Any], whole: bool) -> None:
    try:
        from_json(document(**raw) if whole else raw)
    except InvalidInput as error:
        assert all(each.code and each.message and each.remedy for each in error.problems)
