"""What holds for any reply of query-migrate and any order of thread-pool limits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated.fakes import NEWEST, OLDEST, recording
from vmtune.model.host.facts import Reading
from vmtune.model.migration.record import QemuStatus, read_query_migrate
from vmtune.model.plan.changes import Change, in_order

REPLIES = [
    reply
    for version in (OLDEST, NEWEST)
    for name, reply in recording(version).items()
    if name.startswith("query-migrate") and isinstance(reply, dict) and "tls-creds" not in reply
]


@st.composite
def parts_of_replies(draw: st.DrawFn) -> dict[str, Any]:
    """Some fields of a recorded reply, and some of those of its RAM figures."""
    reply = draw(st.sampled_from(REPLIES))
    kept = draw(st.sets(st.sampled_from(sorted(reply)))) if reply else set()
    part = {name: reply[name] for name in kept}
    if part.get("ram"):
        ram = draw(st.sets(st.sampled_from(sorted(part["ram"]))))
        part["ram"] = {name: part["ram"][name] for name in ram}
    return part


@given(parts_of_replies(), st.sampled_from(QemuStatus))
def test_any_part_of_a_reply_can_be_read(reply: dict[str, Any], status: QemuStatus) -> None:
    assert read_query_migrate(reply).status == reply.get("status", "none")
    snapshot = read_query_migrate({**reply, "status": status.value})
    assert (snapshot.totals is not None) <= (status is QemuStatus.COMPLETED)
    assert snapshot.final <= (not status.running)


LIMITS = st.tuples(st.integers(0, 100), st.integers(1, 100)).map(sorted).filter(lambda p: p[1])


@given(now=LIMITS, wanted=LIMITS, swapped=st.booleans())
def test_pool_limits_never_cross_on_the_way(
    now: list[int], wanted: list[int], swapped: bool
) -> None:
    names = ("iothread_thread_pool_min", "iothread_thread_pool_max")
    readings = {
        name: Reading(value, {"iothread1": value}) for name, value in zip(names, now, strict=True)
    }
    changes = [Change(name, value) for name, value in zip(names, wanted, strict=True)]
    limits = dict(zip(names, now, strict=True))
    for change in in_order(changes[::-1] if swapped else changes, readings):
        assert change.owner == "iothread1"
        limits[change.tunable] = int(change.value)
        assert limits[names[0]] <= limits[names[1]]
    assert list(limits.values()) == wanted
