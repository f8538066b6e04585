"""Fixtures: clients of a running service."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import gitlab
import pytest

from tests.contract.service import TOKEN, Service, shared


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service of this test run."""
    base = tmp_path_factory.getbasetemp()
    with shared((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "service") as found:
        yield found


@pytest.fixture(scope="session")
def service(running: Service) -> Service:
    """The running service; a module may override this fixture."""
    return running


@pytest.fixture(scope="session")
def client_with(service: Service) -> Iterator[Callable[..., gitlab.Gitlab]]:
    """Makes a python-gitlab client with a token."""
    made = []

    def make(token: str, **options: Any) -> gitlab.Gitlab:
        made.append(gitlab.Gitlab(service.url, private_token=token, **options))
        return made[-1]

    yield make
    for client in made:
        client.session.close()


@pytest.fixture(scope="session")
def gl(client_with: Callable[..., gitlab.Gitlab]) -> gitlab.Gitlab:
    """The administrator's client."""
    return client_with(TOKEN)


@pytest.fixture
def name() -> str:
    """A name that is not in use."""
    return f"n{secrets.token_hex(5)}"


@pytest.fixture
def person(gl: gitlab.Gitlab, name: str) -> Any:
    """A user."""
    return make_person(gl, f"{name}-person")


@pytest.fixture
def group(gl: gitlab.Gitlab, name: str) -> Any:
    """A private group."""
    return gl.groups.create({"name": name.title(), "path": name})


@pytest.fixture
def project(gl: gitlab.Gitlab, group: Any) -> Any:
    """A private project in the group."""
    return gl.projects.create({"name": "My.Shop", "path": "my.shop", "namespace_id": group.id})


def make_person(gl: gitlab.Gitlab, name: str) -> Any:
    """Create a user with a random password, which needs no hash."""
    fields = {"username": name, "name": name.title(), "email": f"{name}@example.org", "force_random_password": True}
    return gl.users.create(fields)
