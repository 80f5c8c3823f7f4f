"""Tunable packs: what is read, and what is refused, with file, line, column and key path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput, SetupError
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.access import (
    Command,
    CommandAccess,
    QomAccess,
    consent_to_qom,
    filled_in,
)
from vmtune.model.tunables.packs.pack import FORMAT, Pack, _Reader, needed_consents, read_toml
from vmtune.model.tunables.packs.position import Position, locate, positions
from vmtune.model.tunables.tunable import Kind, QmpKind, Route, Side
from vmtune.model.versions import Version
from vmtune.packs import load, read_file, shipped
from vmtune.units import Unit

PACK = """\
format = 1
name = "mine"
title = "What my QEMU has"

[[tunable]]
name = "stats_interval_s"
title = "Interval of statistics"
why = "How often the guest is asked."
type = "integer"
unit = "s"
minimum = 0
maximum = 86400
default = 0
[tunable.qom]
types = ["virtio-balloon-pci", "virtio-balloon-ccw"]
property = "guest-stats-polling-interval"

[[tunable]]
name = "gear"
title = "Gear"
why = "How hard it works."
type = "choice"
choices = ["low", "high"]
route = "monitor"
side = "both"
since = "10.0"
until = "10.2.1"
overwriter = "somebody"
[tunable.command]
read = {execute = "x-query-gear", result = "now.gear"}
apply = {execute = "x-set-gear", arguments = {gear = "$value", more = [1, {deep = "$value"}]}}

