"""Export archives: small ones that tests put together, and the real ones where they are at hand."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

FORMAT = "0.2.4"
REAL = Path(os.environ.get("ARCHIVES_DIR", Path(__file__).parents[3] / "shared" / "data" / "archives"))
MOMENT = "2021-02-15T15:56:00.645Z"


def make_archive(
    relations: dict[str, list[Any]] | None = None,
    project: dict[str, Any] | None = None,
    *,
    version: str | None = FORMAT,
    files: dict[str, bytes] | None = None,
    members: list[tarfile.TarInfo] | None = None,
) -> bytes:
    """An archive with these relations; ``files`` are further members, ``members`` such without content (links)."""
    content: dict[str, bytes] = {}
    if version is not None:
        content["VERSION"] = version.encode()
    if project is not None or relations is not None:
        content["tree/project.json"] = json.dumps(project or {}).encode()
    for name, rows in (relations or {}).items():
        content[f"tree/project/{name}.ndjson"] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return pack(content | (files or {}), members)


def pack(content: dict[str, bytes], members: list[tarfile.TarInfo] | None = None) -> bytes:
    """A gzip-compressed tar of these files and further members."""
    tape = io.BytesIO()
    with tarfile.open(fileobj=tape, mode="w") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in members or ():
            tar.addfile(member)
    return gzip.compress(tape.getvalue(), 1)


def unpack(archive: bytes) -> dict[str, bytes]:
    """The files of an archive, by name without ``./``."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        return {
            member.name.removeprefix("./"): (tar.extractfile(member) or io.BytesIO()).read()
            for member in tar
            if member.isfile()
        }


def rows(files: dict[str, bytes], relation: str) -> list[Any]:
    """The rows of a relation among the files of an archive."""
    return [json.loads(line) for line in files[f"tree/project/{relation}.ndjson"].splitlines() if line != b"null"]


def make_issue(iid: int, **fields: Any) -> dict[str, Any]:
    """A row of an issue."""
    return {"id": 1000 + iid, "iid": iid, "title": f"Issue {iid}", "author_id": 7, "state": "opened"} | {
        "created_at": MOMENT,
        "updated_at": MOMENT,
        **fields,
    }


def make_note(text: str = "A note", **fields: Any) -> dict[str, Any]:
    """A row of a note."""
    return {
        "note": text,
        "author_id": 7,
        "author": {"name": "Tess"},
        "created_at": MOMENT,
        "updated_at": MOMENT,
    } | fields


def make_event(action: str | int = "created", **fields: Any) -> dict[str, Any]:
    """A row of an event."""
    return {"action": action, "author_id": 7, "created_at": MOMENT, "target_type": "Issue"} | fields


def send(client: Any, archive: bytes | None = None, path: str = "tools", file: str = "it.tar.gz", **fields: Any) -> Any:
    """Upload an archive as a new project; the answer."""
    content = make_archive({}) if archive is None else archive
    # encoded here: the test client would leave the temporary file of a big body open
    boundary, body = encode_multipart({"path": path, "file": FileStorage(io.BytesIO(content), file), **fields})
    kind = f'multipart/form-data; boundary="{boundary}"'
    return client.post("/projects/import", data=body, content_type=kind)
