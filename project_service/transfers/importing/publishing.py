"""The last step of an import: the project gets its settings and people, and shows what was loaded."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

from sqlalchemy import func, select, update

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.error_tracking.models import ErrorTrackingSetting
from project_service.areas.projects.service import apply
from project_service.areas.protected_tags.models import ProtectedTag
from project_service.areas.protected_tags.service import DOT_SEGMENTS, MAX_NAME_LENGTH, TAKEN
from project_service.domain import instance_settings, path_registry, removal
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.memberships import Membership, Share, memberships_of
from project_service.domain.namespaces import Namespace
from project_service.domain.planning import issues as planned_issues
from project_service.domain.planning import milestones as planned_milestones
from project_service.domain.projects import DISABLED, ENABLED, FEATURES, PAGES, PRIVATE, PUBLIC, Project
from project_service.domain.repositories import may_be_default
from project_service.domain.tracker.counters import Counter
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.others import MergeRequest
from project_service.domain.users import User
from project_service.kit import bigint_json, clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import ServiceError
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.extraction import BadArchive, Unpacked
from project_service.transfers.importing.refusals import Refused, invalid, unreadable
from project_service.transfers.importing.rows import (
    day_of,
    is_number,
    is_set,
    listed,
    moment_of,
    read,
    refuse_unstorable,
    text_of,
)
from project_service.transfers.importing.user_mapping import Grant, People
from project_service.transfers.models import (
    ENDED,
    FINISHED,
    LONGEST_BEFORE,
    TEMPORARY,
    ArchivedRow,
    ImportFailure,
    ProjectImport,
)
from project_service.transfers.project_settings import settings_in, tags_in

LEVELS = {0: DISABLED, 10: PRIVATE, 20: ENABLED, 30: PUBLIC}
TAGS_AT_ONCE, BYTES_AT_ONCE = 500, 4 << 20
ERROR_TRACKING_COLUMNS = frozenset(
    {"id", "created_at", "updated_at", "project_id", "api_url", "project_name", "organization_name", "enabled"}
)
TAG_COLUMNS = frozenset({"id", "created_at", "updated_at", "project_id", "name", "create_access_levels"})
# attributes that overrides set as if the archive said so: no request to change a project does
AS_IN_ARCHIVES = (
    "archived",
    "service_desk_enabled",
    "approvals_before_merge",
    "issues_template",
    "merge_requests_template",
    "external_authorization_classification_label",
)
# the counter of each kind of numbered thing
COUNTERS: tuple[tuple[str, Any], ...] = (
    (planned_issues.COUNTER, Issue),
    (planned_milestones.COUNTER, Milestone),
    ("merge_requests", MergeRequest),
)
PROVISIONAL = (Milestone, Issue, MergeRequest)  # of which rows may come without a number


class NotPermitted(Exception):
    """The importer may not take the place of the project that is to be overwritten."""


def publish(found: ProjectImport, unpacked: Unpacked, people: People) -> None:
    """Make an import visible, all at once."""
    project = found.project
    importer = db.session.get_one(User, found.user_id)
    overrides = found.override_params
    attributes = attributes_of(unpacked) | {name: overrides[name] for name in AS_IN_ARCHIVES if name in overrides}
    _set_attributes(project, attributes)
    _set_features(project, _single(unpacked, layout.FEATURES))
    settings = settings_in(attributes, *(_single(unpacked, name) for name in (layout.AUTO_DEVOPS, layout.CI_CD)))
    project.attributes = {**(project.attributes or {}), **settings}
    _set_error_tracking(project, _only_row(project, unpacked, layout.ERROR_TRACKING), people)
    _protect_tags(project, unpacked, people)
    if "public_jobs" in overrides:  # as the project itself shows the setting
        overrides = {"public_builds": overrides["public_jobs"]} | overrides
    named = attributes.get("default_branch")
    if project.default_branch and isinstance(named, str) and may_be_default(project, named):
        project.default_branch = named
    if not may_be_default(project, overrides.get("default_branch") or ""):
        overrides = {name: value for name, value in overrides.items() if name != "default_branch"}
    apply(project, overrides)
    wanted = overrides.get("visibility")
    level = Visibility.of(wanted) if wanted else attributes.get("visibility_level")
    project.visibility = _visibility(level, project.namespace)
    kept = people.settle(attributes)
    db.session.add(ArchivedRow(project_id=project.id, relation=layout.PROJECT, data=kept))
    _add_members(project, importer, people)
    for model in PROVISIONAL:
        _number(project, model)
    _set_counters(project)
    if found.wanted_path:
        _overwrite(project, found.wanted_path, importer)
    project.loading, project.import_status, project.import_error = False, FINISHED, None
    found.phase, found.ended_at = ENDED, clock.now()
    found.rows_done = found.rows_total or found.rows_done
    found.relations_done = found.relations_total or found.relations_done


def attributes_of(unpacked: Unpacked) -> dict[str, Any]:
    """What an archive says of the project itself; raises ``BadArchive``."""
    found = reader.project_of(unpacked)
    try:
        refuse_unstorable(found)
    except Refused as refused:
        raise BadArchive(str(refused)) from refused
    return found


def _set_attributes(project: Project, row: dict[str, Any]) -> None:
    description = row.get("description")
    project.description = text_of(description)
    project.archived = is_set(row.get("archived"))
    project.tag_list = tags_in(row)


def _set_features(project: Project, row: dict[str, Any]) -> None:
    for feature in FEATURES:
        level = row.get(f"{feature}_access_level")
        if level is not None:
            setattr(project, f"{feature}_access_level", access_of(feature, level))


def access_of(feature: str, level: Any) -> str:
    """Who has a feature at a level of an archive; what cannot be read opens nothing.

    Only pages may be more open than what is enabled.
    """
    access = LEVELS.get(level, PRIVATE) if type(level) is int else PRIVATE
    return ENABLED if access == PUBLIC and feature != PAGES else access


def _set_error_tracking(project: Project, row: dict[str, Any], people: People) -> None:
    # without its token, and so never enabled (archive format, section 6.4)
    if not row:
        return
    known = db.session.scalar(select(ErrorTrackingSetting).where(ErrorTrackingSetting.project_id == project.id))
    setting = known or ErrorTrackingSetting(project_id=project.id)
    setting.api_url = text_of(row.get("api_url"))
    setting.project_name = text_of(row.get("project_name"))
    setting.organization_name = text_of(row.get("organization_name"))
    setting.integrated = row.get("integrated") is True
    db.session.add(setting)
    if beside := {name: value for name, value in row.items() if name not in ERROR_TRACKING_COLUMNS}:
        kept = people.settle(beside)
        db.session.add(ArchivedRow(project_id=project.id, relation=layout.ERROR_TRACKING, data=kept))


def _protect_tags(project: Project, unpacked: Unpacked, people: People) -> None:
    names = set(db.session.scalars(select(ProtectedTag.name).where(ProtectedTag.project_id == project.id)))
    rows: dict[type[Base], list[dict[str, Any]]] = {ProtectedTag: [], ArchivedRow: [], ImportFailure: []}
    size = 0
    for count, (line, row) in enumerate(protected_tags_in(unpacked, names), start=1):
        if isinstance(row, Refused):
            rows[ImportFailure].append(_failure_of(row, layout.PROTECTED_TAGS, line))
        else:
            size += _add_tag(rows, row, people)
        if count % TAGS_AT_ONCE == 0 or size > BYTES_AT_ONCE:
            _write_tags(project, rows)
            size = 0
    _write_tags(project, rows)


def _add_tag(rows: dict[type[Base], list[dict[str, Any]]], row: dict[str, Any], people: People) -> int:
    """Add what a protected tag becomes; how many bytes of it are kept as they are."""
    tag = _tag_of(row)
    rows[ProtectedTag].append(tag)
    beside = _beside(row, tag["create_access_levels"])
    if not beside:
        return 0
    # by its moment it is known again: a tag that is protected anew has another
    known = {"name": tag["name"], "created_at": clock.isoformat(tag["created_at"])}
    kept = people.settle(beside) | known
    rows[ArchivedRow].append({"relation": layout.PROTECTED_TAGS, "data": kept})
    return len(bigint_json.dumps(kept))


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


def _failure_of(refused: Refused, relation: str, line: int) -> dict[str, Any]:
    return {
        "exception_class": refused.kind,
        "exception_message": str(refused),
        "source": refused.source,
        "relation_name": relation,
        "line_number": line,
    }


def protected_tags_in(unpacked: Unpacked, taken: set[str]) -> Iterator[tuple[int, dict[str, Any] | Refused]]:
    """The tags that an archive protects, or why one is left out; by the line they are in."""
    for line, raw in reader.rows_of(unpacked, layout.PROTECTED_TAGS):
        row = read(raw)
        if isinstance(row, Refused):
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
    """The levels that may create a tag, of those there are here, never more people than the archive lets.

    A level that names a person, a group or a key means somebody elsewhere (section 6.4).
    """
    given = row.get("create_access_levels")
    if given is None:
        return [int(Role.MAINTAINER)]
    ours = [one.get("access_level") for one in listed(given) if not _names_somebody(one)]
    levels = {_narrowed(level) for level in ours if is_number(level) and level <= Role.MAINTAINER}
    return sorted(levels) or [int(Role.NONE)]


def _names_somebody(level: dict[str, Any]) -> bool:
    return any(level.get(name) is not None for name in ("user_id", "group_id", "deploy_key_id"))


def _narrowed(level: int) -> int:
    """The level itself when there is one, else the next that fewer people have."""
    if level <= Role.NONE:
        return int(Role.NONE)
    return int(Role.DEVELOPER if level <= Role.DEVELOPER else Role.MAINTAINER)


def _beside(row: dict[str, Any], levels: list[int]) -> dict[str, Any]:
    """What an archive says of a protected tag and no column holds."""
    beside = {name: value for name, value in row.items() if name not in TAG_COLUMNS}
    given = row.get("create_access_levels")
    plain = [{"access_level": level} for level in levels]
    if given is not None and _beside_moments(given, row) != plain:
        beside["create_access_levels"] = given
    return beside


def _beside_moments(levels: Any, tag: dict[str, Any]) -> Any:
    """What levels say, but for what an export says of them anyway: nothing, and the moments of their tag."""
    if not isinstance(levels, list):
        return levels
    told = [(name, tag.get(name)) for name in ("created_at", "updated_at")]
    return [
        {name: value for name, value in one.items() if name != "id" and value is not None and (name, value) not in told}
        if isinstance(one, dict)
        else one
        for one in levels
    ]


def _visibility(wanted: Any, namespace: Namespace) -> Visibility:
    """What the archive or the override asks for, as far as the namespace and the instance let it (section 5)."""
    level = Visibility(wanted) if wanted in tuple(Visibility) else Visibility.PRIVATE
    if namespace.kind != "user":
        level = min(level, Visibility(namespace.visibility))
    return Visibility.PRIVATE if level.text in instance_settings.setting("restricted_visibility_levels") else level


def _add_members(project: Project, importer: User, people: People) -> None:
    """The importer, whom the archive names and the instance knows; no event says that they joined (section 6.1)."""
    there = set(db.session.scalars(memberships_of(project).with_only_columns(Membership.user_id)))
    # who may make projects in a group need not maintain them there; in a personal namespace its owner is a member
    granted = people.grants | {importer.id: Grant(Role.MAINTAINER)}
    for user_id in sorted(granted.keys() - there):
        given = granted[user_id]
        if given.expires_at and _last_day(given) is None:
            continue  # a role that ends some day must not be one for ever
        db.session.add(
            Membership(
                user_id=user_id,
                project_id=project.id,
                access_level=given.level,
                expires_at=_last_day(given),
                created_by_id=importer.id,
            )
        )


def _last_day(given: Grant) -> dt.date | None:
    """The day a role ends, however it is written."""
    moment = moment_of(given.expires_at)
    return day_of(given.expires_at) or (moment.date() if moment else None)


def _number(project: Project, model: type[Milestone | Issue | MergeRequest]) -> None:
    """Give the rows that have provisional numbers their own, behind those that are kept (section 6.3)."""
    here = model.project_id == project.id
    highest = db.session.scalar(select(func.max(model.iid)).where(here, model.iid > 0)) or 0
    settled = {"iid": highest - model.iid, "updated_at": model.updated_at}
    provisional = update(model).where(here, model.iid < 0).values(settled)
    db.session.execute(provisional.execution_options(synchronize_session=False))


def _set_counters(project: Project) -> None:
    for kind, model in COUNTERS:
        highest = db.session.scalar(select(func.max(model.iid)).where(model.project_id == project.id))
        if highest:
            row = insert(Counter).values(project_id=project.id, kind=kind, last=highest)
            db.session.execute(row.on_conflict_do_update(index_elements=["project_id", "kind"], set_={"last": highest}))


def _overwrite(project: Project, wanted_path: str, importer: User) -> None:
    """Take the place of the project that is there; it is removed by a job (import reference, section 5)."""
    namespace = project.namespace
    old = path_registry.at(f"{namespace.full_path}/{wanted_path}")
    if not isinstance(old, Project):
        if re.fullmatch(re.escape(wanted_path[:LONGEST_BEFORE]) + TEMPORARY, project.name):  # it may have been changed
            if _has_name(namespace, wanted_path):
                raise NotPermitted("Name has already been taken")
            project.name = wanted_path
        project.path = wanted_path
    else:
        if not allowed(Caller.of(importer), Ability.OWN_NAMESPACE, namespace):
            raise NotPermitted(
                f"User {importer.username} ({importer.id}) cannot overwrite a project in {namespace.full_path}"
            )
        _move_people(old, project)
        path_registry.start_deleting_project(old)
        removal.remove_project.defer(old.id)
        project.name, project.path = old.name, old.path
    taken = NotPermitted("Path has already been taken")
    try:
        path_registry.move_project(project, taken)
    except ServiceError as error:
        raise taken from error


def _has_name(namespace: Namespace, name: str) -> bool:
    found = select(Project.id).where(
        Project.namespace_id == namespace.id, Project.name == name, Project.deleting_since.is_(None)
    )
    return db.session.scalar(found) is not None


def _move_people(old: Project, new: Project) -> None:
    there = set(db.session.scalars(memberships_of(new).with_only_columns(Membership.user_id)))
    db.session.flush()
    for membership in db.session.scalars(memberships_of(old)):
        if membership.user_id not in there:
            membership.project_id = new.id
    db.session.execute(update(Share).where(Share.project_id == old.id).values(project_id=new.id))
    db.session.flush()


def _only_row(project: Project, unpacked: Unpacked, relation: str) -> dict[str, Any]:
    """The row that counts of a single object that is settled at the end; all others are listed."""
    found: dict[str, Any] = {}
    for line, row in single_rows(unpacked, relation):
        if isinstance(row, Refused):
            db.session.add(ImportFailure(project_id=project.id, **_failure_of(row, relation, line)))
        else:
            found = row
    return found


def single_rows(unpacked: Unpacked, relation: str) -> Iterator[tuple[int, dict[str, Any] | Refused]]:
    """The row of a single object, which is the first, and why others are left out; by the line they are in."""
    for count, (line, raw) in enumerate(reader.rows_of(unpacked, relation)):
        row = unreadable("There can be one row only") if count else read(raw)
        yield line, row if isinstance(row, dict | Refused) else unreadable("no implicit conversion into Hash")


def _single(unpacked: Unpacked, relation: str) -> dict[str, Any]:
    return next(_objects(unpacked, relation), {})


def _objects(unpacked: Unpacked, relation: str) -> Iterator[dict[str, Any]]:
    rows = (read(raw) for _, raw in reader.rows_of(unpacked, relation))
    return (row for row in rows if isinstance(row, dict) and not reader.too_deep(row))
