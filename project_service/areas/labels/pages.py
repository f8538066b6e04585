"""The pages of labels of projects and groups."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.labels import queries
from project_service.areas.labels.forms import LabelForm, PriorityForm
from project_service.domain import page_paths
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker import label_rules
from project_service.domain.tracker.labels import Label, find_label, usable_in, usable_in_group
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("label_pages", __name__)
navigation.add(navigation.NavigationEntry("Labels", "/-/labels", 53, Ability.READ_LABELS))
navigation.add(navigation.NavigationEntry("Labels", "/-/labels", 26, Ability.READ_GROUP), "group")

ProjectOrGroup = Project | Group

OF_PROJECT = "/<path:project>/-/labels"
OF_GROUP = "/groups/<path:group>/-/labels"
ONE = f"{OF_PROJECT}/<int:label_id>"
ONE_OF_GROUP = f"{OF_GROUP}/<int:label_id>"


@pages.get(OF_PROJECT, endpoint="list_labels")
@pages.get(OF_GROUP, endpoint="list_group_labels")
@pages.allow(project=Ability.READ_LABELS, group=Ability.READ_GROUP)
def list_labels(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Show the labels of a project or a group, with those of the groups above."""
    filters = {"include_ancestor_groups": True, "search": request.args.get("search", "")}
    if isinstance(owner, Project):
        matching = queries.labels_matching(owner, **filters)
    else:
        only = {"include_descendant_groups": False, "only_group_labels": True}
        matching = queries.group_labels_matching(caller(), owner, **filters, **only)
    page = read_page(matching, request.args.get("page"))
    labels = queries.shown_labels(caller(), owner, page.rows, counts=False)
    return _render("list", owner, page=page, labels=labels, search=filters["search"], form=PriorityForm())


@pages.get(f"{OF_PROJECT}/new", endpoint="new_label")
@pages.get(f"{OF_GROUP}/new", endpoint="new_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def new_label(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Show the form for a new label."""
    return _render("edit", owner, label=None, form=LabelForm())


@pages.post(f"{OF_PROJECT}/new", endpoint="create_label")
@pages.post(f"{OF_GROUP}/new", endpoint="create_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def create_label(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Create a label."""
    form = LabelForm()
    title, color, description = form.title.data, form.color.data, form.description.data or None
    if form.accepted(lambda: label_rules.create_label(owner, name=title, color=color, description=description)):
        return redirect(_list_address(owner))
    return _render("edit", owner, label=None, form=form), 422


@pages.get(f"{ONE}/edit", endpoint="edit_label")
@pages.get(f"{ONE_OF_GROUP}/edit", endpoint="edit_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def edit_label(owner: ProjectOrGroup, label_id: int) -> ResponseReturnValue:
    """Show the form of one label."""
    label = _own(owner, label_id)
    return _render("edit", owner, label=label, form=LabelForm(obj=label))


@pages.post(f"{ONE}/edit", endpoint="update_label")
@pages.post(f"{ONE_OF_GROUP}/edit", endpoint="update_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def update_label(owner: ProjectOrGroup, label_id: int) -> ResponseReturnValue:
    """Change a label; issues and merge requests get its new title."""
    label, form = _own(owner, label_id), LabelForm()
    description = form.description.data or (label.description and "")
    changes = {"new_name": form.title.data, "color": form.color.data, "description": description}
    if form.accepted(lambda: label_rules.update_label(label, **changes)):
        return redirect(_list_address(owner))
    return _render("edit", owner, label=label, form=form), 422


@pages.post(f"{ONE}/priority")
@pages.signed_in
@pages.allow(Ability.ADMIN_LABELS)
def save_priority(project: Project, label_id: int) -> ResponseReturnValue:
    """Set or, when it is empty, remove the priority of a label in a project, also of a label of a group."""
    label, form = find_label(usable_in(project), str(label_id)), PriorityForm()
    if not form.accepted(lambda: label_rules.set_priority(project, label, form.priority.data)):
        texts = [*form.problems, *form.priority.errors] or ["is not valid"]
        flash(f"Priority {texts[0].rstrip('.')}.", "warning")
    return redirect(_list_address(project))


@pages.get(f"{ONE}/delete", endpoint="ask_delete_label")
@pages.get(f"{ONE_OF_GROUP}/delete", endpoint="ask_delete_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def ask_delete_label(owner: ProjectOrGroup, label_id: int) -> ResponseReturnValue:
    """Ask before a label is deleted."""
    label = _own(owner, label_id)
    return confirmation(
        title="Delete label",
        question=f"Delete the label {label.title}? Issues and merge requests lose it.",
        button="Delete label",
        back=_list_address(owner),
        **{_kind(owner): owner},
    )


@pages.post(f"{ONE}/delete", endpoint="delete_label")
@pages.post(f"{ONE_OF_GROUP}/delete", endpoint="delete_group_label")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_LABELS, group=Ability.ADMIN_GROUP_LABELS)
def delete_label(owner: ProjectOrGroup, label_id: int) -> ResponseReturnValue:
    """Delete a label."""
    label_rules.delete_label(_own(owner, label_id))
    return redirect(_list_address(owner))


@pages.get(f"{ONE}/promote")
@pages.signed_in
@pages.allow(Ability.ADMIN_LABELS)
def ask_promote_label(project: Project, label_id: int) -> ResponseReturnValue:
    """Ask before a label of the group takes the place of the project's one."""
    label = _own(project, label_id)
    judge(caller(), Ability.ADMIN_GROUP_LABELS, project.namespace)
    return confirmation(
        title="Promote label",
        question=f"Make {label.title} a label of the group {project.namespace.full_path}? Labels of this title in other"
        " projects of the group become part of it. This cannot be undone.",
        button="Promote label",
        back=_list_address(project),
        project=project,
    )


@pages.post(f"{ONE}/promote")
@pages.signed_in
@pages.allow(Ability.ADMIN_LABELS)
def promote_label(project: Project, label_id: int) -> ResponseReturnValue:
    """Make a label of the group of one of the project."""
    judge(caller(), Ability.ADMIN_GROUP_LABELS, project.namespace)
    promoted = label_rules.promote_label(project, _own(project, label_id))
    flash(f"{promoted.title} is a label of the group now.")
    return redirect(_list_address(project))


def _own(owner: ProjectOrGroup, label_id: int) -> Label:
    """One label of the owner itself; those of groups above are changed on the pages of their group."""
    own = Label.project_id == owner.id if isinstance(owner, Project) else usable_in_group(owner, ancestors=False)
    return find_label(own, str(label_id))


def _render(name: str, owner: ProjectOrGroup, **values: Any) -> str:
    kind = _kind(owner)
    ability = Ability.ADMIN_LABELS if kind == "project" else Ability.ADMIN_GROUP_LABELS
    may_admin = allowed(caller(), ability, owner)
    group = owner.namespace if isinstance(owner, Project) else None
    may_promote = may_admin and isinstance(group, Group) and allowed(caller(), Ability.ADMIN_GROUP_LABELS, group)
    shared = {"owner": owner, "kind": kind, "here": _list_address(owner), kind: owner}
    return render_template(f"labels/{name}.html", may_admin=may_admin, may_promote=may_promote, **shared, **values)


def _kind(owner: ProjectOrGroup) -> str:
    return "project" if isinstance(owner, Project) else "group"


def _list_address(owner: ProjectOrGroup) -> str:
    return f"{page_paths.base_of(owner)}/-/labels"
