"""The commands of operators, on a data directory of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from project_service.cli import main
from project_service.kit.security import tokens
from tests.cli.conftest import process_restored

KEY_FILE = "secret_key"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A data directory with a database at the newest version."""
    directory = tmp_path_factory.mktemp("data")
    environment = {"PROJECT_SERVICE_DATA_DIR": str(directory), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
    with process_restored():
        response = CliRunner().invoke(main.main, ["db", "upgrade"], env=environment)
    assert response.exit_code == 0, response.output
    return directory


@pytest.fixture
def run(data_dir):
    """Runs a command; what it printed and its exit status."""

    def call(*words, **environment):
        environment = {"DATA_DIR": str(data_dir), "LOG_LEVEL": "ERROR"} | environment
        environment = {f"PROJECT_SERVICE_{name}": value for name, value in environment.items()}
        return CliRunner().invoke(main.main, list(words), env=environment)

    return call


def test_the_database_is_at_the_newest_version_after_an_upgrade(run):
    response = run("db", "check")

    assert (response.exit_code, "the database is at the newest version" in response.output) == (0, True)


def test_an_empty_database_is_not_at_the_newest_version(run, tmp_path):
    response = run("db", "check", DATA_DIR=str(tmp_path))

    assert (response.exit_code, "run project-service db upgrade" in response.output) == (1, True)


def test_an_upgrade_can_be_run_again(run):
    assert run("db", "upgrade").exit_code == 0


def test_the_key_file_is_private(run, data_dir):
    assert (data_dir / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_user_and_a_token_are_created(run, data_dir):
    made = run("user", "create", "tess", "--email", "tess@example.org", "--password", "correct horse", "--admin")
    token = run("token", "create", "tess", "--name", "t", "--scopes", "api, read_user", "--expires-at", "2030-01-01")

    assert (made.exit_code, made.output.startswith("created user tess with id ")) == (0, True)
    assert (token.exit_code, len(token.output.split())) == (0, 1)
    kept = b"".join(path.read_bytes() for path in data_dir.glob("project-service.db*"))
    assert token.output.strip().encode() not in kept
    assert b"correct horse" not in kept
    assert tokens.digest(token.output.strip()).encode() in kept


def test_a_taken_username_is_reported_in_one_line(run):
    run("user", "create", "tom", "--email", "tom@example.org", "--password", "correct horse")

    again = run("user", "create", "tom", "--email", "tom2@example.org", "--password", "correct horse")

    assert again.exit_code == 1
    assert again.output.startswith("project-service: ")
    assert len(again.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("tess", "--name", "t", "--scopes", "everything"), "everything"),
        (("tess", "--name", "t", "--scopes", "api", "--expires-at", "someday"), "not a date"),
        (("tess", "--name", "t"), "--scopes"),
    ],
)
def test_an_invalid_token_is_refused(words, text, run):
    response = run("token", "create", *words)

    assert (response.exit_code, text in response.output) == (2, True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("token", "create", "nobody", "--name", "t", "--scopes", "api"), "Error: there is no user nobody\n"),
        (("user", "disable-two-factor", "nobody"), "Error: there is no user nobody\n"),
        (("namespace", "set-plan", "no/such", "gold"), "Error: there is no group no/such\n"),
        (("variables", "export", "no/such"), "Error: there is no project no/such\n"),
    ],
)
def test_a_refusal_names_what_there_is_not(words, text, run):
    response = run(*words)

    assert (response.exit_code, response.output) == (1, text)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("max_import_size", "50", "50"),
        ("signup_enabled", "false", "False"),
        ("default_group_visibility", "public", "'public'"),
        ("outbound_local_requests_whitelist", "example.com, 10.0.0.0/8", "['example.com', '10.0.0.0/8']"),
        ("outbound_local_requests_whitelist", "", "[]"),
        ("personal_access_token_prefix", "glpat-", "'glpat-'"),
    ],
)
def test_a_setting_is_set_and_shown(name, text, shown, run):
    set_, got = run("setting", "set", name, text), run("setting", "get", name)

    assert (set_.exit_code, set_.output, got.output) == (0, f"{name} = {shown}\n", f"{name} = {shown}\n")
    assert f"{name} = {shown}\n" in run("setting", "get").output


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("max_import_size", "much"), 1, "max_import_size is invalid"),
        (("max_import_size", "--", "-1"), 1, "must be greater than or equal to 0"),
        (("outbound_local_requests_whitelist", "http://a"), 1, "is invalid"),
        (("colour", "blue"), 2, "colour"),
    ],
)
def test_an_invalid_setting_is_refused(words, status, text, run):
    response = run("setting", "set", *words)

    assert (response.exit_code, text in response.output) == (status, True)
    assert "Traceback" not in response.output


