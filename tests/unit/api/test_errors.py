"""What is refused before any resource is reached, and faults that nobody foresaw."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from tests.support.served.api import Api, problems, running_api
from vmtune.api import errors
from vmtune.api.responses import saved_as
from vmtune.errors import VmtuneError

JSON = {"Content-Type": "application/json"}


def _all(kind: type[VmtuneError]) -> list[type[VmtuneError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _all(child))]


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in _all(VmtuneError)
        if not kind.__module__.startswith(("vmtune.client", "vmtune.remote"))
    ],
)
def test_every_error_has_a_status(kind: type[VmtuneError]) -> None:
    if kind is not VmtuneError:
        assert errors.status_of(kind.__new__(kind)) != 500  # whatever it is made from


async def raw(api: Api, content: Any, **headers: str) -> httpx.Response:
    named = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await api.client.post("/api/v1/profiles", content=content, headers=named)


@pytest.mark.parametrize(
    "content",
    [b"{", b"nonsense", b"[" * 1_200, b'"\xff"', b'{"a": ' + b"1" * 5000 + b"}", b"{'a': 1}"],
)
async def test_a_body_that_is_no_json(api: Api, content: bytes) -> None:
    response = await raw(api, content)
    assert response.status_code == 400
    assert problems(response) == [("body", "not_json")]


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'"x"', b"NaN"])
async def test_a_body_that_is_json_of_another_kind(api: Api, content: bytes) -> None:
    response = await raw(api, content)
    assert response.status_code == 422
    assert problems(response)[0][0] == "body"


async def test_no_body_where_one_is_needed(api: Api) -> None:
    assert await api.refused("POST", "/profiles", status=422) == [("body", "missing")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/json5"]
)
async def test_a_body_of_another_type(api: Api, kind: str) -> None:
    response = await raw(api, b'{"name": "p", "values": {}}', Content_Type=kind)
    assert response.status_code == 415
    assert problems(response) == [("Content-Type", "wrong_media_type")]
    assert (await api.get("/profiles"))["items"] == []


async def test_a_charset_is_no_other_type(api: Api) -> None:
    kind = "Application/JSON; charset=utf-8"
    response = await raw(api, b'{"name": "p", "values": {}}', Content_Type=kind)
    assert response.status_code == 201


async def test_text_that_is_no_unicode_is_refused_and_answered(api: Api) -> None:
    response = await raw(api, b'{"name": "p", "values": {"\\ud800": 1}}')
    assert response.status_code == 422
    assert problems(response)[0][1] in ("unknown_tunable", "invalid_value")


async def test_a_body_that_is_too_large(tmp_path: Path) -> None:
    async with running_api(tmp_path, max_body_bytes=2000) as api:
        large = b'{"name": "p", "values": {}, "note": "' + b"x" * 2000 + b'"}'
        announced = await raw(api, large)

        async def parts() -> AsyncIterator[bytes]:
            for start in range(0, len(large), 100):
                yield large[start : start + 100]

        streamed = await raw(api, parts())
        assert "content-length" not in streamed.request.headers
        for response in (announced, streamed):
            assert response.status_code == 413
            assert problems(response) == [("body", "body_too_large")]
            assert "2,000" in response.json()["detail"]
        assert (await api.get("/profiles"))["items"] == []


@pytest.mark.parametrize("path", ["/profiles", "/nope", "/openapi.json", "/docs/plain"])
async def test_no_script_in_an_answer_runs(api: Api, path: str) -> None:
    headers = (await api.send("GET", path)).headers
    policies = headers.get_list("content-security-policy")
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert "script-src" not in policies[0]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


async def test_the_documentation_runs_scripts_of_this_service_only(api: Api) -> None:
    (policy,) = (await api.send("GET", "/docs")).headers.get_list("content-security-policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";") if " " in rule.strip())
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"


@pytest.mark.parametrize(
    ("name", "named"),
    [("a.json", "a.json"), ('x"\r\nSet-Cookie: y=z', "x-Set-Cookie-y-z"), ("../é", "..-"),
     ("x" * 300, "x" * 150)],
)  # fmt: skip
def test_a_files_name_stays_within_its_header(name: str, named: str) -> None:
    assert saved_as(name) == {"Content-Disposition": f'attachment; filename="{named}"'}


async def test_nothing_is_there(api: Api) -> None:
    for path in ("/nope", "/profiles/", "/vms/x/y/z"):
        assert await api.refused("GET", path, status=404) == [("", "unknown_route")]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/profiles", "GET, POST"),
        ("POST", "/profiles/p", "DELETE, GET, PATCH, PUT"),
        ("DELETE", "/health", "GET"),
        ("POST", "/openapi.json", "GET"),
        ("PATCH", "/vms/7/plan", "POST"),
    ],
)
async def test_a_method_that_a_path_does_not_take(
    api: Api, method: str, path: str, allow: str
) -> None:
    response = await api.send(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allow)
    assert problems(response) == [("", "method_not_allowed")]


async def test_a_fault_of_ours_shows_an_id_and_no_traceback(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(type(api.container.profiles), "get", broken)
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as logged:
        response = await api.send("GET", "/profiles/p")
    assert response.status_code == 500
    assert problems(response) == [("", "internal")]
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    (line,) = [entry for entry in logged if entry["log_level"] == "error"]
    assert line["request_id"] == response.headers["x-request-id"]
    assert line["request_id"] in response.json()["detail"]
    assert line["exc_info"]


async def test_an_error_without_status_is_a_fault_of_ours(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise VmtuneError("nobody foresaw it")

    monkeypatch.setattr(type(api.container.profiles), "get", broken)
    assert (await api.send("GET", "/profiles/p")).status_code == 500


TCP = "http://localhost:8470"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8470", "127.0.0.1:9000", "[::1]:8470", "LOCALHOST"]
)
async def test_a_loopback_name_is_served_over_tcp(tmp_path: Path, host: str) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        assert (await api.send("GET", "/health", Host=host)).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8470", "localhost.evil.example", "", "127.0.0.1@evil", "["],
)
async def test_another_name_is_refused_over_tcp(tmp_path: Path, host: str) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        refused = await api.refused("GET", "/health", status=421, Host=host)
        assert refused == [("Host", "foreign_host")]


async def test_any_host_name_is_served_over_the_unix_socket(api: Api) -> None:
    assert (await api.send("GET", "/health", Host="vmtune")).status_code == 200


async def test_a_page_of_another_origin_cannot_change_anything(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        body = {"name": "p", "values": {}}
        for origin in ("http://evil.example", "null", "http://localhost:3000"):
            refused = await api.refused("POST", "/profiles", body, status=403, Origin=origin)
            assert refused == [("Origin", "foreign_origin")]
        assert (await api.get("/profiles"))["items"] == []
        await api.ask("POST", "/profiles", body, expect=201, Origin=TCP)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/profiles/check", "POST"),  # also where a pattern would take it for a profile's name
        ("/profiles/other", "DELETE, GET, PATCH, PUT"),
        ("/campaigns/forecast", "POST"),
    ],
)
async def test_allow_names_the_methods_of_the_path_itself(
    api: Api, path: str, allowed: str
) -> None:
    response = await api.send("OPTIONS", path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    [
        "/profiles/check",
        "/runs/import",
        "/hooks/qemu",
        "/hosts/a/evacuations/plan",
    ],
)
async def test_no_pattern_takes_a_paths_own_name_for_an_id(api: Api, path: str) -> None:
    response = await api.send("GET", path)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert problems(response) == [("", "method_not_allowed")]


async def test_no_profile_has_a_name_that_is_a_path(api: Api) -> None:
    body = {"name": "check", "values": {}}
    ((field, _),) = await api.refused("POST", "/profiles", body, status=422)
    assert field == "name"


@pytest.mark.parametrize("given", ["%0B6", "6 ", "+6", "6.0", "\u0666"])
async def test_a_number_is_written_in_digits_alone(api: Api, given: str) -> None:
    ((field, _),) = await api.refused("GET", f"/profiles?limit={given}", status=422)
    assert field == "limit"


@pytest.mark.parametrize("path", ["/audit?since=", "/audit/export?until=", "/runs?since="])
@pytest.mark.parametrize("given", ["0.5", "1795300000", "yesterday"])
async def test_a_number_is_no_moment(api: Api, path: str, given: str) -> None:
    ((field, _),) = await api.refused("GET", path + given, status=422)
    assert field == path.rstrip("=").rpartition("?")[2]
