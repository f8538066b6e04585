"""The members page: suggestions, invitations by mail, and members of another project."""

from __future__ import annotations

import dataclasses
import re

import pytest
from flask import Flask

from project_service.areas.members.models import INVITATION_LIFETIME, Invitation
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import user_by
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.mails import queued_mails
from tests.support.sample_data import MAX, SAM, add_member, make_project

MEMBERS = "/acme/shop/-/project_members"
LINK = re.compile(r"https?://[^/]+(/-/invitations/\S+)")
NINA = {"name": "Nina", "username": "nina", "password": "green-tea-4711"}


@pytest.fixture
def mails(app: Flask, monkeypatch):
    settings = dataclasses.replace(app.config["SETTINGS"], smtp_host="mail.example.org")
    monkeypatch.setitem(app.config, "SETTINGS", settings)


def invite(visitor, email="nina@example.org", level=Role.DEVELOPER):
    return visitor.send(MEMBERS, username=email, access_level=int(level))


def link():
    return LINK.search(queued_mails()[-1].body)[1]


def role_of(user, project):
    return db.session.query(Membership.access_level).filter_by(user_id=user.id, project_id=project.id).scalar()


def test_somebody_without_an_account_creates_one_by_the_mailed_link(mails, maintainer, visitor, project):
    invite(maintainer)

    response = visitor.send(link(), **NINA)

    nina = user_by("nina")
    assert (response.status_code, response.location) == (302, "/users/sign_in?next=/acme/shop")
    assert (nina.email, role_of(nina, project)) == ("nina@example.org", Role.DEVELOPER)
    assert db.session.query(Invitation).count() == 0


def test_a_signed_in_user_accepts_with_the_own_account(mails, maintainer, visit, project, people):
    invite(maintainer)

    response = visit(SAM).send(link())

    assert response.location == "/acme/shop"
    assert role_of(people[SAM], project) == Role.DEVELOPER


def test_an_invitation_works_once_and_not_after_it_was_revoked(mails, maintainer, visit, project):
    invite(maintainer)
    first = link()
    number = db.session.query(Invitation.id).scalar()

    revoked = maintainer.send(f"{MEMBERS}/invitations/{number}/revoke")

    assert revoked.location == MEMBERS
    assert [visit(SAM).get(first).status_code, visit(SAM).get(f"{first}x").status_code] == [404, 404]


def test_an_old_invitation_is_not_valid(mails, maintainer, visit, project, monkeypatch):
    invite(maintainer)
    address, later = link(), clock.now() + INVITATION_LIFETIME
    db.session.query(Invitation).update({"created_at": later - INVITATION_LIFETIME * 2})
    db.session.commit()

    assert visit(SAM).get(address).status_code == 404


def test_an_inviter_who_may_not_add_members_any_more_lets_nobody_in(mails, maintainer, visit, project, people):
    invite(maintainer)
    db.session.query(Membership).filter_by(user_id=people[MAX].id).update({"access_level": Role.DEVELOPER})
    db.session.commit()

    response = visit(SAM).send(link())

    assert (response.status_code, role_of(people[SAM], project)) == (422, None)
    assert "may not add members any more" in response.text


@pytest.mark.parametrize(
    ("email", "level", "text"),
    [
        ("nina@", Role.DEVELOPER, "is not a valid e-mail address"),
        ("nina@example.org", Role.OWNER, "Not a valid choice"),
    ],
    ids=["address", "role"],
)
def test_a_wrong_invitation_is_refused_at_its_field(email, level, text, mails, maintainer, project):
    response = invite(maintainer, email, level)

    assert (response.status_code, text in response.text) == (422, True)
    assert db.session.query(Invitation).count() == 0


def test_without_mail_nobody_is_invited(maintainer, project):
    assert "invitations are off on this server" in invite(maintainer).text


def test_a_whole_public_address_adds_its_user(maintainer, project, people):
    people[SAM].public_email = "sam@public.example.org"
    db.session.commit()

    invite(maintainer, "Sam@public.example.org", Role.REPORTER)

    assert role_of(people[SAM], project) == Role.REPORTER


