"""Names of events: flags of hooks, triggers of the log, headers (webhooks reference, section 8)."""

from __future__ import annotations

SYSTEM_HOOK = "System Hook"
ALWAYS_SENT_TO_SYSTEM = frozenset(
    {"member_events", "project_member_events", "project_events", "subgroup_events", "instance_events"}
)
TAG_PUSHES, PUSHES = "tag_push_events", "push_events"
# by flag: its words in a header; the trigger of the log is made of the same words
WORDS = {
    PUSHES: "Push",
    TAG_PUSHES: "Tag Push",
    "issues_events": "Issue",
    "confidential_issues_events": "Confidential Issue",
    "note_events": "Note",
    "confidential_note_events": "Confidential Note",
    "milestone_events": "Milestone",
    "vulnerability_events": "Vulnerability",
    "alert_events": "Alert",
    "error_events": "Error",
    "releases_events": "Release",
    "member_events": "Member",
    "project_member_events": "Member",
    "project_events": "Project",
    "subgroup_events": "Subgroup",
    "instance_events": "System",
}


def header_of(flag: str) -> str:
    """Return the value of ``X-Gitlab-Event`` of an event."""
    return f"{WORDS[flag]} Hook"


def trigger_of(flag: str) -> str:
    """Return the name of an event in the log, such as ``tag_push_hooks``."""
    return f"{WORDS[flag].lower().replace(' ', '_')}_hooks"
