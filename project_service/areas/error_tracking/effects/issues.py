"""Issues of errors: create one, link an existing one, remove the link (error collection reference, section 14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.areas.error_tracking.errors.views import ErrorView
from project_service.areas.error_tracking.events import event_views
from project_service.areas.error_tracking.settings.models import SentryIssueLink
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue, find_issue
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, unique
from project_service.kit.http.errors import Conflict, NotFound, RecordNotFound

MAX_STACK_LINES = 50
BACKTICKS = re.compile("`+")
WHITE_SPACE = re.compile(r"\s+")


def linked() -> Conflict:
    """Return the error of an error or an issue that has a link already."""
    return Conflict("409 Conflict - the error or the issue is linked already")


def find_linkable_issue(project: Project, iid: int) -> Issue:
    """An issue of a project that no error has; raises ``NotFound`` and ``Conflict``."""
    try:
        issue = find_issue(project, iid)
    except RecordNotFound as error:
        raise NotFound("Issue") from error
    errors = (
        select(TrackedError.id).where(TrackedError.issue_id == issue.id),
        select(SentryIssueLink.id).where(SentryIssueLink.issue_id == issue.id),
    )
    if any(db.session.scalar(statement) is not None for statement in errors):
        raise linked()
    return issue


def link_issue(error: TrackedError, issue: Issue) -> None:
    """Link an issue to an error that has none."""
    lock_row(error, "issue_id")
    if error.issue_id is not None:
        raise linked()
    with unique(linked()):
        error.issue_id = issue.id
    error.issue = issue


def unlink_issue(error: TrackedError) -> None:
    """Remove the link of an error to its issue; the issue stays."""
    lock_row(error, "issue_id")
    if error.issue_id is None:
        raise NotFound("Issue")
    error.issue_id = None
    error.issue = None
    db.session.flush()


def create_issue(author: User, error: ErrorView, exceptions: Sequence[dict[str, Any]]) -> Issue:
    """Create an issue about an error; ``exceptions`` are those of its newest event."""
    title = error.title[: issue_rules.LONGEST_TITLE]
    description = description_of(error, exceptions)
    return issue_rules.create_issue(author, error.project, title=title, description=description)


def description_of(error: ErrorView, exceptions: Sequence[dict[str, Any]]) -> str:
    """Return the description of an issue. Values of events are written as code, where Markdown has no effect."""
    times = [
        (name, clock.isoformat(moment))
        for name, moment in (("First seen", error.first_seen), ("Last seen", error.last_seen))
        if moment is not None
    ]
    facts = [
        ("Error", error.web_url),
        *times,
        ("Events", str(error.count)),
        ("Users", str(error.user_count)),
        ("Culprit", code(error.culprit)),
        ("Release", code(error.last_release)),
        ("Environments", ", ".join(filter(None, map(code, error.environments)))),
    ]
    lines = ["### Error Details", "", *(f"* {name}: {text}" for name, text in facts if text)]
    if stack := frame_lines(event_views.application_frames(list(exceptions))):
        delimiter = fence("\n".join(stack))
        lines += ["", "### Stack trace", "", delimiter, *stack[:MAX_STACK_LINES], delimiter]
    return "\n".join(lines)


def frame_lines(frames: Sequence[dict[str, Any]]) -> list[str]:
    """Return the innermost frames first, each with its failing line, without variables."""
    lines: list[str] = []
    for frame in frames:
        location = frame["filename"] or frame["abs_path"] or frame["module"] or "?"
        number = f":{frame['lineno']}" if frame["lineno"] is not None else ""
        lines.append(one_line(f"{location}{number} in {frame['function'] or frame.get('offset') or '?'}"))
        failing = next((text for at, text in frame["context"] if at == frame["lineno"]), "")
        if failing.strip():
            lines.append(f"    {one_line(failing)}")
    return lines


def one_line(text: str) -> str:
    """Return a text with every run of white space as one blank."""
    return WHITE_SPACE.sub(" ", text).strip()


def code(text: str | None) -> str:
    """Return a text as a code span; it is delimited by more backticks than it contains."""
    line = one_line(text or "")
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}" if line else ""


def fence(text: str) -> str:
    """Return the line of backticks that delimits a text as a code block."""
    return "`" * max(3, _longest_run(text) + 1)


def _longest_run(text: str) -> int:
    return max((len(run) for run in BACKTICKS.findall(text)), default=0)
