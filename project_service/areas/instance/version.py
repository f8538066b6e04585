"""Version of the service and of the compatible API."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import Any

from project_service.domain.instance_settings import COMPATIBLE, IMPORT_PROJECT_FROM_REMOTE_FILE

OWN = version("project-service")
METADATA = {"version": COMPATIBLE, "revision": hashlib.sha256(OWN.encode()).hexdigest()[:11]}
FEATURE_DEFINITIONS: list[dict[str, Any]] = [
    {
        "name": IMPORT_PROJECT_FROM_REMOTE_FILE,
        "introduced_by_url": None,
        "rollout_issue_url": None,
        "milestone": "13.12",
        "type": "development",
        "group": "group::import",
        "default_enabled": False,
    }
]
