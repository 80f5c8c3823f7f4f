"""What is left when vmtune is killed while it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.examples.samples import make_samples
from vmtune.errors import OperationInProgress
from vmtune.storage import Store

pytestmark = pytest.mark.integration

WRITER = """
import sys
from uuid import UUID
from tests.support.examples.samples import make_samples
from vmtune.storage import Store
store = Store.open(sys.argv[1])
migration = store.migrations.begin(vm=UUID(int=1), vm_name="g", source="a", destination="b").id
print(migration, flush=True)
for sample in make_samples(100_000):
    store.migrations.add_samples(migration, [sample])
    print(sample.at_ms, flush=True)
"""
ENOUGH = 210  # past the end of the first chunk


def test_samples_that_were_added_one_by_one_outlive_a_kill(url: str) -> None:
    command = [sys.executable, "-c", WRITER, url]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as writer:
        assert writer.stdout
        migration = UUID(writer.stdout.readline().strip())
        told = [int(writer.stdout.readline()) for _ in range(ENOUGH)]
        writer.kill()
        told += [int(line) for line in writer.stdout.readlines() if line.endswith("\n")]
    with Store.open(url) as store:
        found = store.migrations.samples(migration)
        # One more may have been added than was told of.
        assert len(told) <= len(found) <= len(told) + 1
        assert found == tuple(make_samples(100_000)[: len(found)])
        assert [unfinished.id for unfinished in store.migrations.unfinished()] == [migration]
        with pytest.raises(OperationInProgress):
            store.applications.begin(UUID(int=1), "a", "p", 1, {}, False, [])
