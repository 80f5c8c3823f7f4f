"""What the web UI costs: how much is fetched at first, how soon it is seen, how long a long
series takes to be drawn, and how busy many live migrations keep the page.

The service has fake QEMUs, and its store what a hundred days would leave; the browser is real.
"""

from __future__ import annotations

import gzip
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

from playwright.sync_api import Browser, Page, expect

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.examples.samples import make_samples
from tests.support.served.api import Api
from tests.support.served.browser import (
    PATIENCE_MS,
    chromium,
    free_port,
    settled,
    tab,
    why_no_browser,
)
from tests.support.served.served_api import served_api
from vmtune.api.pages.web import BUILT
from vmtune.client.connection.http import Client
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.record import MigrationState
from vmtune.services.migrations.records import progress_data
from vmtune.storage import Store

KIB = 1024
LOADS = 7
SAMPLES = 100_000
DRAWS = 3
LIVE = 20
HERTZ = 10
BUSY_S = 10
BEGUN = (MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE)

_PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) =>
  resolve(list.getEntries().at(-1).startTime))
  .observe({ type: "largest-contentful-paint", buffered: true }))"""
_DRAWN = """() => {
  const drawn = performance.getEntriesByName("vmtune chart");
  const begin = Math.min(...drawn.map((each) => each.startTime));
  return drawn.length < 2
    ? null
    : Math.max(...drawn.map((each) => each.startTime + each.duration)) - begin;
}"""


def gzipped(names: list[str]) -> int:
    """How many bytes files of the build are together, compressed as a proxy does."""
    return sum(len(gzip.compress((BUILT / name).read_bytes(), 6)) for name in names)


@contextmanager
def page_of(browser: Browser, origin: str, token: str) -> Iterator[Page]:
    """A page whose browser has nothing in its cache."""
    with tab(browser, origin, token) as made:
        yield made.page


def fetched(browser: Browser, origin: str, token: str) -> list[str]:
    """The built files that the browser fetches to show the overview."""
    with page_of(browser, origin, token) as page:
        seen: list[str] = []
        page.on("request", lambda request: seen.append(request.url.removeprefix(origin + "/")))
        page.goto("/")
        settled(page)
        return sorted({each for each in seen if each.endswith((".js", ".css"))})


def painted_ms(browser: Browser, origin: str, token: str) -> float:
    """When the largest part of the overview was seen, since it was asked for."""
    with page_of(browser, origin, token) as page:
        page.goto("/")
        settled(page)
        return float(page.evaluate(_PAINTED))


def drawn_ms(browser: Browser, origin: str, token: str, migration: UUID) -> float:
    """From both charts' data to both charts' pictures."""
    with page_of(browser, origin, token) as page:
        page.goto(f"/migrations/{migration}")
        expect(page.get_by_text(f"{SAMPLES:,} samples")).to_be_visible(timeout=120_000)
        # The pages' policy forbids the polling that playwright has for this.
        took: float | None = None
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while took is None:
            assert time.monotonic() < deadline, "the charts were not drawn"
            page.wait_for_timeout(50)
            took = page.evaluate(_DRAWN)
        return took


def long_series(store: Store) -> UUID:
    """A migration that has ended, with its samples."""
    made = store.migrations.begin(vm=uuid4(), vm_name="long", source="a", destination="b")
    store.migrations.add_samples(made.id, make_samples(SAMPLES))
    for state in (*BEGUN, MigrationState.COMPLETED):
        store.migrations.update(made.id, state=state)
    return made.id


@contextmanager
def live_migrations(api: Api, store: Store) -> Iterator[None]:
    """Twenty migrations that tell how far they are ten times a second."""
    ids = []
    for number in range(LIVE):
        name = f"live-{number}"
        made = store.migrations.begin(vm=uuid4(), vm_name=name, source="a", destination="b")
        for state in BEGUN:
            store.migrations.update(made.id, state=state)
        ids.append(made.id)
    samples = make_samples(HERTZ * 600)
    over = threading.Event()

    def tell() -> None:
        for number, sample in enumerate(samples):
            if over.wait(1 / HERTZ):
                return
            data = progress_data(sample, number / len(samples))
            for id in ids:
                api.soon(
                    lambda id=id, data=data: api.container.bus.progress(  # type: ignore[misc]  # of a lambda's defaults
                        EventTopic.MIGRATION, id, data
                    )
                )

    telling = threading.Thread(target=tell)
    telling.start()
    try:
        yield
    finally:
        over.set()
        telling.join()


def busy_percent(browser: Browser, origin: str, token: str) -> float:
    """The share of time that the overview's main thread is at work."""
    with page_of(browser, origin, token) as page:
        page.goto("/")
        settled(page)
        expect(page.get_by_role("progressbar")).to_have_count(LIVE)
        expect(page.get_by_text("iteration").nth(LIVE - 1)).to_be_visible()
        debugger = page.context.new_cdp_session(page)
        debugger.send("Performance.enable")

        def figures() -> tuple[float, float]:
            listed = debugger.send("Performance.getMetrics")["metrics"]
            found = {each["name"]: float(each["value"]) for each in listed}
            return found["TaskDuration"], found["Timestamp"]

        busy, began = figures()
        page.wait_for_timeout(BUSY_S * 1000)
        busy_then, ended = figures()
        return 100 * (busy_then - busy) / (ended - began)


def main() -> None:
    """Measure and report."""
    if why := why_no_browser():
        raise SystemExit(why)
    where = environment()
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    with (
        folder() as at,
        served_api(at, at / "vmtune.sock", {"listen_port": port}) as api,
        Store.open(f"sqlite:///{at}/vmtune.db") as store,
        chromium() as browser,
    ):
        made = Client(at / "vmtune.sock").post("/tokens", {"name": "web", "scopes": ["admin"]})
        token = str(made["token"])
        names = fetched(browser, origin, token)
        scripts = [each for each in names if each.endswith(".js")]
        charts = [each for each in scripts if "echarts" in each]
        paints = [painted_ms(browser, origin, token) for _ in range(LOADS)]
        long = long_series(store)
        draws = [drawn_ms(browser, origin, token, long) for _ in range(DRAWS)]
        with live_migrations(api, store):
            busy = busy_percent(browser, origin, token)
    own = len(list((BUILT / "assets").glob("echarts-*.js")))
    print(f"the overview fetches {len(names)} files; its largest part is seen after "
          f"{spread(paints)} ms")  # fmt: skip
    print(f"{SAMPLES:,} samples in two charts: {spread(draws)} ms")
    print(f"{LIVE} live migrations at {HERTZ} Hz: main thread {busy:.0f} % busy")
    checks = [
        Check("initial JS, gzipped", gzipped(scripts) / KIB, "KiB", 260, "max"),
        Check(
            "initial CSS, gzipped",
            gzipped([each for each in names if each.endswith(".css")]) / KIB,
            "KiB", 110, "max",
        ),
        Check("chunks of charts in the build", own, "", 1, "min"),
        Check("chunks of charts fetched at first", len(charts), "", 0, "max"),
        Check("largest contentful paint, cold, median", statistics.median(paints), "ms", 1500,
              "max"),
        Check(f"{SAMPLES:,} samples drawn, median", statistics.median(draws), "ms", 400, "max"),
        Check(f"main thread, {LIVE} live migrations at {HERTZ} Hz", busy, "%", 50, "max"),
    ]  # fmt: skip
    raw = {"files": names, "paints_ms": paints, "draws_ms": draws, "busy_percent": busy}
    finish("web", checks, raw, where)


if __name__ == "__main__":
    main()
