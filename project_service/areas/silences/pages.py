"""Pages of silences (silences reference, section 4)."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.silences import queries, service
from project_service.areas.silences.forms import SilenceForm, form_of
from project_service.areas.silences.service import SilenceOwner
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.silences.matching import FIELDS, IS, MAX_VALUE_CHARACTERS, described
from project_service.domain.silences.models import ACTIVE, EXPIRED, PENDING, STATES, Silence
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("silence_pages", __name__)
ADDRESS = "/-/silences"
OF_PROJECT, OF_GROUP = f"/<path:project>{ADDRESS}", f"/groups/<path:group>{ADDRESS}"
PER_PAGE = 50
TABS = {"": "All", ACTIVE: "Active", PENDING: "Pending", EXPIRED: "Expired"}

navigation.add(navigation.NavigationEntry("Silences", ADDRESS, 57, Ability.READ_SILENCES))
navigation.add(navigation.NavigationEntry("Silences", ADDRESS, 45, Ability.READ_GROUP_NOTIFICATIONS), "group")


@pages.get(OF_PROJECT, endpoint="list_project_silences")
@pages.get(OF_GROUP, endpoint="list_group_silences")
@pages.signed_in
@pages.allow(project=Ability.READ_SILENCES, group=Ability.READ_GROUP_NOTIFICATIONS)
def list_silences(owner: SilenceOwner) -> ResponseReturnValue:
    """Show the silences of a project or group and of the groups above it."""
    state = request.args.get("state", "")
    state = state if state in STATES else ""
    page = read_page(queries.silences_of(owner, state), request.args.get("page"), PER_PAGE)
    queries.load_counts(page.rows)
    return _show("list.html", owner, silences=page, tabs=TABS, state=state)


@pages.get(f"{OF_PROJECT}/new", endpoint="new_project_silence")
@pages.get(f"{OF_GROUP}/new", endpoint="new_group_silence")
@pages.signed_in
@pages.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
def new_silence(owner: SilenceOwner) -> ResponseReturnValue:
    """Show the form of a new silence; the query may name values of matchers."""
    values = [(name, request.args[name][:MAX_VALUE_CHARACTERS]) for name in FIELDS if request.args.get(name)]
    matchers = [{"field": name, "operator": IS, "value": value} for name, value in values]
    return _form(owner, SilenceForm(formdata=None, matchers=matchers))


@pages.post(f"{OF_PROJECT}/new", endpoint="create_project_silence")
@pages.post(f"{OF_GROUP}/new", endpoint="create_group_silence")
@pages.signed_in
@pages.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
def create_silence(owner: SilenceOwner) -> ResponseReturnValue:
    """Create a silence."""
    form, is_maintainer = SilenceForm(), _is_maintainer(owner)
    created = form.accepted(
        lambda: service.create_silence(current_user(), owner, is_maintainer=is_maintainer, **form.new_fields())
    )
    if created is None:
        return _form(owner, form), 422
    warning = service.warning_of(created.result)
    flash("Silence created" + (f". It {warning}." if warning else ""))
    return redirect(_address(owner, created.result.id))


@pages.get(f"{OF_PROJECT}/<int:silence_id>", endpoint="show_project_silence")
@pages.get(f"{OF_GROUP}/<int:silence_id>", endpoint="show_group_silence")
@pages.signed_in
@pages.allow(project=Ability.READ_SILENCES, group=Ability.READ_GROUP_NOTIFICATIONS)
def show_silence(owner: SilenceOwner, silence_id: int) -> ResponseReturnValue:
    """Show a silence, with its form for those who may change it."""
    silence = queries.find_silence(owner, silence_id)
    return _form(owner, form_of(silence), silence)


@pages.post(f"{OF_PROJECT}/<int:silence_id>", endpoint="update_project_silence")
@pages.post(f"{OF_GROUP}/<int:silence_id>", endpoint="update_group_silence")
@pages.signed_in
@pages.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
def update_silence(owner: SilenceOwner, silence_id: int) -> ResponseReturnValue:
    """Change a silence."""
    silence, form = queries.find_own_silence(owner, silence_id), SilenceForm()
    fields = form.changed_fields if silence.state == ACTIVE else form.new_fields
    is_maintainer = _is_maintainer(owner)
    if not form.accepted(
        lambda: service.update_silence(current_user(), owner, silence, is_maintainer=is_maintainer, **fields())
    ):
        return _form(owner, form, queries.find_silence(owner, silence_id)), 422
    flash("Silence updated")
    return redirect(_address(owner, silence_id))


@pages.post(f"{OF_PROJECT}/<int:silence_id>/end", endpoint="end_project_silence")
@pages.post(f"{OF_GROUP}/<int:silence_id>/end", endpoint="end_group_silence")
@pages.signed_in
@pages.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
def end_silence(owner: SilenceOwner, silence_id: int) -> ResponseReturnValue:
    """End a silence now."""
    silence = queries.find_own_silence(owner, silence_id)
    service.end_silence(current_user(), owner, silence, is_maintainer=_is_maintainer(owner))
    flash("Silence ended")
    return redirect(_address(owner, silence_id))


def _form(owner: SilenceOwner, form: SilenceForm | Form, silence: Silence | None = None) -> str:
    is_author = silence is None or silence.created_by_id == caller().user_id
    may_change = (silence is None or queries.is_own(silence, owner)) and (is_author or _is_maintainer(owner))
    return _show(
        "form.html",
        owner,
        silence=silence,
        form=form,
        is_editable=may_change and _may_create(owner) and (silence is None or silence.state != EXPIRED),
        is_active=silence is not None and silence.state == ACTIVE,
        field_names=FIELDS,
    )


def _show(template: str, owner: SilenceOwner, **values: Any) -> str:
    """Return a page with the navigation of a project or group."""
    is_project = isinstance(owner, Project)
    return render_template(
        f"silences/{template}",
        owner=owner,
        all=_address_of(owner),
        base="project.html" if is_project else "group.html",
        changes=_may_create(owner),
        described=described,
        **{"project" if is_project else "group": owner},
        **values,
    )


def _may_create(owner: SilenceOwner) -> bool:
    ability = Ability.CREATE_SILENCES if isinstance(owner, Project) else Ability.ADMIN_GROUP_NOTIFICATIONS
    return allowed(caller(), ability, owner)


def _is_maintainer(owner: SilenceOwner) -> bool:
    return allowed(caller(), Ability.ADMIN_SILENCES, owner) if isinstance(owner, Project) else _may_create(owner)


def _address_of(owner: SilenceOwner) -> str:
    return f"{page_paths.base_of(owner)}{ADDRESS}"


def _address(owner: SilenceOwner, silence_id: int) -> str:
    return f"{_address_of(owner)}/{silence_id}"
