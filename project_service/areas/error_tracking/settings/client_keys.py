"""Client keys: with them applications send events (error collection reference, sections 1 to 3)."""

from __future__ import annotations

import re
import secrets
from urllib.parse import urlsplit

from sqlalchemy import Select, func, select

from project_service.access import audit
from project_service.areas.error_tracking.settings import queries
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorTrackingSetting
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db, one
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid, RecordNotFound

MAX_KEYS = 50
PREFIX = "glet_"
KEY_BYTES = 16
PUBLIC_KEY = re.compile(r"[A-Za-z0-9_]{1,64}")
DIGEST_KEY_BYTES = 32


def keys_of(project: Project) -> Select[ClientKey]:
    """The client keys of a project, oldest first."""
    return select(ClientKey).where(ClientKey.project_id == project.id).order_by(ClientKey.id)


def find_key(project: Project, key_id: int) -> ClientKey:
    """One client key of a project; raises ``RecordNotFound``."""
    return one(keys_of(project).where(ClientKey.id == key_id), RecordNotFound())


def first_active_key(project: Project) -> ClientKey | None:
    """Return the oldest key with which events are taken."""
    return db.session.scalar(keys_of(project).where(ClientKey.active.is_(True)).limit(1))


def create_key(project: Project) -> ClientKey:
    """Create a client key; a project has at most ``MAX_KEYS``."""
    lock_row(project, "id")
    if (db.session.scalar(select(func.count()).select_from(keys_of(project).subquery())) or 0) >= MAX_KEYS:
        raise Invalid(base=f"Maximum number of client keys ({MAX_KEYS}) exceeded")
    key = ClientKey(project_id=project.id, public_key=PREFIX + secrets.token_hex(KEY_BYTES))
    db.session.add(key)
    if (setting := queries.setting_of(project)) is not None:
        ensure_digest_key(setting)
    db.session.flush()
    _record(project, key, "created")
    return key


def delete_key(key: ClientKey) -> None:
    """Remove a client key: its events are refused from then on."""
    delete_locked(key)
    db.session.flush()
    _record(db.session.get_one(Project, key.project_id), key, "destroyed")


def _record(project: Project, key: ClientKey, action: str) -> None:
    target = AuditTarget("ErrorTracking::ClientKey", key.id, f"client key {key.id}")
    audit.record(f"error_tracking_client_key_{action}", project, f"Client key {action}", target=target)


def ensure_first_key(project: Project, setting: ErrorTrackingSetting) -> None:
    """Create a key if this server tracks the errors of a project that has no active one."""
    if not (setting.enabled and setting.integrated):
        return
    ensure_digest_key(setting)
    if first_active_key(project) is None:
        create_key(project)


def ensure_digest_key(setting: ErrorTrackingSetting) -> None:
    """Give a project the key of the digests of users."""
    if setting.user_digest_key is None:
        setting.user_digest_key = secrets.token_hex(DIGEST_KEY_BYTES)


def dsn_of(key: ClientKey) -> str:
    """Return the address that is given to SDKs."""
    base = urlsplit(urls.base_url())
    return f"{base.scheme}://{key.public_key}@{base.netloc}{urls.API_PREFIX}/error_tracking/collector/{key.project_id}"