[[tunable]]
name = "turns_count"
title = "Turns"
why = "How often it turned."
type = "integer"
unit = "count"
minimum = 0
maximum = 100
read_only = true
[tunable.command]
read = {execute = "x-query-turns"}
"""


def test_all_that_a_pack_may_say_is_read() -> None:
    pack = read_toml(PACK, "mine.toml")
    stats, gear, turns = pack.tunables
    assert (pack.name, pack.title, stats.pack) == ("mine", "What my QEMU has", "mine")
    assert (stats.kind, stats.unit, stats.default) == (Kind.INTEGER, Unit.S, 0)
    assert (stats.route, stats.side, stats.since) == (Route.LIVE, Side.SOURCE, Version(7, 2))
    assert stats.access == QomAccess(
        ("virtio-balloon-pci", "virtio-balloon-ccw"), "guest-stats-polling-interval"
    )
    assert stats.qmp is not None
    assert stats.qmp.kind is QmpKind.QOM
    assert stats.accept("2min") == 120
    assert (gear.route, gear.side, gear.overwriter) == (Route.MONITOR, Side.BOTH, "somebody")
    assert (gear.since, gear.until) == (Version(10), Version(10, 2, 1))
    assert isinstance(gear.access, CommandAccess)
    assert gear.access.read == Command("x-query-gear", {}, "now.gear")
    assert gear.access.apply is not None
    assert filled_in(dict(gear.access.apply.arguments), "high") == {
        "gear": "high",
        "more": [1, {"deep": "high"}],
    }
    assert turns.read_only
    assert turns.allowed() == "nothing; it can only be read"
    with pytest.raises(ValueError, match="can only be read"):
        turns.accept(3)


def test_consent_is_needed_to_set_to_make_and_to_send() -> None:
    stats, gear, turns = read_toml(PACK, "x").tunables
    assert needed_consents(stats) == {
        "qom:virtio-balloon-pci.guest-stats-polling-interval",
        "qom:virtio-balloon-ccw.guest-stats-polling-interval",
    }
    assert needed_consents(gear) == {"x-query-gear", "x-set-gear"}
    assert needed_consents(turns) == {"x-query-turns"}
    assert QomAccess(("t",), "p", create="id").consents == {"qom:t", "qom:t.p"}
    assert consent_to_qom("t.p") == "qom:t.p"


def change(old: str, new: str, nth: int = 1) -> str:
    parts = PACK.split(old)
    assert len(parts) > nth, old
    return old.join(parts[:nth]) + new + old.join(parts[nth:])


REFUSED: list[tuple[str, str, int, str, str]] = [
    # (text, key path, line, code, a word of the message)
    (change("format = 1", "format = 2"), "format", 1, "invalid_value", "1 to 1"),
    (change('name = "mine"', 'name = "M!"'), "name", 2, "invalid_value", "dashes"),
    (change('title = "What', 'tittle = "What'), "tittle", 3, "unknown_field", "tittle"),
    (change('type = "integer"', 'type = "float"'), "tunable.0.type", 9, "not_a_choice", "float"),
    (change('unit = "s"', 'unit = "h"'), "tunable.0.unit", 10, "not_a_choice", "'h'"),
    (change('unit = "s"', 'unit = "ms"'), "tunable.0.name", 6, "name_without_unit", "unit"),
    (change("minimum = 0", "minimum = 90000"), "tunable.0.minimum", 11, "contradiction", "above"),
    (change("minimum = 0\n", ""), "tunable.0.minimum", 5, "missing", "minimum"),
    (change("maximum = 86400", "maximum = 1e3"), "tunable.0.maximum", 12, "invalid_value", "1000"),
    (change("default = 0", "default = 86401"), "tunable.0.default", 13, "invalid_value", "most"),
    (change("default = 0", "defalt = 0"), "tunable.0.defalt", 13, "unknown_field", "defalt"),
    (change('property = "guest', 'property = "../'), "tunable.0.qom.property", 16,
     "invalid_value", "name of QEMU's"),
    (change('["virtio-balloon-pci", "virtio-balloon-ccw"]', "[]"), "tunable.0.qom.types", 15,
     "missing", "no type"),
    (change('"virtio-balloon-ccw"', "3"), "tunable.0.qom.types.1", 15, "invalid_value", "not text"),
    (change('name = "gear"', 'name = "stats_interval_s"'), "tunable.1.name", 19,
     "duplicate_name", "twice"),
    (change('name = "gear"', 'name = "multifd"'), "tunable.1.name", 19, "shadowing_name", "own"),
    (change('name = "gear"', 'name = "Gear"'), "tunable.1.name", 19, "invalid_value", "underscore"),
    (change('choices = ["low", "high"]\n', ""), "tunable.1.choices", 18, "missing", "choices"),
    (change('"low", "high"', '"low", "low"'), "tunable.1.choices", 23, "invalid_value", "differ"),
    (change('why = "How hard it works."', 'why = "Hard"'), "tunable.1.why", 21, "invalid_value",
     "sentence"),
    (change('why = "How hard it works."', 'why = " "'), "tunable.1.why", 21, "missing", "empty"),
    (change('route = "monitor"', 'route = "boot"'), "tunable.1.route", 24, "not_a_choice", "boot"),
    (change('side = "both"', 'side = "destination"'), "tunable.1.side", 25, "not_a_choice", "dest"),
    (change('since = "10.0"', 'since = "ten"'), "tunable.1.since", 26, "invalid_value", "version"),
    (change("[tunable.command]\nread", "[tunable.comand]\nread"), "tunable.1.comand", 29,
     "unknown_field", "comand"),
    (change('result = "now.gear"', 'result = "now..gear"'), "tunable.1.command.read.result", 30,
     "invalid_value", "dots"),
    (change("more = [1,", "more = [nan,"), "tunable.1.command.apply.arguments.more.0", 31,
     "invalid_value", "JSON"),
    (change("more = [1,", "more = [2026-01-01,"), "tunable.1.command.apply.arguments.more.0", 31,
     "invalid_value", "JSON"),
    (change('"$value"', '"value"', 1).replace('"$value"', '"value"'),
     "tunable.1.command.apply.arguments", 31, "missing", "nothing would be set"),
    (change("read_only = true", "read_only = 1"), "tunable.2.read_only", 41, "invalid_value", "is"),
    (change("read_only = true\n", ""), "tunable.2.command", 41, "contradiction", "apply"),
    (change("read_only = true", "read_only = true\ndefault = 3"), "tunable.2.default", 42,
     "contradiction", "counter"),
    (change('[tunable.command]\nread = {execute = "x-query-turns"}', "", 1), "tunable.2", 33,
     "not_one", "not 0"),
    ("format = 1\nname = 'x'\ntitle = 'x'\ntunable = []", "tunable", 4, "missing", "without"),
    ("format = 1\nname = 'x'\ntitle = 'x'\n", "tunable", 1, "missing", "tunable is missing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "line", "code", "word"),
    REFUSED,
    ids=[f"{i}-{r[1]}" for i, r in enumerate(REFUSED)],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str, path: str, line: int, code: str, word: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "mine.toml")
    found = {p.field: p for p in caught.value.problems}
    assert path in found, found
    problem = found[path]
    assert problem.code == code
    assert problem.message.startswith(f"mine.toml:{line}:1: ")
    assert word in problem.message + problem.remedy
    assert problem.remedy


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("format = 1\n  = 3\n", "2:3"),
        ('format = 1\nname = "x', "2:10"),
        ("[a\n", "1:3"),
        ("a = 1\na = 2\n", "2:6"),
    ],
)
def test_what_is_no_toml_is_told_with_line_and_column(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "mine.toml")
    (problem,) = caught.value.problems
    assert problem.code == "not_toml"
    assert problem.message.startswith(f"mine.toml:{place}: ")


def test_an_object_that_is_made_needs_a_default_and_keeps_no_members() -> None:
    made = change('property = "guest', 'create = "o"\nproperty = "guest')
    assert read_toml(made, "x").tunables[0].access == QomAccess(
        ("virtio-balloon-pci", "virtio-balloon-ccw"), "guest-stats-polling-interval", create="o"
    )
    for wrong, field in (
        (made.replace("default = 0\n", ""), "tunable.0.default"),
        (made.replace("create", 'member = "m"\ncreate'), "tunable.0.qom.create"),
    ):
        with pytest.raises(InvalidInput) as caught:
            read_toml(wrong, "x")
        assert [p.field for p in caught.value.problems] == [field]


def test_positions_step_over_strings_of_several_lines() -> None:
    text = 'a = """\n[[tunable]]\nb = 1\n"""\n'
    text += "[[tunable]]\nb = 2\n  [tunable.qom]\n  c.d = 3\n[[tunable]]\nb = 4\n"
    found = positions(text)
    assert found["tunable.0"] == Position(5, 1)
    assert found["tunable.0.b"] == Position(6, 1)
    assert found["tunable.0.qom"] == Position(7, 3)
    assert found["tunable.0.qom.c.d"] == Position(8, 3)
    assert found["tunable.1.b"] == Position(10, 1)
    assert "b" not in found
    assert locate(found, "tunable.1.qom.types.3") == Position(9, 1)
    assert locate(found, "nothing.here") == Position(1, 1)


@given(st.text(max_size=400))
def test_no_text_makes_a_traceback(text: str) -> None:
    read_or_refused(text)


WORDS = st.sampled_from(
    ["", "x", "1", "true", '"s"', "[]", "{}", "[[tunable]]", "[tunable.qom]", "= 3", '"""', "nan",
     "1979-05-27", "[" * 200, '"$value"', "name = 3", 'type = "choice"', "a.b.c = 1", "\0", "#"]
)  # fmt: skip


