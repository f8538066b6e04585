"""Pages of the log of requests to an integration: the list, one request, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts import queries
from project_service.areas.alerts.integrations import request_log
from project_service.areas.alerts.integrations import service as integrations
from project_service.areas.alerts.models import AlertIntegration, AlertRequest, Outcome
from project_service.areas.alerts.payloads import bodies
from project_service.areas.alerts.receivers import delivery_log, subscriptions
from project_service.domain.instance_settings import some_settings
from project_service.domain.projects import Project
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("alert_request_pages", __name__)
BASE_PATH = "/<path:project>/-/settings/operations/integrations/<int:integration_id>/requests"
ONE = f"{BASE_PATH}/<int:request_id>"
TITLES = {
    Outcome.ACCEPTED: "Accepted",
    Outcome.IGNORED: "Ignored",
    Outcome.TEST: "Test message",
    Outcome.SUBSCRIPTION: "Subscription",
    Outcome.REFUSED: "Refused",
}
CUT = "Only the beginning of this body is stored, so it cannot be sent again."


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def list_requests(project: Project, integration_id: int) -> ResponseReturnValue:
    """Show the last requests of an integration."""
    delivery_log.flush()
    integration = queries.find_integration(project, integration_id)
    outcome = request.args.get("outcome", "")
    outcome = outcome if outcome in TITLES else ""
    size, days = some_settings(delivery_log.LOG_SIZE, delivery_log.LOG_DAYS)
    return _page(
        "requests",
        integration,
        page=read_page(request_log.requests_of(integration, outcome or None), request.args.get("page")),
        outcome=outcome,
        size=size,
        days=days,
    )


@pages.get(ONE)
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def show_request(project: Project, integration_id: int, request_id: int) -> ResponseReturnValue:
    """Show one request with its body."""
    integration = queries.find_integration(project, integration_id)
    return _request_page(integration, request_log.find_request(integration, request_id), Form())


@pages.post(f"{ONE}/send")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def send_request(project: Project, integration_id: int, request_id: int) -> ResponseReturnValue:
    """Receive the body of a request once more, by the present settings of the integration."""
    integration = queries.find_integration(project, integration_id)
    logged = request_log.find_request(integration, request_id)

    def send() -> str:
        if logged.is_cut:
            raise Invalid(base=CUT)
        return f"sent={len(integrations.send_test(integration, logged.body or '{}').iids)}"

    return _acted(integration, logged, send)


@pages.post(f"{ONE}/confirm", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def confirm_subscription(project: Project, integration_id: int, request_id: int) -> ResponseReturnValue:
    """Confirm the subscription that a request asks for."""
    integration = queries.find_integration(project, integration_id)
    logged = request_log.find_request(integration, request_id)
    subscriptions.CONFIRMATIONS.check(integration.id, current_user().id)

    def confirm() -> str:
        subscriptions.confirm(_message(logged))
        return "confirmed=1"

    return _acted(integration, logged, confirm)


def _acted(integration: AlertIntegration, logged: AlertRequest, act: Callable[[], str]) -> ResponseReturnValue:
    form, request_id = Form(), logged.id
    if accepted := form.accepted(act):
        return redirect(f"{_address(integration)}/{request_id}?{accepted.result}")
    return _request_page(integration, request_log.find_request(integration, request_id), form), 422


def _message(logged: AlertRequest) -> dict[str, Any]:
    try:
        return bodies.read((logged.body or "").encode())
    except bodies.Unreadable as error:
        raise Invalid(base=f"The body is {error}.") from error


def _request_page(integration: AlertIntegration, logged: AlertRequest, form: Form) -> str:
    confirms = logged.outcome == Outcome.SUBSCRIPTION
    return _page(
        "request",
        integration,
        logged=logged,
        form=form,
        sent=request.args.get("sent"),
        confirmed="confirmed" in request.args,
        confirms=confirms,
        address=subscriptions.confirmation_url(_message(logged)) if confirms else None,
    )


def _page(name: str, integration: AlertIntegration, **values: Any) -> str:
    return render_template(
        f"alerts/{name}.html",
        project=integration.project,
        integration=integration,
        tab="requests",
        titles={str(outcome): title for outcome, title in TITLES.items()},
        **values,
    )


def _address(integration: AlertIntegration) -> str:
    return f"/{integration.project.full_path}/-/settings/operations/integrations/{integration.id}/requests"
