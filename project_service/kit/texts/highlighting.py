"""Syntax highlighting of source code by Pygments, in a process with limits (``docs/decisions/highlighting.md``)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence

from markupsafe import Markup

from project_service.kit.texts import highlighter
from project_service.kit.texts.safe_html import as_markup

MAX_PROCESSOR_SECONDS = 0.22
MAX_SECONDS = 2.0
MAX_TEXT_BYTES = 512 << 10
MAX_LINE_LENGTH = 5000  # characters; longer lines are of generated files
MAX_PROCESSES = 4  # at once
WAIT_SECONDS = 0.5
# names of lexers by the endings of file names, or by whole names
LANGUAGES = {
    "bash": ".sh .bash .zsh .ksh .bashrc .profile",
    "c": ".c .h",
    "clojure": ".clj .cljs .edn",
    "cmake": ".cmake CMakeLists.txt",
    "cpp": ".cc .cpp .cxx .hh .hpp .hxx",
    "csharp": ".cs",
    "css": ".css",
    "dart": ".dart",
    "diff": ".diff .patch",
    "docker": ".dockerfile Dockerfile Containerfile",
    "elixir": ".ex .exs",
    "erlang": ".erl .hrl",
    "go": ".go",
    "graphql": ".graphql .gql",
    "groovy": ".groovy .gradle Jenkinsfile",
    "haskell": ".hs",
    "html": ".html .htm .xhtml",
    "html+jinja": ".jinja .j2",
    "ini": ".ini .cfg .conf .properties .editorconfig .gitconfig",
    "java": ".java",
    "javascript": ".js .mjs .cjs .jsx",
    "json": ".json .geojson .webmanifest",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "make": ".mk .mak Makefile GNUmakefile",
    "markdown": ".md .markdown .mdown .mkd",
    "nix": ".nix",
    "objective-c": ".m .mm",
    "ocaml": ".ml .mli",
    "perl": ".pl .pm",
    "php": ".php",
    "powershell": ".ps1 .psm1",
    "protobuf": ".proto",
    "python": ".py .pyi .pyw",
    "r": ".r",
    "restructuredtext": ".rst",
    "ruby": ".rb .rake .gemspec Gemfile Rakefile Vagrantfile",
    "rust": ".rs",
    "scala": ".scala .sbt",
    "scss": ".scss",
    "sql": ".sql",
    "swift": ".swift",
    "terraform": ".tf .tfvars .hcl",
    "tex": ".tex .sty",
    "toml": ".toml Pipfile",
    "typescript": ".ts .mts .cts .tsx",
    "vim": ".vim .vimrc",
    "xml": ".xml .xsd .xsl .svg .plist .csproj",
    "yaml": ".yml .yaml .clang-format",
    "zig": ".zig",
}
_BY_NAME = {ending.lower(): language for language, endings in LANGUAGES.items() for ending in endings.split()}

_processes = threading.BoundedSemaphore(MAX_PROCESSES)


def language_of(file_name: str) -> str | None:
    """The language of a file by its name, if it is one of ``LANGUAGES``."""
    name = file_name.lower()
    return _BY_NAME.get(name) or _BY_NAME.get("." + name.rpartition(".")[2] if "." in name else name)


def highlight(lines: Sequence[str], language: str) -> list[Markup]:
    """The lines of a text as HTML: those from the beginning that the limits of size and processor time allow."""
    # a carriage return would end a line for Pygments
    text = "".join(f"{line.replace(chr(13), ' ')}\n" for line in lines)
    content = text.encode()
    if len(content) > MAX_TEXT_BYTES or any(len(line) > MAX_LINE_LENGTH for line in lines):
        return []
    if not _processes.acquire(timeout=WAIT_SECONDS):
        return []
    try:
        output = _run(language, content)
    finally:
        _processes.release()
    highlighted = output.decode(errors="replace").split("\n")[:-1]
    return [as_markup(line) for line in highlighted] if len(highlighted) <= len(lines) else []


def _run(language: str, content: bytes) -> bytes:
    """What the highlighter wrote before it ended, or was ended at a limit."""
    arguments = [sys.executable, "-I", highlighter.__file__, language, str(MAX_PROCESSOR_SECONDS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={}) as process:
        try:
            return process.communicate(content, timeout=MAX_SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]
