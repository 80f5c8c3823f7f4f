"""Each transport between machines of two releases, with all that vmtune does by it.

With RECORD_RELEASES set, what succeeded is written for the documentation's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.broken_ways import hosts
from tests.support.live import Live
from tests.support.machines import why_no_machines
from tests.support.releases import pairs, record, release_machines
from tests.support.ways import (
    WANTED_ROUNDS,
    asked_for_by_the_hook,
    default_profile,
    install_hook,
    observed_where_virsh_migrates,
    tuned_there_and_back,
)

NONE = why_no_machines() or ("" if pairs() else "no two releases are unpacked: make lab-releases")
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
SMALL: dict[str, Any] = {"memory_bytes": 96 << 20}


@pytest.fixture(scope="module", params=pairs(), ids="-".join)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Live, dict[str, list[str]]]]:
    """The machines, and what succeeded by which transport."""
    older, newer = request.param
    succeeded: dict[str, list[str]] = {}
    with release_machines(older, newer) as live:
        yield live, succeeded
    record(older, newer, transports=succeeded)


@pytest.mark.parametrize("transport", ["ssh", "tls"])
def test_all_of_it_by_each_transport(
    pair: tuple[Live, dict[str, list[str]]], transport: str
) -> None:
    live, succeeded = pair
    done = succeeded[transport] = []
    with hosts(live, transport):
        tuned_there_and_back(live, f"by-{transport}", **SMALL)
        done += ["plan", "apply", "migrate", "revert"]
        observed_where_virsh_migrates(live, transport, **SMALL)
        done.append("observe")
        for which in "ab":
            install_hook(live, which, live.host("c").name)
        loud = {"announce_rounds": WANTED_ROUNDS}
        with default_profile(live, f"loud-{transport}", loud):
            asked_for_by_the_hook(live, transport, **SMALL)
        done.append("hook")
