"""Responses with stored files: streamed, in parts if asked for, and never run in the origin of the service."""

from __future__ import annotations

from flask import Response, request
from werkzeug.wsgi import wrap_file

from project_service.areas.uploads.service import EMBEDDED
from project_service.domain.project_files import ProjectFile
from project_service.kit.http import raw_content
from project_service.kit.storage import storage

CHUNK_BYTES = 64 << 10
POLICY = "default-src 'none'; sandbox"
PDF = "pdf"
PRIVATE = "max-age=0, private, must-revalidate"


def respond(upload: ProjectFile) -> Response:
    """Return an upload, to be shown only if bytes and ending are those of a picture, video, sound or PDF."""
    ending = upload.filename.rpartition(".")[2].lower()
    file = storage().open(upload.storage_name)
    try:
        start = file.read(raw_content.SNIFFED_BYTES)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    kind = raw_content.type_of(start)
    inline = kind not in (raw_content.TEXT, raw_content.SVG, raw_content.BINARY) and ending in (*EMBEDDED, PDF)
    headers = raw_content.headers(start, upload.filename, inline=inline)
    headers |= {"Content-Security-Policy": POLICY, "Cache-Control": PRIVATE}
    response = Response(wrap_file(request.environ, file, CHUNK_BYTES), headers=headers, direct_passthrough=True)
    response.content_length = upload.size
    response.set_etag(upload.secret)
    response.make_conditional(request, accept_ranges=True, complete_length=upload.size)
    return response
