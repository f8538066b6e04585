"""Users, projects and rows that tests start with.

The users are always the same: ada is an administrator, olive owner, max maintainer, dev developer, rita reporter, gus
guest, and sam has no role. ``NOBODY`` is an anonymous caller.
"""

from __future__ import annotations

import datetime as dt
import io
import itertools
import secrets
from typing import Any

from sqlalchemy import insert, select
from werkzeug.datastructures import FileStorage

from project_service.areas.alerts.models import TARGET as ALERT
from project_service.areas.alerts.models import Alert, AlertIntegration, AlertRequest
from project_service.areas.error_tracking.errors import comments, merging
from project_service.areas.error_tracking.errors.models import (
    HOUR_SECONDS,
    MergedError,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorEvent,
    TrackedErrorFacet,
)
from project_service.areas.error_tracking.releases.models import OK, ErrorRelease, SourceMapBundle
from project_service.areas.members.models import Invitation
from project_service.areas.notifications.messages import ChannelMessage
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.areas.webhooks.models import WebHook, WebHookLog
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts import avatars
from project_service.domain.accounts.resource_bots import create_bot
from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.audit import recording
from project_service.domain.heartbeats.models import Heartbeat, HeartbeatPing
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor, UserNamespace, namespace_of
from project_service.domain.paths import path_registry
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project, Route
from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.domain.silences.models import Silence
from project_service.domain.todos import Todo
from project_service.domain.tracker.counters import next_iid
from project_service.domain.tracker.labels import Label, LabelPriority
from project_service.domain.tracker.merge_requests import TARGET as MERGE_REQUEST
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import DeliveryPayload
from project_service.kit.storage import storage
from tests.support import security_reports

ADA, OLIVE, MAX, DEV, RITA, GUS, SAM = "ada", "olive", "max", "dev", "rita", "gus", "sam"
NOBODY = None
PEOPLE = (ADA, OLIVE, MAX, DEV, RITA, GUS, SAM)
ROLES = {OLIVE: Role.OWNER, MAX: Role.MAINTAINER, DEV: Role.DEVELOPER, RITA: Role.REPORTER, GUS: Role.GUEST}
PASSWORD = "correct horse battery"

_numbers = itertools.count(1)
PAGER = {"type": "pagerduty", "routing_key": "0123456789abcdef0123456789abcdef"}
PHONE = {"type": "telegram", "token": f"1:{'a' * 35}", "chat_id": "-1"}
RULE = {"events": ["alert_triggered"], "targets": [{"type": "members", "access_level": 40}], "enabled": False}
ALERT_REQUEST = {
    "received_at": clock.now(),
    "outcome": "refused",
    "status": 401,
    "reason": "the key is wrong",
    "address": "192.0.2.7",
    "size": 2,
    "body": "{}",
}


def make_user(username: str | None = None, **fields: Any) -> User:
    """Store a user with a personal namespace; without a password, which would take time to hash."""
    username = username or f"user{next(_numbers)}"
    fields = {"name": username.title(), "email": f"{username}@example.org", "confirmed_at": clock.now()} | fields
    user = User(username=username, last_activity_on=clock.today(), **fields)
    db.session.add(user)
    db.session.flush()
    namespace = UserNamespace(name=user.name, path=username, owner=user)
    path_registry.store_namespace(namespace, None, AssertionError(f"{username} is taken"))
    user.namespace_id = namespace.id
    db.session.commit()
    return user


def make_people() -> dict[str, User]:
    """Store all users at once: most tests need them."""
    people = [
        User(
            username=name,
            name=name.title(),
            email=f"{name}@example.org",
            admin=name == ADA,
            confirmed_at=clock.now(),
            last_activity_on=clock.today(),
        )
        for name in PEOPLE
    ]
    db.session.add_all(people)
    db.session.flush()
    namespaces = [
        UserNamespace(name=user.name, path=user.username, full_path=user.username, full_name=user.name, owner=user)
        for user in people
    ]
    db.session.add_all(namespaces)
    db.session.flush()
    for user, namespace in zip(people, namespaces, strict=True):
        user.namespace_id = namespace.id
    ids = [namespace.id for namespace in namespaces]
    routes = [{"path": place.path, "namespace_id": place.id} for place in namespaces]
    db.session.execute(insert(Route), routes)
    db.session.execute(insert(NamespaceAncestor), [{"namespace_id": one, "ancestor_id": one} for one in ids])
    db.session.commit()
    return {user.username: user for user in people}


