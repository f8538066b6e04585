"""Changes of users, personal access tokens and browser sessions."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from sqlalchemy import delete, update

from project_service.access import audit
from project_service.areas.accounts import mails, queries, sign_in_networks
from project_service.areas.accounts.models import PasswordReset
from project_service.domain import instance_settings, path_registry, path_rules, removal
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.namespaces import UserNamespace, namespace_of
from project_service.domain.resource_bots import ResourceBot, checked_expiry, is_bot, remove_idle_bots
from project_service.domain.sign_ins import WrongPassword
from project_service.domain.tokens import (
    RESOURCE_SCOPES,
    SCOPES,
    SESSION_LENGTH,
    BrowserSession,
    PersonalAccessToken,
    digest_of,
)
from project_service.domain.users import ACTIVE, BLOCKED, DEACTIVATED, User, user_by, user_by_login
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, unique
from project_service.kit.http.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, Unprocessable
from project_service.kit.security import passwords, tokens

EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+")
MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 128
MAX_BIO_LENGTH = 255
MAX_NAME_LENGTH = MAX_EMAIL_LENGTH = path_rules.LONGEST
ROTATED_TOKEN_LIFETIME = dt.timedelta(days=7)
EMAIL_TAKEN = "Email has already been taken"
USERNAME_TAKEN = "Username has already been taken"
CURRENT, NEW = "current_password", "new_password"  # fields
UNIQUE_EMAIL = "uq_users_email"
AUDITED = ("name", "username", "email", "admin", "external", "can_create_group", "projects_limit", "private_profile")


def create_user(**fields: Any) -> User:
    """Create a user with a personal namespace; errors are those of supporting resources, section 3."""
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
    return user


def update_user(user: User, **fields: Any) -> User:
    """Change a user; the personal namespace gets the same path and name."""
    _lock(user)
    former = audit.values_of(user, *AUDITED)
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
    audit.record_changes("user", user, former, audit.values_of(user, *AUDITED))
    if user.email != former["email"]:
        db.session.execute(delete(PasswordReset).where(PasswordReset.user_id == user.id))  # mailed to the old address
        mails.queue_email_changed(user, former["email"])
    return user


def delete_user(user: User, *, hard_delete: bool = False) -> None:
    """Disable and hide a user at once; a background job removes their data."""
    _lock(user)
    solely_owned = list(db.session.scalars(queries.groups_owned_alone(user)))
    if solely_owned and not hard_delete:
        raise Conflict("User cannot be removed while is the sole-owner of a group")
    for group in solely_owned:
        path_registry.start_deleting_namespace(group)
        removal.remove_namespace.defer(group.id)
    audit.record("user_destroyed", user, f"User {user.username} scheduled for deletion", remove="user")
    user.deleting_since = clock.now()
    end_sessions(user)
    if user.namespace_id is not None:
        path_registry.start_deleting_namespace(namespace_of(user))
    removal.remove_user.defer(user.id, hard_delete)


def block_user(author_id: int | None, user: User) -> bool | None:
    """Block a user; return ``None`` if they are blocked already."""
    _lock(user)
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
    _lock(user)
    if user.state == DEACTIVATED:
        raise Forbidden("Deactivated users cannot be unblocked by the API")
    if user.state != BLOCKED:
        return False
    user.state = ACTIVE
    audit.record("user_unblocked", user, "Unblocked user")
    return True


def create_token(user: User, **fields: Any) -> PersonalAccessToken:
    """Create a token; its secret is only in the attribute ``token`` of the returned object.

    Bots have fewer scopes than people, and their tokens expire, on every route that creates or rotates one.
    """
    is_of_bot = is_bot(user.id)
    name = fields.get("name") or ""
    scopes = list(dict.fromkeys(fields.get("scopes") or []))
    problems = []
    if not name.strip():
        problems.append("Name can't be blank")
    if not scopes:
        problems.append("Scopes can't be blank")
    elif not set(scopes) <= set(RESOURCE_SCOPES if is_of_bot else SCOPES):
        problems.append("Scopes can only contain available scopes")
    if problems:
        raise Unprocessable(" and ".join(problems))
    secret = fields.get("secret") or tokens.new_token(instance_settings.setting("personal_access_token_prefix") or "")
    token = PersonalAccessToken(
        user_id=user.id,
        name=name,
        description=fields.get("description"),
        scopes=scopes,
        expires_at=checked_expiry(fields.get("expires_at")) if is_of_bot else fields.get("expires_at"),
        digest=digest_of(secret),
        family_id=fields.get("family_id"),
    )
    db.session.add(token)
    db.session.flush()
    audit.record(
        "personal_access_token_issued",
        user,
        f"Created personal access token with id {token.id}",
        target=_token_target(token),
        scopes=", ".join(scopes),
    )
    token.token = secret
    return token


def rotate_token(token: PersonalAccessToken, *, expires_at: dt.date | None = None) -> PersonalAccessToken:
    """Revoke a token and create a new one with the same name and scopes."""
    lock_row(token, "revoked")  # of two concurrent rotations only one succeeds
    if token.revoked:
        raise BadRequest("400 Bad request - Token already revoked")
    if expires_at is not None and expires_at <= clock.today():
        raise BadRequest("400 Bad request - Expiration date must be in the future")
    _mark_revoked(token)
    owner = db.session.get_one(User, token.user_id)
    return create_token(
        owner,
        family_id=token.family_id or token.id,
        name=token.name,
        description=token.description,
        scopes=token.scopes,
        expires_at=expires_at or clock.today() + ROTATED_TOKEN_LIFETIME,
    )


def revoke_token(token: PersonalAccessToken) -> None:
    """Revoke a token; the bot of a project or group goes with its last one."""
    _mark_revoked(token)
    db.session.flush()
    remove_idle_bots(ResourceBot.user_id == token.user_id)


def _mark_revoked(token: PersonalAccessToken) -> None:
    if not token.revoked:
        text = f"Revoked personal access token with id {token.id}"
        owner = db.session.get_one(User, token.user_id)
        audit.record("personal_access_token_revoked", owner, text, target=_token_target(token))
    token.revoked = True


def may_have_session(user: User | None) -> bool:
    """Whether a user may sign in at the pages; unknown users, given as ``None``, take the same statement."""
    is_a_bot = is_bot(user.id if user else None)
    return user is not None and not is_a_bot and user.state in (ACTIVE, DEACTIVATED)


def lock_for_sign_in(user: User, verified_hash: str | None) -> None:
    """Lock a user whose password was verified with this hash, before a session begins.

    Raises:
        WrongPassword: the password or the state of the user has changed meanwhile.

    """
    lock_row(user, "password_hash", "state", "deleting_since", "two_factor_enabled")
    is_allowed = user.state in (ACTIVE, DEACTIVATED) and user.deleting_since is None
    if user.password_hash != verified_hash or not is_allowed:
        raise WrongPassword


def start_session(user: User, *, second_factor: bool, address: str | None, agent: str | None) -> str:
    """Create a browser session of a user who has signed in, and return its secret; deactivated users become active."""
    if user.state == DEACTIVATED:
        user.state = ACTIVE
    secret = tokens.new_token()
    now = clock.now()
    db.session.add(
        BrowserSession(
            user_id=user.id, digest=digest_of(secret), expires_at=now + SESSION_LENGTH, address=address, agent=agent
        )
    )
    sign_in_networks.note_sign_in(user, address, agent)
    user.last_sign_in_at, user.last_sign_in_ip = user.current_sign_in_at or now, user.current_sign_in_ip or address
    user.current_sign_in_at, user.current_sign_in_ip = now, address
    user.sign_in_count += 1
    name, method = ("two_factor", "TWO-FACTOR") if second_factor else ("password", "STANDARD")
    audit.record(f"authenticated_with_{name}", user, f"Signed in with {method} authentication", author=user)
    return secret


def sign_out(secret: str) -> None:
    """Delete a browser session."""
    db.session.execute(delete(BrowserSession).where(BrowserSession.digest == digest_of(secret)))


def end_sessions(user: User, *, besides: str = "") -> None:
    """Delete all browser sessions of a user, except that with the secret ``besides``."""
    own = BrowserSession.user_id == user.id, BrowserSession.digest != digest_of(besides)
    db.session.execute(delete(BrowserSession).where(*own))


def end_session(user: User, session_id: int) -> None:
    """Delete one browser session of a user."""
    own = BrowserSession.user_id == user.id, BrowserSession.id == session_id
    db.session.execute(delete(BrowserSession).where(*own))


def change_password(user: User, *, current: str, new: str, session: str) -> None:
    """Change the own password and end the other browser sessions; the one with the secret ``session`` stays.

    Raises:
        Invalid: the new password is not allowed.

    """
    if current == new:
        raise Invalid(**{NEW: "has to differ from the current one"})
    set_password(user, new, session=session)


def set_password(user: User, new: str, *, session: str = "") -> None:
    """Set a password that the user has chosen, mail that, and end the browser sessions but that with this secret."""
    if text := _password_problem(new):
        raise Invalid(**{NEW: text})
    user.password_hash, user.password_expired = passwords.hash_password(new), False
    end_sessions(user, besides=session)
    audit.record("user_password_updated", user, "Changed password", author=user, change="password")
    mails.queue_password_changed(user)


def new_password_of(user: User) -> str:
    """Set a random password, which the user has to replace after the next sign-in, and return it."""
    password = tokens.new_token()
    update_user(user, password=password)
    user.password_expired = True
    return password


def create_user_for(**fields: Any) -> tuple[User, str]:
    """Create a user with a random password, which they have to replace after the first sign-in; return both."""
    password = tokens.new_token()
    user = create_user(**fields, password=password)
    user.password_expired = True
    return user, password


def revoke_all_tokens(user: User) -> None:
    """Revoke all tokens of a user."""
    audit.record("personal_access_token_revoked", user, "Revoked all personal access tokens")
    db.session.execute(update(PersonalAccessToken).where(PersonalAccessToken.user_id == user.id).values(revoked=True))


def _token_target(token: PersonalAccessToken) -> AuditTarget:
    return AuditTarget("PersonalAccessToken", token.id, token.name)


def _lock(user: User) -> None:
    """Lock the row of a user; raise ``NotFound`` if the user has been deleted meanwhile."""
    lock_row(user, "state", "deleting_since")
    if user.deleting_since is not None:
        raise NotFound("User")


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    nullable = {"location", "organization", "note", "extern_uid", "provider"}
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
    if (new or password) and (text := _password_problem(password)):
        problems["password"] = [text]
    if not (user.name or "").strip():
        problems["name"] = [path_rules.BLANK]
    elif len(user.name) > MAX_NAME_LENGTH:
        problems["name"] = [path_rules.TOO_LONG]
    if text := _email_problem(user.email or ""):
        problems["email"] = [text]
    if user.public_email and (text := _email_problem(user.public_email)):
        problems["public_email"] = [text]
    if found := path_rules.namespace_path_problems(user.username or "", top_level=True):
        problems["username"] = found
    if (user.projects_limit or 0) < 0:
        problems["projects_limit"] = ["must be greater than or equal to 0"]
    if len(user.bio or "") > MAX_BIO_LENGTH:
        problems["bio"] = [f"is too long (maximum is {MAX_BIO_LENGTH} characters)"]
    if user.admin and is_bot(user.id):
        problems["admin"] = ["cannot be set for bots"]
    if problems:
        raise Invalid(**problems)


def _email_problem(address: str) -> str | None:
    if len(address) > MAX_EMAIL_LENGTH:
        return path_rules.TOO_LONG
    return None if EMAIL.fullmatch(address) else "is invalid"


def _password_problem(password: str) -> str | None:
    if not password:
        return path_rules.BLANK
    if len(password) < MIN_PASSWORD_LENGTH:
        return f"is too short (minimum is {MIN_PASSWORD_LENGTH} characters)"
    return f"is too long (maximum is {MAX_PASSWORD_LENGTH} characters)" if len(password) > MAX_PASSWORD_LENGTH else None
