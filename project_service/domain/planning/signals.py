"""What planning tells others of inside the transaction; the factory wires who listens."""

from __future__ import annotations

from blinker import Namespace

_signals = Namespace()
issue_closed = _signals.signal("issue-closed", doc="Sent with the issue, and ``by``: the user who closed it.")
