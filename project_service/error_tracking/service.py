"""What changes error-tracking settings, and the rules of the record (error tracking reference, section 5)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import orjson
from flask import current_app

from project_service.core import instance
from project_service.core.projects import Project
from project_service.error_tracking import queries
from project_service.error_tracking.models import API_PATH, ErrorTrackingSetting
from project_service.kit import outgoing
from project_service.kit.database import add_unique, db
from project_service.kit.errors import Conflict, Invalid

REQUIRED = "is a required field"
LONGEST = 255
SLUG = re.compile(r"[A-Za-z0-9_.-]+")
UNRESOLVED = "Host cannot be resolved or invalid"
LARGEST_ANSWER = 1 << 20


def switch(setting: ErrorTrackingSetting, *, active: bool, integrated: bool | None = None) -> ErrorTrackingSetting:
    """Switch settings on or off; only complete ones can be switched on."""
    with db.session.no_autoflush:
        setting.enabled = active
        if integrated is not None:
            setting.integrated = integrated
        check(setting)
    return setting


def create_or_switch(project: Project, *, active: bool, integrated: bool) -> ErrorTrackingSetting:
    """Switch the settings of a project, made now if there are none."""
    setting = queries.setting_of(project)
    if setting is not None:
        return switch(setting, active=active, integrated=integrated)
    setting = ErrorTrackingSetting(project_id=project.id, enabled=active, integrated=integrated)
    check(setting)
    return add_unique(setting, Conflict("409 Conflict"))


def save(project: Project, **fields: Any) -> ErrorTrackingSetting:
    """Fill the record from the settings page; an empty token keeps the stored one, unless the address changes."""
    token = fields.pop("token") or None
    setting = queries.setting_of(project) or ErrorTrackingSetting(project_id=project.id)
    with db.session.no_autoflush:
        if setting.api_url != fields["api_url"]:
            setting.token = None
        for name, value in fields.items():
            setattr(setting, name, value)
        if token is not None:
            setting.token = token
        check(setting)
    return add_unique(setting, Conflict("Somebody else has saved these settings at the same moment"))


def check(setting: ErrorTrackingSetting) -> None:
    """Raise ``Invalid`` with everything that is wrong with the settings; the integrated tracker needs no more."""
    if setting.integrated:
        return
    problems: dict[str, list[str]] = {}
    if found := _address_problems(setting):
        problems["api_url"] = found
    if setting.enabled and not setting.token:
        problems["token"] = [REQUIRED]
    if problems:
        raise Invalid(**problems)


def policy() -> outgoing.Policy:
    """Where this instance may send requests to, as its administrators set it."""
    settings = instance.all_settings()
    return outgoing.Policy(
        allow_local=settings["allow_local_requests_from_web_hooks_and_services"],
        allowed=tuple(settings["outbound_local_requests_whitelist"]),
        own_url=current_app.config["EXTERNAL_URL"],
    )


def test_connection(setting: ErrorTrackingSetting) -> tuple[bool, str]:
    """Ask the tracker for the project; whether it answered as it should, and what came back, for people."""
    if not setting.api_url or not setting.token:
        return False, "Fill in the address and the token first."
    client = outgoing.Client(policy(), connect_timeout=5, read_timeout=10, total_timeout=15)
    headers = {"Authorization": f"Bearer {setting.token}", "Accept": "application/json"}
    address = setting.api_url.rstrip("/") + "/"
    try:
        with client.request("GET", address, headers=headers) as answer:
            return _told(answer.status, answer.read(LARGEST_ANSWER) if answer.status == 200 else b"")
    except outgoing.Blocked as error:
        return False, f"The address is blocked: {error}."
    except outgoing.RequestFailed as error:
        return False, f"The tracker cannot be reached: {error}."


def _told(status: int, body: bytes) -> tuple[bool, str]:
    if status in (401, 403):
        return False, f"The tracker refuses the token ({status})."
    if status == 404:
        return False, "The tracker does not know this organisation and project (404)."
    if status != 200:
        return False, f"The tracker answered with status {status}."
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False, "Something answers, but not as an error tracker does."
    name = found.get("name") or found.get("slug") if isinstance(found, dict) else None
    return True, f"Connected: the tracker knows the project {name}." if name else "Connected."


def _address_problems(setting: ErrorTrackingSetting) -> list[str]:
    address = setting.api_url or ""
    if not address:
        return [REQUIRED] if setting.enabled else []
    if len(address) > LONGEST:
        return [f"is too long (maximum is {LONGEST} characters)"]
    try:
        outgoing.validate(address, policy(), patience=2.0)
    except outgoing.Blocked as error:
        # a name that cannot be looked up now may be one tomorrow, and is judged again before every request
        if str(error) != UNRESOLVED:
            return [f"is blocked: {error}"]
    return _path_problems(urlsplit(address).path)


def _path_problems(path: str) -> list[str]:
    before, _, rest = f"{path.rstrip('/')}/".partition(f"/{API_PATH}")
    parts = rest.rstrip("/").split("/") if rest else []
    if before or (not rest and API_PATH not in f"{path}/"):
        return ["is invalid"]
    if len(parts) < 2:
        return [f"project {REQUIRED}"]
    return [] if len(parts) == 2 and all(SLUG.fullmatch(part) for part in parts) else ["is invalid"]
