"""Many rows: copies of all rows, and rows with distinct references."""

from __future__ import annotations

import itertools
import secrets
from typing import Any

from sqlalchemy import Column, Index, Integer, String, Table, cast, func, insert, literal, select, text, true, update
from sqlalchemy.schema import Constraint

from project_service.areas.alerts.models import TARGET, Alert, AlertIntegration, AlertRequest
from project_service.areas.members.models import Invitation
from project_service.areas.vulnerabilities.models import Feedback, Finding
from project_service.areas.webhooks.models import WebHook
from project_service.domain.accounts.users import User
from project_service.domain.events import recording
from project_service.domain.events.models import Action, Event
from project_service.domain.heartbeats.models import Heartbeat
from project_service.domain.projects import Project
from project_service.domain.todos import Todo
from project_service.domain.tracker.issues import Issue, IssueAssignee
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.notes import TYPES, Note
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, unit_of_work
from project_service.transfers.models import ImportFailure, ProjectExport
from tests.support import sample_data, security_reports

# as many rows as there are settings, flags, keys and kinds of jobs; all other tables grow with what is done
SMALL = frozenset({"application_settings", "feature_gates", "heartbeat_checks", "key_proofs", "periodic_runs"})
KINDS = {**TYPES, Alert: TARGET}
FAILURE = dict.fromkeys(("exception_class", "exception_message", "source", "relation_name"), "made up")
FAR = 1_000_000  # so far are the ids of a copy from those of the one before


def growing() -> list[Table]:
    """The tables that grow, parents first."""
    return [table for table in Base.metadata.sorted_tables if table.name not in SMALL]


def multiply(copies: int) -> None:
    """Insert copies of all rows, with their references."""
    with unit_of_work():
        for table in growing():
            db.session.execute(_copying(table, copies))
    if db.engine.dialect.name == "postgresql":
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))


def _copying(table: Table, copies: int) -> Any:
    numbers = select(literal(1).label("copy")).cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.copy + 1).where(numbers.c.copy < copies))
    names = _unique_names(table)

    def copied(column: Column[Any]) -> Any:
        if _is_id(column):
            return column + numbers.c.copy * FAR
        return column + "-" + cast(numbers.c.copy, String) if column in names else column

    rows = select(*(copied(column) for column in table.columns)).join_from(table, numbers, true())
    return insert(table).from_select(list(table.columns.keys()), rows, include_defaults=False)


def _is_id(column: Column[Any]) -> bool:
    return isinstance(column.type, Integer) and (column.name == "id" or column.name.endswith("_id"))


def _unique(table: Table) -> list[list[Column[Any]]]:
    """The columns of everything that has to be unique."""
    unique: list[Constraint | Index] = [one for one in table.constraints if one.__visit_name__ == "unique_constraint"]
    unique += [table.primary_key, *(index for index in table.indexes if index.unique)]
    return [_columns_of(table, one) for one in unique]


def _columns_of(table: Table, unique: Any) -> list[Column[Any]]:
    words = " ".join(str(part) for part in getattr(unique, "expressions", unique.columns))
    return [column for column in table.columns if column in set(unique.columns) or f"lower({column.name})" in words]


def _unique_names(table: Table) -> set[Column[Any]]:
    """Columns of text that have to differ where no id does."""
    groups = (columns for columns in _unique(table) if not any(_is_id(column) for column in columns))
    return {column for column in itertools.chain.from_iterable(groups) if isinstance(column.type, String)}


