"""What one request may spend on reading repositories: seconds and bytes, over all its git processes together."""

from __future__ import annotations

import time

from flask import g, has_request_context

REQUEST_SECONDS = 10.0
REQUEST_BYTES = 64 << 20


class ReadingFailed(Exception):
    """Git did not answer: the revision or path is missing, or an object cannot be read."""


class ReadingTooLarge(ReadingFailed):
    """A reading needs more time, memory or output than is allowed."""


class ReadingBudget:
    """The seconds and bytes that are left; the time begins with the first reading."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        self._deadline = time.monotonic() + seconds
        self._bytes_left = max_bytes

    def seconds(self, wanted: float) -> float:
        """How long a reading may take that wants some seconds.

        Raises:
            ReadingTooLarge: the time is over.

        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ReadingTooLarge("deadline")
        return min(wanted, left)

    def spend(self, count: int) -> None:
        """Count bytes that are read from a repository.

        Raises:
            ReadingTooLarge: there are more than allowed.

        """
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise ReadingTooLarge("bytes")


def current() -> ReadingBudget:
    """The budget of the request; jobs and responses that are being sent have a new one for each reading."""
    if not has_request_context():
        return ReadingBudget(REQUEST_SECONDS, REQUEST_BYTES)
    if "reading_budget" not in g:
        g.reading_budget = ReadingBudget(REQUEST_SECONDS, REQUEST_BYTES)
    budget: ReadingBudget = g.reading_budget
    return budget
