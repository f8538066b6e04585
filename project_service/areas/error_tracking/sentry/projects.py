"""Projects of a Sentry server to choose one in the settings (error collection reference, section 19)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from project_service.areas.error_tracking.sentry.client import SentryClient, SentryFailed, SentryResponseCache, host_of
from project_service.areas.error_tracking.settings.models import API_PATH
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.security.key_ring import SecretKeyMissing, keyring

MAX_PAGES = 5
MAX_NAME_LENGTH = 255
SEALED_SECONDS = 3600
SLUG = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, order=True)
class SentryProject:
    """A project of a Sentry server: its name with that of its organisation, and the address of its API."""

    title: str
    api_url: str


def projects_of(api_url: str, token: str) -> list[SentryProject]:
    """Return the projects that a token reaches on the server of an address; raises ``SentryFailed``."""
    name = hashlib.sha256(f"{host_of(api_url)} {token}".encode()).hexdigest()
    client = SentryClient(api_url, token, SentryResponseCache(f"token:{name}"))
    projects: set[SentryProject] = set()
    query = ""
    for _ in range(MAX_PAGES):
        answer = client.get_uncached(f"{client.host}/{API_PATH}{query}")
        if not isinstance(answer.body, list):
            raise SentryFailed("Error when connecting to Sentry")
        projects.update(filter(None, (_project(entry, client.host) for entry in answer.body)))
        if not answer.following:
            break
        query = f"?{urlencode({'cursor': answer.following})}"
    return sorted(projects)


def seal(token: str, project: Project, host: str) -> str:
    """Encrypt a token, so that a form can send it again: for this project, this server, and an hour."""
    content = {"token": token, "project": project.id, "host": host, "until": clock.now().timestamp() + SEALED_SECONDS}
    return keyring().encrypt(orjson.dumps(content).decode())


def unseal(sealed: str, project: Project, host: str) -> str | None:
    """Return the token that was sealed; ``None`` if it was for something else or too long ago."""
    try:
        content = orjson.loads(keyring().decrypt(sealed))
    except (SecretKeyMissing, ValueError):
        return None
    is_valid = (
        isinstance(content, dict)
        and (content.get("project"), content.get("host")) == (project.id, host)
        and content["until"] > clock.now().timestamp()
    )
    return str(content["token"]) if is_valid else None


def _project(raw: Any, host: str) -> SentryProject | None:
    """Return a project of an answer; ``None`` if it cannot be addressed."""
    raw = raw if isinstance(raw, dict) else {}
    organization = raw["organization"] if isinstance(raw.get("organization"), dict) else {}
    slugs = [str(part.get("slug")) for part in (organization, raw)]
    if None in (organization.get("slug"), raw.get("slug")) or not all(map(SLUG.fullmatch, slugs)):
        return None
    names = [part["name"] if isinstance(part.get("name"), str) else part["slug"] for part in (organization, raw)]
    return SentryProject(" / ".join(names)[:MAX_NAME_LENGTH], f"{host}/{API_PATH}{'/'.join(slugs)}")
