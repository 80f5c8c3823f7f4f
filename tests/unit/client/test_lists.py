"""Every list, and what changes by itself: sorted, watched, completed, whatever command shows it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import StubService, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.cli import root

VM = "5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10"
OTHER = "6f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10"
WATCHED = {
    "application show", "bench campaign show", "bench show", "evacuation show", "health",
    "host show", "lab status", "migration show", "verify", "vm pools", "vm show",
}  # fmt: skip
"""What shows one thing that changes by itself."""


def commands(
    group: click.Group, path: tuple[str, ...], above: click.Context
) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, by their words."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        words = (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, words, click.Context(command, above, name))
        else:
            yield " ".join(words), command


ALL = dict(commands(root, (), click.Context(root, info_name="vmtune")))


def options(command: click.Command) -> set[str]:
    """Its options."""
    return {option for parameter in command.params for option in parameter.opts}


def completed(*words: str) -> list[str]:
    """What the shell offers for the last of *words*."""
    completion = ShellComplete(root, {}, "vmtune", "_VMTUNE_COMPLETE")
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]


LISTS = [words for words, command in ALL.items() if (command.help or "").startswith("List ")]


@pytest.mark.parametrize("words", LISTS)
def test_a_list_is_sorted_watched_and_wide(words: str) -> None:
    assert {"--sort", "--watch", "--every", "--wide", "-o"} <= options(ALL[words])


@pytest.mark.parametrize("words", sorted(WATCHED))
def test_what_changes_by_itself_is_watched(words: str) -> None:
    assert {"--watch", "--every"} <= options(ALL[words])


def test_there_are_lists() -> None:
    assert {"vm list", "vm history", "profile history", "host pools", "pack list"} < set(LISTS)


def test_all_pages_of_vms_are_verified(service: StubService, vmtune: Vmtune) -> None:
    rows = [docs.vm("b", VM), docs.vm("a", OTHER)]
    service.on("GET", "/vms", page(rows[0], next="2", problems=[]), page(rows[1], problems=[]))
    for row in rows:
        found = {**docs.verification(), "vm": row["uuid"]}
        service.on("POST", f"/vms/{row['uuid']}/verify", found)
    ran = vmtune("verify", "--all", "--sort", "vm", "-o", "json")
    assert [item["name"] for item in ran.document["items"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "code"),
    [("vm list", 0), ("verify --all", 1), ("apply --all --tuning drifted", 1)],
)
def test_the_hosts_that_are_silent_on_any_page_of_vms_are_told_once(
    service: StubService, vmtune: Vmtune, words: str, code: int
) -> None:
    """Of a large fleet each page asks only the hosts of its own VMs."""
    b, c = (
        {"field": f"hosts.{name}", "code": "host_unreachable", "message": f"{name} is silent",
         "remedy": ""}
        for name in "bc"
    )  # fmt: skip
    row = {**docs.vm(), "state": "unknown"}
    pages = [page(next="2", problems=[b]), page(row, next="3", problems=[c, b]), page(problems=[])]
    for more in ((), ("--json",)):
        service.on("GET", "/vms", *pages)
        ran = vmtune(*words.split(), *more)
        assert ran.code == code
        assert [ran.out.count(f"{name} is silent") for name in "bc"] == [1, 1]


def test_a_vms_history_is_one_list(service: StubService, vmtune: Vmtune) -> None:
    applied = {**docs.application(), "id": VM, "created_at": "2026-11-21T09:00:00Z"}
    moved = {**docs.migration(id=OTHER), "created_at": "2026-11-22T09:00:00Z"}
    service.on("GET", "/applications", page(applied))
    service.on("GET", "/migrations", page(moved))
    ran = vmtune("vm", "history", VM, "-o", "json")
    assert [item["what"] for item in ran.document["items"]] == ["migration", "application"]
    names = vmtune("vm", "history", VM, "--sort", "begun", "-o", "name").out.split()
    assert names == [VM, OTHER]


def test_a_misspelt_token_is_answered_with_near_ones(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/tokens", page({"id": "abc123", "name": "grafana", "state": "active"}))
    ran = vmtune("token", "revoke", "grafanna")
    assert ran.code == 1
    assert "did you mean grafana?" in ran.err


def test_ids_and_names_are_completed(service: StubService) -> None:
    service.on("GET", "/applications", page({**docs.application(), "id": VM}))
    service.on("GET", "/runs", page({"id": VM, "scenario": "plain/1gbs", "state": "completed"}))
    service.on("GET", "/campaigns", page({"name": "zstd", "state": "running"}))
    service.on("GET", "/tokens", page({"id": "abc123", "name": "grafana", "state": "active"}))
    service.on("GET", "/browsers", page({"id": OTHER, "address": "10.0.0.7"}))
    service.on("GET", "/schedules", page({"name": "nightly"}))
    assert completed("application", "show", "5f") == ["5f5b1f5e"]
    assert completed("bench", "show", "") == ["5f5b1f5e"]
    assert completed("bench", "campaign", "show", "z") == ["zstd"]
    assert completed("token", "revoke", "g") == ["grafana"]
    assert completed("token", "sign-out", "") == ["6f5b1f5e"]
    assert completed("bench", "schedule", "remove", "n") == ["nightly"]
    service.on("GET", "/runs", refusal(403, {"message": "no"}))
    assert completed("bench", "cancel", "") == []
