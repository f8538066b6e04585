"""Branches and tags of a repository."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingFailed
from project_service.domain.repositories.reading.objects import text_of
from project_service.domain.repositories.reading.repository import CodeRepository

MAX_OUTPUT_BYTES = 32 << 20
# the orders of lists, by the names that callers use
ORDERS = {"name": "refname", "updated": "creatordate", "version": "version:refname"}


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag; ``name`` has no prefix, ``commit_id`` is that of the object to which the ref leads."""

    name: str
    target: str
    commit_id: str


def refs(repository: CodeRepository, prefix: str, *, order: str = "name", descending: bool = False) -> list[Ref]:
    """All refs below a prefix in an order of ``ORDERS``; those of the same date are in the order of their names."""
    sort_option = f"--sort={'-' if descending else ''}{ORDERS[order]}"
    arguments = [
        "for-each-ref",
        "--sort=refname",
        sort_option,
        "--format=%(refname)%00%(objectname)%00%(*objectname)",
        prefix,
    ]
    output = processes.read(repository.folder, *arguments, max_bytes=MAX_OUTPUT_BYTES)
    listed = []
    for line in output.splitlines():
        name, target, peeled = line.split(b"\0")
        listed.append(Ref(text_of(name[len(prefix) :]), target.decode(), (peeled or target).decode()))
    return listed


def find_ref(repository: CodeRepository, prefix: str, name: str) -> Ref | None:
    """One branch or tag by its name."""
    target = repository.ref(prefix + name)
    if target is None:
        return None
    commit = repository.commit_of(target)
    return Ref(name, target, commit.id if commit is not None else target)


def matching(found: Sequence[Ref], search: str) -> list[Ref]:
    """The refs whose names contain a text, in any case, begin (``^a``) or end (``b$``) with it; exact matches first."""
    text = search.lower()
    start, end = text.startswith("^"), text.endswith("$")
    text = text.removeprefix("^").removesuffix("$")

    def fits(name: str) -> bool:
        if start and end:
            return name == text
        if start:
            return name.startswith(text)
        return name.endswith(text) if end else text in name

    some = [ref for ref in found if fits(ref.name.lower())]
    return sorted(some, key=lambda ref: ref.name.lower() != text)


def merged(repository: CodeRepository, names: Collection[str], commit_id: str) -> set[str]:
    """Those of some branches whose commits a history has; none if that takes too long to find out."""
    if not names:
        return set()
    patterns = [BRANCHES + name for name in names]
    arguments = ["for-each-ref", "--format=%(refname)", f"--merged={commit_id}", *patterns]
    try:
        output = processes.read(repository.folder, *arguments)
    except ReadingFailed:
        return set()
    return {text_of(line[len(BRANCHES) :]) for line in output.splitlines()}
