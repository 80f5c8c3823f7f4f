"""Sharing an answer: fewer questions, and none is answered with what was before it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from vmtune.services.coalescing import Coalescer


class Slow:
    """Answers with the number of the question, once it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Semaphore(0)

    async def __call__(self) -> int:
        self.asked += 1
        number = self.asked
        await self.let.acquire()
        if number == 3:
            raise ValueError(number)
        return number


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_while_it_is_asked_shares_the_next_answer() -> None:
    together, slow = Coalescer[int](), Slow()
    first = asyncio.create_task(together.run("a", slow))
    await settle()
    later = [asyncio.create_task(together.run("a", slow)) for _ in range(3)]
    await settle()
    assert slow.asked == 1
    slow.let.release()
    assert await first == 1
    await settle()
    assert slow.asked == 2
    slow.let.release()
    assert await asyncio.gather(*later) == [2, 2, 2]


async def test_an_error_is_all_theirs_and_the_next_is_asked_anew() -> None:
    together, slow = Coalescer[int](), Slow()
    slow.asked = 2
    both = [asyncio.create_task(together.run("a", slow)) for _ in range(2)]
    slow.let.release()
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError, ValueError]
    slow.let.release()
    assert await together.run("a", slow) == 4


async def test_who_gives_up_leaves_it_to_the_others() -> None:
    together, slow = Coalescer[int](), Slow()
    one, other = (asyncio.create_task(together.run("a", slow)) for _ in range(2))
    await settle()
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    slow.let.release()
    assert (await other, slow.asked) == (1, 1)


async def test_different_questions_wait_for_nobody() -> None:
    together, slow, quick = Coalescer[int](), Slow(), Slow()
    waiting = asyncio.create_task(together.run("a", slow))
    await settle()
    quick.let.release()
    assert await together.run("b", quick) == 1
    slow.let.release()
    assert await waiting == 1


class Long:
    """Takes a while, and notes when it began and ended."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.ended: list[float] = []

    async def __call__(self) -> int:
        loop = asyncio.get_running_loop()
        self.begun.append(loop.time())
        await asyncio.sleep(0.1)
        self.ended.append(loop.time())
        return len(self.begun)


async def test_what_is_asked_for_too_often_is_begun_later() -> None:
    """Half of the time: after each answer as long a rest, in which more may come to share."""
    together, long = Coalescer[int](0.5, 10), Long()
    assert await together.run("a", long) == 1
    waiting = asyncio.create_task(together.run("a", long))
    await settle()
    assert await asyncio.gather(waiting, together.run("a", long)) == [2, 2]
    assert long.begun[1] - long.ended[0] >= 0.99 * (long.ended[0] - long.begun[0])


async def test_what_is_put_off_is_so_no_longer_than_is_allowed_nor_is_another_kind() -> None:
    together, long, slow = Coalescer[int](0.0001, 0.3), Long(), Slow()
    await together.run("a", long)
    other = asyncio.create_task(together.run("b", slow))
    await settle()
    assert slow.asked == 1
    slow.let.release()
    async with asyncio.timeout(60):  # of the 1,000 s that the share would ask for
        assert await asyncio.gather(other, together.run("a", long)) == [1, 2]
    assert long.begun[1] - long.begun[0] >= 0.29


async def test_what_took_longer_than_answers_may_be_apart_is_not_put_off() -> None:
    together, long = Coalescer[int](0.0001, 0.05), Long()
    async with asyncio.timeout(60):
        for _ in range(2):
            await together.run("a", long)
    assert len(long.begun) == 2


async def test_a_failure_whose_callers_have_given_up_is_no_unretrieved_exception() -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    go = asyncio.Event()

    async def fail() -> None:
        await go.wait()
        raise ValueError("no answer")

    coalescer: Coalescer[None] = Coalescer()
    caller = asyncio.create_task(coalescer.run("a", fail))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    del caller  # it holds the request
    go.set()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert told == []
