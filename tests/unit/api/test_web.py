"""The web UI's files as a browser gets them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from vmtune.api.pages.web import WebUi


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>vmtune</title>")
    (tmp_path / "assets" / "index-abc.js").write_text("1")
    (tmp_path.parent / "secret.txt").write_text("secret")
    return tmp_path


async def ask(built: Path, path: str, method: str = "GET") -> httpx.Response:
    app = Starlette(routes=[Mount("/", WebUi(built))])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/vms/3d0c",
        "/migrations",
        "/profiles/fast/edit",
        "/profiles/a.b",
        "/bench/runs/x/1.quick",
    ],
)
async def test_every_page_address_gives_the_page_and_is_asked_for_anew(
    built: Path, path: str
) -> None:
    answer = await ask(built, path)
    assert answer.status_code == 200 and "<title>vmtune</title>" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


async def test_built_files_keep_forever(built: Path) -> None:
    answer = await ask(built, "/assets/index-abc.js")
    assert answer.text == "1" and "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/assets/gone.js", "/gone.js", "/../secret.txt", "/%2e%2e/secret.txt"]
)
async def test_what_is_no_file_of_the_ui_is_not_found(built: Path, path: str) -> None:
    answer = await ask(built, path)
    assert answer.status_code == 404 and "secret" not in answer.text


async def test_an_unknown_address_of_the_api_is_no_page(built: Path) -> None:
    assert (await ask(built, "/api/v1/nothing")).status_code == 404


async def test_pages_take_no_changes(built: Path) -> None:
    assert (await ask(built, "/", "POST")).status_code == 405


async def test_nothing_is_loaded_from_elsewhere_and_nobody_frames_it(built: Path) -> None:
    policy = (await ask(built, "/")).headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "http" not in policy


async def test_a_checkout_without_a_build_says_what_to_do(tmp_path: Path) -> None:
    assert "make web" in (await ask(tmp_path / "none", "/")).text
