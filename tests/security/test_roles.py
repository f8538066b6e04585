"""Every route of the API and everybody: who is let in, who is refused, and how.

What is expected is said here once more, by ability and apart from the rules of the program. An ability without a row,
and with it any new route, fails.
"""

from __future__ import annotations

import functools

import pytest
from sqlalchemy import update

from project_service.access.abilities import Ability
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from tests.support.route_survey import addresses, api_rules, body_of, sent
from tests.support.sample_data import ADA, NOBODY, OLIVE, PEOPLE, ROLES, SAM

pytestmark = pytest.mark.sqlite_only

ANYBODY, SIGNED_IN, SEES, ADMIN = -2, -1, 0, 100

# ability → the rank it takes in a private place, and in a public one
INSTANCE = {
    Ability.ANYBODY: ANYBODY,
    Ability.SIGNED_IN: SIGNED_IN,
    Ability.CREATE_GROUP: SIGNED_IN,
    Ability.IMPORT_PROJECTS: SIGNED_IN,
    Ability.ADMINISTER: ADMIN,
}
PROJECT = {
    Ability.READ_PROJECT: (Role.GUEST, ANYBODY),
    Ability.ADMIN_PROJECT: (Role.MAINTAINER,) * 2,
    Ability.OWN_PROJECT: (Role.OWNER,) * 2,
    Ability.READ_PROJECT_AUDIT_EVENTS: (Role.OWNER,) * 2,
    Ability.EXPORT_PROJECT: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_VARIABLES: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_PROJECT_MEMBERS: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_PROJECT_TOKENS: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_PROTECTED_TAGS: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_PROTECTED_BRANCHES: (Role.MAINTAINER,) * 2,
    Ability.ADMIN_OPERATIONS: (Role.MAINTAINER,) * 2,
    Ability.READ_NOTIFICATIONS: (Role.DEVELOPER,) * 2,
    Ability.ADMIN_NOTIFICATIONS: (Role.MAINTAINER,) * 2,
    Ability.READ_ALERTS: (Role.DEVELOPER,) * 2,
    Ability.READ_HEARTBEATS: (Role.DEVELOPER,) * 2,
    Ability.ADMIN_HEARTBEATS: (Role.MAINTAINER,) * 2,
    Ability.READ_SILENCES: (Role.DEVELOPER,) * 2,
    Ability.CREATE_SILENCES: (Role.DEVELOPER,) * 2,
    Ability.ADMIN_SILENCES: (Role.MAINTAINER,) * 2,
    Ability.READ_ERRORS: (Role.REPORTER,) * 2,
    Ability.UPDATE_ERRORS: (Role.DEVELOPER,) * 2,
    Ability.CREATE_ERROR_ISSUES: (Role.DEVELOPER,) * 2,
    Ability.DELETE_ERRORS: (Role.MAINTAINER,) * 2,
    Ability.READ_VULNERABILITIES: (Role.DEVELOPER,) * 2,
    Ability.DISMISS_VULNERABILITIES: (Role.DEVELOPER,) * 2,
    Ability.CREATE_SECURITY_REPORTS: (Role.DEVELOPER,) * 2,
    Ability.ADMIN_ENVIRONMENTS: (Role.DEVELOPER,) * 2,
    Ability.READ_ISSUES: (Role.GUEST, ANYBODY),
    Ability.CREATE_ISSUES: (Role.GUEST, SIGNED_IN),
    Ability.UPLOAD_FILES: (Role.GUEST,) * 2,
    Ability.ADMIN_ISSUES: (Role.REPORTER,) * 2,
    Ability.READ_ISSUE: (Role.GUEST, ANYBODY),
    Ability.CHANGE_ISSUE: (Role.GUEST, SIGNED_IN),
    Ability.COMMENT_ON_ISSUE: (Role.GUEST, SIGNED_IN),
    Ability.DELETE_ISSUE: (Role.OWNER,) * 2,
    Ability.READ_NOTE: (Role.GUEST, ANYBODY),
    Ability.CHANGE_NOTE: (Role.GUEST, SIGNED_IN),
    Ability.READ_MILESTONES: (Role.GUEST, ANYBODY),
    Ability.ADMIN_MILESTONES: (Role.DEVELOPER,) * 2,
    Ability.READ_MERGE_REQUESTS: (Role.REPORTER, ANYBODY),
    Ability.READ_CODE: (Role.REPORTER, ANYBODY),
    Ability.CONTRIBUTE_CODE: (Role.DEVELOPER,) * 2,
    Ability.PUSH_CODE: (Role.DEVELOPER,) * 2,
    Ability.READ_RELEASES: (Role.REPORTER, ANYBODY),
    Ability.ADMIN_RELEASES: (Role.DEVELOPER,) * 2,
    Ability.READ_WIKI: (Role.GUEST, ANYBODY),
    Ability.READ_SNIPPETS: (Role.GUEST, ANYBODY),
    Ability.READ_INTERNAL_SNIPPETS: (SIGNED_IN,) * 2,
    Ability.READ_PRIVATE_SNIPPETS: (Role.GUEST,) * 2,
    Ability.READ_CONFIDENTIAL: (Role.REPORTER,) * 2,
    Ability.READ_LABELS: (Role.GUEST, ANYBODY),
    Ability.ADMIN_LABELS: (Role.REPORTER,) * 2,
}
GROUP = {
    Ability.READ_GROUP: (SEES, ANYBODY),
    Ability.ADMIN_GROUP: (Role.OWNER,) * 2,
    Ability.ADMIN_GROUP_TOKENS: (Role.OWNER,) * 2,
    Ability.ADMIN_GROUP_LABELS: (Role.REPORTER,) * 2,
    Ability.ADMIN_GROUP_MILESTONES: (Role.DEVELOPER,) * 2,
    Ability.READ_GROUP_AUDIT_EVENTS: (Role.OWNER,) * 2,
    Ability.READ_GROUP_NOTIFICATIONS: (Role.OWNER,) * 2,
    Ability.ADMIN_GROUP_NOTIFICATIONS: (Role.OWNER,) * 2,
    Ability.CREATE_SUBGROUP: (Role.OWNER,) * 2,
    Ability.READ_NAMESPACE: (Role.GUEST,) * 2,
    Ability.OWN_NAMESPACE: (Role.OWNER,) * 2,
    Ability.CREATE_PROJECT: (Role.DEVELOPER,) * 2,
}
IN_PROJECT = {ADA: ADMIN, SAM: SIGNED_IN, NOBODY: ANYBODY, **ROLES}
# members of the project see its group, but have no role in it
IN_GROUP = dict.fromkeys(PEOPLE, SEES) | {ADA: ADMIN, OLIVE: Role.OWNER, SAM: SIGNED_IN, NOBODY: ANYBODY}


