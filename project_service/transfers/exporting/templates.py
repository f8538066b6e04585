"""The keys of the rows of each relation, with their values when nothing is known."""

from __future__ import annotations

from typing import Any

from project_service.transfers.archive import layout

Line = dict[str, Any]
EMPTY: list[Line] = []  # shared by many rows; it is replaced, never changed


def template(names: tuple[str, ...], nested: tuple[str, ...] = (), defaults: Line = layout.NOTHING) -> Line:
    """Return a row with all keys that archives have, and no values but defaults."""
    return dict.fromkeys(("id", *names)) | dict.fromkeys(nested, EMPTY) | defaults


LABEL = template(layout.LABEL)
MILESTONE = template(layout.MILESTONE)
ISSUE = template(layout.ISSUE, layout.ISSUE_NESTED, layout.ISSUE_DEFAULTS)
MERGE_REQUEST = template(layout.MERGE_REQUEST, layout.MERGE_REQUEST_NESTED, layout.MERGE_REQUEST_DEFAULTS)
SNIPPET = template(layout.SNIPPET, layout.SNIPPET_NESTED)
NOTE = template(layout.NOTE, layout.NOTE_NESTED)
EVENT = template(layout.EVENT)
TEMPLATES = {"milestones": MILESTONE, "issues": ISSUE, "merge_requests": MERGE_REQUEST, "snippets": SNIPPET}
NESTED_TEMPLATES = {"notes": NOTE, "events": EVENT}


def filled(template_line: Line, extra: Line | None) -> Line:
    """Return a copy of a template with the values of ``extra``."""
    return template_line | extra if extra else template_line.copy()


def without_empty_keys(relation: str, line: Any) -> Any:
    """Return a row without the keys that have the values of its template, which are the same to importers.

    Rows without a table are returned as they are.
    """
    if relation not in TEMPLATES:
        return line
    reduced = _without_defaults(line, TEMPLATES[relation])
    if isinstance(reduced.get("milestone"), dict):
        reduced["milestone"] = _without_defaults(reduced["milestone"], MILESTONE)
    return reduced


def _without_defaults(row: Any, template_line: Line) -> Any:
    if not isinstance(row, dict):
        return row
    reduced = {name: value for name, value in row.items() if name not in template_line or value != template_line[name]}
    for name in NESTED_TEMPLATES.keys() & reduced.keys():
        if isinstance(reduced[name], list):
            reduced[name] = [_without_defaults(each, NESTED_TEMPLATES[name]) for each in reduced[name]]
    return reduced
