"""Fixtures of tests of pages: users with a browser without scripts, and the rows that pages show."""

from __future__ import annotations

import contextvars
import html
import re
from collections.abc import Callable, Container
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from project_service.access.identity import SESSION_KEY
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts.models import Alert, AlertIntegration, AlertRequest
from project_service.areas.error_tracking.errors.models import TARGET as ERROR
from project_service.areas.error_tracking.releases.models import ErrorRelease
from project_service.areas.error_tracking.settings.models import ErrorIgnoreRule
from project_service.areas.members.models import Invitation
from project_service.areas.notifications.actions import links
from project_service.areas.notifications.actions.links import Link
from project_service.areas.notifications.channels import confirming
from project_service.areas.notifications.models import NotificationChannel
from project_service.areas.variables.models import GroupVariable, InstanceVariable, Variable
from project_service.areas.vulnerabilities.models import Finding
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import SESSION_LENGTH, BrowserSession, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Group
from project_service.domain.notifications.models import NotificationRule
from project_service.domain.projects import Project
from project_service.domain.repositories.models import Repository
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issue_links import IssueLink
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.security import passwords, signed_links, tokens
from project_service.kit.storage import storage
from project_service.transfers.models import FINISHED, ProjectExport
from tests.support import sample_data
from tests.support.sample_data import MAX, OLIVE, PASSWORD
from tests.support.security_reports import ingest_report, report, vulnerability
from tests.support.sentry_requests import track_errors

CSRF = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"')


class Visitor:
    """A browser session of a user."""

    def __init__(self, app: Flask) -> None:
        self.cookies: FlaskClient = app.test_client()

    def open(self, method: str, address: str, **options: Any) -> TestResponse:
        """Send one request, in a context of its own as the server would."""
        db.session.remove()
        try:
            return contextvars.Context().run(self.cookies.open, address, method=method, buffered=True, **options)
        finally:
            db.session.remove()

    def get(self, address: str, **options: Any) -> TestResponse:
        return self.open("GET", address, **options)

    def send(self, address: str, **fields: Any) -> TestResponse:
        """Send a form with its token."""
        return self.open("POST", address, data={"csrf_token": self.csrf_token(), **fields})

    def csrf_token(self) -> str:
        """Return the CSRF token of this session, from a page that every user may open."""
        text = self.get("/users/sign_in", follow_redirects=True).text
        return html.unescape(CSRF.search(text).group(1))  # type: ignore[union-attr]  # every page has a form


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    """An anonymous visitor."""
    return Visitor(app)


@pytest.fixture
def visit(app: Flask, people: dict[str, User]) -> Callable[[str | None], Visitor]:
    """Returns a browser session of a signed-in user: ``visit(MAX)``."""

    def begin(name: str | None) -> Visitor:
        made = Visitor(app)
        if name is not None:
            secret = tokens.new_token()
            expires_at = clock.now() + SESSION_LENGTH
            db.session.add(BrowserSession(user_id=people[name].id, digest=digest_of(secret), expires_at=expires_at))
            db.session.commit()
            with made.cookies.session_transaction() as session:
                session[SESSION_KEY] = secret
        return made

    return begin


@pytest.fixture
def maintainer(visit: Callable[[str | None], Visitor]) -> Visitor:
    return visit(MAX)


@pytest.fixture
def paula(app: Flask) -> User:
    """A user with a password."""
    return sample_data.make_user("paula", password_hash=passwords.hash_password(PASSWORD))


@pytest.fixture
def variable(project: Project) -> Variable:
    """A variable of the shop."""
    return store(Variable(project_id=project.id, key="REGION", value="eu-central-1"))


@pytest.fixture
def hidden_variable(project: Project) -> Variable:
    """A hidden variable."""
    return store(Variable(project_id=project.id, key="SIGNING", value="never-to-be-seen", masked=True, hidden=True))


@pytest.fixture
def protected_tag(project: Project) -> ProtectedTag:
    """The wildcard ``v*`` for maintainers."""
    return store(ProtectedTag(project_id=project.id, name="v*", create_access_levels=[40]))


