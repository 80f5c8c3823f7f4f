"""Short ids, near names, and what the shell completes: however a record is named."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.cli import root

ONE = "5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10"
TWO = "5f5b9999-6c0e-4c8f-9d1a-0d9f6a1c7e10"


@pytest.fixture
def migrations(service: StubService) -> StubService:
    rows = [docs.migration(id=id) for id in (ONE, TWO)]
    service.on("GET", "/migrations", page(*rows))
    for row in rows:
        path = f"/migrations/{row['id']}"
        service.on("GET", path, row)
        service.on("GET", f"{path}/samples", page())
        service.on("GET", f"{path}/rounds", page())
        service.on("PATCH", path, {**row, "step_records": []})
        service.on("POST", f"{path}/recovery", row)
        service.on("DELETE", path, row)
    return service


@pytest.mark.parametrize(
    ("command", "more"),
    [("show", ()), ("samples", ()), ("rounds", ()), ("set", ("downtime_limit_ms=1s",)),
     ("recover", ()), ("abort", ())],
)  # fmt: skip
@pytest.mark.usefixtures("migrations")
def test_a_migration_is_named_by_its_first_digits(
    vmtune: Vmtune, command: str, more: tuple[str, ...]
) -> None:
    ran = vmtune("migration", command, "5F5B1F", *more)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("5f5b", "2 migrations have ids that start with 5f5b", ONE),
        ("abcd", "no migration has an id that starts with abcd", "vmtune migration list"),
        ("../x", "is not the id of a migration", "at least its first 4 digits"),
    ],
)
@pytest.mark.usefixtures("migrations")
def test_what_names_no_migration_or_several_is_refused(
    vmtune: Vmtune, text: str, said: str, remedy: str
) -> None:
    ran = vmtune("migration", "abort", text)
    assert ran.code == 1
    assert ran.err.startswith("error: MIGRATION: ")
    assert said in ran.err
    assert remedy in ran.err


@pytest.mark.usefixtures("migrations")
def test_a_vms_name_stands_for_its_newest_migration(service: StubService, vmtune: Vmtune) -> None:
    rows = [{"id": TWO, "vm_name": "db10"}, {"id": ONE, "vm_name": "db1"}]
    service.on("GET", "/migrations", page(*rows))
    ran = vmtune("migration", "abort", "db1")
    assert (ran.code, ran.err) == (0, "")
    assert service.asked[-1].path.endswith(ONE)


@pytest.mark.parametrize("name", ["db-1", "cafe", "1234", TWO[:4]])
@pytest.mark.usefixtures("migrations")
def test_a_vms_name_comes_before_the_beginning_of_an_id(
    service: StubService, vmtune: Vmtune, name: str
) -> None:
    rows = [{"id": TWO, "vm_name": f"{name}0"}, {"id": ONE, "vm_name": name}]
    service.on("GET", "/migrations", page(*rows))
    ran = vmtune("migration", "abort", name)
    assert (ran.code, ran.err) == (0, "")
    assert service.asked[-1].path.endswith(ONE)


@pytest.mark.usefixtures("migrations")
def test_a_whole_id_is_not_looked_for_among_names(service: StubService, vmtune: Vmtune) -> None:
    assert vmtune("migration", "abort", TWO).code == 0
    assert [asked.path for asked in service.asked] == [f"/migrations/{TWO}"]


def test_an_application_and_an_evacuation_likewise(service: StubService, vmtune: Vmtune) -> None:
    record = {**docs.application(), "id": ONE}
    service.on("GET", "/applications", page(record))
    service.on("GET", f"/applications/{ONE}", record)
    service.on("GET", "/vms", page(problems=[]))
    service.on("POST", f"/applications/{ONE}/revert", {**record, "state": "reverted"})
    assert vmtune("application", "show", "5f5b1f5e").code == 0
    assert vmtune("revert", "5f5b1f5e").code == 0
    service.on("GET", "/evacuations", page({"id": ONE, "host": "a"}))
    service.on("POST", f"/hosts/a/evacuations/{ONE}/pause", {"host": "a", "state": "paused"})
    assert vmtune("evacuation", "pause", "5f5b1f5e").out == "the evacuation of a is paused\n"


def test_against_the_real_service(real: Api, vmtune: Vmtune) -> None:
    uuid = vmtune("vm", "list", "--json").document["items"][0]["uuid"]
    name = real.source.name
    assert vmtune("vm", "show", uuid[:8], "--json").document["uuid"] == uuid
    assert f"did you mean {name}?" in vmtune("vm", "show", name + "x").err
    assert vmtune("vm", "show", "0123abcd").code == 1
    assert vmtune("profile", "create", "fast", "multifd=on").code == 0
    for command in (("profile", "show", "fats"), ("apply", name, "--profile", "fats")):
        assert "did you mean fast?" in vmtune(*command).err
    assert vmtune("host", "add", "rack1", "qmp+unix:///fake/rack1").code == 0
    for command in (("host", "show", "rak1"), ("evacuate", "rak1"), ("migrate", name, "rak1")):
        ran = vmtune(*command)
        assert "did you mean rack1?" in ran.err, command
        assert ran.code == 1


def test_no_name_is_near_where_the_service_has_none(service: StubService, vmtune: Vmtune) -> None:
    unknown = {"field": "host", "message": "there is no host named zz", "remedy": "list them"}
    service.on("GET", "/hosts/zz", refusal(404, unknown))
    service.on("GET", "/hosts", page(docs.host("rack1")))
    assert "remedy: list them\n" in vmtune("host", "show", "zz").err
    service.on("GET", "/hosts", refusal(403, {"message": "no"}))
    assert "remedy: list them\n" in vmtune("host", "show", "zz").err


def _completed(words: tuple[str, ...]) -> list[str]:
    completion = ShellComplete(root, {}, "vmtune", "_VMTUNE_COMPLETE")
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("vm", "show", "d"), ["db1", "db2"]),
        (("migrate", "db2"), ["db2"]),
        (("migration", "list", "--vm", "x"), []),
        (("revert", "db1"), ["db1"]),
        (("migration", "show", "5"), ["5f5b1f5e", "5f5b9999"]),
        (("migrate", "db1", "rack"), ["rack1"]),
        (("host", "list", "-o", "j"), ["json"]),
    ],
)
def test_the_shell_completes_names(
    migrations: StubService,
    words: tuple[str, ...],
    found: list[str],
) -> None:
    rows = [docs.vm("db1"), docs.vm("db2", TWO), docs.vm("db1", host="rack2")]
    migrations.on("GET", "/vms", page(*rows, problems=[]))
    migrations.on("GET", "/hosts", page(docs.host("rack1")))
    assert _completed(words) == found


@pytest.mark.parametrize(
    ("typed", "above", "meant"),
    [
        (("migratoin", "list"), "vmtune", "migration"),
        (("vm", "lst"), "vmtune vm", "list"),
        (("bench", "schedule", "lst"), "vmtune bench schedule", "list"),
        (("db", "bakup"), "vmtune db", "backup"),
    ],
)
def test_a_mistyped_command_gets_near_names(
    vmtune: Vmtune, typed: tuple[str, ...], above: str, meant: str
) -> None:
    ran = vmtune(*typed)
    assert ran.code == 1
    said, remedy = ran.err.splitlines()
    wrong = next(word for word in typed if word not in above.split())
    assert said == f"error: {above} has no command {wrong}"
    suggested, _, see = remedy.partition("?; ")
    assert suggested.startswith("  remedy: did you mean ")
    assert meant in suggested.split()
    assert see == f"see `{above} --help`"


def test_a_command_of_a_group_is_found_without_its_group(vmtune: Vmtune) -> None:
    told = vmtune("campaign", "list").err
    assert "remedy: did you mean bench campaign?; see `vmtune --help`" in told


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("status", "health"), ("ls", "vm list"), ("show", "vm show"), ("ps", "migration list")],
)
def test_what_people_type_at_first_leads_to_a_command(
    vmtune: Vmtune, typed: str, meant: str
) -> None:
    assert f"remedy: did you mean {meant}" in vmtune(typed).err
    assert vmtune(*meant.split(), "--help").code == 0


def test_a_command_like_no_other_gets_the_help_page(vmtune: Vmtune) -> None:
    ran = vmtune("xyzzy")
    assert ran.err == "error: vmtune has no command xyzzy\n  remedy: see `vmtune --help`\n"


def test_a_mistyped_word_for_a_file_or_a_command_gets_near_names(vmtune: Vmtune) -> None:
    ran = vmtune("bench", "campaign", "resmue")
    assert "remedy: did you mean resume?; give your own file" in ran.err
