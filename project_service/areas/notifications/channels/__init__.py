"""Channels of projects, groups and users (notifications reference, section 5)."""
