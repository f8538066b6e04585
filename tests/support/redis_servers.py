"""Wait for a Redis that a test has started."""

from __future__ import annotations

import time

from project_service.runtime import embedded_redis
from project_service.settings import Settings


def wait_until_ready(settings: Settings, timeout: float = 30.0) -> None:
    """Wait until Redis responds; raise ``TimeoutError`` after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not embedded_redis.is_ready(settings):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Redis does not respond after {timeout:g} seconds")
        time.sleep(0.02)
