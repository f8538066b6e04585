"""``project-service variables``: export and import on this server, export from another one."""

from __future__ import annotations

import json
import stat

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from project_service.areas.variables.dotenv import parse
from project_service.areas.variables.models import Variable
from project_service.cli import main
from project_service.cli import variables as command
from project_service.domain.audit.models import AuditEvent
from project_service.kit.db.session import db, reading, unit_of_work
from tests.support.sample_data import OLIVE, reload

VALUE = 'it\'s \\ "two"\nlines $A \u00e9'


@pytest.fixture
def run(app, monkeypatch):
    """Runs a command on the database of the test."""
    monkeypatch.setattr(command, "create_app", lambda: app)

    def call(*words, **options):
        return CliRunner().invoke(main.main, ["variables", *words], **options)

    return call


@pytest.fixture
def store(project, as_maintainer):
    def create(key, value, **fields):
        response = as_maintainer.post(f"/projects/{project.id}/variables", json={"key": key, "value": value} | fields)
        assert response.status_code == 201

    return create


@pytest.fixture
def stored(app):
    """The values of a project, by key, read in a session of their own."""
    return lambda project: values_of(app, project)


def values_of(app, project):
    with app.app_context(), reading():
        return {one.key: one.value for one in db.session.query(Variable).filter_by(project_id=project.id)}


def test_job_variables_are_exported(run, project, store):
    store("A", VALUE)
    store("B", "secret-value", masked_and_hidden=True)
    store("C", "x$A", environment_scope="prod")

    assert run("export", "acme/shop", "--format", "shell").stdout == (
        "export A='it'\\''s \\ \"two\"\nlines $A \u00e9'\n# B: hidden\n"
    )
    assert "secret-value" in run("export", "acme/shop", "--hidden").stdout
    rows = json.loads(run("export", "acme/shop", "--environment", "prod", "--format", "json").stdout)
    assert [(row["key"], row["source_path"]) for row in rows] == [
        ("A", "acme/shop"),
        ("B", "acme/shop"),
        ("C", "acme/shop"),
    ]
    db.session.rollback()
    events = db.session.query(AuditEvent).filter_by(event_name="variable_viewed_export").all()
    assert [(event.author_id, event.details["variables"]) for event in events] == [(-1, "B")]


def test_files_are_written_for_their_owner_only(run, project, store, tmp_path):
    store("CONFIG", VALUE, variable_type="file")
    store("ARGUMENT", "--config=$CONFIG")
    directory = tmp_path / "files"

    printed = run("export", "acme/shop", "--files", str(directory), "--expand").stdout

    path = directory / "CONFIG"
    assert printed == f"ARGUMENT=--config={path}\nCONFIG={path}\n"
    assert path.read_text() == VALUE
    assert [stat.S_IMODE(one.stat().st_mode) for one in (directory, path)] == [0o700, 0o600]
    assert [one.name for one in directory.iterdir()] == ["CONFIG"]
    without = run("export", "acme/shop", "--expand")
    assert (without.stdout, without.stderr) == (
        "# ARGUMENT: refers to CONFIG, which is a file\n# CONFIG: a file\n",
        "ARGUMENT: refers to CONFIG, which is a file\n",
    )


def test_an_unknown_project_is_reported_with_status_1(run, project):
    refused = run("export", "acme/nothing")

    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


def test_existing_variables_are_skipped_or_replaced(run, project, store, stored, tmp_path):
    store("A", "old")
    store("B", "old", environment_scope="prod")
    file = tmp_path / ".env"
    file.write_text("A=new\nB=new\n")

    assert run("import", "acme/shop", str(file)).stdout == "skipped: A\ncreated: B\n1 created, 1 skipped\n"
    dry = run("import", "acme/shop", str(file), "--replace", "--dry-run").stdout
    assert dry == "would be replaced: A\nwould be replaced: B\n2 replaced (dry run: nothing was changed)\n"
    assert stored(project)["A"] == "old"
    run("import", "acme/shop", str(file), "--replace", "--raw")
    assert stored(project)["A"] == "new"


def test_an_invalid_line_stops_the_import_without_printing_values(run, project, stored):
    too_short = run("import", "acme/shop", "-", "--masked", input="A=long-enough\nB=secret\n")
    unreadable = run("import", "acme/shop", "-", input="A=1\nB='secret\n")

    assert (too_short.exit_code, unreadable.exit_code, stored(project)) == (1, 1, {})
    assert too_short.stderr == "Error: nothing was imported\nline 2: B: value is invalid\n"
    assert unreadable.stderr == "Error: nothing was imported: line 2 has a quote that is not closed\n"
    assert run("import", "acme/shop", "-", input="# nothing\n").stdout == "nothing to import\n"


