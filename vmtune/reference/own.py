"""The conditions of an own run, in the words in which published figures have theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from vmtune.bench.model.kinds import ScenarioKind, kind_of_setup
from vmtune.bench.model.runs.run import Run
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BlockCell, BootCell, SrcuCell
from vmtune.documents.dataclass_json import from_json
from vmtune.errors import InvalidInput
from vmtune.model.doctor.kernel import SrcuState, judge_srcu
from vmtune.model.migration.controller_record import ReaperEnd
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.reaper import OFF
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version
from vmtune.reference.facts import FACTS, Facts, FactValue

_SRCU = {
    SrcuState.BEFORE: "5.18", SrcuState.AFFECTED: "5.19-rc1", SrcuState.FIXED: "fixed",
}  # fmt: skip
_INSIDE, _STOCK = "qemu_reaper_policy", "stock"
"""A tunable of the pack qemu-patched, and its value for QEMU's own reaper."""


def facts_of_run(run: Run) -> Facts:
    """What is known of the conditions of a run of any benchmark.

    A tunable that is unset counts as what QEMU then does. A fact that was not recorded is
    missing. Whether the rings were emptied adaptively from outside says the run's record, and
    without it the policy that was wanted; a run whose QEMU does not take the policy inside it
    has failed.
    """
    setup, environment = run.setup, run.environment
    found: dict[str, object] = {
        "tool": "vmtune",
        **_OF_KIND[kind_of_setup(setup)](run),
        "host_load": setup.get("host_load"),
        "qemu": _at(environment, "qemu", "version"),
        "kernel": _at(environment, "kernel", "release"),
        "host_cpu_model": _at(environment, "cpu", "model"),
        "host_memory_bytes": _at(environment, "memory", "total_bytes"),
    }
    return {
        name: value for name, raw in found.items() if (value := _accepted(name, raw)) is not None
    }


def _of_migration(run: Run) -> dict[str, object]:
    return {
        **_vm(run.setup),
        **_transfer(run.values),
        **_tracking(run),
        "accelerator": run.environment.get("accelerator"),
    }


def _of_block(run: Run) -> dict[str, object]:
    cell = _cell(BlockCell, run)
    said = str(_at(run.environment, "qemu", "version") or "").partition(" ")[0]
    try:
        version = Version.parse(said)
    except ValueError:
        version = None
    if cell is None or version is None:
        return {}
    by_guest = run.setup.get("driver") is not None
    return dict(facts_of_block_cell(cell, version, by_guest=by_guest))


def _of_boot(run: Run) -> dict[str, object]:
    cell = _cell(BootCell, run)
    found: dict[str, object] = {}
    if cell is not None:
        found |= {
            # What KVM waits for; a guest by TCG waits for nothing of the kind.
            "srcu": _waiting(run) if cell.accelerator is Accelerator.KVM else None,
            "vcpus": cell.vcpus,
            "memory_bytes": cell.memory_bytes,
            "accelerator": cell.accelerator.value,
            "firmware": cell.firmware.value,
        }
    return found


def _of_srcu(run: Run) -> dict[str, object]:
    cell = _cell(SrcuCell, run)
    if cell is None:
        return {}
    return {"srcu": _waiting(run), "vcpus": cell.vcpus, "accelerator": Accelerator.KVM.value}


def _waiting(run: Run) -> object:
    """How the host's kernel waits for grace periods; None where it cannot be told."""
    release = _at(run.environment, "kernel", "release")
    record = run.record and (run.record.boot or run.record.srcu)
    parameters = record.srcutree if record else {}
    return _SRCU.get(judge_srcu(str(release or ""), parameters).state)


_Cell = TypeVar("_Cell")


def _cell(kind: type[_Cell], run: Run) -> _Cell | None:
    """The combination that was measured; None where it cannot be read."""
    try:
        return from_json(kind, run.setup.get("cell"), "cell")
    except InvalidInput:
        return None


