"""Users: the table and finders."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Index, Select, false, func, or_, select, text
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db import text_search
from project_service.kit.db.base import Model, Timestamps, table_of, unique_unless_deleting
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, one
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

ACTIVE = "active"
BLOCKED = "blocked"
DEACTIVATED = "deactivated"
SYSTEM_THEME = "system"


class User(Timestamps, Model):
    """A user account. A deleted one is hidden from everyone at once; a job removes its data."""

    __tablename__ = "users"

    username: Mapped[str]
    name: Mapped[str]
    email: Mapped[str]
    state: Mapped[str] = mapped_column(default=ACTIVE)
    admin: Mapped[bool] = mapped_column(default=False)
    external: Mapped[bool] = mapped_column(default=False)
    private_profile: Mapped[bool] = mapped_column(default=False)
    can_create_group: Mapped[bool] = mapped_column(default=True)
    projects_limit: Mapped[int] = mapped_column(default=100_000)
    password_hash: Mapped[str | None]
    avatar_url: Mapped[str | None]
    bio: Mapped[str] = mapped_column(default="")
    location: Mapped[str | None]
    public_email: Mapped[str] = mapped_column(default="")
    skype: Mapped[str] = mapped_column(default="")
    linkedin: Mapped[str] = mapped_column(default="")
    twitter: Mapped[str] = mapped_column(default="")
    website_url: Mapped[str] = mapped_column(default="")
    organization: Mapped[str | None]
    job_title: Mapped[str] = mapped_column(default="")
    pronouns: Mapped[str | None]
    discord: Mapped[str] = mapped_column(default="", server_default="")
    github: Mapped[str] = mapped_column(default="", server_default="")
    note: Mapped[str | None]
    extern_uid: Mapped[str | None]
    provider: Mapped[str | None]
    theme_id: Mapped[int] = mapped_column(default=1)
    color_scheme_id: Mapped[int] = mapped_column(default=1)
    confirmed_at: Mapped[dt.datetime | None]
    last_activity_on: Mapped[dt.date | None]
    current_sign_in_at: Mapped[dt.datetime | None]
    last_sign_in_at: Mapped[dt.datetime | None]
    current_sign_in_ip: Mapped[str | None]
    last_sign_in_ip: Mapped[str | None]
    sign_in_count: Mapped[int] = mapped_column(default=0)
    theme: Mapped[str] = mapped_column(default=SYSTEM_THEME, server_default=SYSTEM_THEME)
    # in which pages show times to the user: a name of the tz database, empty for UTC
    time_zone: Mapped[str] = mapped_column(default="", server_default="")
    # an administrator has set the password: pages ask for another one first
    password_expired: Mapped[bool] = mapped_column(default=False, server_default=false())
    two_factor_enabled: Mapped[bool] = mapped_column(default=False, server_default=false())
    # when the user was first asked to set it up
    two_factor_grace_started_at: Mapped[dt.datetime | None]
    namespace_id: Mapped[int | None]  # the personal namespace, which holds the foreign key; written once
    deleting_since: Mapped[dt.datetime | None]
    is_bot: bool = False  # no column; set by queries for a response

    __table_args__ = (
        unique_unless_deleting("uq_users_username", "lower(username)"),
        unique_unless_deleting("uq_users_email", "lower(email)"),
        Index("ix_users_public_email", text("lower(public_email)")),
    )


TEXTS = text_search.add(TextIndex(table_of(User), ("name", "username")))


def users() -> Select[User]:
    """The users that are not being deleted; without an order."""
    return select(User).where(User.deleting_since.is_(None))


def find_user(user_id: int) -> User:
    """One user by id."""
    return one(users().where(User.id == user_id), NotFound("User"))


def find_user_by(id_or_username: str) -> User:
    """One user: digits are always an id, everything else is a username in any case."""
    user = user_by(id_or_username)
    if user is None:
        raise NotFound("User")
    return user


def user_by(id_or_username: str) -> User | None:
    """The same; ``None`` if there is none."""
    number = whole_number(id_or_username)
    condition = func.lower(User.username) == id_or_username.lower() if number is None else User.id == number
    return db.session.scalar(users().where(condition))


def ids_by_username(*usernames: str) -> Select[int]:
    """The ids of the users with these names, in any case: in the form that the index of names can serve."""
    named = func.lower(User.username).in_([username.lower() for username in usernames])
    return select(User.id).where(User.deleting_since.is_(None), named)


def user_named(username: str) -> User | None:
    """The user with this username, in any case; ``None`` if there is none."""
    return db.session.scalar(users().where(User.id.in_(ids_by_username(username))))


def user_by_login(login: str) -> User | None:
    """The user with this username or e-mail address."""
    wanted_login = login.strip().lower()
    return db.session.scalar(
        users().where(or_(func.lower(User.username) == wanted_login, func.lower(User.email) == wanted_login))
    )


def lock_user(user: User) -> None:
    """Lock the row of a user; raise ``NotFound`` if the user has been deleted meanwhile."""
    lock_row(user, "state", "deleting_since")
    if user.deleting_since is not None:
        raise NotFound("User")
