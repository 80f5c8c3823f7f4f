"""What kind of harm it is that does not hold after a fault, by the words of checks.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from tests.fault.faults import FAULTS
from tests.fault.suite import Tried


class Harm(StrEnum):
    """Kinds of harm, the worst first."""

    LOST = "lost"
    """A guest, a disk or what is in them; or nobody can say."""
    DOUBLED = "doubled"
    """The VM runs twice."""
    RECORD = "wrong records"
    """Nothing is lost, and the record, or what is kept with it, says otherwise."""
    LEFT = "left behind"
    """Settings, images, jobs or pools that are of no use."""


_WORDS: Mapping[Harm, tuple[str, ...]] = {
    Harm.DOUBLED: ("runs on two hosts",),
    Harm.RECORD: (
        "record",
        "and runs on",
        "and does not say why",
        "still only requested",
        "samples are",
        "has the VM to itself",
        "the audit log",
        "the service does not say",
    ),
    Harm.LEFT: (" is left", "and was ", "a job that nobody begins"),
}


def harm_of(wrong: str) -> Harm:
    """Of a sentence of a try; what is not known otherwise counts as lost."""
    for harm, words in _WORDS.items():
        if any(each in wrong for each in words):
            return harm
    return Harm.LOST


def as_summary(all_tried: Iterable[Tried]) -> Iterator[str]:
    """A line for each fault, and one for all: in how many tries there was which harm."""
    found = list(all_tried)
    for name in FAULTS:
        tries = [one for one in found if one.fault == name]
        if tries:
            yield f"{name}: {_counted(tries)}"
    yield f"all: {_counted(found)}"


def _counted(tries: list[Tried]) -> str:
    counts = Counter(harm for one in tries for harm in {harm_of(each) for each in one.wrong})
    harms = ", ".join(f"{counts[harm]} {harm.value}" for harm in Harm)
    return f"{len(tries)} {'try' if len(tries) == 1 else 'tries'}, {harms}"
