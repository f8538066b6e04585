"""Pages of imports and exports: forms, progress and downloads."""

from __future__ import annotations

import datetime as dt
import errno
import html
import io
import re

import pytest
from sqlalchemy import update
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from project_service.domain import instance_settings
from project_service.domain.access_levels import Visibility
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project, find_project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.storage import Storage, storage
from project_service.settings import Settings
from project_service.transfers import queries
from project_service.transfers.models import (
    FAILED,
    FAILING,
    FINISHED,
    LOADING,
    STARTED,
    ImportFailure,
    ProjectExport,
    ProjectImport,
)
from project_service.transfers.remote import downloads
from tests.support import sample_data
from tests.support.archives import make_archive, make_issue, unpack
from tests.support.sample_data import ADA, DEV, GUS, MAX, OLIVE, SAM
from tests.support.visitors import store, store_export

NEW, SETTINGS, DOWNLOAD = "/projects/new/import", "/acme/shop/-/settings/general", "/acme/shop/download_export"
START = f"{SETTINGS}/export"
GZIP = b"\x1f\x8b"  # how a file in this format begins
WRONG = re.compile(r'<p class="wrong" id="(\w+)-wrong">(.*?)</p>')
LIVE_TEXT = re.compile(r'<p id="\w+-text" role="status" data-live>(.*?)</p>')


def archive_of(content=None, name="shop_export.tar.gz"):
    """A file as a browser sends it."""
    content = make_archive({"issues": [make_issue(1)]}) if content is None else content
    return FileStorage(io.BytesIO(content), name)


def send(visitor, **fields):
    """Submit the form of an import into the user's namespace."""
    chosen = re.search(r'<option selected value="(\d+)"', visitor.get(NEW).text)[1]
    own = {"name": "Second Shop", "path": "", "namespace_id": chosen, "file": archive_of()}
    return post(visitor, {"csrf_token": visitor.csrf_token(), **own, **fields})


def post(visitor, fields):
    """Submit a form; encoded here, since the test client would leave the file of a large one open."""
    boundary, body = encode_multipart(fields)
    return visitor.open("POST", NEW, data=body, content_type=f"multipart/form-data; boundary={boundary}")


def wrongs(response):
    """Return the errors by field."""
    return {name: html.unescape(text) for name, text in WRONG.findall(response.text)}


