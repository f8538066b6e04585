"""Settings of groups that are stored for clients, and the views of those that have two notations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from project_service.kit.http.errors import Invalid

RUNNER_SETTINGS = (
    "enabled",
    "disabled_and_overridable",
    "disabled_and_unoverridable",
    "disabled_with_override",
)
FORMER_RUNNER_SETTING, RUNNER_SETTING = "disabled_with_override", "disabled_and_overridable"
CHOICES = {
    "shared_runners_setting": RUNNER_SETTINGS,
    "wiki_access_level": ("disabled", "private", "enabled"),
    "enabled_git_access_protocol": ("ssh", "http", "all"),
}
# what a group answers that has not chosen otherwise
DEFAULTS: dict[str, Any] = {
    "shared_runners_setting": "enabled",
    "wiki_access_level": "enabled",
    "lock_duo_features_enabled": False,
    "membership_lock": False,
    "prevent_forking_outside_group": False,
    "prevent_sharing_groups_outside_hierarchy": False,
    "service_access_tokens_expiration_enforced": True,
    "enabled_git_access_protocol": None,
}
NULLABLE = frozenset({"enabled_git_access_protocol"})
PROTECTION, PROTECTION_DEFAULTS = "default_branch_protection", "default_branch_protection_defaults"
# level: who may push, who may merge, whether pushes may be forced, whether developers may push first
_PROTECTIONS = {
    0: (30, 30, True, False),
    1: (30, 40, False, False),
    2: (40, 40, False, False),
    3: (40, 30, False, False),
    4: (40, 40, False, True),
}
FULL_PROTECTION = 2


def protection_defaults(level: int | None) -> dict[str, Any]:
    """Return a level of ``default_branch_protection`` as the object that later clients read."""
    push, merge, may_force, may_begin = _PROTECTIONS[FULL_PROTECTION if level is None else level]
    return {
        "allowed_to_push": [{"access_level": push}],
        "allow_force_push": may_force,
        "allowed_to_merge": [{"access_level": merge}],
        "code_owner_approval_required": False,
        "developer_can_initial_push": may_begin,
    }


def level_of(wanted: Mapping[str, Any], current: int | None) -> int:
    """Return the level that an object describes; what it leaves out is as now.

    Raises:
        Invalid: no level is like that; a weaker or a stricter one is not what was asked for.

    """
    asked = protection_defaults(current) | {name: _plain(value) for name, value in wanted.items()}
    for level in _PROTECTIONS:
        if protection_defaults(level) == asked:
            return level
    raise Invalid(**{PROTECTION_DEFAULTS: "is not supported"})


def _plain(value: Any) -> Any:
    """Return a value of JSON or of a form as JSON has it."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {name: _plain(element) for name, element in value.items()}
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), int(value) if value.isdecimal() else value)
    return value


def taken_from(fields: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the stored settings from the fields of a request; return them together with the present ones."""
    requested = {name: fields.pop(name) for name in DEFAULTS if name in fields}
    changed = {name: value for name, value in requested.items() if value is not None or name in NULLABLE}
    if changed.get("shared_runners_setting") == FORMER_RUNNER_SETTING:
        changed["shared_runners_setting"] = RUNNER_SETTING
    return {**attributes, **changed}


def set_views(fields: dict[str, Any], current_protection: int | None) -> None:
    """Replace the later notations of settings in the fields of a request by those of their columns."""
    emails_enabled = fields.pop("emails_enabled", None)
    if emails_enabled is not None:
        fields["emails_disabled"] = not emails_enabled
    wanted = fields.pop(PROTECTION_DEFAULTS, None)
    if wanted is not None:
        fields[PROTECTION] = level_of(wanted, current_protection)
