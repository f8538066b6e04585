"""Queries of browser sessions."""

from __future__ import annotations

from sqlalchemy import Select, select

from project_service.domain.accounts.tokens import BrowserSession
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db


def sessions_of(user_id: int) -> Select[BrowserSession]:
    """The valid browser sessions of a user, the newest first."""
    valid = BrowserSession.user_id == user_id, BrowserSession.expires_at > clock.now()
    return select(BrowserSession).where(*valid).order_by(BrowserSession.created_at.desc(), BrowserSession.id.desc())


def is_first_user_new() -> bool:
    """Whether the first administrator, whom ``prepare`` creates, has never signed in."""
    return db.session.scalar(select(User.sign_in_count).order_by(User.id).limit(1)) == 0
