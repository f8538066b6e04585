"""Rewriting of minified frames by what their source maps say (source maps reference, section 15)."""

from __future__ import annotations

import re
from typing import Any

from project_service.areas.error_tracking.collection.scrubbing import Cleaner
from project_service.areas.error_tracking.collection.stacks.stack_traces import Frame
from project_service.areas.error_tracking.source_maps.lookup import joined

Token = dict[str, Any]

RAW_FIELDS = ("filename", "abs_path", "function", "module", "lineno", "colno", "in_app")
ANONYMOUS, UNKNOWN = "<anonymous>", "<unknown>"
NO_NAMES = ("", ANONYMOUS, UNKNOWN, "__webpack_require__", "__webpack_modules__")
MAX_LINE_LENGTH, CUT_LINE_LENGTH = 150, 140
SNIP = "{snip}"
NAMESPACE = r"(?:@[^/]*/)?[^/]*/"  # the name of the package that webpack builds, which may have a scope
WEBPACK = re.compile(rf"^webpack(?:-internal)?://{NAMESPACE}(?:/+(?!\.))?")
# plug-ins of bundlers upload maps whose sources are without the scheme
WITHOUT_SCHEME = re.compile(rf"^(?!\.){NAMESPACE}(?=\./|(?:\.\./)+node_modules/)")
TURBOPACK = re.compile(r"^(?:turbopack:///|/)\[project\]/")
EXTENSION = re.compile(r"\.(?:jsx?|[mc]js|tsx?|[mc]ts|vue|svelte)$")
LIBRARY = re.compile(
    r"(?:^|/)node_modules/|^~/|webpack/(?:bootstrap|runtime/)|\(webpack\)|^_sentry-|^sentry-debug-id-stub:"
)


def raw_frame(frame: Frame) -> Frame:
    """Return a frame as it was sent."""
    return {**frame, **frame["minified"]} if "minified" in frame else frame


def rewritten(frame: Frame, token: Token, caller: Token | None, resolved: dict[str, str], cleaner: Cleaner) -> Frame:
    """Return a frame with the names and lines of its source.

    ``caller`` is what was found for the next older frame: it names what it calls. ``resolved`` says with which map.
    """
    name, is_minified = _function_of(frame, token, caller)
    filename = filename_of(token["source"]) or frame["filename"]
    base = resolved["base"]
    new = {
        **frame,
        "filename": cleaner.optional_text(filename, 1024),
        "abs_path": cleaner.optional_text(
            joined(base, WITHOUT_SCHEME.sub("", token["source"])) if token["source"] else frame["abs_path"], 1024
        ),
        "module": cleaner.optional_text(module_of(filename or ""), 1024),
        "function": cleaner.optional_text(name, 1024),
        "lineno": token["line"],
        "colno": token["column"],
        "in_app": False if token["ignored"] or LIBRARY.search(filename or "") else frame["in_app"],
        "pre_context": [_cut(text, 0, cleaner) for text in token["before"]],
        "context_line": None if token["text"] is None else _cut(token["text"], token["column"], cleaner),
        "post_context": [_cut(text, 0, cleaner) for text in token["after"]],
        "data": {"symbolicated": True, "resolved_with": resolved["with"], "sourcemap": resolved["label"]},
        "minified": {field: frame[field] for field in RAW_FIELDS},
    }
    if is_minified:
        new["data"]["minified_function"] = True
    return new


def filename_of(source: str) -> str:
    """Return the name of a source without what bundlers put before it."""
    source = TURBOPACK.sub("", WITHOUT_SCHEME.sub("", WEBPACK.sub("", source)))
    _, separator, rest = source.partition("/~/")
    return f"~/{rest}" if separator else source


def module_of(filename: str) -> str:
    """Return the module of a source: its path without leading dots and without an extension."""
    return EXTENSION.sub("", re.sub(r"^(?:\.{0,2}/|~/)+", "", filename))


def _function_of(frame: Frame, token: Token, caller: Token | None) -> tuple[str | None, bool]:
    """Return the name of the function, and whether it is the minified one."""
    if token["function"] not in NO_NAMES:
        return token["function"], False
    if caller is not None and caller["name"]:
        return caller["name"], False
    if token["function"] == ANONYMOUS:
        return ANONYMOUS, False
    return frame["function"], True


def _cut(text: str, column: int, cleaner: Cleaner) -> str:
    """Return a line, a long one around the column."""
    text = text.rstrip("\r\n")
    if len(text) > MAX_LINE_LENGTH:
        start = max(0, min(column - CUT_LINE_LENGTH // 2, len(text) - CUT_LINE_LENGTH))
        end = start + CUT_LINE_LENGTH
        text = (SNIP + " " if start else "") + text[start:end] + (" " + SNIP if end < len(text) else "")
    return cleaner.text(text)
