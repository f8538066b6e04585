"""Views that read repositories may wait for git: they are marked, so that the web server gives them other threads."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from flask import Flask

from project_service.access.page_parts import panels
from project_service.access.references import search_scopes
from project_service.areas.notifications.channels import service as channels
from project_service.areas.notifications.kinds import base as kinds
from project_service.areas.repositories import code_reading
from project_service.areas.webhooks import service as webhooks
from project_service.domain.repositories import git, views
from project_service.domain.repositories.reading import processes, repository
from project_service.kit import mail
from project_service.kit.http import csv_files
from project_service.kit.security.outgoing_http import client
from project_service.transfers.remote import sending

PACKAGE = "project_service"
TEMPLATES = Path(__file__).parents[2] / "templates"
INCLUDED = re.compile(r'with page = "(\w+)"')
READS = (repository.code_of, git.run, git.started, views.served_view, processes.output_of, processes.read)
REQUESTS = (client.Client.request, mail.send_test, channels.test_channel, channels.create_channel, webhooks.create_hook)
REQUESTS += (channels.update_channel, webhooks.update_hook, webhooks.remove_pair, kinds.url_problems)
LARGE_FILES = (sending.send_export, csv_files.csv_response, code_reading.download_slots)


def test_views_that_read_repositories_are_marked(app: Flask) -> None:
    reading = {name for name, view in views_of(app) if reads_repository(view)}
    marked = {name for name, view in views_of(app) if is_marked(view)}

    assert len(reading) > 50
    assert reading - marked == set()


def test_no_other_views_are_marked(app: Flask) -> None:
    marked = {name for name, view in views_of(app) if getattr(view, "reads_repository", False)}

    assert {name for name, view in views_of(app) if name in marked and not reads_repository(view)} == set()


def test_views_that_wait_for_other_servers_are_marked(app: Flask) -> None:
    sending = {name for name, view in views_of(app) if calls(view, REQUESTS) and not is_marked(view)}
    marked = {name for name, view in views_of(app) if getattr(view, "sends_requests", False)}

    assert len(sending) > 30
    assert sorted(sending - marked) == []


def test_views_that_send_large_files_are_marked(app: Flask) -> None:
    found = {name for name, view in views_of(app) if calls(view, LARGE_FILES)}
    marked = {name for name, view in views_of(app) if getattr(view, "is_long", False)}

    assert len(found) > 10
    assert found - marked == set()


def views_of(app: Flask) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Rules of the URL map with their methods, and their views."""
    for rule in app.url_map.iter_rules():
        yield f"{sorted(rule.methods or ())} {rule.rule}", app.view_functions[rule.endpoint]


def is_marked(view: Callable[..., Any]) -> bool:
    return getattr(view, "reads_repository", False) or getattr(view, "runs_git", False)


def reads_repository(view: Callable[..., Any]) -> bool:
    return calls(view, READS)


def calls(view: Callable[..., Any], functions: Iterable[Callable[..., Any]]) -> bool:
    """Whether a function can call one of others, by the names in the code of both."""
    wanted = {inspect.unwrap(function) for function in functions}
    seen: set[FunctionType] = set()
    waiting = [*functions_of(view)]
    while waiting:
        function = waiting.pop()
        if function in wanted:
            return True
        if function not in seen and (function.__module__ or "").startswith(PACKAGE):
            seen.add(function)
            waiting += called_by(function)
    return False


@functools.cache
def called_by(function: FunctionType) -> tuple[FunctionType, ...]:
    """The functions whose names are in the code of a function, and those that areas have registered for it."""
    names, texts = names_and_texts(function.__code__)
    found: list[FunctionType] = []
    for name in names:
        value = closed_over(function, name) or function.__globals__.get(name)
        if value is search_scopes.REPOSITORY_SCOPES:
            found += [one for scope in value for one in functions_of(scope.find)]
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            found += [one for attribute in names for one in functions_of(getattr(value, attribute, None))]
        else:
            found += functions_of(value)
    pages = {page for text in texts if text.endswith(".html") for page in pages_with_panels(text)}
    return (*found, *(one for panel in panels.PANELS if panel.page in pages for one in functions_of(panel.fill)))


@functools.cache
def pages_with_panels(template: str) -> tuple[str, ...]:
    """The names under which a template shows panels."""
    path = TEMPLATES / template
    return tuple(INCLUDED.findall(path.read_text())) if path.exists() else ()


def names_and_texts(code: CodeType) -> tuple[set[str], set[str]]:
    names, texts = {*code.co_names, *code.co_freevars}, {text for text in code.co_consts if isinstance(text, str)}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            inner_names, inner_texts = names_and_texts(inner)
            names, texts = names | inner_names, texts | inner_texts
    return names, texts


def closed_over(function: FunctionType, name: str) -> Any:
    if name not in function.__code__.co_freevars or function.__closure__ is None:
        return None
    return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents


def functions_of(value: Any) -> list[FunctionType]:
    """A function without its decorators, or the methods of a class."""
    if isinstance(value, functools.partial):
        return functions_of(value.func)
    if isinstance(value, type):
        if not value.__module__.startswith(PACKAGE):
            return []
        methods = [
            getattr(member, "fget", None) or getattr(member, "__func__", member) for member in vars(value).values()
        ]
        return [inspect.unwrap(method) for method in methods if isinstance(method, FunctionType)]
    unwrapped = inspect.unwrap(value) if callable(value) else None
    return [unwrapped] if isinstance(unwrapped, FunctionType) else []
