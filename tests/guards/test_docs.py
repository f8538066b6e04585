"""That the documentation knows everything it should, and that its links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from project_service.cli import main
from project_service.domain.instance_settings import SETTINGS
from project_service.settings import PREFIX, Settings

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
WITH_PATHS = [path for path in PAGES if path.name != "CHANGELOG.md"]
CODE = (REPOSITORY / "project_service", REPOSITORY / "tests", REPOSITORY)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(rf"{PREFIX}[A-Z_]+[A-Z]")
MODULE = re.compile(r"`([\w./-]+(?:\.py|/))`")
SELECTION = re.compile(r'ARGS="-k (\w+)"')  # of tests, by a part of the name of a module or a function
EXAMPLES = {"0002_add_a_colour_to_labels.py"}  # paths that docs give as examples of new files
CREATED_AT_RUN_TIME = {"storage/", "repositories/", "transfers/", "redis/"}  # below the data directory
DERIVED = {"embedded_redis"}  # no variable of its own: it says that there is no REDIS_URL


def page(name: str) -> str:
    return (DOCS / name).read_text()


def without_code(text: str) -> str:
    return FENCE.sub("", text)


def anchors_of(path: Path) -> set[str]:
    """The anchors of a page's headings, as viewers of Markdown make them."""
    headings = HEADING.findall(without_code(path.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(path: Path) -> list[str]:
    return [link for link in LINK.findall(without_code(path.read_text())) if "://" not in link]


def leads_somewhere(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    return target.exists() and (not anchor or anchor in anchors_of(target))


def is_in_the_code(name: str) -> bool:
    """Whether a path exists below the program, the tests or the root; a bare module name may belong to any package."""
    if any((base / name).exists() for base in CODE):
        return True
    return "/" not in name and any(next(base.rglob(name), None) for base in CODE[:2])


def commands_of(group: click.Group, above: str) -> Iterator[str]:
    """The full names of all commands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{above} {name}")
        else:
            yield f"{above} {name}"


def variables_of(group: click.Group) -> Iterator[str]:
    """The environment variables that options of the commands of a group read."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from variables_of(command)
        elif command is not None:
            yield from (option.envvar for option in command.params if isinstance(option.envvar, str))


def packages() -> list[str]:
    """The packages that the import contract names."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("exhaustive"))
    return [name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)]


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_environment_variable_is_documented(name: str) -> None:
    documented = name if name in DERIVED else PREFIX + name.upper()

    assert f"`{documented}`" in page("configuration.md")


def test_every_documented_variable_exists() -> None:
    known = {PREFIX + field.name.upper() for field in fields(Settings)} | set(variables_of(main.main))
    named = {variable for path in PAGES for variable in VARIABLE.findall(path.read_text())}

    assert named - known == set()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_application_setting_is_documented(name: str) -> None:
    assert f"| `{name}` |" in page("configuration.md")


@pytest.mark.parametrize("command", [*commands_of(main.main, "project-service")])
def test_every_command_is_documented(command: str) -> None:
    assert f"`{command}`" in page("operations.md")


@pytest.mark.parametrize("name", packages())
def test_every_package_of_the_import_contract_is_in_the_architecture(name: str) -> None:
    assert re.search(rf"^\| [^|]*`{name}`", page("architecture.md"), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_has_a_target(path: Path) -> None:
    assert [link for link in links_of(path) if not leads_somewhere(path, link)] == []


@pytest.mark.parametrize("path", WITH_PATHS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_path_of_the_code_in_the_documentation_exists(path: Path) -> None:
    named = set(MODULE.findall(without_code(path.read_text()))) - EXAMPLES - CREATED_AT_RUN_TIME

    assert sorted(name for name in named if not is_in_the_code(name)) == []


def test_every_selection_of_tests_in_the_documentation_selects_some() -> None:
    modules = list((REPOSITORY / "tests").rglob("test_*.py"))
    names = [path.stem for path in modules]
    names += [name for path in modules for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)]
    selections = {text for path in PAGES for text in SELECTION.findall(path.read_text())}

    assert [text for text in sorted(selections) if not any(text in name for name in names)] == []


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_every_decision_record_has_a_title_and_is_short(path: Path) -> None:
    text = path.read_text()

    assert text.startswith("# ")
    assert len(text.splitlines()) <= 80


def test_every_decision_record_named_in_the_code_exists() -> None:
    sources = [*(REPOSITORY / "project_service").rglob("*.py"), *(REPOSITORY / "tests").rglob("*.py")]
    named = {name for path in sources for name in re.findall(r"docs/decisions/[a-z0-9-]+\.md", path.read_text())}

    assert [name for name in sorted(named) if not (REPOSITORY / name).exists()] == []
