"""Requests made from the API's own document, as every role: no 5xx, and every answer is one that the document tells.

Half of the requests go to things that are really there. Three checks of the library are not those of this API:
``negative_data_rejection``, for parameters are coerced and unknown ones ignored (common reference, section 3);
``unsupported_method``, for who is not signed in hears that first; and ``ignored_auth``, for some answers are the same
whoever the caller is. What they look for is tested by hand in ``tests/areas`` and ``tests/security``.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
import schemathesis
from flask import Flask
from schemathesis import Config, engine
from schemathesis.engine import events
from sqlalchemy import text

from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.urls import API_PREFIX
from tests.support.route_survey import PART, addresses, api_rules
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM, make_token

ROLES = (ADA, OLIVE, MAX, DEV, RITA, GUS, SAM, NOBODY)
ANY_PART = "[^/]+"  # of a path, as a pattern
NOT_OURS = ("negative_data_rejection", "unsupported_method", "ignored_auth")
# an address that has another name now is never there, whatever was made before
RENAMED = {("GET /api/v4/projects/{project}/vulnerabilities", "ensure_resource_availability")}
REFUSALS = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]


@dataclass
class Found:
    """What a run has seen."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: dict[tuple[str, str], str] = field(default_factory=dict)


class Alive:
    """A WSGI layer that restores the account and token of the caller before each request: fuzzing takes them away."""

    def __init__(self, app: Flask, user_id: int | None, found: Found, addressed: dict[str, list[str]]) -> None:
        self.app, self.user_id, self.found, self.addressed = app, user_id, found, addressed
        self.turn = itertools.count()
        self.chance = random.Random(7)  # nothing secret

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.found.requests += 1
        if self.user_id is not None and next(self.turn) % 20 == 0:
            with self.app.app_context(), unit_of_work():
                user = {"user": self.user_id}
                revived = "UPDATE users SET state = 'active', deleting_since = NULL, admin = admin WHERE id = :user"
                db.session.execute(text(revived), user)
                again = "UPDATE personal_access_tokens SET revoked = false, expires_at = NULL WHERE user_id = :user"
                db.session.execute(text(again), user)
        self.lead(environ)
        return self.app(environ, start_response)

    def lead(self, environ: dict[str, Any]) -> None:
        """Every other time an address of the same form that is really there takes the place of a made-up one."""
        path = environ["PATH_INFO"]
        matching = [pattern for pattern in self.addressed if re.fullmatch(pattern, path)]
        # "/variables/effective" has the form of "/variables/<key>" too: the one with fewer variable parts is meant
        there = self.addressed[min(matching, key=lambda pattern: pattern.count(ANY_PART))] if matching else []
        if there and self.chance.random() < 0.5:
            address = API_PREFIX + self.chance.choice(there)
            environ["PATH_INFO"] = address
            environ["RAW_URI"] = environ["REQUEST_URI"] = f"{address}?{environ.get('QUERY_STRING', '')}"


@pytest.fixture
def addressed(app, filled):
    """Patterns of paths → addresses that are there."""
    read = functools.cache(lambda address: filled.get(address).json)
    return {API_PREFIX + PART.sub(ANY_PART, path): addresses(path, read) for _, path, _ in api_rules(app)}


def configuration(token: str | None, examples: int, seed: int) -> Config:
    """How the library goes about it."""
    checks: dict[str, Any] = {name: {"enabled": False} for name in NOT_OURS}
    checks["positive_data_acceptance"] = {"expected-statuses": ["2xx", "304", *REFUSALS]}
    return Config.from_dict(
        {
            "seed": seed,
            "continue-on-failure": True,
            "headers": {} if token is None else {"PRIVATE-TOKEN": token},
            "checks": checks,
            "generation": {"max-examples": examples, "no-shrink": True, "database": "none"},
            "phases": {
                "examples": {"enabled": False},
                "coverage": {"enabled": False},
                "stateful": {"max-steps": 6},
            },
        }
    )


def fuzz(app: Flask, user_id: int | None, token: str | None, addressed: Any, examples: int, seed: int) -> Found:
    """Run all phases once as one caller."""
    found = Found()
    alive = Alive(app, user_id, found, addressed)
    schema = schemathesis.openapi.from_wsgi(
        f"{API_PREFIX}/openapi.json", alive, config=configuration(token, examples, seed)
    )
    for event in engine.from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            note(found, event)
        elif isinstance(event, events.NonFatalError):
            found.problems[event.label, type(event.value).__name__] = str(event.value)[:500]
        elif isinstance(event, events.FatalError):
            raise event.exception
    return found


def note(found: Found, event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    for interaction in recorder.interactions.values():
        if interaction.response is not None:
            found.statuses[interaction.response.status_code] += 1
    for case_id, nodes in recorder.checks.items():
        for node in nodes:
            if node.failure_info is not None:
                case, response = recorder.cases[case_id].value, recorder.interactions[case_id].response
                told = f"{case.method} {case.formatted_path} {response and response.content[:200]!r}: "
                key = (f"{case.method} {case.operation.path}", node.name)
                if key not in RENAMED:
                    found.problems[key] = told + str(node.failure_info.failure)[:300]


CASES = [
    pytest.param(
        person,
        examples,
        least,
        id=f"{person}-{name}",
        marks=() if name == "few" and person in (ADA, NOBODY) else pytest.mark.nightly,
    )
    for person in ROLES
    for name, examples, least in (("few", 1, 80), ("many", 26, 2_500))
]


@pytest.mark.parametrize(("person", "examples", "least"), CASES)
def test_every_response_is_as_documented(person, examples, least, app, people, addressed):
    user_id = people[person].id if person else None
    token = make_token(people[person], "api", "sudo") if person else None
    db.session.remove()

    found = fuzz(app, user_id, token, addressed, examples, seed=ROLES.index(person) + 1)

    assert found.problems == {}
    assert found.requests >= least
    assert not [status for status in found.statuses if status >= 500]