def make_token(user: User, *scopes: str, **fields: Any) -> str:
    """Store a token; return its text."""
    text = f"token-{user.username}-{next(_numbers)}"
    fields = {"name": "test", "last_used_at": clock.now()} | fields
    token = PersonalAccessToken(user_id=user.id, digest=digest_of(text), scopes=list(scopes or ("api",)), **fields)
    db.session.add(token)
    db.session.commit()
    return text


def make_bot_token(place: Project | Group, role: Role = Role.DEVELOPER, **fields: Any) -> PersonalAccessToken:
    """Store an access token of a project or group, with its bot."""
    with unit_of_work():
        bot = create_bot(place, "test", role, None)
    make_token(bot, **fields)
    return db.session.scalars(select(PersonalAccessToken).where(PersonalAccessToken.user_id == bot.id)).one()


def make_group(path: str | None = None, parent: Namespace | None = None, **fields: Any) -> Group:
    """Store a group without members; private by default."""
    path = path or f"group{next(_numbers)}"
    visibility = Visibility.of(fields.pop("visibility", "private"))
    parent = None if parent is None else db.session.get_one(Namespace, parent.id)
    group = Group(path=path, name=fields.pop("name", path.title()), visibility=visibility, **fields)
    path_registry.store_namespace(group, parent, AssertionError(f"{path} is taken"))
    db.session.commit()
    return group


def make_project(path: str | None = None, namespace: Namespace | User | None = None, **fields: Any) -> Project:
    """Store a project without members, by default private and in a new group."""
    path = path or f"project{next(_numbers)}"
    place = namespace_of(namespace) if isinstance(namespace, User) else namespace or make_group()
    place = db.session.get_one(Namespace, place.id)
    visibility = Visibility.of(fields.pop("visibility", "private"))
    fields = {"name": path, "attributes": {}} | fields
    project = Project(path=path, namespace=place, namespace_id=place.id, visibility=visibility, **fields)
    path_registry.store_project(project, AssertionError(f"{path} is taken"))
    db.session.commit()
    return project


def add_member(
    place: Project | Namespace, user: User, role: Role | int, expires_at: dt.date | None = None
) -> Membership:
    """Make a user a member."""
    membership = Membership(user_id=user.id, user=user, access_level=role, expires_at=expires_at)
    if isinstance(place, Project):
        membership.project_id = place.id
    else:
        membership.namespace_id = place.id
    db.session.add(membership)
    db.session.commit()
    return membership


def share(place: Project | Namespace, group: Group, role: Role) -> Share:
    """Share a project or group with a group."""
    made = Share(group_id=group.id, access_level=role)
    if isinstance(place, Project):
        made.project_id = place.id
    else:
        made.namespace_id = place.id
    db.session.add(made)
    db.session.commit()
    return made


def reload(row: Any) -> Any:
    """Return the current row of the database, or ``None``."""
    identity = row.id
    db.session.expire_all()
    return db.session.get(type(row), identity)


def make_label(owner: Project | Group, title: str, *, priority: int | None = None, **fields: Any) -> Label:
    """Make a label of a project or group; ``priority`` is that in its project."""
    of = {"project_id": owner.id} if isinstance(owner, Project) else {"group_id": owner.id}
    label: Label = _stored(Label(title=title, **of, **fields))
    if priority is not None:
        _stored(LabelPriority(project_id=owner.id, label_id=label.id, priority=priority))
    return label


def make_merge_request(project: Project, title: str = "Better totals", **fields: Any) -> MergeRequest:
    """Make a merge request, as an import does."""
    branches = {"source_branch": "totals", "target_branch": "main"}
    number = next_iid(project.id, "merge_requests")
    return _stored(MergeRequest(project_id=project.id, iid=number, title=title, **branches | fields))


def make_note(merge_request: MergeRequest, body: str = "a word", **fields: Any) -> Note:
    """Make a note under a merge request, as an import does."""
    about = {"noteable_type": MERGE_REQUEST, "noteable_id": merge_request.id}
    return _stored(Note(project_id=merge_request.project_id, body=body, **about | fields))