@pytest.fixture
def protected_branch(project: Project) -> ProtectedBranch:
    """The wildcard ``release/*`` for maintainers."""
    return store(ProtectedBranch(project_id=project.id, name="release/*"))


@pytest.fixture
def issue(project: Project, people: dict[str, User]) -> Issue:
    """The first issue of the shop."""
    made = issue_rules.create_issue(people[OLIVE], project, title="The till is open")
    db.session.commit()
    return made


@pytest.fixture
def values(
    project: Project,
    group: Group,
    variable: Variable,
    protected_tag: ProtectedTag,
    protected_branch: ProtectedBranch,
    issue: Issue,
    people: dict[str, User],
    repository: Repository,
) -> dict[str, Any]:
    """Values for the placeholders of page rules; tokens belong to each user."""
    store(Milestone(project_id=project.id, iid=1, title="Opening day"))
    store(Milestone(group_id=group.id, iid=1, title="Season"))
    related = store(Issue(project_id=project.id, iid=99, title="Oil the till"))
    store(Alert(project_id=project.id, iid=1, title="The till is stuck", started_at=clock.now()))
    store_export(project)
    integration = store(AlertIntegration(project_id=project.id, name="Prom", endpoint_identifier="1f", token="t"))
    request = store(AlertRequest(integration_id=integration.id, **sample_data.ALERT_REQUEST))
    environment = store(Environment(project_id=project.id, name="production", slug="production"))
    ingest_report(project, report(vulnerability()))
    finding = db.session.query(Finding).one()
    sample_data.make_merge_request(project)
    sample_data.make_release(project)
    key = track_errors(project)
    error = sample_data.make_error(project)
    sample_data.make_merge(error, sample_data.make_error(project, "The till is jammed"), people[OLIVE])
    comment = db.session.scalars(select(Note).where(Note.noteable_type == ERROR)).one()
    project.import_status = "failed"  # otherwise there is nothing to confirm
    note = issue_rules.create_note(people[OLIVE], issue, body="Indeed.")
    db.session.commit()
    kay = sample_data.make_user("kay")
    sample_data.add_member(project, kay, Role.GUEST)
    sample_data.add_member(group, kay, Role.GUEST)
    hooks = {
        kind: sample_data.make_hook(owner) for kind, owner in (("project", project), ("group", group), ("admin", None))
    }
    invited = {"access_level": Role.GUEST, "created_by_id": people[OLIVE].id}
    invitation = store(Invitation(email="ivy@example.org", project_id=project.id, **invited))
    sample_data.make_upload(project)
    channel = store(NotificationChannel(project_id=project.id, name="pager", type="telegram", target="-1"))
    rule = store(NotificationRule(project_id=project.id, name="All", events=["alert_triggered"], targets=[]))
    group_channel = store(NotificationChannel(group_id=group.id, name="pager", type="telegram", target="-1"))
    group_rule = store(NotificationRule(group_id=group.id, name="All", events=["alert_triggered"], targets=[]))
    sample_data.make_avatars(project, group, kay)
    return {
        "project invitation_id": invitation.id,
        "group invitation_id": store(Invitation(email="ivy@example.org", namespace_id=group.id, **invited)).id,
        "email": "ivy@example.org",
        "invitation_token": signed_links.sign("invitation", invitation.id),
        "project": "acme/shop",
        "full_path": "acme/shop",
        "group": "acme",
        "page": "ci_cd",
        "place": "main/README.md",
        "folder": "main",
        "sha": "main",
        "archive": "main/shop-main.zip",
        "tag": "v1.0",
        "branch": "main",
        "range": "v1.0...main",
        "user_id": kay.id,
        "variable_id": variable.id,
        "project token_id": sample_data.make_bot_token(project).id,
        "group token_id": sample_data.make_bot_token(group).id,
        "group variable_id": store(GroupVariable(namespace_id=group.id, key="REGION", value="eu")).id,
        "admin variable_id": store(InstanceVariable(key="REGION", value="eu")).id,
        "project label_id": sample_data.make_label(project, "tills").id,
        "group label_id": sample_data.make_label(group, "season").id,
        "issue_label_event_id": store(LabelEvent(issue_id=issue.id, title="tills", action="add")).id,
        "issue_link_id": store(IssueLink(source_id=issue.id, target_id=related.id)).id,
        "tag_id": protected_tag.id,
        "protected_branch_id": protected_branch.id,
        "iid": 1,
        "integration_id": integration.id,
        "request_id": request.id,
        **{f"{kind} hook_id": hook.id for kind, (hook, _) in hooks.items()},
        "token": links.token_of(Link(sample_data.make_message(project).id, user_id=people[OLIVE].id)),
        "silence_id": sample_data.make_silence(project).id,
        "group silence_id": sample_data.make_silence(group).id,
        "heartbeat_id": sample_data.make_heartbeat(project).id,
        **{f"{kind} log_id": attempt.id for kind, (_, attempt) in hooks.items()},
        "environment_id": environment.id,
        "error_id": error.id,
        "key_id": key.id,
        "note": note.id,
        "note_id": note.id,
        "comment_id": comment.id,
        "event_id": "latest",
        "project_id": project.id,
        "group_id": group.id,
        "secret": "f" * 32,
        "filename": "till.txt",
        "finding_id": finding.id,
        "pipeline_id": finding.pipeline_id,
        "part": "activity",
        "channel_id": channel.id,
        "notification_rule_id": rule.id,
        "group channel_id": group_channel.id,
        "group notification_rule_id": group_rule.id,
        "channel_token": signed_links.sign_values(confirming.CONFIRM, [channel.id, None]),
        "unsubscribe_token": signed_links.sign_values(confirming.STOP, [channel.id, None]),
        "stop_token": signed_links.sign_values(confirming.STOP, [channel.id, None]),
        "delivery_id": sample_data.make_notification(project, people[MAX]).id,
        "change": "done",
        "merged_id": 0,
        "version": store(ErrorRelease(project_id=project.id, version="shop@1.0")).version,
        "bundle_id": sample_data.make_source_map_bundle(project, "shop@1.1", people[OLIVE]).id,
        "rule_id": store(ErrorIgnoreRule(project_id=project.id, title="Script error*")).id,
    }


