"""Create, change and delete releases and their links (repositories reference, section 4.6)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from sqlalchemy import select
from sqlalchemy.orm.attributes import flag_modified

from project_service.access.identity import Caller
from project_service.access.rules import may_create_tag
from project_service.areas.repositories.code_reading import optional_code
from project_service.areas.repositories.refs import changes as ref_changes
from project_service.areas.repositories.releases import hooks, queries
from project_service.areas.repositories.transport.push_rules import TAG_CREATED
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import TAGS
from project_service.domain.repositories.protected_refs import levels_for
from project_service.domain.repositories.reading import refs
from project_service.domain.repositories.refs import is_valid_name
from project_service.domain.repositories.releases import (
    COLUMN_KEYS,
    MAX_INDEXED_BYTES,
    MAX_NAME_LENGTH,
    Release,
    ReleaseLink,
    is_link_url,
)
from project_service.domain.tracker.issue_rules import LONGEST_TEXT
from project_service.domain.tracker.milestones import Milestone, usable_in
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import add_unique, db, unique
from project_service.kit.http.errors import BadRequest, Conflict, Invalid, ServiceError, Unprocessable

EXISTS = "Release already exists"
NO_REF = "Ref is not specified"
TAKEN = "has already been taken"
TOO_LONG = f"is too long (maximum is {MAX_NAME_LENGTH} characters)"
FILE_PATH = re.compile(r"/[\w.-]+(?:/[\w.-]+)*", re.ASCII)
MAX_FILE_PATH_LENGTH = 128
MAX_LINKS = 100


class ReleaseTexts(TypedDict, total=False):
    """What may be changed of a release, beside its milestones."""

    name: str | None
    description: str | None
    released_at: dt.datetime | None


class LinkValues(TypedDict, total=False):
    """What may be given of a link; ``direct_asset_path`` is the newer name of ``filepath``."""

    name: str | None
    url: str | None
    link_type: str | None
    filepath: str | None
    direct_asset_path: str | None


class TagIsProtected(ServiceError):
    """The caller may not create the tag of a release, or change the release of a protected tag."""

    status = 403

    def __init__(self) -> None:
        super().__init__(TAG_CREATED)


def create_release(
    requester: Caller,
    project: Project,
    *,
    tag_name: str | None,
    name: str | None = None,
    description: str | None = None,
    ref: str | None = None,
    tag_message: str | None = None,
    released_at: dt.datetime | None = None,
    milestones: Sequence[str] | None = None,
    links: Sequence[LinkValues] = (),
) -> Release:
    """Create the release of a tag; the tag too, at ``ref``, if it does not exist.

    Raises:
        Conflict: the tag has a release.
        Unprocessable: the tag does not exist, and ``ref`` is not given.
        TagIsProtected: the caller may not create such a tag.

    """
    if not tag_name or not is_valid_name(tag_name):
        raise BadRequest("Tag name invalid")
    _check_protection(requester, project, tag_name)
    _check_texts(name, description)
    new_links = [_new_link(link) for link in _checked_links(links)]
    release_milestones = _milestones(project, milestones)
    exists_already = Conflict(EXISTS)
    if queries.release_of(project, tag_name) is not None:
        raise exists_already
    sha = _commit_id(project, tag_name)
    if sha is None:
        if not ref:
            raise Unprocessable(NO_REF)
        ref_changes.create_tag(requester, project, tag_name=tag_name, ref=ref, message=tag_message)
        sha = _commit_id(project, tag_name)
    release = Release(
        project_id=project.id,
        tag=tag_name,
        name=name or tag_name,
        description=description,
        sha=sha,
        released_at=released_at or clock.now(),
        author_id=requester.user_id,
        links=new_links,
        milestones=release_milestones,
    )
    add_unique(release, exists_already)
    hooks.announce(project, release, "create")
    return release


def update_release(
    requester: Caller, release: Release, *, milestones: Sequence[str] | None = None, **changes: Unpack[ReleaseTexts]
) -> Release:
    """Change the name, the notes, the time or the milestones of a release."""
    project = release.project
    _check_protection(requester, project, release.tag)
    _check_texts(changes.get("name"), changes.get("description"))
    _change(release)
    if milestones is not None:
        release.milestones = _milestones(project, milestones)
    for key, value in changes.items():
        if value is not None or key == "description":
            setattr(release, key, value)
    hooks.announce(project, release, "update")
    return release


def delete_release(requester: Caller, release: Release) -> Release:
    """Delete a release; its tag stays."""
    _check_protection(requester, release.project, release.tag)
    lock_row(release)
    hooks.announce(release.project, release, "delete")
    db.session.delete(release)
    return release


def create_link(requester: Caller, release: Release, **values: Unpack[LinkValues]) -> ReleaseLink:
    """Add a link to a release."""
    _check_protection(requester, release.project, release.tag)
    _change(release)
    if len(release.links) >= MAX_LINKS:
        raise Invalid(base=f"Maximum number of links ({MAX_LINKS}) exceeded")
    columns = _checked_link(values)
    _check_taken(release.links, columns)
    link = _new_link(columns)
    link.release_id = release.id
    return add_unique(link, Invalid(url=TAKEN))


def update_link(requester: Caller, release: Release, link: ReleaseLink, **values: Unpack[LinkValues]) -> ReleaseLink:
    """Change a link of a release."""
    _check_protection(requester, release.project, release.tag)
    _change(release)
    current = {name: getattr(link, name) for name in ("name", "url", "filepath", "link_type")}
    columns = _checked_link(current | {name: value for name, value in values.items() if value is not None})
    _check_taken([other for other in release.links if other.id != link.id], columns)
    with unique(Invalid(url=TAKEN)):
        for name, value in columns.items():
            setattr(link, name, value)
    return link


def delete_link(requester: Caller, release: Release, link: ReleaseLink) -> ReleaseLink:
    """Delete a link of a release."""
    _check_protection(requester, release.project, release.tag)
    _change(release)
    db.session.delete(link)
    return link


def _change(release: Release) -> None:
    """Lock a release that changes; what columns hold is no longer what an archive says."""
    lock_row(release)
    if release.extra:
        release.extra = {key: value for key, value in release.extra.items() if key not in COLUMN_KEYS} or None
        flag_modified(release, "extra")
    release.updated_at = clock.now()


def _check_protection(requester: Caller, project: Project, tag: str) -> None:
    levels = levels_for(project, tag)
    if levels and not may_create_tag(requester, project, levels):
        raise TagIsProtected


def _check_texts(name: str | None, description: str | None) -> None:
    if len(name or "") > MAX_NAME_LENGTH:
        raise Invalid(name=TOO_LONG)
    if len(description or "") > LONGEST_TEXT:
        raise Invalid(description=f"is too long (maximum is {LONGEST_TEXT} characters)")


def _commit_id(project: Project, tag: str) -> str | None:
    with optional_code(project) as code:
        ref = None if code is None else refs.find_ref(code, TAGS, tag)
    return None if ref is None else ref.commit_id


def _milestones(project: Project, titles: Sequence[str] | None) -> list[Milestone]:
    wanted = list(dict.fromkeys(titles or ()))
    if not wanted:
        return []
    usable = usable_in(project), Milestone.title.in_(wanted)
    matching = list(db.session.scalars(select(Milestone).where(*usable).order_by(Milestone.id)))
    missing = [title for title in wanted if title not in {milestone.title for milestone in matching}]
    if missing:
        raise BadRequest(f"Milestone(s) not found: {', '.join(missing)}")
    return matching


def _checked_links(links: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if len(links) > MAX_LINKS:
        raise Invalid(base=f"Maximum number of links ({MAX_LINKS}) exceeded")
    checked: list[dict[str, Any]] = []
    for link in links:
        values = _checked_link(link)
        _check_taken([ReleaseLink(**other) for other in checked], values)
        checked.append(values)
    return checked


def _checked_link(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a link; ``direct_asset_path`` is the newer name of ``filepath``."""
    values = dict(given)
    filepath = values.pop("direct_asset_path", None) or values.get("filepath") or None
    values |= {name: values.get(name) or "" for name in ("name", "url")}
    if not values["name"].strip():
        raise Invalid(name="can't be blank")
    if len(values["name"]) > MAX_NAME_LENGTH:
        raise Invalid(name=TOO_LONG)
    if len(values["url"].encode()) > MAX_INDEXED_BYTES:
        raise Invalid(url=f"is too long (maximum is {MAX_INDEXED_BYTES} bytes)")
    if not is_link_url(values["url"]):
        raise Invalid(url="is blocked: Only allowed schemes are http, https, ftp")
    if filepath is not None and len(filepath) > MAX_FILE_PATH_LENGTH:
        raise Invalid(filepath=f"is too long (maximum is {MAX_FILE_PATH_LENGTH} characters)")
    if filepath is not None and not FILE_PATH.fullmatch(filepath):
        raise Invalid(filepath="is in an invalid format")
    return {"name": values["name"], "url": values["url"], "filepath": filepath} | {
        "link_type": values.get("link_type") or "other"
    }


def _check_taken(others: Iterable[ReleaseLink], values: dict[str, Any]) -> None:
    for name in ("name", "url", "filepath"):
        if values[name] is not None and any(getattr(other, name) == values[name] for other in others):
            raise Invalid(**{name: TAKEN})


def _new_link(values: dict[str, Any]) -> ReleaseLink:
    return ReleaseLink(**values)
