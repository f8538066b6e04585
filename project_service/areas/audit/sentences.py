"""What an audit event says to people: a phrase that follows the name of the author."""

from __future__ import annotations

import re
from dataclasses import dataclass

from project_service.domain.audit.models import AuditEvent
from project_service.domain.audit.recording import INSTANCE_TYPE, NO_USER_ID, SYSTEM

TITLES = {  # of the actions that the page can filter by, in the order in which it offers them
    "member_created": "Member added",
    "member_updated": "Role of a member changed",
    "member_destroyed": "Member removed",
    "member_invited": "Invitation mailed",
    "member_invitation_updated": "Invitation changed",
    "member_invitation_revoked": "Invitation revoked",
    "project_created": "Project created",
    "project_destroyed": "Project deleted",
    "project_name_updated": "Project renamed",
    "project_visibility_level_updated": "Visibility of a project changed",
    "project_group_link_created": "Project shared with a group",
    "project_group_link_deleted": "Share of a project ended",
    "project_export_created": "Export started",
    "project_export_file_download_started": "Export downloaded",
    "project_import_created": "Import started",
    "group_created": "Group created",
    "group_destroyed": "Group deleted",
    "group_share_with_group_link_created": "Group shared with a group",
    "group_share_with_group_link_removed": "Share of a group ended",
    "personal_access_token_issued": "Access token created",
    "personal_access_token_revoked": "Access token revoked",
    "project_access_token_created": "Access token of a project created",
    "group_access_token_created": "Access token of a group created",
    "authenticated_with_standard": "Sign-in",
    "login_failed_with_standard_authentication": "Sign-in failed",
    "user_signed_in_from_unseen_ip": "Sign-in from a new address",
    "user_enable_two_factor": "Two-factor authentication enabled",
    "user_disable_two_factor": "Two-factor authentication disabled",
    "user_recovery_code_used": "Recovery code used",
    "user_password_updated": "Password changed",
    "password_reset_requested": "New password requested",
    "user_created": "User created",
    "user_destroyed": "User deleted",
    "user_blocked": "User blocked",
    "user_unblocked": "User unblocked",
    "feature_flag_updated": "Feature flag changed",
    "feature_flag_deleted": "Feature flag deleted",
}
PHRASES = {
    "member_created": "added {target} as {as}",
    "member_updated": "changed the role of {target} from {from} to {to}",
    "member_destroyed": "removed {target}, who was {from}",
    "member_invited": "invited {target} as {as}",
    "member_invitation_updated": "changed the invitation of {target} to {as}",
    "member_invitation_revoked": "revoked the invitation of {target}",
    "project_created": "created the project",
    "project_destroyed": "deleted the project",
    "project_group_link_created": "shared the project with the group {target}",
    "project_group_link_deleted": "ended the share with the group {target}",
    "project_export_created": "started an export",
    "project_export_file_download_started": "downloaded an export",
    "project_import_created": "started an import",
    "group_created": "created the group",
    "group_destroyed": "deleted the group",
    "group_share_with_group_link_created": "shared the group with the group {target}",
    "group_share_with_group_link_removed": "ended the share with the group {target}",
    "login_failed_with_standard_authentication": "failed to sign in as {target}",
    "user_signed_in_from_unseen_ip": "signed in from an address that was not used before",
    "user_enable_two_factor": "enabled two-factor authentication",
    "user_disable_two_factor": "disabled two-factor authentication",
    "user_recovery_codes_generated": "generated new recovery codes",
    "user_recovery_code_used": "signed in with a recovery code",
    "user_password_updated": "changed the password",
    "password_reset_requested": "asked for a new password",
    "user_created": "created the user",
    "user_destroyed": "deleted the user",
    "user_blocked": "blocked the user",
    "user_unblocked": "unblocked the user",
}
# messages that end with what was done: "Alert integration Monitoring: created", "Project archived"
PASSIVE = re.compile(
    r"(.+?):? (archived|changed|created|deleted|destroyed|enabled|disabled|removed|reset|revoked|unarchived|updated)"
)
SWITCHES = {  # of yes or no, whose names say little without their table
    "ci_variable_protected_updated": "the protection of a variable",
    "error_tracking_setting_enabled_updated": "error tracking",
    "error_tracking_setting_integrated_updated": "the collection of errors by this server",
    "user_admin_updated": "the rights of an administrator",
}
SYSTEM_NAME = "The service"
SIGNED_IN = "authenticated_with_"  # and the method


@dataclass(frozen=True, slots=True)
class AuditSentence:
    """Who did what to which object; the object has an address where a page shows it."""

    author: str
    phrase: str
    object: str
    address: str | None


def sentence_of(event: AuditEvent) -> AuditSentence:
    """Return the sentence of an event; the recorded message stands for actions that have no phrase."""
    details = event.details
    author = str(details.get("author_name") or "")
    author = SYSTEM_NAME if author in ("", SYSTEM.name) else author
    if event.event_name.startswith(SIGNED_IN):
        return AuditSentence(author, "signed in", *_object(event))
    if event.author_id == NO_USER_ID and event.event_name == "member_destroyed":
        return AuditSentence(author, str(details.get("custom_message") or ""), *_object(event))
    phrase = PHRASES.get(event.event_name, "")
    values = {"target": details.get("target_details"), **{name: details.get(name) for name in ("as", "from", "to")}}
    if phrase and all(values[name] for name in values if f"{{{name}}}" in phrase):
        return AuditSentence(author, phrase.format(**values), *_object(event))
    if isinstance(switched := details.get("to"), bool) and "change" in details:
        noun = SWITCHES.get(event.event_name, str(details["change"]).replace("_", " "))
        phrase = _with_target(f"switched {noun} {'on' if switched else 'off'}", details)
        return AuditSentence(author, phrase, *_object(event))
    return AuditSentence(
        author, _quoted(str(details.get("custom_message") or event.event_name), details), *_object(event)
    )


def _quoted(message: str, details: dict[str, object]) -> str:
    """Return a recorded message as a phrase, with what it was done to where that is not the object itself."""
    phrase = message[:1].lower() + message[1:]
    target = str(details.get("target_details") or "")
    if passive := PASSIVE.fullmatch(phrase):
        noun, participle = passive.groups()
        phrase = f"{participle} {target if target.lower().startswith(noun) else noun}"
    return _with_target(phrase, details)


def _with_target(phrase: str, details: dict[str, object]) -> str:
    target = str(details.get("target_details") or "")
    return phrase if not target or target in phrase or target == details.get("entity_path") else f"{phrase}: {target}"


def _object(event: AuditEvent) -> tuple[str, str | None]:
    path = str(event.details.get("entity_path") or "")
    if event.entity_type == INSTANCE_TYPE:
        return "the instance", None
    return path, f"/{path}" if path else None
