"""The README of a folder, as pages show it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from project_service.access.identity import caller
from project_service.access.references import text_references
from project_service.areas.repositories.revision_paths import RevisionPath, page_address
from project_service.domain.projects import Project
from project_service.domain.repositories.reading.objects import text_of
from project_service.domain.repositories.reading.repository import BLOB, CodeRepository
from project_service.domain.repositories.reading.trees import Folder
from project_service.kit.http import raw_content
from project_service.kit.texts.markdown import RelativeAddresses

MAX_README_BYTES = 256 << 10
MAX_READMES = 100
# the first that a folder has is shown
_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"readme\.(?:md|markdown|mdown|mkd)", r"readme\.(?:txt|rst|adoc|org)", r"readme")
)
_MARKDOWN = re.compile(r".*\.(?:md|markdown|mdown|mkd)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Readme:
    """A README: ``text`` is ``None`` if it is too large or no text; ``addresses`` is where its links lead."""

    name: str
    path: str
    text: str | None
    is_markdown: bool
    addresses: RelativeAddresses


def is_markdown(name: str) -> bool:
    """Whether the name of a file is one of Markdown."""
    return _MARKDOWN.fullmatch(name) is not None


def addresses_in(project: Project, revision: str, folder: str) -> RelativeAddresses:
    """Where the relative addresses of a Markdown file in a folder of a revision lead."""
    links, images = (page_address(project, page, revision) for page in ("blob", "raw"))
    return RelativeAddresses(links, images, folder)


def find_readme(project: Project, code: CodeRepository, place: RevisionPath, entries: Folder) -> Readme | None:
    """The README among the entries of a folder, if there is one; symbolic links are not followed."""
    named = itertools.islice(entries.files_that_begin(b"readme"), MAX_READMES)
    files = [entry for entry in named if entry.type == BLOB and not entry.is_link and entry.address is not None]
    for pattern in _NAMES:
        for entry in files:
            if pattern.fullmatch(entry.name):
                content = code.content(entry.id, MAX_README_BYTES)
                text = text_of(content) if content is not None and raw_content.is_text(content) else None
                if is_markdown(entry.name):
                    text_references.prepare(caller(), project, [text])
                addresses = addresses_in(project, place.revision, place.path)
                return Readme(entry.name, entry.shown_path, text, is_markdown(entry.name), addresses)
    return None
