"""Permissions of every page for every role."""

from __future__ import annotations

import pytest

from project_service.domain.access_levels import Role, Visibility
from project_service.domain.projects import DISABLED
from project_service.kit.db.session import db
from tests.security.test_roles import GROUP, INSTANCE, PROJECT
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, PEOPLE, RITA, ROLES, SAM
from tests.support.visitors import addresses, page_rules

ANYBODY, SIGNED_IN = -2, -1

ADMINISTRATOR = 100
# pages that need another role than their ability: what they show, or whom they are about, decides, too
NEEDED = {
    "/<path:full_path>": Role.GUEST,
    "/uploads/-/system/project/avatar/<int:project_id>/<filename>": Role.GUEST,
    "/uploads/-/system/group/avatar/<int:group_id>/<filename>": Role.GUEST,
    "/-/project/<int:project_id>/uploads/<secret>/<filename>": Role.GUEST,
    "/<path:project>/-/settings/<page>": Role.MAINTAINER,
    "/<path:project>/-/error_tracking/<error_id>/notes/<int:comment_id>/edit": Role.MAINTAINER,
    "/<path:project>/-/error_tracking/<error_id>/notes/<int:comment_id>/delete": Role.MAINTAINER,
    "/<path:project>/-/project_members/<int:user_id>/remove": Role.MAINTAINER,
    "/groups/<path:group>/-/group_members/<int:user_id>/remove": Role.OWNER,
    "/<path:project>/-/issues/<int:iid>/edit": Role.REPORTER,
    # in these tests the owner alone has a role in the group
    "/groups/<path:group>/-/milestones/new": Role.OWNER,
    "/groups/<path:group>/-/milestones/<int:iid>/edit": Role.OWNER,
    "/groups/<path:group>/-/milestones/<int:iid>/delete": Role.OWNER,
    "/groups/<path:group>/-/labels/new": Role.OWNER,
    "/groups/<path:group>/-/labels/<int:label_id>/edit": Role.OWNER,
    "/groups/<path:group>/-/labels/<int:label_id>/delete": Role.OWNER,
    "/<path:project>/-/milestones/<int:iid>/promote": Role.OWNER,
    "/<path:project>/-/labels/<int:label_id>/promote": Role.OWNER,
    "/<path:project>/-/issues/<int:iid>/notes/<int:note>/edit": Role.MAINTAINER,
    "/<path:project>/-/issues/<int:iid>/notes/<int:note>/delete": Role.MAINTAINER,
}
DOWNLOAD = "/<path:project>/-/settings/ci_cd/job_variables/download"
# pages that are 404 for users without permission
HIDDEN = (
    "/<path:project>/-/alert_management",
    "/<path:project>/-/settings/operations/integrations/<int:integration_id>/test",
)
# members of the project see its group, but have no role in it
RANKS = {ADA: ADMINISTRATOR, SAM: SIGNED_IN, NOBODY: ANYBODY, **ROLES}


def roles_of_pages(app):
    """The role that each page needs in a private project and group: that of its ability, or an exception."""
    by_ability = INSTANCE | {ability: needed for ability, (needed, _) in (PROJECT | GROUP).items()}
    rules = page_rules(app, "GET")
    return {rule.rule: NEEDED.get(rule.rule, by_ability[app.view_functions[rule.endpoint].ability]) for rule in rules}


def status_for(person, rule, needed):
    """Return the status that a user gets for a page of a private project in a private group."""
    rank = RANKS[person]
    if rule == "/users/sign_in/two_factor":  # needs a password first
        return 302
    if person is NOBODY:
        return 200 if needed == ANYBODY else 302
    if rank >= needed:
        return 302 if rule in ("/users/sign_in", "/groups/<path:group>") else 200
    if needed == ADMINISTRATOR:
        return 403
    return 404 if rank == SIGNED_IN or rule.startswith(HIDDEN) else 403


def test_exceptions_are_pages_that_exist(app):
    assert NEEDED.keys() <= {rule.rule for rule in page_rules(app, "GET")}


@pytest.mark.parametrize("person", [*PEOPLE, NOBODY])
def test_pages_by_role(person, app, visit, values, people):
    token_id, own = 0, {}
    if person:
        own = sample_data.make_personal_notifications(people[person])
        sample_data.make_token(people[person])
        token_id = db.session.execute(db.text("SELECT max(id) FROM personal_access_tokens")).scalar_one()
    needed = roles_of_pages(app)
    pages = addresses(app, "GET", values | own | {"token_id": token_id}, needed)
    pages[DOWNLOAD] += "?format=json"
    visitor = visit(person)

    responses = {rule: visitor.get(address).status_code for rule, address in pages.items()}

    assert responses == {rule: status_for(person, rule, needed[rule]) for rule in pages}


