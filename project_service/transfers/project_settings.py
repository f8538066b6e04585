"""The settings of a project and their names in archives (archive format reference, sections 4.1 and 4.2)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from project_service.areas.projects.schemas import (
    LATER_SETTINGS,
    STORED_BOOLEANS,
    STORED_CHOICES,
    STORED_INTEGERS,
    STORED_SETTINGS,
    STORED_TEXTS,
)
from project_service.areas.projects.service import MAX_SETTING_LENGTH, MAX_TOPICS_LENGTH

MERGE_METHODS = ("merge_requests_ff_only_enabled", "merge_requests_rebase_enabled")
AUTO_DEVOPS = {"auto_devops_enabled": "enabled", "auto_devops_deploy_strategy": "deploy_strategy"}
CI_CD = {
    "ci_default_git_depth": "default_git_depth",
    "ci_forward_deployment_enabled": "forward_deployment_enabled",
    "restrict_user_defined_variables": "restrict_user_defined_variables",
}
# attributes that are exported only if they were imported: other writers leave them out or have other names for them
ONLY_IF_IMPORTED = frozenset(
    {"emails_disabled", "lfs_enabled", "packages_enabled", "build_git_strategy", "merge_method", *AUTO_DEVOPS}
    | LATER_SETTINGS
)
TAGS = ("tag_list", "topics")  # the name since release 14 is the second

Row = Mapping[str, Any]


def settings_in(attributes: Row, auto_devops: Row, ci_cd: Row) -> dict[str, Any]:
    """Return the settings that an archive has: attributes of the project, Auto DevOps and CI/CD settings."""
    settings = _settings_among(attributes)
    if has_boolean(attributes, "build_allow_git_fetch"):
        settings["build_git_strategy"] = "fetch" if attributes["build_allow_git_fetch"] else "clone"
    if (method := merge_method_of(attributes)) is not None:
        settings["merge_method"] = method
    for row, names in ((auto_devops, AUTO_DEVOPS), (ci_cd, CI_CD)):
        settings |= _settings_among({ours: row[theirs] for ours, theirs in names.items() if theirs in row})
    return settings


def has_boolean(row: Row, name: str) -> bool:
    """Whether a value is a boolean."""
    return isinstance(row.get(name), bool)


def _settings_among(row: Row) -> dict[str, Any]:
    settings: dict[str, Any] = {name: row[name] for name in STORED_BOOLEANS if has_boolean(row, name)}
    settings |= {name: row[name] for name in STORED_INTEGERS if type(row.get(name)) is int}
    settings |= {
        name: row[name]
        for name in STORED_TEXTS
        if isinstance(row.get(name), str) and len(row[name]) <= MAX_SETTING_LENGTH
    }
    for name in ("auto_cancel_pending_pipelines", "auto_devops_deploy_strategy"):
        if row.get(name) in STORED_CHOICES[name]:
            settings[name] = row[name]
    return settings


def merge_method_of(row: Row) -> str | None:
    """Return the merge method that two attributes of an archive state, if they do."""
    is_ff, is_rebase = (row.get(name) is True for name in MERGE_METHODS)
    return "ff" if is_ff else "rebase_merge" if is_rebase else None


def tags_in(attributes: Row) -> list[str]:
    """Return the tags of the project in an archive, each once."""
    tags: list[Any] = next((attributes[name] for name in TAGS if isinstance(attributes.get(name), list)), [])
    words = list(dict.fromkeys(word for word in tags if isinstance(word, str)))
    lengths = itertools.accumulate(map(len, words))
    return [word for word, length in zip(words, lengths, strict=True) if length <= MAX_TOPICS_LENGTH]


def settings_changed_since(imported: Row, current: Row) -> dict[str, Any]:
    """Return the settings whose current values differ from those that were imported."""
    return {name: current[name] for name in STORED_SETTINGS if name in current and current[name] != imported.get(name)}
