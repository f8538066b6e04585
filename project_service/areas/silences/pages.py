"""Pages of silences (silences reference, section 4)."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for

from project_service.access import navigation
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.silences import queries, service
from project_service.areas.silences.forms import SilenceForm, form_of
from project_service.domain.projects import Project
from project_service.domain.silences.matching import FIELDS, IS, MAX_VALUE_CHARACTERS, described
from project_service.domain.silences.models import ACTIVE, EXPIRED, PENDING, STATES, Silence
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("silence_pages", __name__)
SILENCES = "/<path:project>/-/silences"
SILENCE = f"{SILENCES}/<int:silence_id>"
PER_PAGE = 50
TABS = {"": "All", ACTIVE: "Active", PENDING: "Pending", EXPIRED: "Expired"}

navigation.add(navigation.NavigationEntry("Silences", "/-/silences", 57, Ability.READ_SILENCES))


@pages.get(SILENCES)
@pages.signed_in
@pages.allow(Ability.READ_SILENCES)
def list_silences(project: Project) -> Any:
    """Show the silences of a project."""
    state = request.args.get("state", "")
    state = state if state in STATES else ""
    page = read_page(queries.silences_of(project, state), request.args.get("page"), PER_PAGE)
    queries.load_counts(page.rows)
    return render_template(
        "silences/list.html", project=project, silences=page, tabs=TABS, state=state, described=described
    )


@pages.get(f"{SILENCES}/new")
@pages.signed_in
@pages.allow(Ability.CREATE_SILENCES)
def new_silence(project: Project) -> Any:
    """Show the form of a new silence; the query may name values of matchers."""
    given = [(name, request.args[name][:MAX_VALUE_CHARACTERS]) for name in FIELDS if request.args.get(name)]
    matchers = [{"field": name, "operator": IS, "value": value} for name, value in given]
    return _form(project, SilenceForm(formdata=None, matchers=matchers))


@pages.post(f"{SILENCES}/new")
@pages.signed_in
@pages.allow(Ability.CREATE_SILENCES)
def create_silence(project: Project) -> Any:
    """Create a silence."""
    form, is_maintainer = SilenceForm(), _is_maintainer(project)
    created = form.accepted(
        lambda: service.create_silence(current_user(), project, is_maintainer=is_maintainer, **form.new_fields())
    )
    if created is None:
        return _form(project, form), 422
    warning = service.warning_of(created.result)
    flash("Silence created" + (f". It {warning}." if warning else ""))
    return redirect(_address(project, created.result.id))


@pages.get(SILENCE)
@pages.signed_in
@pages.allow(Ability.READ_SILENCES)
def show_silence(project: Project, silence_id: int) -> Any:
    """Show a silence, with its form for those who may change it."""
    silence = queries.find_silence(project, silence_id)
    return _form(project, form_of(silence), silence)


@pages.post(SILENCE)
@pages.signed_in
@pages.allow(Ability.CREATE_SILENCES)
def update_silence(project: Project, silence_id: int) -> Any:
    """Change a silence."""
    silence, form = queries.find_silence(project, silence_id), SilenceForm()
    fields = form.changed_fields if silence.state == ACTIVE else form.new_fields
    is_maintainer = _is_maintainer(project)
    if not form.accepted(
        lambda: service.update_silence(current_user(), project, silence, is_maintainer=is_maintainer, **fields())
    ):
        return _form(project, form, queries.find_silence(project, silence_id)), 422
    flash("Silence updated")
    return redirect(_address(project, silence_id))


@pages.post(f"{SILENCE}/end")
@pages.signed_in
@pages.allow(Ability.CREATE_SILENCES)
def end_silence(project: Project, silence_id: int) -> Any:
    """End a silence now."""
    silence = queries.find_silence(project, silence_id)
    service.end_silence(current_user(), project, silence, is_maintainer=_is_maintainer(project))
    flash("Silence ended")
    return redirect(_address(project, silence_id))


def _form(project: Project, form: SilenceForm | Form, silence: Silence | None = None) -> str:
    is_own = silence is None or silence.created_by_id == caller().user_id
    may_change = is_own or _is_maintainer(project)
    return render_template(
        "silences/form.html",
        project=project,
        silence=silence,
        form=form,
        is_editable=may_change and (silence is None or silence.state != EXPIRED),
        is_active=silence is not None and silence.state == ACTIVE,
        field_names=FIELDS,
        described=described,
    )


def _is_maintainer(project: Project) -> bool:
    return allowed(caller(), Ability.ADMIN_SILENCES, project)


def _address(project: Project, silence_id: int) -> str:
    return url_for("silence_pages.show_silence", project=project.full_path, silence_id=silence_id)
