"""What texts of a page refer to: issues, users, labels and commits, loaded for all texts of the page at once.

A view calls ``prepare`` with the texts that it shows; the template filters ``markdown`` and ``markdown_line`` then link
what was found. Texts of pages that do not call it have no such links (text references reference, section 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from flask import g
from markupsafe import Markup
from sqlalchemy import func, select

from project_service.access.abilities import Ability, allowed
from project_service.access.across_projects import issues_of_projects
from project_service.access.identity import Caller
from project_service.access.rules import visible_issues
from project_service.domain import page_paths
from project_service.domain.accounts.users import User, users
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import CLOSED, Issue
from project_service.domain.tracker.labels import colors_of
from project_service.kit.db.session import db
from project_service.kit.texts.markdown import MAX_PAGE_CHARACTERS

MAX_REFERENCES = 300  # of each kind on a page
REFERENCE = re.compile(
    r"""(?:(?<![\w/.&#@~-])(?P<path>[A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)+)|(?<![\w/&#]))
        \#(?P<iid>[1-9][0-9]{0,8})(?![\w-])
      |(?<![\w@/.])@(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)
      |(?<![\w~/])~(?:"(?P<quoted>[^"<>\n]{1,255})"|(?P<label>[\w?&:.-]{1,255}))
      |(?<![\w/.&\#@~-])(?P<sha>(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,40})(?![\w-])""",
    re.VERBOSE | re.ASCII,
)
CHIP = Markup(
    '<a class="label" href="{}">'
    '<svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" fill="{}"/></svg>{}</a>'
)
IssueKey = tuple[str, int]  # the full path of a project in lower case, the number


@dataclass(slots=True)
class TextReferences:
    """What was found of that which the texts of a page refer to; ``project`` is where ``#3`` is."""

    project: Project
    issues: dict[IssueKey, tuple[str, str, str]] = field(default_factory=dict)  # path, title, state
    users: dict[str, tuple[str, str]] = field(default_factory=dict)  # username, name
    labels: dict[str, str] = field(default_factory=dict)  # colour by title
    has_code: bool = False

    def link(self, text: str) -> str:
        """Return a text of sanitized HTML with what it refers to as links."""
        return REFERENCE.sub(self._linked, text)

    def _linked(self, match: re.Match[str]) -> str:
        if match["iid"]:
            return self._issue(match)
        if match["user"]:
            name = match["user"].rstrip(".-")
            user = self.users.get(name.lower())
            if user is None:
                return match[0]
            return _anchor(f"/{user[0]}", f"@{name}", user[1]) + match["user"][len(name) :]
        if match["sha"]:
            return self._commit(match["sha"])
        return self._label(match)

    def _commit(self, commit_id: str) -> str:
        if not self.has_code:
            return commit_id
        address = f"/{self.project.full_path}{page_paths.commit(commit_id)}"
        return str(Markup('<a href="{}"><code>{}</code></a>').format(address, commit_id[:8]))

    def _issue(self, match: re.Match[str]) -> str:
        path = match["path"] or self.project.full_path
        issue = self.issues.get((path.lower(), int(match["iid"])))
        if issue is None:
            return match[0]
        full_path, title, state = issue
        label = match[0] + (" (closed)" if state == CLOSED else "")
        return _anchor(f"/{full_path}{page_paths.issue(match['iid'])}", label, title)

    def _label(self, match: re.Match[str]) -> str:
        title = match["quoted"] or match["label"]
        cut = title if title in self.labels else title.rstrip(".:?")
        color = self.labels.get(cut)
        if color is None:
            return match[0]
        address = f"/{self.project.full_path}/-/issues?{urlencode({'label': cut})}"
        rest = "" if match["quoted"] else title[len(cut) :]
        return str(CHIP.format(address, color, cut)) + rest


def prepare(caller: Caller, project: Project, texts: Iterable[str | None]) -> None:
    """Load what texts refer to, as far as the caller may see it, with one statement for each kind that occurs."""
    references = TextReferences(project, has_code=_has_code(caller, project))
    own, others, names, titles = set(), set(), set(), set()
    left = MAX_PAGE_CHARACTERS
    for text in texts:
        for match in REFERENCE.finditer((text or "")[:left]):
            if match["iid"] and match["path"]:
                others.add((match["path"].lower(), int(match["iid"])))
            elif match["iid"]:
                own.add(int(match["iid"]))
            elif match["user"]:
                names.add(match["user"].rstrip(".-").lower())
            elif match["quoted"] or match["label"]:
                title = match["quoted"] or match["label"]
                titles |= {title, title.rstrip(".:?")}
        left -= min(left, len(text or ""))
    references.issues = _issues(caller, project, own) | _issues_of_others(caller, others)
    references.users = _users(names)
    references.labels = _labels(caller, project, titles)
    g.text_linker = references.link
    g.uploads_base = f"/-/project/{project.id}"  # where ``/uploads/…`` of a text is


def _has_code(caller: Caller, project: Project) -> bool:
    return project.default_branch is not None and allowed(caller, Ability.READ_CODE, project)


def _issues(caller: Caller, project: Project, iids: set[int]) -> dict[IssueKey, tuple[str, str, str]]:
    if not iids or not allowed(caller, Ability.READ_ISSUES, project):
        return {}
    columns = select(Issue.iid, Issue.title, Issue.state).where(
        Issue.project_id == project.content_id,
        Issue.iid.in_(sorted(iids)[:MAX_REFERENCES]),
        visible_issues(caller, project),
    )
    path = project.full_path
    return {(path.lower(), iid): (path, title, state) for iid, title, state in db.session.execute(columns)}


def _issues_of_others(caller: Caller, keys: set[IssueKey]) -> dict[IssueKey, tuple[str, str, str]]:
    if not keys:
        return {}
    some = sorted(keys)[:MAX_REFERENCES]
    here = select(Project.id).where(
        func.lower(Project.full_path).in_({path for path, _ in some}), Project.deleting_since.is_(None)
    )
    columns = (
        select(Project.full_path, Issue.iid, Issue.title, Issue.state)
        .join(Project, Project.id == Issue.project_id)
        .where(Issue.project_id.in_(here), Issue.iid.in_({iid for _, iid in some}), Project.loading.is_(False))
        .where(issues_of_projects(caller))
    )
    rows: Any = db.session.execute(columns)
    issues = {(path.lower(), iid): (path, title, state) for path, iid, title, state in rows}
    return {key: issue for key, issue in issues.items() if key in keys}


def _users(names: set[str]) -> dict[str, tuple[str, str]]:
    if not names:
        return {}
    named = users().where(func.lower(User.username).in_(sorted(names)[:MAX_REFERENCES]))
    rows = db.session.execute(named.with_only_columns(User.username, User.name))
    return {username.lower(): (username, name) for username, name in rows}


def _labels(caller: Caller, project: Project, titles: set[str]) -> dict[str, str]:
    if not titles or not allowed(caller, Ability.READ_LABELS, project):
        return {}
    return colors_of(project, sorted(titles)[:MAX_REFERENCES])


def _anchor(address: str, text: str, title: str) -> str:

    return str(Markup('<a href="{}" title="{}">{}</a>').format(address, title, text))
