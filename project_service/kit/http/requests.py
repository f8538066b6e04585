"""The request class of the application."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import flask
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.formparser import FormDataParser
from werkzeug.utils import cached_property
from werkzeug.wsgi import get_input_stream

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream


MAX_UPLOAD_BYTES_IN_MEMORY = 500 << 10


class RequestBody:
    """The input stream of a web server, whose own errors are ``BadRequest``.

    A malformed chunk is found while the application reads the body. Each web server has its own exceptions for it, so
    every exception that is neither an HTTP error nor an error of input and output counts as a malformed body.
    """

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes."""
        try:
            return self._stream.read(size)
        except (HTTPException, OSError):  # for OSError, Werkzeug raises ClientDisconnected
            raise
        except Exception as error:
            raise BadRequest from error


# ``Request.service_url`` of the current request, once it was computed: a list of issues has a hundred links, and each
# would look for the request
service_url: ContextVar[str] = ContextVar("service_url", default="")


class Request(flask.Request):
    """Flask's request, with a body whose framing errors are answered with 400."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        service_url.set("")

    @property
    def service_url(self) -> str:
        """Scheme, host and port of the service's public URL, without a trailing slash."""
        configured: str | None = flask.current_app.config["EXTERNAL_URL"]
        url = configured or self.host_url.rstrip("/")
        service_url.set(url)
        return url

    @cached_property
    def stream(self) -> IO[bytes]:
        """The request body, limited to ``max_content_length`` bytes."""
        body = RequestBody(self.environ["wsgi.input"])
        return get_input_stream({**self.environ, "wsgi.input": body}, max_content_length=self.max_content_length)

    def make_form_data_parser(self) -> FormDataParser:
        """Werkzeug's parser of forms, with uploaded files in the data directory instead of the temporary one."""
        parser = super().make_form_data_parser()
        parser.stream_factory = partial(_upload_file, flask.current_app.config["SETTINGS"].data_dir)
        return parser


def _upload_file(directory: Path, *_sizes: object, **_names: object) -> IO[bytes]:
    """Return the file of an upload: in memory as long as it is small, in the directory otherwise."""
    return SpooledTemporaryFile(MAX_UPLOAD_BYTES_IN_MEMORY, dir=str(directory))
