"""What follows an event that created an error, or that brought a resolved one back."""

from __future__ import annotations

from project_service.areas.error_tracking.effects import hooks, notifying
from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.domain.accounts.bots import ALERT_BOT, bot
from project_service.domain.tracker import issue_rules
from project_service.kit.db.session import db

CAME_BACK = "the error has come back"


def follow_up(error_id: int, *, environment: str | None, regressed: bool) -> None:
    """Tell users about a new error, or about one that occurred again after it was resolved."""
    error = db.session.get_one(TrackedError, error_id, populate_existing=True)
    if regressed and error.issue is not None:
        issue_rules.add_system_note(bot(ALERT_BOT), error.issue, CAME_BACK)
    hooks.announce(error, hooks.REOPEN if regressed else hooks.OPEN)
    notifying.record(error, environment=environment, regressed=regressed)
