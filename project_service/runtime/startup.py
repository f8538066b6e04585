"""Processes that start beside the preparation of what they need, and wait for its end before they do their work."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Preparation:
    """A mark in a directory; one whose process has died blocks nothing."""

    def __init__(self, directory: Path) -> None:
        self._mark = directory / "preparing"

    def begin(self) -> None:
        """Make others wait."""
        self._mark.write_text(str(os.getpid()))

    def end(self) -> None:
        """Let them go on."""
        self._mark.unlink(missing_ok=True)

    def wait(self) -> None:
        """Return as soon as nothing is being prepared."""
        while True:
            try:
                os.kill(int(self._mark.read_text()), 0)
            except (FileNotFoundError, ProcessLookupError, ValueError):
                return
            time.sleep(0.01)
