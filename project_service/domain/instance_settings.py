"""Settings of the whole instance, which administrators change: application settings and feature flags.

Both are read from the database at each use, so that a change applies to the next request or job in every
process.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import current_app
from sqlalchemy import JSON, Select, UniqueConstraint, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db.base import Base, Model
from project_service.kit.db.locking import lock_table
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import Invalid
from project_service.kit.security.outgoing_http import rules

IMPORT_PROJECT_FROM_REMOTE_FILE = "import_project_from_remote_file"
ARCHIVES = "gitlab_project"
IMPORT_SOURCES = [
    "github",
    "bitbucket",
    "bitbucket_server",
    "gitlab",
    "fogbugz",
    "git",
    ARCHIVES,
    "gitea",
    "manifest",
    "phabricator",
]
PREFIX = re.compile(r"[a-zA-Z0-9_+=/@:.-]+")
LONGEST_PREFIX = 20
MAX_EVENT_BYTES = 10 << 20


def at_least_nothing(value: Any) -> str | None:
    """The message for a number below zero."""
    return "must be greater than or equal to 0" if value is not None and value < 0 else None


def above_nothing(value: Any) -> str | None:
    """The message for a number that is not above zero."""
    return "must be greater than 0" if value is not None and value <= 0 else None


def event_size_problem(value: Any) -> str | None:
    """The message for a number of bytes that an event may not have."""
    if value is not None and value > MAX_EVENT_BYTES:
        return f"must be less than or equal to {MAX_EVENT_BYTES}"
    return above_nothing(value)


def unfit_as_prefix(value: Any) -> str | None:
    """The message for what tokens cannot begin with: they travel in headers and addresses."""
    if not value or PREFIX.fullmatch(value):
        return f"is too long (maximum is {LONGEST_PREFIX} characters)" if len(value or "") > LONGEST_PREFIX else None
    return "can contain only letters of the Base64 alphabet (RFC4648) with the addition of '@', ':' and '.'"


def nothing_wrong(_value: Any) -> str | None:
    """For settings whose type says all."""
    return None


@dataclass(frozen=True, slots=True)
class Setting:
    """An application setting: its type, its default, and the rules for its values."""

    kind: type
    default: Any
    problem: Callable[[Any], str | None] = nothing_wrong
    choices: tuple[Any, ...] = ()


SETTINGS: dict[str, Setting] = {
    "alert_request_log_days": Setting(int, 7, above_nothing),
    "alert_request_log_size": Setting(int, 100, above_nothing),
    "allow_local_requests_from_web_hooks_and_services": Setting(bool, False),
    "audit_event_retention_days": Setting(int, 365, at_least_nothing),
    "default_branch_name": Setting(str, None),
    "default_group_visibility": Setting(str, "private", choices=("private", "internal", "public")),
    "default_project_visibility": Setting(str, "private", choices=("private", "internal", "public")),
    "default_projects_limit": Setting(int, 100_000, at_least_nothing),
    "error_tracking_errors_per_project": Setting(int, 10_000, above_nothing),
    "error_tracking_event_limit": Setting(int, 1000, at_least_nothing),
    "error_tracking_events_per_error": Setting(int, 100, above_nothing),
    "error_tracking_max_event_size": Setting(int, 1 << 20, event_size_problem),
    "error_tracking_retention_days": Setting(int, 90, above_nothing),
    "gravatar_enabled": Setting(bool, False),
    "import_sources": Setting(list, IMPORT_SOURCES, choices=tuple(IMPORT_SOURCES)),
    "max_attachment_size": Setting(int, 100, above_nothing),
    "max_export_size": Setting(int, 0, at_least_nothing),
    "max_import_size": Setting(int, 0, at_least_nothing),
    "outbound_local_requests_whitelist": Setting(list, []),
    "password_authentication_enabled_for_git": Setting(bool, True),
    "personal_access_token_prefix": Setting(str, None, unfit_as_prefix),
    "project_download_export_limit": Setting(int, 0, at_least_nothing),
    "project_export_enabled": Setting(bool, True),
    "project_export_limit": Setting(int, 0, at_least_nothing),
    "project_import_limit": Setting(int, 0, at_least_nothing),
    "push_event_activities_limit": Setting(int, 3, at_least_nothing),
    "push_event_hooks_limit": Setting(int, 3, at_least_nothing),
    "receive_max_input_size": Setting(int, 5120, at_least_nothing),
    "require_two_factor_authentication": Setting(bool, False),
    "restricted_visibility_levels": Setting(list, [], choices=("private", "internal", "public")),
    "ropc_without_client_credentials": Setting(bool, False),
    "search_rate_limit": Setting(int, 30, at_least_nothing),
    "signup_enabled": Setting(bool, True),
    "throttle_incident_management_notification_enabled": Setting(bool, False),
    "throttle_incident_management_notification_per_period": Setting(int, 3600, above_nothing),
    "throttle_incident_management_notification_period_in_seconds": Setting(int, 3600, above_nothing),
    "two_factor_grace_period": Setting(int, 48, at_least_nothing),
}


class ApplicationSetting(Base):
    """A setting that differs from its default."""

    __tablename__ = "application_settings"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[Any] = mapped_column(JSON, nullable=True)


# the release of GitLab; clients choose the features that they use by it
COMPATIBLE = "13.8.1"
RECEIVERS_THROTTLE = "throttle_incident_management_notification"


class FeatureGate(Model):
    """One condition under which a feature is on; a feature that was ever set has its ``boolean`` gate."""

    __tablename__ = "feature_gates"
    __table_args__ = (UniqueConstraint("feature", "key", "value"),)

    feature: Mapped[str]
    key: Mapped[str]
    value: Mapped[str]


def setting(name: str) -> Any:
    """The current value of a setting."""
    stored = db.session.execute(value_of(name)).first()
    return SETTINGS[name].default if stored is None else stored[0]


def value_of(name: Any) -> Select[Any]:
    """The stored value of a setting, to be read on its own or along with something else; no row is the default."""
    return select(ApplicationSetting.value).where(ApplicationSetting.name == name)


def all_settings() -> dict[str, Any]:
    """The current values of all settings, by name."""
    rows = db.session.execute(select(ApplicationSetting.name, ApplicationSetting.value)).all()
    stored: dict[str, Any] = dict(rows)
    return {name: stored.get(name, entry.default) for name, entry in SETTINGS.items()}


def outgoing_policy() -> rules.Policy:
    """Where this instance may send requests to, as its administrators set it."""
    settings = all_settings()
    return rules.Policy(
        allow_local=settings["allow_local_requests_from_web_hooks_and_services"],
        allowed=tuple(settings["outbound_local_requests_whitelist"]),
        own_url=current_app.config["EXTERNAL_URL"],
    )


def change_settings(changes: dict[str, Any]) -> None:
    """Store values; ``Invalid`` names those that break a rule, and then nothing is changed."""
    problems = {name: text for name, value in changes.items() if (text := SETTINGS[name].problem(value))}
    if problems:
        raise Invalid(**problems)
    for name, value in changes.items():
        statement = insert(ApplicationSetting).values(name=name, value=value)
        db.session.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"value": value}))


def all_gates() -> list[FeatureGate]:
    """The gates of all features that were ever set, feature by feature."""
    return list(db.session.scalars(select(FeatureGate).order_by(FeatureGate.feature, FeatureGate.id)))


def gates_of(feature: str) -> list[FeatureGate]:
    """The gates of a feature, none if it was never set."""
    return list(db.session.scalars(select(FeatureGate).where(FeatureGate.feature == feature).order_by(FeatureGate.id)))


def lock_gates() -> None:
    """Lock the gates of all features against changes by others: a change affects several rows."""
    lock_table(FeatureGate)


def set_gate(feature: str, key: str, value: str) -> None:
    """Add a gate that is a set (an actor, a group)."""
    db.session.execute(insert(FeatureGate).values(feature=feature, key=key, value=value).on_conflict_do_nothing())


def replace_gate(feature: str, key: str, value: str) -> None:
    """Set a gate that has one value (the boolean, a percentage)."""
    db.session.execute(delete(FeatureGate).where(FeatureGate.feature == feature, FeatureGate.key == key))
    set_gate(feature, key, value)


def remove_gate(feature: str, key: str, value: str) -> None:
    """Take one value out of a gate that is a set."""
    gate = FeatureGate
    db.session.execute(delete(gate).where(gate.feature == feature, gate.key == key, gate.value == value))


def clear_gates(feature: str) -> None:
    """Forget that a feature was ever set."""
    db.session.execute(delete(FeatureGate).where(FeatureGate.feature == feature))


def feature_enabled(feature: str, *actors: str) -> bool:
    """Whether a feature is enabled, in general or for one of the actors (``User:7``, ``Project:5``)."""
    for gate in gates_of(feature):
        if gate.key == "boolean" and gate.value == "true":
            return True
        if gate.key == "actors" and gate.value in actors:
            return True
        if gate.key == "percentage_of_actors" and any(_share_of(feature, actor) < int(gate.value) for actor in actors):
            return True
        if gate.key == "percentage_of_time" and random.random() * 100 < int(gate.value):  # noqa: S311  # no secret
            return True
    return False


def _share_of(feature: str, actor: str) -> float:
    digest = hashlib.sha256(f"{feature}{actor}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 * 100


def some_settings(*names: str) -> list[Any]:
    """The current values of several settings, read with one statement."""
    rows = db.session.execute(
        select(ApplicationSetting.name, ApplicationSetting.value).where(ApplicationSetting.name.in_(names))
    )
    stored: dict[str, Any] = dict(rows.all())
    return [stored.get(name, SETTINGS[name].default) for name in names]
