"""Signals of the issue tracker, sent inside the transaction; the factory connects the receivers."""

from __future__ import annotations

from blinker import Namespace

_signals = Namespace()
issue_closed = _signals.signal("issue-closed", doc="Sent with the issue, and ``by``: the user who closed it.")
