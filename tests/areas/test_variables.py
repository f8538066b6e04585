"""CI/CD variables through HTTP (variables reference, section 14)."""

from __future__ import annotations

import pytest

from tests.worlds import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM


def variables(project, key=None):
    path = f"/projects/{project.id}/variables"
    return f"{path}/{key}" if key else path


@pytest.mark.parametrize(
    ("person", "status"),
    [(ADA, 200), (OLIVE, 200), (MAX, 200), (DEV, 403), (RITA, 403), (GUS, 403), (SAM, 404), (NOBODY, 401)],
)
def test_who_may_list_variables(person, status, project, as_):
    assert as_(person).get(variables(project)).status_code == status


def test_a_masked_value_needs_eight_characters(as_maintainer, project):
    answer = as_maintainer.post(variables(project), json={"key": "A", "value": "short", "masked": True})

    assert (answer.status_code, answer.json) == (400, {"message": {"value": ["is invalid"]}})
