"""Let processes that start during the preparation of the database wait for its end."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Preparation:
    """A file with a process id; while that process lives, others wait."""

    def __init__(self, directory: Path) -> None:
        self._mark = directory / "preparing"

    def begin(self) -> None:
        """Create the file: others wait from now on."""
        self._mark.write_text(str(os.getpid()))

    def end(self) -> None:
        """Remove the file."""
        self._mark.unlink(missing_ok=True)

    def wait(self) -> None:
        """Wait for the end of the preparation, or of its process."""
        while True:
            try:
                os.kill(int(self._mark.read_text()), 0)
            except (FileNotFoundError, ProcessLookupError, ValueError):
                return
            time.sleep(0.01)
