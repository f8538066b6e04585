"""What every reader makes of a report: entries that are findings, and entries that are left out, each with its reason.

The texts and limits are the same for all formats (scanner formats reference, sections 4 and 10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity

Data = dict[str, Any]
Item = TypeVar("Item")
MAX_NAME_LENGTH = 255
MAX_DESCRIPTION_LENGTH = 50_000
MAX_CODE_LENGTH = 2_000
MAX_PATH_LENGTH = 1_024
MAX_LINKS = 100
MAX_VALUES = 200  # of a list inside an entry: every finding of the entry repeats the work
MAX_AFFECTED = 1_000  # components or versions that one entry names
MAX_STEPS = 1_000
MAX_LINE = 2**31
MAX_ENTRIES = 200_000
MAX_ENTRIES_IN_MEMORY = 100_000
BROKEN, LIMIT = "broken", "limit"  # reasons that make a report incomplete
SECTION_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
NOT_IN_ID = re.compile(r"[^a-z0-9]+")
WARNINGS = {
    "broken_entry": "An entry could not be read and was left out.",
    "absolute_path": "A file has an absolute path below no known folder: give the folder of the sources, source_root.",
    "outside_path": "A file is outside of the folder that was scanned: it is shown as it is, without a link.",
    "unresolved_ref": "A vulnerability names a component that the document does not have.",
    "skipped_package": "The scanner could not look at a package.",
    "incomplete_run": "The scanner reports that its run failed.",
    "no_results": "A run has no list of results.",
    "over_limit": "More was given than is taken of one entry; the rest was left out.",
    "newer_version": "The version of the format is newer than those known, and was read like the newest known one.",
    "inventory_only": "The document lists components only: it does not tell that nothing was found.",
}


class BrokenEntry(ValueError):
    """An entry of a report that cannot be read, and is left out."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an upload says besides the file.

    ``project_path`` is the full path of the project; ``is_file`` tells whether its repository has a file, and is
    ``None`` without a known repository.
    """

    report_type: str | None = None
    category: str | None = None
    source_root: str | None = None
    project_path: str = ""
    is_file: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Scanner:
    """A scanner; ``name`` as it is written."""

    id: str
    name: str
    version: str | None = None

    def data(self) -> Data:
        """Return it in the form of the API."""
        return {"external_id": self.id, "name": self.name, "version": self.version}


@dataclass(eq=False, slots=True)
class ScannerSection:
    """A scanner and category of a report. ``default_type`` is its type without findings."""

    scanner: Scanner
    category: str
    default_type: str
    complete: bool = True
    started: str | None = None
    ended: str | None = None


@dataclass(eq=False, slots=True)
class ReportEntry:
    """A finding. ``key`` identifies it across runs; ``data`` is shown (``normalising.finding_data``).

    ``marks`` recognise it when its key has changed (``identifying.marks_of``).
    """

    section: ScannerSection
    report_type: str
    severity: FindingSeverity
    confidence: Confidence
    key: str
    data: Data
    suppression: Data | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedEntries:
    """Entries of a report that are no findings, for one reason."""

    section: ScannerSection
    reason: str
    pointer: str = ""
    count: int = 1


@dataclass(slots=True)
class Reading:
    """State of one reading: options, warnings by code, sections in the order of the file, and components of a BOM."""

    options: Options
    warnings: dict[str, Data] = field(default_factory=dict)
    sections: dict[tuple[str, str], ScannerSection] = field(default_factory=dict)
    components: list[Data] = field(default_factory=list)

    def warn(self, code: str, pointer: str, message: str = "") -> None:
        """Count a warning; the pointer is that of the first."""
        first = {"code": code, "count": 0, "pointer": pointer, "message": message or WARNINGS[code]}
        self.warnings.setdefault(code, first)["count"] += 1

    def section(self, scanner: Scanner, default_type: str, category: str = "") -> ScannerSection:
        """Return the section of a scanner and category."""
        category = self.options.category or category
        section = ScannerSection(scanner, category, self.options.report_type or default_type)
        return self.sections.setdefault((scanner.id, category), section)

    def broken(self, section: ScannerSection, pointer: str) -> SkippedEntries:
        """Leave out an entry that cannot be read."""
        self.warn("broken_entry", pointer)
        return SkippedEntries(section, BROKEN, pointer)


def within_limit(items: Iterable[Item], noun: str, form: str, pointer: str = "") -> Iterator[Item]:
    """Return the entries of a report, as long as they are not too many.

    Raises:
        BrokenReport: there are more than ``MAX_ENTRIES``.

    """
    for count, item in enumerate(items, 1):
        if count > MAX_ENTRIES:
            reason = f"has {count} {noun}, at most {MAX_ENTRIES} are taken"
            raise BrokenReport(f"{form} report parsing failed", reason, pointer)
        yield item


def elements(value: Any) -> Iterable[Any]:
    """Return the elements of a list of entries; none for null. Another value is one element, which cannot be read."""
    if value is None:
        return ()
    return value if isinstance(value, list | Entries) else (None,)


def obj(value: Any) -> Data:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objs(value: Any) -> Iterator[Data]:
    """Return the objects of a list; nothing for anything else."""
    return (element for element in value if isinstance(element, dict)) if isinstance(value, Iterable) else iter(())


def texts(value: Any) -> list[str]:
    """Return the texts of a list, of which there may be ``MAX_VALUES``, or a text as a list of one."""
    if isinstance(value, str):
        value = [value]
    return [content for element in value[:MAX_VALUES] if (content := text(element))] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a text without NULs; empty for anything but a text or a number."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    return str(value) if type(value) in (int, float) else ""


def whole(value: Any) -> int | None:
    """Return a whole number, also one that is written with a fraction of zero; ``None`` for anything else."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def line_number(value: Any) -> int | None:
    """Return the number of a line or a column; ``None`` for anything that cannot be one."""
    number = whole(value)
    return number if number is not None and 0 < number < MAX_LINE else None


