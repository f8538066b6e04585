"""What stands in the tree: locked packages, no secrets, no comparison of secrets that tells where they differ."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from detect_secrets import SecretsCollection
from detect_secrets.settings import transient_settings
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
LOCKS = {"requirements.lock": [], "requirements-dev.lock": ["dev"]}
ENTRY = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([\w, -]+)\])?==(\S+?)(?: ; (.+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
SECRET_NAMES = re.compile(r"(^|_)(token|secret|password|digest|signature|credential)s?$", re.IGNORECASE)
# made up for tests and examples, and known to everybody
EXAMPLES = ("tests", "docs", "benchmarks", "deploy", "README.md")


@dataclass
class Entry:
    """A package of a lock, in one version; there may be several for different systems."""

    name: str
    extras: frozenset[str]
    version: str
    marker: str | None
    hashes: int = 0


def entries(lock: str) -> list[Entry]:
    """What a lock says."""
    found: list[Entry] = []
    for line in (REPOSITORY / lock).read_text().splitlines():
        if entry := ENTRY.match(line):
            extras = frozenset(canonicalize_name(each) for each in (entry[2] or "").replace(" ", "").split(",") if each)
            found.append(Entry(canonicalize_name(entry[1]), extras, entry[3], entry[4]))
        elif HASH.match(line):
            found[-1].hashes += 1
        else:
            assert line.lstrip().startswith("#"), f"{lock}: {line}"
    return found


def locked_here(lock: str) -> dict[str, str]:
    """The versions that a lock has for this system."""
    return {each.name: each.version for each in entries(lock) if each.marker is None or evaluates(each.marker)}


@pytest.mark.parametrize("lock", LOCKS)
def test_locked_packages_are_pinned_with_hashes(lock):
    assert [each.name for each in entries(lock) if not each.hashes] == []
    assert len(entries(lock)) > 40


@pytest.mark.parametrize(("lock", "extras"), LOCKS.items())
def test_a_lock_file_has_every_requirement(lock, extras):
    wanted = [*PROJECT["dependencies"], *(each for extra in extras for each in PROJECT["optional-dependencies"][extra])]

    for requirement in map(Requirement, wanted):
        versions = [each.version for each in entries(lock) if each.name == canonicalize_name(requirement.name)]
        assert versions, requirement
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement


@pytest.mark.parametrize(("lock", "extras"), LOCKS.items())
def test_a_lock_file_has_exactly_the_needed_packages(lock, extras):
    assert {name for name, _ in needed(extras)} == locked_here(lock).keys()


@pytest.mark.parametrize(("lock", "extras"), LOCKS.items())
def test_a_lock_file_names_the_needed_extras(lock, extras):
    """The pip of Python 3.11 takes a package with an extra for one that nothing pins, and wants the newest."""
    named = {(each.name, extra) for each in entries(lock) for extra in each.extras}

    assert {(name, extra) for name, extra in needed(extras) if extra} == named


def needed(extras: list[str]) -> set[tuple[str, str]]:
    """Packages with the extras, or none, that are asked for: by the project, and by what the installed ones ask for."""
    waiting = [(Requirement(each), "") for each in PROJECT["dependencies"]]
    waiting += [(Requirement(each), "") for extra in extras for each in PROJECT["optional-dependencies"][extra]]
    followed: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ("", *map(canonicalize_name, requirement.extras)):
            if (name, wanted) not in followed:
                followed.add((name, wanted))
                waiting += [(Requirement(each), wanted) for each in metadata.requires(name) or ()]
    return followed


def evaluates(marker: str) -> bool:
    return Requirement(f"x; {marker}").marker.evaluate(default_environment())


def test_both_lock_files_have_the_same_versions():
    run, develop = ({(each.name, each.version) for each in entries(lock)} for lock in LOCKS)

    assert run - develop == set()


def test_installed_packages_match_the_lock_file():
    locked = locked_here("requirements-dev.lock")
    installed = {canonicalize_name(each.metadata["Name"]): each.version for each in metadata.distributions()}
    ours = {"project-service", "pip", "setuptools", "wheel"}

    assert {name for name in installed if name not in ours and installed[name] != locked.get(name)} == set()


def tracked() -> list[str]:
    """The files of the tree that are kept."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("left out: this is no checkout")
    return [name for name in listed.stdout.decode().split("\0") if name]


def found_in(path: Path) -> list[str]:
    """What looks like a secret in a file."""
    plugins = ["AWSKeyDetector", "BasicAuthDetector", "GitHubTokenDetector", "GitLabTokenDetector", "JwtTokenDetector"]
    plugins += ["PrivateKeyDetector", "SlackDetector", "StripeDetector", "SendGridDetector", "TwilioKeyDetector"]
    settings = [{"name": name} for name in plugins]
    settings += [{"name": "Base64HighEntropyString", "limit": 4.5}, {"name": "HexHighEntropyString", "limit": 3.0}]
    with transient_settings({"plugins_used": settings}):
        collection = SecretsCollection()
        collection.scan_file(str(path))
        return [f"{secret.type} in line {secret.line_number}" for _, secret in collection]


def test_the_tree_contains_no_secret():
    names = [name for name in tracked() if not name.startswith(EXAMPLES) and not name.endswith(".lock")]

    found = {name: secrets for name in names if (secrets := found_in(REPOSITORY / name))}

    assert (found, len(names) > 150) == ({}, True)


@pytest.mark.parametrize(
    "text",
    [
        'key = "AKIA' + 'IOSFODNN7EXAMPLE"',
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        'token = "glpat-' + 'zXyWvUtSrQpOnMlKjIhG"',
        'url = "https://user:' + 's3cr3tpass@host.example/"',
        'value = "' + "c3VjaCBhIGxvbmcgc2VjcmV0" + 'IHRoYXQgbm9ib2R5IGtub3dzISE5"',
    ],
)
def test_the_scan_detects_a_secret(text, tmp_path):
    (tmp_path / "settings.py").write_text(f"{text}\n")

    assert found_in(tmp_path / "settings.py")


def test_secrets_are_compared_in_constant_time():
    """No ``==`` on what is called a secret; look-ups by digest are made by the database."""
    found = []
    for path in (REPOSITORY / "project_service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
                sides = [node.left, *node.comparators]
                if any(names_a_secret(side) for side in sides) and not any(is_known(side) for side in sides):
                    found.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}: {ast.unparse(node)}")

    assert found == []


def names_a_secret(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return SECRET_NAMES.search(name) is not None


def is_known(node: ast.expr) -> bool:
    """Whether a side is a constant, or makes the comparison one of the database."""
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("digest_of", "tokens.digest", "bindparam"))
    )
