"""The real application over a real SQLite store and fake QEMUs, asked as a client asks it."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.benchmarks.bench_runs import a_program, fake_tools
from tests.support.simulated.fakes import NEWEST, fake_pair, only
from tests.support.stores.databases import empty_database
from vmtune.api.main import create_app
from vmtune.api.openapi import document
from vmtune.api.schemas.common import ProblemDocument
from vmtune.api.wiring.bench import BenchTools
from vmtune.api.wiring.deps import Container, open_container
from vmtune.config.settings import BenchQemu, Settings
from vmtune.model.host.inventory import Host
from vmtune.services.access.users import Peer
from vmtune.services.heavy.work import InThreads
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu
from vmtune.testing.inline_jobs import InlineEngine

PREFIX = "/api/v1"
ROOT = Peer(1, 0, frozenset({0}))
"""A process of root's, as which the client asks where nothing else is said."""
_NUMBERS = itertools.count(1)
Json = Any  # any: JSON


@dataclass
class Api:
    """A client, and what is beneath the application that it asks."""

    client: httpx.AsyncClient
    container: Container
    jobs: InlineEngine
    drivers: dict[str, FakeDriver]
    reload: Callable[[], None] = lambda: None  # where it is served
    soon: Callable[[Callable[[], object]], object] = lambda call: call()  # likewise: in its thread

    @property
    def source(self) -> FakeQemu:
        """The QEMU on host a."""
        return only(self.drivers["a"])

    async def ask(
        self, method: str, path: str, body: object = None, expect: int = 200, **headers: str
    ) -> Json:
        """The JSON of the answer, which must have the status *expect*.

        Header names are written with underscores.
        """
        response = await self.send(method, path, body, **headers)
        assert response.status_code == expect, response.text
        return response.json() if response.content else None

    async def send(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> httpx.Response:
        """The answer as it comes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent: dict[str, Any] = {} if body is None else {"json": body}
        return await self.client.request(method, PREFIX + path, headers=named, **sent)

    async def get(self, path: str) -> Json:
        """GET, which must succeed."""
        return await self.ask("GET", path)

    async def post(self, path: str, body: object = None, expect: int = 201) -> Json:
        """POST, which must succeed."""
        return await self.ask("POST", path, body, expect)

    async def refused(
        self, method: str, path: str, body: object = None, *, status: int, **headers: str
    ) -> list[tuple[str, str]]:
        """The field and code of each problem, where each must come with its remedy."""
        response = await self.send(method, path, body, **headers)
        assert response.status_code == status, response.text
        return problems(response)

    async def profile(self, name: str = "p", **values: object) -> Json:
        """Store a profile."""
        return await self.post("/profiles", {"name": name, "values": values})

    async def run_ended(self, run: str) -> Json:
        """A benchmark run's record once its job is over."""
        async with asyncio.timeout(60):
            await self.jobs.wait(run)
        return await self.get(f"/runs/{run}")

    async def ended(self, migration: str) -> Json:
        """A migration's record once its job is over."""
        async with asyncio.timeout(60):
            await self.jobs.wait(migration)
        return await self.get(f"/migrations/{migration}")


def problems(response: httpx.Response) -> list[tuple[str, str]]:
    """The field and code of each problem of an answer that must be a problem document."""
    assert response.headers["content-type"] == "application/problem+json"
    document = ProblemDocument.model_validate(response.json())
    assert document.status == response.status_code
    assert document.instance.endswith(response.headers["x-request-id"])
    assert document.errors and all(e.code and e.message for e in document.errors)
    return [(e.field, e.code) for e in document.errors]


@asynccontextmanager
async def running_api(
    folder: Path,
    hosts: tuple[str, ...] = ("a", "b"),
    base_url: str = "http://localhost",
    max_body_bytes: int = 1 << 20,
    version: str = NEWEST,
    options: Mapping[str, Any] | None = None,
    bench_tools: BenchTools | None = None,
    stored: bytes | None = None,
    **qemu: object,
) -> AsyncIterator[Api]:
    """The application, with host a (which has the VM) and b (where a QEMU waits for it).

    Without a port in *base_url* requests come as over the unix socket, from root; with one as
    over TCP, with a token that allows everything.

    :param options: further settings.
    :param bench_tools: none given: runs end at once.
    :param stored: the database of an earlier service; None for an empty one.
    """
    given = {
        "bench_dir": folder / "bench",
        "bench_qemus": (BenchQemu("system", a_program(folder)),),
        "sample_hz": 50,
        "host_check_interval_s": 0,  # a test sends its hosts what it says that it sends
        "max_body_bytes": max_body_bytes,
        **(options or {}),
    }
    settings = Settings(state_dir=folder, runtime_dir=folder, **given)
    file = folder / "vmtune.db"
    if stored is None:
        empty_database(file)
    else:
        file.write_bytes(stored)
    a, b = fake_pair(version, **qemu)
    drivers = {"a": a, "b": b}

    def factory(host: Host) -> FakeDriver:
        if host.name not in drivers:
            drivers[host.name] = fake_pair(version)[1]
        driver = drivers[host.name]
        driver.tunables = container.tunables
        return driver

    jobs = InlineEngine()
    tools = bench_tools or fake_tools()
    async with open_container(
        settings, driver_factory=factory, jobs=jobs, bench_tools=tools, heavy=InThreads
    ) as container:
        app = create_app(settings, container)
        over_tcp = httpx.URL(base_url).port is not None
        transport = httpx.ASGITransport(app if over_tcp else as_peer(app, ROOT))
        hooks = {"response": [_documented()]}
        async with httpx.AsyncClient(
            transport=transport, base_url=base_url, event_hooks=hooks
        ) as client:
            if over_tcp:
                client.headers["Authorization"] = f"Bearer {await admin_token(container)}"
            for name in hosts:
                await container.hosts.add(name, f"qmp+unix:///fake/{name}")
            yield Api(client, container, jobs, drivers)


async def admin_token(container: Container, **restricted: Any) -> str:
    """The text of a token that root made.

    :param restricted: what :meth:`TokenService.create` takes; everything allowed without.
    """
    root = await container.access.users.identify(ROOT)
    given = {"name": f"t{next(_NUMBERS)}", "scopes": ["admin"], **restricted}
    _, secret = await container.access.tokens.create(root, **given)
    return secret.text


def as_peer(app: ASGIApp, peer: Peer) -> ASGIApp:
    """*app*, asked over the unix socket by *peer*."""

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"peer": peer}}, receive, send)

    return asked


@functools.cache
def _documented() -> Callable[[httpx.Response], Any]:
    """A check that every answer of a known route has a status that OpenAPI documents."""
    openapi: Json = json.loads(document())
    patterns = [
        (re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)), methods)
        for path, methods in sorted(openapi["paths"].items(), key=lambda each: each[0].count("{"))
    ]

    async def check(response: httpx.Response) -> None:
        method, path = response.request.method.lower(), response.request.url.path
        # The path by a name of its own comes first, such as /runs/import before /runs/{run}.
        fitting = [methods for pattern, methods in patterns if pattern.fullmatch(path)]
        if not fitting:
            return
        if method in fitting[0]:
            documented = fitting[0][method]["responses"]
            assert str(response.status_code) in documented, f"{method} {path}: undocumented"
        elif path in openapi["paths"] or len(fitting) > 1:
            assert response.status_code in (401, 405), f"{method} {path}"

    return check
