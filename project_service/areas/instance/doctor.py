"""Checks of the instance by ``project-service doctor`` and the health page, with advice for the operator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import redis
from sqlalchemy import func, select, text

from project_service.areas.instance.version import OWN
from project_service.domain.instance_settings import COMPATIBLE
from project_service.kit import jobs, mail
from project_service.kit.db import text_search
from project_service.kit.db.revisions import current_revision, newest_revision
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.health_checks import CHECKS, CheckFailed
from project_service.kit.jobs import Task, rq_worker
from project_service.kit.security import key_ring
from project_service.kit.security.encryption import try_secrets
from project_service.kit.storage import storage
from project_service.settings import Settings

OLDEST_REDIS = (6, 2)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; ``text`` says what to do if it failed."""

    part: str
    well: bool
    text: str


def examine(settings: Settings) -> list[CheckResult]:
    """Run all checks; one that raises any exception has failed."""
    parts: dict[str, Callable[[], str]] = {
        "versions": _versions,
        "database": _database,
        "migrations": lambda: _text_of(migrations()),
        "secrets": lambda: _secrets(settings),
        "redis": _redis,
        "storage": _storage,
        "worker": _worker,
        "jobs": _jobs,
        "mails": _mails,
        "search": _search,
        **{part: functools.partial(_reading, check) for part, check in CHECKS.items()},
    }
    return [_find(part, look) for part, look in parts.items()]


def migrations() -> CheckResult:
    """Whether the database is at the newest version."""
    newest = newest_revision()
    with db.engine.connect() as connection:
        current = current_revision(connection)
    if current == newest:
        return CheckResult("migrations", True, f"the database is at the newest version ({newest})")
    return CheckResult(
        "migrations",
        False,
        f"the database is at {current}, the newest version is {newest}: run project-service db upgrade",
    )


def _find(part: str, look: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(part, True, look())
    except CheckFailed as error:
        return CheckResult(part, False, str(error))
    except Exception as error:  # noqa: BLE001  # every error of a check is its result
        return CheckResult(part, False, f"{type(error).__name__}: {error}")


def _text_of(finding: CheckResult) -> str:
    if not finding.well:
        raise CheckFailed(finding.text)
    return finding.text


def _reading(check: Callable[[], str]) -> str:
    with unit_of_work(write=False):
        return check()


def _versions() -> str:
    return f"project-service {OWN} (API as of {COMPATIBLE}), Python {sys.version.split()[0]}"


def _database() -> str:
    with unit_of_work(write=False):
        db.session.execute(text("SELECT 1"))
    return f"{db.engine.dialect.name} answers"


def _search() -> str:
    missing = [index.name for index in text_search.INDEXES if not text_search.has_index(index)]
    if missing:
        return (
            f"without the extension {text_search.EXTENSION} of PostgreSQL only the newest rows are searched"
            f" ({', '.join(missing)}): install it (Debian: postgresql-contrib), run CREATE EXTENSION"
            f" {text_search.EXTENSION} as its administrator, then project-service db upgrade"
        )
    return f"{len(text_search.INDEXES)} indexes of texts"


def _secrets(settings: Settings) -> str:
    try:
        count = try_secrets()
    except key_ring.SecretKeyMissing as error:
        raise CheckFailed(str(error)) from error
    where = "the environment" if settings.secret_key else str(settings.data_dir / key_ring.KEY_FILE)
    return f"the key in {where} reads the stored secrets ({count} tried)"


def _redis() -> str:
    try:
        version = str(jobs.connect().info("server")["redis_version"])
    except redis.ConnectionError as error:
        raise CheckFailed(
            f"cannot be reached ({error}): start it, or project-service serve, which brings its own"
        ) from error
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        raise CheckFailed(f"version {version} is too old: 6.2 or newer is needed")
    return f"version {version} answers"


def _storage() -> str:
    storage().check()
    return "can be written and read"


def _worker() -> str:
    try:
        jobs.connect().ping()
    except redis.ConnectionError as error:
        raise CheckFailed("cannot be seen while Redis is away") from error
    if not rq_worker.has_live_worker(jobs.connect()):
        raise CheckFailed("no worker has been seen in the last 15 seconds: start project-service worker")
    return "a worker has been seen in the last 15 seconds"


def _jobs() -> str:
    with unit_of_work(write=False):
        waiting = db.session.scalar(select(func.count()).where(Task.failed_at.is_(None)))
        failed = db.session.scalar(select(func.count()).where(Task.failed_at.is_not(None)))
    if failed:
        raise CheckFailed(
            f"{failed} tasks have failed for good; the log says why, the table tasks keeps them for 14 days"
        )
    return f"{waiting} tasks wait or run, none has failed"


def _mails() -> str:
    with unit_of_work(write=False):
        failed = mail.set_aside()
    if failed:
        raise CheckFailed(
            f"{failed} mails were set aside; the column error of the table deliveries, kept for 14 days, says why"
        )
    return "no mail was set aside"
