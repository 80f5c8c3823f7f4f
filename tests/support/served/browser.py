"""A real Chromium, and pages in it that may neither complain nor ask anybody else."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    WebError,
    expect,
    sync_playwright,
)

PATIENCE_MS = 30_000
WIDE = (1280, 900)
NARROW = (375, 800)
"""Widths and heights in CSS pixels."""
_CHROMIUM = shutil.which("chromium")
_WITHOUT_ANSWER = re.compile(r"status of (\d+)|net::(ERR_\w+)")
# The policy also forbids what no browser reports at its console.
_TELL_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`${event.violatedDirective} forbids ${event.blockedURI}`))"""


def why_no_browser() -> str:
    """Why no browser can be driven here; empty when one can."""
    return "" if _CHROMIUM else "chromium is not installed: run vmtune/lab/bootstrap.sh --tests"


def free_port() -> int:
    """A TCP port of loopback that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without a window."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        # Chromium's own sandbox refuses root; the pages are the service's.
        made = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


@dataclass
class Watch:
    """What pages did that they may not: ask elsewhere, complain, break their policy.

    :param origin: where everything is to come from.
    :param refusals: the statuses that a test provokes, or ``ERR_...`` where nobody answers: the
        browser notes each at the console, and the page is to tell it.
    """

    origin: str
    refusals: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    asked: int = 0

    @contextmanager
    def following(self, context: BrowserContext) -> Iterator[None]:
        """Watch all pages of *context* meanwhile."""
        heard = {"request": self._request, "console": self._console, "weberror": self._error}
        for event, take in heard.items():
            context.on(event, take)  # type: ignore[call-overload]  # names that it knows
        try:
            yield
        finally:
            for event, take in heard.items():
                context.remove_listener(event, take)

    def _request(self, request: Request) -> None:
        self.asked += 1
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" != (
            self.origin
        ):
            self.faults.append(f"a request to {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        told = _WITHOUT_ANSWER.search(message.text)
        if told is None or (told[1] or told[2]) not in self.refusals:
            where = message.location.get("url", "")
            self.faults.append(f"console {message.type}: {message.text} ({where})")

    def _error(self, error: WebError) -> None:
        self.faults.append(f"an uncaught error: {error.error}")


def settled(page: Page) -> None:
    """Wait until the page shows what it is about: no part of it is loading any more."""
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.wait_for_load_state("load")


@dataclass(frozen=True)
class Tab:
    """A page, and who watches it."""

    page: Page
    watch: Watch


_KEEP_WORD = """
try { localStorage.getItem("vmtune_csrf") ?? localStorage.setItem("vmtune_csrf", %s); }
catch { /* about:blank has no storage */ }
"""
"""What the sign-in page does."""


@contextmanager
def browsing(
    browser: Browser, origin: str, token: str = "", **options: object
) -> Iterator[BrowserContext]:
    """A browser of its own, with its cookies and its cache.

    :param token: what it is signed in with; nobody is without.
    :param options: of the browser's context.
    """
    context = browser.new_context(
        base_url=origin,
        viewport={"width": WIDE[0], "height": WIDE[1]},
        reduced_motion="reduce",  # what moves would be waited for
        **options,  # type: ignore[arg-type]  # as they are named
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_TELL_VIOLATIONS)
    try:
        if token:
            answer = context.request.post("/api/v1/session", data={"token": token})
            assert answer.status == 201, answer.text()
            word = json.dumps(answer.json()["csrf"])
            context.add_init_script(_KEEP_WORD % word)
        yield context
    finally:
        context.close()


@contextmanager
def tab_of(context: BrowserContext, origin: str) -> Iterator[Tab]:
    """A new tab; what pages do wrong while it is open fails the test."""
    watch = Watch(origin)
    with watch.following(context):
        page = context.new_page()
        try:
            yield Tab(page, watch)
        finally:
            page.close()
    assert not watch.faults, "\n".join(watch.faults)
    assert watch.asked > 0


@contextmanager
def tab(browser: Browser, origin: str, token: str = "", **options: object) -> Iterator[Tab]:
    """A tab of a browser of its own: see :func:`browsing`."""
    with browsing(browser, origin, token, **options) as context, tab_of(context, origin) as made:
        yield made
