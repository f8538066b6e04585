"""Mails about new errors and regressions, to maintainers who switched them on.

At most one mail per error and hour, and 30 per project and day; then one summary of the rest of the day.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Select, delete, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.areas.error_tracking.settings.models import ErrorMailSubscription, ErrorTrackingSetting
from project_service.domain.projects import Project
from project_service.domain.users import ACTIVE, User
from project_service.kit import clock, mail
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert
from project_service.kit.http import urls

INTERVAL = dt.timedelta(hours=1)
MAX_MAILS_PER_DAY = 30
MAX_SUBJECT_LENGTH = 150


def is_subscribed(project: Project, user_id: int) -> bool:
    """Whether a user gets mails about the errors of a project."""
    return db.session.scalar(_subscription(project.id).where(ErrorMailSubscription.user_id == user_id)) is not None


def subscribe(project: Project, user_id: int, wanted: bool) -> None:
    """Switch the mails about the errors of a project on or off for a user."""
    if wanted:
        row = insert(ErrorMailSubscription).values(project_id=project.id, user_id=user_id)
        db.session.execute(row.on_conflict_do_nothing())
        return
    mine = (ErrorMailSubscription.project_id == project.id, ErrorMailSubscription.user_id == user_id)
    db.session.execute(delete(ErrorMailSubscription).where(*mine))


def queue_error(error: TrackedError, *, regressed: bool) -> None:
    """Queue a mail about an error that is new or was reopened."""
    now = clock.now()
    if not mail.is_on() or (error.mailed_at is not None and now - error.mailed_at < INTERVAL):
        return
    recipients = recipients_of(error.project)
    setting = _setting(error.project_id)
    if not recipients or setting is None:
        return
    lock_row(setting, "mails_day", "mails_sent", "mails_withheld")
    begin_day(error.project, setting)
    if setting.mails_sent >= MAX_MAILS_PER_DAY:
        setting.mails_withheld += 1
        return
    setting.mails_sent += 1
    error.mailed_at = now
    what = "A resolved error has come back" if regressed else "A new error has been recorded"
    lines = [
        f"{what} in {error.project.full_path}.",
        "",
        f"Error: {error.title}",
        *([f"Culprit: {error.culprit}"] if error.culprit else []),
        f"Level: {error.level}",
        f"Events: {error.count}",
        "",
        f"View the error at {address_of(error)}",
    ]
    word = "Regression" if regressed else "New error"
    subject = f"{error.project.name} | {word}: {error.title}"[:MAX_SUBJECT_LENGTH]
    mail.queue(recipients, subject, "\n".join(lines) + "\n")


def begin_day(project: Project, setting: ErrorTrackingSetting) -> None:
    """Begin to count the mails of a new day, with a summary of what was withheld on the last one."""
    today = clock.today()
    if setting.mails_day == today:
        return
    if setting.mails_withheld and setting.mails_day is not None:
        day = setting.mails_day.isoformat()
        lines = [
            f"{setting.mails_withheld} more errors were new or came back in {project.full_path} on {day}.",
            "",
            f"View the errors at {urls.absolute(f'/{project.full_path}/-/error_tracking')}",
        ]
        mail.queue(
            recipients_of(project),
            f"{project.name} | {setting.mails_withheld} more errors",
            "\n".join(lines) + "\n",
        )
    setting.mails_day, setting.mails_sent, setting.mails_withheld = today, 0, 0


def recipients_of(project: Project) -> list[str]:
    """Return the addresses of the subscribers who may still change the settings of the project."""
    users = db.session.scalars(
        select(User)
        .join(ErrorMailSubscription, ErrorMailSubscription.user_id == User.id)
        .where(ErrorMailSubscription.project_id == project.id, User.state == ACTIVE, User.deleting_since.is_(None))
        .order_by(User.id)
    )
    return [user.email for user in users if allowed(Caller.of(user), Ability.ADMIN_OPERATIONS, project)]


def address_of(error: TrackedError) -> str:
    """Return the URL of the page of an error."""
    return urls.absolute(f"/{error.project.full_path}/-/error_tracking/{error.id}/details")


def _setting(project_id: int) -> ErrorTrackingSetting | None:
    return db.session.scalar(select(ErrorTrackingSetting).where(ErrorTrackingSetting.project_id == project_id))


def _subscription(project_id: int) -> Select[int]:
    return select(ErrorMailSubscription.id).where(ErrorMailSubscription.project_id == project_id)
