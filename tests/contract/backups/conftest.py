"""Places for both kinds of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.data.store.make_dump import fill
from tests.support.stores.backed_up import (
    JOBS_TABLE,
    NOW,
    in_jobs,
    job,
    url,
)  # fmt: skip
from tests.support.stores.postgres import (
    new_database,
    postgres_server,
    why_no_postgres,
)
from vmtune.services.backup.backups import Databases
from vmtune.storage import Store, upgrade

NO_POSTGRES = why_no_postgres()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as running:
        yield running.url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)),
    ]
)
def new_databases(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str], Databases]]:
    """Makes the URLs of empty databases, by a name."""
    with ExitStack() as stack:

        def make(name: str) -> Databases:
            folder = tmp_path / name
            folder.mkdir(mode=0o700)
            if request.param == "sqlite":
                both = (f"sqlite:///{folder}/vmtune.db", f"sqlite:///{folder}/jobs.db")
                return Databases.at(*both, folder)
            url = stack.enter_context(new_database(request.getfixturevalue("server")))
            return Databases.at(url, url, folder)

        yield make


@pytest.fixture
def databases(new_databases: Callable[[str], Databases]) -> Databases:
    """Databases with something in each table, and a job."""
    made = new_databases("from")
    upgrade(url(made))
    with Store.open(url(made), now=lambda: NOW) as store:
        fill(store)
        store.services.stop()
    in_jobs(made, f"CREATE TABLE workflow_status {JOBS_TABLE}")
    job(made, "ended", "SUCCESS")
    return made
