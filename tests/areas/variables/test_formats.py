"""Text formats of variables, read back by the programs they are for, and the reader of dotenv files."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from shutil import which

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from project_service.areas.variables.dotenv import DotenvProblem, parse
from project_service.areas.variables.effective.precedence import EffectiveVariable
from project_service.areas.variables.formats import TEXT_FORMATS, refusal, render

READ_ENVIRONMENT = "import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k[:2] == 'V_'}))"
READ_COMMANDS = {"shell": 'eval "$(cat "$1")"', "dotenv": 'set -a; . "$1"; set +a'}
# characters that need quoting, and any other text
SPECIAL_CHARACTERS = st.text(
    st.sampled_from("'\"\\$`!#= \t\n\r\u00e9\u2028\U0001f600;&|()<>*?[]{}~%^aZ0-"), max_size=12
)
VALUES = SPECIAL_CHARACTERS | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
settings.register_profile("formats", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def variable(key, value, **fields):
    defaults = {"variable_type": "env_var", "protected": False, "masked": False, "hidden": False, "raw": False}
    source = {"environment_scope": "*", "source": "project", "source_path": "a/b"}
    return EffectiveVariable(key=key, value=value, **defaults | source | fields)


def variables(values):
    return [variable(f"V_{number}", value) for number, value in enumerate(values)]


def representable(found, form):
    """The values of the variables that a format can represent; checks that all others became comments."""
    comments = [f"# {item.key}: {refusal(item, form)}" for item in found if refusal(item, form) is not None]
    lines = render(found, form).split("\n")
    assert all(comment in lines for comment in comments)
    return {item.key: item.value for item in found if refusal(item, form) is None}


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("form", ["shell", "dotenv"])
def test_shells_read_every_rendered_value(shell, form, tmp_path):
    if which(shell) is None:
        pytest.skip(f"there is no {shell}")
    file = tmp_path / "variables"

    @settings(settings.get_profile("formats"))
    @given(st.lists(VALUES, min_size=10, max_size=40))
    def check(values):
        found = variables(values)
        file.write_bytes(render(found, form).encode())
        script = f'{READ_COMMANDS[form]}; exec "{sys.executable}" -S -c "$2"'
        read = subprocess.run([shell, "-c", script, "-", file, READ_ENVIRONMENT], capture_output=True, check=True)
        assert representable(found, form).items() <= {item.key: item.value for item in found}.items()
        # a command substitution drops NUL only; line feeds inside quotes stay
        assert json.loads(read.stdout) == {item.key: item.value for item in found}

    check()


@settings(settings.get_profile("formats"))
@given(st.lists(VALUES, max_size=40))
def test_rendered_values_are_parsed_back(values):
    found = variables(values)
    expected = [(item.key, item.value) for item in found]

    for form in ("dotenv", "shell", "systemd"):
        representable_values = [pair for pair, item in zip(expected, found, strict=True) if refusal(item, form) is None]
        assert [(entry.key, entry.value) for entry in parse(render(found, form).encode())] == representable_values


@settings(settings.get_profile("formats"))
@given(st.lists(VALUES, min_size=5, max_size=40))
def test_rendered_docker_lines_follow_the_rules_of_docker(values):
    found = variables(values)

    lines = [line.removesuffix("\r") for line in render(found, "docker").split("\n")]

    read = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert read == representable(found, "docker")


def test_the_docker_client_reads_the_same_values(tmp_path, monkeypatch):
    if which("docker") is None:
        pytest.skip("there is no docker")
    sent = {}

    class Daemon(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer({"ApiVersion": "1.43"})

        do_HEAD = do_GET

        def do_POST(self):
            sent.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer({"Id": "1", "Warnings": []}, 201)

        def _answer(self, body, status=200):
            self.send_response(status)
            self.send_header("Api-Version", "1.43")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    found = [
        *variables(["", " a b ", "'\"\\$`#=", "\u00e9\U0001f600", "a\rb", "x\r", "a\nb", "y" * 65_530, "y" * 65_529])
    ]
    file = tmp_path / "variables"
    file.write_bytes(render(found, "docker").encode())
    daemon = HTTPServer(("127.0.0.1", 0), Daemon)
    threading.Thread(target=daemon.serve_forever, daemon=True).start()
    try:
        environment = {
            "DOCKER_HOST": f"tcp://127.0.0.1:{daemon.server_port}",
            "HOME": str(tmp_path),
            "PATH": "/usr/bin",
        }
        command = [which("docker"), "create", "--pull", "never", "--env-file", str(file), "image"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    finally:
        daemon.shutdown()
        daemon.server_close()

    assert result.returncode == 0, result.stderr
    assert dict(line.split("=", 1) for line in sent["Env"]) == representable(found, "docker")


SYSTEMD_READER = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"


def test_systemd_reads_the_same_values(tmp_path):
    if which(SYSTEMD_READER) is None:
        pytest.skip("there is no systemd")
    values = ["a b", " x ", "it's", 'say "hi"', "a\\b", "a\\\\b'", "end\\", "\u00e9\U0001f600", "#a;b"]
    found = variables(values)
    (tmp_path / "environment.d").mkdir()
    (tmp_path / "environment.d" / "1.conf").write_bytes(render(found, "systemd").encode())
    script = 'while IFS= read -r line; do eval "export $line"; done; exec "$0" -S -c "$1"'

    printed = subprocess.run(
        [SYSTEMD_READER], env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}, capture_output=True, check=True
    )

    shown = subprocess.run(
        ["bash", "-c", script, sys.executable, READ_ENVIRONMENT], input=printed.stdout, capture_output=True, check=True
    )
    assert json.loads(shown.stdout) == {item.key: item.value for item in found}


@pytest.mark.parametrize(
    ("form", "item", "comment"),
    [
        ("dotenv", variable("A", None, hidden=True), "# A: hidden"),
        ("shell", variable("A", "x", variable_type="file"), "# A: a file"),
        ("docker", variable("A", "x\ny"), "# A: has line feeds"),
        ("docker", variable("A", "x\r"), "# A: ends with a carriage return"),
        ("shell", variable("1A", "x"), "# 1A: the name begins with a digit"),
        ("systemd", variable("1A", "x"), "# 1A: the name begins with a digit"),
        ("dotenv", variable("UID", "0"), "# UID: shells do not let this variable be set"),
        ("shell", variable("RANDOM", "0"), "# RANDOM: shells set this variable themselves"),
        ("systemd", variable("A", "\ufeff"), "# A: has characters that systemd does not accept"),
        ("systemd", variable("A", "\U0001ffff"), "# A: has characters that systemd does not accept"),
    ],
)
def test_values_that_a_format_cannot_hold_become_comments(form, item, comment):
    assert render([item], form) == f"{comment}\n"


def test_every_format_ends_with_a_newline():
    assert {form: render([variable("A", "b c")], form) for form in TEXT_FORMATS} == {
        "dotenv": "A='b c'\n",
        "docker": "A=b c\n",
        "shell": "export A='b c'\n",
        "systemd": "A='b c'\n",
    }


def test_files_of_other_tools_are_read():
    text = "\ufeff# comment\r\n\r\n  export A=1 # one\r\nB=\r\n"
    text += "C='x # y' # z\nD=\"a\\nb\\\"\"\nE='it'\\''s'\nF=a#b c  \nG=x=y"

    read = {entry.key: entry.value for entry in parse(text.encode())}

    assert read == {"A": "1", "B": "", "C": "x # y", "D": 'a\nb"', "E": "it's", "F": "a#b c", "G": "x=y"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"A=1\nsecret", "line 2 is not KEY=value, with a key of letters, digits and \u201c_\u201d"),
        (b"A=1\n\nse-cret=1", "line 3 is not KEY=value, with a key of letters, digits and \u201c_\u201d"),
        (b"A='1\n", "line 1 has a quote that is not closed"),
        (b"A='1\n2' secret", "line 2 has text after the closing quote"),
        (b'A="\n\\x"', "line 2 has a backslash that escapes nothing"),
        (b"A=secret'", "line 1 has a value that needs single quotes around it"),
        (b"A=1\nB=2\nA=3", "line 3: A is on line 1, too"),
        (b"A=1\nB=\xff", "line 2 is not UTF-8"),
        (b"A=1\nB=\0", "line 2 has a NUL character"),
    ],
)
def test_invalid_lines_are_reported_by_number(content, problem):
    with pytest.raises(DotenvProblem) as refused:
        parse(content)

    assert str(refused.value) == problem


@pytest.mark.parametrize("text", ["A='" * 200_000, 'A="\\' * 200_000, "A=" + "'a'" * 200_000, "A=a" + " #" * 300_000])
def test_reading_takes_linear_time(text):
    with contextlib.suppress(DotenvProblem):
        parse(text.encode())
