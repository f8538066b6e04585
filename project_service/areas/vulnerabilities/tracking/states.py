"""State machine of a tracked finding on a branch (scanner formats reference, section 13).

A report sees a finding, or it is complete and does not have it (``MISSING``), or it is incomplete and does not have it
(``UNKNOWN``). Dismissals are no state: a detected finding is shown as dismissed by its feedback.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class TrackingState(StrEnum):
    """State of a tracked finding on a branch; without one it has never been there."""

    DETECTED = "detected"
    RESOLVED = "resolved"


class Observation(StrEnum):
    """What a report says about a tracked finding."""

    SEEN = "seen"
    MISSING = "missing"
    UNKNOWN = "unknown"


class TrackingOutcome(StrEnum):
    """What an upload counts."""

    NEW = "new"
    KNOWN = "known"
    REAPPEARED = "reappeared"
    RESOLVED = "resolved"


class Transition(NamedTuple):
    """The next state, and what is counted."""

    state: TrackingState | None
    outcome: TrackingOutcome | None


# what an upload counts, in the order of its answer; a moved finding is a known one at another place
MOVED = "moved"
COUNTED = (
    str(TrackingOutcome.NEW),
    str(TrackingOutcome.REAPPEARED),
    str(TrackingOutcome.KNOWN),
    MOVED,
    str(TrackingOutcome.RESOLVED),
)
DETECTED, RESOLVED = TrackingState.DETECTED, TrackingState.RESOLVED
TRANSITIONS: dict[tuple[TrackingState | None, Observation], Transition] = {
    (None, Observation.SEEN): Transition(DETECTED, TrackingOutcome.NEW),
    (None, Observation.MISSING): Transition(None, None),
    (None, Observation.UNKNOWN): Transition(None, None),
    (DETECTED, Observation.SEEN): Transition(DETECTED, TrackingOutcome.KNOWN),
    (DETECTED, Observation.MISSING): Transition(RESOLVED, TrackingOutcome.RESOLVED),
    (DETECTED, Observation.UNKNOWN): Transition(DETECTED, None),
    (RESOLVED, Observation.SEEN): Transition(DETECTED, TrackingOutcome.REAPPEARED),
    (RESOLVED, Observation.MISSING): Transition(RESOLVED, None),
    (RESOLVED, Observation.UNKNOWN): Transition(RESOLVED, None),
}


def state_before(
    own: TrackingState | None, of_default_branch: TrackingState | None, *, is_resolved_by_this: bool
) -> TrackingState | None:
    """Return the state that a report of a pipeline finds.

    A branch on which the finding has never been starts with the state of the default branch. What another report of the
    same pipeline has resolved counts as detected: the reports of a pipeline are one.
    """
    if own is RESOLVED and is_resolved_by_this:
        return DETECTED
    return own or of_default_branch
