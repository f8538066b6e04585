"""Tables of signing in: two-factor authentication, requests for a new password, networks of sign-ins."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security.key_ring import Encrypted


class PasswordReset(Timestamps, Model):
    """A mailed link with which a user sets a new password, once. Only the digest of its token is stored."""

    __tablename__ = "password_resets"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[dt.datetime] = mapped_column(index=True)


class SignInNetwork(Model):
    """A network that a user has signed in from: an IPv4 address, or the first 64 bits of an IPv6 address."""

    __tablename__ = "sign_in_networks"
    __table_args__ = (UniqueConstraint("user_id", "network"),)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    network: Mapped[str]
    last_used_at: Mapped[dt.datetime] = mapped_column(index=True)


class TwoFactorSecret(Timestamps, Model):
    """The secret that a user's authenticator shares with this server, encrypted at rest.

    ``last_step`` is the time step (30 s) of the last accepted code: a code is accepted once.
    """

    __tablename__ = "two_factor_secrets"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    secret: Mapped[str] = mapped_column(Encrypted)
    last_step: Mapped[int]


class RecoveryCode(Model):
    """A code that replaces that of the authenticator once; only its digest is stored."""

    __tablename__ = "recovery_codes"
    __table_args__ = (UniqueConstraint("user_id", "digest"),)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    digest: Mapped[str]
