"""Which migrations may begin: limits, order, nobody waits for ever, nothing stands idle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.migration.admission import OVERTAKEN_BY, Limits, Slot, admit, why_waiting

HOSTS = "abcde"
limits = st.builds(
    Limits, st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 2)
)


@st.composite
def slots(draw: st.DrawFn, running: bool = False, most: int = 25, first: int = 1) -> list[Slot]:
    count = draw(st.integers(0, most))
    made: list[Slot] = []
    number = first
    for _ in range(count):
        source = draw(st.sampled_from(HOSTS))
        destination = draw(st.sampled_from([h for h in HOSTS if h != source]))
        priority = draw(st.integers(-1, 1))
        number += draw(st.integers(1, OVERTAKEN_BY))
        copies = draw(st.booleans())
        id = UUID(int=number)
        made.append(Slot(number, id, source, destination, priority, running, copies=copies))
    return made


def slot(number: int, way: str, priority: int = 0, **more: bool) -> Slot:
    return Slot(number, UUID(int=number), way[0], way[1], priority, **more)


def numbers(found: list[Slot]) -> list[int]:
    return [each.number for each in found]


def within(taken: list[Slot], most: Limits) -> bool:
    outgoing = Counter(each.source for each in taken)
    incoming = Counter(each.destination for each in taken)
    copying = Counter(h for s in taken if s.copies for h in (s.source, s.destination))
    return (
        all(count <= most.copies for count in copying.values())
        and len(taken) <= most.all
        and all(count <= most.outgoing for count in outgoing.values())
        and all(count <= most.incoming for count in incoming.values())
    )


def started(waiting: list[Slot], most: Limits) -> list[Slot]:
    """A state that can come about: what was admitted from nothing."""
    return [replace(each, running=True) for each in admit(waiting, [], most)]


@given(slots(), slots(first=5000), limits)
def test_no_limit_is_ever_exceeded(first: list[Slot], more: list[Slot], most: Limits) -> None:
    running = started(first, most)
    assert within(running, most)
    rest = [each for each in first if each.number not in numbers(running)]
    assert within([*running, *admit([*rest, *more], running, most)], most)


@given(slots(), slots(running=True, first=5000), limits)
def test_beside_more_than_was_allowed_nothing_is_added_there(
    waiting: list[Slot], running: list[Slot], most: Limits
) -> None:
    """Observed migrations ask nobody."""
    outgoing = Counter(each.source for each in running)
    incoming = Counter(each.destination for each in running)
    for each in admit(waiting, running, most):
        assert outgoing[each.source] < most.outgoing
        assert incoming[each.destination] < most.incoming
        assert len(running) < most.all


@given(slots(), limits)
def test_nothing_stands_idle_while_something_could_begin(waiting: list[Slot], most: Limits) -> None:
    """Where none is overtaken by too many, what was not admitted does not fit."""
    near = [replace(each, number=index) for index, each in enumerate(waiting)]
    running = admit(near, [], most)
    for each in near:
        if each not in running:
            assert not within([*running, each], most)


@given(slots(most=40), limits, st.randoms(use_true_random=False))
def test_everybody_has_their_turn(waiting: list[Slot], most: Limits, chance: object) -> None:
    """Whatever ends first, all begin, in the order of their places where they use the same."""
    left, running, begun = list(waiting), list[Slot](), list[Slot]()
    for _ in range(10 * len(waiting) + 1):
        now = admit(left, running, most)
        begun += now
        left = [each for each in left if each not in now]
        running += now
        if not running:
            break
        running.pop(chance.randrange(len(running)))  # type: ignore[attr-defined]  # a Random
    assert not left
    for way in {(each.source, each.destination) for each in begun}:
        for copies in (False, True):
            same = [
                each
                for each in begun
                if (each.source, each.destination, each.copies) == (*way, copies)
            ]
            assert same == sorted(same, key=lambda each: each.position)


def test_what_needs_two_hosts_is_not_passed_over_for_ever() -> None:
    """a and b are never free at one moment by chance: others keep coming to both."""
    most = Limits(1, 1, 10)
    head = slot(1, "ab")
    running = [slot(2, "ac", running=True), slot(3, "db", running=True)]
    number = 4
    for _ in range(200):
        waiting = [head, slot(number, "ac"), slot(number + 1, "db")]
        number += 2
        now = admit(waiting, running[1:], most)  # of the two, the older one has ended
        if head in now:
            break
        running = [*running[1:], *now]
    assert head in now
    assert number <= OVERTAKEN_BY + 10


def test_higher_priority_first_then_older() -> None:
    waiting = [slot(1, "ab"), slot(2, "ac", 5), slot(3, "ad", 5), slot(4, "ae", -5)]
    assert numbers(admit(waiting, [], Limits(4, 4, 2))) == [2, 3]
    assert numbers(admit(waiting, [], Limits(4, 4, 9))) == [2, 3, 1, 4]


def test_one_that_cannot_begin_does_not_hold_up_others() -> None:
    waiting = [slot(2, "ab"), slot(3, "cd")]
    running = [slot(1, "ae", running=True)]
    assert numbers(admit(waiting, running, Limits(1, 1, 9))) == [3]
    assert numbers(admit(waiting, running, Limits(1, 1, 1))) == []


def test_those_that_copy_disks_have_a_limit_of_their_own_and_hold_up_no_others() -> None:
    running = [slot(1, "ab", running=True, copies=True)]
    waiting = [slot(2, "ab", copies=True), slot(3, "ca", copies=True), slot(4, "ab")]
    most = Limits(3, 3, 9)
    assert numbers(admit(waiting, running, most)) == [4]
    why = why_waiting(waiting[0], running, most)
    assert why == "1 of 1 copy disks from or to a"
    assert numbers(admit(waiting, running, Limits(3, 3, 9, copies=2))) == [2, 4]


def test_a_copy_that_needs_two_hosts_is_not_passed_over_by_other_copies_for_ever() -> None:
    head = slot(1, "ab", copies=True)
    running = [slot(2, "ac", running=True, copies=True), slot(3, "db", running=True, copies=True)]
    number = 4
    for _ in range(200):
        waiting = [head, slot(number, "ac", copies=True), slot(number + 1, "db", copies=True)]
        number += 2
        now = admit(waiting, running[1:], Limits(9, 9, 99))
        if head in now:
            break
        running = [*running[1:], *now]
    assert head in now
    assert number <= OVERTAKEN_BY + 10


def test_what_is_held_neither_begins_nor_holds_up() -> None:
    waiting = [slot(1, "ab", held=True), slot(500, "ab")]
    assert numbers(admit(waiting, [], Limits(1, 1, 1))) == [500]


def test_what_one_waits_for_is_told() -> None:
    most = Limits(1, 2, 3)
    running = [slot(1, "ab", running=True)]
    assert why_waiting(slot(2, "ac"), running, most) == "1 of 1 leave a"
    running = [slot(1, "cb", running=True), slot(2, "db", running=True)]
    assert why_waiting(slot(3, "ab"), running, most) == "2 of 2 arrive on b"
    running.append(slot(4, "ec", running=True))
    assert why_waiting(slot(5, "ad"), running, most) == "3 of 3 are under way on all hosts"
    assert "paused" in why_waiting(slot(5, "ad", held=True), running, most)
    assert "ahead" in why_waiting(slot(5, "ad"), [], most)