@given(st.integers(0, len(PACK)), st.integers(0, 60), WORDS)
def test_no_cut_or_patched_pack_makes_a_traceback(at: int, length: int, word: str) -> None:
    read_or_refused(PACK[:at] + word + PACK[at + length :])


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(),
    st.sampled_from(["integer", "choice", "s", "count", "live", "$value", "x-y"]),
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["name", "title", "why", "type", "unit", "minimum", "maximum", "default", "choices",
                 "qom", "command", "read", "apply", "execute", "arguments", "types", "property"]
            ),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(TREES, max_size=3))
def test_no_tree_makes_a_traceback(tunables: list[object]) -> None:
    reader = _Reader()
    pack = reader.pack({"format": 1, "name": "x", "title": "x", "tunable": tunables})
    if not reader.problems:
        well_formed(pack)


def read_or_refused(text: str) -> None:
    try:
        well_formed(read_toml(text, "f"))
    except InvalidInput as error:
        for problem in error.problems:
            assert problem.code
            assert problem.message.startswith("f:") or problem.code == "too_long"


def well_formed(pack: Pack) -> None:
    """What is accepted can be loaded."""
    tunables = BUILT_IN.with_packs(pack.tunables)
    for row in pack.tunables:
        assert tunables.row(row.name) == row
        assert row.allowed()
        assert row.probe


