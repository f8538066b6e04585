"""Rules for events that a project does not want stored (error collection reference, section 15)."""

from __future__ import annotations

from sqlalchemy import Select, func, select

from project_service.access import audit
from project_service.areas.error_tracking.settings.models import IGNORE_PATTERNS, ErrorIgnoreRule
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import Invalid, RecordNotFound

MAX_RULES = 50
MAX_PATTERN_LENGTH = 255
MAX_WILDCARDS = 10


def rules_of(project: Project) -> Select[ErrorIgnoreRule]:
    """The rules of a project, oldest first."""
    return select(ErrorIgnoreRule).where(ErrorIgnoreRule.project_id == project.id).order_by(ErrorIgnoreRule.id)


def find_rule(project: Project, rule_id: int) -> ErrorIgnoreRule:
    """One rule of a project; raises ``RecordNotFound``."""
    return one(rules_of(project).where(ErrorIgnoreRule.id == rule_id), RecordNotFound())


def create_rule(project: Project, **patterns: str | None) -> ErrorIgnoreRule:
    """Add a rule; a project has at most ``MAX_RULES``.

    Raises:
        Invalid: there is no pattern, one matches everything or is too long, or there are too many rules.

    """
    stripped = {name: (patterns.get(name) or "").strip() for name in IGNORE_PATTERNS}
    _check(stripped)
    lock_row(project, "id")
    if (db.session.scalar(select(func.count()).select_from(rules_of(project).subquery())) or 0) >= MAX_RULES:
        raise Invalid(base=f"Maximum number of ignore rules ({MAX_RULES}) exceeded")
    rule = ErrorIgnoreRule(project_id=project.id, **{name: text or None for name, text in stripped.items()})
    db.session.add(rule)
    db.session.flush()
    _record(project, rule, "created")
    return rule


def delete_rule(project: Project, rule: ErrorIgnoreRule) -> None:
    """Remove a rule: events that match it are stored again."""
    delete_locked(rule)
    db.session.flush()
    _record(project, rule, "destroyed")


def _check(patterns: dict[str, str]) -> None:
    if not any(text.strip("* ") for text in patterns.values()):
        raise Invalid(base="Fill in at least one pattern that does not match everything")
    problems = {
        name: f"is too long (maximum is {MAX_PATTERN_LENGTH} characters)"
        for name, text in patterns.items()
        if len(text) > MAX_PATTERN_LENGTH
    }
    problems |= {
        name: f"has too many wildcards (maximum is {MAX_WILDCARDS})"
        for name, text in patterns.items()
        if text.count("*") > MAX_WILDCARDS
    }
    if problems:
        raise Invalid(**problems)


def _record(project: Project, rule: ErrorIgnoreRule, action: str) -> None:
    target = AuditTarget("ErrorTracking::IgnoreRule", rule.id, rule.text[:255])
    audit.record(f"error_tracking_ignore_rule_{action}", project, f"Ignore rule of errors {action}", target=target)
