"""Tags of the stored events of an error: their distribution, and events found by them.

An error has a bounded number of stored events. Their summaries are read, and compared here: no index of tags is
written for each event that arrives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from project_service.areas.error_tracking.errors import queries
from project_service.areas.error_tracking.errors.models import TrackedError, TrackedErrorEvent
from project_service.kit.db.session import db

MAX_SEARCHED_EVENTS = 500
MAX_SHOWN_KEYS = 40
MAX_SHOWN_VALUES = 5
# what every event may say, in the order of pages, before the tags that applications choose
NAMES = ("environment", "release", "browser", "os", "runtime", "device", "server_name", "user", "level", "transaction")
FIELDS = ("environment", "release", "server_name", "level", "transaction", "dist", "logger")
USER_FIELDS = ("email", "username", "id", "ip_address")
ID_PREFIX_LENGTH = 8


@dataclass(frozen=True, slots=True)
class TagValue:
    """A value of a tag with the number of events that have it."""

    text: str
    count: int
    percent: int


@dataclass(frozen=True, slots=True)
class TagDistribution:
    """The most frequent values of a tag; ``others`` is the number of events with another value."""

    key: str
    values: list[TagValue]
    others: int


@dataclass(frozen=True, slots=True)
class TagReport:
    """The distributions of all tags of the newest ``events`` stored events."""

    events: int
    tags: list[TagDistribution]


def tags_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of an event: those that it was sent with, and what else it says about itself."""
    tags = {tag["key"]: tag["value"] for tag in summary.get("tags") or ()}
    derived = {tag["key"]: tag["value"] for tag in summary.get("derived_tags") or ()}
    named = {name: summary[name] for name in FIELDS if summary.get(name)}
    user = summary.get("user") or {}
    identity = next(({"user": user[name]} for name in USER_FIELDS if user.get(name)), {})
    return {**named, **identity, **derived, **tags}


def report_of(error: TrackedError) -> TagReport:
    """Return how the tags of the newest stored events of an error are distributed."""
    tags_of_events = [tags_of(summary) for _, _, summary in _newest(error)]
    counters: dict[str, Counter[str]] = {}
    for tags in tags_of_events:
        for key, value in tags.items():
            counters.setdefault(key, Counter())[value] += 1
    keys = sorted(counters, key=lambda key: (NAMES.index(key) if key in NAMES else len(NAMES), key))
    return TagReport(
        len(tags_of_events), [_distribution(key, counters[key], len(tags_of_events)) for key in keys[:MAX_SHOWN_KEYS]]
    )


def events_matching(error: TrackedError, **filters: str | None) -> Select[TrackedErrorEvent]:
    """Select the stored events of an error, newest first; with filters among the newest ``MAX_SEARCHED_EVENTS``.

    ``search`` has terms that must all match: ``key:value`` a tag, another term a part of the message or the title, or
    the beginning of the id. ``environment`` and ``release`` are exact.
    """
    events = queries.events_of(error)
    exact = {name: value for name in ("environment", "release") if (value := filters.get(name))}
    terms = terms_of(filters.get("search") or "")
    if not exact and not terms:
        return events
    ids = [
        row_id
        for row_id, event_id, summary in _newest(error)
        if all(summary.get(name) == value for name, value in exact.items()) and _matches(event_id, summary, terms)
    ]
    return events.where(TrackedErrorEvent.id.in_(ids))


def terms_of(search: str) -> list[str]:
    """Split a search into its terms; quotation marks keep blanks: ``browser:"Chrome 120" timeout``."""
    terms: list[str] = []
    for number, part in enumerate(search[:1000].split('"')):
        if number % 2 == 0:
            words = part.split()
            # a word directly before or after a quoted part belongs to it
            if terms and number and part[:1].strip() and words:
                terms[-1] += words.pop(0)
            terms += words
            is_open = bool(part) and not part[-1].isspace()
        elif terms and is_open:
            terms[-1] += part
        else:
            terms.append(part)
    return [term.lower() for term in terms if term]


def _newest(error: TrackedError) -> Sequence[Any]:
    event = TrackedErrorEvent
    newest = select(event.id, event.event_id, event.summary).where(event.error_id == error.id)
    newest = newest.order_by(event.occurred_at.desc(), event.id.desc()).limit(MAX_SEARCHED_EVENTS)
    return db.session.execute(newest).all()


def _matches(event_id: str, summary: Mapping[str, Any], terms: Sequence[str]) -> bool:
    if not terms:
        return True
    tags = {key.lower(): value.lower() for key, value in tags_of(summary).items()}
    text = f"{summary.get('title') or ''}\n{summary.get('message') or ''}".lower()
    return all(_has(term, event_id, tags, text) for term in terms)


def _has(term: str, event_id: str, tags: Mapping[str, str], text: str) -> bool:
    key, separator, value = term.partition(":")
    if separator and key in tags:
        return tags[key] == value
    is_id = len(term) >= ID_PREFIX_LENGTH and event_id.startswith(term.replace("-", ""))
    return is_id or term in text


def _distribution(key: str, counter: Counter[str], events: int) -> TagDistribution:
    top = counter.most_common(MAX_SHOWN_VALUES)
    values = [TagValue(text, count, round(count * 100 / events)) for text, count in top]
    return TagDistribution(key, values, counter.total() - sum(count for _, count in top))
