"""Users whom a text mentions: ``@name``."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlalchemy import func

from project_service.access.identity import Caller
from project_service.domain import todos
from project_service.domain.accounts.users import ACTIVE, User, users
from project_service.domain.notifications import levels
from project_service.domain.projects import Project
from project_service.domain.todos import TodoAction
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db

MENTION = re.compile(r"(?<![\w@/.])@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)  # names there are no mentions
MAX_MENTIONED_USERS = 50
MAX_SEARCHED_CHARACTERS = 100_000
MAX_EXCERPT_CHARACTERS = 2000


def names_in(text: str | None) -> set[str]:
    """Return the names that a text mentions outside of code, in lower case."""
    plain = CODE.sub(" ", (text or "")[:MAX_SEARCHED_CHARACTERS])
    return {name.rstrip(".-").lower() for name in MENTION.findall(plain)}


def mentioned_users(text: str | None, may_see: Callable[[Caller], bool], *, former: str | None = None) -> list[User]:
    """Return the active users whom a text mentions and a former text did not, of those who may see it."""
    names = sorted(names_in(text) - names_in(former))[:MAX_MENTIONED_USERS]
    if not names:
        return []
    candidates = db.session.scalars(users().where(func.lower(User.username).in_(names), User.state == ACTIVE))
    return [user for user in candidates if may_see(Caller.of(user))]


def notify(
    mentioned: list[User],
    author: User,
    project: Project,
    target: tuple[str, int],
    *,
    title: str,
    address: str,
    text: str,
    note: Note | None = None,
) -> None:
    """Give mentioned users, except the author, a to-do item and, where mails are sent, a mail.

    ``target`` is the type and the id of what was commented on, ``address`` the URL of its page.
    """
    others = [user for user in mentioned if user.id != author.id]
    if not others:
        return
    target_type, target_id = target
    todos.add(
        [user.id for user in others],
        TodoAction.MENTIONED,
        project.id,
        target_type,
        [target_id],
        author=author,
        note=note,
    )
    excerpt = text if len(text) <= MAX_EXCERPT_CHARACTERS else text[:MAX_EXCERPT_CHARACTERS] + "…"
    body = f"{author.name} (@{author.username}) mentioned you:\n\n{excerpt}\n\n{address}\n"
    levels.mail_personally([user.id for user in others], project, title, body)
