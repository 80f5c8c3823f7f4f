"""The services of authentication, authorization and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from vmtune.config.settings import Settings
from vmtune.services.access.audit import AuditService
from vmtune.services.access.guard import AccessGuard
from vmtune.services.access.oidc import OidcService
from vmtune.services.access.tokens import TokenService
from vmtune.services.access.users import LocalUsers
from vmtune.services.access.web_sessions import WebSessionService
from vmtune.services.hosts.hosts import HostService
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class Access:
    """The services that authenticate callers, restrict them to their reach, and log their
    actions."""

    users: LocalUsers
    tokens: TokenService
    browsers: WebSessionService
    guard: AccessGuard
    audit: AuditService
    oidc: OidcService | None

    @classmethod
    def make(
        cls, settings: Settings, users: LocalUsers, store: Store, hosts: HostService
    ) -> Access:
        """All of them over one store."""
        days = timedelta(days=settings.oidc.max_token_days) if settings.oidc else None
        tokens = TokenService(store, users, people_last=days)
        browsers = WebSessionService(store, tokens, settings.session_idle_minutes)
        oidc = OidcService(settings.oidc) if settings.oidc else None
        return cls(users, tokens, browsers, AccessGuard(store, hosts), AuditService(store), oidc)

    async def drop_expired(self) -> None:
        """Store what is not stored at each request, and delete what has expired."""
        await self.tokens.note_uses()
        await self.browsers.drop_expired()
        await self.audit.note_suppressed()
