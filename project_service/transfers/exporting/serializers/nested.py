"""Labels and milestones as they are nested in other rows."""

from __future__ import annotations

from project_service.kit import exact_json
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.labels import group_label_lines, label_lines, undescribed_labels
from project_service.transfers.exporting.serializers.milestones import group_milestone_lines, serialize_milestones
from project_service.transfers.exporting.templates import Line

MAX_NESTED_ROW_BYTES = 64 << 10
EVENT_BYTES = 512  # about
# the keys that identify one whose full row is in its own relation
LABEL_KEYS = ("id", "title", "project_id", "created_at", "updated_at", "type")
MILESTONE_KEYS = ("id", "title", "project_id", "due_date", "created_at", "updated_at", "state", "iid", "start_date")


def load_nested(context: ExportContext) -> None:
    """Read the labels and milestones that are nested in other rows into the context."""
    for line in group_label_lines(context):
        context.labels[line["title"]] = _nested_line(context, line, (*LABEL_KEYS, "group_id"))
    for line in label_lines(context):
        del line["textColor"]
        context.labels[line["title"]] = _nested_line(context, line, LABEL_KEYS)
    context.undescribed_labels = list(undescribed_labels(context))
    context.labels |= {line["title"]: line for line in context.undescribed_labels}
    for line in group_milestone_lines(context):
        context.milestones[line["id"]] = _nested_line(context, line, (*MILESTONE_KEYS, "group_id"))
    for line in serialize_milestones(context):
        context.milestones[line["id"]] = _nested_line(context, line, MILESTONE_KEYS)


def _nested_line(context: ExportContext, line: Line, names: tuple[str, ...]) -> Line:
    """Return a row as it is nested; a large one with its keys only, as the full row is in its own relation."""
    # without what changes with every transfer, or the next archive would differ
    measured = exact_json.dumps(line | dict.fromkeys(("id", "project_id", "events")))
    size = len(measured) + EVENT_BYTES * len(line.get("events", ()))
    if size <= min(MAX_NESTED_ROW_BYTES, context.nested_bytes_left):
        context.nested_bytes_left -= size
        return line
    return {name: line[name] for name in names}
