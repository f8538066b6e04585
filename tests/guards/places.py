"""An address for every route that is read, of things that are really there."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from flask import Flask
from sqlalchemy import func, select

from project_service.areas.alerts.models import AlertIntegration, AlertRequest
from project_service.areas.error_tracking.errors.models import TARGET as ERROR
from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.areas.error_tracking.releases.models import ErrorRelease, SourceMapBundle
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorIgnoreRule
from project_service.areas.members.models import Invitation
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.areas.variables.models import GroupVariable, InstanceVariable, Variable
from project_service.areas.vulnerabilities.models import Finding, Pipeline
from project_service.areas.webhooks.models import WebHook, WebHookLog
from project_service.domain.accounts.resource_bots import ResourceBot
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.domain.heartbeats.models import Heartbeat
from project_service.domain.memberships import Membership
from project_service.domain.notifications.models import NotificationRule
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag
from project_service.domain.silences.models import Silence
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db
from project_service.kit.security import signed_links
from tests.support.route_survey import addresses, api_rules
from tests.support.visitors import page_rules

# the addresses that answer 200 to nobody here, or not to every query, and why
ELSEWHERE = {
    "/projects/<project>/export/download": "no archive is made",
    "/<project_path:project>/download_export": "no archive is made",
    "/<path:project>/-/import/delete": "no import has failed",
    "/projects/<project>/vulnerabilities": "says that the list has another address",
    "/projects/<project>/repository/archive.<format>": "the format is a part of a segment",
    "/projects/<project>/repository/compare": "has required parameters",
    "/projects/<project>/repository/merge_base": "has required parameters",
    "/projects/<project>/repository/files/<file_path>": "has a required parameter",
    "/projects/<project>/repository/files/<file_path>/blame": "has a required parameter",
    "/projects/<project>/repository/tags/<name>/signature": "signatures are not verified",
    "/projects/<project>/repository/commits/<sha>/signature": "signatures are not verified",
    "/projects/<project>/access_tokens/self": "answers tokens of the project only",
    "/groups/<group>/access_tokens/self": "answers tokens of the group only",
    "/projects/<project>/variables/effective": "has a required parameter",
    "/<path:project>/-/settings/ci_cd/job_variables/download": "has a required parameter",
    "/projects/<project>/tracked_findings/export": "has a required parameter",
    "/-/profile/notifications/deliveries/<int:delivery_id>": "needs a message to a personal channel",
    "/-/notifications/a/<token>": "needs the token of a link",
    "/-/notifications/confirm/<channel_token>": "needs a signed token",
    "/-/notifications/stop/<stop_token>": "needs a signed token",
    "/-/notifications/unsubscribe/<unsubscribe_token>": "needs a signed token",
    "/users/sign_in": "who is signed in is sent home",
    "/users/sign_in/two_factor": "without a password there is no code to ask for",
    "/groups/<path:group>": "sends on to the page itself",
}
UNFIT = re.compile(
    r"extern_uid=|entity_id=|provider=|pagination=keyset|filter%5Benvironment_scope%5D"
)  # not by themselves


def places_of(app: Flask, client: Any, project: Project, group: Any) -> dict[str, str]:
    """Path and address of everything of the API that is read, as far as this client sees it."""
    known: dict[str, Any] = {}

    def read(address: str) -> Any:
        if address not in known:
            response = client.get(address)
            known[address] = response.json if response.status_code == 200 and response.is_json else None
        return known[address]

    found = {}
    for _method, path, _rule in api_rules(app, "GET"):
        here = path.replace("<project>", str(project.id)).replace("<group>", str(group.id))
        found[path] = next(iter(addresses(here, read)))
    return found


def _of_notifications(first: Any, project: Project, user_id: int, *, in_group: bool, personal: bool) -> dict[str, Any]:
    """The channel, rule, silence and message of a project, its group or a user."""
    channel, rule, log = NotificationChannel, NotificationRule, NotificationDelivery
    owner = (channel.group_id == project.namespace_id) if in_group else (channel.project_id == project.id)
    of_rule = (rule.group_id == project.namespace_id) if in_group else (rule.project_id == project.id)
    of_silence = (Silence.group_id == project.namespace_id) if in_group else (Silence.project_id == project.id)
    return {
        "channel_id": first(channel.id, channel.user_id == user_id if personal else owner),
        "notification_rule_id": first(rule.id, of_rule),
        "silence_id": first(Silence.id, of_silence),
        "delivery_id": first(log.id, log.user_id == user_id if personal else log.project_id == project.id),
    }


def page_addresses(app: Flask, project: Project, people: dict[str, User]) -> dict[str, str]:
    """Rule and address of every page, of the project, its group, and what was there first in them."""

    def first(column: Any, *conditions: Any) -> int:
        return int(db.session.scalars(select(column).where(*conditions).order_by(column)).first() or 0)

    places = {
        "tag_id": ProtectedTag,
        "protected_branch_id": ProtectedBranch,
        "integration_id": AlertIntegration,
        "environment_id": Environment,
        "error_id": TrackedError,
        "key_id": ClientKey,
        "rule_id": ErrorIgnoreRule,
        "bundle_id": SourceMapBundle,
        "finding_id": Finding,
        "heartbeat_id": Heartbeat,
    }
    values: dict[str, Any] = {name: first(kind.id, kind.project_id == project.id) for name, kind in places.items()}
    values |= {
        "request_id": first(AlertRequest.id, AlertRequest.integration_id == values["integration_id"]),
        "project": project.full_path,
        "project_id": project.id,
        "group_id": project.namespace_id,
        "secret": "f" * 32,
        "filename": "till.txt",
        "full_path": project.full_path,
        "group": "acme",
        "iid": 1,
        "part": "metrics",
        "event_id": "latest",
        "place": "main/README.md",
        "folder": "main",
        "sha": "main",
        "archive": "main/shop-main.zip",
        "channel_token": "none",
        "stop_token": "none",
        "unsubscribe_token": "none",
        "tag": "v1.0",
        "branch": "main",
        "range": "v1.0...main",
        "token": "x",
    }
    tokens: dict[str, int] = defaultdict(int)
    tokens["/-/profile/personal_access_tokens/"] = first(
        PersonalAccessToken.id, PersonalAccessToken.user_id == people["ada"].id
    )
    for start, condition in (
        ("/", ResourceBot.project_id == project.id),
        ("/groups/", ResourceBot.namespace_id == project.namespace_id),
    ):
        of_bot = PersonalAccessToken.user_id == select(ResourceBot.user_id).where(condition).limit(1).scalar_subquery()
        tokens[start] = first(PersonalAccessToken.id, of_bot)
    newest = select(func.max(Pipeline.id)).where(Pipeline.project_id == project.id)  # what was said of it is of others
    values["pipeline_id"] = db.session.scalar(newest)
    values["note"] = values["note_id"] = first(Note.id, Note.project_id == project.id, Note.noteable_type == "Issue")
    values["version"] = db.session.scalar(select(ErrorRelease.version).where(ErrorRelease.project_id == project.id))
    values["comment_id"] = first(Note.id, Note.project_id == project.id, Note.noteable_type == ERROR)
    variables: dict[str, int] = defaultdict(int)  # by how a rule begins, as tokens
    variables["/"] = first(Variable.id, Variable.project_id == project.id)
    variables["/groups/"] = first(GroupVariable.id, GroupVariable.namespace_id == project.namespace_id)
    variables["/admin/ci_cd/variables/"] = first(InstanceVariable.id)
    hooks: dict[str, int] = defaultdict(int)
    hooks["/"] = first(WebHook.id, WebHook.project_id == project.id)
    hooks["/groups/"] = first(WebHook.id, WebHook.group_id == project.namespace_id)
    hooks["/admin/hooks/"] = first(WebHook.id, WebHook.project_id.is_(None), WebHook.group_id.is_(None))
    found = {}
    with app.test_request_context():
        for rule in page_rules(app, "GET"):
            place = Membership.namespace_id if "<path:group>" in rule.rule else Membership.project_id
            here = project.namespace_id if "<path:group>" in rule.rule else project.id
            values["user_id"] = first(Membership.user_id, place == here)
            in_group, personal = "<path:group>" in rule.rule, rule.rule.startswith("/-/profile")
            values |= _of_notifications(first, project, people["ada"].id, in_group=in_group, personal=personal)
            owner = Label.group_id == here if in_group else Label.project_id == here
            values["label_id"] = first(Label.id, owner)
            values["variable_id"] = variables[rule.rule.partition("<")[0]]
            values["hook_id"] = hooks[rule.rule.partition("<")[0]]
            values["log_id"] = first(WebHookLog.id, WebHookLog.hook_id == values["hook_id"])
            here_invited = Invitation.namespace_id if "<path:group>" in rule.rule else Invitation.project_id
            values["invitation_id"] = first(Invitation.id, here_invited == here)
            values["invitation_token"] = signed_links.sign("invitation", values["invitation_id"])
            values["token_id"] = tokens[rule.rule.partition("<")[0]]
            for page in (
                ("general", "repository", "ci_cd", "access_tokens", "operations") if "<page>" in rule.rule else ("",)
            ):
                built: Any = rule.build({name: (values | {"page": page})[name] for name in rule.arguments})
                found[rule.rule.replace("<page>", page)] = built[1].replace("%2F", "/")
    return found


def refused(response: Any, rule: str, query: str) -> list[tuple[str, str, int]]:
    """What was not answered, and should have been."""
    fit = response.status_code == 200 or rule in ELSEWHERE or UNFIT.search(query)
    return [] if fit else [(rule, query, response.status_code)]
