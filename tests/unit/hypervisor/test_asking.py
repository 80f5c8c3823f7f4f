"""What is done while something else is."""

from __future__ import annotations

import asyncio

import pytest

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.asking import done_meanwhile, once_asked


async def test_both_are_under_way_at_the_same_time_and_both_have_ended() -> None:
    inside, done = asyncio.Event(), False

    async def other() -> None:
        nonlocal done
        await inside.wait()
        done = True

    async with asyncio.timeout(20), done_meanwhile(other):
        inside.set()
    assert done


async def test_what_is_done_meanwhile_may_be_refused() -> None:
    async def other() -> None:
        raise CommandRefused("no room")

    with pytest.raises(CommandRefused, match="no room"):
        async with done_meanwhile(other):
            pass


async def test_it_has_ended_also_where_the_block_was_refused() -> None:
    done = False

    async def other() -> None:
        nonlocal done
        await asyncio.sleep(0)
        done = True
        raise CommandRefused("no room")

    with pytest.raises(NotFound, match="no VM"):
        async with done_meanwhile(other):
            raise NotFound("no VM")
    assert done


async def test_there_may_be_nothing_to_do() -> None:
    async with done_meanwhile(None):
        pass


async def test_what_is_done_next_to_a_question_begins_once_that_is_sent() -> None:
    order: list[str] = []

    async def question() -> None:
        for _ in range(6):  # turns of the loop that a plan needs to send its questions
            await asyncio.sleep(0)
        order.append("asked")

    async def thread() -> str:
        order.append("thread")
        return "read"

    _, read = await asyncio.gather(question(), once_asked(thread))
    assert (order, read) == (["asked", "thread"], "read")


async def test_what_was_given_up_before_it_began_never_begins() -> None:
    begun = False

    async def thread() -> None:
        nonlocal begun
        begun = True

    asking = asyncio.create_task(once_asked(thread))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not begun
