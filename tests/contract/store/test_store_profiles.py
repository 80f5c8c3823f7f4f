from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vmtune.errors import Conflict, DuplicateName, InvalidInput, NotFound, StaleRevision
from vmtune.model.migration.intent import Intent
from vmtune.model.profile import Subject, Target, explain
from vmtune.model.tunables.tunable import Value
from vmtune.storage import Store

VM = UUID("00000000-0000-4000-8000-00000000000a")


def test_a_profile_comes_back_as_it_was_created(store: Store) -> None:
    made = store.profiles.create("tuned", "with multifd", {"multifd": True}, "first")
    assert store.profiles.get("tuned") == made
    assert (made.description, made.current.number, made.current.note) == (
        "with multifd", 1, "first")  # fmt: skip
    assert made.etag == '"1"'
    assert made.created_at == made.current.created_at or made.created_at.tzinfo is not None


def test_true_one_and_the_word_one_stay_three_things_in_their_order(store: Store) -> None:
    values: dict[str, Value] = {
        "z": True,
        "b": 1,
        "c": "1",
        "a": False,
        "d": 0,
        "e": "",
        "f": 1 << 62,
    }
    store.profiles.create("p", "", values)
    found = store.profiles.get("p").current.values
    assert [(name, type(value), value) for name, value in found.items()] == [
        (name, type(value), value) for name, value in values.items()
    ]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    values=st.dictionaries(
        st.text(min_size=1, max_size=30),
        st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(max_size=300),
    )
)
def test_any_values_come_back(store: Store, values: dict[str, Value]) -> None:
    name = f"p{len(store.profiles.list(limit=1000).items)}"
    store.profiles.create(name, "", values)
    found = store.profiles.get(name).current.values
    assert list(found.items()) == list(values.items())
    assert [type(value) for value in found.values()] == [type(v) for v in values.values()]


def test_a_profile_name_is_taken_once(store: Store) -> None:
    store.profiles.create("p", "", {})
    with pytest.raises(DuplicateName, match="named p already"):
        store.profiles.create("p", "", {"multifd": True})
    assert store.profiles.get("p").current.values == {}


def test_what_is_not_there_is_not_found(store: Store) -> None:
    store.profiles.create("p", "", {})
    with pytest.raises(NotFound, match="no profile named q"):
        store.profiles.get("q")
    with pytest.raises(NotFound, match="no profile named q"):
        store.profiles.revise("q", {})
    with pytest.raises(NotFound, match="no profile named q"):
        store.profiles.delete("q")
    with pytest.raises(NotFound, match="no profile named q"):
        store.profiles.revisions("q")
    with pytest.raises(NotFound, match="p has no revision 2"):
        store.profiles.revision("p", 2)
    with pytest.raises(InvalidInput):
        store.profiles.revision("p", 1 << 70)


def test_each_change_of_values_is_a_revision_and_older_ones_stay(store: Store) -> None:
    first = store.profiles.create("p", "", {"multifd": True}, "one").current
    second = store.profiles.revise("p", {"multifd": 1}, "two", expected=1)
    assert second.current.number == 2
    assert store.profiles.get("p") == second
    assert store.profiles.revision("p", 1) == first
    assert store.profiles.revision("p", 1).values["multifd"] is True
    assert store.profiles.revisions("p").items == (second.current, first)


def test_the_same_values_make_no_revision(store: Store) -> None:
    made = store.profiles.create("p", "old", {"a": 1, "b": 2}, "one")
    assert store.profiles.revise("p", {"b": 2, "a": 1}, "again", expected=1) == made
    described = store.profiles.revise("p", {"a": 1, "b": 2}, expected=1, description="new")
    assert (described.description, described.current) == ("new", made.current)
    assert store.profiles.get("p") == described


def test_a_stale_change_is_refused_and_changes_nothing(store: Store) -> None:
    store.profiles.create("p", "old", {})
    now = store.profiles.revise("p", {"a": 1}, expected=1)
    with pytest.raises(StaleRevision, match="at revision 2, not 1") as caught:
        store.profiles.revise("p", {"a": 2}, expected=1, description="new")
    assert caught.value.problems[0].field == "If-Match"
    assert store.profiles.get("p") == now
    assert store.profiles.revise("p", {"a": 2}).current.number == 3


def test_profiles_are_found_by_part_of_name_or_description(store: Store) -> None:
    store.profiles.create("alpha", "For DB hosts", {})
    store.profiles.create("beta", "100% more", {})
    store.profiles.create("gamma_1", "", {})

    def names(contains: str) -> list[str]:
        return [found.name for found in store.profiles.list(contains=contains).items]

    assert names("") == ["alpha", "beta", "gamma_1"]
    assert names("PHA") == ["alpha"]
    assert names("db HOST") == ["alpha"]
    assert names("%") == ["beta"]
    assert names("_") == ["gamma_1"]
    assert names("zzz") == []


