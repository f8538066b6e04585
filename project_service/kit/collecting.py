"""The collector of garbage, which looks again and again through all there is while much is being made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spared() -> Iterator[None]:
    """Import and build without it, and leave out for good what stays: it takes a fifth of the time of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
