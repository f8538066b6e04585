"""Reads of rules."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Select, func, select

from project_service.areas.notifications.owners import Owner, owned_by
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.notifications.models import NotificationRule
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound


def rules_of(owner: Owner) -> Select[NotificationRule]:
    """Select the rules that belong to an owner."""
    return select(NotificationRule).where(owned_by(NotificationRule, owner)).order_by(NotificationRule.id)


def applying_rules(owner: Owner) -> Select[NotificationRule]:
    """Select the rules of an owner and those of the groups above it, which apply, too."""
    return select(NotificationRule).where(_apply_to(owner)).options(NO_LAZY_LOADING).order_by(NotificationRule.id)


def _apply_to(owner: Owner) -> ColumnElement[bool]:
    namespace_id = owner.namespace_id if isinstance(owner, Project) else owner.id
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
    own, ids = owned_by(NotificationRule, owner), select(NotificationRule.id)
    # PostgreSQL would read them all for a condition with OR
    return NotificationRule.id.in_(ids.where(own).union_all(ids.where(NotificationRule.group_id.in_(above))))


def find_rule(owner: Owner, rule_id: int) -> NotificationRule:
    """Return one rule that belongs to an owner."""
    return one(rules_of(owner).where(NotificationRule.id == rule_id), NotFound("Notification Rule"))


def find_applying_rule(owner: Owner, rule_id: int) -> NotificationRule:
    """Return one rule that applies to an owner."""
    return one(applying_rules(owner).where(NotificationRule.id == rule_id), NotFound("Notification Rule"))


def number_of_rules(owner: Owner) -> int:
    """Return how many rules an owner has."""
    return db.session.scalar(select(func.count()).select_from(rules_of(owner).order_by(None).subquery())) or 0
