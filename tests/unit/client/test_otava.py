"""Apache Otava reads what `vmtune bench history --csv` writes. Needs `make otava`, or ``OTAVA=``, a
Python that has Otava."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.perf.verdicts.otava import ready_python
from tests.support.benchmarks.measured import noisy, put
from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.storage import Store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(ready_python() is None, reason="Apache Otava is not there: `make otava`"),
]


def test_otava_finds_the_step_in_the_file(real: Api, vmtune: Vmtune, tmp_path: Path) -> None:
    with Store.open(real.container.settings.database_url) as store:
        put(store, "old", noisy(1000, 20, 1))
        put(store, "new", noisy(1500, 20, 2), after=60)
    *files, config = vmtune(
        "bench", "history", "q/busy", "--csv", str(tmp_path), "--json"
    ).document["files"]
    python = ready_python()
    assert python is not None
    otava = python.parent / "otava"
    ended = subprocess.run(
        [otava, "analyze", Path(files[0]).stem, "--since", "2026-10-01"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OTAVA_CONFIG": config},
    )
    assert ended.returncode == 0, ended.stderr
    assert "2026-11-01 01:00:00" in ended.stdout
    assert "+5" in ended.stdout  # about 50 % more
