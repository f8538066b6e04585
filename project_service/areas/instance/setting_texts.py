"""What each application setting and feature flag does, for the pages; ``docs/configuration.md`` says the same."""

from __future__ import annotations

from project_service.domain.instance_settings import IMPORT_PROJECT_FROM_REMOTE_FILE, SETTINGS

# title of a group, then the settings in it with title and meaning
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Visibility and limits": {
        "default_project_visibility": ("Visibility of new projects", "Used if a request names none."),
        "default_group_visibility": ("Visibility of new groups", "Used if a request names none."),
        "restricted_visibility_levels": (
            "Restricted visibility levels",
            "Only administrators may choose these for projects and groups; existing ones keep theirs.",
        ),
        "default_projects_limit": ("Personal projects", "The number that a new user may have."),
        "search_rate_limit": ("Searches per minute", "Of one user, on pages and by the API; 0 is unlimited."),
        "max_attachment_size": ("Largest upload", "Of a text or release, in MB."),
        "personal_access_token_prefix": ("Prefix of access tokens", "New tokens begin with it."),
    },
    "Repositories": {
        "default_branch_name": ("Default branch", "The branch that HEAD names in an empty repository; main if empty."),
        "password_authentication_enabled_for_git": (
            "Passwords for git over HTTP",
            "Whether git accepts passwords of users; access tokens are always accepted.",
        ),
        "receive_max_input_size": ("Largest push", "In MB; 0 is unlimited."),
        "push_event_activities_limit": (
            "Events of one push",
            "Most branches, or tags, changed in one way by one push that get an event each.",
        ),
        "push_event_hooks_limit": (
            "Web hooks of one push",
            "Most branches, or tags, changed by one push up to which web hooks are sent for each; above it, none.",
        ),
    },
    "Imports and exports": {
        "import_sources": (
            "Import sources",
            "Whether exports of GitLab and of this service can be imported. Other sources of the API have no effect.",
        ),
        "max_import_size": ("Largest import", "In MB; 0 is unlimited."),
        "project_import_limit": ("Imports per minute", "That one user may start; 0 is unlimited."),
        "project_export_enabled": ("Exports", "Whether projects can be exported."),
        "max_export_size": ("Largest export", "In MB, of the repositories and files of a project; 0 is unlimited."),
        "project_export_limit": ("Exports per minute", "That one user may start; 0 is unlimited."),
        "project_download_export_limit": ("Downloads per minute", "Of exports, by one user; 0 is unlimited."),
    },
    "Outgoing requests": {
        "allow_local_requests_from_web_hooks_and_services": (
            "Requests to local networks",
            "Requests to addresses that users supply may reach this machine and its local networks.",
        ),
        "outbound_local_requests_whitelist": (
            "Allowed local destinations",
            "Hosts, addresses and ranges that may be reached nevertheless, separated by commas.",
        ),
    },
    "Alerts": {
        "alert_request_log_size": ("Logged requests", "The last ones that each alert integration keeps."),
        "alert_request_log_days": ("Days that they are kept", "With their bodies, which are encrypted."),
        "throttle_incident_management_notification_enabled": (
            "Limit requests to alert receivers",
            "Requests beyond the limit are answered with 429.",
        ),
        "throttle_incident_management_notification_per_period": ("Requests per period", "To one receiver."),
        "throttle_incident_management_notification_period_in_seconds": ("Length of the period", "In seconds."),
    },
    "Error tracking": {
        "error_tracking_event_limit": ("Events per minute", "That a project may send; 0 is unlimited."),
        "error_tracking_max_event_size": ("Largest event", "In bytes after decompression; at most 10 MiB."),
        "error_tracking_retention_days": (
            "Days that errors are kept",
            "Events, and errors not seen since, are removed after this time; errors with an issue stay.",
        ),
        "error_tracking_events_per_error": (
            "Events of one error",
            "That are stored whole: the first and the newest. All are counted.",
        ),
        "error_tracking_errors_per_project": (
            "Errors of one project",
            "Beyond this number those seen longest ago are removed, resolved and ignored ones first.",
        ),
    },
    "Signing in": {
        "signup_enabled": ("Accounts by invitation", "Whether people who were invited by mail may create an account."),
        "require_two_factor_authentication": (
            "Require two-factor authentication",
            "Users who have not set it up get no other page after the time below; git refuses their passwords.",
        ),
        "gravatar_enabled": (
            "Pictures of Gravatar",
            "The API names Gravatar for users without a picture, which tells it a hash of their addresses.",
        ),
        "ropc_without_client_credentials": (
            "Tokens for passwords",
            "Whether /oauth/token gives an access token of two hours for a name and a password.",
        ),
        "two_factor_grace_period": ("Hours to set it up", "From the next visit or sign-in of a user on."),
    },
    "Audit events": {
        "audit_event_retention_days": ("Days that audit events are kept", "0 keeps them without limit."),
    },
}
FEATURES = {
    IMPORT_PROJECT_FROM_REMOTE_FILE: (
        "Import of projects from an address",
        "Users may give the address of an archive on another server instead of uploading it.",
    )
}


def grouped_settings() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the settings that have an effect, by group; a last group has those without a text."""
    described = {name for settings in GROUPS.values() for name in settings}
    others = {name: (name.replace("_", " ").capitalize(), "") for name in SETTINGS if name not in described}
    return GROUPS | ({"Others": others} if others else {})