def test_an_unusable_file_is_named(run, data_dir, tmp_path):
    place = tmp_path / "file"
    place.touch()

    in_it, elsewhere = run("db", "check", DATA_DIR=f"{place}/data"), run("backup", f"{place}/backup")

    assert (in_it.exit_code, elsewhere.exit_code) == (1, 1)
    assert in_it.output.startswith("project-service: PROJECT_SERVICE_DATA_DIR: cannot be used ([Errno 20]")
    assert re.fullmatch(rf"project-service: {place}/\S+ cannot be used \(Not a directory\)\n", elsewhere.output)


def test_features_are_switched_and_listed(run):
    before = run("feature", "list").output
    run("feature", "enable", "my_feature")
    on = run("feature", "list").output
    run("feature", "disable", "my_feature")

    assert (before, on, run("feature", "list").output) == ("", "my_feature: on\n", "my_feature: off\n")


def test_the_doctor_reports_problems_with_advice(run):
    response = run("doctor")

    lines = response.output.splitlines()
    assert response.exit_code == 1
    assert [line[:4] for line in lines if line.split()[1] in ("database:", "migrations:", "secrets:", "storage:")] == [
        "ok  "
    ] * 4
    assert [line[:4] for line in lines if line.split()[1] in ("redis:", "worker:")] == ["BAD "] * 2
    assert "project-service serve" in response.output


def test_secrets_are_rotated_and_old_keys_removed(run, data_dir):
    before = (data_dir / KEY_FILE).read_text().split()

    rotated = run("secrets", "rotate")
    both = (data_dir / KEY_FILE).read_text().split()
    forgotten = run("secrets", "rotate", "--forget")

    assert (rotated.exit_code, forgotten.exit_code) == (0, 0)
    assert both[1:] == before
    assert (data_dir / KEY_FILE).read_text().split() == both[:1]


@pytest.mark.parametrize(
    ("variable", "value"), [("LOG_LEVEL", "LOUD"), ("DATABASE_URL", "mysql://h/d"), ("COLOUR", "blue")]
)
@pytest.mark.parametrize("words", [("db", "check"), ("serve",), ("worker",), ("doctor",)])
def test_an_invalid_environment_variable_stops_every_command(variable, value, words, run):
    response = run(*words, **{variable: value})

    assert response.exit_code == 1
    assert response.output.startswith(f"project-service: PROJECT_SERVICE_{variable}: ")


def test_an_empty_key_file_is_reported_in_one_line(run, tmp_path):
    (tmp_path / KEY_FILE).write_text("")

    response = run("db", "check", DATA_DIR=str(tmp_path))

    assert (response.exit_code, "put the key back" in response.output) == (1, True)
    assert len(response.output.splitlines()) == 1


def test_the_commands_are_listed(run):
    response = run("--help")

    commands = "serve worker scheduler db user token setting feature secrets doctor"
    assert all(f"\n  {command} " in response.output for command in commands.split())


def test_logs_of_commands_are_json(run):
    response = run("feature", "list", LOG_LEVEL="DEBUG")

    assert all(json.loads(line) for line in response.stderr.splitlines())


def test_a_back_up_is_restored_by_command(run, data_dir, tmp_path):
    run("user", "create", "bea", "--email", "bea@example.org", "--password", "correct horse")
    path, new = tmp_path / "backup", tmp_path / "new"
    new.mkdir()

    made = run("backup", str(path))
    without_key = run("restore", str(path), DATA_DIR=str(new))
    (new / KEY_FILE).write_text((data_dir / KEY_FILE).read_text())
    restored = run("restore", str(path), DATA_DIR=str(new))
    again = run("restore", str(path), DATA_DIR=str(new))

    assert (made.exit_code, " rows in " in made.output) == (0, True)
    assert (without_key.exit_code, "encrypted with another key" in without_key.output) == (1, True)
    assert (restored.exit_code, restored.output) == (0, made.output)
    assert (again.exit_code, "is not empty" in again.output) == (1, True)
    assert run("token", "create", "bea", "--name", "t", "--scopes", "api", DATA_DIR=str(new)).exit_code == 0


def test_a_missing_key_stops_writing_commands(run, data_dir, tmp_path, capfd):
    run("db", "upgrade", DATA_DIR=str(tmp_path))
    (tmp_path / KEY_FILE).unlink()

    for words in (("db", "upgrade"), ("worker",)):
        response = run(*words, DATA_DIR=str(tmp_path))
        told = response.output + capfd.readouterr().err
        assert (response.exit_code, "encrypted with another key" in told) == (1, True), words
    served = subprocess.run(
        [sys.executable, "-m", "project_service", "serve", "--port", "0"],
        env=os.environ | {"PROJECT_SERVICE_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (served.returncode, "encrypted with another key" in served.stderr) == (1, True)
