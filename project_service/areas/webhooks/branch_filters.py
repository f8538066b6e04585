"""Filters of hooks by branch: a wildcard, or a regular expression (webhooks reference, section 3).

Expressions are in the syntax of RE2, whose time is linear in the length of the text, whatever the expression is.
"""

from __future__ import annotations

import re2

from project_service.areas.webhooks.models import WebHook
from project_service.domain.repositories.refs import is_valid_name
from project_service.domain.repositories.wildcards import matches

WILDCARD, REGEX, ALL_BRANCHES = "wildcard", "regex", "all_branches"
STRATEGIES = (WILDCARD, REGEX, ALL_BRANCHES)
MAX_FILTER_LENGTH = 4000


def is_valid(strategy: str, branch_filter: str) -> bool:
    """Whether a filter can be stored."""
    if strategy == REGEX:
        return _compiled(branch_filter) is not None
    return len(branch_filter) <= MAX_FILTER_LENGTH and is_valid_name(branch_filter.replace("*", "a"))


def admits(hook: WebHook, branch: str) -> bool:
    """Whether a hook wants the pushes to a branch."""
    branch_filter = hook.push_events_branch_filter
    if hook.branch_filter_strategy == ALL_BRANCHES or not branch_filter:
        return True
    if hook.branch_filter_strategy == REGEX:
        expression = _compiled(branch_filter)
        return expression is not None and expression.search(branch) is not None
    return matches(branch_filter, branch)


def _compiled(expression: str) -> re2.Pattern | None:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error:
        return None