def make_error(project: Project, title: str = "The till is stuck", **fields: Any) -> TrackedError:
    """Make an error with one event in two environments, as the collector does."""
    now = clock.now()
    seen = {"first_seen": now, "last_seen": now, "count": 1, "stored_events": 1, "level": "error", "culprit": "till"}
    error: TrackedError = _stored(TrackedError(project_id=project.id, title=title, **seen | fields))
    about = {"error_id": error.id, "project_id": project.id}
    start = int(now.timestamp()) // HOUR_SECONDS * HOUR_SECONDS
    with unit_of_work():
        times = {"occurred_at": now, "received_at": now}
        db.session.add_all(
            [
                TrackedErrorEvent(
                    **about, **times, event_id=secrets.token_hex(16), summary={"title": title}, details={}
                ),
                TrackedErrorCount(error_id=error.id, seconds=HOUR_SECONDS, start=start, count=1),
                *(TrackedErrorFacet(**about, kind=0, value=name) for name in ("production", "staging")),
            ]
        )
    return error


def make_merge(error: TrackedError, other: TrackedError, user: User) -> MergedError:
    """Merge an error into another one, which has a comment."""
    with unit_of_work():
        comments.comment(user, error, "It squeaks")
        merging.merge_chosen(user, error, [other])
    return db.session.scalars(select(MergedError).where(MergedError.error_id == error.id)).one()


def make_upload(project: Project, mark: str = "") -> ProjectFile:
    """Store an upload with its object; the secret begins with ``f``."""
    secret = f"{'f' * 32}{mark.encode().hex()}"[-32:]
    name = f"projects/{project.id}/uploads/{secret}"
    with storage().write(name) as file:
        file.write(b"x")
    fields = {"path": f"uploads/{secret}/till.txt", "storage_name": name, "size": 1, "created_at": clock.now()}
    return _stored(ProjectFile(project_id=project.id, uploaded_by_id=project.creator_id, **fields))


def make_avatars(*owners: User | Group | Project) -> None:
    """Store a picture of each of some users, groups and projects."""
    with unit_of_work():
        for owner in owners:
            file = FileStorage(io.BytesIO(b"\x89PNG\r\n\x1a\n"), "till.png")
            avatars.set_avatar(db.session.merge(owner), file)


def make_todo(alert: Alert, user: User, **fields: Any) -> Todo:
    """Store a to-do item of a user about an alert."""
    about = {"project_id": alert.project_id, "target_type": ALERT, "target_id": alert.id}
    return _stored(Todo(user_id=user.id, action="marked", **about, **fields))


def make_release(project: Project, tag: str = "v1.0") -> Release:
    """A release with a link."""
    link = ReleaseLink(name="Manual", url="https://docs.example.org/")
    return _stored(Release(project_id=project.id, tag=tag, name=tag, released_at=clock.now(), links=[link]))


def make_hook(owner: Project | Group | None) -> tuple[WebHook, WebHookLog]:
    """A web hook of a project, a group or the instance, with one attempt in its log; pushes are not sent to it."""
    project_id = owner.id if isinstance(owner, Project) else None
    group_id = owner.id if isinstance(owner, Group) else None
    quiet = {"push_events": False, "repository_update_events": False}
    hook = _stored(WebHook(project_id=project_id, group_id=group_id, url="https://hooks.example.org/a", events=quiet))
    return hook, make_attempt(hook)


def make_attempt(hook: WebHook) -> WebHookLog:
    """An entry of the log of a web hook, as a delivery writes it."""
    sent = {"trigger": "push_hooks", "url": hook.url, "url_digest": "", "request_headers": {}, "attempt": 1}
    keys = {"idempotency_key": secrets.token_hex(16), "event_header": "Push Hook"}
    answer = {"response_headers": {}, "response_body": "", "response_status": "200", "execution_duration": 0.1}
    return _stored(WebHookLog(hook_id=hook.id, payload=DeliveryPayload(body="{}"), **sent, **keys, **answer))


def make_heartbeat(project: Project, name: str = "Backup") -> Heartbeat:
    """A heartbeat that was called once."""
    key = secrets.token_hex(16)
    times = {"period_seconds": 86_400, "grace_seconds": 3_600}
    heartbeat: Heartbeat = _stored(
        Heartbeat(project_id=project.id, name=name, key=key, key_digest=digest_of(key), **times)
    )
    make_call(heartbeat)
    return heartbeat