@pytest.mark.parametrize(("typed", "names"), [("sam", [SAM]), ("s", []), ("dev", []), ("sam@example.org", [])])
def test_users_who_are_no_members_are_suggested(typed, names, maintainer, project):
    suggested = maintainer.get(f"{MEMBERS}/suggestions?search={typed}").json

    assert [person["username"] for person in suggested] == names


def test_members_of_another_project_are_added_with_their_roles(maintainer, project, people):
    source = make_project("till")
    add_member(source, people[MAX], Role.MAINTAINER)
    add_member(source, people[SAM], Role.REPORTER)

    response = maintainer.send(f"{MEMBERS}/import", source=source.full_path)

    assert response.location == MEMBERS
    assert role_of(people[SAM], project) == Role.REPORTER
    assert "1 member added." in maintainer.get(MEMBERS).text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("acme/shop", "is this project itself"),
        ("none/none", "is not a project that you see"),
        ("sam/till", "not a pro"),
    ],
    ids=["itself", "missing", "hidden"],
)
def test_members_are_imported_from_projects_of_the_maintainer_only(source, text, maintainer, project, people):
    make_project("till", people[SAM])

    response = maintainer.send(f"{MEMBERS}/import", source=source)

    assert (response.status_code, text in response.text) == (422, True)


def test_the_api_invites_lists_changes_and_revokes(mails, as_maintainer, project):
    path = f"/projects/{project.id}/invitations"

    made = as_maintainer.post(path, json={"email": "Nina@example.org,otto@example.org", "access_level": 30})
    changed = as_maintainer.put(f"{path}/nina@example.org", json={"access_level": 20})

    assert (made.status_code, made.json) == (201, {"status": "success"})
    assert (changed.status_code, changed.json["access_level"]) == (200, 20)
    assert list(changed.json) == [
        *("id", "invite_email", "created_at", "access_level", "expires_at", "user_name", "created_by_name"),
    ]
    assert as_maintainer.delete(f"{path}/OTTO@example.org").status_code == 204
    assert [one["invite_email"] for one in as_maintainer.get(f"{path}?query=example").json] == ["nina@example.org"]
    assert len(queued_mails()) == 2


def test_the_api_says_whom_it_left_out_and_why(mails, as_maintainer, project, people):
    path = f"/projects/{project.id}/invitations"
    fields = {"email": ["nina@example.org", "no address"], "user_id": [people[SAM].id, people[MAX].id]}

    made = as_maintainer.post(path, json={**fields, "access_level": 30})

    assert (made.status_code, made.json["status"]) == (201, "error")
    assert made.json["message"] == {
        "no address": "Address is not a valid e-mail address",
        "max": "Member already exists",
    }
    assert role_of(people[SAM], project) == Role.DEVELOPER
    assert [one["invite_email"] for one in as_maintainer.get(path).json] == ["nina@example.org"]


@pytest.mark.parametrize(
    ("method", "name", "fields", "status"),
    [
        ("POST", "", {"access_level": 30}, 400),
        ("POST", "", {"email": "nina@example.org"}, 400),
        ("POST", "", {"email": "nina@example.org", "access_level": 50}, 201),
        ("POST", "", {"email": [f"n{n}@example.org" for n in range(101)], "access_level": 30}, 400),
        ("PUT", "/nobody@example.org", {"access_level": 30}, 404),
        ("PUT", "/nina@example.org", {}, 400),
        ("PUT", "/nina@example.org", {"access_level": 33}, 400),
        ("DELETE", "/nobody@example.org", None, 404),
    ],
    ids=["nobody", "no role", "owner", "too many", "unknown", "nothing", "no such role", "delete unknown"],
)
def test_refused_invitations_change_nothing(method, name, fields, status, mails, as_maintainer, project):
    path = f"/projects/{project.id}/invitations"
    as_maintainer.post(path, json={"email": "nina@example.org", "access_level": 20})

    response = as_maintainer.open(method, f"{path}{name}", json=fields)

    assert response.status_code == status
    assert [one["access_level"] for one in as_maintainer.get(path).json] == [20]
