"""Tokens, who asks, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field, StrictStr

from vmtune.api.schemas.common import Model, Page, Texts
from vmtune.model.access.audit import Entry, Integrity, Outcome
from vmtune.model.access.scopes import MEANINGS, Identity, Kind, Rights, Scope, with_implied
from vmtune.model.access.tokens import Token, TokenState
from vmtune.services.access.web_sessions import SHOWN, WebLogin
from vmtune.storage.repositories.tokens import SignedIn

_SCOPES = "; ".join(f"`{scope}`: {meaning}" for scope, meaning in MEANINGS.items())


class TokenCreate(Model):
    """A token to make."""

    name: StrictStr = Field(examples=["ci"], description="For people; unique.")
    scopes: list[StrictStr] = Field(
        max_length=len(Scope), description=f"{_SCOPES}. Each but `metrics` includes `read`."
    )
    hosts: list[StrictStr] | None = Field(
        default=None,
        max_length=1000,
        description="It holds for these hosts and their VMs alone; null for all.",
    )
    selector: dict[StrictStr, StrictStr] = Field(
        default_factory=dict, description="It holds for VMs with all of these labels alone."
    )
    expires_at: AwareDatetime | None = Field(
        default=None, description="When it lets nobody in any more; null for never."
    )


class ActorView(Model):
    """Somebody who did something."""

    kind: Kind
    id: str = Field(description="A user's number, a token's id, a provider's subject.")
    name: str

    @classmethod
    def of(cls, identity: Identity) -> ActorView:
        return cls(kind=identity.kind, id=identity.id, name=identity.name)


class RightsView(Model):
    """What somebody may do, and where."""

    scopes: list[Scope] = Field(description="With those that they include.")
    hosts: list[str] | None = Field(description="Null for all hosts.")
    selector: Texts = Field(description="Labels that VMs must have; empty for all VMs.")

    @classmethod
    def of(cls, rights: Rights) -> RightsView:
        hosts = rights.reach.hosts
        implied = with_implied(rights.scopes)
        return cls(
            scopes=[scope for scope in Scope if scope in implied],
            hosts=None if hosts is None else sorted(hosts),
            selector=dict(sorted(rights.reach.labels)),
        )


class TokenView(Model):
    """A token, without its secret, which nobody can be shown again."""

    id: str
    name: str
    rights: RightsView = Field(description="Of these it has what its creator still has.")
    state: TokenState
    created_by: ActorView
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None = Field(description="When it was used last; null for never.")
    used_from: str

    @classmethod
    def of(cls, token: Token, now: datetime) -> TokenView:
        return cls(**_shown(token, now))


def _shown(token: Token, now: datetime) -> dict[str, Any]:  # any: a model's fields
    return {
        "id": token.id,
        "name": token.name,
        "rights": RightsView.of(token.rights),
        "state": token.state(now),
        "created_by": ActorView.of(token.creator),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "used_at": token.used_at,
        "used_from": token.used_from,
    }


class TokenMade(TokenView):
    """A token that was just made, with its secret, this once."""

    token: str = Field(description="What its holder sends: `Authorization: Bearer TOKEN`.")

    @classmethod
    def made(cls, token: Token, text: str, now: datetime) -> TokenMade:
        return cls(token=text, **_shown(token, now))


class TokenPage(Page[TokenView]):
    """Tokens in the order of their names."""

    scopes: dict[Scope, str] = Field(description="What each scope lets a token's holder do.")


class SignIn(Model):
    """What a browser signs in with."""

    token: StrictStr = Field(max_length=200)


class SessionView(Model):
    """Who asks, and what they may do."""

    who: ActorView
    rights: RightsView
    signed_in: bool = Field(description="By a browser's cookie.")
    expires_at: datetime | None = Field(description="When this ends; null for never.")
    csrf: str | None = Field(
        description="What a signed-in browser's page sends as X-Vmtune-CSRF with each change; "
        "null where there is no cookie."
    )


class BrowserView(Model):
    """A browser that is signed in."""

    id: str
    who: ActorView = Field(description="The token that it signed in with, or whom the identity "
                           "provider vouched for.")  # fmt: skip
    rights: RightsView = Field(description="Of a token's it has what its creator still has.")
    address: str = Field(description="From where it signed in.")
    signed_in_at: datetime
    seen_at: datetime = Field(description="When it asked last, to the minute or so.")
    expires_at: datetime
    own: bool = Field(description="It is the one that asks.")

    @classmethod
    def of(cls, found: SignedIn, asking: WebLogin | None) -> BrowserView:
        id = found.id[:SHOWN]
        return cls(
            id=id,
            who=ActorView.of(found.identity),
            rights=RightsView.of(found.identity.rights),
            address=found.address,
            signed_in_at=found.created_at,
            seen_at=found.seen_at,
            expires_at=found.expires_at,
            own=asking is not None and asking.id == id,
        )


class BrowserPage(Page[BrowserView]):
    """Browsers that are signed in, by the names of who they are."""


class ChangeView(Model):
    """A thing before and after; of what was altered, only what is different."""

    what: str
    key: str
    before: dict[str, Any] | None = Field(description="Null where it was made.")
    after: dict[str, Any] | None = Field(description="Null where it was deleted.")


class EntryView(Model):
    """An entry of the audit log."""

    number: int
    at: datetime
    who: ActorView
    origin: str = Field(description="From where: an address, or a process at the unix socket.")
    action: str = Field(description="The API's operation.")
    subject: str
    outcome: Outcome
    status: int | None
    reason: str = Field(description="Why, as X-Vmtune-Reason said.")
    request: str = Field(description="The request's id, which the service's log has too.")
    codes: list[str] = Field(description="Of the problems that it was answered with.")
    changes: list[ChangeView]
    hash: str = Field(description="Covers this entry and the hash of the one before.")

    @classmethod
    def of(cls, entry: Entry) -> EntryView:
        changes = [
            ChangeView(
                what=change.what,
                key=change.key,
                before=dict(change.before) if change.before is not None else None,
                after=dict(change.after) if change.after is not None else None,
            )
            for change in entry.changes
        ]
        return cls(
            number=entry.number,
            at=entry.at,
            who=ActorView.of(entry.actor),
            origin=entry.origin,
            action=entry.action,
            subject=entry.subject,
            outcome=entry.outcome,
            status=entry.status,
            reason=entry.reason,
            request=entry.request,
            codes=list(entry.codes),
            changes=changes,
            hash=entry.hash,
        )


class EntryPage(Page[EntryView]):
    """Entries, newest first."""


class IntegrityView(Model):
    """Whether the audit log is as it was written."""

    entries: int = Field(description="How many follow from each other, from the first one on.")
    dropped: int = Field(description="How many older ones were dropped, as `audit_days` says.")
    newest: str = Field(description="The hash of the last of these: keep it somewhere else.")
    broken_at: int | None = Field(description="The first entry that does not; null for none.")

    @classmethod
    def of(cls, found: Integrity) -> IntegrityView:
        return cls(
            entries=found.entries,
            dropped=found.dropped,
            newest=found.newest,
            broken_at=found.broken_at,
        )
