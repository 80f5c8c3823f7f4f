"""The application, ready to be asked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.served.api import Api, running_api


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path) as made:
        yield made
