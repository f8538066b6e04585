"""Create, change, block and delete users."""

from __future__ import annotations

import re
from typing import Any, TypedDict, Unpack

from sqlalchemy import delete

from project_service.access import audit
from project_service.access.sign_in import new_accounts
from project_service.areas.accounts import mails
from project_service.areas.accounts.administration import queries
from project_service.areas.accounts.sign_in.models import PasswordReset
from project_service.areas.accounts.sign_in.passwords import password_problem
from project_service.areas.accounts.sign_in.sessions import end_sessions
from project_service.domain import instance_settings, removal
from project_service.domain.accounts.resource_bots import is_bot
from project_service.domain.accounts.users import ACTIVE, BLOCKED, DEACTIVATED, User, lock_user, user_by, user_by_login
from project_service.domain.hooks.place_payloads import CREATED, REMOVED, RENAMED, announce_user
from project_service.domain.namespaces import UserNamespace, namespace_of
from project_service.domain.paths import path_registry, path_rules
from project_service.kit import clock
from project_service.kit.db.session import db, unique
from project_service.kit.http.errors import Conflict, Forbidden, Invalid
from project_service.kit.security import passwords, tokens

EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+")
MAX_LENGTHS = {"bio": 255, "pronouns": 50, "discord": 500, "github": 500}  # characters
MAX_NAME_LENGTH = MAX_EMAIL_LENGTH = path_rules.LONGEST
EMAIL_TAKEN = "Email has already been taken"
USERNAME_TAKEN = "Username has already been taken"
UNIQUE_EMAIL = "uq_users_email"
# appearance, what the service itself notes, and what has events of its own
UNAUDITED = (
    *("theme", "theme_id", "color_scheme_id", "time_zone", "namespace_id"),
    *("last_activity_on", "current_sign_in_at", "last_sign_in_at", "current_sign_in_ip", "last_sign_in_ip"),
    *("sign_in_count", "confirmed_at", "two_factor_grace_started_at"),
    *("state", "deleting_since", "password_hash", "password_expired", "two_factor_enabled"),
)


class UserFields(TypedDict, total=False):
    """What is set of an account, by the names of the API; the flags about passwords are for new ones."""

    email: str | None
    name: str | None
    username: str | None
    password: str | None
    reset_password: bool | None
    force_random_password: bool | None
    skip_confirmation: bool | None
    admin: bool | None
    can_create_group: bool | None
    external: bool | None
    private_profile: bool | None
    projects_limit: int | None
    bio: str | None
    location: str | None
    public_email: str | None
    organization: str | None
    job_title: str | None
    pronouns: str | None
    discord: str | None
    github: str | None
    note: str | None
    skype: str | None
    linkedin: str | None
    twitter: str | None
    website_url: str | None
    extern_uid: str | None
    provider: str | None
    theme_id: int | None
    color_scheme_id: int | None


def create_user(**requested: Unpack[UserFields]) -> User:
    """Create a user with a personal namespace; errors are those of supporting resources reference, section 3."""
    fields: dict[str, Any] = {**requested}
    for flag in ("reset_password", "force_random_password", "skip_confirmation"):
        if fields.pop(flag, False) and flag != "skip_confirmation":
            fields["password"] = tokens.new_token()
    password = fields.pop("password", None) or ""
    user = User(**_without_nulls(fields))
    if "projects_limit" not in fields:
        user.projects_limit = instance_settings.setting("default_projects_limit")
    user.confirmed_at = clock.now()
    _check_unique(user)
    _check(user, password, new=True)
    user.password_hash = passwords.hash_password(password)
    _save(user)
    namespace = UserNamespace(name=user.name, path=user.username, owner=user, avatar_url=user.avatar_url)
    path_registry.store_namespace(namespace, None, Invalid(username=path_rules.TAKEN))
    user.namespace_id = namespace.id
    audit.record("user_created", user, f"User {user.username} created", add="user")
    announce_user(user, CREATED)
    return user


def update_user(user: User, **requested: Unpack[UserFields]) -> User:
    """Change a user; the personal namespace gets the same path and name."""
    fields: dict[str, Any] = {**requested}
    lock_user(user)
    former, former_username = audit.settings_of(user, UNAUDITED), user.username
    fields.pop("skip_confirmation", None)
    password = fields.pop("password", None)
    for name, value in _without_nulls(fields).items():
        setattr(user, name, value)
    with db.session.no_autoflush:
        _check_unique(user)
        _check(user, password or "", new=False)
    if password:
        user.password_hash = passwords.hash_password(password)
        end_sessions(user)
        audit.record("user_password_updated", user, "Changed password", change="password")
    _save(user)
    if user.namespace_id is not None:  # bots have none
        namespace = namespace_of(user)
        namespace.name, namespace.path = user.name, user.username
        path_registry.move_namespace(namespace, Invalid(username=path_rules.TAKEN))
    audit.record_changes("user", user, former, audit.settings_of(user, UNAUDITED))
    if user.username != former_username:
        announce_user(user, RENAMED, former_username)
    if user.email != former["email"]:
        db.session.execute(delete(PasswordReset).where(PasswordReset.user_id == user.id))  # mailed to the old address
        mails.queue_email_changed(user, former["email"])
    return user


