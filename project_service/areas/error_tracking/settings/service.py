"""Change and validate error-tracking settings (error tracking reference, section 5), and test the connection."""

from __future__ import annotations

import re
from typing import TypedDict
from urllib.parse import urlsplit

import orjson

from project_service.access import audit
from project_service.areas.error_tracking.sentry.client import host_of
from project_service.areas.error_tracking.settings import client_keys, queries
from project_service.areas.error_tracking.settings.models import API_PATH, ErrorTrackingSetting
from project_service.domain.projects import Project
from project_service.kit.db.session import add_unique
from project_service.kit.http.errors import Conflict, Invalid
from project_service.kit.security.outgoing_http import client, rules

REQUIRED = "is a required field"
MAX_LENGTH = 255
AUDIT_KIND = "error_tracking_setting"
# found out and counted by the service itself
UNAUDITED = ("sentry_project_id",)
BARE = re.compile(rf"/{API_PATH}?")
PATH = re.compile(rf"/{API_PATH}[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/*|{BARE.pattern}")
MAX_RESPONSE_BYTES = 1 << 20
MAX_RESOLVE_DAYS = 3650
MAX_HIDDEN_KEYS = 50
MAX_HIDDEN_KEY_LENGTH = 100


def switch(
    project: Project, setting: ErrorTrackingSetting, *, active: bool, integrated: bool | None = None
) -> ErrorTrackingSetting:
    """Switch settings on or off; only complete ones can be switched on."""
    former = audit.settings_of(setting, UNAUDITED)
    setting.enabled = active
    if integrated is not None:
        setting.integrated = integrated
    _check(setting, [])
    audit.record_changes(AUDIT_KIND, project, former, audit.settings_of(setting, UNAUDITED))
    client_keys.ensure_first_key(project, setting)
    return setting


def create_or_switch(project: Project, *, active: bool, integrated: bool | None) -> ErrorTrackingSetting:
    """Switch the settings of a project, creating them if there are none."""
    setting = queries.setting_of(project) or ErrorTrackingSetting(project_id=project.id, integrated=False)
    return add_unique(switch(project, setting, active=active, integrated=integrated), Conflict("409 Conflict"))


class ErrorTrackingFields(TypedDict):
    """The settings as the settings page has them; an empty ``token`` keeps the stored one unless the URL changes."""

    enabled: bool
    integrated: bool
    api_url: str | None
    token: str | None
    organization_name: str | None
    project_name: str | None
    store_addresses: bool
    hidden_keys: list[str]
    resolve_after_days: int


def save(project: Project, fields: ErrorTrackingFields, problems: list[str]) -> ErrorTrackingSetting:
    """Save the settings from the settings page; ``problems`` is the result of ``url_problems``."""
    address, token = fields["api_url"], fields["token"] or None
    setting = queries.setting_of(project) or ErrorTrackingSetting(project_id=project.id)
    former = audit.settings_of(setting, UNAUDITED)
    if (setting.api_url or "").rstrip("/") != (address or "").rstrip("/"):
        setting.token = setting.sentry_project_id = None
    for name, value in fields.items():
        if name != "token":
            setattr(setting, name, value)
    if token is not None:
        setting.token = token
    _check(setting, problems)
    audit.record_changes(AUDIT_KIND, project, former, audit.settings_of(setting, UNAUDITED))
    if token is not None:
        audit.record(f"{AUDIT_KIND}_token_updated", project, "Changed token of the error tracker", change="token")
    client_keys.ensure_first_key(project, setting)
    return add_unique(setting, Conflict("Another user has saved these settings at the same moment"))


