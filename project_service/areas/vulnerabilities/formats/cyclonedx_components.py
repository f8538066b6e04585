"""Components of a CycloneDX document: what references mean, and the list of dependencies.

Scanner formats reference, sections 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from project_service.areas.vulnerabilities.formats import shapes
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.identifying import fits_index
from project_service.areas.vulnerabilities.formats.packages import Package, package_of_purl
from project_service.areas.vulnerabilities.formats.shapes import Data, obj, objs, text, web

FORM = "CycloneDX"
FAILED = f"{FORM} report parsing failed"
LISTED_TYPES = ("library", "framework", "application", "platform")
FILE_PROPERTIES = (
    "gitlab:dependency_scanning:input_file:path",
    "aquasecurity:trivy:FilePath",
    "syft:location:0:path",
)


class Components:
    """The packages of a document by their references. ``whole`` is what the document is about, without its version."""

    def __init__(self, top: Data, *, is_container: bool) -> None:
        metadata = obj(top.get("metadata"))
        root = obj(metadata.get("component"))
        self._file = _file(metadata)
        self._image = text(root.get("name")) if is_container else ""
        self._system = ""
        self.root_reference = text(root.get("bom-ref"))
        self.by_reference: dict[str, Package] = {}
        if is_container:
            for component in every(top):
                if component.get("type") == "operating-system":
                    parts = (text(component.get("name")), text(component.get("version")))
                    self._system = " ".join(part for part in parts if part)
        for component in (*every_inside([root]), *every(top), *_services(top)):
            if reference := text(component.get("bom-ref")):
                self.by_reference.setdefault(reference, self.package(component))
        self.whole = self.placed(replace(self.package(root), version="")) if root else self.placed(Package("unknown"))

    def package(self, component: Data) -> Package:
        """Return the package of a component, with its place."""
        package = package_of_purl(text(component.get("purl")))
        if package is None:
            group, name = text(component.get("group")), text(component.get("name"))
            package = Package(f"{group}/{name}" if group else name, text(component.get("version")))
        elif not package.version:
            package = replace(package, version=text(component.get("version")))
        return self.placed(package, _file(component))

    def placed(self, package: Package, file: str = "") -> Package:
        """Return a package with its place."""
        return replace(package, file=file or self._file, image=self._image, system=self._system)


def listed(top: Data, components: Components) -> list[Data]:
    """Return the entries of the list of dependencies, each package once."""
    direct = _direct(top, components.root_reference)
    entries: dict[Any, Data] = {}
    for component in every(top):
        if component.get("type") not in LISTED_TYPES:
            continue
        package, purl = components.package(component), text(component.get("purl"))
        is_direct = None if direct is None else text(component.get("bom-ref")) in direct
        key = purl or (package.name, package.version)
        if key in entries:
            entries[key]["direct"] = entries[key]["direct"] or is_direct
            continue
        is_short = fits_index(f"{package.name}@{package.version}") and len(purl) <= shapes.MAX_PATH_LENGTH
        if not package.name or not is_short:
            continue
        entries[key] = {
            "name": package.name,
            "version": package.version,
            "package_manager": package.manager,
            "dependency_file_path": package.file[: shapes.MAX_PATH_LENGTH],
            "purl": purl or None,
            "type": component["type"],
            "direct": is_direct,
            "licenses": _licenses(component),
        }
    return list(entries.values())


def every(top: Data) -> Iterator[Data]:
    """Return all components, nested ones too.

    Raises:
        BrokenReport: they are no list, or too many.

    """
    components = top.get("components")
    if components is not None and not isinstance(components, list | Entries):
        raise BrokenReport(FAILED, "must be an array", "/components")
    for count, component in enumerate(every_inside(components or ())):
        if count == shapes.MAX_ENTRIES_IN_MEMORY:
            raise BrokenReport(FAILED, f"has more than {shapes.MAX_ENTRIES_IN_MEMORY} components", "/components")
        yield component


def every_inside(components: Any) -> Iterator[Data]:
    """Return components with those that are nested in them."""
    for component in objs(components):
        yield component
        nested = component.get("components")
        if isinstance(nested, list):
            yield from every_inside(nested)


def _services(top: Data) -> Iterator[Data]:
    services = top.get("services")
    return objs(services if isinstance(services, list) else ())


def _direct(top: Data, root: str) -> set[str] | None:
    """Return what the root depends on; ``None`` if that is unknown."""
    dependencies = top.get("dependencies")
    if not root or not isinstance(dependencies, list | Entries):
        return None
    for dependency in objs(dependencies):
        if dependency.get("ref") == root:
            depends_on = dependency.get("dependsOn")
            return {text(reference) for reference in depends_on} if isinstance(depends_on, list) else set()
    return None


def _licenses(component: Data) -> list[Data]:
    licenses_by_name: dict[str, Data] = {}
    licenses = component.get("licenses")
    for choice in objs(licenses if isinstance(licenses, list) else ()):
        license_ = obj(choice.get("license"))
        name = text(choice.get("expression")) or text(license_.get("id")) or text(license_.get("name"))
        if name and len(licenses_by_name) < shapes.MAX_LINKS:
            name = shapes.cut(name, shapes.MAX_NAME_LENGTH)
            licenses_by_name.setdefault(name, {"name": name, "url": web(license_.get("url"))})
    return list(licenses_by_name.values())


def _file(holder: Data) -> str:
    properties = holder.get("properties")
    values = {
        text(pair.get("name")): text(pair.get("value"))
        for pair in objs(properties if isinstance(properties, list) else ())
    }
    return next((values[name] for name in FILE_PROPERTIES if values.get(name)), "")
