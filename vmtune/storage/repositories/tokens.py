"""Tokens, and browser sessions. Secrets are not stored, only their hashes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from vmtune.errors import DuplicateName, NotFound
from vmtune.model.access.scopes import Identity, Kind, Reach, Rights, Scope
from vmtune.model.access.tokens import Token
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper, Stored, stored_identity
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.tables.access import TokenRow, WebSessionRow
from vmtune.storage.tables.core import JsonObject

_DEEPEST = 16
"""Tokens that were made by tokens that were made by tokens..."""


def dump_rights(rights: Rights) -> JsonObject:
    """*rights* as JSON."""
    reach = rights.reach
    return {
        "scopes": sorted(rights.scopes),
        "hosts": None if reach.hosts is None else sorted(reach.hosts),
        "labels": dict(sorted(reach.labels)),
    }


def load_rights(stored: JsonObject) -> Rights:
    """The rights that :func:`dump_rights` made."""
    hosts = stored.get("hosts", [])
    reach = Reach(
        None if hosts is None else frozenset(hosts),
        frozenset(stored.get("labels", {}).items()),
    )
    return Rights(frozenset(map(Scope, stored.get("scopes", ()))), reach)


_RIGHTS = ("scopes", "hosts", "labels")
_MAP = Mapper(
    Token,
    TokenRow,
    rights=Stored(
        lambda rights: tuple(dump_rights(rights).values()),
        lambda *values: load_rights(dict(zip(_RIGHTS, values, strict=True))),
        _RIGHTS,
    ),
    creator=stored_identity("creator"),
)


@dataclass(frozen=True, slots=True)
class TokenAndSecret:
    """A token with its creators.
    :param creators: the token that made it, the one that made that, and so on.
    """

    token: Token
    secret_hash: str
    creators: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class WebSession:
    """A browser that is signed in.

    :param found: the token that it signed in with; None if an identity provider authenticated
        *identity*.
    """

    id: str
    found: TokenAndSecret | None
    identity: Identity
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser that is signed in, as others see it.

    :param address: from where it signed in.
    """

    id: str
    identity: Identity
    address: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


