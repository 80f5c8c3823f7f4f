"""Rights: they only ever narrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.access.scopes import (
    EVERYTHING,
    FULL,
    NONE,
    Identity,
    Kind,
    Reach,
    Rights,
    Scope,
    check_scopes,
    with_implied,
)

NAMES = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(st.sampled_from(["tier", "zone"]), st.sampled_from(["1", "2"]))
REACHES = st.builds(
    Reach,
    st.none() | st.frozensets(NAMES),
    LABELS.map(lambda labels: frozenset(labels.items())),
)
RIGHTS = st.builds(Rights, st.frozensets(st.sampled_from(Scope)), REACHES)


@given(RIGHTS, RIGHTS, NAMES, LABELS, st.sampled_from(Scope))
def test_the_intersection_allows_what_both_allow(
    one: Rights, two: Rights, host: str, labels: dict[str, str], scope: Scope
) -> None:
    both = one & two
    assert both.allow(scope) == (one.allow(scope) and two.allow(scope))
    assert both.reach.has_host(host) == (one.reach.has_host(host) and two.reach.has_host(host))
    assert both.reach.has_vm(host, labels) == (
        one.reach.has_vm(host, labels) and two.reach.has_vm(host, labels)
    )
    assert both.is_within(one)
    assert both.is_within(two)


@given(RIGHTS, RIGHTS, NAMES, LABELS, st.sampled_from(Scope))
def test_what_is_within_allows_nothing_more(
    one: Rights, two: Rights, host: str, labels: dict[str, str], scope: Scope
) -> None:
    if one.is_within(two):
        assert not one.allow(scope) or two.allow(scope)
        assert not one.reach.has_vm(host, labels) or two.reach.has_vm(host, labels)


@given(RIGHTS)
def test_everything_and_nothing_are_the_ends(rights: Rights) -> None:
    assert (rights & FULL).is_within(rights)
    assert rights.is_within(rights & FULL)
    assert rights.is_within(FULL)
    assert not any((rights & NONE).allow(scope) for scope in Scope)


def test_every_scope_includes_reading_and_admin_includes_all() -> None:
    alone = {Scope.METRICS, Scope.HOOK}
    for scope in set(Scope) - alone:
        assert {Scope.READ, Scope.METRICS} <= with_implied({scope})
    assert [with_implied({scope}) for scope in sorted(alone)] == [{Scope.HOOK}, {Scope.METRICS}]
    assert with_implied(alone) == alone
    assert with_implied({Scope.ADMIN}) == frozenset(Scope)
    assert with_implied({Scope.MIGRATE}) == {Scope.MIGRATE, Scope.READ, *alone}
    assert with_implied(()) == frozenset()


def test_two_values_of_one_label_are_no_vm() -> None:
    torn = Reach(labels=frozenset({("tier", "db")})) & Reach(labels=frozenset({("tier", "web")}))
    assert not torn.has_vm("a", {"tier": "db"})
    assert not torn.has_vm("a", {"tier": "web"})
    assert EVERYTHING.is_everything
    assert not torn.is_everything
    assert not Reach(frozenset()).has_host("a")


def test_scopes_are_read_by_name() -> None:
    assert check_scopes(["read", "migrate"]) == {Scope.READ, Scope.MIGRATE}
    with pytest.raises(InvalidInput) as caught:
        check_scopes(["read", "root", "wheel"])
    assert [p.field for p in caught.value.problems] == ["scopes.1", "scopes.2"]
    assert "migrate" in caught.value.problems[0].remedy
    with pytest.raises(InvalidInput, match="at least one"):
        check_scopes([])


def test_an_identity_reads_well() -> None:
    assert str(Identity(Kind.USER, "0", "root")) == "user 0 (root)"
    assert str(Identity(Kind.NOBODY, "")) == "nobody"
