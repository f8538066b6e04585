"""Frames of native programs: addresses in images (error collection reference, section 22)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from project_service.areas.error_tracking.collection.scrubbing import Cleaner

MAX_IMAGES = 1000
MAX_ADDRESS = 2**64
ADDRESS = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,16})")
PATH_SEPARATOR = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Image:
    """A program or library in memory: its file, and where it was loaded. ``size`` is 0 if that is not known."""

    file: str
    address: int
    size: int


def images_of(raw: Any) -> list[Image]:
    """Return the images of ``debug_meta`` whose address is known."""
    images = raw.get("images") if isinstance(raw, dict) else None
    parsed: list[Image] = []
    for image in images[:MAX_IMAGES] if isinstance(images, list) else []:
        address = address_of(image.get("image_addr")) if isinstance(image, dict) else None
        if address is not None:
            file, size = image.get("code_file") or image.get("name"), image.get("image_size")
            is_size = isinstance(size, int) and not isinstance(size, bool) and 0 <= size < MAX_ADDRESS
            parsed.append(Image(file if isinstance(file, str) else "", address, size if is_size else 0))
    return parsed


def native_fields(raw: dict[str, Any], cleaner: Cleaner, images: Sequence[Image]) -> dict[str, Any]:
    """Return what a frame says about its image and address.

    ``image`` is the last part of the path of the image; ``offset`` the address less that of the image where it is
    known, else the address.
    """
    package = cleaner.optional_text(raw.get("package"), 1024)
    address = address_of(raw.get("instruction_addr"))
    start = address_of(raw.get("image_addr"))
    if (address is not None or start is not None) and (start is None or package is None):
        image = _image_of(images, raw.get("package"), start, address)
        if image is not None:
            start = image.address if start is None else start
            package = package or cleaner.optional_text(image.file, 1024)
    fields = {"package": package, "image": PATH_SEPARATOR.split(package)[-1] or package if package else None}
    if address is not None:
        is_known = start is not None and start <= address
        fields |= {"instruction_addr": hex(address), "offset": hex(address - start if is_known and start else address)}
    if start is not None:
        fields["image_addr"] = hex(start)
    return {name: value for name, value in fields.items() if value is not None}


def address_of(raw: Any) -> int | None:
    """Return an address that is a number, or a text in hexadecimal digits."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw if 0 <= raw < MAX_ADDRESS else None
    match = ADDRESS.fullmatch(raw) if isinstance(raw, str) else None
    return None if match is None else int(match[1], 16)


def _image_of(images: Sequence[Image], package: Any, start: int | None, address: int | None) -> Image | None:
    """Return the image of a frame: by its address, by the range that the frame lies in, or by the name of the file."""
    if start is not None:
        image = next((image for image in images if image.address == start), None)
        if image is not None:
            return image
    if address is None:
        return None
    for image in images:
        if image.address <= address < image.address + image.size:
            return image
    return next((image for image in images if package and image.file == package and image.address <= address), None)
