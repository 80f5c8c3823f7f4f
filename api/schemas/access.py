"""Tokens, the caller, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field, StrictStr

from vmtune.api.schemas.common import Model, Page, Texts
from vmtune.model.access.audit import Entry, Outcome
from vmtune.model.access.scopes import MEANINGS, Kind, Rights, Scope, with_implied
from vmtune.model.access.tokens import Token, TokenState
from vmtune.services.access.web_sessions import SHOWN, WebLogin
from vmtune.storage.repositories.tokens import SignedIn

_SCOPES = "; ".join(f"`{scope}`: {meaning}" for scope, meaning in MEANINGS.items())


class TokenCreate(Model):
    """A token to create."""

    name: StrictStr = Field(examples=["ci"], description="For people; unique.")
    scopes: list[StrictStr] = Field(
        max_length=len(Scope), description=f"{_SCOPES}. Each but `metrics` includes `read`."
    )
    hosts: list[StrictStr] | None = Field(
        default=None,
        max_length=1000,
        description="Restricts the token to these hosts and their VMs; null for all.",
    )
    selector: dict[StrictStr, StrictStr] = Field(
        default_factory=dict, description="Restricts the token to VMs with all of these labels."
    )
    expires_at: AwareDatetime | None = Field(
        default=None, description="When the token becomes invalid; null for never."
    )


class ActorView(Model):
    """A user, token or service that did something."""

    kind: Kind
    id: str = Field(description="A user's number, a token's id, a provider's subject.")
    name: str


class RightsView(Model):
    """Permissions of a user or token, and where they apply."""

    scopes: list[Scope] = Field(description="Included scopes are listed too.")
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
    """A token, without its secret."""

    id: str
    name: str
    rights: RightsView = Field(
        description="It has those of these permissions that its creator still has."
    )
    state: TokenState
    created_by: ActorView
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None = Field(description="Time of the last use; null for never.")
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
        "created_by": ActorView.from_record(token.creator),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "used_at": token.used_at,
        "used_from": token.used_from,
    }


class TokenMade(TokenView):
    """A new token with its secret. Later responses do not have the secret."""

    token: str = Field(description="The secret; send it as `Authorization: Bearer TOKEN`.")

    @classmethod
    def made(cls, token: Token, text: str, now: datetime) -> TokenMade:
        return cls(token=text, **_shown(token, now))


class TokenPage(Page[TokenView]):
    """Tokens, sorted by name."""

    scopes: dict[Scope, str] = Field(description="What each scope permits.")


class SignIn(Model):
    """What a browser signs in with."""

    token: StrictStr = Field(max_length=200)


class SessionView(Model):
    """Identity and permissions of the caller."""

    who: ActorView
    rights: RightsView
    signed_in: bool = Field(description="Signed in with a browser's cookie.")
    expires_at: datetime | None = Field(description="When the session ends; null for never.")
    csrf: str | None = Field(
        description="Value of X-Vmtune-CSRF, which a signed-in browser sends with each change; "
        "null without a cookie."
    )


class BrowserView(Model):
    """A browser that is signed in."""

    id: str
    who: ActorView = Field(description="The token of its sign-in, or the user of the identity "
                           "provider.")  # fmt: skip
    rights: RightsView = Field(
        description="A token has those of its permissions that its creator still has."
    )
    address: str = Field(description="Address that it signed in from.")
    signed_in_at: datetime
    seen_at: datetime = Field(description="Time of the last request, to about a minute.")
    expires_at: datetime
    own: bool = Field(description="It is the browser of this request.")

    @classmethod
    def of(cls, found: SignedIn, asking: WebLogin | None) -> BrowserView:
        id = found.id[:SHOWN]
        return cls.from_record(
            found,
            id=id,
            who=ActorView.from_record(found.identity),
            rights=RightsView.of(found.identity.rights),
            signed_in_at=found.created_at,
            own=asking is not None and asking.id == id,
        )


class BrowserPage(Page[BrowserView]):
    """Signed-in browsers, sorted by user name."""


class ChangeView(Model):
    """An object before and after a change; of an altered object only the differences."""

    what: str
    key: str
    before: dict[str, Any] | None = Field(description="Null for a created object.")
    after: dict[str, Any] | None = Field(description="Null for a deleted object.")


class EntryView(Model):
    """An entry of the audit log."""

    number: int
    at: datetime
    who: ActorView
    origin: str = Field(
        description="Source of the request: an address, or a process on the unix socket."
    )
    action: str = Field(description="Operation of the API.")
    subject: str
    outcome: Outcome
    status: int | None
    reason: str = Field(description="The reason in X-Vmtune-Reason.")
    request: str = Field(description="The request's id, also in the service's log.")
    codes: list[str] = Field(description="Codes of the problems in the response.")
    changes: list[ChangeView]
    vm: UUID | None = Field(description="The VM that it is about, if any.")
    vm_name: str | None = Field(description="Its name, as last seen or as it migrated.")
    hash: str = Field(description="Covers this entry and the previous entry's hash.")

    @classmethod
    def of(cls, entry: Entry, vm: tuple[UUID, str] | None = None) -> EntryView:
        changes = [
            ChangeView(
                what=change.what,
                key=change.key,
                before=dict(change.before) if change.before is not None else None,
                after=dict(change.after) if change.after is not None else None,
            )
            for change in entry.changes
        ]
        uuid, name = vm or (None, None)
        return cls.from_record(entry, who=entry.actor, changes=changes, vm=uuid, vm_name=name)


class EntryPage(Page[EntryView]):
    """Entries, newest first."""


class IntegrityView(Model):
    """Integrity of the audit log."""

    entries: int = Field(
        description="Number of entries with a correct hash chain, from the first one on."
    )
    dropped: int = Field(
        description="Number of older entries that were deleted, see the setting `audit_days`."
    )
    newest: str = Field(description="Hash of the last of these entries: store it elsewhere.")
    broken_at: int | None = Field(description="The first entry with a wrong hash; null for none.")
