"""Find the script and the source map of a frame (source maps reference, section 14)."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlalchemy import or_, select

from project_service.areas.error_tracking.releases.models import (
    MINIFIED,
    OK,
    SOURCE_MAP,
    SourceMapArtifact,
    SourceMapBundle,
)
from project_service.kit.db.session import db

SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
DEBUG_ID_MATCH, RELEASE_MATCH = "debug-id", "release"


@dataclass(frozen=True, slots=True)
class ScriptFiles:
    """The files that resolve the frames of a script; ``label`` is the debug id or the address of the map."""

    source_map: SourceMapArtifact
    script: SourceMapArtifact | None
    resolved_with: str
    label: str


def find_files(
    project_id: int, path: str, debug_id: str | None, release: str | None, dist: str | None
) -> ScriptFiles | None:
    """Return the files of a script: by its debug id, else by release, dist and address."""
    if debug_id is not None and (files := _by_debug_id(project_id, debug_id)) is not None:
        return files
    return None if release is None else _by_release(project_id, path, release, dist)


def has_files(project_id: int, debug_ids: Sequence[str], release: str | None) -> bool:
    """Whether there may be files for a stack."""
    some = select(SourceMapArtifact.id).where(
        SourceMapArtifact.project_id == project_id, SourceMapArtifact.debug_id.in_(debug_ids)
    )
    if debug_ids and db.session.scalar(some.limit(1)) is not None:
        return True
    of_release = select(SourceMapBundle.id).where(
        SourceMapBundle.project_id == project_id, SourceMapBundle.release == release, SourceMapBundle.state == OK
    )
    return release is not None and db.session.scalar(of_release.limit(1)) is not None


def names_of(path: str) -> list[str]:
    """Return the addresses under which a script may have been uploaded, in the order in which they are tried."""
    path = path.partition("#")[0]
    parts = urlsplit(path) if SCHEME.match(path) and not re.match(r"[A-Za-z]:[\\/]", path) else None
    local = path if parts is None else parts.path + (f"?{parts.query}" if parts.query else "")
    local = "/" + local.replace("\\", "/").lstrip("/")
    names = (path, path.partition("?")[0], f"~{local}", f"~{local.partition('?')[0]}")
    return list(dict.fromkeys(names))


def joined(base: str, reference: str) -> str:
    """Return the address that a reference in a file means."""
    if "://" in reference or reference.startswith(("webpack:", "turbopack:", "data:")):
        return reference
    root, path = _split(base.partition("?")[0])
    if reference.startswith(("~/", "/")):
        return root + "/" + reference.lstrip("~").lstrip("/")
    folder = path.rpartition("/")[0]
    return root + posixpath.normpath("/" + f"{folder}/{reference}".lstrip("/"))


def url_digest(url: str) -> str:
    """Return the digest under which an address is indexed: addresses may be longer than a key of an index."""
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()[:32]


def _split(address: str) -> tuple[str, str]:
    """Split an address into scheme with host, and path."""
    if "://" in address:
        scheme, _, rest = address.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host}", slash + path
    return ("~", address[1:]) if address.startswith("~") else ("", address)


def _by_debug_id(project_id: int, debug_id: str) -> ScriptFiles | None:
    artifact = SourceMapArtifact
    mine = select(artifact).where(artifact.project_id == project_id, artifact.debug_id == debug_id)
    newest = {
        kind: db.session.scalar(mine.where(artifact.type == kind).order_by(artifact.id.desc()).limit(1))
        for kind in (SOURCE_MAP, MINIFIED)
    }
    source_map = newest[SOURCE_MAP]
    return None if source_map is None else ScriptFiles(source_map, newest[MINIFIED], DEBUG_ID_MATCH, debug_id)


def _by_release(project_id: int, path: str, release: str, dist: str | None) -> ScriptFiles | None:
    script = _named(project_id, names_of(path), release, dist)
    if script is None:
        return None
    if script.debug_id is not None and (files := _by_debug_id(project_id, script.debug_id)) is not None:
        return files
    reference = script.source_map_url or posixpath.basename(path.partition("?")[0]) + ".map"
    address = joined(path, reference)
    source_map = _named(project_id, names_of(address), release, dist, kind=SOURCE_MAP)
    return None if source_map is None else ScriptFiles(source_map, script, RELEASE_MATCH, address)


def _named(
    project_id: int, names: Sequence[str], release: str, dist: str | None, kind: str | None = None
) -> SourceMapArtifact | None:
    artifact, bundle = SourceMapArtifact, SourceMapBundle
    statement = (
        select(artifact)
        .join(bundle, bundle.id == artifact.bundle_id)
        .where(
            artifact.project_id == project_id,
            artifact.url_digest.in_([url_digest(name) for name in names]),
            bundle.release == release,
            or_(bundle.dist.is_(None), bundle.dist == "") if not dist else bundle.dist == dist,
        )
        .order_by(artifact.id.desc())
    )
    if kind is not None:
        statement = statement.where(artifact.type == kind)
    artifacts = db.session.scalars(statement.limit(100)).all()
    return next((artifact for name in names for artifact in artifacts if artifact.url == name), None)