_OF_KIND: Mapping[ScenarioKind, Callable[[Run], dict[str, object]]] = {
    ScenarioKind.MIGRATION: _of_migration,
    ScenarioKind.BLOCK: _of_block,
    ScenarioKind.BOOT: _of_boot,
    ScenarioKind.SRCU: _of_srcu,
}
assert set(_OF_KIND) == set(ScenarioKind)


def facts_of_block_cell(cell: BlockCell, qemu: Version, *, by_guest: bool = False) -> Facts:
    """What is known of the conditions of one measurement of the block benchmark, on a QEMU of
    that version.

    :param by_guest: the project's guest loaded its disks, else fio an export.

    QEMU had pools of a fixed size until 6.2, pools per thread that may grow until 8.2, and has a
    global pool since 9.0.
    """
    pool = (
        "limited" if qemu < Version(7) else "per_thread" if qemu < Version(9) else "global_batches"
    )
    return {
        "coroutine_pool": pool,
        "rw": cell.rw.value,
        "block_size_bytes": cell.block_size_bytes,
        "iodepth": cell.iodepth,
        "numjobs": cell.numjobs,
        "tool": "vmtune" if by_guest else "fio",
        "device": "virtio-blk" if by_guest else "NBD export",
        "node": cell.node.value,
        "qemu": str(qemu),
    }


def _vm(setup: Mapping[str, Any]) -> dict[str, object]:  # any JSON: the scenario as it was run
    workload = setup.get("workload")
    dirty = _at(setup, "workload", "dirty_mb_per_s")
    return {
        "vcpus": _at(setup, "vm", "vcpus"),
        "memory_bytes": _at(setup, "vm", "memory_bytes"),
        "region_bytes": _at(setup, "workload", "region_bytes"),
        "dirty_mb_per_s": dirty or None,  # 0 sets no limit
        "guest_content": _content(workload) if isinstance(workload, Mapping) else None,
    }


def _content(workload: Mapping[str, Any]) -> str:  # any JSON
    random, zero = workload.get("random_percent", 0), workload.get("zero_percent", 0)
    if not random and not zero:
        return "zeros but for the bytes written"
    return f"{random} % incompressible, {zero} % zeros, the rest a pattern"


def _transfer(values: Mapping[str, Value]) -> dict[str, object]:
    multifd = values.get("multifd") is True
    convergence = [name for name in ("auto_converge", "dirty_limit") if values.get(name) is True]
    return {
        "zero_copy_send": values.get("zero_copy_send") is True,
        "multifd_channels": _or_default(values, "multifd_channels") if multifd else 1,
        "multifd_compression": _or_default(values, "multifd_compression") if multifd else "none",
        "convergence": convergence[0] if convergence else "none",
        "link_bytes_per_s": values.get("max_bandwidth_bytes_per_s") or None,  # 0 sets no limit
    }


def _or_default(values: Mapping[str, Value], name: str) -> object:
    return values.get(name, BUILT_IN[name].default)


def _tracking(run: Run) -> dict[str, object]:
    entries = run.values.get("dirty_ring_size_entries", 0)
    if not entries:
        return {"reaping": "none"}
    wanted = run.values.get("reaper_policy", OFF)
    policy = None if wanted == OFF else wanted
    if run.record is not None:
        reaper = run.record.reaper
        policy = None if reaper is None or reaper.end is ReaperEnd.NOT_STARTED else reaper.policy
    inside = run.values.get(_INSIDE, _STOCK)
    if policy is None and inside == _STOCK:
        return {"dirty_ring_size_entries": entries, "reaping": "stock"}
    return {
        "dirty_ring_size_entries": entries,
        "reaping": "adaptive",
        "reaper_policy": policy or inside,
        "reaper_place": "outside QEMU" if policy else "inside QEMU",
    }


def _at(branch: object, *path: str) -> object:
    for name in path:
        branch = branch.get(name) if isinstance(branch, Mapping) else None
    return branch


def _accepted(name: str, raw: object) -> FactValue | None:
    """*raw* where it is a value of that fact: records of other versions are read as far as
    they can be."""
    try:
        return FACTS[name].accept(raw)
    except ValueError:
        return None