def text_of(response):
    """Return the text of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.text)).split())


def stage_of(response):
    """Return the status text of the transfer and the numbers of its progress bar (``None`` without a bar)."""
    bar = re.search(r"<progress aria-label=\"[^\"]+\"([^>]*)>", response.text)
    return LIVE_TEXT.search(response.text)[1], bar and tuple(int(number) for number in re.findall(r"\d+", bar[1]))


def turn(name, value):
    """Set an application setting."""
    instance_settings.change_settings({name: value})
    db.session.commit()


@pytest.fixture(autouse=True)
def _shop(project):
    """There is always the shop."""


@pytest.fixture
def remote(app):
    """Enable imports from remote servers."""
    instance_settings.replace_gate(instance_settings.IMPORT_PROJECT_FROM_REMOTE_FILE, "boolean", "true")
    db.session.commit()


@pytest.fixture
def imported(project, people):
    """Makes the shop a project that is, or was, imported."""

    def make(status, **fields):
        project.import_status, project.import_error = status, fields.pop("error", None)
        project.loading = status in ("scheduled", "started")
        return store(ProjectImport(project_id=project.id, project=project, user_id=people[MAX].id, **fields))

    return make


def test_an_import_shows_its_progress(maintainer, run_jobs):
    response = send(maintainer)
    waiting = maintainer.get(response.location)
    run_jobs()
    ended = maintainer.get(response.location)

    assert (response.status_code, response.location) == (302, "/max/second-shop/-/import")
    assert stage_of(waiting) == ("The import waits for its turn.", ())
    assert stage_of(ended) == ("The import is finished.", None)
    assert 'href="/max/second-shop">Go to the project</a>' in ended.text
    assert "Issue 1" in maintainer.get("/max/second-shop/-/issues").text


def test_an_import_overwrites_a_project_with_overrides(maintainer, run_jobs):
    send(maintainer)
    run_jobs()
    former = find_project("max/second-shop").id

    response = send(maintainer, description="Sells bread.", visibility="public", overwrite="y")
    run_jobs()

    found = find_project("max/second-shop")
    assert response.status_code == 302
    assert found.id != former
    assert (found.description, found.visibility) == ("Sells bread.", Visibility.PUBLIC)


def test_a_corrupt_archive_shows_an_error_page_with_advice(maintainer, run_jobs):
    response = send(maintainer, file=archive_of(GZIP + b" no archive at all"))
    run_jobs()
    text = text_of(maintainer.get(response.location))

    assert "Error importing repository into max/second-shop - " in text
    assert "Nothing of the archive was kept" in text
    assert "Import again" in text
    assert "has failed. What went wrong" in text_of(maintainer.get("/max/second-shop"))


def test_a_failed_import_is_deleted_and_its_slug_reused(maintainer, run_jobs):
    failed = send(maintainer, file=archive_of(GZIP + b" no archive at all"))
    run_jobs()
    shown = maintainer.get(failed.location).text

    asked = maintainer.get("/max/second-shop/-/import/delete")
    deleted = maintainer.send("/max/second-shop/-/import/delete")
    form = maintainer.get(deleted.location).text
    again = send(maintainer)
    run_jobs()

    assert 'href="/max/second-shop/-/import/delete"' in shown
    assert "Delete max/second-shop, whose import has failed?" in text_of(asked)
    assert deleted.status_code == 302
    assert 'value="Second Shop"' in form
    assert 'value="second-shop"' in form
    assert (again.status_code, again.location) == (302, "/max/second-shop/-/import")


@pytest.mark.parametrize(("name", "offered"), [("second-shop", "wanted"), ("Second Shop", "Second Shop")])
def test_after_a_failed_overwrite_the_wanted_slug_is_offered(name, offered, maintainer, run_jobs):
    failed = send(maintainer, file=archive_of(GZIP + b" no archive at all"))
    run_jobs()
    db.session.execute(update(ProjectImport).values(wanted_path="wanted"))
    db.session.execute(update(Project).values(name=name))
    db.session.commit()

    form = maintainer.get(maintainer.send(f"{failed.location}/delete").location).text

    assert f'value="{offered}"' in form
    assert 'value="wanted"' in form


@pytest.mark.parametrize(("person", "status"), [(OLIVE, 404), (DEV, 403)])
def test_only_owners_delete_and_only_failed_imports(person, status, visit, imported):
    imported("finished" if person == OLIVE else "failed")

    client = visit(person)

    assert client.get("/acme/shop/-/import/delete").status_code == status
    assert client.send("/acme/shop/-/import/delete").status_code == status
    assert "/-/import/delete" not in client.get("/acme/shop/-/import").text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"file": archive_of(name="x.zip")}, {"file": "Archive has to be a project export, a file that ends in “.gz”"}),
        ({"file": archive_of(b"", "")}, {"file": "Archive has to be chosen"}),
        ({"name": "", "path": ""}, {"name": "Project name can't be blank"}),
        ({"path": "-a"}, {"path": re.compile(r"Project slug can contain only letters")}),
        ({"name": "a" * 256, "path": "a"}, {"name": re.compile(r"Project name is too long")}),
        ({"namespace_id": "1000000"}, {"namespace_id": "Where Not a valid choice."}),
    ],
)
def test_errors_are_shown_at_their_fields(fields, expected, maintainer):
    response = send(maintainer, **fields)

    assert response.status_code == 422
    assert wrongs(response).keys() == expected.keys()
    assert all(re.match(text, wrongs(response)[name]) for name, text in expected.items())
    assert db.session.query(ProjectImport).count() == 0


def test_a_taken_path_shows_errors_and_leaves_no_file(maintainer, people):
    sample_data.make_project("second-shop", people[MAX], name="Second Shop")

    response = send(maintainer)

    assert (response.status_code, wrongs(response)) == (
        422,
        {"name": "Project name has already been taken", "path": "Project slug has already been taken"},
    )
    assert 'value="Second Shop"' in response.text
    assert db.session.query(ProjectImport).count() == 0
    assert list(storage().names("imports")) == []


def test_an_archive_that_is_too_large_is_refused(maintainer):
    turn("max_import_size", 1)
    content = GZIP + b"\0" * ((1 << 20) + 1)

    just_above, far_above = (send(maintainer, file=archive_of(content * times)) for times in (1, 3))

    assert (just_above.status_code, wrongs(just_above)) == (422, {"file": "Archive is larger than 1 MB"})
    assert (far_above.status_code, "<h1>Too large</h1>" in far_above.text) == (413, True)
    assert "At most 1 MB." in maintainer.get(NEW).text


def full(*_arguments):
    """A full disk."""
    raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/secret")


def test_a_full_disk_shows_an_error_at_the_file_field(maintainer, monkeypatch):
    monkeypatch.setattr(Storage, "store", full)

    response = send(maintainer)

    assert (response.status_code, wrongs(response)) == (
        422,
        {"file": "Archive has no room on the disk of this server; tell the operator"},
    )
    assert db.session.query(ProjectImport).count() == 0


@pytest.mark.usefixtures("no_room_for_temporary_files")
def test_a_full_temporary_disk_shows_an_error_page(maintainer):
    response = send(maintainer)

    assert (response.status_code, "<h1>No room left</h1>" in response.text) == (507, True)


def test_an_upload_may_be_larger_than_other_forms(maintainer):
    assert send(maintainer, file=archive_of(GZIP + b"\0" * (11 << 20))).status_code == 302


def test_a_personal_project_above_the_limit_is_refused(maintainer, people):
    people[MAX].projects_limit = 0
    db.session.commit()

    response = send(maintainer)

    assert (response.status_code, "Personal project creation is not allowed" in response.text) == (422, True)


def test_groups_are_offered_to_users_who_may_create_projects_in_them(visit, group):
    owner, guest = (visit(name).get(f"{NEW}?namespace_id={group.id}").text for name in (OLIVE, GUS))

    assert f'<option selected value="{group.id}">acme</option>' in owner
    assert ">acme</option>" not in guest


def test_an_import_counts_against_the_limit(maintainer):
    turn("project_import_limit", 1)

    responses = [send(maintainer, path=path).status_code for path in ("a", "b")]

    assert responses == [302, 429]


def test_a_project_above_the_size_limit_is_not_exported(maintainer, project):
    turn("max_export_size", 1)
    store(ProjectFile(project_id=project.id, path="uploads/a/b.txt", storage_name="x", size=(1 << 20) + 1))

    response = maintainer.send(START)

    assert (response.status_code, "The project size exceeds the export limit." in text_of(response)) == (422, True)
    assert db.session.query(ProjectExport).count() == 0


def test_the_form_needs_its_token(maintainer):
    response = post(maintainer, {"name": "x", "file": archive_of()})

    assert (response.status_code, db.session.query(ProjectImport).count()) == (400, 0)


def test_anonymous_clients_cannot_send_a_large_body(visitor):
    response = post(visitor, {"csrf_token": visitor.csrf_token(), "file": archive_of(b"\0" * (11 << 20))})

    assert (response.status_code, "<h1>Sign in first</h1>" in response.text) == (401, True)


def test_disabled_imports_are_not_offered(maintainer):
    turn("import_sources", ["github"])

    assert "Import project" not in maintainer.get("/projects/new").text
    assert maintainer.get(NEW).status_code == 403


def test_new_project_and_import_pages_link_to_each_other(maintainer):
    assert 'href="/projects/new/import">Import project</a>' in maintainer.get("/projects/new").text
    assert 'href="/projects/new">Create blank project</a>' in maintainer.get(NEW).text


def test_the_url_field_is_shown_only_when_enabled(maintainer):
    before = maintainer.get(NEW).text
    instance_settings.replace_gate(instance_settings.IMPORT_PROJECT_FROM_REMOTE_FILE, "boolean", "true")
    db.session.commit()

    assert ('name="url"' in before, 'name="url"' in maintainer.get(NEW).text) == (False, True)


def test_a_disabled_remote_import_is_explained(maintainer, visit):
    assert "an administrator has not switched that on" in text_of(maintainer.get(NEW))
    assert "/admin/features" in visit(ADA).get(NEW).text


def test_a_disabled_remote_import_refuses_a_url(maintainer):
    response = send(maintainer, source="url", url="https://elsewhere.example.com/x.gz", file=archive_of(b"", ""))

    assert wrongs(response) == {"file": "Archive has to be chosen"}


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", "can't be blank"),
        ("ftp://elsewhere.example.com/x.gz", "cannot be used: Only allowed schemes are http, https"),
        ("http://127.0.0.1/x.gz", "cannot be used: Requests to loopback addresses are not allowed"),
    ],
)
def test_an_unusable_url_shows_an_error_at_its_field(url, text, maintainer, remote):
    response = send(maintainer, source="url", url=url)

    assert (response.status_code, wrongs(response)) == (422, {"url": f"Address of the archive {text}"})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://ann:secret@127.0.0.1/a@b.gz?x=1", "http://127.0.0.1/a@b.gz?x=1"),
        ("http://127.0.0.1/a@b.gz", "http://127.0.0.1/a@b.gz"),
        (" ftp://ann:secret@a.example.com/x.gz", "ftp://a.example.com/x.gz"),
        ("https://ann:sec/ret@a.example.com/x.gz", "https://a.example.com/x.gz"),
        ("ann:secret@a.example.com", "a.example.com"),
    ],
)
def test_a_url_is_shown_again_without_credentials(url, shown, maintainer, remote):
    response = send(maintainer, source="url", url=url)

    assert response.status_code == 422
    assert re.search(r'<input[^>]* name="url"[^>]* value="([^"]*)"', response.text)[1] == shown
    assert not re.search("sec/?ret", response.text)


def test_an_archive_is_imported_from_a_url(maintainer, remote, monkeypatch):
    monkeypatch.setattr(downloads, "check", lambda url, allowed: None)  # the network

    response = send(maintainer, source="url", url=" https://elsewhere.example.com/x.gz ")

    assert response.location == "/max/second-shop/-/import"
    assert db.session.query(ProjectImport).one().url == "https://elsewhere.example.com/x.gz"


@pytest.mark.parametrize(
    ("status", "fields", "expected"),
    [
        ("scheduled", {}, ("The import waits for its turn.", ())),
        ("started", {"phase": LOADING}, ("The archive is being read.", ())),
        ("started", {"phase": LOADING, "rows_total": 0}, ("The archive is being read.", ())),
        (
            "started",
            {"phase": LOADING, "rows_done": 1200, "rows_total": 5000, "relations_done": 3, "relations_total": 12},
            ("Rows are being imported.", (5000, 1200)),
        ),
        (
            "started",
            {"phase": LOADING, "rows_done": 9, "rows_total": 9, "relations_done": 2, "relations_total": 2},
            ("Repository and files are stored.", (9, 9)),
        ),
        ("started", {"phase": FAILING}, ("The import has failed. What it brought is being removed.", ())),
        ("failed", {"error": "Bad archive"}, ("The import has failed.", None)),
        ("finished", {}, ("The import is finished.", None)),
    ],
)
def test_every_stage_of_an_import_has_text_and_progress_bar(status, fields, expected, maintainer, imported):
    imported(status, **fields)

    assert stage_of(maintainer.get("/acme/shop/-/import")) == expected


def test_an_import_that_ends_during_the_request_has_its_page(maintainer, imported, project, monkeypatch):
    imported("started", phase=LOADING)
    import_of = queries.import_of

    def ended_meanwhile(found):
        with db.engine.begin() as elsewhere:
            elsewhere.execute(update(Project).where(Project.id == project.id).values(import_status=FINISHED))
        return import_of(found)

    monkeypatch.setattr(queries, "import_of", ended_meanwhile)
    meanwhile = maintainer.get("/acme/shop/-/import")
    afterwards = maintainer.get("/acme/shop/-/import")

    assert "Go to the project" not in meanwhile.text
    assert "Refresh" in meanwhile.text
    assert "Go to the project" in afterwards.text
    assert "Refresh" not in afterwards.text


def test_numbers_are_shown_with_the_progress_bar(maintainer, imported):
    imported("started", phase=LOADING, rows_done=1200, rows_total=5000, relations_done=3, relations_total=12)

    response = maintainer.get("/acme/shop/-/import")

    assert "1,200 of 5,000 rows, 3 of 12 relations" in response.text
    address = re.search(r'href="([^"]+)">Refresh</a>', response.text)[1]
    assert maintainer.get(address).text.partition("<main")[2] == response.text.partition("<main")[2]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "Nothing was left out."), (1, "One row"), (100, "100 rows or files"), (103, "103 rows or files")],
)
def test_up_to_a_hundred_skipped_rows_are_listed(count, said, maintainer, imported, project):
    imported("finished")
    for line in range(1, count + 1):
        fields = {"exception_class": "X", "source": "x", "relation_name": "issues", "line_number": line}
        db.session.add(ImportFailure(project_id=project.id, exception_message=f"<Title {line}> is wrong", **fields))
    db.session.commit()

    response = maintainer.get("/acme/shop/-/import")

    assert said in response.text
    assert ("the latest 100 are shown" in response.text) is (count > 100)
    assert len(re.findall(r"&lt;Title \d+&gt; is wrong", response.text)) == min(count, 100)
    assert count == 0 or f'<td data-label="Line">{count}</td>' in response.text


def test_a_skipped_file_is_named_as_a_file(maintainer, imported, project):
    imported("finished")
    told = {"exception_class": "X", "exception_message": "The name", "source": "x", "relation_name": "uploads"}
    store(ImportFailure(project_id=project.id, **told))

    response = maintainer.get("/acme/shop/-/import")

    assert "One file of the archive could not be imported." in response.text
    assert '<td data-label="Line"><span class="muted">a file</span></td>' in response.text


@pytest.mark.parametrize(
    ("count", "days", "said"),
    [
        (0, 0, None),
        (1, 0, "One row or file of the archive could not be imported. What was left out"),
        (1200, 6, "1,200 rows or files of the archive could not be imported. What was left out"),
        (3, 8, None),
    ],
)
def test_a_project_shows_skipped_rows_for_a_week(count, days, said, maintainer, imported, project):
    imported("finished", ended_at=clock.now() - dt.timedelta(days=days))
    fields = {"exception_class": "X", "exception_message": "Title is wrong", "source": "x", "relation_name": "issues"}
    db.session.add_all(ImportFailure(project_id=project.id, line_number=line, **fields) for line in range(count))
    db.session.commit()

    text = text_of(maintainer.get("/acme/shop"))

    assert said is None or said in text
    assert ("left out" in text) is (said is not None)


def test_the_import_page_of_another_project_says_so(visit, project):
    assert "This project was not imported." in visit(GUS).get("/acme/shop/-/import").text


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("scheduled", "is being imported"),
        ("started", "is being imported"),
        ("failed", "has failed"),
        ("finished", None),
    ],
)
def test_a_project_page_shows_its_import(status, said, maintainer, imported):
    imported(status)

    text = maintainer.get("/acme/shop").text

    assert ("/acme/shop/-/import" in text, said is None or said in text) == (said is not None, True)


def test_a_project_is_exported_and_downloaded(maintainer, run_jobs):
    first = maintainer.send(START)
    waiting = maintainer.get(SETTINGS)
    run_jobs()
    ready = maintainer.get(SETTINGS)
    file = maintainer.get(DOWNLOAD)

    assert (first.status_code, first.location) == (302, f"{SETTINGS}#export")
    assert stage_of(waiting) == ("The export waits for its turn.", ())
    assert f'action="{START}"' not in waiting.text
    assert stage_of(ready) == ("", None)
    assert "Generate new export" in ready.text
    assert "in 23 hours" in ready.text
    assert file.headers["Content-Disposition"].startswith('attachment; filename="20')
    assert "tree/project.json" in unpack(file.data)


def test_without_an_export_a_button_is_offered(maintainer):
    text = text_of(maintainer.get(SETTINGS))

    assert "There is no export of this project. Export project" in text
    assert "e-mail" not in text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("The export waits for its turn.", ())),
        ({"state": STARTED}, ("The project is being read.", ())),
        ({"state": STARTED, "rows_done": 1, "rows_total": 4}, ("Rows are being written.", (4, 1))),
        ({"state": STARTED, "rows_done": 4, "rows_total": 4}, ("Repository and files are added.", (4, 4))),
    ],
)
def test_every_stage_of_an_export_has_text_and_keeps_the_old_file(fields, expected, maintainer, project):
    store_export(project)
    store(ProjectExport(project_id=project.id, relations_done=1, relations_total=4, **fields))

    response = maintainer.get(SETTINGS)

    assert stage_of(response) == expected
    assert "It can be downloaded until the new one is ready." in response.text
    assert maintainer.get(DOWNLOAD).status_code == 200


def test_a_double_click_starts_one_export(maintainer):
    responses = [maintainer.send(START).status_code for _ in range(2)]

    assert (responses, db.session.query(ProjectExport).count()) == ([302, 302], 1)


def test_a_failed_export_shows_the_reason_until_the_next_one(maintainer, project):
    store_export(project)
    store(ProjectExport(project_id=project.id, state=FAILED, error="No space left on device"))

    failed = text_of(maintainer.get(SETTINGS))
    maintainer.send(START)

    assert "The last export failed: No space left on device. The one before can still be downloaded." in failed
    assert "No space left" not in maintainer.get(SETTINGS).text


def test_an_export_with_a_failed_upload_can_be_downloaded(maintainer, project):
    store_export(project, error="Error uploading the project. Code 404: Not Found")

    text = text_of(maintainer.get(SETTINGS))

    assert "could not be sent. Error uploading the project. Code 404: Not Found" in text
    assert "Download export" in text


def test_a_removed_export_shows_a_page_that_offers_a_new_one(maintainer, project):
    export = store_export(project)
    export.updated_at = clock.now() - dt.timedelta(hours=25)
    db.session.commit()

    response = maintainer.get(DOWNLOAD)

    assert (response.status_code, response.mimetype) == (404, "text/html")
    assert "none was made, or it has expired" in response.text
    assert f'action="{START}"' in response.text


@pytest.mark.parametrize(
    ("age", "said"),
    [
        ({"hours": 1}, "in 22 hours"),
        ({"hours": 23, "minutes": 30}, "in 29 minutes"),
        ({"seconds": 86_370}, "in less than a minute"),
    ],
)
def test_the_expiry_is_shown_as_text(age, said, maintainer, project):
    store_export(project, updated_at=clock.now() - dt.timedelta(**age))

    assert f">{said}</time>" in maintainer.get(SETTINGS).text


def test_a_head_request_of_a_download_leaves_no_open_file(maintainer, project, monkeypatch):
    store_export(project)
    opened, begin = [], Storage.open

    def note(self, name):
        opened.append(begin(self, name))
        return opened[-1]

    monkeypatch.setattr(Storage, "open", note)

    assert maintainer.open("HEAD", DOWNLOAD).status_code == 200
    assert [file.closed for file in opened] == [True]


def test_page_and_api_downloads_share_a_limit(maintainer, as_, project):
    turn("project_download_export_limit", 1)
    store_export(project)

    responses = [as_(MAX).get(f"/projects/{project.id}/export/download"), maintainer.get(DOWNLOAD)]

    assert [response.status_code for response in responses] == [200, 429]
    assert "<h1>Too many requests</h1>" in responses[1].text


def test_starting_an_export_counts_against_the_limit(maintainer):
    turn("project_export_limit", 1)

    assert [maintainer.send(START).status_code for _ in range(2)] == [302, 429]


def test_disabled_exports_are_not_found(maintainer):
    turn("project_export_enabled", False)

    responses = [maintainer.get(DOWNLOAD), maintainer.send(START)]

    assert [response.status_code for response in responses] == [404, 404]
    assert START not in maintainer.get(SETTINGS).text


@pytest.mark.parametrize(("person", "status"), [(DEV, 403), (SAM, 404)])
def test_only_maintainers_export(person, status, visit):
    visitor = visit(person)

    assert [visitor.get(DOWNLOAD).status_code, visitor.send(START).status_code] == [status, status]


def test_the_page_announces_a_mail_when_mail_is_configured(app, maintainer, monkeypatch):
    settings = Settings.from_environment(
        {"PROJECT_SERVICE_SMTP_HOST": "mail.example.com", "PROJECT_SERVICE_SECRET_KEY": "k" * 64}
    )
    monkeypatch.setitem(app.config, "SETTINGS", settings)

    assert "You get an e-mail when the export is ready." in maintainer.get(SETTINGS).text


def test_a_project_may_be_named_like_the_download_path(visit, group):
    sample_data.make_project("download_export", group)

    response = visit(OLIVE).get("/acme/download_export")

    assert (response.status_code, "<h1>download_export</h1>" in response.text) == (200, True)


def test_a_file_that_is_no_gzip_is_refused_at_the_field_and_leaves_no_project(visit, project):
    visitor = visit(OLIVE)
    count = db.session.query(Project).count()

    response = send(visitor, file=archive_of(b"PK not an export"))

    assert response.status_code == 422
    assert wrongs(response) == {"file": "Archive is not a project export: it does not begin like a gzip file"}
    assert db.session.query(Project).count() == count


def test_a_finished_import_says_how_much_of_each_kind_came(visit, project, run_jobs):
    visitor = visit(OLIVE)
    address = send(visitor).location
    run_jobs()

    assert "What was imported Issues 1 Merge requests 0" in text_of(visitor.get(address))