def test_a_registry_with_packs_is_another_one() -> None:
    rows = read_toml(PACK, "x").tunables
    tunables = BUILT_IN.with_packs(rows)
    assert list(tunables)[-3:] == ["stats_interval_s", "gear", "turns_count"]
    assert list(tunables)[:-3] == list(BUILT_IN)
    assert {row.name for row in tunables.on(Route.LIVE)} > {
        row.name for row in BUILT_IN.on(Route.LIVE)
    }
    with pytest.raises(SetupError):
        BUILT_IN.row("gear")


@pytest.mark.parametrize(
    "other",
    [
        change('title = "Gear"', 'title = "Other"'),  # the same name, another row
        PACK.replace('"gear"', '"gear_too"'),  # another name for the same place in QEMU
    ],
)
def test_two_packs_cannot_have_one_name_or_one_place(other: str) -> None:
    one, two = read_toml(PACK, "x"), read_toml(other, "y")
    with pytest.raises(InvalidInput) as caught:
        BUILT_IN.with_packs(one.tunables).with_packs(two.tunables)
    assert caught.value.problems[0].code == "shadowing_name"


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_packs_that_come_with_vmtune_are_good(name: str) -> None:
    (pack,) = load([name])
    assert pack.name == name
    well_formed(pack)
    documented = shipped()[name].read_text()
    for consent in pack.consents:
        assert f'"{consent.removeprefix("qom:")}"' in documented.split("format = 1")[0]


def test_packs_are_read_from_files_and_folders(pack_folder: Callable[..., object]) -> None:
    folder = pack_folder(a=PACK, b=PACK.replace('"mine"', '"yours"'))
    assert [p.name for p in load([str(folder)])] == ["mine", "yours"]
    assert [p.name for p in load([f"{folder}/a.toml"])] == ["mine"]
    with pytest.raises(InvalidInput) as caught:
        load([f"{folder}/a.toml", str(folder), "nothing", f"{folder}/none.toml"])
    assert [p.code for p in caught.value.problems] == [
        "duplicate_name", "unknown_pack", "unreadable",
    ]  # fmt: skip


@pytest.fixture
def pack_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    def made(**files: str) -> object:
        folder = tmp_path_factory.mktemp("packs")
        for name, text in files.items():
            (folder / f"{name}.toml").write_text(text)
        return folder

    return made


def test_a_file_that_is_no_text_or_too_long_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "binary.toml").write_bytes(b"\xff\xfe")
    (folder / "long.toml").write_text("#" * ((1 << 20) + 1))
    (folder / "huge.toml").write_text("#" * ((4 << 20) + 1))
    for name, code in (("binary", "not_toml"), ("long", "too_long"), ("huge", "too_long")):
        with pytest.raises(InvalidInput) as caught:
            read_file(folder / f"{name}.toml")
        assert caught.value.problems[0].code == code
    with pytest.raises(InvalidInput):
        read_file(folder)
    assert FORMAT == 1
