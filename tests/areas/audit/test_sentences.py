"""Audit events as sentences."""

from __future__ import annotations

import pytest

from project_service.areas.audit.sentences import PHRASES, TITLES, sentence_of
from project_service.domain.audit.models import AuditEvent


def sentence(event_name, entity_type="Project", **details):
    event = AuditEvent(event_name=event_name, author_id=1, entity_type=entity_type, entity_id=1, details=details)
    found = sentence_of(event)
    return f"{found.author} {found.phrase} · {found.object}"


@pytest.mark.parametrize(
    ("event_name", "details", "expected"),
    [
        ("member_created", {"target_details": "Max", "as": "Developer"}, "Ada added Max as Developer · acme/shop"),
        ("member_created", {"custom_message": "Membership created"}, "Ada created membership · acme/shop"),
        ("authenticated_with_standard", {}, "Ada signed in · acme/shop"),
        ("sample", {"custom_message": "Opened the till"}, "Ada opened the till · acme/shop"),
        ("sample", {"custom_message": "Till North: created"}, "Ada created till North · acme/shop"),
        ("key", {"custom_message": "Key created", "target_details": "key 1"}, "Ada created key 1 · acme/shop"),
        (
            "ci_variable_protected_updated",
            {"change": "protected", "from": False, "to": True, "target_details": "KEY"},
            "Ada switched the protection of a variable on: KEY · acme/shop",
        ),
    ],
    ids=["phrase", "incomplete", "sign-in", "other", "passive", "target", "switch"],
)
def test_an_event_is_a_sentence(event_name, details, expected):
    assert sentence(event_name, author_name="Ada", entity_path="acme/shop", **details) == expected


def test_an_event_without_author_is_one_of_the_service():
    assert sentence("user_created", "User", author_name="(System)", entity_path="max") == (
        "The service created the user · max"
    )


def test_every_phrase_can_be_filtered_by_or_is_rare():
    assert {*PHRASES} - {*TITLES} == {"user_recovery_codes_generated"}
