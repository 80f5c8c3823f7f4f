"""Steps and the reaper on the command line: written, shown, and set on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import Reply, StubService, page
from tests.unit.client.conftest import Vmtune
from vmtune.client.steps import given_steps
from vmtune.client.views.controllers import progress_part, reaper_lines
from vmtune.client.views.progress import describe
from vmtune.errors import InvalidInput

RECORD = f"/migrations/{docs.MIGRATION}"
SLACKEN = {"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": "500ms"}}}
POSTCOPY = {"when": {"after_s": 300}, "then": {"do": "postcopy"}}
IN_WORDS = ("after 4 iterations: downtime_limit=500ms", "after 300s: postcopy")


def with_steps(revision: int, *texts: str) -> dict[str, Any]:
    steps = [{"when": {"after_s": n}, "then": {"do": "abort"}} for n, _ in enumerate(texts)]
    return {**docs.profile(revision), "steps": steps, "step_texts": list(texts)}


class TestReading:
    def test_words_come_after_a_file(self, tmp_path: Path) -> None:
        toml, listed = tmp_path / "s.toml", tmp_path / "s.json"
        toml.write_text(
            "[[steps]]\nwhen.after_s = 300\nthen.do = 'postcopy'\n"
            "[[steps]]\nwhen = {after_iterations = 4}\nthen.set.downtime_limit_ms = '500ms'\n"
        )
        listed.write_text(json.dumps([POSTCOPY, IN_WORDS[0]]))
        for file in (toml, listed):
            assert given_steps([IN_WORDS[1]], file) == [POSTCOPY, SLACKEN, POSTCOPY]
        assert given_steps([], None) is None

    @pytest.mark.parametrize(
        ("content", "suffix"),
        [('{"values": {}}', ".json"), ("steps = 5", ".toml"), ("[", ".json"), ("x", ".txt")],
    )
    def test_another_file_is_refused_by_name(
        self, tmp_path: Path, content: str, suffix: str
    ) -> None:
        file = tmp_path / f"steps{suffix}"
        file.write_text(content)
        with pytest.raises(InvalidInput) as refused:
            given_steps([], file)
        assert refused.value.problems[0].field == str(file)

    def test_words_that_are_no_step_are_refused_by_their_place(self, tmp_path: Path) -> None:
        file = tmp_path / "s.json"
        file.write_text(json.dumps([POSTCOPY, "soon: postcopy"]))
        with pytest.raises(InvalidInput) as refused:
            given_steps([], file)
        assert refused.value.problems[0].field == f"{file}: step 2"
        with pytest.raises(InvalidInput) as refused:
            given_steps(["after 4 iterations"], None)
        assert refused.value.problems[0].field == "--step 1"


class TestProfile:
    def test_create_takes_steps(self, service: StubService, vmtune: Vmtune, tmp_path: Path) -> None:
        service.on("POST", "/profiles", Reply(with_steps(1, *IN_WORDS), 201))
        file = tmp_path / "s.json"
        file.write_text(json.dumps([IN_WORDS[0]]))
        given = ("--steps", str(file), "--step", IN_WORDS[1])
        ran = vmtune("profile", "create", "fast", "multifd=on", *given)
        assert ran.code == 0
        assert service.only("POST", "/profiles").body["steps"] == [SLACKEN, POSTCOPY]
        assert ran.out.splitlines()[-2:] == [f"  1. {IN_WORDS[0]}", f"  2. {IN_WORDS[1]}"]

    def test_a_profile_file_may_have_steps(
        self, service: StubService, vmtune: Vmtune, tmp_path: Path
    ) -> None:
        service.on("POST", "/profiles", Reply(with_steps(1), 201))
        file = tmp_path / "p.toml"
        file.write_text(f"steps = ['{IN_WORDS[1]}']\n[values]\nmultifd = true\n")
        assert vmtune("profile", "create", "fast", "--file", str(file)).code == 0
        assert service.only("POST", "/profiles").body["steps"] == [POSTCOPY]

    @pytest.mark.parametrize(
        ("options", "steps"),
        [(("--step", IN_WORDS[1]), [POSTCOPY]), (("--no-steps",), []), (("multifd=on",), None)],
    )
    def test_set_replaces_removes_or_keeps_them(
        self, service: StubService, vmtune: Vmtune, options: tuple[str, ...], steps: Any
    ) -> None:
        service.on(
            "GET", "/profiles/fast", Reply(with_steps(1, IN_WORDS[0]), headers={"ETag": '"1"'})
        )
        service.on("PATCH", "/profiles/fast", with_steps(2, IN_WORDS[1]))
        ran = vmtune("profile", "set", "fast", *options)
        assert ran.code == 0
        assert service.only("PATCH", "/profiles/fast").body.get("steps") == steps
        assert f"step 1 from {IN_WORDS[0]} to {IN_WORDS[1]}" in ran.out

    def test_no_steps_excludes_steps(self, service: StubService, vmtune: Vmtune) -> None:
        ran = vmtune("profile", "set", "fast", "--no-steps", "--step", IN_WORDS[0])
        assert (ran.code, "--no-steps: excludes" in ran.err) == (1, True)

    def test_differences_are_shown_by_place(self, service: StubService, vmtune: Vmtune) -> None:
        service.on("GET", "/profiles/fast/revisions/1", with_steps(1, *IN_WORDS))
        service.on("GET", "/profiles/fast/revisions/2", with_steps(2, IN_WORDS[0]))
        ran = vmtune("profile", "diff", "fast", "1", "2")
        assert f"step 2   {IN_WORDS[1]}  none" in ran.out
        document = vmtune("profile", "diff", "fast", "1", "2", "--json").document
        assert document["steps"] == {"from": list(IN_WORDS), "to": [IN_WORDS[0]]}

    def test_the_service_understands_what_is_written(self, real: Api, vmtune: Vmtune) -> None:
        options = (
            "--step",
            "after 4 iterations: downtime_limit=500ms",
            "--step",
            "after 5min: pause",
        )
        assert vmtune("profile", "create", "p", "reaper_policy=predict", *options).code == 0
        shown = vmtune("profile", "show", "p").out
        assert "1. after 4 iterations: downtime_limit_ms=500ms" in shown
        assert "2. after 300s: pause" in shown
        refused = vmtune("profile", "set", "p", "--step", "after 9s: postcopy")
        assert refused.code == 1
        assert "steps.0.then.do: postcopy has no effect unless" in refused.err
        checked = vmtune("profile", "check", "--step", "after 9s: abort")
        assert (checked.code, "1. after 9s: abort" in checked.out) == (0, True)


def test_a_plan_shows_the_steps(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    document = {**docs.plan(clean=True), "steps": [POSTCOPY], "step_texts": [IN_WORDS[1]]}
    service.on("POST", f"/vms/{docs.VM}/plan", document)
    document["items"] = [{**document["items"][0], "tunable": "reaper_policy", "route": "control"}]
    out = vmtune("plan", "db1").out
    assert f"  1. {IN_WORDS[1]}" in out
    assert "reaper_policy        -      on  control" in out


class TestMigration:
    def test_show_tells_of_steps_and_reaper(self, service: StubService, vmtune: Vmtune) -> None:
        records = [
            docs.step_record(),
            docs.step_record(None, "refused", reason="requested by a user", detail="not now"),
        ]
        record = docs.migration("completed", step_records=records, reaper=docs.reaper())
        service.on("GET", RECORD, record)
        out = vmtune("migration", "show", docs.MIGRATION).out
        assert "1  4.2 s  set downtime_limit_ms to 500 ms  done     4 iterations" in out
        assert "-  4.2 s  set downtime_limit_ms to 500 ms  refused  requested by a user; not" in out
        assert "reaper:               predict, rings of 65,536 entries" in out
        assert "  ended:              at the migration's end" in out
        assert "  rounds:             412, 1 before the migration" in out
        assert "  intervals:          50 to 1,000 ms, mean 190 ms; 7.2 ms per round" in out
        assert "  highest ring fill:  61%" in out
        assert "  full rings:         in 0 rounds" in out

    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            ({"end": "failed", "reason": "QEMU said no"}, "failed: QEMU said no"),
            ({"interruptions": 2}, "at the migration's end, after 2 interruptions"),
            ({"end": "interrupted"}, "interrupted"),
            ({"skipped_rounds": 3}, "3 skipped for another client's measurement"),
            ({"ring_full_exits": 1234}, "in 0 rounds; 1,234 ring-full exits"),
            ({"end": "not started", "reason": "no ring", "round_count": 0}, "rounds:  none"),
        ],
    )
    def test_a_reaper_that_did_not_run_well_says_so(
        self, changes: dict[str, Any], line: str
    ) -> None:
        assert line in "\n".join(reaper_lines(docs.reaper(**changes)))

    def test_rounds_are_listed(self, service: StubService, vmtune: Vmtune) -> None:
        service.on("GET", f"{RECORD}/rounds", page(docs.reaper_round(-50), docs.reaper_round(147)))
        out = vmtune("migration", "rounds", docs.MIGRATION).out
        assert "-50 ms            190 ms  7.5 ms  61% 2%" in out
        rows = vmtune("migration", "rounds", docs.MIGRATION, "--csv").out.splitlines()
        assert rows[0] == "at_ms,interval_ms,elapsed_ms,cost_ms,fills"
        assert len(rows) == 3

    def test_samples_of_disks_are_listed(self, service: StubService, vmtune: Vmtune) -> None:
        sample = {
            "at_ms": 2000, "target": "vda", "copied_bytes": 1 << 30, "total_bytes": 4 << 30,
            "bytes_per_s": 100 << 20, "written_bytes_per_s": 0,
        }  # fmt: skip
        service.on("GET", f"{RECORD}/disk-samples", page(sample))
        out = vmtune("migration", "samples", docs.MIGRATION, "--disks").out
        assert out.splitlines()[1].split() == (
            ["2,000", "ms", "vda", "1", "GiB", "4", "GiB", "100", "MiB/s", "0", "B/s"]
        )
        rows = vmtune("migration", "samples", docs.MIGRATION, "--disks", "--csv").out.splitlines()
        assert rows[0] == ",".join(sample)

    def test_values_are_set_on_the_way(self, service: StubService, vmtune: Vmtune) -> None:
        record = docs.migration("active", step_records=[docs.step_record(None)])
        service.on("PATCH", RECORD, record)
        ran = vmtune("migration", "set", docs.MIGRATION, "downtime_limit_ms=500ms")
        assert ran.code == 0
        assert service.only("PATCH", RECORD).body == {"values": {"downtime_limit_ms": "500ms"}}
        assert "set downtime_limit_ms to 500 ms  done" in ran.out
        assert vmtune("migration", "set", docs.MIGRATION).code != 0
        assert vmtune("migration", "set", docs.MIGRATION, "downtime_limit_ms-").code == 1

    @pytest.mark.parametrize("what", ["pause", "postcopy"])
    def test_the_guest_is_paused_or_moves_first(
        self, service: StubService, vmtune: Vmtune, what: str
    ) -> None:
        record = docs.migration("active", step_records=[docs.step_record(None)])
        service.on("PATCH", RECORD, record)
        ran = vmtune("migration", what, docs.MIGRATION)
        assert ran.code == 0
        assert service.only("PATCH", RECORD).body == {"do": what}

    def test_a_progress_line_has_the_reaper(self) -> None:
        assert progress_part({}) == ""
        data = {"reaper": {"interval_ms": 1190, "fullest": 0.614}}
        assert progress_part(data) == "rings 61% full every 1,190 ms"
        assert describe({**docs.progress(0.5)["data"], **data}).endswith("every 1,190 ms")


class TestRecover:
    def test_an_address_goes_along(self, service: StubService, vmtune: Vmtune) -> None:
        service.on("POST", f"{RECORD}/recovery", Reply(docs.migration("postcopy-paused")))
        ran = vmtune("migration", "recover", docs.MIGRATION, "--over", "192.0.2.7")
        assert (ran.code, ran.out) == (0, f"post-copy of migration {docs.MIGRATION} goes on\n")
        assert service.only("POST", f"{RECORD}/recovery").body == {"address": "192.0.2.7"}
