"""Process attributes that only Linux has: a parent death signal and a process name."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
MAX_NAME_BYTES = 15

libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends; call it in the child right after the fork.

    ``parent`` is the pid of the forking process: if it died before the call, the child exits at once. Does nothing
    where the kernel has no parent death signal.
    """
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def set_process_name(name: str) -> None:
    """Set the name that process lists show; the kernel keeps ``MAX_NAME_BYTES`` bytes of it."""
    if libc is not None:
        libc.prctl(PR_SET_NAME, name.encode()[:MAX_NAME_BYTES], 0, 0, 0)