def delete_user(user: User, *, hard_delete: bool = False) -> None:
    """Disable and hide a user at once; a background job removes their data."""
    lock_user(user)
    solely_owned = list(db.session.scalars(queries.groups_owned_alone(user)))
    if solely_owned and not hard_delete:
        raise Conflict("User cannot be removed while is the sole-owner of a group")
    for group in solely_owned:
        path_registry.start_deleting_namespace(group)
        removal.remove_namespace.defer(group.id)
    audit.record("user_destroyed", user, f"User {user.username} scheduled for deletion", remove="user")
    announce_user(user, REMOVED)
    user.deleting_since = clock.now()
    end_sessions(user)
    if user.namespace_id is not None:
        path_registry.start_deleting_namespace(namespace_of(user))
    removal.remove_user.defer(user.id, hard_delete)


def block_user(author_id: int | None, user: User) -> bool | None:
    """Block a user; return ``None`` if they are blocked already."""
    lock_user(user)
    if user.id == author_id:
        raise Forbidden("The API initiating user cannot be blocked by the API")
    if user.state == BLOCKED:
        return None
    user.state = BLOCKED
    end_sessions(user)
    audit.record("user_blocked", user, "Blocked user")
    return True


def unblock_user(user: User) -> bool:
    """Unblock a user; return false if they are not blocked."""
    lock_user(user)
    if user.state == DEACTIVATED:
        raise Forbidden("Deactivated users cannot be unblocked by the API")
    if user.state != BLOCKED:
        return False
    user.state = ACTIVE
    audit.record("user_unblocked", user, "Unblocked user")
    return True


def new_password_of(user: User) -> str:
    """Set a random password, which the user has to replace after the next sign-in, and return it."""
    password = tokens.new_token()
    update_user(user, password=password)
    user.password_expired = True
    return password


def create_user_for(**fields: Unpack[UserFields]) -> tuple[User, str]:
    """Create a user with a random password, which they have to replace after the first sign-in; return both."""
    password = tokens.new_token()
    fields["password"] = password
    user = create_user(**fields)
    user.password_expired = True
    return user, password


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    nullable = {"location", "organization", "pronouns", "note", "extern_uid", "provider"}
    return {name: value for name, value in fields.items() if value is not None or name in nullable}


def _save(user: User) -> None:
    try:
        with unique(Conflict(USERNAME_TAKEN)):
            db.session.add(user)
    except Conflict as error:
        if UNIQUE_EMAIL in str(error.__cause__):
            raise Conflict(EMAIL_TAKEN) from error
        raise


def _check_unique(user: User) -> None:
    email_owner = user_by_login(user.email) if "@" in (user.email or "") else None
    if email_owner is not None and email_owner.id != user.id:
        raise Conflict(EMAIL_TAKEN)
    username_owner = user_by(user.username) if user.username and not user.username.isdigit() else None
    if username_owner is not None and username_owner.id != user.id:
        raise Conflict(USERNAME_TAKEN)


def _check(user: User, password: str, *, new: bool) -> None:
    problems: dict[str, list[str]] = {}
    if (new or password) and (text := password_problem(password)):
        problems["password"] = [text]
    if not (user.name or "").strip():
        problems["name"] = [path_rules.BLANK]
    elif len(user.name) > MAX_NAME_LENGTH:
        problems["name"] = [path_rules.TOO_LONG]
    if text := _email_problem(user.email or ""):
        problems["email"] = [text]
    if user.public_email and (text := _email_problem(user.public_email)):
        problems["public_email"] = [text]
    if texts := path_rules.namespace_path_problems(user.username or "", top_level=True):
        problems["username"] = texts
    if (user.projects_limit or 0) < 0:
        problems["projects_limit"] = ["must be greater than or equal to 0"]
    problems |= {
        name: [f"is too long (maximum is {length} characters)"]
        for name, length in MAX_LENGTHS.items()
        if len(getattr(user, name) or "") > length
    }
    if user.admin and is_bot(user.id):
        problems["admin"] = ["cannot be set for bots"]
    if problems:
        raise Invalid(**problems)


def _email_problem(address: str) -> str | None:
    if len(address) > MAX_EMAIL_LENGTH:
        return path_rules.TOO_LONG
    return None if EMAIL.fullmatch(address) else "is invalid"


new_accounts.register(create_user)
