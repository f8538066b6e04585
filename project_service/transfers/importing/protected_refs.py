"""Protected tags and branches of an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from project_service.areas.protected_refs.service import TAKEN
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag, problem_of
from project_service.kit import clock, exact_json
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, insert
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.contents import Unpacked
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.importing.mapping.values import is_number, moment_of, objects_in, text_of
from project_service.transfers.importing.refusals import RowRefused, invalid
from project_service.transfers.importing.single_rows import failure_of
from project_service.transfers.importing.user_mapping import UserMapping
from project_service.transfers.models import ArchivedRow, ImportFailure

MAX_REFS_AT_ONCE, MAX_BYTES_AT_ONCE = 500, 4 << 20
COLUMNS = frozenset({"id", "created_at", "updated_at", "project_id", "name"})


@dataclass(frozen=True, slots=True)
class ProtectedRefs:
    """A relation of protected refs.

    ``values_of`` returns the columns of a line but name and timestamps; ``levels`` the access levels that an export
    writes for these columns, by the key of the line.
    """

    relation: str
    model: type[ProtectedTag | ProtectedBranch]
    values_of: Callable[[dict[str, Any]], dict[str, Any]]
    levels: Callable[[dict[str, Any]], dict[str, list[int]]]


def _tag_values(row: dict[str, Any]) -> dict[str, Any]:
    return {"create_access_levels": levels_of(row, "create_access_levels")}


def _branch_values(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "push_access_level": _level_of(row, "push_access_levels"),
        "merge_access_level": _level_of(row, "merge_access_levels"),
        "allow_force_push": row.get("allow_force_push") is True,
        "added_by_import": False,
    }


def _branch_levels(values: dict[str, Any]) -> dict[str, list[int]]:
    return {
        "merge_access_levels": [values["merge_access_level"]],
        "push_access_levels": [values["push_access_level"]],
    }


TAGS = ProtectedRefs(layout.PROTECTED_TAGS, ProtectedTag, _tag_values, lambda values: values)
BRANCHES = ProtectedRefs(layout.PROTECTED_BRANCHES, ProtectedBranch, _branch_values, _branch_levels)
ALL = {kind.relation: kind for kind in (TAGS, BRANCHES)}


def store_protected_refs(project: Project, unpacked: Unpacked, users: UserMapping, kind: ProtectedRefs) -> None:
    """Store the protected tags or branches, some per statement."""
    model = kind.model
    names = set(db.session.scalars(select(model.name).where(model.project_id == project.id)))
    rows: dict[type[Base], list[dict[str, Any]]] = {model: [], ArchivedRow: [], ImportFailure: []}
    size = 0
    for count, (line, row) in enumerate(protected_refs_in(unpacked, names, kind), start=1):
        if isinstance(row, RowRefused):
            rows[ImportFailure].append(failure_of(row, kind.relation, line))
        else:
            size += _add_ref(rows, row, users, kind)
        if count % MAX_REFS_AT_ONCE == 0 or size > MAX_BYTES_AT_ONCE:
            _write(project, rows)
            size = 0
    _write(project, rows)


def _add_ref(
    rows: dict[type[Base], list[dict[str, Any]]], row: dict[str, Any], users: UserMapping, kind: ProtectedRefs
) -> int:
    """Add the rows of a protected ref; return the bytes of what no column holds."""
    created_at = moment_of(row.get("created_at")) or clock.now()
    values = kind.values_of(row)
    ref = {
        "name": text_of(row["name"]),
        "created_at": created_at,
        "updated_at": moment_of(row.get("updated_at")) or created_at,
        **values,
    }
    rows[kind.model].append(ref)
    extra = _extra_of(row, kind.levels(values))
    if not extra:
        return 0
    # the timestamp shows whether the ref has been protected again since
    identity = {"name": ref["name"], "created_at": clock.isoformat(created_at)}
    archived = users.map_references(extra) | identity
    rows[ArchivedRow].append({"relation": kind.relation, "data": archived})
    return len(exact_json.dumps(archived))


def _write(project: Project, rows: dict[type[Base], list[dict[str, Any]]]) -> None:
    for model, values in rows.items():
        if values:
            db.session.execute(insert(model), [{"project_id": project.id, **each} for each in values])
        values.clear()


def protected_refs_in(
    unpacked: Unpacked, taken_names: set[str], kind: ProtectedRefs
) -> Iterator[tuple[int, dict[str, Any] | RowRefused]]:
    """Generate the lines with the protected refs, or why one is left out."""
    for line, raw in reader.rows_of(unpacked, kind.relation):
        row = parse_row(raw)
        if isinstance(row, RowRefused):
            yield line, row
            continue
        name = text_of(row.get("name")) if isinstance(row, dict) else None
        problem = problem_of(name) or (TAKEN if name in taken_names else None)
        yield line, invalid(problem) if problem else row
        if name is not None and not problem:
            taken_names.add(name)


def _level_of(row: dict[str, Any], key: str) -> int:
    """The lowest role that an archive admits; none if it admits no role."""
    return min((level for level in levels_of(row, key) if level != Role.NONE), default=int(Role.NONE))


def levels_of(row: dict[str, Any], key: str) -> list[int]:
    """Return the access levels of a row; never levels that permit more users than the archive does.

    Levels for a user, a group or a key refer to another server and are left out
    (archive format reference, section 6.4).
    """
    imported = row.get(key)
    if imported is None:
        return [int(Role.MAINTAINER)]
    levels_of_roles = [level.get("access_level") for level in objects_in(imported) if not _is_individual(level)]
    levels = {_narrowed(level) for level in levels_of_roles if is_number(level) and level <= Role.MAINTAINER}
    return sorted(levels) or [int(Role.NONE)]


def _is_individual(level: dict[str, Any]) -> bool:
    return any(level.get(name) is not None for name in ("user_id", "group_id", "deploy_key_id"))


def _narrowed(level: int) -> int:
    """The level itself if it exists, else the next higher one."""
    if level <= Role.NONE:
        return int(Role.NONE)
    return int(Role.DEVELOPER if level <= Role.DEVELOPER else Role.MAINTAINER)


def _extra_of(row: dict[str, Any], levels: dict[str, list[int]]) -> dict[str, Any]:
    """What the archive says of a protected ref that no column holds."""
    extra = {name: value for name, value in row.items() if name not in COLUMNS | levels.keys()}
    for key, stored in levels.items():
        imported = row.get(key)
        plain = [{"access_level": level} for level in stored]
        if imported is not None and _reduced_levels(imported, row) != plain:
            extra[key] = imported
    return extra


def _reduced_levels(levels: Any, ref: dict[str, Any]) -> Any:
    """Levels without the keys that every export writes: empty ones, and the timestamps of the ref."""
    if not isinstance(levels, list):
        return levels
    timestamps = [(name, ref.get(name)) for name in ("created_at", "updated_at")]
    return [
        {
            name: value
            for name, value in level.items()
            if name != "id" and value is not None and (name, value) not in timestamps
        }
        if isinstance(level, dict)
        else level
        for level in levels
    ]
