"""The overview of the administration area: counts, health, queue, storage, versions; and a test mail."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from flask import current_app, flash, redirect, render_template
from flask.typing import ResponseReturnValue
from sqlalchemy import Select, select, text

from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.instance import probes
from project_service.areas.instance.version import OWN
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import jobs, mail
from project_service.kit.db.session import db
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import MAX_COUNTED_ROWS, counted
from project_service.settings import Settings

pages = PageBlueprint("admin_overview", __name__)
GIB = 2**30
LOW_DISK_RATIO = 0.1  # of the disk: less than this free is shown as a warning
TEST_MAILS = RateLimit("mail:test", 5)  # per minute, by one administrator
navigation.add(navigation.NavigationEntry("Overview", "/admin", 0, Ability.ADMINISTER), "administration")


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The disk of the data directory, in GiB."""

    free: float
    total: float

    @property
    def is_low(self) -> bool:
        """Whether little is free."""
        return self.free < LOW_DISK_RATIO * self.total


@pages.get("/admin")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_overview() -> str:
    """Show what there is, and whether all of it works."""
    db.session.rollback()  # the checks use transactions of their own
    problems, is_ready = probes.readiness()
    settings: Settings = current_app.config["SETTINGS"]
    return render_template(
        "instance/overview.html",
        counts={
            "Users": ("/admin/users", _count(select(User.id).where(User.deleting_since.is_(None)))),
            "Projects": ("/admin/projects", _count(select(Project.id).where(Project.deleting_since.is_(None)))),
            "Groups": ("/admin/groups", _count(select(Group.id).where(Group.deleting_since.is_(None)))),
        },
        problems=problems,
        is_ready=is_ready,
        states=jobs.states(),
        mails=mail.is_on(),
        mails_set_aside=mail.set_aside(),
        disk=_disk(settings),
        database_bytes=_database_bytes(),
        version=OWN,
        database=db.engine.dialect.name,
        form=Form(formdata=None),
        address=current_user().email,
    )


@pages.post("/admin/test_mail", sends_requests=True)
@pages.own_transactions
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def send_test_mail() -> ResponseReturnValue:
    """Send a mail to the administrator at once, and say what the mail server answered."""
    user = current_user()
    address, user_id = user.email, user.id
    TEST_MAILS.check(user_id)
    if not mail.is_on():
        flash("No mail server is configured: set PROJECT_SERVICE_SMTP_HOST and its other settings.", "warning")
    elif error := mail.send_test(address):
        flash(f"The mail was not sent: {error}", "warning")
    else:
        flash(f"A mail was sent to {address}.")
    return redirect("/admin")


def _count(rows: Select[int]) -> str:
    number = db.session.scalar(counted(rows)) or 0
    return f"{number:,}" if number <= MAX_COUNTED_ROWS else f"more than {MAX_COUNTED_ROWS:,}"


def _disk(settings: Settings) -> DiskUse:
    usage = shutil.disk_usage(settings.data_dir)
    return DiskUse(usage.free / GIB, usage.total / GIB)


def _database_bytes() -> int:
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    if db.engine.dialect.name == "postgresql":
        size = "SELECT pg_database_size(current_database())"
    return int(db.session.scalar(text(size)) or 0)
