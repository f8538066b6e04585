"""Names of the program's classes: each is used once, so that a search for it leads to one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NESTED = {"Meta"}  # configuration of a marshmallow schema


def class_names() -> Iterator[tuple[str, str]]:
    """The name of each class of the program with its module."""
    for path in sorted((ROOT / "project_service").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in NESTED:
                yield node.name, str(path.relative_to(ROOT))


def test_class_names_are_unique():
    modules = defaultdict(list)
    for name, module in class_names():
        modules[name].append(module)
    duplicates = {name: found for name, found in modules.items() if len(found) > 1}

    assert duplicates == {}
