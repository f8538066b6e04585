"""The SDKs of Sentry for JavaScript, from npm into a folder that the next run finds again."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support import npm

VERSION = "11.12.0"


def installed() -> Path:
    """The folder ``node_modules``."""
    return npm.installed(f"sentry-{VERSION}", *(f"@sentry/{name}@{VERSION}" for name in ("node", "browser")))


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of Node.js that finds the SDKs."""
    (folder / "app.js").write_text(script)
    environment = {"PATH": os.environ["PATH"], "NODE_PATH": str(installed())}
    command = ["node", str(folder / "app.js")]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)


@contextmanager
def page_with(script: str) -> Iterator[str]:
    """Serve a page whose module script imports the SDK for browsers; its address."""
    modules = installed()
    imports = '{"imports": {"@sentry/": "/@sentry/", "web-vitals": "/web-vitals"}}'
    head = f'<!doctype html><link rel="icon" href="data:,"><script type="importmap">{imports}</script>'
    page = f'{head}<script type="module">\n{script}\n</script>'.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path == "/"
            body = page if is_page else _module(modules, self.path)
            if not is_page and isinstance(body, str):  # relative imports need the address of the file itself
                self.send_response(302)
                self.send_header("Location", body)
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if is_page else "text/javascript")
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _module(modules: Path, path: str) -> bytes | str:
    """The content of a file, or the path of the file that a package exports under a name."""
    if (file := modules / path.lstrip("/")).is_file():
        return file.read_bytes()
    parts = path.lstrip("/").split("/")
    length = 2 if path.startswith("/@") else 1
    name, rest = "/".join(parts[:length]), parts[length:]
    exported = json.loads((modules / name / "package.json").read_text())["exports"]["/".join((".", *rest))]
    while isinstance(exported, dict):
        exported = next(exported[key] for key in ("browser", "production", "import", "default") if key in exported)
    return f"/{name}/{exported.removeprefix('./')}"
