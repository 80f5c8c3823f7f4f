"""Runs the service: one uvicorn server on the unix socket and on the loopback address."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog
import uvicorn
import uvloop

from vmtune import tracing
from vmtune.api.main import create_app
from vmtune.api.routes.common import PREFIX
from vmtune.api.serving.connections import Connection, Connections, TlsAcceptor
from vmtune.api.serving.logs import configure_logs
from vmtune.api.serving.protocol import Protocol, speaking
from vmtune.api.serving.sockets import listening, state_lock
from vmtune.api.serving.systemd import notify, reloading, watchdog
from vmtune.api.serving.tls import Tls
from vmtune.api.serving.traces import start_traces
from vmtune.api.wiring.deps import Container, open_container
from vmtune.config.settings import Settings
from vmtune.hypervisor.linux import cpus
from vmtune.services.lanes import Lanes

log = structlog.get_logger(__name__)

_GRACE_S = 2
_KEEP_ALIVE_S = 30
_SWITCH_S = 0.0005
"""How long a busy thread keeps Python's lock while the loop's waits for it. Python's own 5 ms are
several requests' time, and the loop asks for the lock after each wait for a socket."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then end within about three seconds, streams at once.

    :raise SetupError: another service runs, or a socket or database cannot be used.
    :raise SchemaMismatch: the database is of another version; names the command that fixes it.
    :raise TakenOver: another service has taken over: it has to start again, as systemd does.
    """
    configure_logs(settings.log_format, settings.log_level)
    start_traces(settings.service_name)
    if settings.cpus:
        cpus.pin_to(settings.cpus, cpus.own_threads())
    # uvloop: watching a migration at 20 Hz costs a quarter less than on asyncio's own loop.
    with (
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        try:
            runner.run(_serve(settings))
        finally:
            tracing.stop()


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    sys.setswitchinterval(_SWITCH_S)
    loop.set_default_executor(Lanes())
    starting = asyncio.current_task()
    assert starting is not None
    # First, so that the sockets are removed whenever a signal comes.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, starting.cancel)
    with state_lock(settings), listening(settings) as sockets:
        async with open_container(settings) as container:
            server = Server(container)
            # What is loaded by now stays: a full collection of it stopped the process for 170 ms.
            gc.collect()
            gc.freeze()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, server.stop)
            loop.add_signal_handler(signal.SIGHUP, server.reload)
            if container.cluster is not None:
                container.cluster.on_lost(server.stop)
            watched = asyncio.create_task(watchdog())
            try:
                await server.serve(sockets)
            finally:
                watched.cancel()
            notify("STOPPING=1")
    if container.cluster is not None:
        container.cluster.check_kept()
    log.info("stopped")


class Server(uvicorn.Server):
    """uvicorn, with streams that end when the service stops, and signals that are ours."""

    def __init__(self, container: Container) -> None:
        self._container = container
        settings = container.settings
        self._connections = Connections()
        self._acceptors: list[TlsAcceptor] = []
        self._protocol = speaking(self._connections)
        self._tls = Tls(settings) if settings.tls else None
        super().__init__(
            uvicorn.Config(
                create_app(settings, container),
                http=self._protocol,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=_KEEP_ALIVE_S,
            )
        )

    def stop(self) -> None:
        """Stop; asked a second time, without waiting for requests."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._container.stopping.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would end the process before it has tidied up."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept requests, and say so. Only TCP is encrypted: the unix socket leaves the
        machine never."""
        settings = self._container.settings
        tcp = [one for one in sockets or () if one.family != socket.AF_UNIX] if self._tls else []
        await super().startup([one for one in sockets or () if one not in tcp])
        for one in tcp:
            self._accept_tls(one)
        where = {"socket": str(settings.socket_path)}
        if settings.listen_port:
            name = f"[{settings.listen_address}]" if ":" in settings.listen_address else ""
            scheme = "https" if self._tls else "http"
            base = f"{scheme}://{name or settings.listen_address}:{settings.listen_port}"
            where |= {"url": base + PREFIX, "documentation": f"{base}{PREFIX}/docs"}
        log.info("ready", **where)
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end handshakes, and let requests end."""
        for each in self._acceptors:
            await each.close()
        await super().shutdown(sockets)
        self._connections.end_all()  # TLS waits half a minute for the peer's goodbye
        await asyncio.sleep(0)

    def _accept_tls(self, one: socket.socket) -> None:
        assert self._tls is not None, "only with TLS"
        loop = asyncio.get_running_loop()

        def protocol(connection: Connection) -> Protocol:
            made = self._protocol(self.config, self.server_state, self.lifespan.state, loop)
            made.connection = connection
            return made

        one.listen(self.config.backlog)
        self._acceptors.append(TlsAcceptor(one, self._connections, self._tls.context, protocol))

    def reload(self) -> None:
        """Read the certificate again, as after its renewal."""
        with reloading():
            if self._tls is not None:
                self._tls.reload()
