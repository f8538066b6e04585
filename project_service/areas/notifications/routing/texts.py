"""Titles and lines of messages about events (notifications reference, section 6)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from project_service.areas.notifications import messages
from project_service.areas.notifications.messages import ACKNOWLEDGED, ENDED, OPEN, OTHER, ChannelMessage, one_line
from project_service.domain.accounts.users import User
from project_service.domain.hooks.hook_payloads import project_of
from project_service.domain.notifications.models import (
    ALERT,
    ALERT_ACKNOWLEDGED,
    ALERT_IGNORED,
    ALERT_REOPENED,
    ALERT_RESOLVED,
    ERROR,
    ERROR_REGRESSION,
    FINDING,
    INCIDENT_CLOSED,
    ISSUE,
    OPENING,
    NotificationEvent,
)
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.http import urls

MAX_DESCRIPTION = 500
MAX_LISTED = 10
MAX_SUBJECT = 150
TIMES = "\N{MULTIPLICATION SIGN}"
TAGS = {
    ALERT_RESOLVED: "RESOLVED",
    ALERT_ACKNOWLEDGED: "ACKNOWLEDGED",
    ALERT_IGNORED: "IGNORED",
    ALERT_REOPENED: "REOPENED",
}
STATES = {
    ALERT_RESOLVED: ENDED,
    INCIDENT_CLOSED: ENDED,
    ALERT_ACKNOWLEDGED: ACKNOWLEDGED,
    ALERT_IGNORED: OTHER,
}


def single(project: Project, event: NotificationEvent, author: User | None) -> dict[str, Any]:
    """Return the fields of the message about one event."""
    makers = {ALERT: _alert, ERROR: _error, FINDING: _findings, ISSUE: _incident}
    fields = makers[event.subject_type](project, event, author)
    return {
        "state": STATES.get(event.kind, OPEN),
        "severity": event.severity,
        "environment": event.environment,
        "url": event.snapshot["url"],
        "mail_subject": f"{project.name} | {fields.get('tag') and '[' + fields['tag'] + '] '}{fields['headline']}",
        "reference": f"{event.subject_type}-{event.subject_id}",
    } | fields


class Line(NamedTuple):
    """What events have in common that are one line of a message."""

    kind: str
    severity: str
    environment: str | None
    title: str


def several(
    project: Project,
    counts: Counter[tuple[str, str]],
    listed: Sequence[NotificationEvent],
    repeated: Counter[Line],
) -> dict[str, Any]:
    """Return the fields of a message about several events, of which the most severe are listed.

    ``counts`` are by kind and severity, ``repeated`` by line: the number of all events, those that are not listed too.
    """
    opened = Counter[str]()
    for (kind, severity), number in counts.items():
        if kind in OPENING:
            opened[severity] += number
    new = sum(opened.values())
    ended = sum(number for (kind, _), number in counts.items() if STATES.get(kind) == ENDED)
    other = sum(counts.values()) - new - ended
    noun = _noun({event.subject_type for event in listed})
    parts = ([f"{new} new"] if new else []) + ([f"{ended} resolved"] if ended else [])
    parts += [f"{other} other"] if other else []
    severities = ", ".join(f"{opened[name]} {name}" for name in _by_severity(opened)) if not ended else ""
    if all(event.snapshot.get("after_silence") for event in listed) and len(parts) == 1 and new:
        headline = f"{new} {noun} are open in {project.name} after the silence ended"
    elif parts == [f"{new} new"]:
        headline = f"{new} new {noun} in {project.name}" + (f" ({severities})" if severities else "")
    elif parts == [f"{ended} resolved"]:
        headline = f"{ended} {noun} resolved in {project.name}"
    else:
        headline = f"{', '.join(parts)} in {project.name}"
    lines, listed_count = _list(listed, repeated)
    rest = sum(counts.values()) - listed_count
    return {
        "headline": headline,
        "lines": tuple(lines) + ((f"… and {rest} more",) if rest > 0 else ()),
        "state": OPEN if new else ENDED if ended else OTHER,
        "severity": next(iter(_by_severity(opened)), "unknown"),
        "url": _address_of_list(project, listed),
        "mail_subject": f"{project.name} | {headline}",
    }


def reminder(project: Project, events: Sequence[NotificationEvent]) -> dict[str, Any]:
    """Return the fields of a message about openings that were told before; the most severe are first."""
    length = clock.now() - min(event.created_at for event in events)
    seconds = int(length.total_seconds())
    rounded = dt.timedelta(seconds=seconds - seconds % (3600 if seconds >= 3600 else 60))
    words = f"Still open for {messages.duration_words(rounded)}:"
    if len(events) == 1:
        fields = single(project, events[0], None)
        tag = f"[{fields['tag']}] " if fields["tag"] else ""
        headline = f"{words} {tag}{fields['headline']}"
        return fields | {"tag": "", "headline": headline, "mail_subject": f"{project.name} | {headline}"}
    lines, listed_count = _list(events, Counter(map(line_of, events)))
    headline = f"{words} {len(events)} {_noun({event.subject_type for event in events})} in {project.name}"
    return {
        "headline": headline,
        "lines": tuple(lines) + ((f"… and {len(events) - listed_count} more",) if len(events) > listed_count else ()),
        "severity": events[0].severity,
        "url": _address_of_list(project, events),
        "mail_subject": f"{project.name} | {headline}",
    }


def ended_meanwhile(number: int) -> str:
    """Return the line about what began and ended during quiet hours."""
    return f"{number} more began and ended during your quiet hours."


def all_ended(project: Project, number: int) -> dict[str, Any]:
    """Return the fields of a message about what began and ended during quiet hours, and nothing else."""
    headline = f"{number} alerts or incidents began and ended during your quiet hours in {project.name}"
    return {
        "headline": headline if number > 1 else headline.replace("1 alerts or incidents", "1 alert or incident"),
        "state": ENDED,
        "severity": "info",
        "url": _address_of_list(project, ()),
        "mail_subject": f"{project.name} | Quiet hours are over",
    }


def build(project: Project, fields: dict[str, Any], **more: Any) -> ChannelMessage:
    """Return a message, with control characters and line breaks of titles removed."""
    fields = fields | more
    fields["headline"] = messages.cut_characters(one_line(fields["headline"]), 255)
    fields["mail_subject"] = messages.cut_characters(one_line(fields["mail_subject"]), MAX_SUBJECT)
    fields["lines"] = tuple(messages.plain(line) for line in fields.get("lines", ()))
    return ChannelMessage(project=project_of(project), **fields)


def _summary(line: Line) -> str:
    tag = TAGS.get(line.kind) or ("CLOSED" if line.kind == INCIDENT_CLOSED else line.severity.upper())
    environment = f" — {line.environment}" if line.environment else ""
    return f"[{tag}] {one_line(line.title)}{environment}"


def _alert(project: Project, event: NotificationEvent, author: User | None) -> dict[str, Any]:
    snapshot = event.snapshot
    tag = TAGS.get(event.kind, event.severity.upper())
    by = f" (by {author.name})" if event.kind == ALERT_ACKNOWLEDGED and author is not None else ""
    started = dt.datetime.fromisoformat(snapshot["started_at"])
    facts = [("Environment", event.environment)] if event.environment else []
    facts.append(("Started", f"{started:%Y-%m-%d %H:%M} UTC"))
    if event.kind == ALERT_RESOLVED and snapshot["ended_at"]:
        ended = dt.datetime.fromisoformat(snapshot["ended_at"])
        facts.append(("Lasted", messages.duration_words(ended - started)))
    description = messages.cut_characters(snapshot["description"] or "", MAX_DESCRIPTION)
    environment = f"{event.environment}: " if event.environment else ""
    return {
        "tag": tag,
        "headline": snapshot["title"] + by,
        "lines": (description,) if description else (),
        "facts": tuple(facts),
        "mail_subject": f"{project.name} | Alert: {environment}{snapshot['title']}",
    }


def _error(project: Project, event: NotificationEvent, _author: User | None) -> dict[str, Any]:
    snapshot = event.snapshot
    words = "Error is back" if event.kind == ERROR_REGRESSION else "New error"
    facts = [
        ("Level", snapshot["level"]),
        ("Release", snapshot["release"]),
        ("Environment", event.environment),
        ("Events", str(snapshot["count"])),
        ("Users", str(snapshot["user_count"])),
    ]
    return {
        "tag": "",
        "headline": f"{words} in {project.name}: {snapshot['title']}",
        "lines": (snapshot["culprit"],) if snapshot["culprit"] else (),
        "facts": tuple((name, value) for name, value in facts if value),
    }


def _findings(project: Project, event: NotificationEvent, _author: User | None) -> dict[str, Any]:
    snapshot = event.snapshot
    number, counts = snapshot["count"], snapshot["counts"]
    word = f"{next(iter(counts))} " if len(counts) == 1 else ""
    lines = [
        f"[{finding['severity'].upper()}] {finding['title']} ({finding['scanner']})" for finding in snapshot["worst"]
    ]
    lines += [f"… and {number - len(lines)} more"] if number > len(lines) else []
    facts = [("Branch", snapshot["branch"]), ("Commit", (snapshot["commit"] or "")[:8])]
    return {
        "tag": "",
        "headline": f"{number} new {word}finding{'s' if number > 1 else ''} in {project.name}",
        "lines": tuple(lines),
        "facts": tuple((name, value) for name, value in facts if value),
    }


def _incident(_project: Project, event: NotificationEvent, _author: User | None) -> dict[str, Any]:
    words = "Incident closed" if event.kind == INCIDENT_CLOSED else "Incident opened"
    return {
        "tag": "",
        "headline": f"{words}: {event.snapshot['title']} (#{event.snapshot['iid']})",
        "facts": (("Severity", event.severity),),
    }


def line_of(event: NotificationEvent) -> Line:
    """Return the line of an event."""
    return Line(event.kind, event.severity, event.environment, event.snapshot["title"])


def _list(listed: Sequence[NotificationEvent], repeated: Counter[Line]) -> tuple[list[str], int]:
    """Return the first lines, with the number of events where there are several, and how many they stand for."""
    shown_lines = list(dict.fromkeys(map(line_of, listed)))
    shown_lines += [line for line, _ in repeated.most_common(MAX_LISTED) if line not in shown_lines]
    numbers = {line: repeated[line] for line in shown_lines[:MAX_LISTED]}
    lines = [_summary(line) + (f" ({TIMES}{number})" if number > 1 else "") for line, number in numbers.items()]
    return lines, sum(numbers.values())


def _by_severity(opened: Counter[str]) -> list[str]:
    order = ("critical", "high", "unknown", "medium", "low", "info")
    return [name for name in order if opened[name]]


def _noun(types: set[str]) -> str:
    nouns = {ALERT: "alerts", ERROR: "errors", FINDING: "findings", ISSUE: "incidents"}
    return nouns[next(iter(types))] if len(types) == 1 else "notifications"


def _address_of_list(project: Project, listed: Sequence[NotificationEvent]) -> str:
    pages = {ALERT: "alert_management", ERROR: "error_tracking", FINDING: "security/dashboard", ISSUE: "issues"}
    types = {event.subject_type for event in listed}
    page = pages[next(iter(types))] if len(types) == 1 else "alert_management"
    return urls.absolute(f"/{project.full_path}/-/{page}")


def moment_of(event: NotificationEvent) -> str:
    """Return when an event happened, as messages have it."""
    return clock.isoformat(event.created_at)
