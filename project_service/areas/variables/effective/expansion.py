"""Expansion of ``$KEY`` and ``${KEY}`` inside the values of variables.

The values of raw variables and of files are left as they are, and so are unknown names; ``$$`` stands for ``$``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from project_service.areas.variables.effective.precedence import EffectiveVariable

REFERENCE = re.compile(r"\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))")
MAX_EXPANDED_LENGTH = 1_000_000  # characters of one value: references to references grow exponentially
Graph = Mapping[str, Iterable[str]]


def expand(variables: Sequence[EffectiveVariable]) -> list[EffectiveVariable]:
    """Return the variables with expanded values, in the same order.

    What refers to itself is left as text, and its ``note`` says so. What refers to a value that is hidden or in a file
    has no value, and a ``note``.
    """
    variables_by_key = {variable.key: variable for variable in variables}
    graph = {variable.key: [key for key in _references(variable) if key in variables_by_key] for variable in variables}
    order, cycles = _sorted(graph)
    for key in order:  # what is referred to comes first
        if key in cycles:
            variables_by_key[key] = replace(variables_by_key[key], note=_cycle_note(key, cycles[key]))
        elif graph[key] or _has_escapes(variables_by_key[key]):
            variables_by_key[key] = _expanded(variables_by_key[key], variables_by_key)
    return [variables_by_key[variable.key] for variable in variables]


def _references(variable: EffectiveVariable) -> list[str]:
    if not _is_expanded(variable):
        return []
    return [match[1] or match[2] for match in REFERENCE.finditer(variable.value or "") if match[0] != "$$"]


def _is_expanded(variable: EffectiveVariable) -> bool:
    return not variable.raw and not variable.is_file


def _has_escapes(variable: EffectiveVariable) -> bool:
    return _is_expanded(variable) and "$$" in (variable.value or "")


def _expanded(variable: EffectiveVariable, variables_by_key: Mapping[str, EffectiveVariable]) -> EffectiveVariable:
    length, parts, end = 0, [], 0
    text = variable.value or ""
    for match in REFERENCE.finditer(text):
        key = match[1] or match[2]
        referred = variables_by_key.get(key) if key else None
        if referred is not None and (referred.value is None or referred.is_file):
            why = "is a file" if referred.is_file else "is hidden" if referred.hidden else "has no value here"
            return replace(variable, value=None, note=f"refers to {key}, which {why}")
        inserted = match[0] if key else "$"
        if referred is not None:
            inserted = referred.value or ""
        parts += [text[end : match.start()], inserted]
        end = match.end()
        length += len(inserted)
        if length > MAX_EXPANDED_LENGTH:
            note = f"is longer than {MAX_EXPANDED_LENGTH} characters when it is expanded; left as it is"
            return replace(variable, note=note)
    return replace(variable, value="".join([*parts, text[end:]]))


def _cycle_note(key: str, members: Iterable[str]) -> str:
    others = sorted(set(members) - {key})
    through = f" through {', '.join(others[:5])}{' and others' if len(others) > 5 else ''}" if others else ""
    return f"refers to itself{through}; left as it is"


def _sorted(graph: Graph) -> tuple[list[str], dict[str, list[str]]]:
    """Return the keys, each after those it refers to, and the members of its cycle for each key that is in one.

    Kosaraju's algorithm: keys in a cycle reach each other.
    """
    order = [key for component in _components(graph, list(graph)) for key in component]
    backwards: dict[str, list[str]] = {key: [] for key in graph}
    for key, referred in graph.items():
        for other in referred:
            backwards[other].append(key)
    cycles: dict[str, list[str]] = {}
    for component in _components(backwards, order[::-1]):
        if len(component) > 1 or component[0] in graph[component[0]]:
            cycles |= dict.fromkeys(component, component)
    return order, cycles


def _components(graph: Graph, starts: Iterable[str]) -> list[list[str]]:
    """Return what is reached from each start and from no earlier one, in postorder; without recursion."""
    visited: set[str] = set()
    components = []
    for start in starts:
        if start in visited:
            continue
        visited.add(start)
        component, stack = [], [(start, iter(graph[start]))]
        while stack:
            key, rest = stack[-1]
            following = next((other for other in rest if other not in visited), None)
            if following is None:
                component.append(key)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(graph[following])))
        components.append(component)
    return components
