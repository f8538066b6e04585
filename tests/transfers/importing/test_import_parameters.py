"""Parameters of an import, and the order of checks."""

from __future__ import annotations

import datetime as dt
import io

import pytest

from project_service.kit import clock
from tests.support.archives import make_archive, send
from tests.support.sample_data import (
    GUS,
    MAX,
    NOBODY,
    OLIVE,
)
from tests.transfers.importing.support import BAD_PATH, error_of, known_projects, stored

FORBIDDEN = {"message": "403 Forbidden"}


TOO_OFTEN = {"message": {"error": "This endpoint has been requested too many times. Try again later."}}


NOT_GZIP = {"message": {"error": "You need to upload a GitLab project export archive (ending in .gz)."}}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "path is missing, file is missing"),
        ({"path": "tools"}, "file is missing"),
        ({"path": "tools", "file": "text"}, "file is invalid"),
        ({"path": "tools", "file": None, "overwrite": "maybe"}, "overwrite is invalid"),
        ({"path": "tools", "file": None, "override_params": "text"}, "override_params is invalid"),
        (
            {"path": "tools", "file": None, "override_params[visibility]": "secret"},
            "override_params[visibility] does not have a valid value",
        ),
        (
            {"path": "tools", "file": None, "namespace": "acme", "namespace_id": "1", "namespace_path": "a"},
            "namespace, namespace_id, namespace_path are mutually exclusive",
        ),
        ({"file": None, "overwrite": "maybe"}, "path is missing, overwrite is invalid"),
    ],
)
def test_invalid_parameters_are_refused(fields, text, as_, people):
    if "file" in fields and fields["file"] is None:
        fields = fields | {"file": (io.BytesIO(make_archive({})), "it.tar.gz")}

    response = as_(MAX).post("/projects/import", data=fields, content_type="multipart/form-data")

    assert (response.status_code, response.json, known_projects()) == (400, {"error": text}, 0)


def test_the_file_cannot_be_sent_as_json(as_):
    response = as_(MAX).post("/projects/import", json={"path": "tools", "file": "x"})

    assert (response.status_code, response.json) == (400, {"error": "file is invalid"})


def test_authentication_is_checked_first(as_, settings):
    settings(import_sources=["git"], project_import_limit=1)

    response = as_(NOBODY).post("/projects/import", data={}, content_type="multipart/form-data")

    assert (response.status_code, response.json) == (401, {"message": "401 Unauthorized"})


@pytest.mark.parametrize("way", ["import", "remote-import"])
def test_a_disabled_source_is_checked_before_parameters(way, as_, settings, project):
    settings(import_sources=["git"])

    response = as_(MAX).post(f"/projects/{way}", data={}, content_type="multipart/form-data")

    assert (response.status_code, response.json) == (403, FORBIDDEN)
    assert as_(MAX).get(f"/projects/{project.id}/import").status_code == 200


def test_parameters_are_checked_before_the_rate_limit_and_that_before_the_file_name(as_, settings):
    settings(project_import_limit=1)
    client = as_(MAX)

    responses = [
        client.post("/projects/import", data={}, content_type="multipart/form-data"),
        send(client, file="it.zip", namespace="nowhere"),
        send(client, file="it.zip", namespace="nowhere"),
    ]

    assert [response.status_code for response in responses] == [400, 422, 429]
    assert (responses[2].json, responses[2].headers["Retry-After"].isdigit()) == (TOO_OFTEN, True)


def test_the_file_name_is_checked_before_the_namespace_and_that_before_the_path(as_, group):
    client = as_(GUS)

    assert send(client, file="it.zip", namespace="nowhere").status_code == 422
    assert send(client, namespace="nowhere", path="-bad").status_code == 404
    assert send(client, path="-bad", name="Good").json == {"message": BAD_PATH}


@pytest.mark.both_databases
def test_local_and_remote_imports_share_a_limit_per_user(as_, settings):
    settings(project_import_limit=2)
    client = as_(MAX)

    statuses = [
        send(client).status_code,
        client.post("/projects/remote-import", json={"url": "http://a", "path": "b"}).status_code,
        client.post("/projects/remote-import", json={"url": "http://a", "path": "b"}).status_code,
        send(client).status_code,
        send(as_(OLIVE)).status_code,
    ]

    assert statuses == [201, 404, 429, 429, 201]


@pytest.mark.both_databases
def test_the_limit_resets_after_a_minute(as_, settings, monkeypatch):
    settings(project_import_limit=1)
    client = as_(MAX)
    first, second = send(client, path="a").status_code, send(client, path="b").status_code
    later = clock.now() + dt.timedelta(seconds=61)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert (first, second, send(client, path="c").status_code) == (201, 429, 201)


def test_there_is_no_limit_by_default(as_):
    client = as_(MAX)

    assert {send(client, path=f"tools{number}").status_code for number in range(8)} == {201}


@pytest.mark.parametrize("name", ["x.tgz", "x.zip", "x.tar", "x.tar.GZ", "gz", ""])
def test_the_name_of_the_file_has_to_end_in_gz(name, as_):
    response = send(as_(MAX), file=name)

    if name:
        assert (response.status_code, response.json) == (422, NOT_GZIP)
    else:  # browsers send an empty name for no file at all
        assert response.status_code in (400, 422)
    assert (known_projects(), stored()) == (0, [])


def test_the_request_does_not_read_the_archive(as_, bring):
    state = bring(b"no archive at all", file="anything.gz")

    assert error_of(state)


def test_a_file_above_the_setting_is_refused(as_, settings):
    settings(max_import_size=1)
    client = as_(MAX)

    response = send(client, bytes(1 + (1 << 20)))

    assert (response.status_code, response.json) == (413, {"message": "413 Request Entity Too Large"})
    assert (known_projects(), stored()) == (0, [])
    assert send(client, bytes(1 << 20)).status_code == 201


def test_a_body_far_above_the_setting_is_not_read(as_, settings):
    settings(max_import_size=1)

    response = send(as_(MAX), bytes(5 << 20))

    assert (response.status_code, stored()) == (413, [])


def test_a_setting_of_zero_means_no_limit(as_, settings):
    settings(max_import_size=0)

    assert send(as_(MAX), bytes(12 << 20)).status_code == 201
