"""Create, change, delete and promote labels, with the titles that issues and merge requests have of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypedDict, Unpack

from sqlalchemy import ColumnElement, Select, delete, exists, or_, select, update
from sqlalchemy.orm import aliased

from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor, groups_above
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, IssueLabel
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.labels import (
    DEFAULT_COLOR,
    HEX,
    LONGEST_TITLE,
    Label,
    LabelPriority,
    LabelSubscription,
    usable_in,
    usable_in_group,
)
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel
from project_service.domain.tracker.named_colors import NAMED_COLORS
from project_service.kit import clock
from project_service.kit.db.base import table_of
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import add_unique, db, insert, unique
from project_service.kit.http.errors import BadRequest, Conflict, Invalid

MAX_DESCRIPTION_BYTES = 512 << 10
TAKEN = "has already been taken"
NOT_PROMOTED = "Failed to promote project label to group label"
# the tables of titles, with the key of their issue or merge request and its project
TITLES: tuple[tuple[Any, Any, Any, Any], ...] = (
    (IssueLabel, IssueLabel.issue_id, Issue.id, Issue.project_id),
    (MergeRequestLabel, MergeRequestLabel.merge_request_id, MergeRequest.id, MergeRequest.project_id),
)


def create_label(
    owner: Project | Group,
    *,
    name: str | None,
    color: str | None,
    description: str | None = None,
    priority: int | None = None,
) -> Label:
    """Create a label of a project or a group.

    Raises:
        Conflict: the project or group, or a group above, has a label of this title.

    """
    title = (name or "").strip()
    usable = usable_in(owner) if isinstance(owner, Project) else usable_in_group(owner)
    conflict = Conflict("Label already exists")
    if db.session.scalar(select(Label.id).where(usable, Label.title == title)) is not None:
        raise conflict
    label = Label(title=title, color=parsed_color(color), description=description)
    if isinstance(owner, Project):
        label.project_id, label.project = owner.id, owner
    else:
        label.group_id, label.group = owner.id, owner
    _check(label, priority)
    with db.session.no_autoflush:
        add_unique(label, conflict)
    db.session.flush()
    if isinstance(owner, Project) and priority is not None:
        set_priority(owner, label, priority)
    return label


class LabelChanges(TypedDict, total=False):
    """What can be changed of a label."""

    new_name: str | None
    color: str | None
    description: str | None


def update_label(label: Label, **changes: Unpack[LabelChanges]) -> Label:
    """Change a label; ``new_name`` renames it on issues and merge requests too."""
    lock_row(label, "title")
    former = label.title
    new_name, color = changes.get("new_name"), changes.get("color")
    title = former if new_name is None else new_name.strip()
    with db.session.no_autoflush:
        if color is not None:
            label.color = parsed_color(color)
        if "description" in changes:
            label.description = changes["description"]
        label.title = title
        _check(label, None)
        if title != former:
            _refuse_taken(label, title)
    with unique(Invalid(title=TAKEN)):
        db.session.flush()
    if title != former:
        _rename_titles(label, former, title)
    return label


def set_priority(project: Project, label: Label, priority: int | None) -> None:
    """Set or, with ``None``, remove the priority of a label in a project."""
    of_label = LabelPriority.project_id == project.id, LabelPriority.label_id == label.id
    if priority is None:
        db.session.execute(delete(LabelPriority).where(*of_label))
        return
    _check_priority(priority)
    new = insert(LabelPriority).values(project_id=project.id, label_id=label.id, priority=priority)
    db.session.execute(
        new.on_conflict_do_update(index_elements=["project_id", "label_id"], set_={"priority": priority})
    )


def subscribe(user_id: int, owner: Project | Group, label: Label) -> bool:
    """Subscribe a user to a label in a project, or to one of a group; return whether that is new.

    Subscriptions are answered by the API; nothing is sent to subscribers.
    """
    if has_subscribed(user_id, owner, [label.id]):
        return False
    project_id = owner.id if isinstance(owner, Project) else None
    new = insert(LabelSubscription).values(user_id=user_id, label_id=label.id, project_id=project_id)
    return bool(db.session.execute(new.on_conflict_do_nothing().returning(LabelSubscription.id)).scalars().all())


def unsubscribe(user_id: int, owner: Project | Group, label: Label) -> bool:
    """End the subscriptions of a user to a label; return whether there was one."""
    ended = delete(LabelSubscription).where(*_subscriptions(user_id, owner, [label.id]))
    return bool(db.session.execute(ended.returning(LabelSubscription.id)).scalars().all())


def has_subscribed(user_id: int, owner: Project | Group, label_ids: Collection[int]) -> set[int]:
    """The ids of the labels, among some, that a user has subscribed to."""
    return set(db.session.scalars(select(LabelSubscription.label_id).where(*_subscriptions(user_id, owner, label_ids))))


def _subscriptions(user_id: int, owner: Project | Group, label_ids: Collection[int]) -> list[ColumnElement[bool]]:
    here: ColumnElement[bool] = LabelSubscription.project_id.is_(None)
    if isinstance(owner, Project):
        here = or_(here, LabelSubscription.project_id == owner.id)
    return [LabelSubscription.user_id == user_id, LabelSubscription.label_id.in_(label_ids), here]


def delete_label(label: Label) -> None:
    """Delete a label; issues lose its title, unless a group above has a label of that title."""
    if db.session.scalar(select(_farther_label(label))) is False:
        for model, key, number, project_id in TITLES:
            db.session.execute(
                delete(model).where(
                    model.title == label.title, key.in_(select(number).where(project_id.in_(_projects_of(label))))
                ),
                execution_options={"synchronize_session": False},
            )
    delete_locked(label)


def promote_label(project: Project, label: Label) -> Label:
    """Make one label of the project's group of the labels with the title of ``label`` in the group's projects.

    Raises:
        BadRequest: it is a label of a group already, or the project belongs to no group.

    """
    group = project.namespace
    if label.project_id is None or not isinstance(group, Group):
        raise BadRequest(NOT_PROMOTED)
    of_group = select(Label).where(Label.group_id == group.id, Label.title == label.title)
    promoted = db.session.scalar(of_group)
    if promoted is None:
        promoted = Label(
            group_id=group.id, group=group, title=label.title, color=label.color, description=label.description
        )
        add_unique(promoted, BadRequest(NOT_PROMOTED))
        db.session.flush()
    in_projects = select(Label.id).where(
        Label.title == label.title, Label.project_id.in_(select(Project.id).where(Project.namespace_id == group.id))
    )
    ids = list(db.session.scalars(in_projects))
    has_priority = select(LabelPriority.project_id).where(LabelPriority.label_id == promoted.id)
    db.session.execute(
        update(LabelPriority)
        .where(LabelPriority.label_id.in_(ids), LabelPriority.project_id.not_in(has_priority.scalar_subquery()))
        .values(label_id=promoted.id),
        execution_options={"synchronize_session": False},
    )
    db.session.execute(
        update(LabelSubscription).where(LabelSubscription.label_id.in_(ids)).values(label_id=promoted.id),
        execution_options={"synchronize_session": False},
    )
    db.session.execute(delete(Label).where(Label.id.in_(ids)), execution_options={"synchronize_session": False})
    return promoted


def ensure_labels(project: Project, titles: Collection[str]) -> None:
    """Create labels of the project for the titles that neither it nor a group above has."""
    if not titles:
        return
    existing = set(db.session.scalars(select(Label.title).where(usable_in(project), Label.title.in_(titles))))
    now = clock.now()
    new = {"project_id": project.id, "color": DEFAULT_COLOR, "created_at": now, "updated_at": now}
    rows = [new | {"title": title} for title in sorted(set(titles) - existing)]
    if rows:
        db.session.execute(insert(table_of(Label)).on_conflict_do_nothing(), rows)


def keep_group_labels(project: Project, former: Namespace) -> None:
    """Copy the labels of the groups that a project left which its issues and merge requests have or had."""
    used = or_(
        *(
            Label.title.in_(select(model.title).join(number.class_, number == key).where(project_id == project.id))
            for model, key, number, project_id in TITLES
        )
    )
    had = select(LabelEvent.title).join(Issue, Issue.id == LabelEvent.issue_id).where(Issue.project_id == project.id)
    nearest_first = Label.group_id.in_(groups_above(former.id)), or_(used, Label.title.in_(had))
    left = db.session.scalars(
        select(Label).where(*nearest_first).join(Label.group).order_by(Namespace.full_path.desc())
    )
    by_title: dict[str, Label] = {}
    for label in left:
        by_title.setdefault(label.title, label)
    existing = set(db.session.scalars(select(Label.title).where(usable_in(project), Label.title.in_(by_title))))
    for title, label in by_title.items():
        if title not in existing:
            copy = Label(project_id=project.id, title=title, color=label.color, description=label.description)
            db.session.add(copy)
            db.session.flush()
            db.session.execute(
                update(LabelPriority)
                .where(LabelPriority.project_id == project.id, LabelPriority.label_id == label.id)
                .values(label_id=copy.id),
                execution_options={"synchronize_session": False},
            )


def parsed_color(text: str | None) -> str:
    """A colour as it is stored: as it was sent, or the hex digits of a name."""
    color = (text or "").strip()
    color = NAMED_COLORS.get(color.lower(), color)
    if not HEX.fullmatch(color):
        raise Invalid(color="must be a valid color code")
    return color


def _check(label: Label, priority: int | None) -> None:
    problems: dict[str, list[str]] = {}
    if not label.title:
        problems["title"] = ["can't be blank", "is invalid"]
    elif "," in label.title:
        problems["title"] = ["is invalid"]
    elif len(label.title) > LONGEST_TITLE:
        problems["title"] = [f"is too long (maximum is {LONGEST_TITLE} characters)"]
    if len((label.description or "").encode()) > MAX_DESCRIPTION_BYTES:
        problems["description"] = [f"is too long (maximum is {MAX_DESCRIPTION_BYTES} bytes)"]
    if problems:
        raise Invalid(**problems)
    _check_priority(priority)


def _check_priority(priority: int | None) -> None:
    if priority is not None and priority < 0:
        raise Invalid(priority="must be greater than or equal to 0")


def _refuse_taken(label: Label, title: str) -> None:
    same = select(Label).where(Label.title == title, Label.id != label.id)
    owner = Label.group_id == label.group_id if label.project is None else Label.project_id == label.project_id
    if db.session.scalar(same.where(owner)) is not None:
        raise Invalid(title=TAKEN)
    group = None if label.project is None else label.project.namespace
    if group is not None and db.session.scalar(same.where(Label.group_id == group.id)) is not None:
        raise Invalid(title=f"already exists at group level for {group.name}. Please choose another one.")


def _rename_titles(label: Label, former: str, title: str) -> None:
    in_projects = LabelEvent.issue_id.in_(select(Issue.id).where(Issue.project_id.in_(_projects_of(label, former))))
    events = update(LabelEvent).where(LabelEvent.title == former, in_projects).values(title=title)
    db.session.execute(events, execution_options={"synchronize_session": False})
    for model, key, number, project_id in TITLES:
        has_former = model.title == former, key.in_(select(number).where(project_id.in_(_projects_of(label, former))))
        other = aliased(model)
        other_key = getattr(other, key.key)
        has_both = exists().where(other_key == key, other.title == title)
        for statement in (
            delete(model).where(*has_former, has_both),
            update(model).where(*has_former).values(title=title),
        ):
            db.session.execute(statement, execution_options={"synchronize_session": False})


def _projects_of(label: Label, title: str | None = None) -> Select[int]:
    """The ids of the projects in which ``title``, by default that of the label, means the label."""
    if label.group_id is None:
        return select(Project.id).where(Project.id == label.project_id)
    nearer = aliased(Label)
    below = select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == label.group_id)
    between = select(NamespaceAncestor.ancestor_id).where(
        NamespaceAncestor.namespace_id == Project.namespace_id,
        NamespaceAncestor.ancestor_id.in_(below),
        NamespaceAncestor.ancestor_id != label.group_id,
    )
    between = between.correlate_except(NamespaceAncestor)
    has_nearer = exists().where(
        nearer.title == (title or label.title),
        nearer.id != label.id,
        or_(nearer.project_id == Project.id, nearer.group_id.in_(between)),
    )
    return select(Project.id).where(Project.namespace_id.in_(below), ~has_nearer)


def _farther_label(label: Label) -> ColumnElement[bool]:
    """Whether a group above has a label of the same title."""
    namespace_id = label.group_id if label.project is None else label.project.namespace_id
    other = aliased(Label)
    return exists().where(
        other.title == label.title, other.id != label.id, other.group_id.in_(groups_above(namespace_id))
    )
