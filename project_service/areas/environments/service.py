"""Create, change and delete environments."""

from __future__ import annotations

import re
import secrets
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

from sqlalchemy import select

from project_service.domain.projects import Project
from project_service.domain.tracker.environments import Environment
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db, unique
from project_service.kit.http.errors import Invalid

NAME = re.compile(r"[a-zA-Z0-9_/${}. -]+")
NAME_MESSAGE = (
    "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces, "
    "but it cannot start or end with '/'"
)
MAX_NAME_LENGTH = 255
MAX_SLUG_LENGTH = 24
TAKEN = "has already been taken"


def create_environment(project: Project, *, name: str | None, external_url: str | None = None) -> Environment:
    """Create an environment in a project."""
    environment = Environment(
        project_id=project.id, name=name or "", slug=slug_of(name or ""), external_url=external_url or None
    )
    check(environment)
    return add_unique(environment, Invalid(name=TAKEN))


class EnvironmentFields(TypedDict, total=False):
    """What can be changed of an environment."""

    name: str | None
    external_url: str | None


def update_environment(environment: Environment, **fields: Unpack[EnvironmentFields]) -> Environment:
    """Change an environment; the slug is not changed."""
    with db.session.no_autoflush:
        if (name := fields.get("name")) is not None:
            environment.name = name
        if "external_url" in fields:
            environment.external_url = fields["external_url"] or None
        check(environment)
    with unique(Invalid(name=TAKEN)):
        db.session.flush()
    return environment


def delete_environment(environment: Environment) -> None:
    """Delete an environment; its alerts are kept without an environment."""
    delete_locked(environment)


def check(environment: Environment) -> None:
    """Validate an environment; ``Invalid`` carries all problems."""
    problems: dict[str, list[str]] = {}
    name = environment.name
    if not name.strip():
        problems["name"] = ["can't be blank"]
    elif len(name) > MAX_NAME_LENGTH:
        problems["name"] = [f"is too long (maximum is {MAX_NAME_LENGTH} characters)"]
    elif not NAME.fullmatch(name) or name.startswith("/") or name.endswith("/"):
        problems["name"] = [NAME_MESSAGE]
    elif _name_taken(environment):
        problems["name"] = [TAKEN]
    if environment.external_url and not _is_web_address(environment.external_url):
        problems["external_url"] = ["is blocked: Only allowed schemes are http, https"]
    if problems:
        raise Invalid(**problems)


def slug_of(name: str) -> str:
    """Return a name for URLs: lower case, other characters as dashes; changed ones get a random suffix."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"env-{slug}".rstrip("-")
    if slug == name and len(slug) <= MAX_SLUG_LENGTH:
        return slug
    return f"{slug[: MAX_SLUG_LENGTH - 7].rstrip('-')}-{secrets.token_hex(3)}"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # half an IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _name_taken(environment: Environment) -> bool:
    same = select(Environment.id).where(
        Environment.project_id == environment.project_id,
        Environment.name == environment.name,
        Environment.id != (environment.id or 0),
    )
    return db.session.scalar(same) is not None
