"""Bundles of source maps as clients of Sentry upload them, and a client that uploads."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from project_service.kit.db.session import db

DEBUG_ID = "5f2f7a1c-6c52-4d4a-8d2c-0a2b3c4d5e6f"
# a small program and its map
SCRIPT = (
    '(()=>{function r(o){let n=o*2;throw new Error("boom "+n)}function t(o){return console.log("hello",o),r(21)}'
    't("x");})();\n'
)
SOURCE = """export function boom(x) {
  const y = x * 2;
  throw new Error('boom ' + y);
}
export function run(name) {
  console.log('hello', name);
  return boom(21);
}
run('x');
"""
MAP = {
    "version": 3,
    "sources": ["../src/a.js"],
    "sourcesContent": [SOURCE],
    "names": ["boom", "x", "y", "run", "name"],
    "mappings": (
        "MAAO,SAASA,EAAKC,EAAG,CACtB,IAAMC,EAAID,EAAI,EACd,MAAM,IAAI,MAAM,QAAUC,CAAC,CAC7B,CACO,"
        "SAASC,EAAIC,EAAM,CACxB,eAAQ,IAAI,QAASA,CAAI,EAClBJ,EAAK,EAAE,CAChB,CACAG,EAAI,GAAG"
    ),
}
URL = "https://shop.example.org/js/app.js"
# as browsers send them: line, column and minified name, oldest first
FRAMES = [
    {"filename": URL, "function": name, "lineno": 1, "colno": column, "in_app": True}
    for column, name in ((108, "?"), (102, "t"), (37, "r"))
]


def bundle(files: dict[str, tuple[dict[str, Any], bytes]], **manifest: Any) -> bytes:
    """A bundle of files: the entry of the manifest and the content, by path."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (_, content) in files.items():
            archive.writestr(name, content)
        entries = {name: entry for name, (entry, _) in files.items()}
        archive.writestr("manifest.json", json.dumps({**manifest, "files": entries}))
    return b"SYSB\x02\0\0\0" + buffer.getvalue()


def build(debug_id: str | None = DEBUG_ID, source_map: Any = MAP, script: str = SCRIPT, **manifest: Any) -> bytes:
    """A bundle of a script and its map."""
    headers = {} if debug_id is None else {"debug-id": debug_id}
    of_script = {"type": "minified_source", "url": "~/js/app.js", "headers": {**headers, "sourcemap": "app.js.map"}}
    of_map = {"type": "source_map", "url": "~/js/app.js.map", "headers": headers}
    content = source_map if isinstance(source_map, bytes) else json.dumps(source_map).encode()
    files = {"files/_/_/js/app.js": (of_script, script.encode()), "files/_/_/js/app.js.map": (of_map, content)}
    return bundle(files, **manifest)


def event(debug_id: str | None = DEBUG_ID, **fields: Any) -> dict[str, Any]:
    """An event of the script."""
    images = [{"type": "sourcemap", "code_file": URL, "debug_id": debug_id}] if debug_id else []
    exception = {"type": "Error", "value": "boom 42", "stacktrace": {"frames": FRAMES}}
    return {
        "platform": "javascript",
        "exception": {"values": [exception]},
        "debug_meta": {"images": images},
        **fields,
    }


def sha1(content: bytes) -> str:
    """The name of a chunk or a bundle."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


class Uploader:
    """Does what sentry-cli does, with a token."""

    def __init__(self, app: Flask, token: str | None, organization: str = "acme") -> None:
        self.client = app.test_client(use_cookies=False)
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.base = f"/api/0/organizations/{organization}"

    def open(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send a request; paths that do not begin with ``/api`` are below the organisation."""
        db.session.remove()
        path = path if path.startswith("/api") else f"{self.base}/{path}"
        response = self.client.open(path, method=method, headers=self.headers, **options)
        db.session.remove()
        return response

    def send(self, *chunks: bytes, name: str = "file_gzip", names: list[str] | None = None) -> TestResponse:
        """Send chunks."""
        packed = [gzip.compress(chunk) if name == "file_gzip" else chunk for chunk in chunks]
        parts = [
            (io.BytesIO(content), checksum)
            for content, checksum in zip(packed, names or [sha1(chunk) for chunk in chunks], strict=True)
        ]
        return self.open("POST", "chunk-upload/", data={name: parts}, content_type="multipart/form-data")

    def assemble(self, content: bytes, projects: list[str] | None = None, **fields: Any) -> TestResponse:
        """Ask to assemble a bundle that is one chunk."""
        body = {"checksum": sha1(content), "chunks": [sha1(content)], "projects": projects or ["shop"], **fields}
        return self.open("POST", "artifactbundle/assemble/", json=body)

    def upload(self, content: bytes, **fields: Any) -> Any:
        """Upload a bundle; return what is answered in the end."""
        assert self.send(content).status_code == 200
        return self.assemble(content, **fields).json
