"""The arrays ``allowed_to_…`` of protected branches and tags through HTTP."""

from __future__ import annotations

import pytest

from tests.support.sample_data import MAX


def path(project, kind, *more):
    return "/".join((f"/projects/{project.id}/protected_{kind}", *more))


def levels(answer, kind):
    return [row["access_level"] for row in answer[f"{kind}_access_levels"]]


def entries(*values):
    return [{"access_level": level} for level in values]


@pytest.mark.parametrize(
    ("values", "level"), [((0,), 0), ((30,), 30), ((40,), 40), ((30, 40), 40), ((30, 0), 0), ((40, 0), 0), ((), 40)]
)
def test_the_strictest_level_is_applied(values, level, project, as_):
    client, sent = as_(MAX), entries(*values)

    tag = client.post(path(project, "tags"), json={"name": "v*", "allowed_to_create": sent})
    branch = client.post(
        path(project, "branches"), json={"name": "b", "allowed_to_push": sent, "allowed_to_merge": sent}
    )

    assert (tag.status_code, levels(tag.json, "create")) == (201, [level])
    assert (branch.status_code, levels(branch.json, "push"), levels(branch.json, "merge")) == (201, [level], [level])


def test_an_explicit_level_counts_beside_entries(project, as_):
    body = {"name": "b", "push_access_level": 40, "allowed_to_push": entries(30), "merge_access_level": 30}

    branch = as_(MAX).post(path(project, "branches"), json=body).json

    assert (levels(branch, "push"), levels(branch, "merge")) == ([40], [30])


@pytest.mark.parametrize("entry", [{"user_id": 6}, {"group_id": 2}, {"deploy_key_id": 1}, {}, {"user": "max"}])
@pytest.mark.parametrize("name", ["allowed_to_push", "allowed_to_merge", "allowed_to_unprotect", "allowed_to_create"])
def test_what_is_no_level_is_refused_and_nothing_is_stored(name, entry, project, as_):
    kind = "tags" if name == "allowed_to_create" else "branches"

    response = as_(MAX).post(path(project, kind), json={"name": "one", name: [*entries(40), entry]})

    text = f"{name}: only access levels are supported"
    assert (response.status_code, response.json) == (422, {"message": [text]})
    assert as_(MAX).get(path(project, kind, "one")).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status", "refusal"),
    [
        (
            {"allowed_to_push": entries(60)},
            400,
            {"error": "allowed_to_push[0][access_level] does not have a valid value"},
        ),
        ({"allowed_to_push": ["x"]}, 400, {"error": "allowed_to_push is invalid"}),
        (
            {"allowed_to_unprotect": entries(30)},
            422,
            {"message": ["allowed_to_unprotect: only access level 40 is supported"]},
        ),
        ({"code_owner_approval_required": True}, 422, {"message": ["Code owner approval is not available"]}),
    ],
)
def test_other_access_is_refused(fields, status, refusal, project, as_):
    client = as_(MAX)
    client.post(path(project, "branches"), json={"name": "present"})

    responses = [
        client.post(path(project, "branches"), json={"name": "b"} | fields),
        client.patch(path(project, "branches", "present"), json=fields),
    ]

    assert [(response.status_code, response.json) for response in responses] == [(status, refusal)] * 2


def test_a_change_applies_entries_by_id_or_without(project, as_):
    client, branch = as_(MAX), path(project, "branches", "frozen")
    row = client.post(path(project, "branches"), json={"name": "frozen", "push_access_level": 0}).json["id"]

    def pushing(*sent):
        response = client.patch(branch, json={"allowed_to_push": list(sent)})
        return response.status_code, levels(client.get(branch).json, "push")

    assert pushing({"access_level": 40}) == (200, [40])
    assert pushing({"id": row, "access_level": 30}) == (200, [30])
    assert pushing({"id": row}) == (200, [30])
    assert pushing({"id": row, "_destroy": True}, {"access_level": 40}) == (200, [40])
    assert pushing({"id": row, "_destroy": True}) == (200, [0])
    assert pushing({"id": row + 1, "access_level": 30}) == (404, [0])
    assert pushing({"access_level": 40}, {"user_id": 6}) == (422, [0])
    assert levels(client.get(branch).json, "merge") == [40]
