"""The last step of an import: settings, members and iids are stored, and the project becomes visible."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from sqlalchemy import func, select, update

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.areas.error_tracking.settings.service import MAX_LENGTH
from project_service.areas.projects.service import MAX_DESCRIPTION_LENGTH, apply
from project_service.domain import instance_settings, removal
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership, Share, memberships_of
from project_service.domain.namespaces import Namespace
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.domain.repositories.models import may_be_default
from project_service.domain.repositories.restoring import protect_imported_code
from project_service.domain.tracker import issue_rules, milestone_rules
from project_service.domain.tracker.counters import Counter
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.kit import clock
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import ServiceError
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.contents import BadArchive, Unpacked
from project_service.transfers.importing.feature_levels import set_features
from project_service.transfers.importing.files import adopt_avatar
from project_service.transfers.importing.mapping.parsing import refuse_unstorable
from project_service.transfers.importing.mapping.values import day_of, is_set, moment_of, text_of
from project_service.transfers.importing.protected_refs import BRANCHES, TAGS, store_protected_refs
from project_service.transfers.importing.refusals import RowRefused, invalid
from project_service.transfers.importing.row_counts import counts_of
from project_service.transfers.importing.single_rows import failure_of, first_row, single_row
from project_service.transfers.importing.user_mapping import ImportedRole, UserMapping
from project_service.transfers.models import (
    ENDED,
    FINISHED,
    MAX_PREFIX_LENGTH,
    TEMPORARY_SUFFIX,
    ArchivedRow,
    ImportFailure,
    ProjectImport,
)
from project_service.transfers.project_settings import settings_in, tags_in

ERROR_TRACKING_COLUMNS = frozenset(
    {"id", "created_at", "updated_at", "project_id", "api_url", "project_name", "organization_name", "enabled"}
)
# overrides that replace attributes of the archive: they cannot be set by editing a project
OVERRIDDEN_ATTRIBUTES = (
    "archived",
    "service_desk_enabled",
    "approvals_before_merge",
    "issues_template",
    "merge_requests_template",
    "external_authorization_classification_label",
)
# the counters of iids
COUNTERS: tuple[tuple[str, Any], ...] = (
    (issue_rules.COUNTER, Issue),
    (milestone_rules.COUNTER, Milestone),
    ("merge_requests", MergeRequest),
)
MODELS_WITH_PROVISIONAL_IIDS = (Milestone, Issue, MergeRequest)


class OverwriteNotPermitted(Exception):
    """The importing user may not overwrite the project at the path."""


def finalize(project_import: ProjectImport, unpacked: Unpacked, users: UserMapping) -> None:
    """Store what the archive says of the project itself, and make the project visible."""
    project = project_import.project
    importer = db.session.get_one(User, project_import.user_id)
    overrides = project_import.override_params
    attributes = attributes_of(unpacked) | {
        name: overrides[name] for name in OVERRIDDEN_ATTRIBUTES if name in overrides
    }
    _set_attributes(project, attributes)
    adopt_avatar(project)
    set_features(project, first_row(unpacked, layout.FEATURES))
    settings = settings_in(attributes, *(first_row(unpacked, name) for name in (layout.AUTO_DEVOPS, layout.CI_CD)))
    project.attributes = {**(project.attributes or {}), **settings}
    _set_error_tracking(project, single_row(project, unpacked, layout.ERROR_TRACKING), users)
    for kind in (BRANCHES, TAGS):
        store_protected_refs(project, unpacked, users, kind)
    if "public_jobs" in overrides:  # the name that the API shows
        overrides = {"public_builds": overrides["public_jobs"]} | overrides
    named = attributes.get("default_branch")
    if project.default_branch and isinstance(named, str) and may_be_default(project, named):
        project.default_branch = named
    if not may_be_default(project, overrides.get("default_branch") or ""):
        overrides = {name: value for name, value in overrides.items() if name != "default_branch"}
    apply(project, overrides)
    protect_imported_code(project)
    visibility = overrides.get("visibility")
    level = Visibility.of(visibility) if visibility else attributes.get("visibility_level")
    project.visibility = _visibility(level, project.namespace)
    attributes_to_store = users.map_references(attributes)
    db.session.add(ArchivedRow(project_id=project.id, relation=layout.PROJECT, data=attributes_to_store))
    _add_members(project, importer, users)
    for model in MODELS_WITH_PROVISIONAL_IIDS:
        _assign_iids(project, model)
    _set_counters(project)
    db.session.flush()
    project_import.row_counts = counts_of(project.id)
    if project_import.wanted_path:
        _overwrite(project, project_import.wanted_path, importer)
    project.loading, project.import_status, project.import_error = False, FINISHED, None
    project_import.phase, project_import.ended_at = ENDED, clock.now()
    project_import.rows_done = project_import.rows_total or project_import.rows_done
    project_import.relations_done = project_import.relations_total or project_import.relations_done


def attributes_of(unpacked: Unpacked) -> dict[str, Any]:
    """Return the attributes of the project; raises ``BadArchive``."""
    attributes = reader.project_of(unpacked)
    try:
        refuse_unstorable(attributes)
    except RowRefused as refused:
        raise BadArchive(str(refused)) from refused
    return attributes


def _set_attributes(project: Project, row: dict[str, Any]) -> None:
    description = text_of(row.get("description"))
    project.description = description and description[:MAX_DESCRIPTION_LENGTH]
    if project.description != description:
        cut = invalid(f"Description is too long (maximum is {MAX_DESCRIPTION_LENGTH} characters) and was cut")
        db.session.add(ImportFailure(project_id=project.id, **failure_of(cut, layout.PROJECT, 0)))
    project.archived = is_set(row.get("archived"))
    project.tag_list = tags_in(row)


def _set_error_tracking(project: Project, row: dict[str, Any], users: UserMapping) -> None:
    # without its token, and so never enabled (archive format reference, section 6.4)
    if not row:
        return
    stored = db.session.scalar(select(ErrorTrackingSetting).where(ErrorTrackingSetting.project_id == project.id))
    setting = stored or ErrorTrackingSetting(project_id=project.id)
    for name in ("api_url", "project_name", "organization_name"):
        text = text_of(row.get(name))
        setattr(setting, name, None if text is not None and len(text) > MAX_LENGTH else text)
    setting.integrated = row.get("integrated") is True
    db.session.add(setting)
    if beside := {name: value for name, value in row.items() if name not in ERROR_TRACKING_COLUMNS}:
        others = users.map_references(beside)
        db.session.add(ArchivedRow(project_id=project.id, relation=layout.ERROR_TRACKING, data=others))


def _visibility(value: Any, namespace: Namespace) -> Visibility:
    """What the archive or the override asks for, as far as the namespace and the instance let it.

    Import reference, section 4.
    """
    level = Visibility(value) if value in tuple(Visibility) else Visibility.PRIVATE
    if namespace.kind != "user":
        level = min(level, Visibility(namespace.visibility))
    return Visibility.PRIVATE if level.text in instance_settings.setting("restricted_visibility_levels") else level


def _add_members(project: Project, importer: User, users: UserMapping) -> None:
    """The importer, whom the archive names and the instance knows; no event says that they joined.

    Archive format reference, section 6.1.
    """
    there = set(db.session.scalars(memberships_of(project).with_only_columns(Membership.user_id)))
    # who may make projects in a group need not maintain them there; in a personal namespace its owner is a member
    granted = users.roles | {importer.id: ImportedRole(Role.MAINTAINER)}
    for user_id in sorted(granted.keys() - there):
        role = granted[user_id]
        if role.expires_at and _last_day(role) is None:
            continue  # a role that ends some day must not be one for ever
        db.session.add(
            Membership(
                user_id=user_id,
                project_id=project.id,
                access_level=role.level,
                expires_at=_last_day(role),
                created_by_id=importer.id,
            )
        )


def _last_day(role: ImportedRole) -> dt.date | None:
    """The day a role ends, however it is written."""
    moment = moment_of(role.expires_at)
    return day_of(role.expires_at) or (moment.date() if moment else None)


def _assign_iids(project: Project, model: type[Milestone | Issue | MergeRequest]) -> None:
    """Give the rows that have provisional numbers their own, behind those that are kept.

    Archive format reference, section 6.3.
    """
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
    old = path_registry.find_by_path(f"{namespace.full_path}/{wanted_path}")
    if not isinstance(old, Project):
        if re.fullmatch(
            re.escape(wanted_path[:MAX_PREFIX_LENGTH]) + TEMPORARY_SUFFIX, project.name
        ):  # it may have been changed
            if _has_name(namespace, wanted_path):
                raise OverwriteNotPermitted("Name has already been taken")
            project.name = wanted_path
        project.path = wanted_path
    else:
        if not allowed(Caller.of(importer), Ability.OWN_NAMESPACE, namespace):
            raise OverwriteNotPermitted(
                f"User {importer.username} ({importer.id}) cannot overwrite a project in {namespace.full_path}"
            )
        _move_memberships(old, project)
        path_registry.start_deleting_project(old)
        removal.remove_project.defer(old.id)
        project.name, project.path = old.name, old.path
    path_taken = OverwriteNotPermitted("Path has already been taken")
    try:
        path_registry.move_project(project, path_taken)
    except ServiceError as error:
        raise path_taken from error


def _has_name(namespace: Namespace, name: str) -> bool:
    same_name = select(Project.id).where(
        Project.namespace_id == namespace.id, Project.name == name, Project.deleting_since.is_(None)
    )
    return db.session.scalar(same_name) is not None


def _move_memberships(old: Project, new: Project) -> None:
    there = set(db.session.scalars(memberships_of(new).with_only_columns(Membership.user_id)))
    db.session.flush()
    for membership in db.session.scalars(memberships_of(old)):
        if membership.user_id not in there:
            membership.project_id = new.id
    db.session.execute(update(Share).where(Share.project_id == old.id).values(project_id=new.id))
    db.session.flush()
