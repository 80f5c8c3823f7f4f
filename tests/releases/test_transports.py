"""Each transport between machines of two releases, with all that vmtune does by it.

With RECORD_RELEASES set, what succeeded is written for the documentation's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hosts.broken_ways import TRANSPORTS, hosts, share_known_hosts
from tests.support.hosts.live import Live
from tests.support.hosts.machines import why_no_machines
from tests.support.hosts.releases import pairs, record, release_machines, versions
from tests.support.hosts.ways import (
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
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Live, dict[str, Any]]]:
    """The machines, and what is seen of them."""
    older, newer = request.param
    seen: dict[str, Any] = {"transports": {}}
    with release_machines(older, newer) as live:
        share_known_hosts(live)
        yield live, seen
    record(older, newer, **seen)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_all_of_it_by_each_transport(pair: tuple[Live, dict[str, Any]], transport: str) -> None:
    live, seen = pair
    done = seen["transports"][transport] = []
    with hosts(live, transport, *TRANSPORTS[transport]):
        seen |= versions(live)
        tuned_there_and_back(live, f"by-{transport}", **SMALL)
        done += ["plan", "apply", "migrate", "revert"]
        observed_where_virsh_migrates(live, **SMALL)
        done.append("observe")
        for which in "ab":
            install_hook(live, which, live.host("c").name)
        loud = {"announce_rounds": WANTED_ROUNDS}
        with default_profile(live, f"loud-{transport}", loud):
            asked_for_by_the_hook(live, **SMALL)
        done.append("hook")
