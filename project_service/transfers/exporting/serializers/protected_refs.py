"""Serialization of protected tags and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line
from project_service.transfers.importing.protected_refs import BRANCHES, TAGS, ProtectedRefs

BRANCH_COLUMNS = ("push_access_level", "merge_access_level", "allow_force_push", "added_by_import")


def serialize_protected_tags(context: ExportContext) -> Iterator[Line]:
    """Generate the protected tags."""
    return _lines(context, TAGS, ("create_access_levels",))


def serialize_protected_branches(context: ExportContext) -> Iterator[Line]:
    """Generate the protected branches, without one that the import added."""
    return _lines(context, BRANCHES, BRANCH_COLUMNS)


def _lines(context: ExportContext, kind: ProtectedRefs, names: tuple[str, ...]) -> Iterator[Line]:
    """Generate lines; what was imported with a ref, until the ref is protected again or its levels change."""
    # the ids only: the rows may be large
    imported = {line.get("name"): number for number, line in context.archived_rows(kind.relation)}
    columns = [getattr(kind.model, name) for name in ("id", "name", *names)]
    for number, name, *stored, created_at, updated_at in context.all_rows(kind.model, *columns):
        values = dict(zip(names, stored, strict=True))
        if values.get("added_by_import"):
            continue
        moments = {"created_at": created_at, "updated_at": updated_at}
        line: dict[str, Any] = {
            key: [{"access_level": level, **moments, "user_id": None, "group_id": None} for level in levels]
            for key, levels in kind.levels(values).items()
        }
        if values.get("allow_force_push"):
            line["allow_force_push"] = True
        extra = context.archived_data(imported[name]) if name in imported else {}
        if extra.get("created_at") in (None, created_at) and _is_imported(kind, values, extra):
            line |= extra
        yield {"id": number, "project_id": context.project.id, "name": name, **moments} | line


def _is_imported(kind: ProtectedRefs, values: dict[str, Any], extra: Line) -> bool:
    """Whether the columns of a ref are still those of the archive; ``extra`` has the keys that differ from them."""
    plain = {key: [{"access_level": level} for level in levels] for key, levels in kind.levels(values).items()}
    return bool(extra) and kind.values_of(plain | extra) == values
