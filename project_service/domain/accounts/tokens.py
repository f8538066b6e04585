"""Personal access tokens, browser sessions and OAuth tokens: the ways in. Only digests of the secrets are stored."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, query_expression, relationship

from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security import tokens

SELF_ROTATE = "self_rotate"  # lets a token replace itself, and do nothing else
SCOPES = (
    "api",
    "read_user",
    "read_api",
    "read_repository",
    "write_repository",
    "read_registry",
    "write_registry",
    SELF_ROTATE,
    "sudo",
)
# those of access tokens of projects and groups
RESOURCE_SCOPES = tuple(scope for scope in SCOPES if scope not in ("read_user", "sudo"))
SESSION_LENGTH = dt.timedelta(days=14)
OAUTH_TOKEN_SECONDS = 7200


class PersonalAccessToken(Timestamps, Model):
    """A token that acts for its user within its scopes, until the beginning of the day it expires."""

    __tablename__ = "personal_access_tokens"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    user: Mapped[User] = relationship()
    name: Mapped[str]
    description: Mapped[str | None]
    digest: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    expires_at: Mapped[dt.date | None]
    revoked: Mapped[bool] = mapped_column(default=False)
    last_used_at: Mapped[dt.datetime | None]
    family_id: Mapped[int | None] = mapped_column(index=True)  # the first of the tokens that were rotated into this one
    expiry_mailed_on: Mapped[dt.date | None]
    access_level: Mapped[int | None] = query_expression()  # the role of the bot where it was loaded for
    # not a column: the text of a new token, shown once and never stored
    token: str

    @property
    def expired(self) -> bool:
        """Whether its day has come; a token that expires today is expired (common reference, section 6.2)."""
        return self.expires_at is not None and self.expires_at <= clock.today()

    @property
    def active(self) -> bool:
        """Neither revoked nor expired."""
        return not self.revoked and not self.expired


class BrowserSession(Timestamps, Model):
    """A browser session. The cookie is valid only as long as the row exists."""

    __tablename__ = "browser_sessions"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    user: Mapped[User] = relationship()
    digest: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[dt.datetime]
    address: Mapped[str | None]
    agent: Mapped[str | None]


class OAuthToken(Timestamps, Model):
    """An access token that was exchanged for a password at ``/oauth/token``, with the token that renews it."""

    __tablename__ = "oauth_tokens"
    __table_args__ = (Index("ix_oauth_tokens_created_at", "created_at"),)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    user: Mapped[User] = relationship()
    digest: Mapped[str] = mapped_column(unique=True)
    refresh_digest: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    revoked_at: Mapped[dt.datetime | None]

    @property
    def expires_in(self) -> int:
        """The seconds for which it may still be used, 0 or less when it has expired."""
        return OAUTH_TOKEN_SECONDS - int((clock.now() - self.created_at).total_seconds())

    @property
    def active(self) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and self.expires_in > 0


def digest_of(token: str) -> str:
    """What a token or session is looked up by."""
    return tokens.digest(token)
