"""Tokens, with which programs and remote users authenticate."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from vmtune.model.access.scopes import Identity, Kind, Rights

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH = 12
_SECRET_BYTES = 32
_TEXT = re.compile(r"vmt_([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
LONGEST = 60
"""Characters of a token; what is longer is none."""


class TokenState(StrEnum):
    """Whether a token lets anybody in."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Token:
    """A token, without its secret.

    :param rights: the granted rights, limited to those that its creator still has.
    :param creator: a local user, another token, or a user authenticated by an identity provider,
        with the rights of that moment.
    :param expires_at: None for never.
    :param used_at: when it was used last, to the minute; None for never.
    :param used_from: the address from which.
    """

    id: str
    name: str
    rights: Rights
    creator: Identity
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    used_from: str = ""

    def state(self, now: datetime) -> TokenState:
        """Whether it lets anybody in, as far as it is concerned itself."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.ACTIVE

    @property
    def identity(self) -> Identity:
        """The caller that uses it, with the granted rights."""
        return Identity(Kind.TOKEN, self.id, self.name, self.rights, self.expires_at)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """The text of a token: shown once, and kept nowhere."""

    id: str
    secret: str

    @classmethod
    def make(cls) -> Secret:
        """A new one: 60 random bits to find it by, 256 to prove it."""
        id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
        return cls(id, secrets.token_urlsafe(_SECRET_BYTES))

    @classmethod
    def read(cls, text: str) -> Secret | None:
        """The one that *text* is; None where it cannot be one."""
        match = _TEXT.fullmatch(text) if len(text) <= LONGEST else None
        return cls(match[1], match[2]) if match else None

    @property
    def text(self) -> str:
        """What its holder sends."""
        return f"vmt_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"Secret({self.id!r}, ...)"  # it could end up in a log
