"""Names of chunks and files of source maps in the storage."""

from __future__ import annotations

from project_service.domain.projects import folder_of

CHUNKS = "source_map_chunks"


def chunk_folder(namespace_id: int, user_id: int) -> str:
    """Return the folder of the chunks that a user uploaded for a namespace: no one else can assemble them."""
    return f"{CHUNKS}/{namespace_id}-{user_id}"


def content_folder(project_id: int) -> str:
    """Return the folder of the files of a project, which goes with the project."""
    return f"{folder_of(project_id)}/source_maps"


def content_name(project_id: int, sha256: str) -> str:
    """Return the name of a file; it is compressed with zlib."""
    return f"{content_folder(project_id)}/{sha256}"
