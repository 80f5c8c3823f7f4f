"""Threads for blocking calls: those that an operator waits for have some of their own.

``asyncio.to_thread`` uses the loop's default executor. Were it one for all, a change such as the
abort of a migration would wait behind whatever reads and periodic tasks have queued there.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")
_THREADS, _OF_OPERATORS = 8, 4

FOR_OPERATOR: ContextVar[bool] = ContextVar("vmtune_for_operator", default=False)
"""Whether what is done now changes something, and somebody waits for it."""


class Lanes(ThreadPoolExecutor):
    """The default executor of the service's loop."""

    def __init__(self, threads: int = _THREADS, of_operators: int = _OF_OPERATORS) -> None:
        super().__init__(threads, thread_name_prefix="vmtune")
        self._operators = ThreadPoolExecutor(of_operators, thread_name_prefix="vmtune-operators")

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Have it called by a thread of the caller's lane."""
        if FOR_OPERATOR.get():
            return self._operators.submit(fn, *args, **kwargs)
        return super().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads of both."""
        self._operators.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)
