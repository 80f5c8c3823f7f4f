"""An event loop in a thread of its own, called from another loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from vmtune.jobs.base import not_started

T = TypeVar("T")


def run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Run ``work`` on another thread's loop; the future belongs to the caller's loop.

    In an empty context, because dbos finds the workflow it works for in a
    context variable, and what a phase does is not part of that workflow.
    """
    future = contextvars.Context().run(asyncio.run_coroutine_threadsafe, work, loop)
    return asyncio.wrap_future(future)


class LoopThread:
    """Runs coroutines on a loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # A task that is never ended complains when it is collected.
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        self._loop.close()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end there, even when the caller is cancelled.

        :raise SetupError: when the work was cancelled by :meth:`cancel_all`.
        """
        future = run_on(self._loop, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.cancelled():
                raise not_started() from None
            raise

    async def cancel_all(self, timeout_s: float) -> None:
        """Cancel everything that runs there and give it this long to end."""

        async def cancel() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=timeout_s)

        await self.call(cancel())

    def close(self) -> None:
        """End the loop and its thread; returns at once."""
        self._loop.call_soon_threadsafe(self._loop.stop)