def slug(name: str) -> str:
    """Return the id of a scanner, from its name."""
    return NOT_IN_ID.sub("-", name.lower()).strip("-")[:MAX_NAME_LENGTH]


def cut(value: str, length: int) -> str:
    """Cut a text that is longer."""
    return value if len(value) <= length else value[: length - 1] + "…"


def title(message: str) -> str:
    """Return the name of a finding from its message: the first paragraph, in one line."""
    paragraph = SECTION_PARAGRAPHS.split(message[:MAX_DESCRIPTION_LENGTH].strip().replace("\r\n", "\n"), 1)[0]
    if "\n" in paragraph:
        lines = [line.strip() for line in paragraph.split("\n")]
        paragraph = " ".join(line for line, before in zip(lines, ["", *lines], strict=False) if line != before)
    return cut(paragraph, MAX_NAME_LENGTH)


def collapsed(value: str) -> str:
    """Return a text with its blanks as one each."""
    return " ".join(value.split())


def description(name: str, message: str, *more: str, code: str = "") -> str | None:
    """Return the description: the message if it says more than the name, then the other blocks, each once."""
    message, more = _shortened(message), tuple(map(_shortened, more))  # every finding of an entry repeats this
    blocks = dict.fromkeys(block.strip() for block in (message, *more[:1]))
    if code.strip():
        fence = "```"
        while fence in code:
            fence += "`"
        shown_code = code[:MAX_CODE_LENGTH].strip("\r\n")
        blocks[f"**Code**\n\n{fence}\n{shown_code}\n{fence}"] = None
    blocks.update(dict.fromkeys(block.strip() for block in more[1:]))
    shown_blocks = [block for block in blocks if block and block != name]
    return cut("\n\n".join(shown_blocks), MAX_DESCRIPTION_LENGTH) if shown_blocks else None


def _shortened(text_: str) -> str:
    return text_[: MAX_DESCRIPTION_LENGTH + 1]


def members(value: Any) -> list[Data]:
    """Return the objects among the first ``MAX_VALUES`` elements of a list; none for anything else."""
    return list(objs(value[:MAX_VALUES])) if isinstance(value, list) else []


def links(urls: Iterable[tuple[str, str]]) -> list[Data]:
    """Return links from pairs of url and name; each url once, only such of the web."""
    links_by_url: dict[str, Data] = {}
    for url, name in islice(urls, 2 * MAX_VALUES):
        address = url.strip()
        if is_web(address) and address not in links_by_url and len(links_by_url) < MAX_LINKS:
            links_by_url[address] = {"name": name, "url": address} if name else {"url": address}
    return list(links_by_url.values())


def is_web(url: str) -> bool:
    """Whether a text is an address of the web."""
    return url.startswith(("http://", "https://"))


def web(url: Any) -> str | None:
    """Return an address of the web, if it is one."""
    address = text(url).strip()
    return address if is_web(address) else None


def finding_data(
    *,
    scanner: Scanner,
    name: str,
    identifiers: list[Data],
    location: Data,
    described: str | None = None,
    solution: str | None = None,
    urls: list[Data] | None = None,
    details: Data | None = None,
) -> Data:
    """Return the data of a finding in the form of ``normalising.finding_data``."""
    return {
        "name": name,
        "description": described,
        "solution": cut(solution, MAX_DESCRIPTION_LENGTH) if solution else None,
        "scanner": scanner.data(),
        "identifiers": identifiers,
        "links": urls or [],
        "location": location,
        "details": details or {},
        "assets": [],
        "evidence": None,
        "evidence_source": None,
        "supporting_messages": None,
        "request": None,
        "response": None,
    }
