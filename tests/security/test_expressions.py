"""Every regular expression of the program, with texts made to keep it busy."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import time
from pathlib import Path

import pytest

import project_service

SOURCES = "".join(path.read_text() for path in Path(project_service.__path__[0]).rglob("*.py"))
ANYWHERE, AT_THE_BEGINNING = ("search", "sub", "subn", "finditer", "findall", "split"), ("match", "fullmatch")
LENGTH = 16_000
SQUARE = re.compile("<[^>]*>"), "<" * LENGTH  # takes the square of its length in time
PUMPS = ("a", "0", " ", "/", ".", "-", "_", "%", "\\", "[", "(", "<", "\n", "é", "a.", "a/", "a-", "1.", "ab", "=&")
ENDS = ("", "\x00", "!", "\n\n!")


def patterns():
    """Every compiled expression that the program holds, in globals, classes or containers, and what it is called."""
    names = [module.name for module in pkgutil.walk_packages(project_service.__path__, "project_service.")]
    mine = [importlib.import_module(name) for name in names if "migrations" not in name and "__main__" not in name]
    found, seen, waiting = {}, set(), [("", vars(module)) for module in mine]
    while waiting:
        name, each = waiting.pop()
        if id(each) in seen and not isinstance(each, re.Pattern):
            continue
        seen.add(id(each))
        if isinstance(each, re.Pattern):
            found.setdefault(each, set()).add(name)
        elif isinstance(each, dict):
            waiting += [(str(key), value) for key, value in each.items()]
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += [(name, value) for value in each]
        elif is_local_path(each):
            waiting.append(("", dict(vars(each))))
    return sorted(found.items(), key=lambda item: str(item[0].pattern))


def uses(names):
    """How an expression is used, by the names it has; in both ways where that cannot be seen."""
    used = {way for name in names for way in re.findall(rf"\b{re.escape(name)}\.(\w+)\(", SOURCES)}
    found = [ways[0] for ways in (ANYWHERE, AT_THE_BEGINNING) if used & {*ways}]
    return found or ["search", "match"]


def is_local_path(value):
    """Whether a value belongs to the program, or is a rule of a schema, and may hold expressions."""
    module = getattr(value, "__module__", None) or ""
    module = str((value if isinstance(value, type) else type(value)).__module__)
    return module.startswith(("project_service", "marshmallow")) and hasattr(value, "__dict__")


def hostile(pattern):
    """Texts that begin as the expression wants it and never end so."""
    literals = re.findall(r"[A-Za-z:/@=&\[\](){}.-]{1,6}", str(pattern.pattern))[:6]
    for pump in (*PUMPS, *literals):
        for begin in ("", *literals[:2]):
            for end in ENDS:
                yield begin, pump, end


def seconds(pattern, text, ways):
    began = time.process_time()
    for way in ways:
        getattr(pattern, way)(text)
    return time.process_time() - began


@functools.cache
def budget():
    """Half of what an expression that is kept busy takes for so long a text, however fast the machine is."""
    return min(seconds(*SQUARE, ["search"]) for _ in range(3)) / 2


@pytest.mark.parametrize(("pattern", "names"), patterns(), ids=lambda each: str(getattr(each, "pattern", ""))[:60])
def test_regular_expressions_take_linear_time(pattern, names):
    slow, ways = {}, uses(names)
    for begin, pump, end in hostile(pattern):
        text = begin + pump * (LENGTH // len(pump)) + end
        given = text.encode() if isinstance(pattern.pattern, bytes) else text
        if (spent := seconds(pattern, given, ways)) > budget() and seconds(pattern, given, ways) > budget():
            slow[begin, pump, end] = spent
            break

    assert slow == {}


def test_the_regular_expressions_are_found():
    assert len(patterns()) > 30


@pytest.mark.parametrize(("pattern", "text"), [SQUARE, (re.compile(r"(a|a?)+$"), "a" * 20 + "!")])
def test_the_measurement_detects_a_slow_expression(pattern, text):
    assert seconds(pattern, text, ["search"]) > budget()


def test_the_measurement_accepts_a_fast_expression():
    assert seconds(re.compile("<[^<>]*>"), "<" * LENGTH, ["search"]) < budget() / 10
