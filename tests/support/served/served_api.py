"""The real application over fake QEMUs, served from a thread at the real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.served.api import Api, running_api
from vmtune.api.serving.server import Server
from vmtune.api.serving.sockets import listening


@contextmanager
def served_api(
    folder: Path, address: Path, options: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[Api]:
    """An application that answers at *address* for as long as the block runs.

    :param options: further settings, such as ``listen_port``; without it there is no TCP.
    """
    ready = threading.Event()
    served: list[tuple[Api, Server, asyncio.AbstractEventLoop]] = []
    failed: list[BaseException] = []
    given = {"socket_path": address, "listen_port": 0, **(options or {})}

    async def serve() -> None:
        async with running_api(folder, options=given, **settings) as api:
            server = Server(api.container)
            with listening(api.container.settings) as sockets:
                api.reload = server.reload
                api.soon = asyncio.get_running_loop().call_soon_threadsafe
                served.append((api, server, asyncio.get_running_loop()))
                serving = asyncio.ensure_future(server.serve(sockets))
                while not (server.started or serving.done()):  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.005)
                ready.set()
                await serving

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # told in the test's own thread
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30), "the application did not start"
    if failed:
        raise failed[0]
    api, server, loop = served[0]
    try:
        yield api
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join(30)
        if failed:
            raise failed[0]
        assert not thread.is_alive(), "the application did not stop"
