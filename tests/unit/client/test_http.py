"""The client over the unix socket: paths, pages, and what goes wrong."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.served.stub_service import Reply, StubService, page, refusal
from vmtune.client.connection.errors import ConnectionLost, Refused, ServiceUnreachable
from vmtune.client.connection.http import Client, segment


def test_query_body_and_headers_arrive(service: StubService) -> None:
    service.on("PATCH", "/profiles/a%2Fb", Reply({"ok": True}, headers={"ETag": '"4"'}))
    client = Client(service.socket)
    answer = client.request(
        "PATCH", f"/profiles/{segment('a/b')}", {"label": ["x=1", "y=2"], "not": None},
        {"values": {"multifd": "on"}}, '"3"',
    )  # fmt: skip
    assert (answer.document, answer.etag) == ({"ok": True}, '"4"')
    asked = service.only("PATCH", "/profiles/a%2Fb")
    assert asked.query == {"label": ["x=1", "y=2"]}
    assert asked.body == {"values": {"multifd": "on"}}
    assert asked.headers["If-Match"] == '"3"'
    assert asked.headers["Content-Type"] == "application/json"


def test_a_list_is_read_page_after_page(service: StubService) -> None:
    first = {"items": [{"name": "a"}], "next": "cursor"}
    service.on("GET", "/hosts", first, page({"name": "b"}))
    assert [row["name"] for row in Client(service.socket).items("/hosts")] == ["a", "b"]
    assert [asked.query.get("after") for asked in service.asked] == [None, ["cursor"]]


def test_a_problem_keeps_its_status_fields_and_remedies(service: StubService) -> None:
    row = {"field": "name", "code": "duplicate_name", "message": "is taken", "remedy": "another"}
    service.on("POST", "/hosts", refusal(409, row, detail="no"))
    with pytest.raises(Refused) as caught:
        Client(service.socket).post("/hosts", {})
    assert caught.value.status == 409
    assert caught.value.message == "no"
    (problem,) = caught.value.problems
    assert (problem.field, problem.code, problem.message, problem.remedy) == tuple(row.values())


@pytest.mark.parametrize("raw", [b"<html>", b"[1, 2", b"\xff"])
def test_an_answer_that_is_no_json_is_refused(service: StubService, raw: bytes) -> None:
    service.on("GET", "/health", Reply(raw=raw), Reply(raw=raw, status=502))
    for status in (200, 502):
        with pytest.raises(Refused, match="is not JSON") as caught:
            Client(service.socket).get("/health")
        assert caught.value.status == status


def test_no_content_is_an_empty_document(service: StubService) -> None:
    service.on("DELETE", "/hosts/a", Reply(status=204))
    assert Client(service.socket).delete("/hosts/a") == {}


def test_without_a_service_the_error_names_socket_and_command(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnreachable) as caught:
        Client(tmp_path / "none.sock").get("/health")
    (problem,) = caught.value.problems
    assert str(tmp_path / "none.sock") in problem.message
    assert "vmtune serve" in problem.remedy


def test_a_socket_that_nobody_answers_is_unreachable(tmp_path: Path) -> None:
    left_behind = tmp_path / "old.sock"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(left_behind))
    with pytest.raises(ServiceUnreachable, match="refused"):
        Client(left_behind).get("/health")


def test_a_connection_lost_during_a_change_leaves_the_outcome_unknown(
    service: StubService,
) -> None:
    service.on("POST", "/migrations", Reply(cut=True))
    with pytest.raises(ConnectionLost, match="the outcome is unknown") as caught:
        Client(service.socket).post("/migrations", {})
    assert caught.value.problems[0].remedy == "check the state before you repeat it"


def test_a_connection_lost_while_reading_can_be_tried_again(service: StubService) -> None:
    service.on("GET", "/health", Reply(cut=True))
    with pytest.raises(ConnectionLost, match="while reading /health"):
        Client(service.socket).get("/health")


def test_a_service_that_stays_silent_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.05 s"):
            Client(tmp_path / "s", answer_within_s=0.05).get("/health")
