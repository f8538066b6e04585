"""Queries of labels and of their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from project_service.access.abilities import Ability, allowed
from project_service.access.across_projects import issues_of_projects, merge_requests_of_projects
from project_service.access.identity import Caller
from project_service.access.rules import visible_issues, visible_projects
from project_service.domain.namespaces import Group, descendants_of
from project_service.domain.projects import Project, projects_below
from project_service.domain.tracker import issues, label_rules
from project_service.domain.tracker.issues import Issue, IssueLabel, issues_of
from project_service.domain.tracker.labels import Label, LabelPriority, usable_in, usable_in_group, with_any_of
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel, merge_requests_of
from project_service.kit.db import searching
from project_service.kit.db.session import db


def labels_matching(project: Project, **filters: Any) -> Select[Label]:
    """The labels of a project and of the groups above, by title."""
    return _matching(usable_in(project, ancestors=filters["include_ancestor_groups"]), **filters)


def group_labels_matching(caller: Caller, group: Group, **filters: Any) -> Select[Label]:
    """The labels of a group, and as the filters say those of groups above and below and of their projects, by title."""
    usable = [usable_in_group(group, ancestors=filters["include_ancestor_groups"])]
    groups = descendants_of(group) if filters["include_descendant_groups"] else [group.id]
    if filters["include_descendant_groups"]:
        usable.append(Label.group_id.in_(groups))
    if not filters["only_group_labels"]:
        inside = Project.namespace_id.in_(groups), Project.deleting_since.is_(None), Project.loading.is_(False)
        usable.append(Label.project_id.in_(select(Project.id).where(*inside, visible_projects(caller))))
    return _matching(with_any_of(*usable), **filters)


def _matching(usable: ColumnElement[bool], **filters: Any) -> Select[Label]:
    statement = select(Label).where(usable).order_by(Label.title, Label.id)
    if search := (filters.get("search") or "").strip():
        statement = statement.where(searching.contains(search, Label.title, Label.description))
    return statement


@dataclass(frozen=True, slots=True)
class LabelUses:
    """How many issues and merge requests have a label."""

    open_issues: int
    closed_issues: int
    open_merge_requests: int


@dataclass(frozen=True, slots=True)
class ShownLabel:
    """A label as schemas serialize it: with its priority in the project, and its uses if they are counted."""

    label: Label
    priority: int | None = None
    uses: LabelUses | None = None
    subscribed: bool = False


def shown_labels(
    requester: Caller, owner: Project | Group, labels: Sequence[Label], *, counts: bool
) -> list[ShownLabel]:
    """Return the labels of a page as schemas serialize them."""
    priorities = _priorities(owner, labels) if isinstance(owner, Project) else {}
    uses = _uses(requester, owner, labels) if counts else {}
    subscribed = label_rules.has_subscribed(requester.user_id or 0, owner, [label.id for label in labels])
    return [
        ShownLabel(label, priorities.get(label.id), uses.get(label.title), label.id in subscribed) for label in labels
    ]


def shown_label(requester: Caller, owner: Project | Group, label: Label) -> ShownLabel:
    """Return one label of a project or a group as schemas serialize it."""
    (shown_row,) = shown_labels(requester, owner, [label], counts=False)
    return shown_row


def _priorities(project: Project, labels: Sequence[Label]) -> dict[int, int]:
    """Return the priorities that labels have in a project, by id."""
    of_project = LabelPriority.project_id == project.id, LabelPriority.label_id.in_([label.id for label in labels])
    return dict(db.session.execute(select(LabelPriority.label_id, LabelPriority.priority).where(*of_project)).all())


def _uses(caller: Caller, owner: Project | Group, labels: Sequence[Label]) -> dict[str, LabelUses]:
    """Count the issues and merge requests that have labels and that the caller may see, by title.

    They are those of the project or, of a group, those of all projects below it.
    """
    titles = [label.title for label in labels]
    used: dict[tuple[str, str], int] = {}
    counted = _visible_issues(caller, owner)
    if counted is not None:
        counted = counted.join(IssueLabel, IssueLabel.issue_id == Issue.id).where(IssueLabel.title.in_(titles))
        grouped = counted.with_only_columns(Issue.state, IssueLabel.title, func.count(), maintain_column_froms=True)
        rows = db.session.execute(grouped.group_by(Issue.state, IssueLabel.title))
        used |= {(state, title): number for state, title, number in rows}
    marked = _visible_merge_requests(caller, owner)
    if marked is not None:
        marked = marked.join(MergeRequestLabel, MergeRequestLabel.merge_request_id == MergeRequest.id)
        marked = marked.where(MergeRequest.state == issues.OPENED, MergeRequestLabel.title.in_(titles))
        by_title = marked.with_only_columns(MergeRequestLabel.title, func.count(), maintain_column_froms=True)
        by_title = by_title.group_by(MergeRequestLabel.title)
        used |= {("merge_requests", title): number for title, number in db.session.execute(by_title)}
    kinds = (issues.OPENED, issues.CLOSED, "merge_requests")
    return {title: LabelUses(*(used.get((kind, title), 0) for kind in kinds)) for title in titles}


def _visible_issues(caller: Caller, owner: Project | Group) -> Select[Issue] | None:
    if isinstance(owner, Project):
        if not allowed(caller, Ability.READ_ISSUES, owner):
            return None
        return issues_of(owner).where(visible_issues(caller, owner))
    below = select(Issue).join(Project, Project.id == Issue.project_id)
    return below.where(_present_below(owner), issues_of_projects(caller))


def _visible_merge_requests(caller: Caller, owner: Project | Group) -> Select[MergeRequest] | None:
    if isinstance(owner, Project):
        return merge_requests_of(owner) if allowed(caller, Ability.READ_MERGE_REQUESTS, owner) else None
    below = select(MergeRequest).join(Project, Project.id == MergeRequest.project_id)
    return below.where(_present_below(owner), merge_requests_of_projects(caller))


def _present_below(group: Group) -> ColumnElement[bool]:
    present = Project.deleting_since.is_(None) & Project.loading.is_(False)
    return present & Project.id.in_(projects_below(group))
