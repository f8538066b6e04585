"""The API of labels of projects and groups (supporting resources reference, section 13)."""

from __future__ import annotations

import functools
from typing import Any

from flask import Response

from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller
from project_service.areas.labels import queries, schemas
from project_service.areas.labels.queries import ShownLabel
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker import label_rules
from project_service.domain.tracker.labels import Label, find_label, usable_in, usable_in_group
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("labels", __name__, description="Labels of a project, with those of the groups above.")
group_api = ApiBlueprint("group_labels", __name__, description="Labels of a group, for all projects below it.")

LABELS = "/projects/<project>/labels"
GROUP_LABELS = "/groups/<group>/labels"


@api.get(LABELS)
@api.signed_in
@api.arguments(schemas.LabelFilterSchema)
@api.allow(Ability.READ_LABELS)
@api.response(200, schemas.LabelWithCountsSchema(many=True))
@api.paged
def list_labels(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the labels of a project; ``with_counts`` adds how often each is used."""
    with_counts = fields["with_counts"]
    schema = schemas.LabelWithCountsSchema if with_counts else schemas.LabelSchema
    prepare = functools.partial(queries.shown_labels, caller(), project, counts=with_counts)
    return WithSchema(schema, queries.labels_matching(project, **fields), prepare)


@api.get(f"{LABELS}/<label>")
@api.signed_in
@api.arguments(schemas.LabelShowSchema)
@api.allow(Ability.READ_LABELS)
@api.response(200, schemas.LabelSchema)
def show_label(project: Project, fields: dict[str, Any], label: str) -> ShownLabel:
    """Show one label, by its id or its title."""
    return queries.shown_label(
        caller(), project, find_label(usable_in(project, ancestors=fields["include_ancestor_groups"]), label)
    )


@api.post(LABELS)
@api.signed_in
@api.arguments(schemas.LabelCreateSchema)
@api.allow(Ability.ADMIN_LABELS)
@api.response(201, schemas.LabelSchema)
def create_label(project: Project, fields: dict[str, Any]) -> ShownLabel:
    """Create a label."""
    return queries.shown_label(caller(), project, label_rules.create_label(project, **fields))


@api.put(f"{LABELS}/<label>")
@api.signed_in
@api.arguments(schemas.LabelUpdateSchema)
@api.allow(Ability.ADMIN_LABELS)
@api.response(200, schemas.LabelSchema)
def update_label(project: Project, fields: dict[str, Any], label: str) -> ShownLabel:
    """Change a label, or its priority in the project; issues and merge requests get its new name."""
    return _update(project, _own(project, label), fields)


@api.put(LABELS)
@api.signed_in
@api.arguments(schemas.NamedLabelUpdateSchema)
@api.allow(Ability.ADMIN_LABELS)
@api.response(200, schemas.LabelSchema)
def update_named_label(project: Project, fields: dict[str, Any]) -> ShownLabel:
    """Change the label that ``label_id`` or ``name`` names."""
    return _update(project, _own(project, _name(fields)), fields)


@api.delete(f"{LABELS}/<label>")
@api.signed_in
@api.allow(Ability.ADMIN_LABELS)
@api.response(204)
def delete_label(project: Project, label: str) -> None:
    """Delete a label; issues and merge requests lose it."""
    _delete(_own(project, label))


@api.delete(LABELS)
@api.signed_in
@api.allow(Ability.ADMIN_LABELS)
@api.arguments(schemas.LabelNameSchema)
@api.response(204)
def delete_named_label(project: Project, fields: dict[str, Any]) -> None:
    """Delete the label that ``label_id`` or ``name`` names."""
    _delete(_own(project, _name(fields)))


@api.put(f"{LABELS}/<label>/promote")
@api.signed_in
@api.allow(Ability.ADMIN_LABELS)
@api.response(200, schemas.GroupLabelSchema)
def promote_label(project: Project, label: str) -> ShownLabel:
    """Make a label of the group of a label of the project."""
    return _promote(project, label)


@api.put(f"{LABELS}/promote")
@api.signed_in
@api.arguments(schemas.LabelPromoteSchema)
@api.allow(Ability.ADMIN_LABELS)
@api.response(200, schemas.GroupLabelSchema)
def promote_named_label(project: Project, fields: dict[str, Any]) -> ShownLabel:
    """Make a label of the group of the label that ``name`` names."""
    return _promote(project, fields["name"] or "")


@api.post(f"{LABELS}/<label>/subscribe")
@api.signed_in
@api.allow(Ability.READ_LABELS)
@api.response(201, schemas.LabelSchema)
@api.other_response(304, "Nothing to change")
def subscribe_to_label(project: Project, label: str) -> ShownLabel | Response:
    """Subscribe to a label; 304 if you have."""
    row = find_label(usable_in(project), label)
    return _changed(label_rules.subscribe(caller().user_id or 0, project, row), project, row)


@api.post(f"{LABELS}/<label>/unsubscribe")
@api.signed_in
@api.allow(Ability.READ_LABELS)
@api.response(201, schemas.LabelSchema)
@api.other_response(304, "Nothing to change")
def unsubscribe_from_label(project: Project, label: str) -> ShownLabel | Response:
    """End a subscription to a label; 304 if there is none."""
    row = find_label(usable_in(project), label)
    return _changed(label_rules.unsubscribe(caller().user_id or 0, project, row), project, row)


@group_api.post(f"{GROUP_LABELS}/<label>/subscribe")
@group_api.signed_in
@group_api.allow(Ability.READ_GROUP)
@group_api.response(201, schemas.GroupLabelSchema)
@group_api.other_response(304, "Nothing to change")
def subscribe_to_group_label(group: Group, label: str) -> ShownLabel | Response:
    """Subscribe to a label of a group; 304 if you have."""
    row = find_label(usable_in_group(group), label)
    return _changed(label_rules.subscribe(caller().user_id or 0, group, row), group, row)


@group_api.post(f"{GROUP_LABELS}/<label>/unsubscribe")
@group_api.signed_in
@group_api.allow(Ability.READ_GROUP)
@group_api.response(201, schemas.GroupLabelSchema)
@group_api.other_response(304, "Nothing to change")
def unsubscribe_from_group_label(group: Group, label: str) -> ShownLabel | Response:
    """End a subscription to a label of a group; 304 if there is none."""
    row = find_label(usable_in_group(group), label)
    return _changed(label_rules.unsubscribe(caller().user_id or 0, group, row), group, row)


@group_api.get(GROUP_LABELS)
@group_api.signed_in
@group_api.arguments(schemas.GroupLabelFilterSchema)
@group_api.allow(Ability.READ_GROUP)
@group_api.response(200, schemas.GroupLabelWithCountsSchema(many=True))
@group_api.paged
def list_group_labels(group: Group, fields: dict[str, Any]) -> WithSchema:
    """List the labels of a group; ``with_counts`` adds how often each is used in the projects below."""
    requester, with_counts = caller(), fields["with_counts"]
    prepare = functools.partial(queries.shown_labels, requester, group, counts=with_counts)
    schema = schemas.GroupLabelWithCountsSchema if with_counts else schemas.GroupLabelSchema
    return WithSchema(schema, queries.group_labels_matching(requester, group, **fields), prepare)


@group_api.get(f"{GROUP_LABELS}/<label>")
@group_api.signed_in
@group_api.arguments(schemas.LabelShowSchema)
@group_api.allow(Ability.READ_GROUP)
@group_api.response(200, schemas.GroupLabelSchema)
def show_group_label(group: Group, fields: dict[str, Any], label: str) -> ShownLabel:
    """Show one label of a group, by its id or its title."""
    row = find_label(usable_in_group(group, ancestors=fields["include_ancestor_groups"]), label)
    return queries.shown_label(caller(), group, row)


@group_api.post(GROUP_LABELS)
@group_api.signed_in
@group_api.arguments(schemas.GroupLabelCreateSchema)
@group_api.allow(Ability.ADMIN_GROUP_LABELS)
@group_api.response(201, schemas.GroupLabelSchema)
def create_group_label(group: Group, fields: dict[str, Any]) -> ShownLabel:
    """Create a label of a group."""
    return queries.shown_label(caller(), group, label_rules.create_label(group, **fields))


@group_api.put(f"{GROUP_LABELS}/<label>")
@group_api.signed_in
@group_api.arguments(schemas.GroupLabelUpdateSchema)
@group_api.allow(Ability.ADMIN_GROUP_LABELS)
@group_api.response(200, schemas.GroupLabelSchema)
def update_group_label(group: Group, fields: dict[str, Any], label: str) -> ShownLabel:
    """Change a label of a group; issues and merge requests get its new name."""
    return queries.shown_label(caller(), group, label_rules.update_label(_own_of_group(group, label), **fields))


@group_api.put(GROUP_LABELS)
@group_api.signed_in
@group_api.arguments(schemas.NamedGroupLabelUpdateSchema)
@group_api.allow(Ability.ADMIN_GROUP_LABELS)
@group_api.response(200, schemas.GroupLabelSchema)
def update_named_group_label(group: Group, fields: dict[str, Any]) -> ShownLabel:
    """Change the label of a group that ``label_id`` or ``name`` names."""
    return queries.shown_label(caller(), group, label_rules.update_label(_own_of_group(group, _name(fields)), **fields))


@group_api.delete(f"{GROUP_LABELS}/<label>")
@group_api.signed_in
@group_api.allow(Ability.ADMIN_GROUP_LABELS)
@group_api.response(204)
def delete_group_label(group: Group, label: str) -> None:
    """Delete a label of a group; issues and merge requests lose it."""
    label_rules.delete_label(unmodified(_own_of_group(group, label)))


@group_api.delete(GROUP_LABELS)
@group_api.signed_in
@group_api.allow(Ability.ADMIN_GROUP_LABELS)
@group_api.arguments(schemas.LabelNameSchema)
@group_api.response(204)
def delete_named_group_label(group: Group, fields: dict[str, Any]) -> None:
    """Delete the label of a group that ``label_id`` or ``name`` names."""
    label_rules.delete_label(unmodified(_own_of_group(group, _name(fields))))


def _changed(is_changed: bool, owner: Project | Group, label: Label) -> ShownLabel | Response:
    return queries.shown_label(caller(), owner, label) if is_changed else Response(status=304)


def _own(project: Project, id_or_title: str) -> Label:
    return find_label(usable_in(project, ancestors=False), id_or_title)


def _own_of_group(group: Group, id_or_title: str) -> Label:
    return find_label(usable_in_group(group, ancestors=False), id_or_title)


def _name(fields: dict[str, Any]) -> str:
    name, label_id = fields.pop("name", None), fields.pop("label_id", None)
    return str(label_id) if name is None else str(name)


def _update(project: Project, label: Label, fields: dict[str, Any]) -> ShownLabel:
    has_priority, priority = "priority" in fields, fields.pop("priority", None)
    if fields:
        _judge_group(label)
        label_rules.update_label(label, **fields)
    if has_priority:
        label_rules.set_priority(project, label, priority)
    return queries.shown_label(caller(), project, label)


def _delete(label: Label) -> None:
    _judge_group(label)
    label_rules.delete_label(unmodified(label))


def _promote(project: Project, id_or_title: str) -> ShownLabel:
    if isinstance(project.namespace, Group):
        judge(caller(), Ability.ADMIN_GROUP_LABELS, project.namespace)
    promoted = label_rules.promote_label(project, _own(project, id_or_title))
    return queries.shown_label(caller(), project, promoted)


def _judge_group(label: Label) -> None:
    """Require the role in the group of a label that was found through a project."""
    if label.group is not None:
        judge(caller(), Ability.ADMIN_GROUP_LABELS, label.group)
