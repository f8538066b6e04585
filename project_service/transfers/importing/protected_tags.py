"""Protected tags of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from project_service.areas.protected_tags.service import DOT_SEGMENTS, MAX_NAME_LENGTH, TAKEN
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_tags import ProtectedTag
from project_service.kit import bigint_json, clock
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

MAX_TAGS_AT_ONCE, MAX_BYTES_AT_ONCE = 500, 4 << 20
TAG_COLUMNS = frozenset({"id", "created_at", "updated_at", "project_id", "name", "create_access_levels"})


def store_protected_tags(project: Project, unpacked: Unpacked, users: UserMapping) -> None:
    """Store the protected tags, some per statement."""
    names = set(db.session.scalars(select(ProtectedTag.name).where(ProtectedTag.project_id == project.id)))
    rows: dict[type[Base], list[dict[str, Any]]] = {ProtectedTag: [], ArchivedRow: [], ImportFailure: []}
    size = 0
    for count, (line, row) in enumerate(protected_tags_in(unpacked, names), start=1):
        if isinstance(row, RowRefused):
            rows[ImportFailure].append(failure_of(row, layout.PROTECTED_TAGS, line))
        else:
            size += _add_tag(rows, row, users)
        if count % MAX_TAGS_AT_ONCE == 0 or size > MAX_BYTES_AT_ONCE:
            _write_tags(project, rows)
            size = 0
    _write_tags(project, rows)


def _add_tag(rows: dict[type[Base], list[dict[str, Any]]], row: dict[str, Any], users: UserMapping) -> int:
    """Add the rows of a protected tag; return the bytes of what no column holds."""
    tag = _tag_of(row)
    rows[ProtectedTag].append(tag)
    extra = _extra_of(row, tag["create_access_levels"])
    if not extra:
        return 0
    # the timestamp tells whether the tag has been protected anew since
    identity = {"name": tag["name"], "created_at": clock.isoformat(tag["created_at"])}
    archived = users.map_references(extra) | identity
    rows[ArchivedRow].append({"relation": layout.PROTECTED_TAGS, "data": archived})
    return len(bigint_json.dumps(archived))


def _write_tags(project: Project, rows: dict[type[Base], list[dict[str, Any]]]) -> None:
    for model, values in rows.items():
        if values:
            db.session.execute(insert(model), [{"project_id": project.id, **each} for each in values])
        values.clear()


def _tag_of(row: dict[str, Any]) -> dict[str, Any]:
    created_at = moment_of(row.get("created_at")) or clock.now()
    return {
        "name": text_of(row["name"]),
        "create_access_levels": levels_of(row),
        "created_at": created_at,
        "updated_at": moment_of(row.get("updated_at")) or created_at,
    }


def protected_tags_in(unpacked: Unpacked, taken: set[str]) -> Iterator[tuple[int, dict[str, Any] | RowRefused]]:
    """Generate the lines with the protected tags, or why one is left out."""
    for line, raw in reader.rows_of(unpacked, layout.PROTECTED_TAGS):
        row = parse_row(raw)
        if isinstance(row, RowRefused):
            yield line, row
            continue
        name = text_of(row.get("name")) if isinstance(row, dict) else None
        problem = _tag_problem(name, taken)
        yield line, invalid(problem) if problem else row
        if name is not None and not problem:
            taken.add(name)


def _tag_problem(name: str | None, taken: set[str]) -> str | None:
    if name is None or not name.strip():
        return "Name can't be blank"
    if len(name) > MAX_NAME_LENGTH:
        return f"Name is too long (maximum is {MAX_NAME_LENGTH} characters)"
    if name in DOT_SEGMENTS or "\0" in name:
        return "Name is invalid"
    return TAKEN if name in taken else None


def levels_of(row: dict[str, Any]) -> list[int]:
    """Return the access levels that may create a tag; never levels that permit more users than the archive does.

    Levels for a user, a group or a key are left out: they refer to another server (section 6.4).
    """
    imported = row.get("create_access_levels")
    if imported is None:
        return [int(Role.MAINTAINER)]
    levels_of_roles = [one.get("access_level") for one in objects_in(imported) if not _is_individual(one)]
    levels = {_narrowed(level) for level in levels_of_roles if is_number(level) and level <= Role.MAINTAINER}
    return sorted(levels) or [int(Role.NONE)]


def _is_individual(level: dict[str, Any]) -> bool:
    return any(level.get(name) is not None for name in ("user_id", "group_id", "deploy_key_id"))


def _narrowed(level: int) -> int:
    """The level itself if it exists, else the next higher one."""
    if level <= Role.NONE:
        return int(Role.NONE)
    return int(Role.DEVELOPER if level <= Role.DEVELOPER else Role.MAINTAINER)


def _extra_of(row: dict[str, Any], levels: list[int]) -> dict[str, Any]:
    """What the archive says of a protected tag that no column holds."""
    extra = {name: value for name, value in row.items() if name not in TAG_COLUMNS}
    imported = row.get("create_access_levels")
    plain = [{"access_level": level} for level in levels]
    if imported is not None and _reduced_levels(imported, row) != plain:
        extra["create_access_levels"] = imported
    return extra


def _reduced_levels(levels: Any, tag: dict[str, Any]) -> Any:
    """Levels without the keys that every export writes: empty ones, and the timestamps of the tag."""
    if not isinstance(levels, list):
        return levels
    timestamps = [(name, tag.get(name)) for name in ("created_at", "updated_at")]
    return [
        {
            name: value
            for name, value in one.items()
            if name != "id" and value is not None and (name, value) not in timestamps
        }
        if isinstance(one, dict)
        else one
        for one in levels
    ]
