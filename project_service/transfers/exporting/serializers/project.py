"""Serialization of the project and its settings."""

from __future__ import annotations

from collections.abc import Iterator

from project_service.domain.projects import DISABLED, ENABLED, FEATURES
from project_service.transfers.archive import layout
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line
from project_service.transfers.importing.feature_levels import LEVELS, OPERATIONS, OPERATIONS_PARTS, access_of
from project_service.transfers.project_settings import (
    AUTO_DEVOPS,
    CI_CD,
    MERGE_METHODS,
    ONLY_IF_IMPORTED,
    TAGS,
    merge_method_of,
    tags_in,
)

REGISTRY = "container_registry_access_level"  # the name of container_registry_enabled since release 14


def serialize_project(context: ExportContext, description: str | None) -> Line:
    """Return the attributes of the project: as imported, with the current values."""
    project = context.project
    changed, line = context.changed_settings, context.archived_object(layout.PROJECT)
    if project.tag_list != tags_in(line):
        line |= {name: project.tag_list for name in TAGS if name in line}
    for name in ("name", "path", "namespace_id", "creator_id", "id", "default_branch"):
        line.pop(name, None)
    settings = project.attributes or {}
    line |= {
        "description": description or project.description,
        "visibility_level": int(project.visibility),
        "archived": project.archived,
    }
    line |= {name: value for name, value in changed.items() if name in line or name not in ONLY_IF_IMPORTED}
    method = settings.get("merge_method")
    # of several notations of one method, the imported one is kept
    is_imported = not line.keys().isdisjoint(MERGE_METHODS) and (merge_method_of(line) or "merge") == method
    if method is not None and not is_imported:
        line |= dict(zip(MERGE_METHODS, (method == "ff", method in ("ff", "rebase_merge")), strict=True))
    if "build_git_strategy" in settings:
        line["build_allow_git_fetch"] = settings["build_git_strategy"] == "fetch"
    return line


def serialize_features(context: ExportContext) -> Iterator[Line]:
    """Generate the row of the access levels of features."""
    numbers = {word: number for number, word in LEVELS.items()}
    line = next(context.archived(layout.FEATURES), {"project_id": context.project.id})
    for feature in FEATURES:
        name = f"{feature}_access_level"
        access = getattr(context.project, name)
        archived = line.get(name, line.get(OPERATIONS) if feature in OPERATIONS_PARTS else None)
        if archived is None or access_of(feature, archived) != access:
            line[name] = numbers[access]
    has_registry = context.changed_settings.get("container_registry_enabled")
    if has_registry is not None and line.get(REGISTRY) is not None and bool(line[REGISTRY]) != has_registry:
        line[REGISTRY] = numbers[ENABLED if has_registry else DISABLED]
    yield line


def serialize_auto_devops(context: ExportContext) -> Iterator[Line]:
    """Generate the row of Auto DevOps, if it was imported or changed."""
    changed = context.changed_settings
    current = {theirs: changed[ours] for ours, theirs in AUTO_DEVOPS.items() if ours in changed}
    imported = next(context.archived(layout.AUTO_DEVOPS), None)
    if imported is not None:
        yield imported | current
    elif current:
        yield {"project_id": context.project.id, **current}


def serialize_ci_cd(context: ExportContext) -> Iterator[Line]:
    """Generate the row of the CI/CD settings, if it was imported."""
    changed = context.changed_settings
    current = {theirs: changed[ours] for ours, theirs in CI_CD.items() if ours in changed}
    for line in context.archived(layout.CI_CD):
        # other writers put these into the attributes of the project (archive format reference, section 4)
        yield line | {name: value for name, value in current.items() if name in line}
