"""What changes environments."""

from __future__ import annotations

import re
import secrets
from typing import Any
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
LONGEST_NAME = 255
LONGEST_SLUG = 24
TAKEN = "has already been taken"


def create_environment(project: Project, *, name: str | None, external_url: str | None = None) -> Environment:
    """Add an environment to a project."""
    environment = Environment(
        project_id=project.id, name=name or "", slug=slug_of(name or ""), external_url=external_url or None
    )
    check(environment)
    return add_unique(environment, Invalid(name=TAKEN))


def update_environment(environment: Environment, **fields: Any) -> Environment:
    """Change an environment; the slug stays what it was."""
    with db.session.no_autoflush:
        if fields.get("name") is not None:
            environment.name = fields["name"]
        if "external_url" in fields:
            environment.external_url = fields["external_url"] or None
        check(environment)
    with unique(Invalid(name=TAKEN)):
        db.session.flush()
    return environment


def delete_environment(environment: Environment) -> None:
    """Remove an environment; alerts that point at it stay, and point nowhere."""
    delete_locked(environment)


def check(environment: Environment) -> None:
    """Raise ``Invalid`` with what is wrong with an environment."""
    problems: dict[str, list[str]] = {}
    name = environment.name
    if not name.strip():
        problems["name"] = ["can't be blank"]
    elif len(name) > LONGEST_NAME:
        problems["name"] = [f"is too long (maximum is {LONGEST_NAME} characters)"]
    elif not NAME.fullmatch(name) or name.startswith("/") or name.endswith("/"):
        problems["name"] = [NAME_MESSAGE]
    elif _name_taken(environment):
        problems["name"] = [TAKEN]
    if environment.external_url and not _is_web_address(environment.external_url):
        problems["external_url"] = ["is blocked: Only allowed schemes are http, https"]
    if problems:
        raise Invalid(**problems)


def slug_of(name: str) -> str:
    """A short name for addresses: lower case, everything else a dash; cut ones get a random end."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"env-{slug}".rstrip("-")
    if slug == name and len(slug) <= LONGEST_SLUG:
        return slug
    return f"{slug[: LONGEST_SLUG - 7].rstrip('-')}-{secrets.token_hex(3)}"


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
