"""What the pages of rules show and do, whoever owns them (notifications reference, section 7)."""

from __future__ import annotations

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from project_service.areas.notifications import page_parts
from project_service.areas.notifications.channels.queries import usable_channels
from project_service.areas.notifications.rules import preview, queries, replay, service
from project_service.areas.notifications.rules.forms import RuleForm, form_of
from project_service.domain.namespaces import Group
from project_service.domain.notifications.models import ALERT_RESOLVED, ALERT_TRIGGERED, NotificationRule
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

RuleOwner = Project | Group
PER_PAGE = 20
STARTER_NAME = "Maintainers by e-mail"


def rule_list(owner: RuleOwner) -> str:
    """Show the rules that apply to an owner, as sentences."""
    page = read_page(queries.applying_rules(owner), request.args.get("page"), PER_PAGE)
    channels = {channel.id: channel.name for channel in db.session.scalars(usable_channels(owner))}
    words = {rule.id: preview.words_of(rule, channels) for rule in page.rows}
    mine = {rule.id for rule in page.rows if _is_own(owner, rule)}
    form = Form(formdata=None)
    return page_parts.show("rules.html", owner, "/rules", rules=page, words=words, mine=mine, form=form)


def new_rule(owner: RuleOwner) -> str:
    """Show the form of a new rule."""
    chosen = [f"channel:{number}"] if (number := request.args.get("channel_id", "")).isdigit() else []
    data = {"events": [ALERT_TRIGGERED, ALERT_RESOLVED], "targets": chosen}
    return _form(owner, RuleForm(formdata=None, data=data))


def create_rule(owner: RuleOwner) -> ResponseReturnValue:
    """Create a rule."""
    form = _offering(owner, RuleForm())
    if not form.accepted(lambda: service.create_rule(owner, **form.fields())):
        return _form(owner, form), 422
    flash("Rule created")
    return _to_list(owner)


def create_starter(owner: RuleOwner) -> ResponseReturnValue:
    """Create the rule that mails owners and maintainers about new and resolved alerts."""
    form = Form()
    targets = [{"type": "members", "access_level": 40}]
    events = [ALERT_TRIGGERED, ALERT_RESOLVED]
    if form.accepted(lambda: service.create_rule(owner, name=STARTER_NAME, events=events, targets=targets)):
        flash("Owners and maintainers get an e-mail about alerts from now on")
    else:
        flash(" ".join(form.problems))
    return _to_list(owner)


def edit_rule(owner: RuleOwner, rule_id: int) -> str:
    """Show the form of a rule."""
    rule = queries.find_rule(owner, rule_id)
    return _form(owner, form_of(rule), rule)


def update_rule(owner: RuleOwner, rule_id: int) -> ResponseReturnValue:
    """Change a rule."""
    rule, form = queries.find_rule(owner, rule_id), _offering(owner, RuleForm())
    if not form.accepted(lambda: service.update_rule(owner, rule, **form.fields())):
        return _form(owner, form, queries.find_rule(owner, rule_id)), 422
    flash("Rule changed")
    return _to_list(owner)


def toggle_rule(owner: RuleOwner, rule_id: int) -> ResponseReturnValue:
    """Switch a rule on or off."""
    rule, form = queries.find_rule(owner, rule_id), Form()
    if form.accepted(lambda: service.update_rule(owner, rule, enabled=not rule.enabled)):
        flash(f"Rule {'enabled' if rule.enabled else 'disabled'}")
    else:
        flash(" ".join(form.problems))
    return _to_list(owner)


def ask_delete_rule(owner: RuleOwner, rule_id: int) -> str:
    """Ask before a rule is deleted."""
    rule = queries.find_rule(owner, rule_id)
    question = f"Delete the rule “{rule.name}”? What waits in its groups is not sent."
    back = f"{page_parts.address_of(owner)}/rules"
    context = {"project": owner} if isinstance(owner, Project) else {"group": owner}
    return confirmation("Delete rule", question, "Delete rule", back, **context)


def delete_rule(owner: RuleOwner, rule_id: int) -> ResponseReturnValue:
    """Delete a rule."""
    service.delete_rule(owner, queries.find_rule(owner, rule_id))
    flash("Rule deleted")
    return _to_list(owner)


def replay_page(project: Project) -> str:
    """Show which messages the stored alerts of the last days would have been."""
    return page_parts.show("replay.html", project, "/rules", replayed=replay.replay(project))


def _is_own(owner: RuleOwner, rule: NotificationRule) -> bool:
    return rule.project_id == owner.id if isinstance(owner, Project) else rule.group_id == owner.id


def _to_list(owner: RuleOwner) -> ResponseReturnValue:
    return redirect(f"{page_parts.address_of(owner)}/rules")


def _offering(owner: RuleOwner, form: RuleForm) -> RuleForm:
    form.offer(db.session.scalars(usable_channels(owner)))
    return form


def _form(owner: RuleOwner, form: RuleForm, rule: NotificationRule | None = None) -> str:
    return page_parts.show("rule.html", owner, "/rules", form=_offering(owner, form), rule=rule)
