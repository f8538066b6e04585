"""Pages of audit events with filters, and the same events as a CSV file: of the instance, a project, a group."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.audit import queries, sentences
from project_service.domain.accounts.users import user_by
from project_service.domain.audit.models import AuditEvent
from project_service.domain.audit.recording import INSTANCE_TYPE
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.session import db, reading
from project_service.kit.http.csv_files import csv_response
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("audit_pages", __name__)
OF_INSTANCE, OF_PLACE = "/admin/audit_logs", "/-/audit_events"
OF_PROJECT, OF_GROUP = f"/<path:project>{OF_PLACE}", f"/groups/<path:group>{OF_PLACE}"
ENTITY_TYPES = {"Project": "Projects", "Group": "Groups", "User": "Users", INSTANCE_TYPE: "Instance"}
PAGE_SIZE = 50
CSV_BATCH_SIZE = 1000
MAX_CSV_ROWS = 100_000
CSV_HEADER = (
    "ID",
    "Author ID",
    "Author Name",
    "Author Email",
    "Entity ID",
    "Entity Type",
    "Entity Path",
    "Target ID",
    "Target Type",
    "Target Details",
    "Event",
    "Action",
    "IP Address",
    "Created At (UTC)",
)
NO_AUTHOR = 0  # the id of no author: an unknown name has no events

navigation.add(navigation.NavigationEntry("Audit events", OF_INSTANCE, 45, Ability.ADMINISTER), "administration")
navigation.add(navigation.NavigationEntry("Audit events", OF_PLACE, 85, Ability.READ_PROJECT_AUDIT_EVENTS))
navigation.add(navigation.NavigationEntry("Audit events", OF_PLACE, 85, Ability.READ_GROUP_AUDIT_EVENTS), "group")


@pages.get(OF_INSTANCE)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def list_events() -> ResponseReturnValue:
    """Show the audit events of the instance."""
    return _page("administration.html", _filters(with_type=True), entity_types=ENTITY_TYPES)


@pages.get(f"{OF_INSTANCE}.csv", is_long=True)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def download_events() -> Response:
    """Download the audit events of the instance."""
    return _file("instance", _filters(with_type=True))


@pages.get(OF_PROJECT)
@pages.signed_in
@pages.allow(Ability.READ_PROJECT_AUDIT_EVENTS)
def list_project_events(project: Project) -> ResponseReturnValue:
    """Show the audit events of a project."""
    return _page("project.html", _filters() | queries.entity_of(project), project=project)


@pages.get(f"{OF_PROJECT}.csv", is_long=True)
@pages.signed_in
@pages.allow(Ability.READ_PROJECT_AUDIT_EVENTS)
def download_project_events(project: Project) -> Response:
    """Download the audit events of a project."""
    return _file(project.path, _filters() | queries.entity_of(project))


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.READ_GROUP_AUDIT_EVENTS)
def list_group_events(group: Group) -> ResponseReturnValue:
    """Show the audit events of a group."""
    return _page("group.html", _filters() | queries.entity_of(group), group=group)


@pages.get(f"{OF_GROUP}.csv", is_long=True)
@pages.signed_in
@pages.allow(Ability.READ_GROUP_AUDIT_EVENTS)
def download_group_events(group: Group) -> Response:
    """Download the audit events of a group."""
    return _file(group.path, _filters() | queries.entity_of(group))


def _page(base: str, filters: dict[str, Any], **subject: Any) -> str:
    page = read_page(queries.audit_events(**filters), request.args.get("page"), PAGE_SIZE)
    return render_template(
        "audit/list.html",
        base=base,
        page=page,
        actions=sentences.TITLES,
        sentences=[sentences.sentence_of(event) for event in page.rows],
        is_filtered=any(_given().values()),
        **subject,
    )


def _file(name: str, filters: dict[str, Any]) -> Response:
    return csv_response(f"{name}_audit_events.csv", CSV_HEADER, _rows(filters))


def _rows(filters: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the newest events as rows; each batch is read on its own, so that a slow client holds no transaction."""
    last: AuditEvent | None = None
    for _ in range(MAX_CSV_ROWS // CSV_BATCH_SIZE):
        with reading():
            batch = list(db.session.scalars(queries.events_before(last, **filters).limit(CSV_BATCH_SIZE)))
            db.session.expunge_all()
        yield from map(_row, batch)
        if len(batch) < CSV_BATCH_SIZE:
            return
        last = batch[-1]


def _row(event: AuditEvent) -> tuple[Any, ...]:
    names = ("entity_path", "target_id", "target_type", "target_details", "event_name", "custom_message", "ip_address")
    author = (event.author_id, event.details.get("author_name"), event.details.get("author_email"))
    details = (event.details.get(name) for name in names)
    created_at = event.created_at.strftime("%Y-%m-%d %H:%M:%S")
    return (event.id, *author, event.entity_id, event.entity_type, *details, created_at)


def _given() -> dict[str, str]:
    return {name: request.args.get(name, "").strip() for name in ("author", "from", "to", "entity_type", "action")}


def _filters(*, with_type: bool = False) -> dict[str, Any]:
    """Return the filters in the address; what cannot be read is left out."""
    sent = _given()
    start, end = _day(sent["from"]), _day(sent["to"])
    filters: dict[str, Any] = {"created_after": start, "created_before": end and end + dt.timedelta(days=1)}
    if with_type and sent["entity_type"] in ENTITY_TYPES:
        filters["entity_type"] = sent["entity_type"]
    if sent["action"]:
        filters["event_name"] = sent["action"]
    if sent["author"]:
        author = user_by(sent["author"].removeprefix("@"))
        filters["author_id"] = author.id if author else NO_AUTHOR
    return filters


def _day(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.combine(dt.date.fromisoformat(text), dt.time(), dt.UTC)
    except ValueError:
        return None
