"""Loads the tables of notifications with the jobs of all areas."""

from __future__ import annotations

from project_service.areas.notifications import models

__all__ = ["models"]
