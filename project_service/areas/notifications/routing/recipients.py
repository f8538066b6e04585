"""Who is told: channels, people, and the levels they have chosen (notifications reference, sections 7 and 8)."""

from __future__ import annotations

import functools

from sqlalchemy import or_, select

from project_service.areas.notifications.models import NotificationChannel
from project_service.domain.access_levels import Role
from project_service.domain.accounts import resource_bots
from project_service.domain.accounts.users import ACTIVE, User, user_by
from project_service.domain.memberships import active_members_for_choice, choice_in
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.notifications.levels import nearest_settings
from project_service.domain.notifications.models import (
    ALERT,
    ALERT_RESOLVED,
    ALERT_TRIGGERED,
    CUSTOM,
    DISABLED,
    ERROR,
    ERROR_REGRESSION,
    FINDING,
    INCIDENT_OPENED,
    ISSUE,
    NEW_ERROR,
    NEW_FINDING,
    OPENING,
    SUBJECTS,
    WATCH,
    NotificationEvent,
    NotificationRule,
    NotificationSetting,
)
from project_service.domain.projects import Project
from project_service.kit.db.session import db

MAX_MEMBERS = 1000
PERSONAL_KINDS = (ALERT_TRIGGERED, ALERT_RESOLVED, NEW_ERROR, ERROR_REGRESSION, NEW_FINDING, INCIDENT_OPENED)
LEAST_ROLES = {ALERT: Role.DEVELOPER, ERROR: Role.REPORTER, FINDING: Role.DEVELOPER, ISSUE: Role.REPORTER}


class Recipients:
    """Channels and people of a project; everything is read once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._members: dict[Role, list[int]] = {}
        self._user_ids: dict[str, int | None] = {}

    @functools.cached_property
    def groups(self) -> list[int]:
        """The ids of the groups above the project, the nearest first."""
        above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == self.project.namespace_id)
        rows = db.session.execute(select(Namespace.id, Namespace.full_path).where(Namespace.id.in_(above)))
        return [row.id for row in sorted(rows, key=lambda row: len(row.full_path), reverse=True)]

    @functools.cached_property
    def rules(self) -> list[NotificationRule]:
        """The enabled rules of the project and of the groups above it, by id."""
        here = or_(NotificationRule.project_id == self.project.id, NotificationRule.group_id.in_(self.groups))
        enabled = select(NotificationRule).where(here, NotificationRule.enabled)
        return list(db.session.scalars(enabled.order_by(NotificationRule.id)))

    @functools.cached_property
    def channels(self) -> dict[int, NotificationChannel]:
        """The channels that the project may use."""
        channel = NotificationChannel
        here = or_(channel.project_id == self.project.id, channel.group_id.in_(self.groups))
        return {row.id: row for row in db.session.scalars(select(channel).where(here))}

    @functools.cached_property
    def levels(self) -> dict[int, NotificationSetting]:
        """The nearest setting of each user who has made one for the project, a group above or everywhere."""
        return nearest_settings(self.project)

    def targets_of(self, rule: NotificationRule, event: NotificationEvent) -> list[str]:
        """Return the targets of a rule for an event, such as ``channel:3`` and ``user:7``."""
        targets: dict[str, None] = {}
        for target in rule.targets:
            if target["type"] == "channel":
                channel = self.channels.get(target["id"])
                if channel is not None and channel.state not in ("disabled", "unconfirmed"):
                    targets[f"channel:{channel.id}"] = None
            elif target["type"] == "members":
                people = self.members(max(Role(target["access_level"]), LEAST_ROLES[event.subject_type]))
                targets |= {f"user:{user_id}": None for user_id in people if self._accepts(user_id, event.kind)}
            elif (user_id := self._user_id(target["username"])) is not None:
                is_out = user_id in self.levels and self.levels[user_id].level == DISABLED
                if not is_out:
                    targets[f"user:{user_id}"] = None
        return list(targets)

    def is_told_of_openings(self, event: NotificationEvent, target: str) -> bool:
        """Whether any rule tells a target of openings: else it asked for what follows alone."""
        openings = [kind for kind in OPENING if SUBJECTS[kind] == event.subject_type]
        return any(
            kind in rule.events and target in self.targets_of(rule, event) for rule in self.rules for kind in openings
        )

    def watchers(self, event: NotificationEvent) -> list[str]:
        """Return the people whose own level asks for an event, without any rule."""
        if event.kind not in PERSONAL_KINDS:
            return []
        wanting = [user_id for user_id in self.levels if self._asks_for(user_id, event.kind)]
        if not wanting:
            return []
        readers = set(self.members(LEAST_ROLES[event.subject_type]))
        return [f"user:{user_id}" for user_id in sorted(wanting) if user_id in readers]

    def members(self, least: Role) -> list[int]:
        """Return the ids of active members with at least a role, inherited ones included, without bots."""
        if least not in self._members:
            people = active_members_for_choice().where(User.id.not_in(resource_bots.bots()))
            rows = db.session.execute(people, choice_in(self.project, least, MAX_MEMBERS))
            self._members[least] = [row.id for row in rows]
        return self._members[least]

    def _user_id(self, username: str) -> int | None:
        if username not in self._user_ids:
            user = user_by(username)
            self._user_ids[username] = None if user is None or user.state != ACTIVE else user.id
        return self._user_ids[username]

    def _accepts(self, user_id: int, kind: str) -> bool:
        """Whether a level leaves a user in among the members that a rule tells."""
        setting = self.levels.get(user_id)
        if setting is None:
            return True
        if setting.level == CUSTOM:
            return bool(setting.events.get(kind)) or kind not in PERSONAL_KINDS
        return setting.level != DISABLED

    def _asks_for(self, user_id: int, kind: str) -> bool:
        setting = self.levels[user_id]
        return setting.level == WATCH or (setting.level == CUSTOM and bool(setting.events.get(kind)))