def fill(client: Any, project: Project, people: dict[str, User], count: int) -> None:
    """Put so many more rows where ``sample_data.fill_lists`` puts one at most: under single issues, alerts and people.

    ``client`` is an administrator's; the newest pipeline has so many findings.
    """
    number, marks = project.id, [secrets.token_hex(4) for _ in range(count)]
    security_reports.ingest(client, project, security_reports.bill(*marks), "")
    security_reports.ingest(
        client, project, security_reports.report(*(security_reports.vulnerability(mark) for mark in marks))
    )
    for mark in marks:
        sample_data.make_token(people[sample_data.ADA], name=mark)
        sample_data.make_token(people[sample_data.OLIVE], name=mark)
    first_hooks = select(func.min(WebHook.id)).group_by(WebHook.project_id, WebHook.group_id)
    for hook in db.session.scalars(select(WebHook).where(WebHook.id.in_(first_hooks))).all():
        for _ in marks:
            sample_data.make_attempt(hook)
    first_heartbeats = select(func.min(Heartbeat.id)).group_by(Heartbeat.project_id)
    for heartbeat in db.session.scalars(select(Heartbeat).where(Heartbeat.id.in_(first_heartbeats))).all():
        for _ in marks:
            sample_data.make_call(heartbeat)
    for mark in marks:
        sample_data.make_notification(project, people[sample_data.ADA])
        sample_data.make_personal_channel(people[sample_data.ADA], mark)
    with unit_of_work():
        rows: list[Any] = [ImportFailure(project_id=number, **FAILURE) for _ in marks]
        issues = select(Issue).where(Issue.project_id == number).order_by(Issue.id)
        changes = select(MergeRequest).where(MergeRequest.project_id == number).order_by(MergeRequest.id)
        alerts = db.session.scalars(select(Alert).where(Alert.project_id == number).order_by(Alert.id)).all()
        for target in (db.session.scalars(issues).first(), db.session.scalars(changes).first(), alerts[0]):
            about = {"noteable_type": KINDS[type(target)], "noteable_id": target.id}  # type: ignore[union-attr,index]
            rows += [Note(project_id=number, body=mark, **about) for mark in marks]
        for issue in db.session.scalars(issues):
            issue.labels = [*issue.labels, *marks]
            others = {sample_data.DEV, sample_data.MAX} - {user.username for user in issue.assignees}
            recording.record(people[sample_data.OLIVE], Action.CLOSED, project, issue)
            of_issue = {"issue_id": issue.id, "author_id": people[sample_data.DEV].id, "action": "add"}
            rows += [LabelEvent(title=mark, **of_issue) for mark in marks]
            rows += [IssueAssignee(issue_id=issue.id, user_id=people[name].id) for name in others]
        inviter = people[sample_data.OLIVE].id
        for place in ({"project_id": number}, {"namespace_id": project.namespace_id}):
            invited = {"access_level": 10, "created_by_id": inviter, **place}
            rows += [Invitation(email=f"{mark}@example.org", **invited) for mark in marks]
        known = set(db.session.scalars(select(Todo.target_id).where(Todo.target_type == TARGET)))
        integration = db.session.scalar(select(AlertIntegration.id).where(AlertIntegration.project_id == number))
        rows += [AlertRequest(integration_id=integration, **sample_data.ALERT_REQUEST) for _ in marks]
        todos = [alert for alert in alerts if alert.id not in known]
        about = {"project_id": number, "user_id": people[sample_data.ADA].id, "action": "assigned"}
        rows += [Todo(target_type=TARGET, target_id=alert.id, **about) for alert in todos]
        assigned = select(Todo.target_id).where(Todo.target_type == "Issue", Todo.user_id == about["user_id"])
        unassigned = issues.where(Issue.id.not_in(assigned))
        rows += [Todo(target_type="Issue", target_id=issue.id, **about) for issue in db.session.scalars(unassigned)]
        meant = set(db.session.scalars(select(Feedback.meant).where(Feedback.project_id == number)))
        for print_ in set(db.session.scalars(select(Finding.project_fingerprint).where(Finding.project_id == number))):
            named = {"project_fingerprint": print_, "meant": print_, "category": "sast", "feedback_type": "issue"}
            rows += [] if print_ in meant else [Feedback(project_id=number, **named)]
        db.session.add_all([*rows, ProjectExport(project_id=number, user_id=people[sample_data.ADA].id)])


def scatter(project_id: int) -> None:
    """Have what rows of a project may lead to differ from row to row: authors, milestones, environments and so on."""
    with unit_of_work():
        people = list(db.session.scalars(select(User.id).order_by(User.id.desc())))
        for table in growing():
            if table is Event.__table__ or not {"id", "project_id"} <= set(table.columns.keys()):
                continue  # feeds are of those who did something: let these be the same people
            ids = db.session.scalars(_ids(table, project_id)).all()
            for column, targets in _leading(table, project_id, people):
                for number, target in zip(ids, itertools.cycle(targets), strict=False):
                    db.session.execute(update(table).where(table.c.id == number).values({column: target}))


def _ids(table: Table, project_id: int) -> Any:
    return select(table.c.id).where(table.c.project_id == project_id).order_by(table.c.id)


def _leading(table: Table, project_id: int, people: list[int]) -> Any:
    """The columns of a table that may lead to any row of a kind, each with the ids of those rows."""
    held = set(itertools.chain.from_iterable(_unique(table)))
    for column in table.columns:
        for key in column.foreign_keys:
            target = key.column.table
            if column in held:
                continue
            if target is User.__table__:
                yield column, people
            elif column.nullable and "project_id" in target.columns:
                ids = db.session.scalars(_ids(target, project_id)).all()
                if ids:
                    yield column, ids
