"""Uploads: chunks of a user, and their assembly into files (source maps reference, sections 7 and 8)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import io
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import delete, func, select

from project_service.areas.error_tracking.releases import bundles, jobs, service
from project_service.areas.error_tracking.releases.bundles import (
    EDGE_BYTES,
    BadArtifactBundle,
    Bundle,
    BundledFile,
    FileEdges,
)
from project_service.areas.error_tracking.releases.models import (
    FAILED,
    MINIFIED,
    OK,
    SOURCE,
    WAITING,
    SourceMapArtifact,
    SourceMapBundle,
)
from project_service.areas.error_tracking.releases.storage_names import chunk_folder, content_name
from project_service.areas.error_tracking.source_maps import lookup
from project_service.domain.namespaces import Namespace
from project_service.kit import clock
from project_service.kit import jobs as background
from project_service.kit.db.session import db, writing
from project_service.kit.storage import storage

CHUNK_BYTES = 2 << 20
MAX_CHUNKS_IN_REQUEST = 8
MAX_REQUEST_BYTES = 16 << 20
MAX_BUNDLE_BYTES = 64 << 20
MAX_BYTES_IN_REQUEST = 8 << 20  # larger bundles are assembled by a job
SHOWN_AS_ASSEMBLING = dt.timedelta(minutes=1)
ABANDONED = dt.timedelta(hours=1)  # then the job has failed, and the next request begins again
FAILURE_KEPT = dt.timedelta(minutes=10)
ASSEMBLING = "assembling"
MAX_PENDING_CHUNKS = 512
MAX_PROJECT_BYTES = 5 << 30
PIECE_BYTES = 256 << 10


class UploadRefused(Exception):
    """An upload is refused; the text is shown to the uploader."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a client asks to assemble. ``version`` and ``dist`` go before those of the manifest."""

    checksum: str
    chunks: Sequence[str]
    version: str | None
    dist: str | None


