"""Locations of findings: the text that is fingerprinted, and short names (findings reference, sections 10 and 11)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

import orjson

from project_service.areas.vulnerabilities.report_types import (
    API_FUZZING,
    CONTAINER_SCANNING,
    COVERAGE_FUZZING,
    DAST,
    DEPENDENCY_SCANNING,
    SAST,
    SECRET_DETECTION,
)

Location = dict[str, Any]
_VERSION = re.compile(r"[0-9]+(\.[0-9A-Za-z]+)*(-[0-9A-Za-z.-]+)?")
_DIGEST = re.compile(r"[0-9a-fA-F]{8,128}")


def text(value: Any) -> str:
    """Convert a value of a report to text: ``None`` is empty, integers are their digits, other types are JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if type(value) is int else orjson.dumps(value).decode()


def place_of(report_type: str, location: Location) -> str:
    """Return the text of a location that is fingerprinted; missing parts are empty, their colons stay."""
    return _LOCATION_TEXTS[report_type](location)


def package_place_of(report_type: str, location: Location) -> str:
    """Return the text of a location in a package, with its version; empty for one that is in no package."""
    name = _package(location)
    if not name:
        return ""
    version = text(location["dependency"].get("version"))
    file_or_image = text(location.get("file"))
    if report_type == CONTAINER_SCANNING:
        file_or_image = image_without_tag(text(location.get("image")))
    return f"{resource_of(location)}{file_or_image}:{name}@{version}"


def resource_of(location: Location) -> str:
    """Return the resource of a cluster that a location is in, with a colon; empty for one that is in none."""
    resource = location.get("kubernetes_resource")
    if not isinstance(resource, dict):
        return ""
    return "/".join(text(resource.get(name)) for name in ("namespace", "kind", "name")) + ":"


def short_name(report_type: str, location: Location) -> str:
    """Return the name of a location in a generated title; empty without a location."""
    name = _SHORT_NAMES[report_type](location)
    return name if name.strip(":") else ""


def lines_of(location: Location) -> str:
    """Return the file with its lines, such as ``src/X.java:96`` or ``src/X.java:96-98``; empty without a file."""
    file, first, last = (text(location.get(name)) for name in ("file", "start_line", "end_line"))
    if not file or not first:
        return file
    return f"{file}:{first}" if last in ("", first) else f"{file}:{first}-{last}"


def where_of(location: Location) -> str:
    """Return a short form of a location: the file with its lines, or else the image, or else the path of a page."""
    return lines_of(location) or text(location.get("image")) or text(location.get("path"))


def package_text(location: Location) -> str:
    """Return the package of a location with its version, such as ``lodash 4.17.20``; empty for one that is in none."""
    name = _package(location)
    version = text(location["dependency"].get("version")) if name else ""
    return f"{name} {version}".strip()


def image_without_tag(image: str) -> str:
    """Return the name of an image without a tag that changes with every build; a version is part of the name and stays.

    A colon before the last slash belongs to the port of a registry.
    """
    name, at, digest = image.partition("@")
    if at:
        return f"{name}@{digest.partition(':')[0]}"
    folder, slash, last = image.rpartition("/")
    stem, colon, tag = last.partition(":")
    if not colon or (_VERSION.fullmatch(tag) and not _DIGEST.fullmatch(tag)):
        return image
    return f"{folder}{slash}{stem}"


def _in_file(location: Location) -> str:
    parts = (location.get(name) for name in ("file", "start_line", "end_line"))
    return ":".join(text(part) for part in parts)


def _package_in_file(location: Location) -> str:
    return f"{text(location.get('file'))}:{_package(location)}"


def _package_in_image(location: Location) -> str:
    return f"{image_without_tag(text(location.get('image')))}:{_package(location)}"


def _on_site(location: Location) -> str:
    return ":".join(text(location.get(name)) for name in ("path", "method", "param"))


def _crash(location: Location) -> str:
    return ":".join(text(location.get(name)) for name in ("crash_type", "crash_state"))


def _package(location: Location) -> str:
    dependency = location.get("dependency")
    package = dependency.get("package") if isinstance(dependency, dict) else None
    return text(package.get("name")) if isinstance(package, dict) else ""


def _file_name(location: Location) -> str:
    return posixpath.basename(text(location.get("file")))


def _path(location: Location) -> str:
    return text(location.get("path"))


_LOCATION_TEXTS: dict[str, Callable[[Location], str]] = {
    SAST: _in_file,
    SECRET_DETECTION: _in_file,
    DEPENDENCY_SCANNING: _package_in_file,
    CONTAINER_SCANNING: _package_in_image,
    DAST: _on_site,
    API_FUZZING: _on_site,
    COVERAGE_FUZZING: _crash,
}
_SHORT_NAMES: dict[str, Callable[[Location], str]] = {
    SAST: _file_name,
    SECRET_DETECTION: _file_name,
    DEPENDENCY_SCANNING: _file_name,
    CONTAINER_SCANNING: _package_in_image,
    DAST: _path,
    API_FUZZING: _path,
    COVERAGE_FUZZING: _crash,
}
