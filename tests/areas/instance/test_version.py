"""The version of the instance (supporting resources reference, section 1)."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, MAX, NOBODY, SAM

ADDRESSES = ["/version", "/metadata"]


@pytest.mark.parametrize(("person", "status"), [(ADA, 200), (SAM, 200), (NOBODY, 401)])
def test_only_signed_in_users_read_the_version(person, status, as_):
    assert [as_(person).get(address).status_code for address in ADDRESSES] == [status] * 2


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_version_has_the_documented_keys(address, as_stranger):
    response = as_stranger.get(address)

    assert response.json["version"] == "13.8.1"
    assert isinstance(response.json["revision"], str)
    assert len(response.json["revision"]) == 11
    assert response.json["kas"] == {"enabled": False, "externalUrl": None, "externalK8sProxyUrl": None, "version": None}
    assert response.json["enterprise"] is False


@pytest.mark.parametrize("address", ADDRESSES)
def test_api_and_user_scopes_read_the_version(address, people, client_of):
    for scope, status in (("api", 200), ("read_api", 200), ("read_user", 200), ("read_repository", 403)):
        client = client_of(people[MAX], scope)
        assert (client.get(address).status_code, client.head(address).status_code) == (status, status), scope


def test_an_insufficient_scope_response_names_the_sufficient_scopes(people, client_of):
    response = client_of(people[MAX], "read_repository").get("/version")

    assert (response.json["error"], response.json["scope"]) == ("insufficient_scope", "read_user api read_api")
