"""Roles and visibilities, as numbers that compare (common reference, section 7)."""

from __future__ import annotations

import enum


class Role(enum.IntEnum):
    """What a member may do, from nothing to everything."""

    NONE = 0
    MINIMAL = 5
    GUEST = 10
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50

    @property
    def title(self) -> str:
        """As people read it."""
        return {0: "No access", 5: "Minimal access"}.get(self.value, self.name.title())


class Visibility(enum.IntEnum):
    """Who sees something without being a member of it."""

    PRIVATE = 0
    INTERNAL = 10
    PUBLIC = 20

    @property
    def text(self) -> str:
        """As the API spells it."""
        return self.name.lower()

    @classmethod
    def of(cls, text: str) -> Visibility:
        """Read the API's spelling."""
        return cls[text.upper()]


VISIBILITIES = tuple(visibility.text for visibility in Visibility)
MEMBER_ROLES = (Role.GUEST, Role.REPORTER, Role.DEVELOPER, Role.MAINTAINER, Role.OWNER)
