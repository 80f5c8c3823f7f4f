"""``vmtune bench history``, ``changes``, ``triage`` and ``schedule``."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from tests.support.benchmarks.measured import PLACE, noisy, put
from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.bench.model.runs.run import RunState
from vmtune.storage import Store


def fill(real: Api) -> None:
    newer = {**PLACE, "qemu": {"version": "10.1.0"}}
    with Store.open(real.container.settings.database_url) as store:
        put(store, "old", noisy(1000, 20, 1))
        put(store, "new", noisy(1500, 20, 2), environment=newer, fingerprint="there", after=60)


def test_changes_are_listed_and_triaged(real: Api, vmtune: Vmtune) -> None:
    assert "no changes" in vmtune("bench", "changes").out
    fill(real)  # from here on the service may find it by itself
    listed = vmtune("bench", "changes", "--look")
    assert listed.code == 0, listed.err
    assert re.search(r"\+5\d % \(.*\): worse", listed.out)
    (found,) = vmtune("bench", "changes", "--json").document["items"]
    triaged = vmtune("bench", "triage", found["id"][:8], "to-fix", "--note", "bug 7")
    assert triaged.code == 0, triaged.err
    assert "to fix" in triaged.out
    assert "no changes" in vmtune("bench", "changes").out
    assert "bug 7" in vmtune("bench", "changes", "--all").out
    history = vmtune("bench", "history", "q/busy").out
    assert "to fix: bug 7" in history
    assert "qemu.version: 10.0.2 before, 10.1.0 since" in history
    missing = vmtune("bench", "triage", "ffff", "known")
    assert missing.code == 1
    assert "bench changes" in missing.err


def test_a_history_is_a_table_with_lost_runs_and_what_the_newest_hint_at(
    real: Api, vmtune: Vmtune
) -> None:
    """A step, a setting that fails now and then, and last runs that lie apart."""
    lost = {0: RunState.FAILED, 3: RunState.FAILED}
    last = [1.2 * value for value in noisy(1500, 3, 9, 0.01)]
    with Store.open(real.container.settings.database_url) as store:
        put(store, "old", noisy(1000, 20, 1, 0.02), states=lost)
        put(store, "new", [*noisy(1500, 20, 2, 0.02), *last], after=60)
    shown = vmtune("bench", "history", "q/busy")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    (head,) = (line for line in lines if line.startswith("SINCE"))
    assert head.split() == ["SINCE", "RUN", "RUNS", "MEDIAN", "CHANGE"]
    first, second = lines[lines.index(head) + 1 : lines.index(head) + 3]
    assert " 18  " in first
    assert " 23  " in second
    assert re.search(r"\+5\d(\.\d+)? % \(\+4\d.*: worse", second)
    assert "2 of 43 runs did not complete: 0 with the limit as value, 2 without a value" in lines
    assert re.search(
        r"^clear early sign: the last 3 runs: \+[12]\d(\.\d+)? % against", shown.out, re.M
    )
    assert "provisional" in shown.out


def test_a_history_is_written_for_otava(real: Api, vmtune: Vmtune, tmp_path: Path) -> None:
    fill(real)
    folder = tmp_path / "otava"
    written = vmtune("bench", "history", "q/busy", "--csv", str(folder), "--json")
    assert written.code == 0, written.err
    *files, config = written.document["files"]
    tests = json.loads(Path(config).read_text())["tests"]
    ((name, test),) = tests.items()
    assert [test["file"]] == files
    assert test["metrics"] == {"total_time_ms": {"scale": 1, "direction": -1}}
    assert name.startswith("q-busy-total_time_ms-")
    with Path(files[0]).open() as lines:
        assert len(list(csv.DictReader(lines))) == 40


def test_campaigns_are_scheduled(vmtune: Vmtune, real: Api, tmp_path: Path) -> None:
    file = tmp_path / "nightly.toml"
    text = 'name = "nightly"\nscenario = "plain/1gbs.quick"\nblocks = 1\n'
    arms = '[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n'
    file.write_text(text + arms)
    without = vmtune("bench", "schedule", "add", str(file))
    assert without.code == 1
    assert 'every = "1 day"' in without.err
    file.write_text('every = "1 day"\n' + text + arms)
    added = vmtune("bench", "schedule", "add", str(file))
    assert added.code == 0, added.err
    assert "nightly: every 1 day" in added.out
    assert "nightly" in vmtune("bench", "schedule", "list").out
    assert vmtune("bench", "schedule", "list", "--json").document["items"][0]["every_s"] == 86_400
    assert "removed" in vmtune("bench", "schedule", "remove", "nightly").out
    assert "no schedules" in vmtune("bench", "schedule", "list").out
    assert vmtune("bench", "schedule", "remove", "nightly").code == 1
