"""How alerts are taken in: new ones, more occurrences of open ones, recoveries (alert ingestion reference, section 9).

What a request brings is done together, in as few statements as it takes. That a fingerprint has one open alert is held
by a unique index: who loses a race adds an occurrence to what the winner opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    bindparam,
    cast,
    false,
    func,
    literal,
    null,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)

from project_service.access.webhooks import Outdated
from project_service.areas.alerts import incidents, mails, service
from project_service.areas.alerts.models import (
    HTTP,
    PROMETHEUS,
    TARGET,
    Alert,
    AlertIntegration,
    IncidentSetting,
    Status,
)
from project_service.areas.alerts.payloads import DEFAULT_SOURCE, PROMETHEUS_TOOL, Mapping, Parsed, Told
from project_service.domain.bots import ALERT_BOT, bot, id_of_bot
from project_service.domain.instance_settings import RECEIVERS_THROTTLE, value_of
from project_service.domain.projects import DISABLED, Project
from project_service.domain.tracker.counters import advance, next_iids
from project_service.domain.tracker.environments import environment_called
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.base import Key, Timestamp
from project_service.kit.db.bulk import among, numbers
from project_service.kit.db.group_commit import group_commit
from project_service.kit.db.session import db, insert
from project_service.kit.db.statements import Found, Prepared, Rows, packed, prepared
from project_service.kit.http.urls import base_url

COUNTER = "alerts"
LOGGED = "logged an alert from **{}**"
RECOVERED = "logged a recovery alert from **{}**"
RESOLVED = f"changed the status to **{Status.RESOLVED.title}**"
alerts, projects = Alert.__table__.c, Project.__table__.c
integrations, settings = AlertIntegration.__table__.c, IncidentSetting.__table__.c


@dataclass(frozen=True, slots=True)
class Receiver:
    """What takes in alerts: an integration, with what its project wants done about them.

    ``origin`` is all that it was read from, as one text. One that ``is_remembered`` was read for an earlier request:
    what takes alerts in for it finds out whether it still is the same, with the statements that write.
    """

    project_id: int
    id: int
    type: str
    name: str
    active: bool
    token: str
    mapping: Mapping
    create_issue: bool
    send_email: bool
    auto_close_incident: bool
    is_limited: bool | None
    bot_id: int | None
    origin: str
    is_remembered: bool = False

    def remembered(self) -> Receiver | None:
        """The same for later requests; nothing where these have more to find out."""
        return None if self.is_limited or self.bot_id is None else replace(self, is_remembered=True)

    @property
    def unconfirmed(self) -> dict[str, Any]:
        """What statements compare with what the integration is now."""
        return {"integration": self.id, "origin": self.origin if self.is_remembered else None}

    def source_of(self, parsed: Parsed) -> str:
        """Who reported, for notes."""
        if parsed.monitoring_tool == PROMETHEUS_TOOL:
            return self.name or PROMETHEUS_TOOL
        return parsed.monitoring_tool or self.name or DEFAULT_SOURCE


@dataclass(frozen=True, slots=True)
class Taken:
    """The alert that something became a part of."""

    id: int
    iid: int
    events: int
    title: str


class UnknownProject(Exception):
    """There is no project at this path."""


def endpoint(full_path: str, identifier: str) -> Receiver | None:
    """The HTTP endpoint of a project with this identifier; raises ``UnknownProject``."""
    found = _found(_endpoint(path=full_path.lower(), identifier=identifier))
    return found[0] if found else None


def prometheus_receivers(full_path: str) -> list[Receiver]:
    """The active Prometheus integrations of a project, newest first; raises ``UnknownProject``."""
    return _found(_prometheus(path=full_path.lower()))


def receiver_of(integration: AlertIntegration) -> Receiver:
    """An integration as a receiver, for test alerts."""
    rows = _by_id(path=integration.project.full_path.lower(), integration=integration.id)
    return _found(rows)[0]


def _together(brought: tuple[Receiver, list[Told]]) -> tuple[Any, ...]:
    # the address of this service stands in incidents and mails, and nobody is to give it for others
    receiver = brought[0]
    return receiver.origin, receiver.is_remembered, base_url()


def _without_transaction(brought: list[tuple[Receiver, list[Told]]]) -> list[list[Taken]] | None:
    """Take in alerts that all are open, or all new, and have nothing else done about them."""
    receiver, told = _joined(brought)
    if receiver.bot_id is None or receiver.create_issue or receiver.send_email:
        return None
    if any(one.is_over or one.environment for one in told):
        return None
    counts = _counts(told)
    if len(set(counts.values())) != 1 or counts.total() < len(told):
        return None
    known = _add_to_all(receiver, counts)
    return None if known is None else _parted(_with_new(receiver, told, counts, known), brought)


@group_commit(_together, _without_transaction)
def take_in_at_once(brought: list[tuple[Receiver, list[Told]]]) -> list[list[Taken]]:
    """Take in what several requests have brought to one receiver, as if one had brought all of it."""
    return _parted(take_in(*_joined(brought)), brought)


def _joined(brought: list[tuple[Receiver, list[Told]]]) -> tuple[Receiver, list[Told]]:
    return brought[0][0], [one for _, told in brought for one in told]


def _parted(taken: list[Taken], brought: list[tuple[Receiver, list[Told]]]) -> list[list[Taken]]:
    left = iter(taken)
    return [list(islice(left, len(told))) for _, told in brought]


def take_in(receiver: Receiver, told: Iterable[Told]) -> list[Taken]:
    """Take in alerts in the order they are told; the alert that each has become or is a part of.

    Raises ``Outdated``, and then the unit of work is to be undone.
    """
    if receiver.bot_id is None:
        # first of all, so that everybody takes the locks of new rows in one order
        receiver = replace(receiver, bot_id=bot(ALERT_BOT).id)
    told = list(told)
    prints = [one.fingerprint for one in told if one.fingerprint is not None]
    is_over = any(one.is_over for one in told)
    is_to_be_held = (is_over and len(told) > 1) or len(set(prints)) < len(prints)
    if not told or is_over or is_to_be_held:
        _confirm(receiver)  # what is sent for others does so itself
    if is_to_be_held:
        _hold_open(receiver.project_id, prints)
    taken: list[Taken] = []
    for over, some in groupby(told, key=lambda one: one.is_over):
        together = list(some)
        taken += [_recover(receiver, one) for one in together] if over else _fire(receiver, together)
    return taken


def _hold_open(project_id: int, prints: list[str]) -> None:
    """Lock the open alerts that are told of, in one order, where they would be locked a few at a time.

    Two requests that lock the same ones in another order wait for one another until the database ends one of them. With
    the counter nobody else opens further ones meanwhile; who opens some beside others has it last, and may have to give
    way.
    """
    next_iids(project_id, COUNTER, 0)
    _lock_open(project=project_id, prints=numbers(prints))


def _fire(receiver: Receiver, told: list[Told]) -> list[Taken]:
    counts = _counts(told)
    taken = _with_new(receiver, told, counts, _count_occurrences(receiver, counts))
    if receiver.create_issue or receiver.send_email:
        for one in taken:
            _follow_up(receiver, one)
    return taken


def _counts(told: list[Told]) -> Counter[str]:
    """How often each fingerprint is told of."""
    return Counter(one.fingerprint for one in told if one.fingerprint is not None)


def _with_new(receiver: Receiver, told: list[Told], counts: Counter[str], known: dict[str, Taken]) -> list[Taken]:
    """Open those that are not known; what each that was told of has become or is a part of."""
    new: dict[Any, Told] = {}
    for one in told:
        if one.fingerprint not in known:
            new.setdefault(one.fingerprint or id(one), one)
    opened = _open(receiver, list(new.values()), Status.TRIGGERED, counts) if new else []
    by_key = dict(zip(new, opened, strict=True))
    return [known.get(one.fingerprint or "") or by_key[one.fingerprint or id(one)] for one in told]


def _count_occurrences(receiver: Receiver, counts: Counter[str]) -> dict[str, Taken]:
    """Add to the open alerts with these fingerprints; those there are, and none for a receiver that is outdated."""
    found: dict[str, Taken] = {}
    for number in sorted(set(counts.values())):
        prints = [one for one, count in counts.items() if count == number]
        rows = _send_to(prints, _add_to_many, receiver, number)
        found |= {row.fingerprint: _taken(row) for row in rows}
    return found


def _add_to_all(receiver: Receiver, counts: Counter[str]) -> dict[str, Taken] | None:
    """Add to these alerts, each as often, if all are open. Nothing where only some are, and none where none is.

    That there is none is said for a receiver that is outdated, too: who opens alerts then finds that out.
    """
    rows = _send_to(list(counts), _add_to_many_or_none, receiver, next(iter(counts.values())))
    return None if any(row.id is None for row in rows) else {row.fingerprint: _taken(row) for row in rows}


def _send_to(prints: list[str], many: Prepared, receiver: Receiver, number: int) -> Found:
    """Send what adds to one open alert, or to many."""
    given = {"project": receiver.project_id, "now": clock.now(), "number": number, **receiver.unconfirmed}
    return _add_to_one(print=prints[0], **given) if len(prints) == 1 else many(prints=numbers(prints), **given)


def _open(receiver: Receiver, told: list[Told], status: Status, counts: Counter[str]) -> list[Taken]:
    """Open alerts, or add to what another request has opened a moment ago; new ones have a note."""
    # in one order, so that two requests that bring the same ones do not wait for one another
    names = sorted({one.environment for one in told if one.environment})
    environments = {name: environment_called(receiver.project_id, name) for name in names}
    rows = [
        {
            "place": place,
            "title": parsed.title,
            "description": parsed.description,
            "severity": int(parsed.severity),
            "service": parsed.service,
            "monitoring_tool": parsed.monitoring_tool,
            "hosts": parsed.hosts,
            "started_at": parsed.started_at,
            "ended_at": parsed.ended_at if status == Status.RESOLVED else None,
            "events": counts.get(parsed.fingerprint or "", 1),
            "fingerprint": parsed.fingerprint,
            "payload": parsed.payload,
            "environment_id": environments.get(parsed.environment or ""),
            "note": LOGGED.format(receiver.source_of(parsed)),
        }
        for place, parsed in enumerate(one.read() for one in told)
    ]
    stored = {row.fingerprint or row.place: _taken(row) for row in _store(receiver, rows, status)}
    return [stored[row["fingerprint"] or row["place"]] for row in rows]


def _store(receiver: Receiver, rows: list[dict[str, Any]], status: Status) -> Found:
    """Number and insert alerts, and write a note under each that is new: what each has become or is a part of.

    PostgreSQL does it all with one statement, and is waited for once.
    """
    number = {"project": receiver.project_id, "kind": COUNTER, "count": len(rows)}
    values = {"rows": packed(rows), "status": status, "now": clock.now(), "author": receiver.bot_id}
    if db.engine.dialect.name == "postgresql":
        stored = _number_and_insert(**number, **values, **receiver.unconfirmed)
        if receiver.is_remembered and not stored:
            raise Outdated
        return stored
    _confirm(receiver)
    values |= {"project": receiver.project_id, "first": next_iids(receiver.project_id, COUNTER, len(rows))}
    inserted = _insert(**values)
    new = ({"id": row.id, "note": rows[row.place]["note"]} for row in inserted if row.place >= 0)
    _insert_notes(**values | {"rows": packed(new)})
    return inserted


def _confirm(receiver: Receiver) -> None:
    """Make sure that a receiver still is what it was when it was remembered."""
    if receiver.is_remembered and not _confirmation(project=receiver.project_id, **receiver.unconfirmed).scalar_one():
        raise Outdated


def _recover(receiver: Receiver, told: Told) -> Taken:
    alert, author, parsed = _open_alert(receiver.project_id, told.fingerprint), bot(ALERT_BOT), told.read()
    recovered = RECOVERED.format(receiver.source_of(parsed))
    if alert is None:
        # nothing was open: kept as an alert that is over, never as an open one
        [taken] = _open(receiver, [told], Status.RESOLVED, Counter())
        alert = db.session.get_one(Alert, taken.id)
        for body in (recovered, RESOLVED):
            incidents.note(author, alert, body)
    else:
        taken = Taken(alert.id, alert.iid, alert.events, alert.title)
        incidents.note(author, alert, recovered)
        service.change_status(author, alert, Status.RESOLVED, ended_at=parsed.ended_at)
        if receiver.auto_close_incident:
            incidents.close_incident(author, alert)
    if receiver.send_email:
        mails.queue_alert(alert, with_incidents=receiver.create_issue)
    return taken


def _follow_up(receiver: Receiver, taken: Taken) -> None:
    """What a project may want done about every alert that fires."""
    alert = db.session.get_one(Alert, taken.id, populate_existing=True)
    if receiver.create_issue and alert.issue_id is None and alert.project.issues_access_level != DISABLED:
        incidents.create_incident(bot(ALERT_BOT), alert)
    if receiver.send_email and alert.status == Status.TRIGGERED:
        mails.queue_alert(alert, with_incidents=receiver.create_issue)


def _open_alert(project_id: int, fingerprint: str | None) -> Alert | None:
    if fingerprint is None:
        return None
    return db.session.scalar(
        select(Alert)
        .where(Alert.project_id == project_id, Alert.fingerprint == fingerprint, Alert.status != Status.RESOLVED)
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def _taken(row: Any) -> Taken:
    return Taken(row.id, row.iid, row.events, row.title)


def _found(rows: Iterable[Any]) -> list[Receiver]:
    found = [Receiver(*row) for row in rows]
    if not found:
        raise UnknownProject
    return [one for one in found if one.type is not None]


def _receivers(condition: ColumnElement[bool]) -> Any:
    """A row for each integration of a project under a condition; one without an integration when it has none."""
    found = _selected(condition, *_of_receiver(), _origin()).where(func.lower(projects.full_path) == bindparam("path"))
    return found.order_by(integrations.id.desc())


def _selected(condition: ColumnElement[bool], *columns: ColumnElement[Any]) -> Any:
    """Columns of projects that are not being removed, their integrations under a condition, and their wishes."""
    found = (
        Project.__table__.outerjoin(AlertIntegration.__table__, (integrations.project_id == projects.id) & condition)
    ).outerjoin(IncidentSetting.__table__, settings.project_id == projects.id)
    return select(*columns).select_from(found).where(projects.deleting_since.is_(None))


def _of_receiver() -> tuple[ColumnElement[Any], ...]:
    """What a receiver is made of."""
    columns = (integrations[name] for name in ("id", "type", "name", "active", "token", "mapping"))
    wishes = (
        func.coalesce(settings.create_issue, false()),
        func.coalesce(settings.send_email, false()),
        func.coalesce(settings.auto_close_incident, true()),
    )
    more = (
        value_of(f"{RECEIVERS_THROTTLE}_enabled").scalar_subquery(),
        id_of_bot(ALERT_BOT).scalar_subquery(),
    )
    return (projects.id, *columns, *wishes, *more)


def _origin() -> ColumnElement[str]:
    """All that a receiver is made of and found by, as one text."""
    make = func.json_array if db.engine.dialect.name == "sqlite" else func.json_build_array
    # that of the key is what is stored, which is encrypted
    return cast(make(*_of_receiver(), projects.full_path, integrations.endpoint_identifier), Text)


def _is_confirmed() -> ColumnElement[bool]:
    """Whether a receiver still is what it was when it was remembered; true of one that was not."""
    origin = bindparam("origin", type_=Text)
    same = _selected(integrations.id == bindparam("integration", type_=Key), literal(1)).where(
        projects.id == bindparam("project", type_=Key), _origin() == origin
    )
    return or_(cast(origin, Text).is_(None), same.exists())


@prepared
def _endpoint() -> Any:
    return _receivers((integrations.endpoint_identifier == bindparam("identifier")) & (integrations.type == HTTP))


@prepared
def _prometheus() -> Any:
    return _receivers((integrations.type == PROMETHEUS) & integrations.active.is_(true()))


@prepared
def _by_id() -> Any:
    return _receivers(integrations.id == bindparam("integration"))


@prepared
def _confirmation() -> Any:
    return select(_is_confirmed())


def _is_open() -> ColumnElement[bool]:
    # as the index has it, word for word: only then do both databases see that it serves
    return (alerts.project_id == bindparam("project")) & text("status <> 2")


def _adding() -> Any:
    added = {"events": alerts.events + bindparam("number"), "updated_at": bindparam("now")}
    return update(Alert).values(added).where(_is_confirmed()).returning(*_TAKEN)


@prepared
def _add_to_one() -> Any:
    return _adding().where(_is_open(), alerts.fingerprint == bindparam("print"))


@prepared
def _add_to_many() -> Any:
    # locked in one order, so that two requests with the same alerts do not wait for one another
    locked = _open_ones()
    # by their ids alone: given the project as well, SQLite would walk through all of its open alerts
    return _adding().where(text("status <> 2"), alerts.id.in_(locked.scalar_subquery()))


@prepared
def _add_to_many_or_none() -> Any:
    """Of PostgreSQL: add to the open alerts if all are open, or else give one without its id, if any is."""
    held = _open_ones().add_columns(alerts.fingerprint).cte("held")
    count = select(func.count()).select_from(held).scalar_subquery()
    are_all = count == func.cardinality(cast(bindparam("prints", type_=Text), ARRAY(Text)))
    added = _adding().where(text("status <> 2"), alerts.id.in_(select(held.c.id)), are_all).cte("added")
    nothing = (cast(null(), column.type) for column in _TAKEN[1:])
    return union_all(
        select(*(added.c[column.key] for column in _TAKEN)),
        select(held.c.fingerprint, *nothing).where(~are_all).limit(1),
    )


@prepared
def _lock_open() -> Any:
    return _open_ones()


def _open_ones() -> Any:
    found = select(alerts.id).where(_is_open(), among(alerts.fingerprint, "prints"))
    return found.order_by(alerts.fingerprint).with_for_update()


@prepared
def _number_and_insert() -> Any:
    numbered = advance(_is_confirmed()).cte("numbered")
    first = numbered.c.last - bindparam("count", type_=Key) + 1
    inserted = _inserting(first).cte("inserted")
    row, place = Rows("rows"), inserted.c.iid - first
    noted = _noting(inserted.c.id, row.text("note"), place == row.whole("place")).cte("noted")
    return select(*(inserted.c[column.key] for column in _TAKEN), place.label("place")).add_cte(noted)


@prepared
def _insert() -> Any:
    first = bindparam("first", type_=Key)
    return _inserting(first).returning((alerts.iid - first).label("place"))


@prepared
def _insert_notes() -> Any:
    row = Rows("rows")
    return _noting(row.whole("id"), row.text("note"))


def _inserting(first: ColumnElement[int]) -> Any:
    """The statement that inserts rows as alerts numbered from ``first`` on, or adds them to open ones."""
    row = Rows("rows")
    now = bindparam("now", type_=Timestamp)
    values: dict[str, Any] = {
        "project_id": bindparam("project", type_=Key),
        "status": bindparam("status", type_=Key),
        "created_at": now,
        "updated_at": now,
        "iid": first + row.whole("place"),
        **{name: row.whole(name) for name in ("severity", "events", "environment_id")},
        **{name: row.text(name) for name in ("title", "description", "service", "monitoring_tool", "fingerprint")},
        **{name: row.moment(name) for name in ("started_at", "ended_at")},
        **{name: row.json(name) for name in ("hosts", "payload")},
    }
    # SQLite takes ON for a part of a join where no WHERE stands before it
    new = insert(Alert).from_select(list(values), select(*values.values()).where(true()))
    stored = new.on_conflict_do_update(
        index_elements=["project_id", "fingerprint"],
        index_where=text("status <> 2"),
        set_={"events": Alert.events + new.excluded.events, "updated_at": new.excluded.updated_at},
    )
    return stored.returning(*_TAKEN)


def _noting(alert_id: ColumnElement[int], body: ColumnElement[str], *conditions: ColumnElement[bool]) -> Any:
    """The statement that writes notes under alerts."""
    now = bindparam("now", type_=Timestamp)
    values: dict[str, Any] = {
        "project_id": bindparam("project", type_=Key),
        "noteable_type": literal(TARGET),
        "noteable_id": alert_id,
        "body": body,
        "system": true(),
        "confidential": false(),
        "author_id": bindparam("author", type_=Key),
        "created_at": now,
        "updated_at": now,
    }
    return insert(Note).from_select(list(values), select(*values.values()).where(*conditions))


_TAKEN = (alerts.fingerprint, alerts.id, alerts.iid, alerts.events, alerts.title)
