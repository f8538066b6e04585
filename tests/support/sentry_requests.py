"""Recorded requests of SDKs of Sentry, and a client that sends them."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import io
import json
import os
import zlib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from project_service.areas.error_tracking.settings import client_keys
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorTrackingSetting
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work

RECORDED_KEY = "glet_0123456789abcdef0123456789abcdef"
RECORDED_PROJECT = "/17/"
EXAMPLES = Path(os.environ.get("PROJECT_SERVICE_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data") / "sentry"
# the files that send events, and how many: requests, errors, occurrences
RECORDINGS = {
    "python": (17, 10, 17),
    "python-flask": (3, 2, 3),
    "node": (9, 9, 9),
    "browser": (3, 3, 3),
    "ruby": (3, 3, 3),
    "legacy-store": (6, 4, 6),
    "compressed": (3, 2, 3),
    "ignored": (11, 0, 0),
}


def example(name: str) -> dict[str, Any]:
    """A recorded file; without the files, which do not belong to the project, the test is skipped."""
    path = EXAMPLES / f"{name}.json"
    if not path.exists():
        pytest.skip("the recorded requests are not here; PROJECT_SERVICE_TEST_DATA says where")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def track_errors(project: Project, **settings: Any) -> ClientKey:
    """Enable the integrated backend of a project; return its first key."""
    with unit_of_work():
        setting = ErrorTrackingSetting(project_id=project.id, enabled=True, integrated=True, **settings)
        db.session.add(setting)
        client_keys.ensure_first_key(project, setting)
    found: ClientKey = db.session.scalars(client_keys.keys_of(project)).one()
    return found


def recorded(name: str) -> list[dict[str, Any]]:
    """The requests of a file."""
    requests: list[dict[str, Any]] = example(name)["requests"]
    return requests


class Sender:
    """Sends as an SDK does, with the key of a project."""

    def __init__(self, app: Flask, key: ClientKey) -> None:
        self.client = app.test_client()
        self.key = key.public_key
        self.project_id = key.project_id
        self.moment = clock.now()  # of the last replayed request
        self.base = f"/api/v4/error_tracking/collector/api/{key.project_id}"

    def replay(self, request: dict[str, Any]) -> TestResponse:
        """Send a recorded request."""
        body = base64.b64decode(request.get("body_base64", ""))
        if "body" in request:
            body = self._mine(request["body"]).encode()
        headers = {name: self._mine(value) for name, value in request["headers"].items()}
        if request.get("encoding_as_sent") == "gzip":
            body, headers["content-encoding"] = gzip.compress(body), "gzip"
        elif request.get("encoding_as_sent") == "deflate":
            body, headers["content-encoding"] = zlib.compress(body), "deflate"
        query = self._mine(request.get("query") or "")
        return self.post(f"{self._mine(request['path'])}?{query}", body, headers)

    def replay_all(self, name: str) -> list[TestResponse]:
        """Send all requests of a file, a second apart: their delays after the events differ."""
        responses = []
        for request in recorded(name):
            self.moment = max(clock.now(), self.moment + dt.timedelta(seconds=1))
            with mock.patch.object(clock, "now", return_value=self.moment):
                responses.append(self.replay(request))
        return responses

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> TestResponse:
        """Send a body unchanged; chunked where the headers say so."""
        db.session.remove()  # the test's own transaction, which may lock the database
        headers = dict(headers or {})
        options: dict[str, Any] = {"content_type": headers.pop("content-type", None)}
        if headers.pop("transfer-encoding", None) == "chunked":
            options["input_stream"] = io.BytesIO(body)
            options["environ_overrides"] = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
        else:
            options["data"] = body
        return self.client.post(path, headers=headers, **options)

    def envelope(self, *lines: Any, headers: dict[str, str] | None = None) -> TestResponse:
        """Send an envelope of lines: bytes as they are, everything else as JSON."""
        encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        return self.post(f"{self.base}/envelope/?sentry_key={self.key}", b"\n".join(encoded), headers)

    def event(self, **fields: Any) -> TestResponse:
        """Send one event."""
        return self.envelope({}, {"type": "event"}, {"message": "hello", **fields})

    def _mine(self, text: str) -> str:
        return text.replace(RECORDED_KEY, self.key).replace(RECORDED_PROJECT, f"/{self.project_id}/")
