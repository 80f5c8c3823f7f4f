"""Access rights: scopes, and the hosts and VMs to which they apply.

Rights only ever narrow: what a token may do is what it was given, and of that what its
creator may do at that moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from vmtune.errors import InvalidInput, Problem


class Scope(StrEnum):
    """One kind of permitted action."""

    READ = "read"
    PROFILE = "profile"
    APPLY = "apply"
    MIGRATE = "migrate"
    BENCH = "bench"
    HOST = "host"
    METRICS = "metrics"
    HOOK = "hook"
    ADMIN = "admin"


MEANINGS: Mapping[Scope, str] = {
    Scope.READ: "see hosts, VMs, profiles, plans and what was done",
    Scope.PROFILE: "write profiles, and assign them",
    Scope.APPLY: "apply profiles to VMs, and revert that",
    Scope.MIGRATE: "start live migrations, and abort them",
    Scope.BENCH: "write scenarios, and run benchmarks",
    Scope.HOST: "add and remove hosts, and label VMs",
    Scope.METRICS: "read the metrics, and nothing else",
    Scope.HOOK: "ask as libvirt's hook, and nothing else",
    Scope.ADMIN: "everything, tokens and the audit log among it",
}
assert set(MEANINGS) == set(Scope), "a scope without its meaning"

ALL_SCOPES = frozenset(Scope)
_ALONE = frozenset({Scope.METRICS, Scope.HOOK})
"""Those of programs that see nothing else."""


def with_implied(scopes: Collection[Scope]) -> frozenset[Scope]:
    """*scopes* with those that they include: all but ``metrics`` and ``hook`` include reading (who
    changes something has to see it), reading includes the metrics, ``migrate`` includes ``hook``,
    and ``admin`` includes all."""
    if Scope.ADMIN in scopes:
        return ALL_SCOPES
    if set(scopes) <= _ALONE:
        return frozenset(scopes)
    hook = {Scope.HOOK} if Scope.MIGRATE in scopes else set()
    return frozenset({*scopes, *hook, Scope.READ, Scope.METRICS})


def check_scopes(given: Collection[str], what: str = "scopes") -> frozenset[Scope]:
    """The scopes of these names.

    :raise InvalidInput: naming each that is none; or there is none at all.
    """
    known = [scope.value for scope in Scope]
    choices = f"choose from {', '.join(known)}"
    if not given:
        raise InvalidInput("at least one scope is needed", field=what, remedy=choices)
    problems = [
        Problem(f"{what}.{index}", "not_a_choice", f"{name[:60]!r} is not a scope", choices)
        for index, name in enumerate(given)
        if name not in known
    ]
    if problems:
        raise InvalidInput("a scope is unknown", problems=problems)
    return frozenset(map(Scope, given))


@dataclass(frozen=True, slots=True)
class Reach:
    """The hosts and VMs that rights hold for.

    :param hosts: names; None for all.
    :param labels: pairs that a VM must have, all of them; empty for all VMs. Two values of
        one label are more than a VM can have: such a reach has no VM.
    """

    hosts: frozenset[str] | None = None
    labels: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_everything(self) -> bool:
        """There is no restriction."""
        return self.hosts is None and not self.labels

    def has_host(self, name: str) -> bool:
        """Whether the host is within it."""
        return self.hosts is None or name in self.hosts

    def has_vm(self, host: str, labels: Mapping[str, str]) -> bool:
        """Whether a VM on *host* with these labels is within it."""
        return self.has_host(host) and self.labels <= set(labels.items())

    def __and__(self, other: Reach) -> Reach:
        """What is within both."""
        if self.hosts is None or other.hosts is None:
            hosts = other.hosts if self.hosts is None else self.hosts
        else:
            hosts = self.hosts & other.hosts
        return Reach(hosts, self.labels | other.labels)

    def is_within(self, other: Reach) -> bool:
        """Whether *other* has everything that this has."""
        return self & other == self


EVERYTHING = Reach()


@dataclass(frozen=True, slots=True)
class Rights:
    """What a caller may do, and where."""

    scopes: frozenset[Scope] = frozenset()
    reach: Reach = EVERYTHING

    def allow(self, scope: Scope) -> bool:
        """Whether they include *scope*."""
        return scope in with_implied(self.scopes)

    def __and__(self, other: Rights) -> Rights:
        """What both allow."""
        scopes = with_implied(self.scopes) & with_implied(other.scopes)
        return Rights(scopes, self.reach & other.reach)

    def is_within(self, other: Rights) -> bool:
        """Whether *other* allows everything that these allow."""
        mine, theirs = with_implied(self.scopes), with_implied(other.scopes)
        return mine <= theirs and self.reach.is_within(other.reach)


FULL = Rights(frozenset({Scope.ADMIN}))
NONE = Rights()


class Kind(StrEnum):
    """How a caller was identified."""

    USER = "user"
    """A local user, by the credentials of its process at the unix socket."""
    TOKEN = "token"  # noqa: S105 - a word, no secret
    OIDC = "oidc"
    """A user authenticated by an identity provider."""
    SERVICE = "service"
    """The service itself, which tidies up by itself."""
    NOBODY = "nobody"
    """A caller without credentials, or with invalid ones."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller.

    :param id: a user's number, a token's id, an identity provider's subject.
    :param name: for people to read.
    :param expires_at: when the identity ends; None for never.
    """

    kind: Kind
    id: str
    name: str = ""
    rights: Rights = field(default=NONE)
    expires_at: datetime | None = None

    def __str__(self) -> str:
        known = f"{self.kind.value} {self.id}".rstrip()
        return f"{known} ({self.name})" if self.name else known


NOBODY = Identity(Kind.NOBODY, "")
SERVICE = Identity(Kind.SERVICE, "", "vmtune", FULL)
