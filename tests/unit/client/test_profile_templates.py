"""``vmtune profile templates`` and ``profile create --template``, against the real service."""

from __future__ import annotations

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune


def test_a_profile_begins_with_a_template(real: Api, vmtune: Vmtune) -> None:
    listed = vmtune("profile", "templates", "-o", "name")
    assert {"wan", "nova-abort"} <= set(listed.out.split())
    made = vmtune("profile", "create", "far", "downtime_limit_ms=2s", "--template", "wan", "--json")
    assert made.code == 0, made.err
    document = made.document
    assert document["values"]["multifd_compression"] == "zstd"
    assert document["values"]["downtime_limit_ms"] == 2000  # overrides the template's
    assert document["step_texts"][-1] == "after 7200s: abort"
    assert document["description"].startswith("Compressed by zstd")


def test_the_guests_memory_counts_where_a_policy_says_so(real: Api, vmtune: Vmtune) -> None:
    made = vmtune(
        "profile", "create", "nova", "--template", "nova-force", "--memory", "8GiB", "--json"
    )
    assert made.document["step_texts"][-1] == "after 6400s: pause"


def test_what_cannot_be_is_told_and_nothing_is_made(real: Api, vmtune: Vmtune) -> None:
    for words, said in (
        (("--template", "wann"), "did you mean wan?"),
        (("--template", "wan", "--memory", "much"), "--memory"),
        (("--template", "wan", "--memory", "0"), "memory_bytes"),
        (("--memory", "8GiB", "multifd=on"), "needs --template"),
    ):
        ran = vmtune("profile", "create", "p", *words)
        assert (ran.code, said in ran.err) == (1, True), ran.err
    assert vmtune("profile", "list", "-o", "name").out == ""
