"""Git over HTTP: ``info/refs``, ``git-upload-pack`` and ``git-receive-pack`` at the full path of a project.

Answers are plain text, which git shows to its user, or the output of git. A view returns after the request was read
to its end; the rest happens while the response is streamed, without a transaction.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException

from project_service.access import guards
from project_service.areas.repositories.code_reading import client_address
from project_service.areas.repositories.transport import fetching, git_access, receiving
from project_service.areas.repositories.transport.git_access import RECEIVE_PACK, UPLOAD_PACK, GitRefused, GitTarget
from project_service.areas.repositories.transport.pkt_lines import FLUSH, BadLine, encode_line
from project_service.areas.repositories.transport.pushing import RequestedPush
from project_service.areas.repositories.transport.receiving import MAX_COMMAND_BYTES
from project_service.areas.repositories.transport.request_bodies import body_of
from project_service.domain import instance_settings
from project_service.domain.repositories import git
from project_service.domain.repositories.slots import NoSlot, git_slot
from project_service.domain.repositories.views import machine_folder, served_view
from project_service.kit.db.session import db, reading
from project_service.kit.gzip_reading import BadGzip
from project_service.kit.http import responses, urls
from project_service.kit.http.clients.view_admission import MAX_BODY_BYTES

NO_CACHE = {
    "Cache-Control": "no-cache, max-age=0, must-revalidate",
    "Expires": "Fri, 01 Jan 1980 00:00:00 GMT",
    "Pragma": "no-cache",
}
RETRY_SECONDS = "10"
BUSY = "Too many transfers are in progress. Please try again later."
NO_LFS = {"message": "Git LFS is not enabled on this GitLab server, contact your admin."}

git_http = Blueprint("git_http", __name__)
View = Callable[..., Response]


def answering_git(view: View) -> View:
    """Answer errors of a view as plain text, and never let the answer be stored."""

    @functools.wraps(view)
    def answered(**url: Any) -> Response:
        try:
            response = view(**url)
        except GitRefused as refused:
            response = _text(refused.status, refused.text, refused.headers)
        except NoSlot:
            response = _text(503, BUSY, {"Retry-After": RETRY_SECONDS})
        except (BadLine, BadGzip) as error:
            response = _text(400, f"The request cannot be read: {error}.")
        except fetching.RequestTooLarge:
            response = _text(413, "The request is too large.")
        except Exception as error:
            if isinstance(error, HTTPException):
                raise
            translated = responses.as_service_error(error)
            response = _text(translated.status, str(translated.message), translated.headers)
        response.headers.update(NO_CACHE)
        return response

    return guards.mark(answered, runs_git=True)


@git_http.get("/<project_path:path>.git/info/refs")
@answering_git
def advertise_refs(path: str) -> Response:
    """Advertise the refs or the capabilities of the server to a client."""
    if request.method == "HEAD":
        raise GitRefused(403, git_access.NO_COMMAND)
    service = request.args.get("service")
    with reading():
        target = git_access.authorize(request, path, service)
    protocol = fetching.protocol_variables(request.headers.get("Git-Protocol"))
    with _slot(target), reading(), served_view(target.project, target.kind) as folder:
        db.session.commit()
        push = service == RECEIVE_PACK
        body = receiving.advertisement(folder) if push else fetching.advertise(folder, protocol)
    if push or protocol.get("GIT_PROTOCOL") != "version=2":
        body = encode_line(f"# service={service}\n") + FLUSH + body
    return Response(body, content_type=f"application/x-{service}-advertisement")


@git_http.get("/<project_path:path>/info/refs")
@answering_git
def redirect_to_repository(path: str) -> Response:
    """Lead a client that left out ``.git`` to the repository, whether there is one or not."""
    query = f"?{request.query_string.decode('latin-1')}" if request.query_string else ""
    return _text(301, "", {"Location": urls.absolute(f"/{quote(path)}.git/info/refs{query}")})


@git_http.post(f"/<project_path:path>.git/{UPLOAD_PACK}")
@answering_git
def upload_pack(path: str) -> Response:
    """Send objects to a client."""
    with reading():
        target = git_access.authorize(request, path, UPLOAD_PACK)
    _check_content_type(UPLOAD_PACK)
    protocol = fetching.protocol_variables(request.headers.get("Git-Protocol"))
    with ExitStack() as stack:
        stack.enter_context(_slot(target))
        with reading():
            folder = stack.enter_context(served_view(target.project, target.kind))
        output = stack.enter_context(fetching.upload_pack(folder, body_of(request), protocol))
        return _streamed(output, UPLOAD_PACK, stack.pop_all())


@git_http.post(f"/<project_path:path>.git/{RECEIVE_PACK}")
@answering_git
def receive_pack(path: str) -> Response:
    """Receive objects and change refs."""
    with reading():
        target = git_access.authorize(request, path, RECEIVE_PACK)
        max_megabytes = instance_settings.setting("receive_max_input_size") or 0
    _check_content_type(RECEIVE_PACK)
    body = body_of(request)
    commands = receiving.read_commands(body)
    if commands is None:
        return Response(b"", content_type=f"application/x-{RECEIVE_PACK}-result")
    report = receiving.PushReport(commands)
    push = RequestedPush(target.caller, target.project.id, commands.changes, atomic="atomic" in commands.capabilities)
    with ExitStack() as stack:
        stack.enter_context(_slot(target))
        with reading():
            view = stack.enter_context(served_view(target.project))
        folder = stack.enter_context(receiving.quarantine(view))
        size = git.size_on_disk(view) + (request.content_length or 0)
        error = receiving.run_index_pack(folder, body, max_megabytes << 20, size) if commands.has_pack else ""
        if error:
            return _streamed(iter([report.not_unpacked(error)]), RECEIVE_PACK, stack.pop_all())
        output = receiving.answer(current_app.extensions["application"], push, folder, report, _notice(target))
        return _streamed(output, RECEIVE_PACK, stack.pop_all())


def _max_push_bytes() -> int:
    """Return how large the body of a push may be: the default, unless the caller may push."""
    with reading():
        path = (request.view_args or {})["path"]
        try:
            git_access.authorize(request, path, RECEIVE_PACK)
        except GitRefused:
            return MAX_BODY_BYTES
        max_megabytes: int = instance_settings.setting("receive_max_input_size") or 0
        return MAX_COMMAND_BYTES + (max_megabytes << 20) if max_megabytes else sys.maxsize


guards.mark(receive_pack, body_limit=_max_push_bytes)


def _notice(target: GitTarget) -> str:
    """What the client reads after a push to a former path of the project."""
    if not target.was_moved:
        return ""
    path = target.project.full_path
    return (
        f"\nProject '{target.path}' was moved to '{path}'.\n\nPlease update your Git remote:\n\n"
        f"  git remote set-url origin {urls.absolute(f'/{path}.git')}\n\n"
    )


@git_http.route("/<project_path:path>.git/info/lfs/<path:rest>", methods=["GET", "POST", "PUT"])
def refuse_lfs(path: str, rest: str) -> Response:  # parts of the URL
    """Answer clients of Git LFS that there is none."""
    return Response(json.dumps(NO_LFS), 501, mimetype="application/json")


def _slot(target: GitTarget) -> AbstractContextManager[Any]:
    return git_slot(machine_folder() / "slots", target.caller.user_id, client_address())


def _check_content_type(service: str) -> None:
    if request.content_type != f"application/x-{service}-request":
        raise GitRefused(415, f"The content type must be application/x-{service}-request.")


def _streamed(output: Iterator[bytes], service: str, stack: ExitStack) -> Response:
    """Return a response that closes ``stack`` when it is sent or the client has disconnected."""
    response = Response(output, content_type=f"application/x-{service}-result")
    response.call_on_close(stack.close)
    return response


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text, status, headers, content_type="text/plain; charset=utf-8")