def expected(view, person, public):
    """The status of a refusal; ``None`` for who is let in."""
    ability = view.ability
    if ability in INSTANCE:
        needed, rank = INSTANCE[ability], IN_PROJECT[person]
    else:
        row, ranks = (PROJECT[ability], IN_PROJECT) if ability in PROJECT else (GROUP[ability], IN_GROUP)
        needed, rank = row[public], ranks[person]
    if person is NOBODY and getattr(view, "needs_user", False):
        return 401
    if rank >= needed:
        return None
    if ability in (Ability.READ_NAMESPACE, Ability.READ_ALERTS) or (
        ability not in INSTANCE and rank < SEES and not public
    ):
        return 404
    return 403


def test_every_ability_is_in_the_role_table():
    assert INSTANCE.keys() | PROJECT.keys() | GROUP.keys() == set(Ability)


@pytest.mark.parametrize("public", [False, True], ids=["private", "public"])
def test_every_route_admits_the_roles_of_the_table(public, app, filled, as_, put_back, document, project, group):
    if public:
        with unit_of_work():
            for place in (Project, Namespace):
                db.session.execute(update(place).values(visibility=Visibility.PUBLIC))
    clients = {person: as_(person) for person in (NOBODY, *reversed(PEOPLE))}
    put_back()
    wrong, let_in, read = {}, 0, functools.cache(lambda address: filled.get(address).json)

    for method, path, rule in api_rules(app):
        view = app.view_functions[rule.endpoint]
        body = body_of(document, method, path)
        for person, client in clients.items():
            refusal = expected(view, person, public)
            if public and refusal == expected(view, person, False):
                continue  # tried in the private place
            for address in concrete(path, read, project, group):
                response = client.open(method, address, **(sent(body) if body else {}))
                if method != "GET" and response.status_code < 400:
                    put_back()
                if is_right(response, refusal, person, view):
                    wrong.pop((person, method, path), None)
                    break
                wrong[person, method, path] = (response.status_code, response.text[:80], refusal)
            let_in += refusal is None

    assert (wrong, let_in > (50 if public else 200)) == ({}, True)


def concrete(path, read, project, group):
    """Addresses of a rule, with things of the project and the group; what is in no list is called 1.

    There are two, for nobody may block themselves, or take away the last owner.
    """
    path = path.replace("<project>", str(project.id)).replace("<group>", str(group.id))
    path = path.replace("<namespace>", str(group.id))
    found = addresses(path, read)
    return [*found[:1], *found[1:][-1:]] or [
        path.replace("<other>", "1").replace("<group_id>", "1").replace("<name>", "a_flag")
    ]


def is_right(response, refusal, person, view):
    """Whether a caller was refused in the right way, or admitted.

    An admitted caller may still be refused by a rule about the thing itself, but not an administrator. The access
    token of another user is answered with 401 (common reference, section 6).
    """
    if refusal is not None:
        return response.status_code == refusal
    refusals = {401, 403} if view.ability is Ability.SIGNED_IN else {403}
    return response.status_code < 500 and (
        response.status_code not in (401, 403) or (person is not ADA and response.status_code in refusals)
    )
