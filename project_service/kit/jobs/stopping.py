"""The request to a running job to end: a worker that is stopped sends a signal to the process of its job.

Only jobs that run all the time ask for it; the others have some seconds to finish (``rq_worker``).
"""

from __future__ import annotations

import signal
from types import FrameType

SIGNAL = signal.SIGUSR1
_requested: list[int] = []  # not an event, whose lock a signal handler must not take


def handle_signal() -> None:
    """Accept the signal in this process and in those that it forks; the main thread calls this."""
    _requested.clear()
    signal.signal(SIGNAL, _on_signal)


def is_requested() -> bool:
    """Whether the job of this process is asked to end."""
    return bool(_requested)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    _requested.append(number)
