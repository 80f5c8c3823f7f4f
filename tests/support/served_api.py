"""The real application over fake QEMUs, served at a unix socket from a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.api import Api, running_api
from vmtune.api.server import Server


@contextmanager
def served_api(folder: Path, address: Path, **settings: Any) -> Iterator[Api]:
    """An application that answers at *address* for as long as the block runs."""
    ready = threading.Event()
    served: list[tuple[Api, Server, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with running_api(folder, **settings) as api:
            server = Server(api.container)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(address))
                served.append((api, server, asyncio.get_running_loop()))
                listener.listen()
                ready.set()
                await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30), "the application did not start"
    api, server, loop = served[0]
    try:
        yield api
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join(30)
        address.unlink(missing_ok=True)
