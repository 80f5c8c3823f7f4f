"""Sends requests at a fixed rate, however long answers take, and notes how long they took.

Time counts from the moment at which a request was meant to be sent. One that has to wait for
others to be answered first is as late as a user would find it: a generator that waits for each
answer before it asks again slows down with the service, and then sees few of the slow ones.

A process of its own, so that it does not slow down what it measures::

    python -m tests.support.served.load < PLAN.json
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import resource
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

import uvloop

_CONNECTIONS = 32
"""As a few browsers open: six each."""
_ENDS_WITHIN_S = 60.0
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_FOLLOWED = re.compile(r"=(\d+)\.\.$")
_STEP_MS = 50
"""How far apart the samples are that somebody follows."""


@dataclass(frozen=True)
class Plan:
    """What to send.

    :param kinds: the paths of each kind of request; those of one kind take turns. What ends in a
        number of milliseconds and two dots goes on with the time, as for who asks for what came
        since: ``later_than_ms=2000..`` is ``later_than_ms=5000`` three seconds after the first.
    :param shares: how often each kind is sent, in parts of their sum.
    :param warm_s: how long to send before what is noted.
    """

    port: int
    token: str
    rate_per_s: float
    warm_s: float
    seconds: float
    kinds: Mapping[str, Sequence[str]]
    shares: Mapping[str, int]
    seed: int = 1


@dataclass
class Answers:
    """What came back of the requests that were noted.

    :param took_ms: by kind, from when each was meant to be sent to the end of its answer.
    :param statuses: how often each status came; ``none`` where no answer did.
    :param bytes: of all answers together.
    :param late_ms: the most by which the generator itself was late to send.
    :param seconds: from the first intended sending to the last answer.
    :param cpu_s: CPU time that the generator took itself, in all.
    """

    took_ms: dict[str, list[float]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    late_ms: float = 0.0
    seconds: float = 0.0
    cpu_s: float = 0.0

    @property
    def all_ms(self) -> list[float]:
        """Of all kinds, the quickest first."""
        return sorted(each for kind in self.took_ms.values() for each in kind)

    @property
    def rate_per_s(self) -> float:
        """How many were answered each second."""
        return len(self.all_ms) / self.seconds

    def percentile(self, percent: float) -> float:
        """Milliseconds within which so many were answered."""
        took = self.all_ms
        return took[min(len(took) - 1, int(len(took) * percent / 100))]


@dataclass
class _Asked:
    kind: str
    request: bytes
    meant_s: float
    counts: bool
    answered: bool = False


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._transport: asyncio.WriteTransport | None = None
        self._asked: _Asked | None = None
        self._got = b""
        self._whole = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by its class

    def send(self, asked: _Asked) -> None:
        assert self._transport is not None
        self._asked, self._got, self._whole = asked, b"", -1
        self._transport.write(asked.request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if self._whole < 0:
            end = self._got.find(_HEAD_END)
            if end < 0:
                return
            head = self._got[:end].lower()
            at = head.find(_LENGTH)
            assert at >= 0, f"an answer without its length: {head!r}"
            length = head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]
            self._whole = end + len(_HEAD_END) + int(length)
        if len(self._got) >= self._whole:
            assert self._asked is not None
            asked, self._asked = self._asked, None
            self._load.answered(self, asked, self._got)

    def connection_lost(self, error: Exception | None) -> None:
        self._load.lost(self, self._asked)


class _Load:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._idle: list[_Connection] = []
        self._waiting: deque[_Asked] = deque()
        self._answers = Answers({kind: [] for kind in plan.kinds})
        self._statuses: Counter[str] = Counter()
        self._left = 0
        self._done = asyncio.Event()
        self._last_s = 0.0

    async def run(self) -> Answers:
        plan = self._plan
        loop = asyncio.get_running_loop()
        for _ in range(_CONNECTIONS):
            _, one = await loop.create_connection(lambda: _Connection(self), "127.0.0.1", plan.port)
            self._idle.append(one)
        asked = self._asked()
        self._left = len(asked)
        begun = loop.time() + 0.1
        for one_asked in asked:
            one_asked.meant_s += begun
            if (early_s := one_asked.meant_s - loop.time()) > 0:
                await asyncio.sleep(early_s)
            late_ms = 1000 * (loop.time() - one_asked.meant_s)
            self._answers.late_ms = max(self._answers.late_ms, late_ms)
            self._send(one_asked)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDS_WITHIN_S):
                await self._done.wait()
        for one_asked in asked:
            if one_asked.counts and not one_asked.answered:
                self._note(one_asked, loop.time(), "none")
        self._answers.statuses = dict(self._statuses)
        self._answers.seconds = self._last_s - begun - plan.warm_s
        return self._answers

    def _asked(self) -> list[_Asked]:
        """All requests in their order, with when each is to be sent, from the first."""
        plan = self._plan
        number = round((plan.warm_s + plan.seconds) * plan.rate_per_s)
        kinds = random.Random(plan.seed).choices(
            list(plan.shares), list(plan.shares.values()), k=number
        )
        turns: Counter[str] = Counter()
        asked: list[_Asked] = []
        for place, kind in enumerate(kinds):
            at_s = place / plan.rate_per_s
            path = _FOLLOWED.sub(
                lambda found, at_s=at_s: f"={_moved(int(found[1]), at_s)}",
                plan.kinds[kind][turns[kind] % len(plan.kinds[kind])],
            )
            turns[kind] += 1
            request = (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {plan.token}\r\n"
                "Accept: application/json\r\n\r\n"
            )
            asked.append(_Asked(kind, request.encode(), at_s, at_s >= plan.warm_s))
        return asked

    def _send(self, asked: _Asked) -> None:
        if self._idle:
            self._idle.pop().send(asked)
        else:
            self._waiting.append(asked)

    def answered(self, by: _Connection, asked: _Asked, answer: bytes) -> None:
        asked.answered = True
        if asked.counts:
            self._answers.bytes += len(answer)
            self._note(asked, asyncio.get_running_loop().time(), answer[9:12].decode())
        if self._waiting:
            by.send(self._waiting.popleft())
        else:
            self._idle.append(by)
        self._left -= 1
        if not self._left:
            self._done.set()

    def _note(self, asked: _Asked, now_s: float, status: str) -> None:
        self._answers.took_ms[asked.kind].append(1000 * (now_s - asked.meant_s))
        self._statuses[status] += 1
        self._last_s = now_s

    def lost(self, one: _Connection, asked: _Asked | None) -> None:
        """None is to end before all is answered: what it was to answer never is."""
        if one in self._idle:
            self._idle.remove(one)
        if asked is not None:
            print(f"cut off: {asked.request!r}", file=sys.stderr)


def _moved(ms: int, by_s: float) -> int:
    return ms + int(1000 * by_s) // _STEP_MS * _STEP_MS


def send(plan: Plan) -> Answers:
    """Have a process of its own send it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.served.load"],
        input=json.dumps(asdict(plan)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=plan.warm_s + plan.seconds + 2 * _ENDS_WITHIN_S,
    )
    return Answers(**json.loads(done.stdout))


def main() -> None:
    """Carry out the plan on stdin."""
    plan = Plan(**json.load(sys.stdin))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answers = runner.run(_Load(plan).run())
    used = resource.getrusage(resource.RUSAGE_SELF)
    answers.cpu_s = used.ru_utime + used.ru_stime
    json.dump(asdict(answers), sys.stdout)


if __name__ == "__main__":
    main()