@dataclass(frozen=True, slots=True)
class StoredBundleFile:
    """A file of a bundle whose content is in the storage."""

    file: BundledFile
    edges: FileEdges
    sha256: str
    sha1: str
    size: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The stored files of a bundle."""

    files: Sequence[StoredBundleFile]
    release: str | None
    dist: str | None


@dataclass(frozen=True, slots=True)
class SingleFile:
    """A file that is uploaded on its own."""

    url: str
    type: str
    debug_id: str | None
    source_map_url: str | None


def store_chunk(namespace: Namespace, user_id: int, checksum: str, content: bytes) -> None:
    """Store a chunk; the same one again is fine."""
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != checksum:
        raise UploadRefused("Checksum mismatch")
    name = f"{chunk_folder(namespace.id, user_id)}/{checksum}"
    with storage().write(name) as target:
        target.write(content)


def check_pending(namespace: Namespace, user_id: int) -> None:
    """Refuse more chunks of a user who has many that are not assembled."""
    if len(storage().names(chunk_folder(namespace.id, user_id))) >= MAX_PENDING_CHUNKS:
        raise UploadRefused("Too many pending chunks")


def missing_chunks(namespace: Namespace, user_id: int, chunks: Sequence[str]) -> list[str]:
    """Return the chunks that the user has not uploaded, each once, in order."""
    folder = chunk_folder(namespace.id, user_id)
    return [chunk for chunk in dict.fromkeys(chunks) if not storage().exists(f"{folder}/{chunk}")]


def is_assembled(project_ids: Sequence[int], assembly: Assembly) -> bool:
    """Whether the bundle is stored for these projects, with this release and dist."""
    conditions = [
        SourceMapBundle.project_id.in_(project_ids),
        SourceMapBundle.checksum == assembly.checksum,
        SourceMapBundle.state == OK,
    ]
    if assembly.version is not None:
        conditions.append(SourceMapBundle.release == assembly.version)
    if assembly.dist is not None:
        conditions.append(SourceMapBundle.dist == assembly.dist)
    count = select(func.count(SourceMapBundle.project_id.distinct())).where(*conditions)
    return db.session.scalar(count) == len(set(project_ids))


def is_large(assembly: Assembly) -> bool:
    """Whether a bundle is assembled by a job: others are in the request, so that clients get their real errors."""
    return len(assembly.chunks) * CHUNK_BYTES > MAX_BYTES_IN_REQUEST


def progress_of(project_ids: Sequence[int], assembly: Assembly) -> tuple[str, str | None] | None:
    """Return the state of a bundle that a job assembles or has failed to, with the reason; ``None`` if there is none.

    Clients ask again while it is ``assembling``; after a minute it is ``created``, which some take as success.
    """
    bundle = SourceMapBundle
    mine = select(bundle).where(bundle.project_id.in_(project_ids), bundle.checksum == assembly.checksum)
    mine = mine.where(bundle.release.is_not_distinct_from(assembly.version))
    mine = mine.where(bundle.dist.is_not_distinct_from(assembly.dist))
    upload = db.session.scalar(mine.order_by(bundle.id.desc()).limit(1))
    now = clock.now()
    if upload is not None and upload.state == WAITING and now - upload.uploaded_at < ABANDONED:
        return (ASSEMBLING if now - upload.uploaded_at < SHOWN_AS_ASSEMBLING else WAITING), None
    if upload is not None and upload.state == FAILED and now - upload.uploaded_at < FAILURE_KEPT:
        return FAILED, upload.error
    return None


def defer_assembly(namespace: Namespace, user_id: int, project_ids: Sequence[int], assembly: Assembly) -> None:
    """Have a bundle assembled by a job."""
    values = {"checksum": assembly.checksum, "release": assembly.version, "dist": assembly.dist, "state": WAITING}
    with writing():
        db.session.add_all(
            [SourceMapBundle(project_id=project_id, uploader_id=user_id, **values) for project_id in project_ids]
        )
        assemble_later.defer(namespace.id, user_id, list(project_ids), dataclasses.asdict(assembly))


@background.job("error_tracking.releases.assemble_later")
def assemble_later(namespace_id: int, user_id: int, project_ids: list[int], assembly: dict[str, Any]) -> None:
    """Assemble a large bundle; what is waiting for it becomes its result."""
    wanted = Assembly(**assembly)
    namespace = db.session.get(Namespace, namespace_id)
    if namespace is None or is_assembled(project_ids, wanted):
        reason = None
    elif missing_chunks(namespace, user_id, wanted.chunks):
        reason = "Not all chunks available for assembling"
        with writing():
            _add_failures(project_ids, user_id, wanted, reason)
    else:
        assemble(namespace, user_id, project_ids, wanted)
    with background.step():
        bundle = SourceMapBundle
        waiting = delete(bundle).where(bundle.project_id.in_(project_ids), bundle.state == WAITING)
        db.session.execute(waiting.where(bundle.checksum == wanted.checksum))


def assemble(namespace: Namespace, user_id: int, project_ids: Sequence[int], assembly: Assembly) -> str | None:
    """Store the files of a bundle for projects; return the reason if that fails, which the page of uploads shows too.

    Runs in a unit of work that only reads: the files are written before the rows, and those without a row are removed
    daily.
    """
    folder = chunk_folder(namespace.id, user_id)
    reason: str | None = None
    contents = None
    try:
        contents = _store_contents(folder, project_ids, assembly)
    except (BadArtifactBundle, UploadRefused) as error:
        reason = str(error)
    with writing():
        try:
            if contents is not None:
                with db.session.begin_nested():  # for all projects or for none
                    for project_id in project_ids:
                        _add_bundle(project_id, user_id, assembly, contents)
        except UploadRefused as error:
            reason = str(error)
        if reason is not None:
            _add_failures(project_ids, user_id, assembly, reason)
    for chunk in set(assembly.chunks) if reason is None else ():
        storage().delete(f"{folder}/{chunk}")
    return reason


def store_single(
    project_id: int, user_id: int, version: str, dist: str | None, file: SingleFile, content: bytes
) -> None:
    """Store one file of a release with a bundle of its own."""
    digest = hashlib.sha256(content).hexdigest()
    name = content_name(project_id, digest)
    if not storage().exists(name):
        storage().store(io.BytesIO(zlib.compress(content)), name)
    edges = FileEdges(content[:EDGE_BYTES], content[-EDGE_BYTES:])
    bundled = BundledFile(file.url, file.type, file.url, file.debug_id, file.source_map_url)
    checksum = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    stored = StoredBundleFile(bundled, edges, digest, checksum, len(content))
    with writing():
        _add_bundle(project_id, user_id, Assembly(checksum, (), version, dist), Contents([stored], version, dist))


def _store_contents(folder: str, project_ids: Sequence[int], assembly: Assembly) -> Contents:
    with tempfile.TemporaryFile() as file:
        _join_chunks(file, folder, assembly)
        bundle = Bundle(file)
        files = [_store_file(project_ids, bundle, bundled_file) for bundled_file in bundle.files]
        return Contents(files, assembly.version or bundle.release, assembly.dist or bundle.dist)


def _join_chunks(file: IO[bytes], folder: str, assembly: Assembly) -> None:
    digest = hashlib.sha1(usedforsecurity=False)
    size = 0
    for chunk in assembly.chunks:
        with storage().open(f"{folder}/{chunk}") as source:
            while piece := source.read(PIECE_BYTES):
                size += len(piece)
                if size > MAX_BUNDLE_BYTES:
                    raise UploadRefused("File exceeds maximum size")
                digest.update(piece)
                file.write(piece)
    if digest.hexdigest() != assembly.checksum:
        raise UploadRefused("Reported checksum mismatch")
    file.seek(0)


def _store_file(project_ids: Sequence[int], bundle: Bundle, file: BundledFile) -> StoredBundleFile:
    """Compress a file into the storage, under the digest of its content."""
    digest, compressor = hashlib.sha256(), zlib.compressobj(6)
    sha1 = hashlib.sha1(usedforsecurity=False)
    size, first, last = 0, b"", b""
    with tempfile.TemporaryFile() as compressed:
        for piece in bundle.chunks(file.name):
            digest.update(piece)
            sha1.update(piece)
            size += len(piece)
            first = first or piece[:EDGE_BYTES]
            last = (last + piece[-EDGE_BYTES:])[-EDGE_BYTES:]
            compressed.write(compressor.compress(piece))
        compressed.write(compressor.flush())
        for project_id in project_ids:
            name = content_name(project_id, digest.hexdigest())
            if not storage().exists(name):
                compressed.seek(0)
                storage().store(compressed, name)
    return StoredBundleFile(file, FileEdges(first, last), digest.hexdigest(), sha1.hexdigest(), size)


def _add_bundle(project_id: int, user_id: int, assembly: Assembly, contents: Contents) -> None:
    artifacts = [_artifact(project_id, content) for content in contents.files]
    if artifacts and contents.release is None and not any(artifact.debug_id for artifact in artifacts):
        raise UploadRefused("uploading a bundle without debug ids or release is prohibited")
    total = sum(artifact.size for artifact in artifacts)
    used = select(func.coalesce(func.sum(SourceMapBundle.bytes), 0)).where(SourceMapBundle.project_id == project_id)
    if total + (db.session.scalar(used) or 0) > MAX_PROJECT_BYTES:
        raise UploadRefused(f"the project's storage for source maps is full ({MAX_PROJECT_BYTES} bytes)")
    bundle = SourceMapBundle(
        project_id=project_id,
        release=contents.release,
        dist=contents.dist,
        checksum=assembly.checksum,
        state=OK,
        files=len(artifacts),
        bytes=total,
        uploader_id=user_id,
    )
    db.session.add(bundle)
    db.session.flush()
    for artifact in artifacts:
        artifact.bundle_id = bundle.id
    db.session.add_all(artifacts)
    if contents.release is not None:
        service.ensure_release(project_id, contents.release)
    db.session.flush()
    jobs.resolve_missing.defer(project_id, bundle.id)


def _artifact(project_id: int, stored: StoredBundleFile) -> SourceMapArtifact:
    file, kind = stored.file, stored.file.type
    if kind == SOURCE and (bundles.debug_id_in(MINIFIED, stored.edges) or bundles.source_map_url_in(stored.edges)):
        kind = MINIFIED
    return SourceMapArtifact(
        project_id=project_id,
        type=kind,
        debug_id=file.debug_id or bundles.debug_id_in(kind, stored.edges),
        url=file.url,
        url_digest=lookup.url_digest(file.url),
        source_map_url=file.source_map_url or bundles.source_map_url_in(stored.edges),
        sha256=stored.sha256,
        sha1=stored.sha1,
        size=stored.size,
    )


def _add_failures(project_ids: Sequence[int], user_id: int, assembly: Assembly, reason: str) -> None:
    values = {"checksum": assembly.checksum, "state": FAILED, "error": reason[:500], "uploader_id": user_id}
    values |= {"release": assembly.version, "dist": assembly.dist}
    db.session.add_all([SourceMapBundle(project_id=project_id, **values) for project_id in project_ids])
