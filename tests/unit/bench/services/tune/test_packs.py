"""Studies of what tunable packs add to a patched QEMU."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.benchmarks.bench_runs import FakeLook
from tests.support.benchmarks.studies import TunedRunner, study_json
from tests.unit.bench.services.tune.study_service import Bench, S, make, started
from vmtune.bench.migration.order import Testbed
from vmtune.bench.migration.scenarios import BenchHosts
from vmtune.bench.model.settable import choose, settable
from vmtune.bench.services.packs import use_packs
from vmtune.errors import InvalidInput
from vmtune.model.host.facts import Reading
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.packs import load
from vmtune.storage import Store

LIMIT = "qemu_pool_hard_limit_count"
INTERVAL = "qemu_reaper_least_interval_us"
(PACK,) = load(["qemu-patched"])


@pytest.fixture
def packed() -> Iterator[TunableRegistry]:
    """The pack is loaded."""
    use_packs(["qemu-patched"])
    try:
        yield settable()
    finally:
        choose(BUILT_IN)


@dataclass
class PatchedLook(FakeLook):
    """A QEMU with the patch, and an operator who consents."""

    offers: Collection[str] = frozenset(row.name for row in PACK.tunables)
    consents: frozenset[str] = PACK.consents

    async def __call__(self, testbed: Testbed, kvm: bool) -> BenchHosts:
        found = await super().__call__(testbed, kvm)
        readings = {
            row.name: Reading(row.default) for row in PACK.tunables if row.name in self.offers
        }
        qemu = replace(
            found.qemu,
            readings={**found.qemu.readings, **readings},
            pack_offers=frozenset(self.offers),
        )
        return replace(found, qemu=qemu, consents=self.consents)


def patched(store: Store, folder: Path, **look: Any) -> Bench:
    bench = make(store, folder, TunedRunner())
    bench.it.runs._testbeds._look = PatchedLook(**look)
    bench.it.profiles.tunables = settable()
    return bench


async def test_what_a_pack_adds_is_searched_run_and_drafted(
    store: Store, tmp_path: Path, packed: TunableRegistry
) -> None:
    order = study_json()
    order["scenario"]["values"] = {LIMIT: 512}
    order["space"] = {"multifd": {}, INTERVAL: {"low": "20ms", "high": "40ms", "step": "10ms"}}
    async with started(patched(store, tmp_path)) as bench:
        study = await bench.do(**order)
        assert study.kept.state is S.COMPLETED, study.kept.reason
        ordered = [run.effective.values for run in bench.it.runner.orders]
        assert {values[LIMIT] for values in ordered} == {512}
        assert {values.get(INTERVAL) for values in ordered} == {None, 20_000, 30_000, 40_000}
        assert study.kept.result is not None
        draft = await bench.it.profiles.get(study.kept.result["draft"]["profile"])
        assert draft.current.values == study.kept.result["found"]["settings"]
        assert INTERVAL in draft.current.values


@pytest.mark.parametrize(
    ("look", "varied"),
    [({}, True), ({"offers": ()}, False), ({"consents": frozenset()}, False)],
)
@pytest.mark.parametrize("kind", ["migration", "block"])
async def test_auto_varies_what_the_qemu_has_and_the_operator_consents_to(
    store: Store, tmp_path: Path, packed: TunableRegistry, look: Any, varied: bool, kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    fio = tmp_path / "fio"  # an order of a block run asks whether there is one
    fio.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    order = study_json(space="auto")
    if kind == "block":
        cell = {"node": "null-co", "rw": "randread", "block_size_bytes": 4096, "iodepth": 1,
                "numjobs": 1}  # fmt: skip
        scenario = {"kind": "block", "name": "mine/blocks", "cell": cell}
        order |= {"scenario": scenario, "objective": "maximise iops", "kvm": None}
    spec = await patched(store, tmp_path, **look).studies.filled_in(order)
    assert spec.space is not None
    assert (INTERVAL in spec.space) is varied
    counters = {row.name for row in PACK.tunables if row.read_only}
    assert not counters & set(spec.space)


async def test_what_is_of_no_pack_here_is_refused_with_what_to_do(
    store: Store, tmp_path: Path
) -> None:
    bench = patched(store, tmp_path)
    for changes in ({"space": {LIMIT: [0, 512]}}, {"space": {"multifd": {}}}):
        order = study_json(**changes)
        if LIMIT not in order["space"]:
            order["scenario"]["values"] = {LIMIT: 512}
        with pytest.raises(InvalidInput) as refused:
            await bench.studies.filled_in(order)
        (problem,) = refused.value.problems
        assert problem.code == "unknown_tunable"
        assert problem.field.endswith(LIMIT)
        assert "setting packs" in problem.remedy