@pytest.mark.parametrize(("person", "status"), [(NOBODY, 302), (SAM, 404), (GUS, 403), (DEV, 403)])
def test_hidden_forms_cannot_be_submitted(person, status, app, visit, values):
    needed = roles_of_pages(app)
    forms = {
        rule: address
        for rule, address in addresses(app, "POST", values | {"token_id": 0}, needed).items()
        if Role.MAINTAINER <= needed[rule] < ADMINISTRATOR
    }
    visitor = visit(person)
    fields = {"csrf_token": visitor.csrf_token()}

    responses = {rule: visitor.open("POST", address, data=fields).status_code for rule, address in forms.items()}

    assert len(forms) > 5
    assert responses == dict.fromkeys(forms, status)


def test_anonymous_visitors_sign_in_and_return(visitor, project):
    response = visitor.get("/acme/shop/-/settings/ci_cd?reveal=1")

    assert response.location == "/users/sign_in?next=/acme/shop/-/settings/ci_cd?reveal%3D1"


def test_a_hidden_project_looks_missing_to_anonymous_visitors(visitor, project):
    hidden, missing = visitor.get("/acme/shop"), visitor.get("/acme/none")

    assert (hidden.status_code, hidden.location) == (302, "/users/sign_in?next=/acme/shop")
    assert (missing.status_code, missing.location) == (302, "/users/sign_in?next=/acme/none")


def test_a_hidden_project_looks_missing_to_non_members(visit, project):
    visitor = visit(SAM)

    hidden, missing = visitor.get("/acme/shop"), visitor.get("/acme/none")

    assert hidden.status_code == missing.status_code == 404
    assert without_numbers(hidden.text) == without_numbers(missing.text)


def without_numbers(text):
    return "\n".join(line for line in text.splitlines() if "Request" not in line and "csrf" not in line)


def test_anonymous_visitors_see_public_projects_and_groups(visitor, project, group):
    project.visibility = group.visibility = Visibility.PUBLIC
    db.session.commit()

    responses = [visitor.get(path).status_code for path in ("/acme/shop", "/acme", "/acme/shop/-/settings/ci_cd")]

    assert responses == [200, 200, 302]


def test_a_non_member_cannot_change_a_public_project(visit, project, group):
    project.visibility = group.visibility = Visibility.PUBLIC
    db.session.commit()

    assert visit(SAM).get("/acme/shop/-/settings/ci_cd").status_code == 403


def test_user_pages_are_public_and_missing_ones_are_404(visit, people):
    assert [visit(SAM).get(f"/{name}").status_code for name in ("max", "none")] == [200, 404]


def test_a_private_profile_shows_nothing_to_others(visit, people):
    people[MAX].private_profile, people[MAX].bio = True, "Once a sailor."
    db.session.commit()

    assert "Once a sailor." not in visit(SAM).get("/max").text
    assert "Once a sailor." in visit(MAX).get("/max").text


def test_a_token_of_another_user_cannot_be_revoked(visit, people):
    sample_data.make_token(people[OLIVE])
    token_id = db.session.execute(db.text("SELECT max(id) FROM personal_access_tokens")).scalar_one()

    response = visit(MAX).send(f"/-/profile/personal_access_tokens/{token_id}/revoke")

    assert response.status_code == 404
    assert not db.session.execute(db.text("SELECT revoked FROM personal_access_tokens")).scalar_one()


@pytest.mark.parametrize(("person", "tabs"), [(MAX, True), (RITA, False), (GUS, False)])
def test_settings_are_linked_for_users_with_a_section(person, tabs, visit, project):
    assert ("/acme/shop/-/settings/" in visit(person).get("/acme/shop").text) is tabs


def test_settings_pages_need_a_permitted_section(maintainer, project):
    project.builds_access_level = DISABLED
    db.session.commit()

    text = maintainer.get("/acme/shop/-/settings/repository").text

    assert "/-/settings/operations" in text
    assert "/-/settings/ci_cd" not in text
    assert maintainer.get("/acme/shop/-/settings/ci_cd").status_code == 403


@pytest.mark.parametrize("name", ["general/x", "nonsense", "ci_cd%20"])
def test_a_settings_page_that_does_not_exist_is_not_found(name, maintainer, project):
    assert maintainer.get(f"/acme/shop/-/settings/{name}").status_code == 404


def test_members_may_leave_but_not_remove_others(visit, project, people):
    visitor, members = visit(GUS), "/acme/shop/-/project_members"

    others = visitor.send(f"{members}/{people[DEV].id}/remove").status_code
    own = visitor.send(f"{members}/{people[GUS].id}/remove")

    assert (others, own.status_code, own.location) == (403, 302, "/")
    assert visitor.get("/acme/shop").status_code == 404