def url_problems(address: str | None, allowed: rules.Policy) -> list[str]:
    """Return the problems of a URL. Its host name is resolved, for up to two seconds: call this without locks."""
    if not address:
        return []
    if len(address) > MAX_LENGTH:
        return [f"is too long (maximum is {MAX_LENGTH} characters)"]
    try:
        rules.validate(address, allowed, resolve_seconds=2.0)
    except rules.Blocked as error:
        # a name that does not resolve now may do so later; it is checked again before every request
        if str(error) != rules.UNRESOLVED:
            return [f"is blocked: {error}"]
    # the URL is shown to every maintainer and gets a path appended: no password, no query
    parts = urlsplit(address)
    is_plain = "@" not in parts.netloc and "?" not in address and "#" not in address
    return [] if is_plain and PATH.fullmatch(parts.path) else ["is invalid"]


def stored_token(project: Project, address: str) -> str | None:
    """Return the stored token of a project if it is for the server of an address."""
    setting = queries.setting_of(project)
    if setting is None or setting.api_url is None or host_of(setting.api_url) != host_of(address):
        return None
    return setting.token


def test_connection(setting: ErrorTrackingSetting, allowed: rules.Policy) -> tuple[bool, str]:
    """Request the project from the tracker; return whether that succeeded, and a message for the page.

    This may take fifteen seconds: call it without locks.
    """
    if not setting.api_url or not setting.token:
        return False, "Fill in the address and the token first."
    http = client.Client(allowed, connect_timeout=5, read_timeout=10, total_timeout=15)
    headers = {"Authorization": f"Bearer {setting.token}", "Accept": "application/json"}
    address = setting.api_url.rstrip("/") + "/"
    try:
        with http.request("GET", address, headers=headers) as response:
            return _outcome(response.status, response.read(MAX_RESPONSE_BYTES) if response.status == 200 else b"")
    except rules.Blocked as error:
        return False, f"The address is blocked: {error}."
    except client.RequestFailed as error:
        return False, f"The tracker cannot be reached: {error}."


def _outcome(status: int, body: bytes) -> tuple[bool, str]:
    if status in (401, 403):
        return False, f"The tracker refuses the token ({status})."
    if status == 404:
        return False, "The tracker does not know this organisation and project (404)."
    if status != 200:
        return False, f"The tracker answered with status {status}."
    try:
        tracked = orjson.loads(body)
    except orjson.JSONDecodeError:
        tracked = None
    if not isinstance(tracked, dict):
        return False, "Something answers, but not as an error tracker does."
    name = tracked.get("name") or tracked.get("slug")
    return True, f"Connected: the tracker knows the project {name}." if name else "Connected."


def _check(setting: ErrorTrackingSetting, problems: list[str]) -> None:
    """Raise ``Invalid`` with all problems of the settings; the integrated tracker requires no fields."""
    messages: dict[str, str | list[str]] = {}
    if problems:
        messages["api_url"] = problems
    elif not setting.integrated:
        messages |= _missing(setting)
    for name in ("project_name", "organization_name"):
        if len(getattr(setting, name) or "") > MAX_LENGTH:
            messages[name] = f"is too long (maximum is {MAX_LENGTH} characters)"
    if not 0 <= (setting.resolve_after_days or 0) <= MAX_RESOLVE_DAYS:
        messages["resolve_after_days"] = f"must be between 0 and {MAX_RESOLVE_DAYS}"
    if len(setting.hidden_keys or ()) > MAX_HIDDEN_KEYS:
        messages["hidden_keys"] = f"are too many (maximum is {MAX_HIDDEN_KEYS})"
    elif any(len(name) > MAX_HIDDEN_KEY_LENGTH for name in setting.hidden_keys or ()):
        messages["hidden_keys"] = f"must have at most {MAX_HIDDEN_KEY_LENGTH} characters each"
    if not setting.integrated and setting.enabled and not setting.token:
        messages["token"] = REQUIRED
    if messages:
        raise Invalid(**messages)


def _missing(setting: ErrorTrackingSetting) -> dict[str, str]:
    if setting.enabled and not setting.api_url:
        return {"api_url": REQUIRED}
    if setting.api_url and BARE.fullmatch(urlsplit(setting.api_url).path):
        return {"project": REQUIRED}
    return {}
