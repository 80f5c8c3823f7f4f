"""What the benchmark of copied disks adds up."""

from __future__ import annotations

from tests.perf.disks import ARMS, Found, sent_bytes

CARDS = """Inter-|   Receive                        |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 11 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0
  eth0: 22 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0
 veth1:33 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0
"""


def test_what_all_cards_but_the_loopback_send_is_added() -> None:
    assert sent_bytes(CARDS.splitlines()) == 304


def test_rounds_are_added_up_by_arm() -> None:
    found = Found()
    one = {"took_ms": 5.0, "sent_bytes": 7, "wrong": ""}
    found.add({arm: one for arm in ARMS})
    found.add({arm: {**one, "wrong": "it is not there" * (arm == "virsh")} for arm in ARMS})
    assert (found.checked, found.wrong) == (2 * len(ARMS), ["virsh: it is not there"])
    assert found.times_ms["vmtune"] == [5.0, 5.0]
    assert found.sent_bytes["chosen"] == [7, 7]
