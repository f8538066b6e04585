"""Open the repository of a project for a request, with the errors that clients read."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flask import Response, current_app, request

from project_service.access.identity import caller
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository, code_of
from project_service.kit.http.clients.proxies import network_of
from project_service.kit.http.errors import NotFound, ServiceError

OK = 200
ADVICE = (
    "Reading this repository takes more time or memory than one request may use. "
    "Ask for a smaller part of it, or clone it and read it on your machine."
)
TOO_SLOW = f"503 {ADVICE}"


class TooSlow(ServiceError):
    """A reading of a repository reached a limit of the request (``reading.budget``) or of its process."""

    status = 503
    page_text = ("Too large to show", ADVICE)

    def __init__(self) -> None:
        super().__init__(TOO_SLOW, headers={"Retry-After": "60"})


@contextmanager
def reading_code(project: Project, missing: str = "Repository") -> Iterator[CodeRepository]:
    """Open the repository of a project; ``missing`` is what is not found if it has none or git cannot read it."""
    with optional_code(project, missing) as code:
        if code is None:
            raise NotFound(missing)
        yield code


@contextmanager
def optional_code(project: Project, missing: str = "Repository") -> Iterator[CodeRepository | None]:
    """Open the repository of a project, ``None`` if it has none."""
    try:
        with code_of(project) as code:
            yield code
    except ReadingTooLarge as error:
        raise TooSlow from error
    except ReadingFailed as error:
        raise NotFound(missing) from error


def find_commit(code: CodeRepository, revision: str | None, missing: str = "Commit") -> Commit:
    """The commit of a revision, by default that of the default branch."""
    commit = code.resolve(revision or HEAD)
    if commit is None:
        raise NotFound(missing)
    return commit


def download_slots() -> processes.CallerSlots:
    """Return the slots for processes that write to the caller; anonymous ones have their own."""
    user_id = caller().user_id
    if user_id is None:
        return processes.CallerSlots(processes.anonymous_downloads, client_address())
    return processes.CallerSlots(processes.downloads, user_id)


def client_address() -> str | None:
    """Return what the address of the client is counted under; ``None`` where a proxy may stand for all clients."""
    return network_of(request.remote_addr or "", counts_loopback=bool(current_app.config["SETTINGS"].trusted_proxies))


def streamed(project: Project, respond: Callable[[CodeRepository], tuple[Iterable[bytes], Response]]) -> Response:
    """Stream a body that is read from the repository while it is sent; the repository is closed at its end.

    ``respond`` returns the pieces of the body and the response that they belong to. The first piece is read before the
    response begins, so that an error has a status.
    """
    with contextlib.ExitStack() as stack:
        code = stack.enter_context(reading_code(project))
        pieces, response = respond(code)
        response.response = pieces
        if response.status_code == OK and request.method != "HEAD":
            # errors of the first piece are an answer of their own, not the end of one that has begun
            following = stack.enter_context(contextlib.closing(_generated(pieces)))
            response.response = itertools.chain([next(following, b"")], following)
        code.close()
        opened = stack.pop_all()
    response.call_on_close(opened.close)
    return response


def _generated(pieces: Iterable[bytes]) -> Generator[bytes]:
    yield from pieces


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit of a project, as schemas serialize it."""

    project: Project
    commit: Commit
    additions: int | None = None
    deletions: int | None = None
