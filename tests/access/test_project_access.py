"""Projects as permission checks read them, beside the rows of the projects."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import User
from project_service.domain.memberships import role_in
from project_service.domain.project_access import ProjectAccess, find_access
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import GUS, OLIVE, SAM

pytestmark = pytest.mark.both_databases


def test_the_role_is_that_of_other_checks(people, project, group):
    invited = sample_data.make_group()
    sample_data.add_member(invited, people[SAM], Role.MAINTAINER)
    sample_data.share(project, invited, Role.REPORTER)
    own = sample_data.make_project(namespace=people[GUS])

    for user in db.session.scalars(select(User)):
        found = [find_access(user.id, str(one.id)).role for one in (project, own)]

        assert (user.username, found) == (user.username, [role_in(user.id, one) for one in (project, own)])


def test_the_columns_are_those_of_the_project(people, project):
    access = find_access(people[SAM].id, project.full_path.upper())

    names = [field.name for field in dataclasses.fields(ProjectAccess) if field.name not in ("owner_id", "role")]
    assert [getattr(access, name) for name in names] == [getattr(project, name) for name in names]
    assert (access.owner_id, access.content_id) == (project.namespace.owner_id, project.content_id)


def test_a_project_that_is_being_deleted_is_not_found(people, project):
    project.deleting_since = dt.datetime.now(dt.UTC)
    db.session.commit()

    assert find_access(people[OLIVE].id, str(project.id)) is None
    assert find_access(None, project.full_path) is None
