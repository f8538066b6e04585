"""Helpers shared by the tests of exports."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select, update

from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.kit.storage import storage

NO_EXPORT = {"message": "404 Not found or has expired"}


ACCEPTED = {"message": "202 Accepted"}


def stored():
    return storage().names("imports") + storage().names("projects")


def status(client, project):
    return client.get(f"/projects/{project.id}/export").json["export_status"]


def again():
    """Try tasks that failed again, at once."""
    db.session.rollback()
    waiting = list(db.session.scalars(select(Task.id).where(Task.failed_at.is_(None), Task.attempts > 0)))
    db.session.execute(update(Task).where(Task.id.in_(waiting)).values(run_at=clock.now() - dt.timedelta(seconds=1)))
    db.session.commit()
    for task_id in waiting:
        jobs.run(task_id)
