"""Downloads of exported archives."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.storage import storage
from project_service.transfers.exporting import exporter
from tests.transfers.exporting.support import NO_EXPORT, status, stored

NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d{3}_acme_shop_export\.tar\.gz")


def test_a_download_has_these_headers(as_maintainer, project, export):
    export()

    response = as_maintainer.get(f"/projects/{project.id}/export/download")

    name = re.search(r'filename="([^"]+)"', response.headers["Content-Disposition"])[1]
    assert NAME.fullmatch(name)
    assert response.headers["Content-Disposition"] == f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Transfer-Encoding"] == "binary"
    assert int(response.headers["Content-Length"]) == len(response.data)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("namespace/project", "2017-12-05_22-11-148_namespace_project_export.tar.gz"),
        ("a/b/c-d.e", "2017-12-05_22-11-148_a_b_c-d.e_export.tar.gz"),
        ("x" * 99, f"2017-12-05_22-11-148_{'x' * 30}_export.tar.gz"),
    ],
)
def test_a_download_has_this_file_name(path, name):
    moment = dt.datetime(2017, 12, 5, 22, 11, 35, 148_999, tzinfo=dt.UTC)

    assert exporter.file_name(path, moment) == name


def test_a_download_can_be_repeated(as_maintainer, project, export):
    export()

    responses = [as_maintainer.get(f"/projects/{project.id}/export/download").status_code for _ in range(3)]

    assert responses == [200, 200, 200]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("bytes=10-19", slice(10, 20)), ("bytes=100-", slice(100, None)), ("bytes=-7", slice(-7, None))],
)
def test_a_download_can_be_resumed(wanted, given, as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    whole = as_maintainer.get(address)

    part = as_maintainer.get(address, headers={"Range": wanted, "If-Range": whole.headers["ETag"]})

    first, last, _ = given.indices(len(whole.data))
    assert (whole.status_code, whole.headers["Accept-Ranges"]) == (200, "bytes")
    assert (part.status_code, part.data) == (206, whole.data[given])
    assert part.headers["Content-Range"] == f"bytes {first}-{last - 1}/{len(whole.data)}"
    assert int(part.headers["Content-Length"]) == len(part.data)


def test_a_range_past_the_end_is_416(as_maintainer, project, export):
    export()

    response = as_maintainer.get(f"/projects/{project.id}/export/download", headers={"Range": "bytes=99999999-"})

    assert (response.status_code, response.json) == (416, {"message": "416 Requested Range Not Satisfiable"})
    assert re.fullmatch(r"bytes \*/\d+", response.headers["Content-Range"])


@pytest.mark.parametrize(
    "asked", ["items=0-5", "bytes=abc", "bytes=0-1,4-5", "bytes=5-2", "bytes", "", "bytes=-9999999"]
)
def test_unsupported_ranges_return_the_complete_file(asked, as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    whole = as_maintainer.get(address)

    response = as_maintainer.get(address, headers={"Range": asked})

    assert (response.status_code, response.data, "Content-Range" in response.headers) == (200, whole.data, False)
    assert response.headers["Accept-Ranges"] == "bytes"


def test_ranges_need_a_strong_validator(as_maintainer, project, export):
    export()
    address, part = f"/projects/{project.id}/export/download", {"Range": "bytes=0-9"}
    tag = as_maintainer.get(address).headers["ETag"]

    head = as_maintainer.head(address, headers=part)
    weakly, strongly = (as_maintainer.get(address, headers=part | {"If-Range": one}) for one in (f"W/{tag}", tag))

    assert (head.status_code, weakly.status_code, strongly.status_code) == (200, 200, 206)
    assert int(head.headers["Content-Length"]) == len(weakly.data) > len(strongly.data) == 10


def test_a_range_of_an_older_file_returns_the_complete_file(as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    older = as_maintainer.get(address).headers["ETag"]
    export()

    response = as_maintainer.get(address, headers={"Range": "bytes=10-", "If-Range": older})

    assert response.status_code == 200
    assert response.headers["ETag"] != older
    assert len(response.data) == int(response.headers["Content-Length"])


def test_a_file_missing_in_the_storage_is_not_found(as_maintainer, project, export):
    export()
    for name in stored():
        storage().delete(name)

    response = as_maintainer.get(f"/projects/{project.id}/export/download")

    assert (response.status_code, response.json) == (404, {"message": "The project export file is not available yet"})


def test_an_export_expires_after_a_day(as_maintainer, project, export, monkeypatch):
    export()
    real, passed = clock.now, [dt.timedelta(hours=23, minutes=59)]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])
    clear_up()
    young = (status(as_maintainer, project), len(stored()))
    passed[0] = dt.timedelta(hours=24, minutes=1)
    expired = status(as_maintainer, project)
    response = as_maintainer.get(f"/projects/{project.id}/export/download")
    clear_up()

    assert (young, expired) == (("finished", 1), "none")
    assert (response.status_code, response.json, stored()) == (404, NO_EXPORT, [])


def clear_up():
    jobs.JOBS["transfers.jobs.clear_up"]()
    db.session.commit()