def make_silence(owner: Project | Group, **fields: Any) -> Silence:
    """A silence of a project or group that lasts an hour."""
    now = clock.now()
    about = {"starts_at": now, "ends_at": now + dt.timedelta(hours=1), "comment": "Move"} | fields
    column = "project_id" if isinstance(owner, Project) else "group_id"
    return _stored(Silence(**{column: owner.id}, **about))


def message_content(headline: str, name: str, url: str = "/") -> dict[str, Any]:
    """What is stored of a message about a project of this name."""
    at = clock.isoformat(clock.now())
    return ChannelMessage(headline=headline, project={"name": name, "web_url": url}, url=url, at=at).as_json()


def make_message(project: Project) -> NotificationDelivery:
    """A message that was sent about an alert of a project."""
    content = message_content("Stuck", project.name, f"/{project.full_path}/-/alert_management/1/details")
    about = {"recipient": "ops", "title": "[CRITICAL] Stuck", "status": "delivered"}
    return _stored(NotificationDelivery(project_id=project.id, content=content, **about))


def make_call(heartbeat: Heartbeat) -> None:
    """A call of a heartbeat."""
    _stored(HeartbeatPing(heartbeat_id=heartbeat.id, status="success", exit_status=0, method="GET"))


def make_source_map_bundle(project: Project, version: str, uploader: User) -> SourceMapBundle:
    """A release of a client of error tracking, and an upload for it."""
    _stored(ErrorRelease(project_id=project.id, version=version))
    about = {"release": version, "checksum": secrets.token_hex(20), "state": OK, "uploader_id": uploader.id}
    return _stored(SourceMapBundle(project_id=project.id, **about))


def _stored(row: Any) -> Any:
    with unit_of_work():
        db.session.add(row)
    return row


def make_personal_channel(user: User, name: str) -> NotificationChannel:
    """A channel of a user that nothing is sent to."""
    return _stored(NotificationChannel(user_id=user.id, name=name, type="telegram", target="-1"))


def make_personal_notifications(user: User) -> dict[str, int]:
    """A channel of a user and a message to it: their ids, by the names of placeholders."""
    channel = make_personal_channel(user, "own")
    counts = {"triggered_count": 0, "resolved_count": 0, "other_count": 0, "attempts": 1}
    about = {"title": "Test", "content": message_content("Test", user.username), "kind": "test", "recipient": "-1"}
    message = {"status": "delivered", **about, **counts}
    delivery = _stored(NotificationDelivery(user_id=user.id, channel_id=channel.id, **message))
    return {"profile channel_id": channel.id, "profile delivery_id": delivery.id}


def make_notification(project: Project, user: User) -> NotificationDelivery:
    """A message to a channel of a project, and one to a user, which were delivered."""
    channel = db.session.scalars(
        select(NotificationChannel).where(NotificationChannel.project_id == project.id)
    ).first()
    counts = {"triggered_count": 1, "resolved_count": 0, "other_count": 0, "attempts": 1}
    content = message_content("Stuck", project.name)
    common: dict[str, Any] = {"title": "[CRITICAL] Stuck", "content": content, "status": "delivered", **counts}
    _stored(NotificationDelivery(project_id=project.id, user_id=user.id, recipient=user.email, **common))
    own = {} if channel is None else {"channel_id": channel.id, "channel_name": channel.name}
    return _stored(NotificationDelivery(project_id=project.id, recipient="us Ab", **own, **common))