# what quoting is about, what formats refuse, and anything else that can be a value
AWKWARD = st.text(st.sampled_from("'\"\\$`!# \t\n\r\ufeff\ufffe\U0001ffff\ufdd0aZ\u00e9"), max_size=8)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NOT_CARRIED = {
    "dotenv": lambda value: False,
    "shell": lambda value: False,
    "docker": lambda value: "\n" in value or value.endswith("\r"),
    "systemd": lambda value: any(is_noncharacter(character) for character in value),
}


def is_noncharacter(character):
    number = ord(character)
    return character == "\ufeff" or 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE


def read_back(form, content):
    """The variables of a text, as the tools of its format read them."""
    if form != "docker":
        return {entry.key: entry.value for entry in parse(content)}
    lines = [line.removesuffix("\r") for line in content.decode().split("\n")]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_value_round_trips_or_is_refused(run, project, stored):
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(AWKWARD | ANY_TEXT, min_size=1, max_size=20))
    def check(values):
        with unit_of_work():
            db.session.execute(delete(Variable))
        quoted = [f"K{number}='" + value.replace("'", "'\\''") + "'\n" for number, value in enumerate(values)]

        imported = run("import", "acme/shop", "-", input="".join(quoted).encode())

        expected = {f"K{number}": value for number, value in enumerate(values)}
        assert imported.exit_code == 0, imported.output
        assert stored(project) == expected
        for form, refuses in NOT_CARRIED.items():
            content = run("export", "acme/shop", "--format", form).stdout_bytes
            refused = {key for key, value in expected.items() if refuses(value)}
            assert read_back(form, content) == {key: expected[key] for key in expected.keys() - refused}
            assert {key for key in expected if f"# {key}: ".encode() in content} >= refused
        rows = json.loads(run("export", "acme/shop", "--format", "json").stdout_bytes)
        assert {row["key"]: row["value"] for row in rows} == expected
        dotenv = run("export", "acme/shop").stdout_bytes
        with unit_of_work():
            db.session.execute(delete(Variable))
        run("import", "acme/shop", "-", input=dotenv)
        assert stored(project) == expected

    check()


def test_variables_are_exported_from_another_server(run, project, store, client_of, people, monkeypatch):
    store("A", "x$B")
    store("B", "secret-value", masked_and_hidden=True)
    client, asked = client_of(people[OLIVE], "read_api"), []

    class Answer:
        def __init__(self, url):
            response = client.get(url.partition("/api/v4")[2])
            self.status, self.data = response.status_code, response.data

    def request(_method, url, headers, **options):
        asked.append((url, headers, options["redirect"]))
        return Answer(url)

    monkeypatch.setattr(command.urllib3, "request", request)
    words = ("export", "acme/shop", "--server", "https://ps.example.org/", "--environment", "a b")

    assert run(*words, env={"VARIABLES_TOKEN": "t"}).stdout == "A='x$B'\n# B: hidden\n"
    url = "https://ps.example.org/api/v4/projects/acme%2Fshop/variables/effective?environment=a+b&protected=false"
    assert asked == [(url, {"PRIVATE-TOKEN": "t"}, False)]
    assert run(*words, "--expand", "--token", "t").stdout.startswith("# A: refers to B, which is hidden\n")
    assert run(*words).exit_code == run(*words, "--hidden", "--token", "t").exit_code == 2
    missing = run("export", "acme/nothing", "--server", "https://ps.example.org", "--token", "t")
    assert (missing.exit_code, missing.stderr) == (
        1,
        "Error: https://ps.example.org has no project acme/nothing, or the token may not read its variables\n",
    )
    assert reload(project).path == "shop"


def test_invalid_keys_of_another_server_are_not_written(run, monkeypatch, tmp_path):
    row = {"value": "x", "variable_type": "file", "protected": False, "masked": False, "hidden": False, "raw": False}
    row |= {"environment_scope": "*", "source": "project", "source_path": "acme/shop"}

    class Answer:
        status = 200

    monkeypatch.setattr(command.urllib3, "request", lambda *_arguments, **_options: Answer)
    for key in ("../outside", "A\nrm", "", 5):
        Answer.data = json.dumps([row | {"key": key}]).encode()
        response = run(
            "export", "p", "--server", "https://ps.example.org", "--token", "t", "--files", str(tmp_path / "in")
        )
        assert (response.exit_code, response.stdout, list(tmp_path.iterdir())) == (1, "", [])