class TokenRepository:
    """The tokens, by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: Token, secret_hash: str) -> Token:
        """Store a token.
        :raise DuplicateName: there is a valid one of that name.
        """
        with self._database.write() as session:
            now = self._database.now()
            same = select(TokenRow).where(
                TokenRow.name == token.name,
                TokenRow.revoked_at.is_(None),
                TokenRow.expires_at.is_(None) | (TokenRow.expires_at > now),
            )
            if session.scalar(same) is not None:
                raise DuplicateName(
                    f"there is a token named {token.name} already",
                    field="name",
                    remedy="choose another name, or revoke that token",
                )
            row = _MAP.row(token, secret_hash=secret_hash)
            session.add(row)
            session.flush()
            return _MAP.record(row)

    def get(self, id: str) -> Token:
        """The token of that id.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return _MAP.record(_row(session, id))

    def find(self, id: str) -> TokenAndSecret | None:
        """The token of that id with its creators; None if there is none."""
        with self._database.read() as session:
            return _find(session, id)

    def list(self, after: str | None = None, limit: int = 100) -> Page[Token]:
        """Tokens in the order of their names, also those that are no longer valid."""
        query = select(TokenRow).order_by(TokenRow.name, TokenRow.id)
        query = query.limit(check_limit(limit) + 1)
        if after is not None:
            name, id = read_cursor("tokens", after, str, str)
            later = (TokenRow.name == name) & (TokenRow.id > id)
            query = query.where((TokenRow.name > name) | later)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(
                rows, limit, _MAP.record, lambda row: make_cursor("tokens", row.name, row.id)
            )

    def revoke(self, id: str) -> Token:
        """Revoke it, and sign out browsers that signed in with it. Idempotent.

        :raise NotFound: there is no such token.
        """
        with self._database.write() as session:
            row = _row(session, id)
            row.revoked_at = row.revoked_at or self._database.now()
            session.execute(delete(WebSessionRow).where(WebSessionRow.token == id))
            session.flush()
            return _MAP.record(row)

    def revoke_again(self, ids: Collection[str]) -> int:
        """Revoke those of these tokens that are valid, and sign out all browsers: after a restore,
        what had ended must not work again. Returns how many tokens it was."""
        with self._database.write() as session:
            valid = session.scalars(select(TokenRow).where(TokenRow.revoked_at.is_(None))).all()
            ended = [row for row in valid if row.id in ids]
            for row in ended:
                row.revoked_at = self._database.now()
            session.execute(delete(WebSessionRow))
        return len(ended)

    def made_by(self, kind: Kind, creator: str) -> Sequence[Token]:
        """The tokens of a creator that are not revoked."""
        query = select(TokenRow).where(
            TokenRow.creator_kind == kind.value,
            TokenRow.creator == creator,
            TokenRow.revoked_at.is_(None),
        )
        with self._database.read() as session:
            return [_MAP.record(row) for row in session.scalars(query)]

    def used(self, uses: Mapping[str, tuple[datetime, str]]) -> None:
        """Note when tokens were used last and from where, by their ids."""
        with self._database.write(durable=False) as session:
            for row in session.scalars(select(TokenRow).where(TokenRow.id.in_(uses))):
                row.used_at, row.used_from = uses[row.id]

    # Browsers.

    def sign_in(self, id: str, identity: Identity, address: str, expires_at: datetime) -> None:
        """Store a browser session.
        :param id: SHA-256 of its cookie.
        :raise NotFound: the token has been removed.
        """
        with self._database.write() as session:
            now = self._database.now()
            by_token = identity.kind is Kind.TOKEN
            if by_token:
                _row(session, identity.id)
            row = WebSessionRow(
                id=id,
                token=identity.id if by_token else None,
                subject=identity.id,
                name=identity.name,
                rights=None if by_token else dump_rights(identity.rights),
                address=address,
                created_at=now,
                seen_at=now,
                expires_at=expires_at,
            )
            session.add(row)

    def session(self, id: str) -> WebSession | None:
        """The browser with that id; None where it is signed out."""
        with self._database.read() as session:
            row = session.get(WebSessionRow, id)
            if row is None:
                return None
            found = _find(session, row.token) if row.token is not None else None
            if found is not None:
                identity = found.token.identity
            else:
                rights = load_rights(row.rights or {})
                identity = Identity(Kind.OIDC, row.subject, row.name, rights)
            times = (row.created_at, row.seen_at, row.expires_at)
            return WebSession(row.id, found, identity, *times)

    def sessions(self, after: str | None = None, limit: int = 100) -> Page[SignedIn]:
        """Browser sessions, by the names of their users."""
        query = (
            select(WebSessionRow, TokenRow)
            .outerjoin(TokenRow, TokenRow.id == WebSessionRow.token)
            .order_by(WebSessionRow.name, WebSessionRow.id)
            .limit(check_limit(limit) + 1)
        )
        if after is not None:
            name, id = read_cursor("browsers", after, str, str)
            later = (WebSessionRow.name == name) & (WebSessionRow.id > id)
            query = query.where((WebSessionRow.name > name) | later)
        with self._database.read() as session:
            return page(
                session.execute(query).all(),
                limit,
                lambda row: _signed_in(row[0], row[1]),
                lambda row: make_cursor("browsers", row[0].name, row[0].id),
            )

    def session_named(self, beginning: str) -> str:
        """The whole id of the browser whose id begins so.

        :raise NotFound: none is signed in.
        """
        query = select(WebSessionRow.id).where(
            WebSessionRow.id.startswith(beginning, autoescape=True)
        )
        with self._database.read() as session:
            found = session.scalars(query.limit(1)).first()
        if found is None:
            raise NotFound(
                f"no browser {beginning[:60]} is signed in, or no longer",
                field="browser",
                remedy="vmtune token browsers shows those that are",
            )
        return found

    def sign_out(self, id: str) -> None:
        """Delete a browser session; its cookie is no longer valid."""
        with self._database.write() as session:
            row = session.get(WebSessionRow, id)
            if row is not None:
                session.delete(row)

    def sign_out_beyond(self, subject: str, rights: Rights) -> int:
        """Delete the browser sessions of a person of the identity provider that allow more than
        *rights*; returns how many."""
        query = select(WebSessionRow).where(
            WebSessionRow.token.is_(None), WebSessionRow.subject == subject
        )
        with self._database.write() as session:
            excess = [
                row
                for row in session.scalars(query)
                if not load_rights(row.rights or {}).is_within(rights)
            ]
            for row in excess:
                session.delete(row)
        return len(excess)

    def seen(self, seen: Mapping[str, datetime], idle_since: datetime) -> None:
        """Note when browsers asked last; forget those that did not since *idle_since*, and
        those that have expired."""
        with self._database.write(durable=False) as session:
            for row in session.scalars(select(WebSessionRow).where(WebSessionRow.id.in_(seen))):
                row.seen_at = max(row.seen_at, seen[row.id])
            session.flush()
            over = (WebSessionRow.seen_at < idle_since) | (
                WebSessionRow.expires_at <= self._database.now()
            )
            session.execute(delete(WebSessionRow).where(over))


def _signed_in(row: WebSessionRow, token: TokenRow | None) -> SignedIn:
    if token is not None:
        identity = _MAP.record(token).identity
    else:
        identity = Identity(Kind.OIDC, row.subject, row.name, load_rights(row.rights or {}))
    times = (row.created_at, row.seen_at, row.expires_at)
    return SignedIn(row.id, identity, row.address, *times)


def _row(session: Session, id: str) -> TokenRow:
    row = session.get(TokenRow, id)
    if row is None:
        raise no_token(id)
    return row


def no_token(id: str) -> NotFound:
    """The error of a token that is not there."""
    return NotFound(
        f"there is no token {id[:60]}", field="token", remedy="vmtune token list shows them"
    )


def _find(session: Session, id: str) -> TokenAndSecret | None:
    row = session.get(TokenRow, id)
    if row is None:
        return None
    creators: list[Token] = []
    maker = row
    while maker.creator_kind == Kind.TOKEN:
        above = session.get(TokenRow, maker.creator)
        if above is None or len(creators) >= _DEEPEST:
            return None  # without a valid creator
        creators.append(_MAP.record(above))
        maker = above
    return TokenAndSecret(_MAP.record(row), row.secret_hash, tuple(creators))
