"""Paths of files, made relative to the sources (scanner formats reference, section 6)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from project_service.areas.vulnerabilities.formats.shapes import (
    MAX_PATH_LENGTH,
    BrokenEntry,
    Data,
    Reading,
    obj,
    text,
    web,
)

MAX_BASES = 8
MAX_REMEMBERED = 10_000
FILE_SCHEME = "file:"
HOST = re.compile(r"//(?![A-Za-z]:)[^/]+(?=/)")
DRIVE = re.compile(r"/?([A-Za-z]:/)")
OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
OF_RUNNERS = ("/workspace/", "/src/", "/code/")
# folders into which runners check out a repository, and whether more folders may follow that belong to it
CHECKOUTS = (
    (re.compile(r"/(?:home|Users)/runner/work/([^/]+)/\1/"), False),
    (re.compile(r"[A-Za-z]:/a/([^/]+)/\1/"), False),
    (re.compile(r"/builds/[^/]+/[^/]+/"), True),
    (re.compile(r"/github/workspace/"), False),
    (
        re.compile(
            r"(?:/[^/]{1,100}){0,4}?/[^/]{0,50}jenkins[^/]{0,50}/(?:[^/]{1,100}/){0,4}?workspace/[^/]+/", re.IGNORECASE
        ),
        True,
    ),
    (re.compile(r"/azp/(?:[^/]{1,100}/){0,4}?s/"), False),
    (re.compile(r"/codebuild/output/src[^/]*/src/"), True),
)
MAX_MORE_FOLDERS = 8
ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


class BrokenPath(BrokenEntry):
    """A path that is too long."""


class Paths:
    """Paths of one run. ``roots`` are the folders that absolute paths are made relative to, the first that fits."""

    def __init__(self, reading: Reading, roots: Iterable[str] = (), bases: Any = None) -> None:
        self._reading = reading
        self._bases = obj(bases)
        self._found: dict[tuple[str, str], tuple[str, str]] = {}
        own = reading.options.source_root
        named = [own] if own else []
        path = reading.options.project_path
        runners = (*([f"/builds/{path}/"] if path else []), *OF_RUNNERS)
        self._told_roots = [root for folder in (*named, *roots) if (root := as_root(folder))]
        self._roots = [*self._told_roots, *runners]

    def relative(self, uri: str, base: str = "", pointer: str = "") -> str:
        """Return a path as it is shown.

        Raises:
            BrokenPath: it is too long.

        """
        shown_path = self._found.get((uri, base))
        if shown_path is None:
            if len(self._found) == MAX_REMEMBERED:
                self._found.clear()
            path = self._relative(uri, base)
            warning = "absolute_path" if is_absolute(path) else "outside_path" if is_outside(path) else ""
            shown_path = self._found[uri, base] = path, warning
        if shown_path[1]:
            self._reading.warn(shown_path[1], pointer)
        return shown_path[0]

    def base(self, name: str) -> str:
        """Return the absolute folder of a base, with those that it is relative to; empty if there is none."""
        parts: list[str] = []
        for _ in range(MAX_BASES):
            base = obj(self._bases.get(name))
            uri = text(base.get("uri"))
            path = plain(uri)
            parts.append(path if not path or path.endswith("/") else f"{path}/")
            if is_absolute(path):
                return folded("".join(reversed(parts)))
            name = text(base.get("uriBaseId"))
            if not name:
                break
        return ""

    def _relative(self, uri: str, base: str) -> str:
        if len(uri) > 3 * MAX_PATH_LENGTH:  # each byte of a path may be three characters of a URI
            raise BrokenPath
        path = plain(uri)
        if web(path) or (OTHER_SCHEME.match(path) and not DRIVE.match(path)):
            return _short(path)
        if not is_absolute(path) and base:
            folder = self.base(base)
            if folder and (joined := self._below_root(folded(f"{folder}/{path}"))):
                return _short(joined)
        path = folded(path)
        if is_outside(path):
            below = (self._below_root(folded(f"{root}{path}")) for root in self._told_roots)
            return _short(next((candidate for candidate in below if candidate), path))
        if not is_absolute(path):
            return _short(path)
        return _short(self._below_root(path) or self._below_checkout(path) or path)

    def _below_root(self, path: str) -> str:
        """Return an absolute path without the first root that it is below; empty if it is below none."""
        for root in self._roots:
            ignores_case = ":" in root
            start = path[: len(root)]
            if start == root or (ignores_case and start.lower() == root.lower()):
                return path[len(root) :]
        return ""

    def _below_checkout(self, path: str) -> str:
        """Return a path without the folder into which a runner checked out the repository; empty if it is in none.

        If the repository is known, what is left has to be one of its files.
        """
        is_file = self._reading.options.is_file
        for checkout, has_more in CHECKOUTS:
            if match := checkout.match(path):
                rest = path[match.end() :]
                if is_file is None:
                    return rest
                return next((candidate for candidate in _shortened(rest, has_more=has_more) if is_file(candidate)), "")
        return ""


def _shortened(path: str, *, has_more: bool) -> Iterator[str]:
    """Return a path, and if more folders may precede it then also without the first, the first two, and so on."""
    yield path
    for _ in range(MAX_MORE_FOLDERS if has_more else 0):
        path = path.partition("/")[2]
        if not path:
            return
        yield path


def roots_of_run(run: Data, paths: Paths) -> list[str]:
    """Return the folders that a SARIF run names, in their order."""
    provenance = run.get("versionControlProvenance")
    first = next(iter(provenance), None) if isinstance(provenance, list) else None
    mapped = _place(obj(first).get("mappedTo"), paths)
    bases = obj(run.get("originalUriBaseIds"))
    outermost = [paths.base(name) for name, base in bases.items() if not text(obj(base).get("uriBaseId"))]
    invocations = run.get("invocations")
    working = [
        _place(obj(invocation).get("workingDirectory"), paths)
        for invocation in (invocations if isinstance(invocations, list) else ())
    ]
    return [root for root in (mapped, *sorted(outermost, key=len, reverse=True), *working) if root]


def _place(value: Any, paths: Paths) -> str:
    artifact = obj(value)
    path, base = plain(text(artifact.get("uri"))), text(artifact.get("uriBaseId"))
    if is_absolute(path) or not base:
        return path
    folder = paths.base(base)
    return folded(f"{folder}/{path}") if folder else ""


def plain(uri: str) -> str:
    """Return the path of a URI: decoded once, with slashes, without the scheme of files."""
    path = uri.strip().replace("\\", "/").replace("\0", "")
    if "%" in path:
        path = ESCAPES.sub(_decoded, path)
    if path[: len(FILE_SCHEME)].lower() == FILE_SCHEME:
        path = path[len(FILE_SCHEME) :]
        host = HOST.match(path)
        path = path[host.end() :] if host else f"/{path.lstrip('/')}"
    drive = DRIVE.match(path)
    return path[drive.start(1) :] if drive else path


def folded(path: str) -> str:
    """Return a path without ``.`` and ``..`` parts; those that would be above an absolute root stay at it."""
    if not path:
        return path
    result = posixpath.normpath(path)
    if result.startswith("//"):
        result = result[1:]
    return "" if result == "." else result


def as_root(path: str) -> str:
    """Return a folder in the form of a root, with a slash at its end; empty for one that is not absolute."""
    folder = folded(plain(path))
    if not is_absolute(folder) or folder == "/":
        return ""
    return folder if folder.endswith("/") else f"{folder}/"


def is_absolute(path: str) -> bool:
    """Whether a path begins with a slash or a drive."""
    return path.startswith("/") or DRIVE.match(path) is not None


def is_outside(path: str) -> bool:
    """Whether a folded path leads out of the folder that it is relative to."""
    return path == ".." or path.startswith("../")


def _decoded(found: re.Match[str]) -> str:
    try:
        return unquote(found[0], errors="strict")
    except UnicodeDecodeError:
        return found[0]


def _short(path: str) -> str:
    if len(path) > MAX_PATH_LENGTH:
        raise BrokenPath
    return path
