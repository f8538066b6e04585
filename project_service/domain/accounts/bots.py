"""Bot users: the authors of what the service does by itself."""

from __future__ import annotations

from sqlalchemy import Select, select

from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db, insert

ALERT_BOT = "alert-bot"
GHOST = "ghost"
NAMES = {ALERT_BOT: "Alert Bot", GHOST: "Ghost User"}


def id_of_bot(username: str) -> Select[int]:
    """The id of a bot, as a subquery; no row as long as the bot does not exist."""
    return select(User.id).where(User.username == username, User.deleting_since.is_(None))


def bot(username: str) -> User:
    """The bot with this name, created at first use; it cannot sign in."""
    statement = select(User).where(User.username == username, User.deleting_since.is_(None))
    user = db.session.scalar(statement)
    if user is not None:
        return user
    now = clock.now()
    row = insert(User).values(
        username=username,
        name=NAMES[username],
        email=f"{username}@bots.invalid",
        projects_limit=0,
        can_create_group=False,
        created_at=now,
        updated_at=now,
    )
    db.session.execute(row.on_conflict_do_nothing())
    return db.session.scalars(statement).one()