def fill_lists(project: Project, group: Group, people: dict[str, User], client: Any, mark: str = "") -> None:
    """Create a row in every list of a project, a group and a user, with a client of an administrator.

    Names contain ``mark``.
    """
    sub, tool = make_group(f"tools{mark}", group), make_project(f"saw{mark}", group)
    for place in (f"/projects/{project.id}", f"/groups/{group.id}"):  # first: their bots cannot be removed as members
        client.post(f"{place}/access_tokens", json={"name": f"bot{mark}", "scopes": ["api"]})
    for place in (project, group):
        add_member(place, make_user(), Role.DEVELOPER)
        share(place, make_group(), Role.GUEST)
    make_project(namespace=sub)
    make_project(namespace=people[OLIVE])
    path = f"/projects/{project.id}"
    client.post(f"/projects/{tool.id}/issues", json={"title": "Blunt"})
    for method, address, fields in (
        ("POST", f"{path}/variables", {"key": f"A{mark}", "value": "1", "masked": False}),
        ("POST", f"{path}/variables", {"key": f"B{mark}", "value": "väl\nue", "environment_scope": "prod/*"}),
        ("POST", f"/groups/{group.id}/variables", {"key": f"C{mark}", "value": "3", "masked": False}),
        ("POST", "/admin/ci/variables", {"key": f"D{mark}", "value": "4", "masked": False}),
        ("POST", f"{path}/protected_tags", {"name": f"v{mark}*"}),
        ("POST", f"{path}/protected_branches", {"name": f"stable{mark}/*"}),
        ("POST", f"{path}/labels", {"name": f"late{mark}", "color": "red", "priority": 1}),
        ("POST", f"/groups/{group.id}/labels", {"name": f"shared{mark}", "color": "teal"}),
        ("POST", f"{path}/milestones", {"title": f"Opening{mark}", "due_date": "2030-01-01"}),
        ("POST", f"/groups/{group.id}/milestones", {"title": f"Season{mark}", "due_date": "2030-01-01"}),
        ("POST", f"{path}/issues", {"title": f"The till is open {mark}", "description": "Since *noon*"}),
        ("POST", f"{path}/environments", {"name": f"production{mark}", "external_url": "https://shop.example.org"}),
        ("PUT", f"{path}/error_tracking/settings", {"active": True, "integrated": True}),
        ("POST", f"{path}/error_tracking/ignore_rules", {"title": f"Script error {mark}*"}),
        ("POST", f"{path}/notification_channels", {"name": f"pager{mark}", **PAGER}),
        ("POST", f"/groups/{group.id}/notification_channels", {"name": f"pager{mark}", **PAGER}),
        ("POST", "/user/notification_channels", {"name": f"phone{mark}", **PHONE}),
        ("POST", f"{path}/notification_rules", {"name": f"Worst{mark}", **RULE}),
        ("POST", f"/groups/{group.id}/notification_rules", {"name": f"Worst{mark}", **RULE}),
        ("POST", f"/features/a_flag{mark}", {"value": "50"}),
        ("PUT", "/application/settings", {"max_import_size": 50, "search_rate_limit": 0}),
    ):
        response = client.open(method, address, json=fields)
        assert response.status_code < 300, (method, address, response.text)
        if address.endswith("/issues"):
            client.post(f"{address}/{response.json['iid']}/notes", json={"body": "Still is"})
            related = {"target_project_id": tool.id, "target_issue_iid": 1}
            client.post(f"{address}/{response.json['iid']}/links", json=related)
            client.put(f"{address}/{response.json['iid']}", json={"add_labels": f"late{mark}"})
    security_reports.ingest(client, project, security_reports.bill(f"till{mark}"), "")
    security_reports.ingest(client, project, security_reports.report(security_reports.vulnerability()))
    error = make_error(project, f"The till is stuck {mark}")
    make_merge(error, make_error(project, f"The till is jammed {mark}"), people[DEV])
    make_release(project, f"v1.0{mark}")
    make_heartbeat(project, f"Backup{mark}")
    make_silence(project, created_by_id=people[DEV].id)
    make_silence(group, created_by_id=people[DEV].id)
    make_upload(project, mark)
    make_avatars(project, group, *people.values())
    make_source_map_bundle(project, f"shop@1.0{mark}", people[DEV])
    for owner in (project, group, None):
        make_hook(owner)
    make_notification(project, people[ADA])
    with unit_of_work():
        db.session.add(
            Alert(project_id=project.id, iid=next_iid(project.id, "alerts"), title="Stuck", started_at=clock.now())
        )
        integration = AlertIntegration(
            project_id=project.id, name=f"Prom{mark}", endpoint_identifier=f"1f{mark}", token="t"
        )
        db.session.add(integration)
        db.session.flush()
        db.session.add(AlertRequest(integration_id=integration.id, **ALERT_REQUEST))
    with unit_of_work():
        invited = {"email": f"ivy{mark}@example.org", "access_level": Role.GUEST, "created_by_id": people[OLIVE].id}
        db.session.add_all([Invitation(project_id=project.id, **invited), Invitation(namespace_id=group.id, **invited)])
        for entity in (project, group, None):
            recording.record("sample", entity, f"Opened the till {mark}")
    make_label(project, f"tills{mark}")
    change = make_merge_request(project, f"Oil the till {mark}", author_id=people[DEV].id, labels=[f"tills{mark}"])
    make_note(change, "Squeaks", author_id=people[DEV].id)