def store_export(project: Project, content: bytes = b"\x1f\x8b an archive", **fields: Any) -> ProjectExport:
    """An export that is ready to be downloaded."""
    name = f"projects/{project.id}/exports/1.tar.gz"
    with storage().write(name) as file:
        file.write(content)
    own = {"state": FINISHED, "storage_name": name, "file_name": "shop_export.tar.gz", "size": len(content)}
    return store(ProjectExport(project_id=project.id, **own | fields))


def page_rules(app: Flask, method: str) -> list[Rule]:
    """The rules of all pages."""
    names = {name for name, blueprint in app.blueprints.items() if isinstance(blueprint, PageBlueprint)}
    rules = app.url_map.iter_rules()
    return [rule for rule in rules if rule.endpoint.split(".")[0] in names and method in (rule.methods or ())]


def addresses(app: Flask, method: str, values: dict[str, Any], known: Container[str] | None = None) -> dict[str, str]:
    """Rule → address of the pages, of all or of those that are known."""
    found = {}
    with app.test_request_context():
        for rule in page_rules(app, method):
            if known is None or rule.rule in known:
                built: Any = rule.build({name: _value(rule.rule, name, values) for name in rule.arguments})
                found[rule.rule] = built[1].replace("%2F", "/")
    return found


def _value(rule: str, name: str, values: dict[str, Any]) -> Any:
    """The value of a placeholder; projects, groups and the instance can have their own: ``group variable_id``."""
    owners = {"project": "<path:project>", "group": "<path:group>", "admin": "/admin", "profile": "/-/profile/"}
    owner = next((owner for owner, text in owners.items() if text in rule), "")
    return values.get(f"{owner} {name}", values.get(name, 1))


def store(row: Any) -> Any:
    db.session.add(row)
    db.session.commit()
    return row