def test_profiles_and_revisions_are_paged(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.profiles.create(name, "", {})
    store.profiles.revise("a", {"x": 1})
    store.profiles.revise("a", {"x": 2})
    first = store.profiles.list(limit=2)
    rest = store.profiles.list(first.next, limit=2)
    assert [p.name for p in first.items + rest.items] == ["a", "b", "c"]
    assert rest.next is None
    newest = store.profiles.revisions("a", limit=2)
    oldest = store.profiles.revisions("a", newest.next, limit=2)
    assert [r.number for r in newest.items + oldest.items] == [3, 2, 1]
    assert oldest.next is None


def test_a_deleted_profile_keeps_its_revisions_and_frees_its_name(store: Store) -> None:
    first = store.profiles.create("p", "old", {"multifd": True}).current
    store.profiles.delete("p")
    with pytest.raises(NotFound):
        store.profiles.get("p")
    with pytest.raises(NotFound):
        store.profiles.delete("p")
    with pytest.raises(NotFound):
        store.assignments.add(Target.DEFAULT, "", "p")
    assert store.profiles.list().items == ()
    assert store.profiles.revision("p", 1) == first
    assert store.profiles.revisions("p").items == (first,)

    again = store.profiles.create("p", "new", {"multifd": False})
    assert (again.current.number, again.description) == (2, "new")
    assert again.created_at > first.created_at
    assert store.profiles.revision("p", 1) == first
    with pytest.raises(StaleRevision):
        store.profiles.revise("p", {}, expected=1)


def test_a_profile_in_use_cannot_be_deleted(store: Store) -> None:
    store.profiles.create("p", "", {})
    made = store.assignments.add(Target.HOST, "rack7", "p")
    with pytest.raises(Conflict, match="used by the assignment to host rack7"):
        store.profiles.delete("p")
    store.assignments.remove(made.id)
    store.profiles.delete("p")


def test_an_assignment_comes_back_as_it_was_made(store: Store) -> None:
    store.profiles.create("p", "", {})
    made = [
        store.assignments.add(Target.DEFAULT, "", "p"),
        store.assignments.add(Target.VM, str(VM).upper(), "p"),
        store.assignments.add(Target.SELECTOR, " zone=a , tier=db", "p"),
        store.assignments.add(Target.HOST, "rack7", "p", Intent(500, 60)),
    ]
    assert [found.intent for found in made] == [None, None, None, Intent(500, 60)]
    assert [found.key for found in made] == ["", str(VM), "tier=db,zone=a", "rack7"]
    assert store.assignments.all() == tuple(made)
    assert store.assignments.list().items == tuple(made)
    assert store.assignments.get(made[2].id) == made[2]
    chosen = explain(store.assignments.all(), Subject(VM, "rack7"))
    assert chosen.winner == made[1]


@pytest.mark.parametrize(
    ("target", "key"),
    [
        (Target.VM, "guest"),
        (Target.SELECTOR, "tier"),
        (Target.HOST, "No Host"),
        (Target.DEFAULT, "x"),
    ],
)
def test_a_key_that_cannot_name_its_target_is_refused(
    store: Store, target: Target, key: str
) -> None:
    store.profiles.create("p", "", {})
    with pytest.raises(InvalidInput) as caught:
        store.assignments.add(target, key, "p")
    assert caught.value.problems[0].field == "key"
    assert store.assignments.all() == ()


def test_an_assignment_needs_its_profile(store: Store) -> None:
    with pytest.raises(NotFound, match="no profile named p") as caught:
        store.assignments.add(Target.DEFAULT, "", "p")
    assert caught.value.problems[0].field == "profile"


@pytest.mark.parametrize(
    ("target", "one", "same"),
    [
        (Target.DEFAULT, "", ""),
        (Target.VM, str(VM), VM.hex),
        (Target.SELECTOR, "a=1,b=2", "b=2,a=1"),
        (Target.HOST, "rack7", "rack7"),
    ],
)
def test_a_target_is_assigned_once(store: Store, target: Target, one: str, same: str) -> None:
    store.profiles.create("p", "", {})
    store.profiles.create("q", "", {})
    made = store.assignments.add(target, one, "p")
    for profile in ("p", "q"):
        with pytest.raises(DuplicateName, match=f"number {made.id}, profile p"):
            store.assignments.add(target, same, profile)


def test_selectors_that_could_tie_are_refused(store: Store) -> None:
    store.profiles.create("p", "", {})
    store.profiles.create("q", "", {})
    made = store.assignments.add(Target.SELECTOR, "tier=db", "p")
    with pytest.raises(Conflict, match=f"number {made.id}") as caught:
        store.assignments.add(Target.SELECTOR, "zone=a", "q")
    assert caught.value.problems[0].code == "tied_assignments"
    store.assignments.add(Target.SELECTOR, "zone=a", "p")
    store.assignments.add(Target.SELECTOR, "tier=web,zone=b", "q")
    store.assignments.add(Target.HOST, "tier", "q")


def test_assignments_are_filtered_and_paged(store: Store) -> None:
    store.profiles.create("p", "", {})
    store.profiles.create("q", "", {})
    made = [store.assignments.add(Target.HOST, f"h{n}", "pq"[n % 2]) for n in range(5)]
    assert store.assignments.list(profile="q").items == (made[1], made[3])
    first = store.assignments.list(limit=3)
    rest = store.assignments.list(after=first.next, limit=3)
    assert first.items + rest.items == tuple(made)
    assert rest.next is None


def test_the_number_of_a_removed_assignment_is_not_given_again(store: Store) -> None:
    store.profiles.create("p", "", {})
    first = store.assignments.add(Target.DEFAULT, "", "p")
    store.assignments.remove(first.id)
    assert store.assignments.add(Target.DEFAULT, "", "p").id > first.id
    for call in (store.assignments.get, store.assignments.remove):
        with pytest.raises(NotFound, match=f"no assignment number {first.id}"):
            call(first.id)
